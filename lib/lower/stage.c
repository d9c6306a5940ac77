#include <config.h>

#include "lower/stage.h"

#include "lower/advice.h"
#include "lower/costly.h"
#include "lower/explain.h"
#include "lower/inouts.h"
#include "lower/lift.h"
#include "lower/narrow.h"
#include "lower/outline.h"
#include "lower/phases.h"
#include "lower/prefix.h"
#include "lower/regroup.h"
#include "lower/schedule.h"

enum { MOST_OUTPUTS = 64, MOST_RANK = 8 };

/* Outputs, of one shape at first. */
struct group {
    const struct lang_equation *eq[MOST_OUTPUTS];
    uint32_t n;
    bool done;       /* or being done */
    bool is_written; /* and what it reads is read */
};

struct groups {
    struct group *v;
    uint32_t n;
};

struct stages {
    struct cg *g;
    struct groups groups;
    const struct strategy *named; /* by the schedule */
    const struct strategy *last;  /* used */
    bool used;  /* the schedule's options were read by a strategy that takes them */
    bool aside; /* what is computed now is none of what the schedule speaks of */
    equation_list turned;
    size_t views; /* homes that symbols had before anything was stored: of the same memory */
    unsigned depth;
};

static struct groups group_outputs(struct cg *g)
{
    const struct lang_equations *eqs = &g->spec->compute;
    struct groups gs = {.v = ARENA_ARRAY(g->a, eqs->n, struct group)};
    for (size_t i = 0; i < eqs->n; i++) {
        const struct lang_symbol *t = eqs->v[i]->sym;
        uint32_t k = 0;
        if (t->kind != SYM_BUFFER)
            continue;
        while (k < gs.n &&
               (gs.v[k].n == MOST_OUTPUTS || !inspect_same_shape(gs.v[k].eq[0]->sym, t)))
            k++;
        if (k == gs.n)
            gs.n++;
        gs.v[k].eq[gs.v[k].n++] = eqs->v[i];
    }
    return gs;
}

/* ---- inouts ---------------------------------------------------------------------------------- */

static bool group_reads(struct cg *g, const struct group *r, const struct lang_symbol *buffer,
                        const struct lang_expr **other)
{
    const struct lower_stage s = {.eq = r->eq, .n = r->n};
    return inouts_read(g, &s, buffer, other);
}

/* Must group r run before group w? */
static bool must_precede(struct cg *g, const struct group *r, const struct group *w)
{
    const struct lang_expr *other;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->eq[i]->sym->mode == MODE_INOUT && group_reads(g, r, w->eq[i]->sym, &other))
            return true;
    return false;
}

static bool check_in_place(struct cg *g, const struct group *gr)
{
    const struct lang_expr *other = NULL;
    for (uint32_t i = 0; i < gr->n; i++) {
        const struct lang_symbol *t = gr->eq[i]->sym;
        if (t->mode == MODE_INOUT && group_reads(g, gr, t, &other) && other) {
            cg_error(g, other->span,
                     "'%s' is updated in place, so another thread may already have changed this "
                     "element of it",
                     t->name);
            diag_note(g->d, t->span, "give the old values as an 'in' parameter and make '%s' out",
                      t->name);
            return false;
        }
    }
    return true;
}

/* None of its inouts is still to be read by another group than `with` (NULL: than itself). */
static bool is_ready(struct cg *g, const struct groups *gs, uint32_t i, const struct group *with)
{
    bool ready = !gs->v[i].done;
    for (uint32_t k = 0; k < gs->n && ready; k++) {
        const struct group *r = &gs->v[k];
        ready = k == i || r == with || r->is_written || !must_precede(g, r, &gs->v[i]);
    }
    return ready;
}

static struct group *next_group(struct stages *p)
{
    for (uint32_t i = 0; i < p->groups.n; i++)
        if (is_ready(p->g, &p->groups, i, NULL))
            return &p->groups.v[i];
    cg_error(p->g, p->g->spec->name_span,
             "the outputs of different shapes are updated in place from each other, which no "
             "order of launches allows; make one of them out");
    return NULL;
}

/* ---- stages ---------------------------------------------------------------------------------- */

struct lower_stage *stage_of(struct cg *g, const struct lang_equation *const *eq, uint32_t n,
                             const char *entry)
{
    struct lower_stage *s = ARENA_NEW(g->a, struct lower_stage);
    const struct lang_equation **own = ARENA_ARRAY(g->a, n, const struct lang_equation *);
    memcpy(own, eq, n * sizeof *own);
    *s = (struct lower_stage){.eq = own, .n = n, .entry = entry};
    return s;
}

/* Nothing was stored or outlined since the form was found. */
static bool lower_with(struct stages *p, const struct lower_stage *s, struct choice how)
{
    struct cg *g = p->g;
    const struct strategy *st = how.by;
    const bool named = p->named && !p->aside;
    const bool taken = !p->aside && (named || schedule_takes(g, st));
    lower_explain(g, "%s: strategy %s%s\n", s->entry, st->name, named ? ", as scheduled" : "");
    report_part(g, s->entry, st->name, named);
    const void *options = taken ? schedule_read(g, st) : schedule_nothing(g, st);
    if (!options)
        return false;
    p->used |= taken;
    p->last = st;
    g->depth_told = false;
    bool good = st->lower(g, how.form, options) && !g->failed;
    for (uint32_t i = 0; good && i < s->n; i++)
        if (!g->depth_told && inspect_reduces(g, s->eq[i]->rhs))
            lower_depth(g, NULL);
    report_part_end(g);
    g->step++;
    return good;
}

static bool lower_group(struct stages *p, struct group *gr, const struct lang_symbol *part);
static bool turn(struct stages *p, const struct lower_stage *s, struct choice *how);

/* The intermediate gets a place in memory, for the stage that is made now to write. */
static void give_home(struct cg *g, const struct lang_symbol *t)
{
    *VEC_PUSH(g->a, &g->homes) = (struct cg_home){.sym = t, .temp = cg_temp_for(g, t)};
    lower_explain(g, "%s: '%s' is stored, to be computed once\n", g->spec->name, t->name);
}

/* Computes eq, and of the others after it in the list what the same strategy can compute along,
 * into temps. */
static bool store(struct stages *p, const equation_list *list, size_t first)
{
    struct cg *g = p->g;
    struct group gr = {.eq = {list->v[first]}, .n = 1};
    for (size_t i = first + 1; i < list->n && gr.n < MOST_OUTPUTS; i++) {
        const struct cg_home *home = cg_home_of(g, list->v[i]->sym);
        if (list->v[i]->sym->kind != SYM_TENSOR || (home && home->is_stored))
            continue;
        gr.eq[gr.n] = list->v[i];
        if (schedule_fits(g, stage_of(g, gr.eq, gr.n + 1, "")))
            gr.n++;
    }
    for (uint32_t i = 0; i < gr.n; i++)
        give_home(g, gr.eq[i]->sym);
    return lower_group(p, &gr, gr.eq[0]->sym);
}

/* The group that writes the output, if nothing stands against computing it now. */
static struct group *group_of(struct stages *p, const struct lang_equation *eq)
{
    for (uint32_t i = 0; i < p->groups.n; i++) {
        struct group *gr = &p->groups.v[i];
        for (uint32_t k = 0; k < gr->n; k++)
            if (gr->eq[k] == eq && !gr->done && is_ready(p->g, &p->groups, i, NULL))
                return gr;
    }
    return NULL;
}

/* Stores what the group reads again and again. False after an error; *any: something was stored. */
static bool store_costly(struct stages *p, const struct group *gr, bool *any)
{
    struct cg *g = p->g;
    const equation_list costly = costly_of(g, stage_of(g, gr->eq, gr->n, ""));
    *any = false;
    bool *streamed = ARENA_ARRAY(g->a, costly.n, bool);
    costly_find_streamed(g, stage_of(g, gr->eq, gr->n, ""), &costly, streamed);
    for (size_t i = 0; i < costly.n; i++) {
        const struct lang_equation *eq = costly.v[i];
        const struct cg_home *home = cg_home_of(g, eq->sym);
        if ((home && home->is_stored) || eq->nindex > MOST_RANK || streamed[i])
            continue;
        struct group *other = eq->sym->kind == SYM_TENSOR ? NULL : group_of(p, eq);
        if (eq->sym->kind != SYM_TENSOR && !other)
            continue;
        *any = true;
        if (other ? !lower_group(p, other, eq->sym) : !store(p, &costly, i))
            return false;
        /* rows of a product are best left to what does them all at once */
        if (p->last->takes_products && schedule_fits(g, stage_of(g, gr->eq, gr->n, "")))
            return true;
    }
    return true;
}

static bool is_product(struct cg *g, const struct lower_stage *s)
{
    struct buf why = buf_in(g->a);
    for (size_t i = 0; i < nstrategies; i++)
        if (strategies[i]->takes_products && schedule_analyse(g, strategies[i], s, &why))
            return true;
    return false;
}

static bool is_prefix(struct cg *g, const struct lower_stage *s)
{
    struct buf why = buf_in(g->a);
    for (size_t i = 0; i < nstrategies; i++)
        if (strategies[i]->takes_prefixes && schedule_analyse(g, strategies[i], s, &why))
            return true;
    return false;
}

/* Stores prefixes that have a name, wherever they are read, until what is left of the group fits:
 * those that go another way than others can't be computed with them. */
static bool store_prefixes(struct stages *p, const struct group *gr, bool *any)
{
    struct cg *g = p->g;
    const struct lower_stage *s = stage_of(g, gr->eq, gr->n, "");
    equation_list seen = {0}, all = {0};
    for (uint32_t i = 0; i < gr->n; i++)
        costly_find(g, gr->eq[i]->rhs, gr->eq[i], true, &seen, &all);
    for (size_t i = 0; i < all.n; i++) {
        const struct cg_home *home = cg_home_of(g, all.v[i]->sym);
        if ((home && home->is_stored) || all.v[i]->sym->kind != SYM_TENSOR ||
            !is_prefix(g, stage_of(g, &all.v[i], 1, "")))
            continue;
        *any = true;
        if (!store(p, &all, i))
            return false;
        if (schedule_fits(g, s))
            return true;
    }
    return true;
}

/* Stores sums of products and prefixes one by one, until what is left of the group fits; the last
 * is its own. */
static bool store_products(struct stages *p, const struct group *gr, bool *any)
{
    const struct lower_stage *s = stage_of(p->g, gr->eq, gr->n, "");
    *any = false;
    if (!store_prefixes(p, gr, any) || (*any && schedule_fits(p->g, s)))
        return !p->g->failed;
    for (uint32_t i = 0; i < gr->n; i++) {
        uint32_t from = 0;
        equation_list one = {0};
        while (outline_next(p->g, gr->eq[i], &from, &one)) {
            const struct lower_stage *alone = stage_of(p->g, one.v, 1, "");
            if (!is_product(p->g, alone) && !is_prefix(p->g, alone)) {
                outline_undo(p->g, &from);
                continue;
            }
            *any = true;
            if (!store(p, &one, 0))
                return false;
            if (schedule_fits(p->g, s))
                return true;
        }
    }
    return true;
}

/* Adds other groups that are ready and that the same strategy computes together with this one; the
 * stage of all. */
static const struct lower_stage *extend(struct stages *p, struct group *gr, struct choice *how,
                                        const struct lower_stage *s)
{
    for (uint32_t i = 0; i < p->groups.n; i++) {
        struct group *other = &p->groups.v[i];
        if (other == gr || other->done || gr->n + other->n > MOST_OUTPUTS ||
            !is_ready(p->g, &p->groups, i, gr))
            continue;
        memcpy(gr->eq + gr->n, other->eq, other->n * sizeof *other->eq);
        const struct lower_stage *both = stage_of(p->g, gr->eq, gr->n + other->n, s->entry);
        struct buf why = buf_in(p->g->a);
        void *form = schedule_analyse(p->g, how->by, both, &why);
        if (!form)
            continue;
        gr->n = both->n;
        how->form = form;
        s = both;
        other->done = other->is_written = true;
    }
    return s;
}

static bool is_tensor_without_home(const struct cg *g, const struct lang_equation *eq)
{
    return eq->sym->kind == SYM_TENSOR && !cg_home_of(g, eq->sym) && eq->nindex <= MOST_RANK;
}

/* The group's stage computes what another group needs stored, too: a row's maximum and sum for the
 * logarithm of the sum, and then for the product. It stores that along, so that there is no second
 * pass. */
static const struct lower_stage *store_along(struct stages *p, struct group *gr, struct choice *how,
                                             const struct lower_stage *s)
{
    struct cg *g = p->g;
    struct buf why = buf_in(g->a);
    equation_list mine = {0}, rest = {0};
    const uint32_t own = gr->n;
    for (uint32_t i = 0; i < own; i++)
        costly_find(g, gr->eq[i]->rhs, gr->eq[i], false, &mine, &rest);
    for (uint32_t k = 0; k < p->groups.n && mine.n; k++) {
        const struct group *other = &p->groups.v[k];
        equation_list seen = {0}, costly = {0};
        if (other == gr || other->done || schedule_fits(g, stage_of(g, other->eq, other->n, "")))
            continue;
        for (uint32_t i = 0; i < own; i++) /* what it reads of these will be in memory */
            *VEC_PUSH(g->a, &seen) = gr->eq[i];
        for (uint32_t i = 0; i < other->n; i++)
            costly_find(g, other->eq[i]->rhs, other->eq[i], false, &seen, &costly);
        for (size_t i = 0; i < costly.n && gr->n < MOST_OUTPUTS; i++) {
            gr->eq[gr->n] = costly.v[i];
            const struct lower_stage *both = stage_of(g, gr->eq, gr->n + 1, s->entry);
            if (!costly_has(&mine, costly.v[i]) || !is_tensor_without_home(g, costly.v[i]) ||
                !schedule_analyse(g, how->by, both, &why))
                continue;
            give_home(g, costly.v[i]->sym);
            gr->n++;
        }
    }
    if (gr->n == own)
        return s;
    s = stage_of(g, gr->eq, gr->n, s->entry); /* whose form may depend on the new homes */
    how->form = schedule_analyse(g, how->by, s, &why);
    return s;
}

/* What it computed is in memory from now on. */
static void mark_stored(struct cg *g, const struct group *gr)
{
    g->reducing->v.n = 0;
    for (uint32_t i = 0; i < gr->n; i++) {
        const struct lang_symbol *t = gr->eq[i]->sym;
        struct cg_home *home = cg_home_of(g, t);
        bool costly = inspect_reduces(g, gr->eq[i]->rhs);
        if (home)
            home->is_stored = true;
        else if (t->mode == MODE_OUT && costly)
            *VEC_PUSH(g->a, &g->homes) = (struct cg_home){.sym = t, .temp = t, .is_stored = true};
    }
    g->reducing->v.n = 0; /* what was found out before it was stored */
}

/* Nothing in it is updated in place, so that its equations may be computed one after the other. */
static bool can_split(const struct group *gr)
{
    for (uint32_t i = 0; i < gr->n; i++)
        if (gr->eq[i]->sym->mode == MODE_INOUT)
            return false;
    return gr->n > 1;
}

static bool fits(struct stages *p, const struct group *gr)
{
    return schedule_fits(p->g, stage_of(p->g, gr->eq, gr->n, ""));
}

static bool may_stream(struct stages *p, const struct group *gr)
{
    return costly_may_stream(p->g, stage_of(p->g, gr->eq, gr->n, ""));
}

/* The outputs that go together, again and again: what one of them stores the next may read. */
static bool split_group(struct stages *p, const struct group *gr,
                        bool (*together)(struct stages *p, const struct group *part))
{
    bool done[MOST_OUTPUTS] = {0};
    for (;;) {
        struct group part = {0};
        uint32_t first = gr->n;
        for (uint32_t i = gr->n; i-- > 0;)
            first = done[i] ? first : i;
        if (first == gr->n)
            break;
        for (uint32_t i = first; i < gr->n; i++) {
            part.eq[part.n++] = gr->eq[i];
            if (done[i] || !together(p, &part))
                part.n--;
            else
                done[i] = true;
        }
        if (part.n == 0) { /* none fits: one less */
            part.eq[part.n++] = gr->eq[first];
            done[first] = true;
        }
        if (!lower_group(p, &part, part.eq[0]->sym))
            return false;
    }
    p->depth--;
    return true;
}

/* Chooses a strategy for whole rows or columns, after ranges from 0 to some end were made whole.
 * None: that is no help. */
static struct choice widened(struct stages *p, const struct lower_stage *s)
{
    struct cg *g = p->g;
    const struct choice none = {NULL, NULL};
    const size_t mark = g->outlined.n;
    if (!prefix_widen(g, s))
        return none;
    const struct choice how = schedule_first_whole(g, s);
    if (how.by) {
        lower_explain(g, "%s: ranges that end before their dimension are conditions\n", s->entry);
        return how;
    }
    prefix_undo(g, mark);
    return none;
}

/* Chooses a strategy that is named, or the last, which takes whatever is of one shape. No form:
 * after an error. */
static struct choice chosen(struct cg *g, const struct strategy *st, const struct lower_stage *s)
{
    struct buf why = buf_in(g->a);
    const struct choice how = {st, schedule_analyse(g, st, s, &why)};
    if (!how.form)
        cg_error(g, schedule_span(g, "strategy"), "strategy '%s' does not fit: %s", st->name,
                 why.len ? buf_text(&why) : "it is for something else altogether");
    return how;
}

/* How the group is computed, after what is better stored has been. None, and true: by its parts.
 * False after an error. */
static bool choose(struct stages *p, struct group *gr, const struct lower_stage *s,
                   struct choice *how)
{
    bool any = false;
    if (!store_costly(p, gr, &any))
        return false;
    if (any)
        *how = schedule_first(p->g, s);
    if (!how->by && !store_products(p, gr, &any))
        return false;
    if (!how->by && any)
        *how = schedule_first(p->g, s);
    if (!how->by && !can_split(gr))
        *how = chosen(p->g, schedule_last(), s);
    return !how->by || how->form;
}

static bool lower_group(struct stages *p, struct group *gr, const struct lang_symbol *part)
{
    enum { MOST_DEPTH = 64 };
    struct cg *g = p->g;
    const char *entry = part         ? lower_entry_name(p->g, part->name)
                        : g->is_rest ? lower_entry_name(p->g, "rest")
                                     : g->spec->name;
    const struct lower_stage *s = stage_of(g, gr->eq, gr->n, entry);
    *VEC_PUSH(g->a, &g->entries) = entry;
    gr->done = true;
    if (++p->depth > MOST_DEPTH)
        return cg_error(g, gr->eq[0]->span, "the equations depend on each other too deeply");
    struct choice how = schedule_first(g, s);
    how = how.by ? how : widened(p, s);
    if (how.by && part)
        s = extend(p, gr, &how, s);
    else if (!how.by && can_split(gr) && costly_stream_apart(g, s))
        return gr->is_written = split_group(p, gr, may_stream);
    else if (!how.by && !choose(p, gr, s, &how))
        return false;
    else if (how.by && how.by->streams && part)
        s = extend(p, gr, &how, s); /* what others need of it may be in memory now */
    if (!how.by)
        return gr->is_written = split_group(p, gr, fits);
    if (how.by == schedule_last())
        advise_naive(g, s);
    else if (part)
        s = store_along(p, gr, &how, s);
    p->depth--;
    if ((!how.by->minds_inouts && !check_in_place(g, gr)) || !turn(p, s, &how) ||
        !lower_with(p, s, how))
        return false;
    mark_stored(g, gr);
    return gr->is_written = true;
}

/* ---- what is turned first ---------------------------------------------------------------------
 */

static void explain_turned(struct cg *g, const struct lang_symbol *t, bool computed)
{
    struct lang_expr *bytes = lx_int(g->a, dtype_bits(t->type) / 8);
    for (uint32_t i = 0; i < t->rank; i++)
        bytes = lx_mul(g->a, bytes, t->dims[i]);
    lower_explain(g, "%s: '%s' is %s in a launch of its own: %s bytes\n", g->spec->name, t->name,
                  computed ? "computed" : "turned", lang_expr_text(g->a, bytes));
}

/* Are both the same of the equations' indices, one after the other? */
static bool same_of_indices(const struct lang_equation *p, const struct lang_expr *x,
                            const struct lang_equation *q, const struct lang_expr *y)
{
    for (uint32_t i = 0; i < p->nindex && x->kind == E_NAME && y->kind == E_NAME; i++)
        if (x->sym == p->index[i] || y->sym == q->index[i])
            return x->sym == p->index[i] && y->sym == q->index[i];
    if (!inspect_same_node(x, y))
        return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!same_of_indices(p, x->args[i], q, y->args[i]))
            return false;
    return !x->pad || same_of_indices(p, x->pad, q, y->pad);
}

/* The temp that has what the equation says, for another stage; NULL: there is none. */
static const struct lang_symbol *turned_before(const struct stages *p,
                                               const struct lang_equation *eq)
{
    for (size_t i = 0; i < p->turned.n; i++) {
        const struct lang_equation *old = p->turned.v[i];
        if (old->nindex == eq->nindex && old->sym->type == eq->sym->type &&
            inspect_same_shape(old->sym, eq->sym) && same_of_indices(old, old->rhs, eq, eq->rhs))
            return cg_home_of(p->g, old->sym)->temp;
    }
    return NULL;
}

/* Brings what the stage reads into the order that its strategy wants, if that is worth launches of
 * their own; then its form is another. */
static bool turn(struct stages *p, const struct lower_stage *s, struct choice *how)
{
    struct cg *g = p->g;
    struct lower_turned turned;
    struct buf why = buf_in(g->a);
    const bool taken = p->named || schedule_takes(g, how->by);
    if (!how->by->turn)
        return true;
    const void *options = taken ? schedule_read(g, how->by) : schedule_nothing(g, how->by);
    if (!options)
        return false;
    if (!how->by->turn(g, s, how->form, options, &turned))
        return !g->failed;
    p->aside = true;
    for (uint32_t i = 0; i < turned.n; i++) {
        const struct lang_equation *eq = turned.eq[i];
        struct group one = {.eq = {eq}, .n = 1};
        const struct lang_symbol *before = turned_before(p, eq);
        if (before) {
            *VEC_PUSH(g->a, &g->homes) =
                (struct cg_home){.sym = eq->sym, .temp = before, .is_stored = true};
            continue;
        }
        *VEC_PUSH(g->a, &p->turned) = eq;
        explain_turned(g, eq->sym, turned.computed);
        *VEC_PUSH(g->a, &g->homes) =
            (struct cg_home){.sym = eq->sym, .temp = cg_temp_for(g, eq->sym)};
        if (!lower_group(p, &one, eq->sym))
            return false;
    }
    p->aside = false;
    how->form = schedule_analyse(g, how->by, s, &why);
    return how->form || cg_error(g, s->eq[0]->span, "%s", buf_text(&why));
}

/* Everything in one stage, where a strategy can. */
static bool lower_whole(struct stages *p, bool *done)
{
    struct cg *g = p->g;
    struct group all = {0};
    if (!p->named && p->groups.n == 1)
        return true; /* as a group it is the same */
    for (uint32_t i = 0; i < p->groups.n; i++)
        for (uint32_t k = 0; k < p->groups.v[i].n; k++)
            if (all.n < MOST_OUTPUTS)
                all.eq[all.n++] = p->groups.v[i].eq[k];
            else
                return true; /* in several */
    if (p->named == schedule_last())
        return true; /* shape by shape */
    const struct lower_stage *s = stage_of(g, all.eq, all.n, g->spec->name);
    struct choice how = p->named ? chosen(g, p->named, s) : schedule_first(g, s);
    if (!how.by)
        return true;
    *done = true;
    return how.form && (how.by->minds_inouts || check_in_place(g, &all)) && turn(p, s, &how) &&
           lower_with(p, s, how);
}

/* Shape by shape, as scheduled. */
static bool lower_naively(struct stages *p)
{
    for (uint32_t i = 0; i < p->groups.n; i++) {
        struct group *gr = next_group(p);
        if (!gr)
            return false;
        const char *entry = p->groups.n > 1 ? lower_entry_name(p->g, gr->eq[0]->sym->name)
                                            : p->g->spec->name;
        const struct lower_stage *s = stage_of(p->g, gr->eq, gr->n, entry);
        gr->done = gr->is_written = true;
        if (!check_in_place(p->g, gr))
            return false;
        const struct choice how = chosen(p->g, p->named, s);
        if (!how.form || !lower_with(p, s, how))
            return false;
    }
    return true;
}

static bool lower_groups(struct stages *p)
{
    for (;;) {
        bool left = false;
        for (uint32_t i = 0; i < p->groups.n; i++)
            left |= !p->groups.v[i].done;
        if (!left)
            return true;
        struct group *gr = next_group(p);
        if (!gr || !lower_group(p, gr, p->groups.n > 1 ? gr->eq[0]->sym : NULL))
            return false;
    }
}

static bool fit_alone(struct stages *p, const equation_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!schedule_fits(p->g, stage_of(p->g, list->v + i, 1, "")))
            return false;
    return true;
}

/* Stores sums by phases of their strides, as far as a strategy takes them. */
static bool store_phases(struct stages *p)
{
    phases_list all = {0};
    phases_split(p->g, &all);
    for (size_t i = 0; i < all.n; i++) {
        const equation_list *z = &all.v[i].z;
        if (!fit_alone(p, z)) {
            phases_undo(p->g, &all.v[i]);
            continue;
        }
        for (size_t k = 0; k < z->n; k++) {
            const equation_list alone = {.v = z->v + k, .n = 1};
            if (!store(p, &alone, 0))
                return false;
        }
    }
    return true;
}

/* The same by other launches, for the sizes that those so far are not for. */
static bool lower_rest(struct stages *p)
{
    struct cg *g = p->g;
    struct lang_expr *const none = lx_int(g->a, 0);
    const size_t first = g->contract->launches.n;
    p->groups = group_outputs(g);
    g->is_rest = true;
    g->homes.n = p->views;
    for (size_t i = 0; i < p->views; i++) /* what the others store is not there for these sizes */
        g->homes.v[i].is_stored = g->homes.v[i].sym->mode == MODE_IN;
    lower_explain(g, "%s: where not %s\n", g->spec->name, lang_expr_text(g->a, g->covered));
    if (!lower_groups(p))
        return false;
    for (size_t i = first; i < g->contract->launches.n; i++) {
        struct contract_launch *l = &g->contract->launches.v[i];
        l->grid[0] = lx_select(g->a, g->covered, none, l->grid[0] ? l->grid[0] : lx_int(g->a, 1));
    }
    return true;
}

bool stages_lower(struct cg *g)
{
    bool good, done = false;
    regroup_axes(g);
    struct stages p = {.g = g, .groups = group_outputs(g), .views = g->homes.n};
    explain_equations(g);
    narrow_reductions(g);
    lift_reductions(g);
    p.named = schedule_named(g, &good);
    if (!good || (!p.named && !store_phases(&p)) || !lower_whole(&p, &done))
        return false;
    if (!done && !(p.named ? lower_naively(&p) : lower_groups(&p)))
        return false;
    if (g->covered && !lower_rest(&p))
        return false;
    return p.used || g->spec->schedule.n == 0 || schedule_refuse(g, p.last);
}
