#include <config.h>

#include "lower/costly.h"

#include "lower/schedule.h"
#include "lower/stage.h"

bool costly_has(const equation_list *l, const struct lang_equation *eq)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] == eq)
            return true;
    return false;
}

/* Is it read at the very element that is computed, so that every element of it is read once? */
static bool read_in_place(const struct lang_expr *e, const struct lang_equation *by)
{
    return e->nargs == by->nindex && inspect_is_in_place(e, by);
}

/* Is a reduction made for each element of the equation: in its own right side, or in that of what
 * it reads in place? Those in the list will be stored. */
static bool reduces_in_place(struct cg *g, const struct lang_expr *e,
                             const struct lang_equation *by, const equation_list *stored,
                             equation_list *seen)
{
    e = cg_view(g, e);
    if (e->kind == E_REDUCE)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (reduces_in_place(g, e->args[i], by, stored, seen))
            return true;
    if (e->pad && reduces_in_place(g, e->pad, by, stored, seen))
        return true;
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && e->sym->kind == SYM_TENSOR);
    if (!tensor || !cg_is_defined(g, e->sym) || !read_in_place(e, by))
        return false;
    const struct lang_equation *eq = e->sym->def;
    if (costly_has(stored, eq) || costly_has(seen, eq))
        return false;
    *VEC_PUSH(g->a, seen) = eq;
    return reduces_in_place(g, eq->rhs, eq, stored, seen);
}

/* The costly equations that e reads and that nothing has stored yet, deepest first. within: of a
 * reduction, or of what is made for each of its terms. */
void costly_find(struct cg *g, const struct lang_expr *e, const struct lang_equation *by,
                 bool within, equation_list *seen, equation_list *out)
{
    e = cg_view(g, e);
    within |= e->kind == E_REDUCE;
    for (uint32_t i = 0; i < e->nindex; i++) {
        if (e->index[i]->low)
            costly_find(g, e->index[i]->low, by, within, seen, out);
        costly_find(g, e->index[i]->dims[0], by, within, seen, out);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        costly_find(g, e->args[i], by, within, seen, out);
    if (e->pad)
        costly_find(g, e->pad, by, within, seen, out);
    bool tensor = e->kind == E_INDEX ||
                  (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR || e->sym->kind == SYM_BUFFER));
    if (!tensor || !cg_is_defined(g, e->sym))
        return;
    const struct lang_equation *eq = e->sym->def;
    if (!costly_has(seen, eq)) {
        *VEC_PUSH(g->a, seen) = eq;
        costly_find(g, eq->rhs, eq, within && !inspect_reduction(g, eq->rhs), seen, out);
    }
    equation_list others = {0};
    if ((within || !read_in_place(e, by)) && !costly_has(out, eq) &&
        reduces_in_place(g, eq->rhs, eq, out, &others))
        *VEC_PUSH(g->a, out) = eq;
}

/* Does e depend on the equation, through what nothing has stored? seen: equations that don't. */
static bool depends(struct cg *g, const struct lang_expr *e, const struct lang_equation *on,
                    equation_list *seen)
{
    e = cg_view(g, e);
    for (uint32_t i = 0; i < e->nindex; i++)
        if ((e->index[i]->low && depends(g, e->index[i]->low, on, seen)) ||
            depends(g, e->index[i]->dims[0], on, seen))
            return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (depends(g, e->args[i], on, seen))
            return true;
    if (e->pad && depends(g, e->pad, on, seen))
        return true;
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && e->sym->kind == SYM_TENSOR);
    if (!tensor || !cg_is_defined(g, e->sym) || costly_has(seen, e->sym->def))
        return false;
    if (e->sym->def == on || depends(g, e->sym->def->rhs, on, seen))
        return true;
    *VEC_PUSH(g->a, seen) = e->sym->def;
    return false;
}

/* How often costly equations are between one of them and what is in memory, 1 at least. */
static void find_levels(struct cg *g, const equation_list *costly, uint32_t *level)
{
    for (size_t i = 0; i < costly->n; i++) {
        level[i] = 1;
        for (size_t k = 0; k < i; k++) { /* they come after those that they depend on */
            equation_list seen = {0};
            if (level[k] >= level[i] && depends(g, costly->v[i]->rhs, costly->v[k], &seen))
                level[i] = level[k] + 1;
        }
    }
}

/* Does a strategy stream through the stage's intermediates, if these of the costly ones are
 * stored? */
static bool streams(struct cg *g, const struct lower_stage *s, const equation_list *costly,
                    const bool *stored)
{
    const size_t homes = g->homes.n;
    struct buf why = buf_in(g->a);
    bool fits = false;
    for (size_t i = 0; i < costly->n; i++)
        if (stored[i] && !cg_home_of(g, costly->v[i]->sym))
            *VEC_PUSH(g->a, &g->homes) = (struct cg_home){
                .sym = costly->v[i]->sym, .temp = costly->v[i]->sym, .is_stored = true};
    g->reducing->v.n = 0;
    for (size_t i = 0; i < nstrategies && !fits; i++)
        fits = strategies[i]->streams && schedule_analyse(g, strategies[i], s, &why);
    g->homes.n = homes;
    g->reducing->v.n = 0;
    return fits;
}

/* Does e read the equation, with no other costly one in between? */
static bool reads_directly(struct cg *g, const struct lang_expr *e, const equation_list *costly,
                           const struct lang_equation *eq)
{
    equation_list others = {0};
    for (size_t i = 0; i < costly->n; i++)
        if (costly->v[i] != eq)
            *VEC_PUSH(g->a, &others) = costly->v[i];
    return depends(g, e, eq, &others);
}

/* Does somebody else than the stage and what it streams want the equation, too? */
static bool is_wanted(struct cg *g, const struct lower_stage *all, const struct lower_stage *s,
                      const equation_list *costly, const bool *inside,
                      const struct lang_equation *eq)
{
    bool own = false;
    for (uint32_t i = 0; i < all->n; i++) {
        for (uint32_t k = 0; k < s->n; k++)
            own |= s->eq[k] == all->eq[i];
        if (!own && reads_directly(g, all->eq[i]->rhs, costly, eq))
            return true;
    }
    for (size_t i = 0; i < costly->n; i++)
        if (!inside[i] && costly->v[i] != s->eq[0] &&
            reads_directly(g, costly->v[i]->rhs, costly, eq))
            return true;
    return false;
}

/* Those that the stage needs and that have fewer indices than others, which are larger. */
static bool stores_smaller(struct cg *g, const struct lower_stage *s, const equation_list *costly,
                           const bool *needs, bool *stored)
{
    uint32_t most = 0;
    for (size_t i = 0; i < costly->n; i++)
        most = needs[i] && costly->v[i]->nindex > most ? costly->v[i]->nindex : most;
    for (size_t i = 0; i < costly->n; i++)
        stored[i] = needs[i] && costly->v[i]->nindex < most;
    return streams(g, s, costly, stored);
}

/* Which of the costly equations that the stage needs are stored best, if a strategy streams through
 * others? Those up to the least level that will do; or those that are in its way one by one; or the
 * smaller ones. False: none streams. */
static bool choose_stored(struct cg *g, const struct lower_stage *s, const equation_list *costly,
                          const uint32_t *level, const bool *needs, bool *stored)
{
    enum { MOST_LEVELS = 8, MOST_NEEDED = 16 };
    uint32_t deepest = 0, needed = 0;
    for (size_t i = 0; i < costly->n; i++) {
        deepest = needs[i] && level[i] > deepest ? level[i] : deepest;
        needed += needs[i];
    }
    for (uint32_t l = 0; l < deepest && l < MOST_LEVELS; l++) {
        for (size_t i = 0; i < costly->n; i++)
            stored[i] = level[i] <= l;
        if (streams(g, s, costly, stored))
            return true;
    }
    bool any = false, more = needed <= MOST_NEEDED;
    memcpy(stored, needs, costly->n * sizeof *stored);
    while (more) {
        more = false;
        for (size_t i = costly->n; i-- > 0;) {
            if (!needs[i] || !stored[i])
                continue;
            stored[i] = false;
            const bool fits = streams(g, s, costly, stored);
            stored[i] = !fits;
            any |= fits;
            more |= fits;
        }
    }
    return any || stores_smaller(g, s, costly, needs, stored);
}

/* Which of the costly equations does the stage depend on? */
static void find_needed(struct cg *g, const struct lower_stage *s, const equation_list *costly,
                        bool *needs)
{
    for (size_t i = 0; i < costly->n; i++) {
        needs[i] = false;
        for (uint32_t k = 0; k < s->n; k++) {
            equation_list seen = {0};
            needs[i] |= depends(g, s->eq[k]->rhs, costly->v[i], &seen);
        }
    }
}

/* Leaves to a strategy that streams what it computes of the stage as it goes: it need not be
 * stored. */
static void leave_streamed(struct cg *g, const struct lower_stage *all, const struct lower_stage *s,
                           const equation_list *costly, const uint32_t *level, bool *streamed)
{
    bool needs[MOST_COSTLY], stored[MOST_COSTLY];
    find_needed(g, s, costly, needs);
    if (!choose_stored(g, s, costly, level, needs, stored))
        return;
    for (size_t i = 0; i < costly->n; i++)
        needs[i] &= !stored[i];
    for (size_t i = 0; i < costly->n; i++)
        if (needs[i] && is_wanted(g, all, s, costly, needs, costly->v[i]))
            return;
    for (size_t i = 0; i < costly->n; i++)
        streamed[i] |= needs[i];
}

/* Which costly equations are better left to what a strategy streams, of the stage or of later
 * ones? */
void costly_find_streamed(struct cg *g, const struct lower_stage *all, const equation_list *costly,
                          bool *streamed)
{
    uint32_t level[MOST_COSTLY];
    memset(streamed, 0, costly->n * sizeof *streamed);
    if (costly->n > MOST_COSTLY)
        return;
    find_levels(g, costly, level);
    leave_streamed(g, all, all, costly, level, streamed);
    for (size_t i = costly->n; i-- > 0;)
        if (!streamed[i])
            leave_streamed(g, all, stage_of(g, &costly->v[i], 1, ""), costly, level, streamed);
}

/* Leaves out what is cheap once the others are stored. */
static void drop_cheap(struct cg *g, equation_list *costly)
{
    size_t n = 0;
    for (size_t i = 0; i < costly->n; i++) {
        equation_list seen = {0};
        if (reduces_in_place(g, costly->v[i]->rhs, costly->v[i], costly, &seen))
            costly->v[n++] = costly->v[i];
    }
    costly->n = n;
}

/* The costly equations that the stage needs, deepest first. */
equation_list costly_of(struct cg *g, const struct lower_stage *all)
{
    equation_list seen = {0}, costly = {0};
    for (uint32_t i = 0; i < all->n; i++) {
        *VEC_PUSH(g->a, &seen) = all->eq[i];
        costly_find(g, all->eq[i]->rhs, all->eq[i], false, &seen, &costly);
        outline_reductions(g, all->eq[i], &costly);
    }
    drop_cheap(g, &costly);
    return costly;
}

/* Does a strategy stream through some of what the stage needs, the rest being stored? */
bool costly_may_stream(struct cg *g, const struct lower_stage *all)
{
    const equation_list costly = costly_of(g, all);
    bool needs[MOST_COSTLY], stored[MOST_COSTLY];
    uint32_t level[MOST_COSTLY];
    if (costly.n > MOST_COSTLY)
        return false;
    find_levels(g, &costly, level);
    find_needed(g, all, &costly, needs);
    return choose_stored(g, all, &costly, level, needs, stored);
}

/* Is each of the stage's equations streamed, but not all of them in one pass? */
bool costly_stream_apart(struct cg *g, const struct lower_stage *all)
{
    if (costly_may_stream(g, all))
        return false;
    for (uint32_t i = 0; i < all->n; i++)
        if (!costly_may_stream(g, stage_of(g, &all->eq[i], 1, "")))
            return false;
    return true;
}
