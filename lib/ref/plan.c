#include <config.h>

#include "ref/plan.h"

enum { NONE = 255, UNREAD = 254 };

/* Rows of a sample, at least, and where one holds a slab or more: gradients' row is a head's, with
 * all of its scores. A group with fewer rows than FEW is no help for a sample. */
enum { LEAST_ROWS = 16, LEAST_LARGE_ROWS = 2, FEW = 64 };
/* A problem of no more than this part of a slab is sampled by elements. */
static const double SMALL_SAMPLE = 0x1p-6;

struct planner {
    struct arena *a;
    const struct ref_input *in;
    struct plan *p;
    bool sampled;
    uint64_t largest; /* elements of a parameter */
};

/* ---- what reads what, and where -------------------------------------------------------------- */

static uint8_t position_of(const struct lang_equation *eq, const struct lang_expr *e)
{
    for (uint32_t k = 0; k < eq->nindex && e->kind == E_NAME; k++)
        if (eq->index[k] == e->sym)
            return (uint8_t)k;
    return NONE;
}

/* at: by dimension of sym, the index of eq that stands there in all that e reads of it; NONE: there
 * is none. */
static void note_reads(const struct lang_equation *eq, const struct lang_expr *e,
                       const struct lang_symbol *sym, uint8_t *at)
{
    const bool reads = (e->kind == E_INDEX || e->kind == E_NAME) && e->sym == sym &&
                       sym->mode != MODE_INOUT;
    for (uint32_t d = 0; reads && d < sym->rank; d++) {
        const uint8_t k = d < e->nargs ? position_of(eq, e->args[d]) : NONE;
        at[d] = at[d] == UNREAD || at[d] == k ? k : NONE;
    }
    if (reads && !sym->rank)
        at[0] = NONE;
    for (uint32_t k = 0; k < e->nargs; k++)
        note_reads(eq, e->args[k], sym, at);
    for (uint32_t k = 0; e->kind == E_REDUCE && k < e->nindex; k++) {
        note_reads(eq, e->index[k]->dims[0], sym, at);
        if (e->index[k]->low)
            note_reads(eq, e->index[k]->low, sym, at);
    }
    if (e->kind == E_INDEX && e->pad)
        note_reads(eq, e->pad, sym, at);
}

/* Does equation k read t, and with which indices? */
static bool reads(const struct plan *p, size_t k, size_t t, uint8_t at[MAX_RANK])
{
    memset(at, UNREAD, MAX_RANK);
    note_reads(p->eq[k].src, p->eq[k].src->rhs, p->eq[t].src->sym, at);
    return at[0] != UNREAD;
}

static const struct plan_member *member_of(const struct plan_group *g, size_t k)
{
    for (size_t m = 0; m < g->member.n; m++)
        if (g->member.v[m].equation == k)
            return &g->member.v[m];
    return NULL;
}

/* ---- groups ---------------------------------------------------------------------------------- */

uint64_t plan_rows(const struct plan_group *g)
{
    uint64_t rows = 1;
    for (uint32_t d = 0; d < g->rank; d++)
        rows *= g->extent[d];
    return rows;
}

double plan_row_bytes(const struct plan *p, const struct plan_group *g)
{
    double bytes = 0;
    for (size_t m = 0; m < g->member.n; m++)
        if (!p->eq[g->member.v[m].equation].whole)
            bytes += 2 * sizeof(double) * (double)p->eq[g->member.v[m].equation].count;
    return bytes / fmax((double)plan_rows(g), 1);
}

/* Where t has the group's dimension g, which a member has in place `own`, as this member reads
 * it. */
static uint8_t place_of(const struct plan_equation *t, const uint8_t *at, uint8_t own,
                        uint64_t extent)
{
    for (uint32_t d = 0; d < t->src->nindex; d++)
        if (at[d] == own && t->shape[d] == extent)
            return (uint8_t)d;
    return NONE;
}

/* By dimension of the group, where t has it for all members that read it; NONE: nowhere. False: no
 * member reads it. */
static bool places_of(const struct plan *p, const struct plan_group *g, size_t t,
                      uint8_t place[MAX_RANK])
{
    uint8_t at[MAX_RANK];
    bool any = false;
    memset(place, UNREAD, MAX_RANK);
    for (size_t m = 0; m < g->member.n; m++) {
        const struct plan_member *w = &g->member.v[m];
        if (!reads(p, w->equation, t, at))
            continue;
        any = true;
        for (uint32_t d = 0; d < g->rank; d++) {
            const uint8_t k = place_of(&p->eq[t], at, w->dim[d], g->extent[d]);
            place[d] = place[d] == UNREAD || place[d] == k ? k : NONE;
        }
    }
    return any;
}

/* Keeps those dimensions of the group that t has, too. */
static void restrict_to(struct plan_group *g, uint8_t place[MAX_RANK])
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < g->rank; d++) {
        if (place[d] == NONE)
            continue;
        for (size_t m = 0; m < g->member.n; m++)
            g->member.v[m].dim[n] = g->member.v[m].dim[d];
        g->extent[n] = g->extent[d];
        place[n++] = place[d];
    }
    g->rank = n;
}

static uint64_t rows_left(const struct plan_group *g, const uint8_t place[MAX_RANK])
{
    uint64_t rows = 1;
    for (uint32_t d = 0; d < g->rank; d++)
        rows *= place[d] == NONE ? 1 : g->extent[d];
    return rows;
}

static void add_member(const struct planner *w, struct plan_group *g, size_t k,
                       const uint8_t place[MAX_RANK])
{
    struct plan_member *m = VEC_PUSH(w->a, &g->member);
    m->equation = k;
    memcpy(m->dim, place, MAX_RANK);
    for (size_t i = g->member.n - 1; i > 0 && g->member.v[i - 1].equation > k; i--) {
        const struct plan_member other = g->member.v[i - 1];
        g->member.v[i - 1] = g->member.v[i];
        g->member.v[i] = other;
    }
}

/* May t be held as a whole? So it may where it is no larger than what the kernel reads and writes,
 * by and large. */
static bool may_be_whole(const struct planner *w, size_t t)
{
    const uint64_t n = w->p->eq[t].count;
    return n <= w->p->slab / 64 || n / 4 <= w->largest;
}

/* Is t better evaluated with the group's rows? */
static bool belongs(const struct planner *w, const struct plan_group *g, size_t t,
                    const uint8_t place[MAX_RANK])
{
    const struct plan_equation *e = &w->p->eq[t];
    const uint64_t before = plan_rows(g), rows = rows_left(g, place);
    if (e->whole || rows == before)
        return rows == before && before > 1;
    if (!may_be_whole(w, t))
        return rows > 1;
    const double bytes = plan_row_bytes(w->p, g) * (double)before +
                         2 * sizeof(double) * (double)e->count;
    return w->sampled ? rows >= FEW : rows > 1 && bytes / (double)rows <= (double)w->p->slab;
}

/* Is it made by a group already? */
static bool is_made(const struct plan *p, size_t k)
{
    for (size_t g = 0; g < p->group.n; g++)
        if (member_of(p->group.v[g], k))
            return true;
    return false;
}

/* The group of k, and of what it is made from. */
static struct plan_group *group_of(struct planner *w, size_t k)
{
    struct plan *p = w->p;
    struct plan_group *g = ARENA_NEW(w->a, struct plan_group);
    uint8_t place[MAX_RANK] = {0};
    g->rank = p->eq[k].src->nindex;
    for (uint32_t d = 0; d < g->rank; d++) {
        g->extent[d] = p->eq[k].shape[d];
        place[d] = (uint8_t)d;
    }
    add_member(w, g, k, place);
    for (size_t t = k; t-- > 0;) {
        if (!p->eq[t].needed || (p->eq[t].whole && is_made(p, t)) || !places_of(p, g, t, place))
            continue;
        if (belongs(w, g, t, place)) {
            restrict_to(g, place);
            add_member(w, g, t, place);
        } else {
            p->eq[t].whole = true;
        }
    }
    return g;
}

/* Where output k has the group's dimensions, as far as it reads members of it at its own
 * indices; false where it reads none so, or another way. */
static bool fits(const struct plan *p, const struct plan_group *g, size_t k,
                 uint8_t place[MAX_RANK])
{
    uint8_t at[MAX_RANK];
    bool any = false;
    memset(place, UNREAD, MAX_RANK);
    for (size_t m = 0; m < g->member.n; m++) {
        const struct plan_member *t = &g->member.v[m];
        if (t->equation == k || !reads(p, k, t->equation, at))
            continue;
        any = true;
        for (uint32_t d = 0; d < g->rank; d++) {
            const uint8_t own = at[t->dim[d]];
            if (own >= UNREAD || p->eq[k].shape[own] != g->extent[d] ||
                (place[d] != UNREAD && place[d] != own))
                return false;
            place[d] = own;
        }
    }
    for (uint32_t d = 0; d < g->rank; d++)
        for (uint32_t b = 0; b < d; b++)
            any &= place[b] != place[d];
    return any;
}

/* Has the group all that k reads? Does no member read k? */
static bool has_all(const struct plan *p, const struct plan_group *g, size_t k)
{
    uint8_t at[MAX_RANK];
    for (size_t t = 0; t < p->n; t++) {
        if (p->eq[t].needed && reads(p, k, t, at) && !member_of(g, t))
            return false;
        if (member_of(g, t) && reads(p, t, k, at))
            return false;
    }
    return true;
}

/* Takes outputs into the group that are made from its members alone. */
static void add_others(struct planner *w, struct plan_group *g)
{
    struct plan *p = w->p;
    uint8_t place[MAX_RANK];
    for (size_t k = 0; k < p->n; k++)
        if (p->eq[k].needed && p->eq[k].wanted && !member_of(g, k) && !is_made(p, k) &&
            fits(p, g, k, place) && has_all(p, g, k))
            add_member(w, g, k, place);
}

/* ---- their order ----------------------------------------------------------------------------- */

/* Does group g need what h makes? */
static bool needs(const struct plan *p, const struct plan_group *g, const struct plan_group *h)
{
    uint8_t at[MAX_RANK];
    for (size_t m = 0; m < h->member.n; m++) {
        const size_t t = h->member.v[m].equation;
        if ((!p->eq[t].whole && !p->eq[t].wanted) || member_of(g, t))
            continue;
        for (size_t k = 0; k < g->member.n; k++)
            if (reads(p, g->member.v[k].equation, t, at))
                return true;
    }
    return false;
}

/* False where they need each other. */
static bool put_in_order(struct plan *p)
{
    for (size_t done = 0; done < p->group.n; done++) {
        size_t next = done;
        for (bool waits = true; next < p->group.n; next++) {
            waits = false;
            for (size_t k = done; k < p->group.n; k++)
                waits |= k != next && needs(p, p->group.v[next], p->group.v[k]);
            if (!waits)
                break;
        }
        if (next == p->group.n)
            return false;
        struct plan_group *g = p->group.v[next];
        p->group.v[next] = p->group.v[done];
        p->group.v[done] = g;
    }
    return true;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct ref_input *in = ctx;
    if (sym->kind != SYM_DIM && sym->kind != SYM_SCALAR)
        return false;
    *i = sym->kind == SYM_DIM ? (int64_t)in->dims[sym->id] : in->scalars[sym->id].i;
    *f = sym->kind == SYM_DIM ? (double)*i : in->scalars[sym->id].f;
    return true;
}

/* The extents of sym, and their product; false: they are not known, or too many. */
static bool shape_of(const struct planner *w, const struct lang_symbol *sym, uint64_t *shape,
                     uint64_t *count)
{
    struct diags *d = diags_new(w->a);
    double all = 1;
    *count = 1;
    if (sym->rank > MAX_RANK)
        return false;
    for (uint32_t k = 0; k < sym->rank; k++) {
        int64_t x = 0;
        if (!lang_eval_int(sym->dims[k], lookup, (void *)(uintptr_t)w->in, &x, d) || x < 0)
            return false;
        shape[k] = (uint64_t)x;
        *count *= (uint64_t)x;
        all *= (double)x;
    }
    return all < 0x1p56;
}

/* Is it the place of the largest, which is looked for again when it is compared? */
static bool is_place(const struct lang_expr *e)
{
    while (e->kind == E_CAST)
        e = e->args[0];
    return e->kind == E_REDUCE && (e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN);
}

static bool note_equations(struct planner *w)
{
    const struct lang_equations *q = spec_oracle(w->in->spec);
    struct program program = {.arena = w->a, .in = w->in};
    const bool *needed = ref_needed(&program);
    w->p->n = q->n;
    w->p->eq = ARENA_ARRAY(w->a, q->n, struct plan_equation);
    for (size_t k = 0; k < q->n; k++) {
        struct plan_equation *e = &w->p->eq[k];
        e->src = q->v[k];
        e->needed = needed[k] && !(w->in->found && w->in->found[k]);
        e->wanted = w->in->wanted ? w->in->wanted[k] : e->src->sym->kind == SYM_BUFFER;
        e->whole = e->wanted && !w->sampled;
        if (e->needed && (e->src->is_recurrence || is_place(e->src->rhs) ||
                          !shape_of(w, e->src->sym, e->shape, &e->count) || !e->count))
            return false;
    }
    return true;
}

static void note_largest(struct planner *w)
{
    const struct spec *s = w->in->spec;
    for (size_t k = 0; k < s->params.n; k++) {
        uint64_t shape[MAX_RANK], n = 0;
        if (s->params.v[k].sym->kind == SYM_BUFFER && shape_of(w, s->params.v[k].sym, shape, &n) &&
            n > w->largest)
            w->largest = n;
    }
}

/* Does a row of a group hold more than its outputs, so that rows are worth it? A sample wants no
 * value that is not in one of its rows, either. */
static bool helps(const struct planner *w)
{
    const struct plan *p = w->p;
    bool any = false;
    double bytes = 0;
    for (size_t g = 0; g < p->group.n; g++)
        for (size_t m = 0; m < p->group.v[g]->member.n; m++) {
            const struct plan_equation *e = &p->eq[p->group.v[g]->member.v[m].equation];
            bytes += 2 * sizeof(double) * (double)e->count;
            any |= !e->whole && !e->wanted && e->count > plan_rows(p->group.v[g]);
            if (w->sampled && e->whole)
                return false;
        }
    return any && bytes > (double)p->slab * (w->sampled ? SMALL_SAMPLE : 1);
}

struct plan *plan_new(struct arena *a, const struct ref_input *in, bool sampled, uint64_t slab)
{
    struct planner w = {.a = a, .in = in, .p = ARENA_NEW(a, struct plan), .sampled = sampled};
    struct plan *p = w.p;
    p->slab = slab ? slab : (uint64_t)1 << 26;
    if (!note_equations(&w))
        return NULL;
    note_largest(&w);
    for (size_t k = p->n; k-- > 0;) {
        if (!p->eq[k].needed || !(p->eq[k].whole || p->eq[k].wanted) || is_made(p, k))
            continue;
        struct plan_group *g = group_of(&w, k);
        add_others(&w, g);
        *VEC_PUSH(a, &p->group) = g;
    }
    return put_in_order(p) && helps(&w) ? p : NULL;
}

const double *ref_sampled_parts(struct arena *a, const struct ref_input *in, uint64_t sample)
{
    const struct plan *p = plan_new(a, in, true, 0);
    double *part = p ? ARENA_ARRAY(a, p->n, double) : NULL;
    for (size_t k = 0; p && k < p->group.n; k++) {
        const struct plan_group *g = p->group.v[k];
        for (size_t m = 0; m < g->member.n; m++)
            part[g->member.v[m].equation] += (double)plan_sampled_rows(p, g, sample) /
                                             (double)plan_rows(g);
    }
    return part;
}

uint64_t plan_sampled_rows(const struct plan *p, const struct plan_group *g, uint64_t sample)
{
    const uint64_t rows = plan_rows(g);
    uint64_t columns = 1;
    for (size_t m = 0; m < g->member.n; m++) {
        const struct plan_equation *e = &p->eq[g->member.v[m].equation];
        if (e->wanted && e->count / rows > columns)
            columns = e->count / rows;
    }
    const bool large = plan_row_bytes(p, g) >= (double)p->slab;
    const uint64_t least = large ? LEAST_LARGE_ROWS : LEAST_ROWS;
    uint64_t n = (sample + columns - 1) / columns;
    n = n > least ? n : least;
    return n < rows ? n : rows;
}
