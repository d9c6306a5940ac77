#include <config.h>

#include "lang/lang_int.h"

#include <math.h>

struct number {
    bool is_float;
    __int128 i;
    double f;
};

struct evaluator {
    lang_lookup *lookup;
    void *ctx;
    struct diags *d; /* NULL: nobody wants to know why */
};
#define fail(v, ...) ((v)->d ? diag_error((v)->d, __VA_ARGS__) : false)

static bool eval(const struct evaluator *v, const struct lang_expr *e, struct number *out);

static struct number whole(__int128 i)
{
    return (struct number){.i = i};
}

static struct number real(double f)
{
    return (struct number){.is_float = true, .f = f};
}

static double as_double(struct number n)
{
    return n.is_float ? n.f : (double)n.i;
}

static bool overflows(const struct evaluator *v, const struct lang_expr *e)
{
    return fail(v, e->span, "the value overflows");
}

static bool name(const struct evaluator *v, const struct lang_expr *e, struct number *out)
{
    double f = 0;
    int64_t i = 0;
    if (e->sym && e->sym->has_value) {
        *out = whole((__int128)e->sym->value);
        return true;
    }
    if (e->sym && e->sym->of)
        return eval(v, e->sym->of, out);
    if (!v->lookup || !v->lookup(v->ctx, e->sym, &f, &i))
        return fail(v, e->span, "'%s' has no value here", e->name);
    if (e->sym->kind == SYM_SCALAR && dtype_is_float(e->sym->type))
        *out = real(f);
    else if (e->sym->kind == SYM_SCALAR && e->sym->type == DT_U64)
        *out = whole((uint64_t)i);
    else
        *out = whole(i);
    return true;
}

const struct lang_symbol lang_multiprocessors = {
    .kind = SYM_DIM, .name = "multiprocessors", .type = DT_U32};

static bool special(const struct evaluator *v, const struct lang_expr *e, struct number *out)
{
    double f;
    int64_t i;
    if (e->special != SP_MULTIPROCESSORS || !v->lookup ||
        !v->lookup(v->ctx, &lang_multiprocessors, &f, &i))
        return fail(v, e->span, "'%s' has no value here", lang_special_name(e->special));
    *out = whole(i);
    return true;
}

static bool unary(const struct evaluator *v, const struct lang_expr *e, struct number *out)
{
    struct number x;
    if (!eval(v, e->args[0], &x))
        return false;
    switch (e->op) {
    case OP_NEG:
        if (x.is_float)
            *out = real(-x.f);
        else if (__builtin_sub_overflow((__int128)0, x.i, &out->i))
            return overflows(v, e);
        return true;
    case OP_NOT: *out = whole(x.is_float ? x.f == 0 : x.i == 0); return true;
    case OP_BITNOT:
        *out = dtype_class(e->type) == DTC_U ? whole((__int128)int_wrap(e->type, ~(uint64_t)x.i))
                                             : whole(~x.i);
        return true;
    default: *out = x; return true;
    }
}

static bool floats(const struct evaluator *v, const struct lang_expr *e, double x, double y,
                   struct number *out)
{
    switch (e->op) {
    case OP_MUL: *out = real(x * y); return true;
    case OP_DIV: *out = real(x / y); return true;
    case OP_ADD: *out = real(x + y); return true;
    case OP_SUB: *out = real(x - y); return true;
    case OP_LT: *out = whole(x < y); return true;
    case OP_GT: *out = whole(x > y); return true;
    case OP_LE: *out = whole(x <= y); return true;
    case OP_GE: *out = whole(x >= y); return true;
    case OP_EQ: *out = whole(x == y); return true;
    case OP_NE: *out = whole(x != y); return true;
    default: return fail(v, e->span, "this operation needs integers");
    }
}

static bool shift(const struct evaluator *v, const struct lang_expr *e, __int128 x, __int128 n,
                  struct number *out)
{
    if (n < 0 || n > 63)
        return fail(v, e->args[1]->span, "the shift is out of range");
    if (e->op == OP_SHR) {
        *out = whole(x >> (int)n);
        return true;
    }
    __int128 r;
    if (__builtin_mul_overflow(x, (__int128)1 << (int)n, &r))
        return overflows(v, e);
    *out = whole(r);
    return true;
}

static bool integers(const struct evaluator *v, const struct lang_expr *e, __int128 x, __int128 y,
                     struct number *out)
{
    __int128 r = 0;
    bool over = false;
    switch (e->op) {
    case OP_MUL: over = __builtin_mul_overflow(x, y, &r); break;
    case OP_ADD: over = __builtin_add_overflow(x, y, &r); break;
    case OP_SUB: over = __builtin_sub_overflow(x, y, &r); break;
    case OP_DIV:
    case OP_MOD:
        if (y == 0)
            return fail(v, e->args[1]->span, "division by zero");
        if (y == -1) /* the least integer has no negative */
            over = e->op == OP_DIV && __builtin_sub_overflow((__int128)0, x, &r);
        else
            r = e->op == OP_DIV ? x / y : x % y;
        break;
    case OP_SHL:
    case OP_SHR: return shift(v, e, x, y, out);
    case OP_AND: r = x & y; break;
    case OP_XOR: r = x ^ y; break;
    case OP_OR: r = x | y; break;
    case OP_LT: r = x < y; break;
    case OP_GT: r = x > y; break;
    case OP_LE: r = x <= y; break;
    case OP_GE: r = x >= y; break;
    case OP_EQ: r = x == y; break;
    default: r = x != y; break;
    }
    if (over)
        return overflows(v, e);
    *out = whole(r);
    return true;
}

static bool truth(struct number n)
{
    return n.is_float ? n.f != 0 : n.i != 0;
}

static bool binary(const struct evaluator *v, const struct lang_expr *e, struct number *out)
{
    struct number x, y;
    if (!eval(v, e->args[0], &x))
        return false;
    if (e->op == OP_LAND || e->op == OP_LOR) {
        if (truth(x) == (e->op == OP_LOR)) {
            *out = whole(e->op == OP_LOR);
            return true;
        }
        if (!eval(v, e->args[1], &y))
            return false;
        *out = whole(truth(y));
        return true;
    }
    if (!eval(v, e->args[1], &y))
        return false;
    if (x.is_float || y.is_float)
        return floats(v, e, as_double(x), as_double(y), out);
    return integers(v, e, x.i, y.i, out);
}

/* Written conversions wrap as on the device; implicit ones keep the exact value. */
static bool cast(const struct evaluator *v, const struct lang_expr *e, struct number *out)
{
    struct number x;
    if (!eval(v, e->args[0], &x))
        return false;
    if (dtype_is_float(e->type))
        *out = real(e->is_implicit ? as_double(x) : dtype_round(e->type, as_double(x)));
    else if (e->type == DT_BOOL)
        *out = whole(truth(x));
    else if (e->is_implicit && !x.is_float)
        *out = x;
    else {
        uint64_t bits = x.is_float ? double_to_int(e->type, x.f) : int_wrap(e->type, (uint64_t)x.i);
        *out = dtype_class(e->type) == DTC_U ? whole((__int128)bits) : whole((int64_t)bits);
    }
    return true;
}

static struct number smaller(struct number x, struct number y, bool larger)
{
    if (x.is_float || y.is_float)
        return real(larger ? fmax(as_double(x), as_double(y)) : fmin(as_double(x), as_double(y)));
    return (x.i < y.i) != larger ? x : y;
}

static bool ceil_div(const struct evaluator *v, const struct lang_expr *e, __int128 x, __int128 y,
                     struct number *out)
{
    if (y == 0)
        return fail(v, e->args[1]->span, "division by zero");
    if (y == -1)
        return __builtin_sub_overflow((__int128)0, x, &out->i) ? overflows(v, e) : true;
    *out = whole(x / y + (x % y != 0 && (x < 0) == (y < 0)));
    return true;
}

static bool call(const struct evaluator *v, const struct lang_expr *e, struct number *out)
{
    struct number a[4] = {0};
    for (uint32_t i = 0; i < e->nargs && i < 4; i++)
        if (!eval(v, e->args[i], &a[i]))
            return false;
    switch (e->func ? FN_COUNT : e->fn) {
    case FN_CEIL_DIV: return ceil_div(v, e, a[0].i, a[1].i, out);
    case FN_MIN: *out = smaller(a[0], a[1], false); return true;
    case FN_MAX: *out = smaller(a[0], a[1], true); return true;
    case FN_CLAMP: *out = smaller(smaller(a[0], a[1], true), a[2], false); return true;
    case FN_RELU: *out = smaller(a[0], a[0].is_float ? real(0) : whole(0), true); return true;
    case FN_ABS:
        *out = a[0].is_float ? real(fabs(a[0].f)) : a[0];
        return a[0].is_float || a[0].i >= 0 ||
               !__builtin_sub_overflow((__int128)0, a[0].i, &out->i) || overflows(v, e);
    case FN_FLOOR: *out = real(floor(as_double(a[0]))); return true;
    case FN_CEIL: *out = real(ceil(as_double(a[0]))); return true;
    case FN_TRUNC: *out = real(trunc(as_double(a[0]))); return true;
    case FN_ROUND: *out = real(round(as_double(a[0]))); return true;
    case FN_TF32: *out = real(tf32_from_double(as_double(a[0]))); return true;
    case FN_TF32_RN: *out = real(tf32_even_from_double(as_double(a[0]))); return true;
    case FN_TF32_RZ: *out = real(tf32_cut_from_double(as_double(a[0]))); return true;
    case FN_SQRT: *out = real(sqrt(as_double(a[0]))); return true;
    case FN_POPC:
        *out = whole(__builtin_popcountll(dtype_bits(e->args[0]->type) == 64 ? (uint64_t)a[0].i
                                                                             : (uint32_t)a[0].i));
        return true;
    default: return fail(v, e->span, "'%s' can't be computed at launch", e->name);
    }
}

static bool eval(const struct evaluator *v, const struct lang_expr *e, struct number *out)
{
    *out = whole(0);
    switch (e->kind) {
    case E_INT:
        *out = dtype_class(e->type) == DTC_U ? whole((__int128)e->ival) : whole((int64_t)e->ival);
        return true;
    case E_FLOAT: *out = real(e->fval); return true;
    case E_BOOL: *out = whole(e->ival != 0); return true;
    case E_NAME: return name(v, e, out);
    case E_SPECIAL: return special(v, e, out);
    case E_UNARY: return unary(v, e, out);
    case E_BINARY: return binary(v, e, out);
    case E_CAST: return cast(v, e, out);
    case E_CALL: return call(v, e, out);
    case E_COND: {
        struct number cond;
        return eval(v, e->args[0], &cond) && eval(v, e->args[truth(cond) ? 1 : 2], out);
    }
    default: break;
    }
    return fail(v, e->span, "this can't be computed at launch");
}

bool lang_eval_int(const struct lang_expr *e, lang_lookup *lookup, void *ctx, int64_t *value,
                   struct diags *d)
{
    struct evaluator v = {lookup, ctx, d};
    struct number n;
    if (!eval(&v, e, &n))
        return false;
    if (n.is_float)
        return fail(&v, e->span, "the value is not an integer");
    if (n.i > INT64_MAX || n.i < INT64_MIN)
        return overflows(&v, e);
    *value = (int64_t)n.i;
    return true;
}

bool lang_eval_real(const struct lang_expr *e, lang_lookup *lookup, void *ctx, double *value,
                    struct diags *d)
{
    const struct evaluator v = {lookup, ctx, d};
    struct number n;
    if (!eval(&v, e, &n))
        return false;
    *value = as_double(n);
    return true;
}

/* Constant: literals and -D dimensions, without an error when it is not. */
static bool is_constant(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_INT:
    case E_BOOL: return true;
    case E_NAME: return e->sym && e->sym->has_value;
    case E_UNARY:
    case E_BINARY:
    case E_COND:
    case E_CAST:
    case E_CALL: break;
    default: return false;
    }
    if (e->kind == E_CALL && (e->func || (e->fn != FN_MIN && e->fn != FN_MAX && e->fn != FN_CLAMP &&
                                          e->fn != FN_CEIL_DIV)))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_constant(e->args[i]))
            return false;
    return true;
}

bool lang_const_int(const struct lang_expr *e, int64_t *v)
{
    if (e->kind == E_INT) {
        *v = (int64_t)e->ival;
        return dtype_class(e->type) == DTC_I || e->ival <= INT64_MAX;
    }
    if (!is_constant(e) || e->lanes || !(dtype_is_int(e->type) || e->type == DT_BOOL))
        return false;
    return lang_eval_int(e, NULL, NULL, v, NULL);
}
