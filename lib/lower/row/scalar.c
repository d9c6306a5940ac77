/* Single elements that a row needs beside its columns: loaded once, under the conditions that they
 * are read under, before the threads of the row wait for each other. */
#include <config.h>

#include "lower/row/row.h"

/* From now on loads are made where all of these conditions are as they must be. */
static void enter_guards(struct row_gen *r, const struct row_guard *guard)
{
    struct cg *g = r->g;
    if (!guard)
        return;
    enter_guards(r, guard->outer);
    const size_t bound = row_bind(r, guard->env);
    struct cg_val p = cg_expr(g, guard->when);
    g->bindings.n = bound;
    cg_guard(g, guard->holds ? p : cg_unary(g, OP_NOT, p), false);
}

static void load_scalar(struct row_gen *r, const struct row_scalar *s)
{
    struct cg *g = r->g;
    const struct cg_guard before = {g->guard, g->guard_varies};
    struct row_told *t = &r->told[r->ntold];
    enter_guards(r, s->guard);
    const size_t bound = row_bind(r, s->env);
    t->e = s->e;
    t->guard = g->guard;
    t->subscript = ARENA_ARRAY(g->a, s->e->nargs + 1, struct cg_val);
    for (uint32_t i = 0; i < s->e->nargs; i++)
        t->subscript[i] = cg_expr(g, s->e->args[i]);
    cg_at(g, s->e->span);
    t->v = cg_load_here(g, s->e->sym, cg_element(g, s->e->sym, s->e->nargs, t->subscript));
    g->bindings.n = bound;
    cg_unguard(g, before);
    r->ntold++;
}

void row_load_scalars(struct row_gen *r, bool late)
{
    row_at(r, 0, 0);
    for (uint32_t i = 0; i < r->row->nscalar; i++)
        if (r->row->scalar[i].late == late)
            load_scalar(r, &r->row->scalar[i]);
}

bool row_scalar_told(struct row_gen *r, const struct lang_expr *e, struct cg_val *v)
{
    struct cg *g = r->g;
    for (uint32_t i = 0; i < r->ntold; i++) {
        const struct row_told *t = &r->told[i];
        bool same = t->e->sym == e->sym && (t->guard < 0 || t->guard == g->guard);
        for (uint32_t k = 0; k < e->nargs && same; k++)
            same = row_same_value(cg_expr(g, e->args[k]), t->subscript[k]);
        if (same) {
            *v = t->v;
            return true;
        }
    }
    return false;
}
