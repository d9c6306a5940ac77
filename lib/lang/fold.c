/* Operations on literals, done now. Integers wrap only where C lets them (unsigned); literals
 * without suffix are computed in double and rounded once, when they meet a type. */
#include <config.h>

#include "lang/lang_int.h"

#include <math.h>

static bool set_int(struct lang_expr *e, uint64_t v, bool suffixed)
{
    e->kind = E_INT;
    e->ival = int_wrap(e->type, v);
    e->suffixed = suffixed;
    e->nargs = 0;
    return true;
}

static bool set_bool(struct lang_expr *e, bool v)
{
    e->kind = E_BOOL;
    e->type = DT_BOOL;
    e->ival = v;
    e->nargs = 0;
    return true;
}

static bool set_float(struct lang_expr *e, double v, bool suffixed)
{
    e->kind = E_FLOAT;
    e->fval = suffixed ? dtype_round(e->type, v) : v;
    e->suffixed = suffixed;
    e->nargs = 0;
    return true;
}

static bool compare(enum lang_op op, bool less, bool equal, bool ordered)
{
    switch (op) {
    case OP_LT: return less;
    case OP_GT: return ordered && !less && !equal;
    case OP_LE: return less || equal;
    case OP_GE: return ordered && !less;
    case OP_EQ: return equal;
    default: return !equal;
    }
}

/* An error, or left to be computed at launch. */
static bool overflow(struct checker *c, const struct lang_expr *e)
{
    if (c->opt.exact)
        return true;
    return diag_error(c->d, e->span,
                      e->type == DT_I32
                          ? "this constant overflows i32; write one operand as i64, as in 1l"
                          : "this constant overflows i64");
}

static bool shift(struct checker *c, struct lang_expr *e, uint64_t x, uint64_t n, bool suffixed)
{
    unsigned bits = dtype_bits(e->type);
    if (n >= bits) /* reported by check_shift */
        return true;
    if (e->op == OP_SHR)
        return set_int(e, dtype_class(e->type) == DTC_I ? (uint64_t)((int64_t)x >> n) : x >> n,
                       suffixed);
    uint64_t v = int_wrap(e->type, x << n);
    if (dtype_class(e->type) == DTC_I && (int64_t)v >> n != (int64_t)x)
        return overflow(c, e);
    return set_int(e, v, suffixed);
}

/* x op y in a signed type, in 128 bits. */
static bool signed_arithmetic(struct checker *c, struct lang_expr *e, int64_t x, int64_t y,
                              bool sfx)
{
    __int128 v = 0;
    switch (e->op) {
    case OP_MUL: v = (__int128)x * y; break;
    case OP_DIV: v = (__int128)x / y; break;
    case OP_MOD: v = (__int128)x % y; break;
    case OP_ADD: v = (__int128)x + y; break;
    default: v = (__int128)x - y;
    }
    if (v < dtype_imin(e->type) || v > (__int128)dtype_imax(e->type))
        return overflow(c, e);
    return set_int(e, (uint64_t)(int64_t)v, sfx);
}

static bool unsigned_arithmetic(struct lang_expr *e, uint64_t x, uint64_t y, bool sfx)
{
    switch (e->op) {
    case OP_MUL: return set_int(e, x * y, sfx);
    case OP_DIV: return set_int(e, x / y, sfx);
    case OP_MOD: return set_int(e, x % y, sfx);
    case OP_ADD: return set_int(e, x + y, sfx);
    default: return set_int(e, x - y, sfx);
    }
}

static bool fold_int(struct checker *c, struct lang_expr *e)
{
    const struct lang_expr *l = e->args[0], *r = e->args[1];
    uint64_t x = l->ival, y = r->ival;
    bool sign = dtype_class(l->type) == DTC_I, sfx = l->suffixed || r->suffixed;
    if (e->op >= OP_LT && e->op <= OP_NE)
        return set_bool(e, compare(e->op, sign ? (int64_t)x < (int64_t)y : x < y, x == y, true));
    switch (e->op) {
    case OP_AND: return set_int(e, x & y, sfx);
    case OP_XOR: return set_int(e, x ^ y, sfx);
    case OP_OR: return set_int(e, x | y, sfx);
    case OP_SHL:
    case OP_SHR: return shift(c, e, x, y, l->suffixed);
    case OP_DIV:
    case OP_MOD:
        if (y == 0)
            return true; /* reported by check_division */
        if (e->op == OP_DIV && !sfx && x % y != 0 && c->place == IN_COMPUTE)
            diag_warning(c->d, e->span,
                         "this division of integers drops the fraction; write %g "
                         "for a number with a fraction",
                         int_to_double(l->type, x) / int_to_double(r->type, y));
        break;
    default: break;
    }
    return sign ? signed_arithmetic(c, e, (int64_t)x, (int64_t)y, sfx)
                : unsigned_arithmetic(e, x, y, sfx);
}

static bool fold_float(struct lang_expr *e)
{
    const struct lang_expr *l = e->args[0], *r = e->args[1];
    bool sfx = l->suffixed || r->suffixed;
    double x = sfx ? dtype_round(l->type, l->fval) : l->fval;
    double y = sfx ? dtype_round(r->type, r->fval) : r->fval;
    if (e->op >= OP_LT && e->op <= OP_NE)
        return set_bool(e, compare(e->op, x < y, x == y, !isnan(x) && !isnan(y)));
    /* one operation on two floats in double, rounded to float, is the operation in float */
    switch (e->op) {
    case OP_MUL: return set_float(e, x * y, sfx);
    case OP_DIV: return set_float(e, x / y, sfx);
    case OP_ADD: return set_float(e, x + y, sfx);
    case OP_SUB: return set_float(e, x - y, sfx);
    default: return true;
    }
}

static bool fold_unary(struct checker *c, struct lang_expr *e)
{
    const struct lang_expr *x = e->args[0];
    if (x->kind == E_BOOL && e->op == OP_NOT)
        return set_bool(e, !x->ival);
    if (x->kind == E_FLOAT && e->op == OP_NEG)
        return set_float(e, -x->fval, x->suffixed);
    if (x->kind != E_INT)
        return true;
    if (e->op == OP_BITNOT)
        return set_int(e, ~x->ival, x->suffixed);
    if (e->op != OP_NEG)
        return true;
    if (dtype_class(e->type) == DTC_I && (int64_t)x->ival == dtype_imin(e->type))
        return overflow(c, e);
    /* the least integers: the positive literal needed a wider type than its negation */
    if (!x->suffixed && e->type == DT_I64 && x->ival == (uint64_t)1 << 31)
        e->type = DT_I32;
    if (!x->suffixed && e->type == DT_U64 && x->ival == (uint64_t)1 << 63)
        e->type = DT_I64;
    return set_int(e, -x->ival, x->suffixed);
}

/* An explicit cast of a literal is a literal of that type. */
static bool fold_cast(struct lang_expr *e)
{
    const struct lang_expr *x = e->args[0];
    enum dtype to = e->type;
    if (x->kind == E_FLOAT) {
        if (dtype_is_float(to))
            return set_float(e, x->fval, true);
        uint64_t v = double_to_int(to, x->fval);
        return to == DT_BOOL ? set_bool(e, v != 0) : set_int(e, v, true);
    }
    if (x->kind != E_INT && x->kind != E_BOOL)
        return true;
    if (to == DT_BOOL)
        return set_bool(e, x->ival != 0);
    if (to == DT_F32) /* straight from the integer: by way of double it would round twice */
        return set_float(
            e, (double)(dtype_class(x->type) == DTC_I ? (float)(int64_t)x->ival : (float)x->ival),
            true);
    if (dtype_is_float(to))
        return set_float(e, int_to_double(x->type, x->ival), true);
    return set_int(e, x->ival, true);
}

bool fold(struct checker *c, struct lang_expr *e)
{
    switch (e->kind) {
    case E_UNARY: return fold_unary(c, e);
    case E_CAST: return fold_cast(e);
    case E_BINARY:
        if (e->args[0]->kind == E_INT && e->args[1]->kind == E_INT)
            return fold_int(c, e);
        if (e->args[0]->kind == E_FLOAT && e->args[1]->kind == E_FLOAT)
            return fold_float(e);
        if (e->args[0]->kind == E_BOOL && e->args[1]->kind == E_BOOL &&
            (e->op == OP_LAND || e->op == OP_LOR))
            return set_bool(e, e->op == OP_LAND ? e->args[0]->ival && e->args[1]->ival
                                                : e->args[0]->ival || e->args[1]->ival);
        return true;
    default: return true;
    }
}
