/* Finds out by what a stream's sum is rescaled when a maximum grows, and takes factors of the whole
 * row out of it (chain.h).
 *
 *     sum[j](T(exp(s - m) / l) * v)    is   sum[j](T(exp(s - m)) * v) / l
 *
 * That moves the rounding by T to another scale, and l behind the sum. It is done where exp(s - m)
 * is at most 1 since m is the maximum of s, so that nothing can overflow: each term is then off by
 * one rounding more at most.
 *
 * In the place of m may stand what is m or more: max(m, sink), or m == -inf ? 0 : m, which is m
 * wherever there is a term above 0.
 *
 * The same holds where m is the maximum so far: no exp(s - m) is above 1. A weight w is allowed,
 * exp((s - m) * w): for w < 0 the terms so far are smaller than they become.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include <math.h>

enum { MOST_FACTORS = 8 };

struct running {
    struct cg *g;
    const struct chain_form *f;
    const struct chain_stream *s;
    /* factors of the row */
    uint32_t nfactor;
    struct lang_expr *factor[MOST_FACTORS];
    bool divides[MOST_FACTORS];
};

/* Is it the same for all j of a row? */
static bool is_of_row(const struct chain_form *f, const struct lang_expr *e)
{
    return !chain_mentions(e, f->j) && !chain_mentions_score(f, e);
}

/* ---- factors of the row ---------------------------------------------------------------------- */

static bool take_factor(struct running *r, struct lang_expr *e, bool divides)
{
    const bool takes = is_of_row(r->f, e) && chain_mentioned_stream(r->f, e) >= 0 &&
                       dtype_is_float(e->type) && r->nfactor < MOST_FACTORS;
    if (takes) {
        r->divides[r->nfactor] = divides;
        r->factor[r->nfactor++] = e;
    }
    return takes;
}

static struct lang_expr *with_arg(struct running *r, struct lang_expr *e, uint32_t n,
                                  struct lang_expr *arg)
{
    if (e->args[n] == arg)
        return e;
    struct lang_expr *c = ARENA_NEW(r->g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(r->g->a, e->nargs, struct lang_expr *);
    memcpy(c->args, e->args, e->nargs * sizeof *c->args);
    c->args[n] = arg;
    return c;
}

/* e without such factors. */
static struct lang_expr *without_factors(struct running *r, struct lang_expr *e)
{
    const bool cast = e->kind == E_CAST && dtype_is_float(e->args[0]->type);
    if (!dtype_is_float(e->type))
        return e;
    if (cast || (e->kind == E_UNARY && e->op == OP_NEG))
        return with_arg(r, e, 0, without_factors(r, e->args[0]));
    if (e->kind == E_BINARY && e->op == OP_DIV) {
        if (take_factor(r, e->args[1], true))
            return without_factors(r, e->args[0]);
        return with_arg(r, e, 0, without_factors(r, e->args[0]));
    }
    if (e->kind != E_BINARY || e->op != OP_MUL)
        return e;
    for (uint32_t i = 0; i < 2; i++)
        if (take_factor(r, e->args[i], false))
            return without_factors(r, e->args[1 - i]);
    e = with_arg(r, e, 0, without_factors(r, e->args[0]));
    return with_arg(r, e, 1, without_factors(r, e->args[1]));
}

/* ---- exponents ------------------------------------------------------------------------------- */

/* What an exponent is: (x - base) * weight. */
struct exponent {
    struct lang_expr *weight; /* NULL: 1 */
    struct lang_expr *base;
    bool base2;
};

static bool is_widest(const struct lang_expr *e)
{
    return e->type == DT_F32 || e->type == DT_F64;
}

static struct lang_expr *strip_widening(struct lang_expr *e)
{
    while (e->kind == E_CAST && is_widest(e) && dtype_is_float(e->args[0]->type) &&
           dtype_bits(e->args[0]->type) <= dtype_bits(e->type))
        e = e->args[0];
    return e;
}

/* Is e at most the maximum m for each j of the stream, m being that of the same numbers? */
static bool is_below(const struct running *r, const struct lang_expr *e,
                     const struct chain_stream *m)
{
    const struct chain_stream *s = r->s;
    const bool low = !m->whole_low || (s->whole_low && matmul_same(s->whole_low, m->whole_low));
    const bool all = !m->whole_low && r->f->ends &&
                     inspect_same_expr(m->whole_high, r->f->j->dims[0]);
    return matmul_same(e, m->whole_term) &&
           (all || (low && matmul_same(s->whole_high, m->whole_high)));
}

/* Is it -inf? */
static bool is_least(const struct lang_expr *e)
{
    while (e->kind == E_CAST)
        e = e->args[0];
    const bool negative = e->kind == E_UNARY && e->op == OP_NEG;
    e = negative ? e->args[0] : e;
    return e->kind == E_FLOAT && e->fval == (negative ? INFINITY : -INFINITY);
}

/* Is e, which is the same for all j, the maximum m or more where m is above -inf? */
static bool is_base(const struct running *r, struct lang_expr *e, const struct chain_stream *m)
{
    e = strip_widening(e);
    if (e->kind == E_NAME)
        return e->sym == m->sym;
    if (!is_of_row(r->f, e))
        return false;
    if (e->kind == E_CALL && !e->func && e->fn == FN_MAX) {
        const bool left = chain_mentions(e->args[0], m->sym);
        return !(left && chain_mentions(e->args[1], m->sym)) &&
               is_base(r, e->args[left ? 0 : 1], m);
    }
    if (e->kind != E_COND)
        return false;
    const struct lang_expr *c = e->args[0];
    const bool compares = c->kind == E_BINARY && (c->op == OP_EQ || c->op == OP_NE) &&
                          is_base(r, c->args[0], m) && is_least(c->args[1]);
    struct lang_expr *usual = e->args[c->op == OP_EQ ? 2 : 1];
    return compares && is_base(r, usual, m);
}

static bool is_difference(const struct running *r, struct lang_expr *e,
                          const struct chain_stream *m, struct exponent *x)
{
    if (e->kind != E_BINARY || e->op != OP_SUB)
        return false;
    x->base = e->args[1];
    return is_base(r, x->base, m) &&
           (is_below(r, e->args[0], m) || is_below(r, strip_widening(e->args[0]), m));
}

static bool find_exponent(const struct running *r, struct lang_expr *e,
                          const struct chain_stream *m, struct exponent *x)
{
    e = strip_widening(e);
    x->weight = NULL;
    if (!is_widest(e))
        return false;
    if (is_difference(r, e, m, x))
        return true;
    if (e->kind != E_BINARY || (e->op != OP_MUL && e->op != OP_DIV))
        return false;
    for (uint32_t i = 0; i < (e->op == OP_MUL ? 2 : 1); i++) {
        struct lang_expr *w = e->args[1 - i];
        if (!is_difference(r, strip_widening(e->args[i]), m, x) || !is_of_row(r->f, w) ||
            chain_mentioned_stream(r->f, w) >= 0)
            continue;
        x->weight = w;
        if (e->op == OP_DIV)
            x->weight =
                matmul_binary(r->g, OP_DIV, matmul_cast(r->g, lx_int(r->g->a, 1), w->type), w);
        return true;
    }
    return false;
}

/* ---- terms ----------------------------------------------------------------------------------- */

enum power { NONE, ZERO, POWER, OTHER }; /* OTHER: m stands somewhere else */

static enum power power_of(const struct running *r, struct lang_expr *e,
                           const struct chain_stream *m, struct exponent *x);

static bool is_same_exponent(const struct exponent *x, const struct exponent *y)
{
    return x->base2 == y->base2 && matmul_same(x->base, y->base) &&
           (x->weight && y->weight ? matmul_same(x->weight, y->weight) : x->weight == y->weight);
}

/* Of a sum, a difference, or the arms of a condition: both have the same power. */
static enum power both(const struct running *r, struct lang_expr *const *arg,
                       const struct chain_stream *m, struct exponent *x)
{
    struct exponent y = *x;
    const enum power p = power_of(r, arg[0], m, x), q = power_of(r, arg[1], m, &y);
    if (p == POWER && q == POWER)
        return is_same_exponent(x, &y) ? POWER : OTHER;
    if (q == POWER)
        *x = y;
    if ((p == POWER && q == ZERO) || (p == ZERO && q == POWER))
        return POWER;
    return p == OTHER || q == OTHER || p == POWER || q == POWER ? OTHER : p == q ? p : NONE;
}

static enum power power_of(const struct running *r, struct lang_expr *e,
                           const struct chain_stream *m, struct exponent *x)
{
    if (!chain_mentions(e, m->sym))
        return (e->kind == E_FLOAT && e->fval == 0) || (e->kind == E_INT && e->ival == 0) ? ZERO
                                                                                          : NONE;
    switch (e->kind) {
    case E_CALL:
        x->base2 = e->fn == FN_EXP2;
        return !e->func && (e->fn == FN_EXP || e->fn == FN_EXP2) &&
                       find_exponent(r, e->args[0], m, x)
                   ? POWER
                   : OTHER;
    case E_CAST:
        return dtype_is_float(e->type) && dtype_is_float(e->args[0]->type)
                   ? power_of(r, e->args[0], m, x)
                   : OTHER;
    case E_UNARY: return e->op == OP_NEG ? power_of(r, e->args[0], m, x) : OTHER;
    case E_COND: return chain_mentions(e->args[0], m->sym) ? OTHER : both(r, e->args + 1, m, x);
    case E_BINARY: break;
    default: return OTHER;
    }
    if (e->op == OP_ADD || e->op == OP_SUB)
        return both(r, e->args, m, x);
    const bool left = chain_mentions(e->args[0], m->sym);
    if (left && chain_mentions(e->args[1], m->sym))
        return OTHER;
    if (e->op == OP_MUL || (e->op == OP_DIV && left))
        return power_of(r, e->args[left ? 0 : 1], m, x);
    return OTHER;
}

/* A sum of no terms is 0 whatever the factors are. */
static struct lang_expr *or_nothing(struct running *r, struct lang_expr *value)
{
    const struct chain_stream *s = r->s;
    struct lang_expr *e = matmul_binary(r->g, OP_ADD, value, value);
    struct lang_expr *low = s->low ? s->low : lx_int(r->g->a, 0);
    struct lang_expr *some = matmul_binary(r->g, OP_LT, low, s->high);
    some->type = DT_BOOL;
    e->kind = E_COND;
    e->nargs = 3;
    e->args = ARENA_ARRAY(r->g->a, 3, struct lang_expr *);
    e->args[0] = some;
    e->args[1] = value;
    e->args[2] = matmul_cast(r->g, lx_int(r->g->a, 0), value->type);
    e->height++;
    return e;
}

static void multiply(struct running *r, struct lang_expr **value)
{
    for (uint32_t i = 0; i < r->nfactor; i++)
        *value = matmul_binary(r->g, r->divides[i] ? OP_DIV : OP_MUL, *value,
                               matmul_cast(r->g, r->factor[i], (*value)->type));
    if (r->nfactor)
        *value = or_nothing(r, *value);
}

/* -(weight), or -1. */
static struct lang_expr *weight_of(struct running *r, const struct exponent *x)
{
    if (!x->weight)
        return NULL;
    struct lang_expr *e = ARENA_NEW(r->g->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_UNARY,
                            .op = OP_NEG,
                            .type = x->weight->type,
                            .span = x->weight->span,
                            .nargs = 1,
                            .args = ARENA_ARRAY(r->g->a, 1, struct lang_expr *),
                            .height = x->weight->height + 1};
    e->args[0] = x->weight;
    return e;
}

bool chain_make_running(struct cg *g, struct chain_form *f, struct chain_stream *s,
                        struct lang_expr **value, struct buf *why)
{
    struct running r = {.g = g, .f = f, .s = s};
    struct exponent x = {NULL, NULL, false};
    if (chain_mentioned_stream(f, s->term) < 0)
        return true;
    struct lang_expr *const term =
        s->reduce == RED_SUM && dtype_is_float(s->type) ? without_factors(&r, s->term) : s->term;
    const int n = chain_mentioned_stream(f, term);
    if (n < 0 || f->stream[n].reduce != RED_MAX || s->reduce != RED_SUM ||
        power_of(&r, term, &f->stream[n], &x) != POWER)
        return lower_lacks(why, s->span,
                           "the terms need another reduction over '%s' that is no maximum of what "
                           "exp() takes: that is a second pass",
                           f->j->name);
    for (uint32_t i = 0; i < f->nstream; i++)
        if ((int)i != n && chain_mentions(term, f->stream[i].sym))
            return lower_lacks(why, s->span, "the terms need several reductions over '%s'",
                               f->j->name);
    s->term = term;
    s->running = n;
    s->base = x.base;
    s->weight = weight_of(&r, &x);
    s->base2 = x.base2;
    multiply(&r, value);
    return true;
}

struct cg_val chain_base(struct cg *g, const struct chain_form *f, const struct chain_stream *s,
                         struct cg_val m)
{
    const size_t bound = g->bindings.n;
    cg_bind(g, f->stream[s->running].sym, m, false);
    const struct cg_val v = cg_expr(g, s->base);
    g->bindings.n = bound;
    return v;
}
