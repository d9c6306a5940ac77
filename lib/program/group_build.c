/* How many equations are one kernel: as many as mean the same together, and compile. */
#include <config.h>

#include "program/group.h"

/* The first equations of v, as many as fit but at most n; rest: those behind them. */
static bool gather(struct builder *b, struct lang_step *const *v, uint32_t n, struct group *g)
{
    bool fits = true;
    *g = (struct group){.b = b};
    for (uint32_t i = 0; i < n && fits; i++)
        if (!group_take(g, v[i], &fits))
            return false;
    group_settle_numbers(g);
    return true;
}

/* The last equation but the first that changes what others of the group have read. */
static uint32_t last_update(const struct group *g)
{
    uint32_t k = (uint32_t)g->v.n - 1;
    while (k > 0 && !(g->v.v[k].to && g->v.v[k].to->read))
        k--;
    return k;
}

/* Can it be compiled? Only what changes buffers in place may be refused. */
static bool compiles(struct group *g)
{
    const struct program_options *opt = g->b->opt;
    const uint32_t k = last_update(g);
    if (!opt->compiles || k == 0)
        return true;
    struct spec *s = group_read(g, group_name(g), false, diags_new(g->b->a));
    return !s || opt->compiles(opt->ctx, s);
}

/* The largest group that v begins with. */
static bool settle(struct builder *b, struct lang_step *const *v, uint32_t n,
                   struct lang_step *const *rest, uint32_t nrest, struct group *g)
{
    for (uint32_t most = n;; most = last_update(g)) {
        if (!gather(b, v, most, g))
            return false;
        group_escapes(g, v + g->v.n, n - (uint32_t)g->v.n);
        group_escapes(g, rest, nrest);
        if (!group_shapes(g, group_name(g)) || !group_check_stores(g, group_name(g)))
            return false;
        if (group_is_dead(g) || compiles(g))
            return true;
    }
}

bool build_group(struct builder *b, struct lang_step *const *v, uint32_t n,
                 struct lang_step *const *rest, uint32_t nrest, step_list *out)
{
    struct group g;
    for (uint32_t i = 0; i < n; i += (uint32_t)g.v.n) {
        struct lang_call_step call;
        if (!settle(b, v + i, n - i, rest, nrest, &g))
            return false;
        if (group_is_dead(&g)) {
            if (!group_check(&g))
                return false;
            continue;
        }
        if (!group_finish(&g, &call))
            return false;
        *VEC_PUSH(b->a, out) = call_step(b, &call, v[i]->span);
    }
    return true;
}

bool build_asked(struct builder *b, struct lang_expr *cond, struct span at,
                 struct lang_call_step *out)
{
    struct lang_step *s = ARENA_NEW(b->a, struct lang_step);
    struct group g = {.b = b};
    *s = (struct lang_step){.kind = STEP_EQUATION, .span = at};
    s->equation = (struct lang_equation_step){
        .name = group_own_name(&g, "go", ""), .name_span = at, .rhs = cond, .rhs_span = at};
    if (!gather(b, &s, 1, &g))
        return false;
    g.asks = true;
    g.locals.v[0].escapes = true;
    return group_shapes(&g, group_name(&g)) && group_finish(&g, out);
}
