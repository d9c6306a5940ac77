#include <config.h>

#include "lower/variant.h"

struct variant_condition variant_condition(struct cg *g)
{
    return (struct variant_condition){.text = buf_in(g->a)};
}

/* Is it one of the conditions? */
static bool requires(struct variant_condition *c, const char *text)
{
    const char *all = buf_text(&c->text);
    const size_t n = strlen(text);
    for (const char *at = all; c->any && (at = strstr(at, text)); at++)
        if ((at == all || (at >= all + 4 && strncmp(at - 4, " && ", 4) == 0)) &&
            (!at[n] || strncmp(at + n, " && ", 4) == 0))
            return true;
    return false;
}

void variant_require(struct variant_condition *c, const char *text)
{
    if (requires(c, text))
        return;
    const char *all = c->any ? cg_launch_text(c->text.arena, "%s && %s", buf_text(&c->text), text)
                             : text;
    c->text.len = 0;
    buf_puts(&c->text, all);
    c->any = true;
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
    variant_require(c, cg_launch_text(g->a, "%s %% %u == 0", lang_expr_text(g->a, e), of));
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
    g->shared_text = NULL;
    g->block[0] = block;
    g->block[1] = g->block[2] = 1;
}

void variant_drop(struct cg *g, struct variant_set *all)
{
    g->module->items.n = all->items;
    g->func->items.n = 0; /* nobody wants them */
}

void variant_end(struct cg *g, struct variant_set *all, const struct variant_condition *c,
                 const char *grid, uint32_t block)
{
    g->func->reqntid[0] = block;
    g->func->reqntid[1] = g->func->reqntid[2] = 1;
    struct contract_launch *l = cg_launch(g, grid, arena_printf(g->a, "%u", block));
    if (c->any || all->n)
        l->when =
            contract_expr(g->a, g->contract, c->any ? buf_text((struct buf *)&c->text) : "true");
    if (g->shared_text)
        l->shared = contract_expr(g->a, g->contract, g->shared_text);
    all->n++;
    all->done = !c->any;
    cg_end(g, l);
}
