#include <config.h>

#include "lower/variant.h"

struct variant_condition variant_condition(struct cg *g)
{
    return (struct variant_condition){.a = g->a};
}

void variant_require(struct variant_condition *c, struct lang_expr *e)
{
    for (size_t i = 0; i < c->all.n; i++)
        if (lx_same(c->all.v[i], e))
            return;
    *VEC_PUSH(c->a, &c->all) = e;
}

struct lang_expr *variant_when(const struct variant_condition *c)
{
    struct lang_expr *all = NULL;
    for (size_t i = 0; i < c->all.n; i++)
        all = lx_and(c->a, all, c->all.v[i]);
    return all;
}

const char *variant_when_text(const struct variant_condition *c)
{
    return c->all.n ? lang_expr_text(c->a, variant_when(c)) : NULL;
}

void variant_require_multiple(struct cg *g, struct variant_condition *c, const struct lang_expr *e,
                              uint32_t of)
{
    int64_t v;
    if (of < 2)
        return;
    if (lang_const_int(e, &v)) {
        c->never |= v % of != 0;
        return;
    }
    variant_require(c, lx_is_multiple(g->a, lx_operand(g->a, e), of));
}

void variant_require_some(struct cg *g, struct variant_condition *c, struct lang_expr *dim)
{
    int64_t v;
    if (lang_const_int(dim, &v))
        c->never |= v < 1;
    else
        variant_require(c, lx_compare(g->a, OP_GT, dim, lx_int(g->a, 0)));
}

/* KERNEL_part, or of a further stage KERNEL_stage_part, unlike every other entry. */
static const char *entry_name(struct cg *g, const struct lower_stage *s, const char *part)
{
    const size_t n = strlen(g->spec->name);
    if (strcmp(s->entry, g->spec->name) != 0)
        part = arena_printf(g->a, "%s_%s", s->entry + n + 1, part);
    return lower_entry_name(g, part);
}

void variant_begin(struct cg *g, struct variant_set *all, const char *part, uint32_t block)
{
    all->items = g->module->items.n;
    cg_begin(g, all->n ? entry_name(g, all->s, part) : all->s->entry);
    g->shared_bytes = NULL;
    g->block[0] = block;
    g->block[1] = g->block[2] = 1;
}

void variant_drop(struct cg *g, struct variant_set *all)
{
    g->module->items.n = all->items;
    g->func->items.n = 0; /* nobody wants them */
}

void variant_end(struct cg *g, struct variant_set *all, const struct variant_condition *c,
                 struct lang_expr *grid, uint32_t block)
{
    g->func->reqntid[0] = block;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    struct contract_launch *l = cg_launch(g, grid, lx_int(g->a, block));
    l->when = variant_when(c);
    if (!l->when && all->n)
        l->when = lx_bool(g->a, true);
    l->shared = g->shared_bytes;
    all->n++;
    all->done = c->all.n == 0;
    cg_end(g, l);
}
