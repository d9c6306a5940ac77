#include <config.h>

#include "lower/outline.h"

enum { MOST_RANK = 8, MOST_AROUND = 8, MOST_INSIDE = 16, MOST_SHORT = 16 };

struct outline {
    struct cg *g;
    const struct lang_equation *eq;
    const struct lang_expr *around[MOST_AROUND]; /* reductions */
    uint32_t naround;
    equation_list *out;
};

/* The indices that a reduction mentions and does not bind itself. */
struct mentioned {
    const struct lang_expr *inside[MOST_INSIDE]; /* reductions, itself first */
    uint32_t ninside;
    struct lang_symbol *index[MOST_RANK];
    uint32_t n;
};

static bool is_bound(const struct mentioned *m, const struct lang_symbol *sym)
{
    for (uint32_t k = 0; k < m->ninside; k++)
        for (uint32_t i = 0; i < m->inside[k]->nindex; i++)
            if (m->inside[k]->index[i] == sym)
                return true;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->index[i] == sym)
            return true;
    return false;
}

/* false: there are too many. */
static bool find_mentioned(struct mentioned *m, const struct lang_expr *e)
{
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX && !is_bound(m, e->sym)) {
        if (m->n == MOST_RANK)
            return false;
        m->index[m->n++] = e->sym;
    }
    if (e->kind == E_REDUCE) {
        if (m->ninside == MOST_INSIDE)
            return false;
        m->inside[m->ninside++] = e;
        for (uint32_t i = 0; i < e->nindex; i++)
            if ((e->index[i]->low && !find_mentioned(m, e->index[i]->low)) ||
                !find_mentioned(m, e->index[i]->dims[0]))
                return false;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!find_mentioned(m, e->args[i]))
            return false;
    if (e->pad && !find_mentioned(m, e->pad))
        return false;
    m->ninside -= e->kind == E_REDUCE;
    return true;
}

/* Those of m that an equation may have, in the order in which they are around; false: others are
 * among them. */
static bool sort_indices(const struct outline *o, struct mentioned *m, uint32_t *all)
{
    struct lang_symbol *sorted[MOST_RANK];
    uint32_t n = 0;
    *all = o->eq->nindex;
    for (uint32_t i = 0; i < o->eq->nindex; i++)
        for (uint32_t k = 0; k < m->n; k++)
            if (m->index[k] == o->eq->index[i])
                sorted[n++] = m->index[k];
    for (uint32_t r = 0; r < o->naround; r++) {
        *all += o->around[r]->nindex;
        for (uint32_t i = 0; i < o->around[r]->nindex; i++)
            for (uint32_t k = 0; k < m->n; k++)
                if (m->index[k] == o->around[r]->index[i] && !m->index[k]->low &&
                    inspect_at_launch(m->index[k]->dims[0]))
                    sorted[n++] = m->index[k];
    }
    memcpy(m->index, sorted, n * sizeof *sorted);
    return n == m->n;
}

/* An equation whose indices are those that the reduction depends on; false: there is none, or no
 * fewer indices than around it and `always` does not hold. */
static bool outline(const struct outline *o, const struct lang_expr *reduce, bool always)
{
    struct cg *g = o->g;
    struct mentioned m = {0};
    uint32_t all;
    if (!find_mentioned(&m, reduce) || !sort_indices(o, &m, &all) || (m.n == all && !always))
        return false;
    struct lang_symbol *sym = ARENA_NEW(g->a, struct lang_symbol);
    struct lang_equation *q = ARENA_NEW(g->a, struct lang_equation);
    struct lang_expr *read = ARENA_NEW(g->a, struct lang_expr);
    *sym = (struct lang_symbol){.kind = SYM_TENSOR,
                                .name = lang_reduce_name(reduce->reduce),
                                .span = reduce->span,
                                .type = reduce->type,
                                .rank = m.n,
                                .dims = ARENA_ARRAY(g->a, m.n, struct lang_expr *),
                                .def = q};
    *q = (struct lang_equation){.span = reduce->span,
                                .sym = sym,
                                .nindex = m.n,
                                .index = ARENA_ARRAY(g->a, m.n, struct lang_symbol *),
                                .rhs = arena_alloc(g->a, sizeof *reduce)};
    *q->rhs = *reduce; /* not the node that stands for the read */
    *read = (struct lang_expr){.kind = m.n ? E_INDEX : E_NAME,
                               .type = reduce->type,
                               .span = reduce->span,
                               .name = sym->name,
                               .sym = sym,
                               .nargs = m.n,
                               .args = ARENA_ARRAY(g->a, m.n, struct lang_expr *),
                               .height = 2};
    for (uint32_t i = 0; i < m.n; i++) {
        sym->dims[i] = m.index[i]->dims[0];
        q->index[i] = m.index[i];
        read->args[i] = inspect_index_name(g, m.index[i], reduce->span);
    }
    *VEC_PUSH(g->a, &g->outlined) = (struct cg_outlined){.reduce = reduce, .read = read};
    *VEC_PUSH(g->a, o->out) = q;
    g->reducing->v.n = 0;
    return true;
}

/* No more terms than are best computed where they are wanted. */
static bool is_short(const struct lang_expr *reduce)
{
    int64_t all = 1, high;
    for (uint32_t i = 0; i < reduce->nindex; i++) {
        const struct lang_symbol *k = reduce->index[i];
        if (k->low || !lang_const_int(k->dims[0], &high) || high > MOST_SHORT)
            return false;
        all *= high;
    }
    return all <= MOST_SHORT;
}

static void outline_all(struct outline *o, const struct lang_expr *e)
{
    e = cg_view(o->g, e);
    if (e->kind == E_REDUCE) {
        const bool inside = o->naround > 0 && (o->eq->nindex == 0 || !is_short(e));
        if (o->naround == MOST_AROUND || outline(o, e, inside))
            return;
        o->around[o->naround++] = e;
        outline_all(o, e->args[0]);
        o->naround--;
        return;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        outline_all(o, e->args[i]);
}

void outline_reductions(struct cg *g, const struct lang_equation *eq, equation_list *out)
{
    struct outline o = {.g = g, .eq = eq, .out = out};
    if (inspect_guarded_reduction(g, eq->rhs, false))
        return; /* it has no value for each index */
    outline_all(&o, eq->rhs);
}

/* The n-th reduction in e that is in no other; *n is what is left to count. */
static const struct lang_expr *reduction(const struct cg *g, const struct lang_expr *e, uint32_t *n)
{
    e = cg_view(g, e);
    if (e->kind == E_REDUCE)
        return (*n)-- == 0 ? e : NULL;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *r = reduction(g, e->args[i], n);
        if (r)
            return r;
    }
    return NULL;
}

bool outline_next(struct cg *g, const struct lang_equation *eq, uint32_t *from, equation_list *out)
{
    struct outline o = {.g = g, .eq = eq, .out = out};
    if (inspect_guarded_reduction(g, eq->rhs, false))
        return false;
    for (;;) {
        uint32_t n = *from;
        const struct lang_expr *e = reduction(g, eq->rhs, &n);
        if (!e)
            return false;
        out->n = 0;
        if (outline(&o, e, true))
            return true;
        ++*from;
    }
}

void outline_undo(struct cg *g, uint32_t *from)
{
    ++*from;
    g->outlined.n--;
    g->reducing->v.n = 0;
}
