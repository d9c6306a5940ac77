/* The gradients of attention's operands (attention.h). */
#include <config.h>

#include "bench/formula.h"

#include <math.h>

/* A gradient: factor * sum[r](weight * read), the weight being p or p * (dp - delta). */
struct gradient {
    const struct lang_equation *eq;
    const struct lang_expr *sum, *p, *dp, *delta, *read;
    double factor;
    struct attention_mask mask;
};

static bool is_weight(struct finder *f, const struct lang_expr *e, struct gradient *g)
{
    e = formula_take_conditions(f, e, &g->mask);
    if (formula_is_binary(e, OP_MUL))
        for (int k = 0; k < 2; k++) {
            const struct lang_expr *d = formula_bare(e->args[1 - k]);
            if (formula_is_binary(d, OP_SUB) &&
                formula_is_reduce(formula_bare(d->args[0]), RED_SUM) &&
                formula_is_reduce(formula_bare(d->args[1]), RED_SUM)) {
                g->dp = formula_bare(d->args[0]);
                g->delta = formula_bare(d->args[1]);
                e = formula_take_conditions(f, e->args[k], &g->mask);
                break;
            }
        }
    g->p = e;
    return formula_is_call(e, FN_EXP) && formula_is_binary(formula_bare(e->args[0]), OP_SUB) &&
           formula_is_read(formula_bare(formula_bare(e->args[0])->args[1]));
}

static bool is_gradient(struct finder *f, const struct lang_equation *q, struct gradient *g)
{
    *g = (struct gradient){.eq = q, .factor = 1};
    g->sum = formula_take_factor(f, formula_expand(f, q->rhs, NULL), &g->factor);
    if (!formula_is_reduce(g->sum, RED_SUM))
        return false;
    g->mask.summed = g->sum->index[0];
    const struct lang_expr *term = formula_take_conditions(f, g->sum->args[0], &g->mask);
    for (int k = 0; k < 2 && formula_is_binary(term, OP_MUL); k++) {
        g->read = formula_bare(term->args[1 - k]);
        if (formula_is_read(g->read) && is_weight(f, term->args[k], g))
            return true;
    }
    return false;
}

/* Fills in which index of a gradient is what: lse has the row's, the read one not. */
static bool gradient_indices(struct finder *f, const struct gradient *g, struct indices *x,
                             struct score *s, struct attention_mask *m)
{
    const struct lang_expr *d = formula_bare(g->p->args[0]), *lse = formula_bare(d->args[1]), *q,
                           *k;
    *x = (struct indices){0};
    *s = (struct score){0};
    if (!formula_read_score(f, d->args[0], m, s))
        return false;
    const struct lang_symbol *summed = g->sum->index[0];
    const bool by_row = formula_mentions(lse, summed);
    x->roles.row = by_row ? summed : NULL;
    x->roles.key = by_row ? NULL : summed;
    for (uint32_t i = 0; i < g->eq->nindex; i++) {
        const struct lang_symbol *sym = g->eq->index[i];
        const bool in_p = formula_mentions(g->p, sym);
        if (formula_mentions(g->read, sym) && !in_p)
            x->column = sym;
        else if (in_p && formula_mentions(lse, sym) && !formula_mentions(g->read, sym) && !by_row)
            x->roles.row = sym;
        else if (in_p && !formula_mentions(lse, sym) && by_row)
            x->roles.key = sym;
    }
    x->term = s->dot->index[0];
    return x->column && x->roles.row && x->roles.key &&
           formula_operands(s->dot, x->roles.key, &q, &k) && formula_find_axes(f, g->eq, x, k);
}

/* dp = sum[c](dout * v), delta = sum[c](o * dout) */
static bool take_dp(struct finder *f, const struct gradient *g, struct indices x)
{
    const struct lang_expr *dout, *v, *both = formula_bare(g->delta->args[0]);
    x.term = g->dp->index[0];
    if (!formula_operands(g->dp, x.roles.key, &dout, &v) || !formula_view(f, &x, v, SDPA_V) ||
        !formula_view(f, &x, dout, SDPA_DO) || !formula_is_binary(both, OP_MUL))
        return false;
    x.term = g->delta->index[0];
    const struct lang_expr *one = formula_bare(both->args[0]), *other = formula_bare(both->args[1]);
    if (!formula_is_read(one) || !formula_is_read(other))
        return false;
    const bool first = one->sym != dout->sym;
    return (first ? other : one)->sym == dout->sym &&
           formula_view(f, &x, first ? one : other, SDPA_O);
}

static bool take_gradient(struct finder *f, struct gradient *g, bool first)
{
    struct indices x;
    struct score s;
    struct attention *at = f->x;
    const struct lang_expr *lse;
    if (!gradient_indices(f, g, &x, &s, &g->mask))
        return false;
    g->mask.roles = x.roles;
    lse = formula_bare(formula_bare(g->p->args[0])->args[1]);
    if (s.bias || s.slope || s.cap > 0)
        return formula_fail(f, "gradients of such scores are not asked of cuDNN");
    if (first && (!formula_take_score(f, &x, &s) || !formula_view(f, &x, lse, SDPA_LSE)))
        return false;
    if (first && g->dp && !take_dp(f, g, x))
        return formula_fail(f, "cuDNN computes delta itself, from o and its gradient");
    const enum sdpa_buffer which = !g->dp                            ? SDPA_DV
                                   : x.roles.row == g->sum->index[0] ? SDPA_DK
                                                                     : SDPA_DQ;
    const struct lang_symbol *want = which == SDPA_DV   ? at->sym[SDPA_DO]
                                     : which == SDPA_DK ? at->sym[SDPA_Q]
                                                        : at->sym[SDPA_K];
    if (g->read->sym != want || fabs(s.scale - at->problem.scale) > 0 ||
        (g->dp && fabs(g->factor / s.scale - 1) > 1e-6) || (!g->dp && g->factor != 1))
        return formula_fail(f, "it is no gradient of attention");
    return !at->problem.tensor[which].is_there && formula_view_output(f, &x, g->eq, which);
}

bool formula_backward(struct finder *f, const struct lang_equations *all)
{
    struct gradient g[3];
    struct indices x;
    struct score s;
    struct attention_mask none = {0};
    unsigned n = 0, first = 3;
    for (size_t k = 0; k < all->n; k++) {
        const struct lang_equation *q = formula_output_equation(all, k);
        if (q && (n == 3 || !is_gradient(f, q, &g[n++])))
            return false;
    }
    /* dq is of the forward pass's own shape */
    for (unsigned k = 0; k < n; k++)
        if (g[k].dp && gradient_indices(f, &g[k], &x, &s, &none) &&
            x.roles.key == g[k].sum->index[0])
            first = k;
    if (n != 3 || first == 3)
        return n > 0 &&
               formula_fail(f, "cuDNN gives the gradients of q, k and v together, from o and lse");
    f->x->problem.backward = true;
    if (!take_gradient(f, &g[first], true))
        return false;
    for (unsigned k = 0; k < n; k++)
        if (k != first && !take_gradient(f, &g[k], false))
            return false;
    if (!gradient_indices(f, &g[first], &x, &s, &none) || !formula_settle(f, &x, &g[first].mask))
        return false;
    for (unsigned k = 0; k < n; k++)
        if (!attention_same_mask(f->at, &g[k].mask, f->x))
            return formula_fail(f, "its gradients have different masks");
    return true;
}
