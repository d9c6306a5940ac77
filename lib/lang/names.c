/* The words of the language: builtins, reductions, special registers, reserved words. */
#include <config.h>

#include "lang/lang_int.h"

static const char *const builtin_names[FN_COUNT] = {
#define BUILTIN(NAME, text, lo, hi, kind) text,
#include "lang/builtin.def"
#undef BUILTIN
};

static const char *const special_names[SP_COUNT] = {
    "threadIdx.x",    "threadIdx.y",  "threadIdx.z",  "blockIdx.x",   "blockIdx.y",
    "blockIdx.z",     "blockDim.x",   "blockDim.y",   "blockDim.z",   "gridDim.x",
    "gridDim.y",      "gridDim.z",    "laneid",       "warpid",       "clusterIdx.x",
    "clusterIdx.y",   "clusterIdx.z", "clusterDim.x", "clusterDim.y", "clusterDim.z",
    "multiprocessors"};

static const char *const reduce_names[] = {"sum", "prod", "max",    "min",
                                           "any", "all",  "argmax", "argmin"};

static const char *const order_names[] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"};
static const char *const scope_names[] = {"block", "cluster", "gpu", "system"};

const char *lang_builtin_name(enum lang_builtin fn)
{
    return fn < FN_COUNT ? builtin_names[fn] : "?";
}

const char *lang_special_name(enum lang_special sp)
{
    return sp < SP_COUNT ? special_names[sp] : "?";
}

const char *lang_type_name(struct arena *a, enum dtype t, uint8_t lanes)
{
    return lanes ? arena_printf(a, "%sx%u", dtype_name(t), (unsigned)lanes) : dtype_name(t);
}

const char *lang_reduce_name(enum lang_reduce r)
{
    return reduce_names[r];
}

bool lang_builtin_acts(enum lang_builtin fn)
{
    enum kind { FLOAT, ARITH, FLAW, BITS, MEMORY, OTHER, SYNC, ATOMIC };
    static const unsigned char kinds[FN_COUNT] = {
#define BUILTIN(NAME, text, lo, hi, kind) kind,
#include "lang/builtin.def"
#undef BUILTIN
    };
    return fn < FN_COUNT && kinds[fn] >= SYNC;
}

const char *lang_order_name(enum lang_order o)
{
    return order_names[o];
}

const char *lang_memory_scope_name(enum lang_memory_scope s)
{
    return scope_names[s];
}

static bool find_word(const char *const *words, size_t count, const char *s, size_t n, size_t *at)
{
    for (*at = 0; *at < count; ++*at)
        if (strlen(words[*at]) == n && memcmp(words[*at], s, n) == 0)
            return true;
    return false;
}

bool lang_order_parse(const char *s, size_t n, enum lang_order *o)
{
    size_t at;
    bool found = find_word(order_names, sizeof order_names / sizeof *order_names, s, n, &at);
    *o = (enum lang_order)at;
    return found;
}

bool lang_memory_scope_parse(const char *s, size_t n, enum lang_memory_scope *scope)
{
    size_t at;
    bool found = find_word(scope_names, sizeof scope_names / sizeof *scope_names, s, n, &at);
    *scope = (enum lang_memory_scope)at;
    return found;
}

bool lang_reduce_parse(const char *s, size_t n, enum lang_reduce *r)
{
    for (size_t i = 0; i < sizeof reduce_names / sizeof *reduce_names; i++)
        if (strlen(reduce_names[i]) == n && memcmp(reduce_names[i], s, n) == 0) {
            *r = (enum lang_reduce)i;
            return true;
        }
    return false;
}

const char *lang_nearest_reduction(const char *name)
{
    enum { NREDUCE = sizeof reduce_names / sizeof *reduce_names, MOST = 16 };
    const char *all[NREDUCE + MOST] = {0};
    memcpy(all, reduce_names, sizeof reduce_names);
    for (size_t i = 0; i + 1 < MOST && lang_notation_name(i); i++)
        all[NREDUCE + i] = lang_notation_name(i);
    return diag_nearest(name, strlen(name), all);
}

bool lang_special_parse(const char *s, size_t n, enum lang_special *sp)
{
    for (size_t i = 0; i < SP_COUNT; i++)
        if (strlen(special_names[i]) == n && memcmp(special_names[i], s, n) == 0) {
            *sp = (enum lang_special)i;
            return true;
        }
    return false;
}

enum lang_builtin lang_builtin_parse(const char *name, bool *fast)
{
    static const enum lang_builtin approximate[] = {FN_EXP,   FN_EXP2,  FN_LOG, FN_LOG2,
                                                    FN_LOG10, FN_SIN,   FN_COS, FN_TANH,
                                                    FN_RCP,   FN_RSQRT, FN_SQRT};
    *fast = strncmp(name, "fast_", 5) == 0;
    if (*fast) {
        for (size_t i = 0; i < sizeof approximate / sizeof *approximate; i++)
            if (strcmp(name + 5, builtin_names[approximate[i]]) == 0)
                return approximate[i];
        return FN_COUNT;
    }
    for (size_t i = 0; i < FN_COUNT; i++)
        if (name[0] == builtin_names[i][0] && strcmp(name, builtin_names[i]) == 0)
            return (enum lang_builtin)i;
    return FN_COUNT;
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (name[0] == (*list)[0] && strcmp(name, *list) == 0)
            return true;
    return false;
}

const char *lang_reserved(const char *name, const struct lang_types *types)
{
    static const char *const keywords[] = {
        "auto",     "break",      "case",       "const",    "continue", "default", "do",
        "else",     "enum",       "extern",     "false",    "for",      "goto",    "if",
        "in",       "inf",        "inline",     "inout",    "nan",      "out",     "pad",
        "register", "restrict",   "return",     "shared",   "signed",   "sizeof",  "static",
        "struct",   "switch",     "true",       "typedef",  "union",    "void",    "volatile",
        "while",    "threadIdx",  "blockIdx",   "blockDim", "gridDim",  "laneid",  "warpid",
        "warpSize", "clusterIdx", "clusterDim", "long",     "char",     "asm",     NULL};
    enum dtype t;
    enum lang_reduce r;
    if (is_one_of(name, keywords) || strcmp(name, special_names[SP_MULTIPROCESSORS]) == 0 ||
        lang_is_notation_word(name))
        return "a word of the language";
    if (dtype_parse(name, strlen(name), &t) || lang_vector_parse(name, strlen(name), types, &t))
        return "a type";
    for (size_t i = 0; types && i < types->n; i++)
        if (strcmp(name, types->v[i].name) == 0)
            return "a type";
    if (lang_reduce_parse(name, strlen(name), &r))
        return "a reduction";
    return NULL;
}

bool lang_is_builtin(const char *name)
{
    bool fast;
    return lang_builtin_parse(name, &fast) != FN_COUNT;
}

const char *lang_cuda_word(const char *name)
{
    static const char *const words[][2] = {
        {"__shfl", "__shfl_sync"},
        {"__shfl_up", "__shfl_up_sync"},
        {"__shfl_down", "__shfl_down_sync"},
        {"__shfl_xor", "__shfl_xor_sync"},
        {"__ballot", "__ballot_sync"},
        {"__any", "__any_sync"},
        {"__all", "__all_sync"},
        {"__nanosleep", "nanosleep"},
        {"atomicAdd", "atomic_add"},
        {"atomicSub", "atomic_sub"},
        {"atomicMin", "atomic_min"},
        {"atomicMax", "atomic_max"},
        {"atomicAnd", "atomic_and"},
        {"atomicOr", "atomic_or"},
        {"atomicXor", "atomic_xor"},
        {"atomicExch", "atomic_exch"},
        {"atomicCAS", "atomic_cas"},
        {"atomicInc", "atomic_inc"},
        {"atomicDec", "atomic_dec"},
        {"__expf", "fast_exp"},
        {"__logf", "fast_log"},
        {"__log2f", "fast_log2"},
        {"__log10f", "fast_log10"},
        {"__sinf", "fast_sin"},
        {"__cosf", "fast_cos"},
        {"expf", "exp"},
        {"logf", "log"},
        {"sqrtf", "sqrt"},
        {"rsqrtf", "rsqrt"},
        {"powf", "pow"},
        {"tanhf", "tanh"},
        {"sinf", "sin"},
        {"cosf", "cos"},
        {"fabs", "abs"},
        {"fabsf", "abs"},
        {"fmaxf", "max"},
        {"fmax", "max"},
        {"fminf", "min"},
        {"fmin", "min"},
        {"fmaf", "fma"},
        {"__popc", "popc"},
        {"__clz", "clz"},
        {"__brev", "brev"},
        {"__umulhi", "mulhi"},
        {"__mulhi", "mulhi"},
        {"__dp4a", "dp4a"},
        {"__float_as_uint", "as_u32"},
        {"__float_as_int", "as_i32"},
        {"__int_as_float", "as_f32"},
        {"__uint_as_float", "as_f32"},
        {"printf", "print"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}
