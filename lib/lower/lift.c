#include <config.h>

#include "lower/lift.h"

enum { MOST_GUARDS = 16, MOST_SCOPE = 32, MOST_TERMS = 8, MOST_CORNER = 4 };

struct lift {
    struct cg *g;
    struct {
        const struct lang_expr *when;
        bool holds;
    } guard[MOST_GUARDS];
    struct lang_symbol *scope[MOST_SCOPE]; /* the indices around, the equation's first */
    uint32_t nguard, nscope;
    bool crowded; /* there are more of either than there is room for */
};

/* ---- conditions at a corner ------------------------------------------------------------------ */

/* The indices of which the conditions are made. Each is 0 or, where its bit of `high` is set, the
 * last of its range. */
struct corner {
    const struct lift *l;
    struct lang_symbol *index[MOST_CORNER];
    uint32_t n, high;
};

struct linear {
    int64_t c;
    struct {
        const struct lang_symbol *sym;
        int64_t times;
    } term[MOST_TERMS];
    uint32_t n;
};

static bool add_term(struct linear *x, const struct lang_symbol *sym, int64_t times)
{
    uint32_t i = 0;
    while (i < x->n && x->term[i].sym != sym)
        i++;
    if (i == MOST_TERMS)
        return false;
    if (i == x->n) {
        x->term[i].sym = sym;
        x->term[i].times = 0;
        x->n++;
    }
    return !__builtin_add_overflow(x->term[i].times, times, &x->term[i].times);
}

static bool add_linear(const struct corner *k, const struct lang_expr *e, int64_t times,
                       struct linear *x);

static bool add_constant(int64_t v, int64_t times, struct linear *x)
{
    int64_t p;
    return !__builtin_mul_overflow(v, times, &p) && !__builtin_add_overflow(x->c, p, &x->c);
}

static bool add_name(const struct corner *k, const struct lang_symbol *s, int64_t times,
                     struct linear *x)
{
    if (s->kind == SYM_DIM)
        return s->has_value ? add_constant((int64_t)s->value, times, x) : add_term(x, s, times);
    for (uint32_t i = 0; i < k->n; i++)
        if (k->index[i] == s)
            return !(k->high >> i & 1) ||
                   (add_linear(k, s->dims[0], times, x) && add_constant(-1, times, x));
    return false;
}

static bool add_product(const struct corner *k, const struct lang_expr *e, int64_t times,
                        struct linear *x)
{
    int64_t v, p;
    for (uint32_t i = 0; i < 2; i++)
        if (lang_const_int(e->args[i], &v))
            return !__builtin_mul_overflow(v, times, &p) && add_linear(k, e->args[1 - i], p, x);
    return false;
}

/* Adds `times` e, an i64, to x. False: e is not linear, or its value is not known. */
static bool add_linear(const struct corner *k, const struct lang_expr *e, int64_t times,
                       struct linear *x)
{
    int64_t v;
    if (e->type != DT_I64 || times == INT64_MIN)
        return false;
    if (lang_const_int(e, &v))
        return add_constant(v, times, x);
    if (e->kind == E_NAME)
        return add_name(k, e->sym, times, x);
    if (e->kind == E_UNARY && e->op == OP_NEG)
        return add_linear(k, e->args[0], -times, x);
    if (e->kind != E_BINARY)
        return false;
    if (e->op == OP_MUL)
        return add_product(k, e, times, x);
    return (e->op == OP_ADD || e->op == OP_SUB) && add_linear(k, e->args[0], times, x) &&
           add_linear(k, e->args[1], e->op == OP_SUB ? -times : times, x);
}

/* No index runs over nothing where there is an element to compute. */
static bool is_some(const struct corner *k, const struct lang_symbol *dim)
{
    for (uint32_t i = 0; i < k->l->nscope; i++) {
        const struct lang_expr *n = inspect_strip(k->l->scope[i]->dims[0]);
        if (n->kind == E_NAME && n->sym == dim)
            return true;
    }
    return false;
}

/* e compares x and y. Is times * (x - y) at least `least` for all sizes? */
static bool is_least(const struct corner *k, const struct lang_expr *e, int64_t times,
                     int64_t least)
{
    struct linear d = {0};
    if (!add_linear(k, e->args[0], times, &d) || !add_linear(k, e->args[1], -times, &d))
        return false;
    for (uint32_t i = 0; i < d.n; i++)
        if (d.term[i].times < 0 ||
            (is_some(k, d.term[i].sym) && __builtin_add_overflow(d.c, d.term[i].times, &d.c)))
            return false;
    return d.c >= least;
}

/* Is the comparison known to be `sense` at the corner? x < y is -(x - y) >= 1, and its opposite is
 * x - y >= 0. */
static bool compares(const struct corner *k, const struct lang_expr *e, bool sense)
{
    const bool less = e->op == OP_LT || e->op == OP_LE, strict = e->op == OP_LT || e->op == OP_GT;
    switch (e->op) {
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: return is_least(k, e, less == sense ? -1 : 1, strict == sense);
    case OP_EQ:
    case OP_NE:
        if ((e->op == OP_EQ) == sense)
            return is_least(k, e, 1, 0) && is_least(k, e, -1, 0);
        return is_least(k, e, 1, 1) || is_least(k, e, -1, 1);
    default: return false;
    }
}

/* Is e known to be `sense` at the corner? */
static bool holds(const struct corner *k, const struct lang_expr *e, bool sense)
{
    if (e->kind == E_BOOL)
        return (e->ival != 0) == sense;
    if (e->kind == E_UNARY && e->op == OP_NOT)
        return holds(k, e->args[0], !sense);
    if (e->kind != E_BINARY)
        return false;
    if (e->op == OP_LAND || e->op == OP_LOR) {
        const bool x = holds(k, e->args[0], sense), y = holds(k, e->args[1], sense);
        return (e->op == OP_LAND) == sense ? x && y : x || y;
    }
    return compares(k, e, sense);
}

/* Finds the indices of the conditions. False: there are too many, or one is a reduction's own. */
static bool add_corner(struct corner *k, const struct lang_expr *e)
{
    if (e->kind == E_REDUCE)
        return false;
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        uint32_t i = 0;
        while (i < k->n && k->index[i] != e->sym)
            i++;
        if (i == MOST_CORNER)
            return false;
        k->index[i] = e->sym;
        k->n += i == k->n;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!add_corner(k, e->args[i]))
            return false;
    return !e->pad || add_corner(k, e->pad);
}

/* Do all conditions hold together at one corner at least? */
static bool hold_somewhere(struct corner *k)
{
    const struct lift *l = k->l;
    for (k->high = 0; k->high < 1u << k->n; k->high++) {
        uint32_t i = 0;
        while (i < l->nguard && holds(k, l->guard[i].when, l->guard[i].holds))
            i++;
        if (i == l->nguard)
            return true;
    }
    return false;
}

/* ---- what the conditions do not decide about ------------------------------------------------- */

static bool is_simple(const struct lang_symbol *index)
{
    return !index->low && inspect_at_launch(index->dims[0]);
}

static bool mentions_corner(const struct corner *k, const struct lang_expr *e)
{
    return inspect_mentions(e, k->n, k->index);
}

/* Does the kernel make the reads of e, a part of a reduction, for the same subscripts at the
 * corner? */
static bool is_met(const struct corner *k, const struct lang_expr *e)
{
    const bool subscripts = e->kind == E_INDEX && !e->pad;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (!is_simple(e->index[i]))
            return false;
    if (lang_guards(e) && mentions_corner(k, e->args[0]))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_met(k, e->args[i]) ||
            (subscripts && mentions_corner(k, e->args[i]) && !inspect_in_range(e, i)))
            return false;
    return !e->pad || is_met(k, e->pad);
}

/* Is every index around one of the reduction's, one of the conditions', or never without a
 * value? */
static bool is_complete(const struct corner *k, const struct lang_expr *reduce)
{
    const struct lift *l = k->l;
    int64_t n;
    for (uint32_t i = 0; i < l->nscope; i++) {
        struct lang_symbol *s = l->scope[i];
        bool known = inspect_mentions(reduce, 1, &s);
        for (uint32_t c = 0; c < k->n; c++)
            known |= k->index[c] == s;
        if (!is_simple(s) || (!known && !(lang_const_int(s->dims[0], &n) && n > 0)))
            return false;
    }
    return true;
}

static bool may_be_anywhere(const struct lift *l, const struct lang_expr *reduce)
{
    struct corner k = {.l = l};
    for (uint32_t i = 0; i < l->nguard; i++)
        if (!add_corner(&k, l->guard[i].when))
            return false;
    return !l->crowded && !inspect_guarded_reduction(l->g, reduce->args[0], false) &&
           is_complete(&k, reduce) && is_met(&k, reduce) && hold_somewhere(&k);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static struct lang_expr *zero(struct cg *g, const struct lang_expr *e)
{
    struct lang_expr *z = ARENA_NEW(g->a, struct lang_expr);
    *z = (struct lang_expr){.kind = e->type == DT_BOOL        ? E_BOOL
                                    : dtype_is_float(e->type) ? E_FLOAT
                                                              : E_INT,
                            .type = e->type,
                            .span = e->span,
                            .height = 1};
    return z;
}

/* e, whose reads are padded where they may be out of range. */
static struct lang_expr *padded(struct cg *g, const struct lang_expr *e)
{
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    bool in_range = true;
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        c->args[i] = padded(g, e->args[i]);
        in_range &= e->kind != E_INDEX || inspect_in_range(e, i);
    }
    if (e->pad)
        c->pad = padded(g, e->pad);
    else if (!in_range)
        c->pad = zero(g, e);
    return c;
}

static void lift(struct lift *l, const struct lang_expr *reduce)
{
    struct cg *g = l->g;
    struct lang_expr *c;
    if (may_be_anywhere(l, reduce)) {
        c = ARENA_NEW(g->a, struct lang_expr);
        *c = *reduce;
        c->anywhere = true;
    } else {
        c = padded(g, reduce);
    }
    *VEC_PUSH(g->a, &g->outlined) = (struct cg_outlined){.reduce = reduce, .read = c};
}

/* ---- all reductions -------------------------------------------------------------------------- */

static void enter_index(struct lift *l, struct lang_symbol *index)
{
    l->crowded |= l->nscope == MOST_SCOPE;
    if (!l->crowded)
        l->scope[l->nscope++] = index;
}

static void enter_guard(struct lift *l, const struct lang_expr *e, uint32_t arm)
{
    l->crowded |= l->nguard == MOST_GUARDS;
    if (l->crowded)
        return;
    l->guard[l->nguard].when = e->args[0];
    l->guard[l->nguard++].holds = e->kind == E_COND ? arm == 1 : e->op == OP_LAND;
}

static void walk(struct lift *l, const struct lang_expr *e)
{
    const struct lift before = *l;
    if (e->kind == E_REDUCE && l->nguard && inspect_may_stray(e)) {
        lift(l, e);
        return;
    }
    for (uint32_t i = 0; i < e->nindex; i++)
        enter_index(l, e->index[i]);
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (i && lang_guards(e))
            enter_guard(l, e, i);
        walk(l, e->args[i]);
        l->nguard = before.nguard;
    }
    if (e->pad)
        walk(l, e->pad);
    l->nscope = before.nscope;
    l->crowded = before.crowded;
}

void lift_reductions(struct cg *g)
{
    for (size_t i = 0; i < g->spec->compute.n; i++) {
        const struct lang_equation *eq = g->spec->compute.v[i];
        struct lift l = {.g = g};
        for (uint32_t k = 0; k < eq->nindex; k++)
            enter_index(&l, eq->index[k]);
        walk(&l, eq->rhs);
        g->guarded = g->guarded ? g->guarded : inspect_guarded_reduction(g, eq->rhs, false);
    }
}
