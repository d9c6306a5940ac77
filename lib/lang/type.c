/* C's conversions over the sized types, and what may happen implicitly. */
#include <config.h>

#include "lang/lang_int.h"

#include <math.h>

enum dtype type_promote(enum dtype t)
{
    if (dtype_bits(t) >= 32)
        return t;
    return dtype_is_float(t) ? DT_F32 : DT_I32;
}

enum dtype type_common(enum dtype x, enum dtype y)
{
    /* strongest first; an i64 holds every u32, so the mix of the two is i64 as in C */
    static const enum dtype order[] = {DT_F64, DT_F32, DT_U64, DT_I64, DT_U32, DT_I32};
    x = type_promote(x);
    y = type_promote(y);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (x == order[i] || y == order[i])
            return order[i];
    return DT_I32;
}

static bool float_contains(enum dtype to, enum dtype from)
{
    if (to == from || to == DT_F64)
        return true;
    if (to == DT_F32)
        return from != DT_F64;
    return (to == DT_F16 || to == DT_BF16) && dtype_bits(from) == 8;
}

bool type_contains(enum dtype to, enum dtype from)
{
    if (to == from || from == DT_BOOL)
        return to != DT_BOOL || from == DT_BOOL;
    if (dtype_is_float(to) && dtype_is_float(from))
        return float_contains(to, from);
    if (dtype_is_float(to))
        return dtype_bits(from) <= dtype_precision(to) + (dtype_class(from) == DTC_I);
    if (!dtype_is_int(to) || !dtype_is_int(from))
        return false;
    if (dtype_class(to) == dtype_class(from))
        return dtype_bits(to) >= dtype_bits(from);
    return dtype_class(to) == DTC_I && dtype_bits(to) > dtype_bits(from);
}

uint64_t int_wrap(enum dtype t, uint64_t v)
{
    unsigned bits = dtype_bits(t);
    if (t == DT_BOOL)
        return v != 0;
    if (bits == 64)
        return v;
    v &= ((uint64_t)1 << bits) - 1;
    if (dtype_class(t) == DTC_I && v >> (bits - 1))
        v |= ~(uint64_t)0 << bits;
    return v;
}

static bool is_signed(enum dtype t)
{
    return dtype_class(t) == DTC_I;
}

bool int_fits(enum dtype to, enum dtype from, uint64_t v)
{
    bool negative = is_signed(from) && (int64_t)v < 0;
    if (to == DT_BOOL)
        return v <= 1;
    if (negative)
        return is_signed(to) && (int64_t)v >= dtype_imin(to);
    return v <= dtype_imax(to);
}

double int_to_double(enum dtype t, uint64_t v)
{
    return is_signed(t) ? (double)(int64_t)v : (double)v;
}

uint64_t double_to_int(enum dtype t, double v)
{
    if (t == DT_BOOL)
        return v != 0;
    if (isnan(v))
        return 0;
    v = trunc(v);
    /* 2^63 and 2^64 are exact, the largest values below them are not */
    if (is_signed(t)) {
        if (v >= ldexp(1, (int)dtype_bits(t) - 1))
            return dtype_imax(t);
        if (v < -ldexp(1, (int)dtype_bits(t) - 1))
            return (uint64_t)dtype_imin(t);
        return (uint64_t)(int64_t)v;
    }
    if (v >= ldexp(1, (int)dtype_bits(t)))
        return dtype_imax(t);
    return v <= 0 ? 0 : (uint64_t)v;
}

void expr_cast(struct arena *a, struct lang_expr *e, enum dtype to)
{
    if (e->type == to)
        return;
    struct lang_expr *inner = ARENA_NEW(a, struct lang_expr);
    *inner = *e;
    *e = (struct lang_expr){.kind = E_CAST,
                            .type = to,
                            .lanes = inner->lanes,
                            .span = inner->span,
                            .fn = FN_COUNT,
                            .is_implicit = true,
                            .nargs = 1,
                            .height = inner->height + 1};
    e->args = ARENA_NEW(a, struct lang_expr *);
    e->args[0] = inner;
}

bool lang_guards(const struct lang_expr *e)
{
    return e->kind == E_COND || (e->kind == E_BINARY && (e->op == OP_LAND || e->op == OP_LOR));
}

bool lang_same_node(const struct lang_expr *x, const struct lang_expr *y)
{
    if (x->kind != y->kind || x->nargs != y->nargs || !x->pad != !y->pad)
        return false;
    switch (x->kind) {
    case E_INT:
    case E_BOOL: return x->ival == y->ival;
    case E_FLOAT: return x->type == y->type && memcmp(&x->fval, &y->fval, sizeof x->fval) == 0;
    case E_NAME:
    case E_INDEX: return x->sym == y->sym;
    case E_SPECIAL: return x->special == y->special;
    case E_UNARY:
    case E_BINARY: return x->op == y->op;
    case E_COND: return true;
    case E_CAST: return x->type == y->type;
    case E_CALL:
        return x->fn == y->fn && x->func == y->func && (x->func || !lang_builtin_acts(x->fn)) &&
               x->fast == y->fast && x->rounded == y->rounded && x->to_f16 == y->to_f16;
    default: return false;
    }
}

static bool is_arithmetic(const struct lang_expr *e)
{
    return (e->kind == E_UNARY && (e->op == OP_NEG || e->op == OP_PLUS)) ||
           (e->kind == E_BINARY && e->op >= OP_MUL && e->op <= OP_SUB);
}

static bool is_float_call(const struct lang_expr *e)
{
    return e->kind == E_CALL && !e->func && e->fn <= FN_GELU_TANH && !e->fast;
}

bool expr_adapts(const struct lang_expr *e)
{
    if (e->kind == E_FLOAT)
        return !e->suffixed;
    if (e->type != DT_F32 || !(is_arithmetic(e) || is_float_call(e) || e->kind == E_COND))
        return false;
    for (uint32_t i = e->kind == E_COND; i < e->nargs; i++)
        if (!expr_adapts(e->args[i]))
            return false;
    return true;
}

void expr_retype(struct lang_expr *e, enum dtype to)
{
    e->type = to;
    for (uint32_t i = e->kind == E_COND; i < e->nargs; i++)
        expr_retype(e->args[i], to);
}

void expr_settle(struct lang_expr *e)
{
    if (e->kind == E_FLOAT)
        e->fval = dtype_round(e->type, e->fval);
    for (uint32_t i = 0; i < e->nargs; i++)
        expr_settle(e->args[i]);
    if (e->pad)
        expr_settle(e->pad);
    for (uint32_t i = 0; i < e->nindex; i++) {
        if (e->index[i]->dims && e->index[i]->written)
            expr_settle(e->index[i]->dims[0]);
        if (e->index[i]->low)
            expr_settle(e->index[i]->low);
    }
}

static bool same_constant(const struct lang_symbol *x, const struct lang_symbol *y)
{
    return x->has_value && y->has_value && x->value == y->value;
}

static bool same_node(const struct lang_expr *x, const struct lang_expr *y)
{
    switch (x->kind) {
    case E_NAME:
    case E_INDEX: return x->sym == y->sym || same_constant(x->sym, y->sym);
    case E_INT:
    case E_BOOL: return x->ival == y->ival;
    case E_FLOAT: return x->fval == y->fval;
    case E_SPECIAL: return x->special == y->special;
    case E_UNARY:
    case E_BINARY: return x->op == y->op;
    case E_CALL: return x->fn == y->fn && x->func == y->func;
    case E_CAST: return x->type == y->type;
    case E_MEMBER: return x->ival == y->ival;
    case E_VECTOR: return x->type == y->type && x->lanes == y->lanes;
    case E_COND:
    case E_ADDRESS: return true;
    case E_STRING:
    case E_REDUCE: return false;
    }
    return false;
}

static bool same_tree(const struct lang_expr *x, const struct lang_expr *y)
{
    while (x->kind == E_CAST && x->is_implicit)
        x = x->args[0];
    while (y->kind == E_CAST && y->is_implicit)
        y = y->args[0];
    if (x == y)
        return true;
    if (x->kind != y->kind || x->nargs != y->nargs || x->pad || y->pad || !same_node(x, y))
        return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!same_tree(x->args[i], y->args[i]))
            return false;
    return true;
}

bool expr_same(const struct lang_expr *x, const struct lang_expr *y)
{
    int64_t a, b;
    if (x == y)
        return true;
    if (lang_const_int(x, &a) && lang_const_int(y, &b))
        return a == b;
    return same_tree(x, y);
}

struct lang_expr *expr_clone(struct arena *a, const struct lang_expr *e)
{
    if (!e)
        return NULL;
    struct lang_expr *copy = ARENA_NEW(a, struct lang_expr);
    *copy = *e;
    copy->args = ARENA_ARRAY(a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++)
        copy->args[i] = expr_clone(a, e->args[i]);
    copy->pad = expr_clone(a, e->pad);
    copy->index = ARENA_ARRAY(a, e->nindex, struct lang_symbol *);
    for (uint32_t i = 0; i < e->nindex; i++) {
        struct lang_symbol *s = copy->index[i] = ARENA_NEW(a, struct lang_symbol);
        *s = *e->index[i];
        s->low = expr_clone(a, s->low);
        if (s->dims) {
            s->dims = ARENA_NEW(a, struct lang_expr *);
            s->dims[0] = expr_clone(a, e->index[i]->dims[0]);
        }
    }
    return copy;
}
