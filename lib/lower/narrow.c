#include <config.h>

#include "lower/narrow.h"

#include "lower/strategy.h"

#include <math.h>

/* A comparison that takes what is up to an index, or from it on. */
struct cut {
    struct lang_expr *low, *high; /* the one that it is; the other is NULL */
    const struct lang_symbol *at;
    struct lang_expr *rest; /* what else must hold; NULL: nothing */
};

struct narrow {
    struct cg *g;
    const struct lang_equation *eq;
};

/* ---- the condition --------------------------------------------------------------------------- */

/* The left side's index that e is, if it runs over all of dim; NULL: it is something else. */
static const struct lang_symbol *outer_index(const struct narrow *n, const struct lang_expr *e,
                                             const struct lang_expr *dim)
{
    for (uint32_t i = 0; e->kind == E_NAME && i < n->eq->nindex; i++) {
        const struct lang_symbol *sym = n->eq->index[i];
        if (sym == e->sym && !sym->low && inspect_same_expr(sym->dims[0], dim))
            return sym;
    }
    return NULL;
}

static bool is_name_of(const struct lang_expr *e, const struct lang_symbol *sym)
{
    return e->kind == E_NAME && e->sym == sym;
}

/* k op i, where op is said of k. */
static bool cut_at(const struct narrow *n, enum lang_op op, struct lang_expr *at,
                   const struct lang_symbol *k, struct cut *c)
{
    struct arena *a = n->g->a;
    c->at = outer_index(n, at, k->dims[0]);
    if (op == OP_LT || op == OP_LE)
        c->high = lx_add_int(a, at, op == OP_LE);
    else if (op == OP_GT || op == OP_GE)
        c->low = lx_add_int(a, at, op == OP_GT);
    return c->at && at->type == DT_I64 && (c->high || c->low);
}

static enum lang_op turned(enum lang_op op)
{
    switch (op) {
    case OP_LT: return OP_GT;
    case OP_LE: return OP_GE;
    case OP_GT: return OP_LT;
    case OP_GE: return OP_LE;
    default: return op;
    }
}

/* Finds a cut of k in the condition, or in what it is the conjunction of. */
static bool find_cut(const struct narrow *n, struct lang_expr *e, const struct lang_symbol *k,
                     struct cut *c)
{
    if (e->kind != E_BINARY)
        return false;
    struct lang_expr *x = e->args[0], *y = e->args[1];
    if (e->op == OP_LAND) {
        const bool first = find_cut(n, x, k, c);
        if (!first && !find_cut(n, y, k, c))
            return false;
        struct lang_expr *other = first ? y : x;
        c->rest = c->rest ? lx_and(n->g->a, c->rest, other) : other;
        return true;
    }
    struct lang_expr *left = (struct lang_expr *)inspect_strip(x);
    struct lang_expr *right = (struct lang_expr *)inspect_strip(y);
    *c = (struct cut){0};
    if (is_name_of(left, k) && cut_at(n, e->op, right, k, c))
        return true;
    *c = (struct cut){0};
    return is_name_of(right, k) && cut_at(n, turned(e->op), left, k, c);
}

/* ---- the terms ------------------------------------------------------------------------------- */

static bool is_number(const struct lang_expr *e, double v)
{
    int64_t n;
    if (e->kind == E_CAST && dtype_is_float(e->type))
        e = e->args[0];
    if (e->kind == E_UNARY && e->op == OP_NEG)
        return is_number(e->args[0], -v);
    return e->kind == E_FLOAT ? e->fval == v : lang_const_int(e, &n) && (double)n == v;
}

/* Does it change nothing that it is reduced with? */
static bool is_nothing(enum lang_reduce how, const struct lang_expr *e)
{
    switch ((int)how) {
    case RED_SUM: return is_number(e, 0);
    case RED_PROD: return is_number(e, 1);
    case RED_MAX: return dtype_is_float(e->type) && is_number(e, -INFINITY);
    case RED_MIN: return dtype_is_float(e->type) && is_number(e, INFINITY);
    default: return false;
    }
}

/* Does e mention the index, or reduce by itself? */
static bool depends(const struct lang_expr *e, const struct lang_symbol *at)
{
    if (is_name_of(e, at) || e->kind == E_REDUCE)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (depends(e->args[i], at))
            return true;
    return e->pad && depends(e->pad, at);
}

/* A copy of e with `to` for the index `from`, and `term` for its argument 1 if that is given. */
static struct lang_expr *copy(struct cg *g, const struct lang_expr *e,
                              const struct lang_symbol *from, struct lang_symbol *to)
{
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    if (is_name_of(e, from))
        c->sym = to;
    for (uint32_t i = 0; i < e->nargs; i++)
        c->args[i] = copy(g, e->args[i], from, to);
    if (e->pad)
        c->pad = copy(g, e->pad, from, to);
    return c;
}

/* The prefix that stands for e. */
static struct lang_expr *prefix_of(struct cg *g, const struct lang_expr *e, const struct cut *c)
{
    const struct lang_expr *wide = e->args[0], *cond = inspect_strip(wide);
    struct lang_symbol *from = e->index[0], *to = ARENA_NEW(g->a, struct lang_symbol);
    *to = *from;
    to->dims = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    to->dims[0] = c->high ? c->high : from->dims[0];
    to->low = c->low;
    struct lang_expr *term = cond->args[1];
    if (c->rest) {
        term = lx_operand(g->a, cond);
        term->args = ARENA_ARRAY(g->a, 3, struct lang_expr *);
        term->args[0] = c->rest;
        term->args[1] = cond->args[1];
        term->args[2] = cond->args[2];
    }
    if (wide != cond) {
        struct lang_expr *inner = term;
        term = lx_operand(g->a, wide);
        term->args = ARENA_ARRAY(g->a, 1, struct lang_expr *);
        term->args[0] = inner;
    }
    struct lang_expr *all = lx_operand(g->a, e);
    all->args = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    all->args[0] = copy(g, term, from, to);
    all->index = ARENA_ARRAY(g->a, 1, struct lang_symbol *);
    all->index[0] = to;
    return all;
}

static void narrow(const struct narrow *n, const struct lang_expr *e)
{
    struct cg *g = n->g;
    const struct lang_symbol *k = e->index[0];
    /* f16 and its kin are widened around the condition */
    const struct lang_expr *wide = e->args[0], *cond = inspect_strip(wide);
    struct cut c = {0};
    int64_t low = 0;
    if (e->nindex != 1 || cond->kind != E_COND || (wide != cond && wide->args[0] != cond) ||
        (k->low && (!lang_const_int(k->low, &low) || low)) ||
        !is_nothing(e->reduce, cond->args[2]) || !find_cut(n, cond->args[0], k, &c) ||
        depends(cond->args[1], c.at) || (c.rest && depends(c.rest, c.at)))
        return;
    *VEC_PUSH(g->a, &g->outlined) = (struct cg_outlined){e, prefix_of(g, e, &c)};
}

static void walk(const struct narrow *n, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        walk(n, e->args[i]);
    if (e->pad)
        walk(n, e->pad);
    if (e->kind == E_REDUCE)
        narrow(n, e);
}

void narrow_reductions(struct cg *g)
{
    for (size_t i = 0; i < g->spec->compute.n; i++) {
        const struct narrow n = {g, g->spec->compute.v[i]};
        walk(&n, n.eq->rhs);
    }
}
