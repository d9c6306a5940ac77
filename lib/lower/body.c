/* A body: is compiled as it is written: one entry, the grid and the block from the spec. */
#include <config.h>

#include "lower/strategy.h"

static uint64_t constant(const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind == E_INT)
        return e->ival;
    return e->kind == E_NAME && e->sym->kind == SYM_DIM && e->sym->has_value ? e->sym->value : 0;
}

static bool check_block(struct cg *g)
{
    static const uint64_t most[3] = {1024, 1024, 64};
    const struct spec *s = g->spec;
    uint64_t threads = 1;
    for (uint32_t i = 0; i < 3; i++) {
        g->block[i] = i < s->nblock ? constant(s->block[i]) : 1;
        if (g->block[i] > most[i])
            return cg_error(g, s->block[i]->span,
                            "a block has at most %u threads along %c, not %llu", (unsigned)most[i],
                            "xyz"[i], (unsigned long long)g -> block[i]);
        threads *= g->block[i] ? g->block[i] : 1;
    }
    if (threads > 1024)
        return cg_error(g, s->block[0]->span, "a block has at most 1024 threads, not %llu",
                        (unsigned long long)threads);
    return true;
}

/* Generates the body. False with nothing said when it must begin again: a local array turned out to
 * need memory. */
static bool generate(struct cg *g, size_t diags)
{
    const struct spec *s = g->spec;
    size_t nitem = g->module->items.n;
    struct ptx_item *items = ARENA_ARRAY(g->a, nitem, struct ptx_item);
    if (nitem)
        memcpy(items, g->module->items.v, nitem * sizeof *items);
    g->variables.n = 0;
    g->dynamic = NULL;
    g->shared_bytes = NULL;
    g->again = false;
    g->rounds = 0;
    cg_begin(g, s->name);
    if (!check_block(g) || !cg_layout(g, s->body))
        return false;
    inspect_body(g, s->body);
    cg_stmt(g, s->body);
    if (!g->again || g->failed)
        return !g->failed;
    if (nitem) /* tables stand in front, among what was there before */
        memcpy(g->module->items.v, items, nitem * sizeof *items);
    g->module->items.n = nitem;
    g->d->list.n = diags;
    return false;
}

/* The contract's temps for the body's own buffers, which are found by their homes. */
static void make_temps(struct cg *g)
{
    const struct spec *s = g->spec;
    for (size_t i = 0; i < s->temps.n; i++) {
        const struct lang_symbol *t = s->temps.v[i].sym;
        const bool is_zero = s->temps.v[i].is_zero;
        const struct lang_symbol *temp = cg_temp(g, t->name, t->type, t->rank, t->dims, is_zero);
        g->contract->temps.v[g->contract->temps.n - 1].each_run = is_zero;
        *VEC_PUSH(g->a, &g->homes) = (struct cg_home){.sym = t, .temp = temp};
    }
}

bool body_lower(struct cg *g)
{
    const struct spec *s = g->spec;
    size_t diags = g->d->list.n;
    g->in_body = true;
    make_temps(g);
    while (!generate(g, diags))
        if (!g->again)
            return false;

    bool fixed = true;
    for (uint32_t i = 0; i < 3; i++)
        fixed &= g->block[i] != 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (fixed)
            g->func->reqntid[i] = (uint32_t)g->block[i];
        else
            g->func->maxntid[i] = i ? 1 : 1024; /* in all */
    }
    struct contract_launch *l = cg_launch(g, s->grid[0], s->block[0]);
    for (uint32_t i = 1; i < s->ngrid; i++)
        l->grid[i] = s->grid[i];
    for (uint32_t i = 1; i < s->nblock; i++)
        l->block[i] = s->block[i];
    l->shared = g->shared_bytes;
    cg_tell_arrays(g, l);
    if (s->ncluster && !cg_needs(g, s->cluster[0]->span, 90, "a cluster"))
        return false;
    for (uint32_t i = 0; i < s->ncluster; i++)
        l->cluster[i] = s->cluster[i];
    cg_end(g, l);
    return !g->failed;
}
