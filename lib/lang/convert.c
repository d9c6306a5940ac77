/* Conversions that happen without being written: the usual ones of operands, and those of a
 * store. */
#include <config.h>

#include "lang/lang_int.h"

#include <math.h>

static void literal_to_float(struct lang_expr *e, enum dtype to)
{
    e->fval = e->kind == E_INT ? int_to_double(e->type, e->ival) : e->fval;
    if (e->kind == E_INT && to == DT_F32)
        e->fval =
            (double)(dtype_class(e->type) == DTC_I ? (float)(int64_t)e->ival : (float)e->ival);
    e->kind = E_FLOAT;
    e->type = to;
    if (e->suffixed)
        e->fval = dtype_round(to, e->fval);
}

void check_convert(struct checker *c, struct lang_expr *e, enum dtype to)
{
    if (e->type == to)
        return;
    if (e->kind == E_BOOL) {
        e->kind = E_INT;
        e->type = DT_I32;
        e->suffixed = true;
    }
    if (e->kind == E_INT && dtype_is_int(to)) {
        e->type = to;
        e->ival = int_wrap(to, e->ival);
    } else if ((e->kind == E_INT || e->kind == E_FLOAT) && dtype_is_float(to)) {
        literal_to_float(e, to);
    } else if (to == DT_F64 && expr_adapts(e)) {
        expr_retype(e, to);
    } else {
        check_rounded(c, e, to);
        expr_cast(c->a, e, to);
    }
}

/* i64 only because an index, a dimension or an argmax is: no 64-bit data in it. */
static bool is_index_typed(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_INT:
    case E_BOOL: return true;
    case E_NAME: return e->sym->kind == SYM_INDEX || e->sym->kind == SYM_DIM || e->type != DT_I64;
    case E_CAST:
        return e->is_implicit ? is_index_typed(e->args[0]) || dtype_bits(e->args[0]->type) <= 32
                              : dtype_bits(e->type) <= 32;
    case E_INDEX: return dtype_bits(e->type) <= 32;
    case E_REDUCE:
        if (e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN)
            return true;
        break;
    default: break;
    }
    for (uint32_t i = e->kind == E_COND; i < e->nargs; i++)
        if (!is_index_typed(e->args[i]))
            return false;
    return true;
}

static bool literal_fits(const struct lang_expr *e, enum dtype to)
{
    if (e->kind == E_INT)
        return dtype_is_int(to) && int_fits(to, e->type, e->ival);
    if (!dtype_is_float(to) || !isfinite(e->fval))
        return dtype_is_float(to) && dtype_bits(to) >= 16;
    if (e->suffixed)
        return dtype_round(to, e->fval) == e->fval;
    double r = dtype_round(to, e->fval);
    return isfinite(r) && fabs(e->fval) <= dtype_max(to) * (1 + dtype_roundoff(to));
}

static bool float_to_int(struct checker *c, const struct lang_expr *e, enum dtype to,
                         const char *what)
{
    const char *type = dtype_name(to);
    if (!isfinite(e->fval))
        return diag_error(c->d, e->span, "%s is %s, which has no infinity and no NaN", what, type);
    if (e->fval == trunc(e->fval) && fabs(e->fval) < 1e15)
        return diag_error(c->d, e->span, "%s is %s; write the integer %.0f", what, type, e->fval);
    return diag_error(c->d, e->span,
                      "%s is %s, which has no fractions; write %s(...) to drop the fraction", what,
                      type, type);
}

static bool does_not_fit(struct checker *c, const struct lang_expr *e, enum dtype to,
                         const char *what)
{
    const char *type = dtype_name(to);
    if (e->kind == E_INT)
        return diag_error(c->d, e->span, "the value does not fit in %s, which is %s (%lld to %llu)",
                          what, type, (long long)dtype_imin(to),
                          (unsigned long long)dtype_imax(to));
    if (e->suffixed && fabs(e->fval) <= dtype_max(to))
        return diag_error(c->d, e->span, "%s is %s and the literal is %s; drop its suffix", what,
                          type, dtype_name(e->type));
    return diag_error(c->d, e->span, "the value is out of range for %s, which is %s (at most %g)",
                      what, type, dtype_max(to));
}

static bool coerce_literal(struct checker *c, struct lang_expr *e, enum dtype to, const char *what)
{
    bool store_rounds = c->place == IN_COMPUTE && e->kind == E_FLOAT && dtype_is_float(to) &&
                        fabs(e->fval) <= dtype_max(to);
    if (e->kind == E_FLOAT && dtype_is_int(to))
        return float_to_int(c, e, to, what);
    if (e->kind == E_INT && dtype_is_float(to)) {
        literal_to_float(e, to);
        return fabs(e->fval) <= dtype_max(to) || does_not_fit(c, e, to, what);
    }
    if (!store_rounds && !literal_fits(e, to))
        return does_not_fit(c, e, to, what);
    if (e->kind == E_INT)
        e->type = to;
    else
        literal_to_float(e, to);
    return true;
}

bool check_allowed(const struct checker *c, const struct lang_expr *e, enum dtype to)
{
    enum dtype from = e->type;
    if (type_contains(to, from))
        return true;
    if (to == DT_BOOL || (dtype_is_float(from) && !dtype_is_float(to)))
        return false;
    if (c->place == IN_COMPUTE && dtype_is_float(to))
        return true; /* a store rounds */
    if (dtype_is_float(to))
        return !dtype_is_float(from) && dtype_bits(to) >= 32; /* as in C's arithmetic */
    if (dtype_bits(to) == dtype_bits(from) && dtype_bits(to) >= 8)
        return true; /* signed and unsigned, as C converts */
    if (dtype_bits(to) > dtype_bits(from))
        return true; /* a signed one into a wider unsigned one, as C converts */
    return c->opt.index_is_i64 && dtype_bits(to) == 32 && from == DT_I64 && is_index_typed(e);
}

/* Where ?: is stored either of its values is, as if each were stored by itself: one that was
 * brought to the other's type alone, and literals that fit. */
static bool arms_fit(const struct checker *c, const struct lang_expr *e, enum dtype to)
{
    if (e->kind == E_COND)
        return arms_fit(c, e->args[1], to) && arms_fit(c, e->args[2], to);
    if (e->kind == E_INT || e->kind == E_FLOAT)
        return literal_fits(e, to);
    return e->kind == E_CAST && e->is_implicit && check_allowed(c, e->args[0], to);
}

static void convert_arms(struct checker *c, struct lang_expr *e, enum dtype to)
{
    if (e->kind == E_COND) {
        convert_arms(c, e->args[1], to);
        convert_arms(c, e->args[2], to);
        e->type = to;
        return;
    }
    if (e->kind == E_CAST)
        *e = *e->args[0];
    check_convert(c, e, to);
}

bool check_coerce(struct checker *c, struct lang_expr *e, enum dtype to, const char *what)
{
    enum dtype from = e->type;
    if (from == to && !e->lanes)
        return true;
    if (from == DT_VOID)
        return diag_error(c->d, e->span, "%s needs a value, and this function returns none", what);
    if (e->lanes)
        return check_scalar(c, e, what);
    if (to == DT_BOOL)
        return diag_error(c->d, e->span, "%s is bool, not %s; write a comparison, as in x != 0",
                          what, dtype_name(from));
    if (e->kind == E_INT || e->kind == E_FLOAT)
        return coerce_literal(c, e, to, what);
    if (e->kind == E_COND && dtype_bits(to) < dtype_bits(e->type) && arms_fit(c, e, to)) {
        convert_arms(c, e, to);
        return true;
    }
    if (!check_allowed(c, e, to))
        return diag_error(c->d, e->span, "%s is %s and the value is %s; write %s(...) to %s", what,
                          dtype_name(to), dtype_name(from), dtype_name(to),
                          dtype_is_float(from) && dtype_is_int(to) ? "drop the fraction"
                          : dtype_is_float(to)                     ? "round it"
                                                                   : "narrow it");
    if (expr_adapts(e) && to == DT_F64)
        expr_retype(e, to);
    else
        check_convert(c, e, to);
    return true;
}
