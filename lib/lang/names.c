/* The words of the language: builtins, reductions, special registers, reserved words. */
#include <config.h>

#include "lang/lang_int.h"

static const char *const builtin_names[FN_COUNT] = {
#define BUILTIN(NAME, text, lo, hi, kind) text,
#include "lang/builtin.def"
#undef BUILTIN
};

static const char *const special_names[SP_COUNT] = {
    "threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x", "blockIdx.y",
    "blockIdx.z",  "blockDim.x",  "blockDim.y",  "blockDim.z", "gridDim.x",
    "gridDim.y",   "gridDim.z",   "laneid",      "warpid"};

static const char *const reduce_names[] = {"sum", "prod", "max",    "min",
                                           "any", "all",  "argmax", "argmin"};

const char *lang_builtin_name(enum lang_builtin fn)
{
    return fn < FN_COUNT ? builtin_names[fn] : "?";
}

const char *lang_special_name(enum lang_special sp)
{
    return sp < SP_COUNT ? special_names[sp] : "?";
}

const char *lang_reduce_name(enum lang_reduce r)
{
    return reduce_names[r];
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

const char *lang_reserved(const char *name)
{
    static const char *const keywords[] = {
        "auto",     "break",      "case",     "const",    "continue", "default", "do",
        "else",     "enum",       "extern",   "false",    "for",      "goto",    "if",
        "in",       "inf",        "inline",   "inout",    "nan",      "out",     "pad",
        "register", "restrict",   "return",   "shared",   "signed",   "sizeof",  "static",
        "struct",   "switch",     "true",     "typedef",  "union",    "void",    "volatile",
        "while",    "threadIdx",  "blockIdx", "blockDim", "gridDim",  "laneid",  "warpid",
        "WARP_SZ",  "clusterIdx", "long",     "char",     "asm",      NULL};
    enum dtype t;
    enum lang_reduce r;
    if (is_one_of(name, keywords))
        return "a word of the language";
    if (dtype_parse(name, strlen(name), &t))
        return "a type";
    if (lang_reduce_parse(name, strlen(name), &r))
        return "a reduction";
    return NULL;
}

/* f32x4, f16x8: a type, 'x' and a digit. */
static bool is_vector_type(const char *name)
{
    const char *x = strchr(name, 'x');
    enum dtype t;
    return x && x[1] >= '2' && x[1] <= '8' && !x[2] && dtype_parse(name, (size_t)(x - name), &t);
}

bool lang_is_planned(const char *name)
{
    static const char *const words[] = {"print",        "assert", "uniform", "normal", "philox",
                                        "switch",       "goto",   "shared",  "load2",  "load4",
                                        "load8",        "store2", "store4",  "store8", "printf",
                                        "cluster_sync", NULL};
    static const char *const prefixes[] = {"__", "atomic_", "warp_", "block_", NULL};
    if (is_one_of(name, words) || is_vector_type(name))
        return true;
    for (const char *const *p = prefixes; *p; p++)
        if (strncmp(name, *p, strlen(*p)) == 0)
            return true;
    return false;
}
