#include <config.h>

#include "kernels/generate_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES_MOST = 900 };

static const enum dtype int_types[] = {DT_I32, DT_U32, DT_I64, DT_U64, DT_I8,
                                       DT_U8,  DT_I16, DT_U16, DT_I32, DT_U32};
static const enum dtype variable_types[] = {DT_I32, DT_U32,  DT_I64,  DT_U64, DT_F32, DT_F64,
                                            DT_F32, DT_F16,  DT_BF16, DT_I8,  DT_U8,  DT_I16,
                                            DT_U16, DT_BOOL, DT_I32,  DT_U32};
#define PICK(g, list) (list)[gen_below(g, sizeof(list) / sizeof *(list))]

bool gen_is_arithmetic(enum dtype t)
{
    return dtype_bits(t) >= 32;
}

enum dtype gen_scalar_type(struct gen *g)
{
    return PICK(g, variable_types);
}

enum dtype gen_int_type(struct gen *g)
{
    return PICK(g, int_types);
}

enum dtype gen_promoted(enum dtype t)
{
    return gen_is_arithmetic(t) ? t : dtype_is_float(t) ? DT_F32 : DT_I32;
}

/* C's order of the arithmetic types, the strongest highest. */
static int rank_of(enum dtype t)
{
    static const enum dtype order[] = {DT_I32, DT_U32, DT_I64, DT_U64, DT_F32, DT_F64};
    t = gen_promoted(t);
    for (int i = 0; i < 6; i++)
        if (order[i] == t)
            return i;
    return 0;
}

enum dtype gen_weaker_type(struct gen *g, enum dtype t)
{
    for (int tries = 0; tries < 8 && !gen_one_in(g, 3); tries++) {
        enum dtype w = gen_scalar_type(g);
        if (rank_of(w) <= rank_of(t))
            return w;
    }
    return t;
}

struct text gen_text(const char *s, int level)
{
    return (struct text){s, level, false};
}

const char *gen_wrap(struct gen *g, struct text t, int lowest)
{
    return t.level < lowest || gen_one_in(g, 12) ? arena_printf(g->a, "(%s)", t.s) : t.s;
}

/* ---- literals -------------------------------------------------------------------------------- */

static uint64_t interesting(struct gen *g, enum dtype t)
{
    static const uint64_t some[] = {0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 63, 64, 100, 127};
    uint64_t v = PICK(g, some);
    if (gen_one_in(g, 3))
        v = (UINT64_C(1) << gen_below(g, dtype_bits(t))) + gen_below(g, 3) - 1;
    if (gen_one_in(g, 8))
        v = random_bits(&g->r);
    if (gen_one_in(g, 12))
        v = gen_one_in(g, 2) ? dtype_imax(t) : (uint64_t)dtype_imin(t);
    return dtype_class(t) == DTC_I && gen_one_in(g, 3) ? 0 - v : v;
}

static struct text int_literal(struct gen *g, enum dtype t)
{
    uint64_t v = interesting(g, t);
    unsigned bits = dtype_bits(t);
    const char *hex = gen_one_in(g, 4) ? "0x%llx%s" : "%llu%s";
    const char *suffix = t == DT_U32 ? "u" : t == DT_I64 ? "l" : t == DT_U64 ? "ul" : "";
    v &= bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    struct text r = {.level = BIND_PRIMARY, .constant = true};
    if (dtype_class(t) == DTC_I && v >> (bits - 1)) { /* negative */
        uint64_t size = bits == 64 ? 0 - v : (UINT64_C(1) << bits) - v;
        if (size >> (bits - 1) || gen_one_in(g, 4)) { /* by its bits */
            r.s = arena_printf(g->a, "%s(0x%llx)", dtype_name(t), (unsigned long long)v);
        } else if (bits < 32) {
            r.s = arena_printf(g->a, "%s(-%llu)", dtype_name(t), (unsigned long long)size);
        } else {
            r.s = arena_printf(g->a, "-%llu%s", (unsigned long long)size, suffix);
            r.level = BIND_UNARY;
        }
        return r;
    }
    const char *digits = hex[0] == '0'
                             ? arena_printf(g->a, "0x%llx%s", (unsigned long long)v, suffix)
                             : arena_printf(g->a, "%llu%s", (unsigned long long)v, suffix);
    r.s = bits < 32 ? arena_printf(g->a, "%s(%s)", dtype_name(t), digits) : digits;
    return r;
}

static double interesting_float(struct gen *g)
{
    static const double some[] = {0,    1,     2,       0.5,   1.5,  3,
                                  0.1,  0.25,  10,      100,   1e-3, 1e10,
                                  1e-7, 65504, 0x1p-14, 1e-40, 7,    0.7853981633974483};
    double v = PICK(g, some);
    if (gen_one_in(g, 3))
        v = (double)gen_below(g, 100000) / 1000;
    return gen_one_in(g, 3) ? -v : v;
}

static struct text float_literal(struct gen *g, enum dtype t)
{
    char digits[40];
    double v = interesting_float(g);
    bool plain = t == DT_F32 && gen_one_in(g, 4);
    struct text r = {.level = BIND_PRIMARY, .constant = true};
    if (t == DT_F32 && gen_one_in(g, 40)) {
        r.s = gen_one_in(g, 3) ? "nan" : "inf";
        return r;
    }
    snprintf(digits, sizeof digits, "%.9g", fabs(v));
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    const char *sign = signbit(v) ? "-" : "";
    /* -1.5h is a negation, and that of an f16 is f32 */
    if (t == DT_F32 || (t == DT_F16 && !*sign && v < 65000 && gen_one_in(g, 2))) {
        r.s = arena_printf(g->a, "%s%s%s%s", sign, digits, point,
                           t == DT_F16 ? "h"
                           : plain     ? ""
                                       : "f");
        r.level = *sign ? BIND_UNARY : BIND_PRIMARY;
    } else {
        r.s = arena_printf(g->a, "%s(%s%s%s)", dtype_name(t), sign, digits, point);
    }
    return r;
}

struct text gen_literal(struct gen *g, enum dtype t)
{
    if (t == DT_BOOL)
        return (struct text){gen_one_in(g, 2) ? "true" : "false", BIND_PRIMARY, true};
    return dtype_is_float(t) ? float_literal(g, t) : int_literal(g, t);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static const struct var *find_var(struct gen *g, enum dtype t)
{
    const struct var *found = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < g->vars.n; i++)
        if (g->vars.v[i].type == t && !g->vars.v[i].lanes && !g->vars.v[i].rank &&
            gen_is_visible(g, i) && gen_one_in(g, ++n))
            found = &g->vars.v[i];
    for (size_t i = 0; i < g->scalars.n; i++)
        if (g->scalars.v[i].type == t && gen_one_in(g, ++n))
            found = &g->scalars.v[i];
    return found;
}

static const char *special(struct gen *g)
{
    static const char *const words[] = {
        "blockIdx.x",    "blockIdx.y",    "blockIdx.z",    "blockDim.x",    "blockDim.y",
        "blockDim.z",    "gridDim.x",     "gridDim.y",     "gridDim.z",     "threadIdx.x",
        "threadIdx.y",   "threadIdx.z",   "laneid",        "warpid",        "threadIdx.x",
        "lanemask_lt()", "lanemask_le()", "lanemask_eq()", "lanemask_ge()", "lanemask_gt()"};
    static const char *const clusters[] = {"clusterIdx.x",   "clusterIdx.y",  "clusterIdx.z",
                                           "clusterDim.x",   "clusterDim.y",  "clusterDim.z",
                                           "cluster_rank()", "cluster_size()"};
    if (g->sm >= 90 && gen_one_in(g, 4))
        return PICK(g, clusters);
    return PICK(g, words);
}

static struct text dimension_or_special(struct gen *g)
{
    if (g->dims.n && gen_one_in(g, 3))
        return gen_text(arena_printf(g->a, "d%u", gen_below(g, (unsigned)g->dims.n)), BIND_PRIMARY);
    return gen_text(gen_one_in(g, 6) ? "n" : special(g), BIND_PRIMARY);
}

struct text gen_variable(struct gen *g, enum dtype t)
{
    const struct var *v = find_var(g, t);
    if (v)
        return gen_text(v->name, BIND_PRIMARY);
    if (t == DT_U32)
        return dimension_or_special(g);
    enum dtype other = gen_scalar_type(g);
    v = find_var(g, other);
    if (!v)
        return gen_text(arena_printf(g->a, "%s(%s)", dtype_name(t), dimension_or_special(g).s),
                        BIND_PRIMARY);
    return gen_text(arena_printf(g->a, "%s(%s)", dtype_name(t), v->name), BIND_PRIMARY);
}

const char *gen_index(struct gen *g, uint32_t n, unsigned depth)
{
    if (n == 1)
        return gen_one_in(g, 2) ? "0" : "0u";
    if (gen_one_in(g, 4))
        return arena_printf(g->a, "%u%s", gen_below(g, n), gen_one_in(g, 2) ? "u" : "");
    struct text e = gen_expr(g, gen_int_type(g), depth ? depth - 1 : 0);
    if (e.constant)
        e = gen_variable(g, DT_I32);
    if ((n & (n - 1)) == 0)
        return arena_printf(g->a, "%s & %u", gen_wrap(g, e, BIND_AND), n - 1);
    return arena_printf(g->a, "%s(%s) %% %uu", gen_one_in(g, 4) ? "u64" : "u32", e.s, n);
}

static const char *element(struct gen *g, struct gen_buffer b, unsigned depth)
{
    const char *at[3] = {0};
    uint32_t count = 1;
    if (b.use != USE_READ)
        return gen_own(g, b);
    for (uint32_t i = 0; i < b.rank; i++)
        count *= b.dim[i];
    if (b.rank == 0)
        return b.name;
    if (b.rank > 1 && gen_one_in(g, 3)) /* flat */
        return arena_printf(g->a, "%s[%s]", b.name, gen_index(g, count, depth));
    for (uint32_t i = 0; i < b.rank; i++)
        at[i] = gen_index(g, b.dim[i], i ? 0 : depth);
    if (b.named >= 0 && gen_one_in(g, 2))
        at[0] = arena_printf(g->a, "u32(%s) %% d%d", gen_expr(g, gen_int_type(g), 1).s, b.named);
    return arena_printf(g->a, "%s[%s%s%s%s%s]", b.name, at[0], at[1] ? ", " : "",
                        at[1] ? at[1] : "", at[2] ? ", " : "", at[2] ? at[2] : "");
}

const char *gen_own(struct gen *g, struct gen_buffer b)
{
    uint32_t slots = b.dim[0];
    const char *k = gen_index(g, slots, 1);
    if (b.rank == 1)
        return arena_printf(g->a, "%s[tid]", b.name);
    if (gen_one_in(g, 3)) /* flat */
        return b.slots_first ? arena_printf(g->a, "%s[(%s) * n + tid]", b.name, k)
                             : arena_printf(g->a, "%s[tid * %uu + (%s)]", b.name, slots, k);
    return b.slots_first ? arena_printf(g->a, "%s[%s, tid]", b.name, k)
                         : arena_printf(g->a, "%s[tid, %s]", b.name, k);
}

struct text gen_leaf(struct gen *g, enum dtype t)
{
    unsigned k = gen_below(g, 10);
    if (t == DT_I32 &&
        gen_one_in(g, 12)) { /* of types that no variable has, as arithmetic has them */
        struct gen_buffer b = gen_buffer(g, USE_READ, gen_one_in(g, 2) ? DT_I4 : DT_U4);
        return gen_text(arena_printf(g->a, "+%s", element(g, b, 0)), BIND_UNARY);
    }
    if (t == DT_F32 && gen_one_in(g, 12)) {
        struct gen_buffer b = gen_buffer(g, USE_READ, gen_one_in(g, 2) ? DT_E4M3 : DT_E5M2);
        return gen_text(arena_printf(g->a, "+%s", element(g, b, 0)), BIND_UNARY);
    }
    const struct var *v = k < 6 ? find_var(g, t) : NULL;
    g->nodes++;
    if (v)
        return gen_text(v->name, BIND_PRIMARY);
    const struct var *whole = k == 6 || k == 5 ? gen_find_part(g, t, false) : NULL;
    if (whole)
        return gen_text(gen_part(g, whole), BIND_PRIMARY);
    if (k == 6 && g->tables.n) {
        const struct var *w = &g->tables.v[gen_below(g, (unsigned)g->tables.n)];
        if (w->type == t)
            return gen_text(gen_part(g, w), BIND_PRIMARY);
    }
    if (k == 6 || k == 7)
        return gen_text(element(g, gen_buffer(g, USE_READ, t), 0), BIND_PRIMARY);
    if (k == 8 && t == DT_U32)
        return dimension_or_special(g);
    return k < 6 ? gen_variable(g, t) : gen_literal(g, t);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Of two literals the checker would make a third, or an error. */
static struct text not_both(struct gen *g, struct text x, struct text y, enum dtype t)
{
    return x.constant && y.constant ? gen_variable(g, t) : y;
}

static struct text infix(struct gen *g, struct text x, const char *op, struct text y, int level)
{
    return gen_text(
        arena_printf(g->a, "%s %s %s", gen_wrap(g, x, level), op, gen_wrap(g, y, level + 1)),
        level);
}

/* An integer that is not 0: of type t after the usual conversions with t. */
struct text gen_divisor(struct gen *g, enum dtype t, unsigned depth)
{
    if (gen_one_in(g, 2)) {
        struct text lit = int_literal(g, t);
        for (int i = 0; i < 20 && strpbrk(lit.s, "123456789abcdef") == NULL; i++)
            lit = int_literal(g, t);
        if (!strchr(lit.s, '(') && strtoull(lit.s + (*lit.s == '-'), NULL, 0) != 0)
            return lit;
    }
    enum dtype w = gen_weaker_type(g, t);
    struct text e = gen_expr(g, w, depth);
    if (e.constant)
        e = gen_variable(g, w);
    return gen_text(arena_printf(g->a, "(%s | 1)", gen_wrap(g, e, BIND_OR)), BIND_PRIMARY);
}

static struct text arithmetic(struct gen *g, enum dtype t, unsigned depth)
{
    static const struct {
        const char *op;
        int level;
        bool ints;
    } ops[] = {{"+", BIND_ADD, false}, {"-", BIND_ADD, false}, {"*", BIND_MUL, false},
               {"/", BIND_MUL, false}, {"&", BIND_AND, true},  {"^", BIND_XOR, true},
               {"|", BIND_OR, true},   {"%", BIND_MUL, true},  {"+", BIND_ADD, false},
               {"*", BIND_MUL, false}, {"-", BIND_ADD, false}};
    bool is_float = dtype_is_float(t);
    unsigned k = gen_below(g, sizeof ops / sizeof *ops);
    while (ops[k].ints && is_float)
        k = gen_below(g, sizeof ops / sizeof *ops);
    struct text x = gen_expr(g, t, depth);
    if ((ops[k].op[0] == '/' && !is_float) || ops[k].op[0] == '%') {
        struct text y = gen_divisor(g, t, depth);
        if (x.constant)
            x = gen_variable(g, t);
        return infix(g, x, ops[k].op, y, ops[k].level);
    }
    enum dtype w = gen_weaker_type(g, t);
    struct text y = not_both(g, x, gen_expr(g, w, depth), w);
    return gen_one_in(g, 2) ? infix(g, x, ops[k].op, y, ops[k].level)
                            : infix(g, y, ops[k].op, x, ops[k].level);
}

static struct text shift(struct gen *g, enum dtype t, unsigned depth)
{
    static const enum dtype small[] = {DT_I32, DT_I8, DT_U8, DT_I16, DT_U16, DT_BOOL};
    enum dtype left = t == DT_I32 && gen_one_in(g, 3) ? PICK(g, small) : t;
    struct text x = gen_expr(g, left, depth), y;
    unsigned bits = dtype_bits(t);
    if (x.constant)
        x = gen_variable(g, left);
    if (gen_one_in(g, 2)) {
        y = gen_text(arena_printf(g->a, "%u%s", gen_below(g, bits), gen_one_in(g, 3) ? "u" : ""),
                     BIND_PRIMARY);
    } else if (gen_one_in(g, 6)) { /* any count */
        y = gen_text(element(g, gen_buffer(g, USE_READ, gen_int_type(g)), 0), BIND_PRIMARY);
    } else {
        y = gen_expr(g, gen_int_type(g), depth);
        y = gen_text(arena_printf(g->a, "(%s & %u)", gen_wrap(g, y, BIND_AND), bits - 1),
                     BIND_PRIMARY);
    }
    return infix(g, x, gen_one_in(g, 2) ? "<<" : ">>", y, BIND_SHIFT);
}

static struct text compare(struct gen *g, unsigned depth)
{
    static const char *const ops[] = {"<", ">", "<=", ">=", "==", "!="};
    enum dtype t = gen_scalar_type(g), w = gen_one_in(g, 2) ? t : gen_scalar_type(g);
    struct text x = gen_expr(g, t, depth), y = not_both(g, x, gen_expr(g, w, depth), w);
    unsigned k = gen_below(g, 6);
    /* a comparison of comparisons is written with parentheses */
    return gen_text(arena_printf(g->a, "%s %s %s", gen_wrap(g, x, BIND_SHIFT), ops[k],
                                 gen_wrap(g, y, BIND_SHIFT)),
                    k < 4 ? BIND_LESS : BIND_EQUAL);
}

struct text gen_condition(struct gen *g, unsigned depth)
{
    enum dtype t = gen_one_in(g, 5) ? gen_scalar_type(g) : DT_BOOL;
    struct text c = gen_expr(g, t, depth);
    return c.constant ? gen_variable(g, t) : c;
}

static struct text logical(struct gen *g, unsigned depth)
{
    struct text x = gen_condition(g, depth), y = gen_condition(g, depth);
    if (gen_one_in(g, 4))
        return gen_text(arena_printf(g->a, "!%s", gen_wrap(g, x, BIND_UNARY)), BIND_UNARY);
    return gen_one_in(g, 2) ? infix(g, x, "&&", y, BIND_LAND) : infix(g, x, "||", y, BIND_LOR);
}

static struct text conditional(struct gen *g, enum dtype t, unsigned depth)
{
    struct text c = gen_condition(g, depth), x, y;
    if (gen_is_arithmetic(t) && gen_one_in(g, 4)) { /* of two types */
        x = gen_variable(g, t);
        enum dtype w = gen_weaker_type(g, t);
        y = gen_expr(g, w, depth);
        if (y.constant)
            y = gen_variable(g, w);
    } else {
        x = gen_expr(g, t, depth);
        y = gen_expr(g, t, depth);
    }
    return gen_text(arena_printf(g->a, "%s ? %s : %s", gen_wrap(g, c, BIND_LOR), x.s, y.s),
                    BIND_COND);
}

static struct text unary(struct gen *g, enum dtype t, unsigned depth)
{
    static const enum dtype small[] = {DT_I32, DT_I8, DT_U8, DT_I16, DT_U16, DT_BOOL};
    static const enum dtype small_float[] = {DT_F32, DT_F16, DT_BF16};
    bool is_float = dtype_is_float(t);
    const char *op = gen_one_in(g, 8) ? "+" : !is_float && gen_one_in(g, 2) ? "~" : "-";
    enum dtype from = t;
    if (t == DT_I32 && gen_one_in(g, 3))
        from = PICK(g, small);
    if (t == DT_F32 && gen_one_in(g, 4))
        from = PICK(g, small_float);
    struct text x = gen_expr(g, from, depth);
    if (x.constant)
        x = gen_variable(g, from);
    const char *s = gen_wrap(g, x, BIND_UNARY); /* a blank keeps - -x from becoming --x */
    return gen_text(arena_printf(g->a, "%s%s%s", op, s[0] == op[0] ? " " : "", s), BIND_UNARY);
}

static struct text cast(struct gen *g, enum dtype t, unsigned depth)
{
    static const enum dtype odd[] = {DT_E4M3, DT_E5M2};
    enum dtype from = gen_scalar_type(g);
    struct text x = gen_expr(g, from, depth);
    if (t != DT_BOOL && gen_one_in(g, 16)) { /* by way of a type that no variable has */
        enum dtype by = PICK(g, odd);
        return (struct text){arena_printf(g->a, "%s(%s(%s))", dtype_name(t), dtype_name(by), x.s),
                             BIND_PRIMARY, x.constant};
    }
    if (gen_one_in(g, 4))
        return (struct text){
            arena_printf(g->a, "(%s)%s", dtype_name(t), gen_wrap(g, x, BIND_UNARY)), BIND_UNARY,
            x.constant};
    return (struct text){arena_printf(g->a, "%s(%s)", dtype_name(t), x.s), BIND_PRIMARY,
                         x.constant};
}

/* ---- all ------------------------------------------------------------------------------------- */

static struct text truth(struct gen *g, unsigned depth)
{
    unsigned k = gen_below(g, 20);
    if (k < 10)
        return compare(g, depth);
    if (k < 15)
        return logical(g, depth);
    if (k < 17)
        return conditional(g, DT_BOOL, depth);
    if (k < 18) {
        struct text x = gen_expr(g, gen_one_in(g, 2) ? DT_F32 : DT_F64, depth);
        return gen_call_of(g, gen_one_in(g, 2) ? "isnan" : "isinf", 1, &x);
    }
    return k < 19 ? cast(g, DT_BOOL, depth) : gen_function(g, DT_BOOL, depth);
}

static struct text new_expr(struct gen *g, enum dtype t, unsigned depth)
{
    unsigned k = gen_below(g, 100);
    if (t == DT_BOOL)
        return truth(g, depth);
    if (t == DT_E4M3 || t == DT_E5M2)
        return cast(g, t, depth);
    if (!gen_is_arithmetic(t))
        return k < 60   ? cast(g, t, depth)
               : k < 80 ? conditional(g, t, depth)
               : k < 90 ? gen_function(g, t, depth)
                        : gen_bits_of(g, t, depth);
    if (k < 40)
        return arithmetic(g, t, depth);
    if (k < 50)
        return dtype_is_float(t) ? arithmetic(g, t, depth) : shift(g, t, depth);
    if (k < 58)
        return unary(g, t, depth);
    if (k < 70)
        return cast(g, t, depth);
    if (k < 78)
        return conditional(g, t, depth);
    return k < 94 ? gen_builtin(g, t, depth) : gen_function(g, t, depth);
}

struct text gen_expr(struct gen *g, enum dtype t, unsigned depth)
{
    if (depth == 0 || g->nodes > NODES_MOST || gen_one_in(g, 6))
        return gen_leaf(g, t);
    if (gen_one_in(g,
                   8)) /* once more what stands somewhere before, maybe where only some came by */
        for (size_t i = g->said.n; i-- > 0;)
            if (g->said.v[i].type == t && gen_one_in(g, 3))
                return g->said.v[i].text;
    g->nodes++;
    struct text e = new_expr(g, t, depth - 1);
    if (strlen(e.s) < 120 && !e.constant)
        *VEC_PUSH(g->a, &g->said) = (struct said){t, g->vars.n, e};
    return e;
}

/* Whether a value of `from` becomes one of `to` without being asked. */
static bool is_silent(enum dtype to, enum dtype from)
{
    bool tf = dtype_is_float(to), ff = dtype_is_float(from);
    if (to == from)
        return true;
    if (to == DT_BOOL || (ff && !tf))
        return false;
    if (ff)
        return to == DT_F64 || (to == DT_F32 && from != DT_F64);
    if (tf)
        return dtype_bits(to) >= 32;
    return from == DT_BOOL || dtype_bits(to) >= dtype_bits(from);
}

struct text gen_assignable(struct gen *g, enum dtype t, unsigned depth)
{
    enum dtype from = gen_scalar_type(g);
    if (!gen_one_in(g, 3) || from == t || !is_silent(t, from))
        return gen_expr(g, t, depth);
    struct text x = gen_expr(g, from, depth);
    return x.constant ? gen_variable(g, from) : x;
}
