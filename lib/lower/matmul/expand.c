/* Equations as contractions are looked for in them: intermediates in the place of what reads them,
 * the same index symbols in all equations and all sums, neighbouring axes as one. Copies are trees
 * of their own, of bounded size.
 */
#include <config.h>

#include "lower/matmul/matmul.h"

enum { MOST_NODES = 20000, MOST_DEPTH = 64 };

struct bound {
    const struct lang_symbol *sym;
    struct lang_expr *to;
    unsigned size; /* nodes of it */
};

struct expand {
    struct cg *g;
    struct matmul_normal *n;
    struct buf *why;
    VEC(struct bound) bound;
    const struct lang_expr *first; /* sum */
    bool in_sum;
    bool guarded; /* a condition decides whether it is evaluated */
    bool outside; /* and of an intermediate for which elements, so that it may have no such */
    bool checks;  /* whether sums under conditions read what may not be there: that has no other
                     answer yet */
    unsigned nodes, depth;
};

/* NULL after saying why not. */
__attribute__((format(printf, 3, 4))) static struct lang_expr *
no(const struct expand *x, struct span s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    lower_lacks(x->why, s, "%s", arena_vprintf(x->g->a, fmt, ap));
    va_end(ap);
    return NULL;
}

/* Parts of it may stand in several places; counted up to what is too much. */
static unsigned count(const struct lang_expr *e)
{
    unsigned n = 1;
    for (uint32_t i = 0; i < e->nargs && n <= MOST_NODES; i++)
        n += count(e->args[i]);
    return e->pad && n <= MOST_NODES ? n + count(e->pad) : n;
}

static void bind(struct expand *x, const struct lang_symbol *sym, struct lang_expr *to)
{
    struct bound *b = VEC_PUSH(x->g->a, &x->bound);
    *b = (struct bound){sym, to, count(to)};
}

struct lang_expr *matmul_cast(struct cg *g, struct lang_expr *e, enum dtype t)
{
    if (e->type == t)
        return e;
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = (struct lang_expr){.kind = E_CAST,
                            .type = t,
                            .span = e->span,
                            .is_implicit = true,
                            .nargs = 1,
                            .args = ARENA_ARRAY(g->a, 1, struct lang_expr *),
                            .height = e->height + 1};
    c->args[0] = e;
    return c;
}

static struct lang_expr *copy(struct expand *x, const struct lang_expr *from);

/* ---- sums ------------------------------------------------------------------------------------ */

static bool from_zero(const struct lang_symbol *k)
{
    int64_t v;
    return !k->low || (lang_const_int(k->low, &v) && v == 0);
}

/* The indices of the first sum become those of all. */
static bool bind_indices(struct expand *x, const struct lang_expr *e)
{
    struct matmul_normal *n = x->n;
    if (e->nindex > MATMUL_SUMS)
        return no(x, e->span, "the sum is over too many indices");
    for (uint32_t i = 0; i < e->nindex; i++) {
        const struct lang_symbol *k = e->index[i];
        if (!from_zero(k) || !inspect_at_launch(k->dims[0]))
            return no(x, k->span, "the range of '%s' is more than 0 to a number known at launch",
                      k->name);
        if (x->first &&
            (e->nindex != n->nsum || !inspect_same_expr(n->sum[i]->dims[0], k->dims[0])))
            return no(x, k->span, "'%s' has another range than the first sum's", k->name);
        if (!x->first) {
            n->sum[i] = ARENA_NEW(x->g->a, struct lang_symbol);
            *n->sum[i] = *k;
            n->sum[i]->low = NULL;
        }
        bind(x, k, inspect_index_name(x->g, n->sum[i], k->span));
    }
    n->nsum = e->nindex;
    x->first = e;
    return true;
}

static struct lang_expr *copy_sum(struct expand *x, const struct lang_expr *e)
{
    const size_t mark = x->bound.n;
    if (x->in_sum)
        return no(x, e->span, "this %s is inside a sum", lang_reduce_name(e->reduce));
    if (e->reduce != RED_SUM && e->reduce != RED_MAX && e->reduce != RED_MIN)
        return no(x, e->span, "%s is no sum of products", lang_reduce_name(e->reduce));
    if (!bind_indices(x, e))
        return NULL;
    struct lang_expr *c = ARENA_NEW(x->g->a, struct lang_expr);
    *c = *e;
    c->index = ARENA_ARRAY(x->g->a, e->nindex, struct lang_symbol *);
    memcpy(c->index, x->n->sum, e->nindex * sizeof *c->index);
    c->args = ARENA_ARRAY(x->g->a, 1, struct lang_expr *);
    x->in_sum = true;
    c->args[0] = copy(x, e->args[0]);
    x->in_sum = false;
    x->bound.n = mark;
    if (!c->args[0])
        return NULL;
    if (x->guarded && x->checks && (x->outside || !e->anywhere) && inspect_may_stray(c->args[0]))
        return no(x, e->span, "this %s may only be computed where a condition holds",
                  lang_reduce_name(e->reduce));
    c->height = 1 + c->args[0]->height;
    return c;
}

/* ---- everything ------------------------------------------------------------------------------ */

static struct lang_expr *copy_definition(struct expand *x, const struct lang_expr *e)
{
    const struct lang_equation *eq = e->sym->def;
    const size_t mark = x->bound.n;
    struct lang_expr *sub[VARIANT_RANK];
    if (x->depth == MOST_DEPTH || eq->nindex > VARIANT_RANK)
        return no(x, e->span, "'%s' is too deep", e->sym->name);
    for (uint32_t i = 0; i < eq->nindex; i++)
        if (!(sub[i] = copy(x, e->args[i])))
            return NULL;
    for (uint32_t i = 0; i < eq->nindex; i++)
        bind(x, eq->index[i], matmul_cast(x->g, sub[i], DT_I64));
    const bool outside = x->outside;
    for (uint32_t i = 0; i < eq->nindex; i++)
        x->outside |= x->guarded && !inspect_in_range(e, i);
    x->depth++;
    struct lang_expr *c = copy(x, eq->rhs);
    x->depth--;
    x->outside = outside;
    x->bound.n = mark;
    return c;
}

static struct lang_expr *copy_node(struct expand *x, const struct lang_expr *e)
{
    struct lang_expr *c = ARENA_NEW(x->g->a, struct lang_expr);
    const bool guards = lang_guards(e);
    const bool before = x->guarded;
    *c = *e;
    c->height = 1;
    c->args = ARENA_ARRAY(x->g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        x->guarded = before || (guards && i);
        c->args[i] = copy(x, e->args[i]);
        x->guarded = before;
        if (!c->args[i])
            return NULL;
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
    }
    if (e->pad) {
        if (!(c->pad = copy(x, e->pad)))
            return NULL;
        c->height = c->pad->height >= c->height ? c->pad->height + 1 : c->height;
    }
    if (c->height > LANG_MAX_HEIGHT)
        return no(x, e->span, "the equations expand to too much");
    return c;
}

static const struct bound *find(const struct expand *x, const struct lang_symbol *sym)
{
    for (size_t i = x->bound.n; i-- > 0;)
        if (x->bound.v[i].sym == sym)
            return &x->bound.v[i];
    return NULL;
}

static struct lang_expr *copy(struct expand *x, const struct lang_expr *from)
{
    const struct lang_expr *e = cg_view(x->g, from);
    if (++x->nodes > MOST_NODES)
        return no(x, e->span, "the equations expand to too much");
    if (e->kind == E_REDUCE)
        return copy_sum(x, e);
    const struct bound *b = e->kind == E_NAME ? find(x, e->sym) : NULL;
    if (b) {
        x->nodes += b->size;
        return b->to;
    }
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR ||
                                                                     e->sym->kind == SYM_BUFFER));
    if (tensor && cg_is_defined(x->g, e->sym)) {
        if (!e->pad)
            return copy_definition(x, e);
        if (inspect_reduces(x->g, e))
            return no(x, e->span, "'%s' is read through pad()", e->sym->name);
    }
    return copy_node(x, e);
}

static bool expand_one(struct expand *x, const struct lang_equation *eq, struct lang_symbol **axis,
                       struct lang_equation *out)
{
    x->bound.n = 0;
    for (uint32_t i = 0; i < eq->nindex; i++)
        bind(x, eq->index[i], inspect_index_name(x->g, axis[i], eq->span));
    *out = *eq;
    out->index = axis;
    out->rhs = copy(x, eq->rhs);
    return out->rhs != NULL;
}

static bool same_shapes(const struct lower_stage *s, struct buf *why)
{
    const struct lang_equation *first = s->eq[0];
    if (first->nindex == 0 || first->nindex > VARIANT_RANK)
        return lower_lacks(why, first->span,
                           first->nindex ? "'%s' has too many dimensions" : "'%s' is one element",
                           first->sym->name);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct lang_symbol *t = s->eq[i]->sym;
        if (!inspect_same_shape(t, first->sym))
            return lower_lacks(why, s->eq[i]->span, "'%s' has another shape than the first result",
                               t->name);
        if (dtype_bits(t->type) < 8)
            return lower_lacks(why, s->eq[i]->span, "'%s' is of a packed type", t->name);
    }
    return true;
}

static void merge_sums(struct cg *g, struct matmul_normal *n)
{
    for (uint32_t i = n->nsum; i-- > 1;) {
        struct lang_symbol *k = map_merge_sums(g, &n->stage, &n->sum[i - 1]);
        if (!k)
            continue;
        n->sum[i - 1] = k;
        for (uint32_t q = i; q + 1 < n->nsum; q++)
            n->sum[q] = n->sum[q + 1];
        n->nsum--;
    }
}

void matmul_share_axes(struct cg *g, struct matmul_normal *n)
{
    struct lang_equation *eq = ARENA_ARRAY(g->a, n->stage.n, struct lang_equation);
    const struct lang_equation **list = ARENA_ARRAY(g->a, n->stage.n, const struct lang_equation *);
    struct expand x = {.g = g, .n = n};
    n->naxis = n->stage.eq[0]->nindex;
    memcpy(n->axis, n->stage.eq[0]->index, n->naxis * sizeof *n->axis);
    n->nsum = 0;
    for (uint32_t i = 0; i < n->stage.n; i++) {
        expand_one(&x, n->stage.eq[i], n->axis, &eq[i]);
        list[i] = &eq[i];
    }
    n->stage.eq = list;
}

bool matmul_normalise(struct cg *g, const struct lower_stage *s, bool merges,
                      struct matmul_normal *n, struct buf *why)
{
    struct expand x = {.g = g, .n = n, .why = why, .checks = true};
    const struct lang_equation *first = s->eq[0];
    *n = (struct matmul_normal){.stage = *s};
    if (!same_shapes(s, why))
        return false;
    struct lang_symbol **axis = ARENA_ARRAY(g->a, first->nindex, struct lang_symbol *);
    struct lang_equation *eq = ARENA_ARRAY(g->a, s->n, struct lang_equation);
    const struct lang_equation **list = ARENA_ARRAY(g->a, s->n, const struct lang_equation *);
    for (uint32_t i = 0; i < first->nindex; i++) {
        axis[i] = ARENA_NEW(g->a, struct lang_symbol);
        *axis[i] = *first->index[i];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (!expand_one(&x, s->eq[i], axis, &eq[i]))
            return false;
        list[i] = &eq[i];
    }
    if (!x.first) {
        if (why)
            buf_puts(why, "there is no sum");
        return false;
    }
    n->stage.eq = list;
    n->naxis = first->nindex;
    memcpy(n->axis, axis, n->naxis * sizeof *n->axis);
    if (merges) {
        merge_sums(g, n);
        if (n->nsum > 1)
            matmul_fold_sums(g, n);
        n->stage = map_merge(g, &n->stage, false);
        matmul_share_axes(g, n);
    }
    return true;
}
