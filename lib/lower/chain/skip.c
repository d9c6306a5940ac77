/* Finds j that may be left out although the equations multiply there (chain.h).
 *
 *     p[i,j] = exp((j <= i ? s[i,j] : -inf) - m[i])        o[i,c] = sum[j](p[i,j] * v[j,c])
 *
 * The weight p is 0 where the condition does not hold, and 0 times a number is 0: the sum may as
 * well run over j <= i. It is NaN where v is infinite or NaN, so that whoever leaves such j out has
 * to find out whether any v is (chain/repair.c). Weights are what they are here in rows whose
 * maxima are finite; others are computed anew as the equations say.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include <math.h>

enum { MOST_CONDITIONS = 4 };

/* What is known of an expression where the condition does not hold. */
struct value {
    enum { UNKNOWN, FINITE, KNOWN } is;
    double v;
};

static struct value known(double v)
{
    return (struct value){KNOWN, v};
}

static const struct value unknown, number = {FINITE, 0};

static bool is(struct value x, double v)
{
    return x.is == KNOWN && x.v == v;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The expression, of which the node `mask` has the value `masked`. */
struct context {
    const struct chain_form *f;
    const struct lang_expr *mask;
    const struct lang_expr *masked;
};

static struct value value_of(const struct context *x, const struct lang_expr *e);

static struct value sum_of(struct value x, struct value y, double sign)
{
    if (x.is == KNOWN && y.is == KNOWN)
        return known(x.v + sign * y.v);
    if (x.is == KNOWN && isinf(x.v) && y.is == FINITE)
        return x;
    if (y.is == KNOWN && isinf(y.v) && x.is == FINITE)
        return known(sign * y.v);
    return unknown;
}

static struct value product_of(struct value x, struct value y)
{
    if (x.is == KNOWN && y.is == KNOWN)
        return known(x.v * y.v);
    if ((is(x, 0) && y.is == FINITE) || (is(y, 0) && x.is == FINITE))
        return known(0);
    return unknown;
}

static struct value of_binary(const struct context *x, const struct lang_expr *e)
{
    const struct value a = value_of(x, e->args[0]), b = value_of(x, e->args[1]);
    switch ((int)e->op) {
    case OP_ADD: return sum_of(a, b, 1);
    case OP_SUB: return sum_of(a, b, -1);
    case OP_MUL: return product_of(a, b);
    case OP_DIV: return a.is == KNOWN && b.is == KNOWN ? known(a.v / b.v) : unknown;
    default: return unknown;
    }
}

static struct value of_call(const struct context *x, const struct lang_expr *e)
{
    struct value a = e->nargs ? value_of(x, e->args[0]) : unknown;
    const struct value b = e->nargs == 2 ? value_of(x, e->args[1]) : unknown;
    const bool both = a.is == KNOWN && b.is == KNOWN;
    if (a.is != KNOWN || isnan(a.v))
        return unknown;
    switch ((int)e->fn) {
    case FN_EXP:
    case FN_EXP2:
    case FN_SIGMOID: return is(a, -INFINITY) ? known(0) : unknown;
    case FN_RELU: return known(a.v > 0 ? a.v : 0);
    case FN_MAX: return both ? known(fmax(a.v, b.v)) : unknown;
    case FN_MIN: return both ? known(fmin(a.v, b.v)) : unknown;
    default: return unknown;
    }
}

static struct value of_cast(const struct context *x, const struct lang_expr *e)
{
    const struct value v = value_of(x, e->args[0]);
    const enum dtype from = e->args[0]->type;
    if (is(v, 0))
        return v;
    if (dtype_bits(e->type) < 16 || dtype_is_float(e->type) != dtype_is_float(from))
        return unknown;
    return v.is == KNOWN || dtype_bits(e->type) >= dtype_bits(from) ? v : unknown;
}

/* Is it what the exponentials of a stream subtract? That is finite in the rows that count. */
static bool is_base(const struct chain_form *f, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < f->nstream; i++)
        if (f->stream[i].running >= 0 && matmul_same(f->stream[i].base, e))
            return true;
    return false;
}

static struct value value_of(const struct context *x, const struct lang_expr *e)
{
    if (e == x->mask)
        return value_of(x, x->masked);
    if (is_base(x->f, e))
        return number;
    switch (e->kind) {
    case E_INT: return known((double)(int64_t)e->ival);
    case E_FLOAT: return known(e->fval);
    case E_CAST: return of_cast(x, e);
    case E_BINARY: return of_binary(x, e);
    case E_CALL: return e->func ? unknown : of_call(x, e);
    case E_UNARY: {
        struct value v = value_of(x, e->args[0]);
        v.v = -v.v;
        return e->op == OP_NEG ? v : unknown;
    }
    default: return unknown;
    }
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* A condition on j in e that makes e 0 where it does not hold (or holds: `branch` is 1). NULL:
 * there is none. */
static struct lang_expr *find(const struct chain_form *f, struct lang_expr *whole,
                              struct lang_expr *e, uint32_t *branch)
{
    if (e->kind == E_COND && chain_mentions(e->args[0], f->j))
        for (*branch = 2; *branch > 0; --*branch) {
            const struct context x = {f, e, e->args[*branch]};
            if (is(value_of(&x, whole), 0))
                return e;
        }
    for (uint32_t i = 0; i < e->nargs; i++) {
        struct lang_expr *c = find(f, whole, e->args[i], branch);
        if (c)
            return c;
    }
    return NULL;
}

static struct lang_expr *with_args(struct cg *g, const struct lang_expr *cond,
                                   struct lang_expr *const *args)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = *cond;
    e->args = ARENA_ARRAY(g->a, 3, struct lang_expr *);
    memcpy(e->args, args, 3 * sizeof *args);
    e->type = args[1]->type;
    return e;
}

/* Makes a condition in *e a part of the range. What is no range of j stays where it was. */
static bool narrow_once(struct cg *g, const struct chain_form *f, struct lang_expr **e,
                        struct lang_expr **low, struct lang_expr **high)
{
    uint32_t branch;
    struct lang_expr *mask = find(f, *e, *e, &branch);
    if (!mask)
        return false;
    struct lang_expr *const taken = chain_replaced(g, *e, mask, NULL, mask->args[3 - branch]);
    struct lang_expr *args[3] = {mask->args[0], taken, taken};
    args[branch] = matmul_cast(g, lx_int(g->a, 0), taken->type);
    struct lang_expr *term = with_args(g, mask, args);
    const struct lang_expr *const from = *low, *const to = *high;
    chain_narrow(g, f->j, RED_SUM, f->runs, &term, low, high);
    if (*low == from && *high == to)
        return false;
    if (term != taken) { /* a part of the condition is left */
        struct lang_expr *rest[3] = {term->args[0], mask->args[1], mask->args[2]};
        term = chain_replaced(g, *e, mask, NULL, with_args(g, mask, rest));
    }
    *e = term;
    return true;
}

static bool narrow(struct cg *g, const struct chain_form *f, struct chain_stream *s,
                   struct lang_expr **e)
{
    bool any = false;
    for (uint32_t i = 0; i < MOST_CONDITIONS && narrow_once(g, f, e, &s->low, &s->high); i++)
        any = true;
    return any;
}

/* Does the stream need every j? */
static bool has_all(const struct chain_form *f, const struct chain_stream *s)
{
    return !s->low && inspect_same_expr(s->high, f->j->dims[0]);
}

static bool narrow_sums(struct cg *g, const struct chain_form *f, struct chain_form *to)
{
    bool any = false;
    for (uint32_t i = 0; i < f->nstream; i++) {
        struct chain_stream *s = &to->stream[i];
        if (s->reduce != RED_SUM || !dtype_is_float(s->type))
            continue;
        if (!s->has_column)
            any |= narrow(g, f, s, &s->term);
        else if (s->npart == 1)
            any |= narrow(g, f, s, &s->part[0].e);
    }
    return any;
}

bool chain_skip(struct cg *g, const struct chain_form *f, struct chain_form *to)
{
    struct chain_runs *r = ARENA_NEW(g->a, struct chain_runs);
    *to = *f;
    to->exact = f;
    const bool any = narrow_sums(g, f, to);
    if (chain_find_runs(f, r)) {
        to->runs = r;
        return true;
    }
    for (uint32_t i = 0; i < f->nstream; i++)
        if (has_all(f, &to->stream[i]))
            return false;
    return any;
}

void chain_skip_runs(struct cg *g, struct chain_form *f)
{
    for (uint32_t i = 0; i < f->nstream; i++) {
        struct chain_stream *s = &f->stream[i];
        if (s->reduce == RED_MAX)
            chain_narrow(g, f->j, RED_MAX, f->runs, &s->term, &s->low, &s->high);
    }
    narrow_sums(g, f, f);
}
