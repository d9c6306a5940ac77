/* Which equations are evaluated: those that are wanted, and what they read as far as nothing stands
 * for it. */
#include <config.h>

#include "ref/program.h"

/* Marks equation k, and what is needed for it. */
static void need(const struct program *p, size_t k, bool *needed);

static void need_all(const struct program *p, const struct lang_expr *e, bool *needed)
{
    const struct lang_equations *q = spec_oracle(p->in->spec);
    for (size_t k = 0; k < q->n && (e->kind == E_INDEX || e->kind == E_NAME); k++)
        if (q->v[k]->sym == e->sym && e->sym->mode != MODE_INOUT)
            need(p, k, needed);
    for (uint32_t k = 0; k < e->nargs; k++)
        need_all(p, e->args[k], needed);
    for (uint32_t k = 0; e->kind == E_REDUCE && k < e->nindex; k++) {
        need_all(p, e->index[k]->dims[0], needed);
        if (e->index[k]->low)
            need_all(p, e->index[k]->low, needed);
    }
    if (e->pad)
        need_all(p, e->pad, needed);
}

static void need(const struct program *p, size_t k, bool *needed)
{
    const bool known = needed[k] || (p->in->found && p->in->found[k]);
    needed[k] = true;
    if (!known)
        need_all(p, spec_oracle(p->in->spec)->v[k]->rhs, needed);
}

const bool *ref_needed(const struct program *p)
{
    const size_t n = spec_oracle(p->in->spec)->n;
    bool *needed = ARENA_ARRAY(p->arena, n, bool);
    for (size_t k = 0; k < n; k++)
        if (!p->in->wanted || p->in->wanted[k])
            need(p, k, needed);
    return needed;
}
