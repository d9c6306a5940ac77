/* In which types a value is exact. A product of two f16 is the same whether they are multiplied as
 * f16 or, as the language has it, widened to f32 first; so what an expression's values can be
 * decides what may multiply them. */
#include <config.h>

#include "lower/matmul/matmul.h"

/* ---- integers -------------------------------------------------------------------------------- */

struct range {
    int64_t low, high; /* low > high: not known */
};

static const struct range unknown = {1, 0};

static bool is_known(struct range r)
{
    return r.low <= r.high;
}

static struct range hull(struct range x, struct range y)
{
    if (!is_known(x) || !is_known(y))
        return unknown;
    return (struct range){x.low < y.low ? x.low : y.low, x.high > y.high ? x.high : y.high};
}

/* Ranges are of 32 bits at most, so that nothing below overflows. */
static struct range bounded(int64_t low, int64_t high)
{
    if (low < INT32_MIN || high > INT32_MAX)
        return unknown;
    return (struct range){low, high};
}

static struct range times(struct range x, struct range y)
{
    const int64_t p[4] = {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high};
    struct range r = {p[0], p[0]};
    for (int i = 1; i < 4; i++)
        r = hull(r, (struct range){p[i], p[i]});
    return bounded(r.low, r.high);
}

static struct range of_type(enum dtype t)
{
    if (t == DT_BOOL)
        return (struct range){0, 1};
    if (!dtype_is_int(t) || dtype_bits(t) > 16)
        return unknown;
    return (struct range){dtype_imin(t), (int64_t)dtype_imax(t)};
}

static struct range range_of(const struct lang_expr *e);

static struct range of_binary(const struct lang_expr *e)
{
    const struct range x = range_of(e->args[0]), y = range_of(e->args[1]);
    if (e->op == OP_AND && is_known(y) && y.low >= 0)
        return (struct range){0, y.high};
    if (!is_known(x) || !is_known(y))
        return unknown;
    switch (e->op) {
    case OP_ADD: return bounded(x.low + y.low, x.high + y.high);
    case OP_SUB: return bounded(x.low - y.high, x.high - y.low);
    case OP_MUL: return times(x, y);
    case OP_SHR:
        return y.low == y.high && y.low >= 0 && y.low < 32
                   ? (struct range){x.low >> y.low, x.high >> y.low}
                   : unknown;
    default: return unknown;
    }
}

static struct range range_of(const struct lang_expr *e)
{
    struct range r = unknown;
    if (!dtype_is_int(e->type) && e->type != DT_BOOL)
        return unknown;
    switch (e->kind) {
    case E_INT: return bounded((int64_t)e->ival, (int64_t)e->ival);
    case E_UNARY:
        r = range_of(e->args[0]);
        return e->op == OP_NEG && is_known(r) ? bounded(-r.high, -r.low)
               : e->op == OP_PLUS             ? r
                                              : of_type(e->type);
    case E_BINARY: r = of_binary(e); break;
    case E_COND: r = hull(range_of(e->args[1]), range_of(e->args[2])); break;
    case E_CAST: r = range_of(e->args[0]); break;
    case E_CALL:
        if (e->fn == FN_MIN || e->fn == FN_MAX)
            r = hull(range_of(e->args[0]), range_of(e->args[1]));
        break;
    default: break;
    }
    /* what would not fit the type wraps, or saturates */
    const struct range t = of_type(e->type);
    if (is_known(t) && (!is_known(r) || r.low < t.low || r.high > t.high))
        return t;
    return e->type == DT_U32 || e->type == DT_U64 ? (r.low < 0 ? unknown : r) : r;
}

/* ---- types ----------------------------------------------------------------------------------- */

enum { NFLOATS = 6 };
static const struct {
    enum dtype type;
    uint32_t exact;
} floats[NFLOATS] = {
#define F32S  (MATMUL_BIT(DT_F32) | MATMUL_BIT(DT_F64))
#define TF32S (MATMUL_BIT(MATMUL_EXACT_TF32) | F32S)
    {DT_F64, MATMUL_BIT(DT_F64)},
    {DT_F32, F32S},
    {DT_F16, MATMUL_BIT(DT_F16) | TF32S},
    {DT_BF16, MATMUL_BIT(DT_BF16) | TF32S},
    {DT_E4M3, MATMUL_BIT(DT_E4M3) | MATMUL_BIT(DT_F16) | MATMUL_BIT(DT_BF16) | TF32S},
    {DT_E5M2, MATMUL_BIT(DT_E5M2) | MATMUL_BIT(DT_F16) | MATMUL_BIT(DT_BF16) | TF32S},
};

static uint32_t exact_type(enum dtype t)
{
    for (int i = 0; i < NFLOATS; i++)
        if (floats[i].type == t)
            return floats[i].exact;
    return 0;
}

/* The types that have all integers from low to high, floats and integers alike. */
static uint32_t exact_range(struct range r)
{
    static const enum dtype type[] = {DT_E5M2, DT_E4M3, DT_BF16, DT_F16, DT_F32, DT_F64};
    uint32_t exact = 0;
    if (!is_known(r))
        return 0;
    const int64_t most = r.high > -r.low ? r.high : -r.low;
    for (size_t i = 0; i < sizeof type / sizeof *type; i++)
        exact |= most <= INT64_C(1) << dtype_precision(type[i]) ? MATMUL_BIT(type[i]) : 0;
    exact |= most <= 1 << 11 ? MATMUL_BIT(MATMUL_EXACT_TF32) : 0;
    exact |= MATMUL_BIT(DT_I32) | MATMUL_BIT(DT_I64);
    exact |= r.low >= -128 && r.high <= 127 ? MATMUL_BIT(DT_I8) : 0;
    return exact | (r.low >= 0 && r.high <= 255 ? MATMUL_BIT(DT_U8) : 0);
}

static uint32_t exact_number(double v)
{
    static const enum dtype type[] = {DT_E5M2, DT_E4M3, DT_BF16, DT_F16, DT_F32, DT_F64};
    uint32_t exact = tf32_from_double(v) == v ? MATMUL_BIT(MATMUL_EXACT_TF32) : 0;
    for (size_t i = 0; i < sizeof type / sizeof *type; i++)
        exact |= dtype_round(type[i], v) == v ? MATMUL_BIT(type[i]) : 0;
    return exact;
}

static uint32_t exact_call(const struct lang_expr *e)
{
    uint32_t exact = UINT32_MAX;
    switch (e->fn) {
    case FN_TF32:
    case FN_TF32_RN:
    case FN_TF32_RZ: return TF32S;
    case FN_RELU:
    case FN_ABS:
    case FN_MIN:
    case FN_MAX:
    case FN_CLAMP:
        for (uint32_t i = 0; i < e->nargs; i++)
            exact &= matmul_exact(e->args[i]);
        return exact & ~(MATMUL_BIT(DT_I8) | MATMUL_BIT(DT_U8));
    default: return 0;
    }
}

uint32_t matmul_exact(const struct lang_expr *e)
{
    if (dtype_is_int(e->type) || e->type == DT_BOOL)
        return exact_range(range_of(e));
    const uint32_t all = exact_type(e->type);
    switch (e->kind) {
    case E_FLOAT: return all | exact_number(e->fval);
    case E_INT: return all | exact_number((double)(int64_t)e->ival);
    case E_UNARY: return all | matmul_exact(e->args[0]);
    case E_COND: return all | (matmul_exact(e->args[1]) & matmul_exact(e->args[2]));
    case E_CALL: return e->func ? all : all | exact_call(e);
    case E_CAST: {
        const uint32_t from = matmul_exact(e->args[0]);
        const bool keeps = from & MATMUL_BIT(e->type);
        return keeps ? all | from : all;
    }
    default: return all;
    }
}

/* ---- expressions ----------------------------------------------------------------------------- */

struct lang_expr *matmul_as(struct cg *g, struct lang_expr *e, enum dtype t)
{
    while (e->kind == E_CAST && e->type != t && (matmul_exact(e->args[0]) & MATMUL_BIT(e->type)))
        e = e->args[0];
    return matmul_cast(g, e, t);
}
