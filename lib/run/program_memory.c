/* Where temps lie: those that never hold something at the same time share memory. */
#include <config.h>

#include <stdlib.h>

#include "run/program.h"

/* ---- how long a temp lives ------------------------------------------------------------------- */

/* Of one temp, from a call to a call; both inclusive. */
struct life {
    size_t buffer;
    const bool *used; /* by call */
    uint32_t first, last;
};

static bool uses(const struct program_call *c, size_t buffer)
{
    for (size_t i = 0; i < c->step->args.n; i++)
        if (!c->step->args.v[i].value && c->buffer[i] == buffer)
            return true;
    return false;
}

/* Does the call write all of the temp, whatever was in it? */
static bool writes_all(const struct program_call *c, size_t buffer)
{
    for (size_t i = 0; i < c->step->args.n; i++) {
        const struct contract_actual *actual = &c->step->args.v[i];
        if (!actual->value && c->buffer[i] == buffer &&
            (actual->param->sym->mode != MODE_OUT || actual->view.part->nsub))
            return false;
    }
    return uses(c, buffer);
}

static bool used_in(const struct life *l, uint32_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (l->used[first + i])
            return true;
    return false;
}

static void cover(struct life *l, const struct program_step *s)
{
    l->first = s->first;
    l->last = s->first + (uint32_t)s->ncall - 1;
}

static bool live_step(struct life *l, const struct program_step *s);

/* The steps of a list that use the temp, with the call that a while asks in front of its body: from
 * the first to the last of them it lives. True: the first writes all of it, so that going through
 * the list once more needs nothing of what was left. */
static bool live_list(struct life *l, const struct program_call *asked,
                      const struct program_step *v, size_t n)
{
    const struct program_step *first = NULL, *last = NULL;
    const bool by_asked = asked && l->used[asked->number];
    for (size_t i = 0; i < n; i++)
        if (used_in(l, v[i].first, v[i].ncall)) {
            first = first ? first : &v[i];
            last = &v[i];
        }
    if (first && first == last && !by_asked && first->src->kind != STEP_CALL)
        return live_step(l, first);
    if (last)
        cover(l, last);
    if (by_asked || first)
        l->first = by_asked ? asked->number : first->first;
    if (!last)
        l->last = l->first;
    const struct program_call *begin = by_asked ? asked : first ? first->call : NULL;
    return begin && writes_all(begin, l->buffer);
}

static bool live_if(struct life *l, const struct program_step *s)
{
    const uint32_t body = s->first + 1, end = s->first + (uint32_t)s->ncall,
                   other = s->nother ? s->other[0].first : end;
    const bool in_body = used_in(l, body, other - body), in_other = used_in(l, other, end - other);
    if (!l->used[s->first] && !(in_body && in_other))
        return in_body ? live_list(l, NULL, s->body, s->nbody)
                       : live_list(l, NULL, s->other, s->nother);
    cover(l, s);
    return l->used[s->first] && writes_all(s->call, l->buffer);
}

/* All that uses the temp is in one loop or if. True as of a list. What an iteration may need of the
 * one before it lives as long as the loop. */
static bool live_step(struct life *l, const struct program_step *s)
{
    if (s->src->kind == STEP_IF)
        return live_if(l, s);
    if (live_list(l, s->call, s->body, s->nbody))
        return true;
    cover(l, s);
    return false;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A temp, or what a call needs beside its buffers. */
struct tenant {
    uint64_t bytes, at;
    uint32_t first, last;
    uint64_t *where; /* gets .at */
    size_t order;
};

/* Of more tenants than MOST, or when looking who uses what took too long, none share. */
enum { MOST = 4096 };
static const uint64_t LOOKS = 100000000, ENORMOUS = UINT64_C(1) << 62;

struct house {
    struct program *p;
    struct tenant *v;
    size_t n;
    bool apart; /* none share */
};

static void move_in(struct house *h, uint64_t bytes, uint32_t first, uint32_t last, uint64_t *where)
{
    h->v[h->n] = (struct tenant){program_aligned(bytes), 0, first, last, where, h->n};
    h->n++;
    *where = 0;
}

static void add_temp(struct house *h, size_t i)
{
    struct program *p = h->p;
    struct run *r = p->r;
    struct life l = {.buffer = r->nparam + i, .last = p->ncall ? (uint32_t)p->ncall - 1 : 0};
    bool *used = ARENA_ARRAY(r->arena, p->ncall, bool), any = false;
    for (size_t k = 0; k < p->ncall && !h->apart; k++)
        any |= used[k] = uses(&p->call[k], l.buffer);
    l.used = used;
    const bool zeroed = run_is_zeroed(r, l.buffer);
    if (any && !zeroed)
        live_list(&l, NULL, p->step, p->nstep);
    move_in(h, any || zeroed || h->apart ? r->temp[i].host.bytes : 0, l.first, l.last,
            &p->temp_at[i]);
}

/* The largest first; those as large in their order. */
static int by_bytes(const void *a, const void *b)
{
    const struct tenant *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The lowest place that nobody has at the same time. placed: n of them by .at. */
static uint64_t lowest(const struct tenant *t, const struct tenant *const *placed, size_t n)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n && placed[i]->at < at + t->bytes; i++)
        if (placed[i]->first <= t->last && t->first <= placed[i]->last &&
            placed[i]->at + placed[i]->bytes > at)
            at = placed[i]->at + placed[i]->bytes;
    return at;
}

static void share(struct house *h)
{
    const struct tenant **placed = ARENA_ARRAY(h->p->r->arena, h->n, const struct tenant *);
    if (h->n)
        qsort(h->v, h->n, sizeof *h->v, by_bytes);
    for (size_t i = 0; i < h->n; i++) {
        struct tenant *t = &h->v[i];
        size_t k = i;
        t->at = lowest(t, placed, i);
        for (; k > 0 && placed[k - 1]->at > t->at; k--)
            placed[k] = placed[k - 1];
        placed[k] = t;
        if (t->at + t->bytes > h->p->peak)
            h->p->peak = t->at + t->bytes;
    }
}

static void line_up(struct house *h)
{
    for (size_t i = 0; i < h->n; i++) {
        h->v[i].at = h->p->peak;
        if (h->p->peak < ENORMOUS)
            h->p->peak += h->v[i].bytes;
    }
}

void program_place(struct program *p)
{
    struct run *r = p->r;
    struct house h = {.p = p, .v = ARENA_ARRAY(r->arena, r->ntemp + p->ncall, struct tenant)};
    size_t calls = 0;
    p->temp_at = ARENA_ARRAY(r->arena, r->ntemp, uint64_t);
    p->peak = 0;
    for (size_t i = 0; i < p->ncall; i++)
        calls += p->call[i].scratch != 0;
    h.apart = r->ntemp + calls > MOST || (uint64_t)r->ntemp * p->ncall > LOOKS;
    for (size_t i = 0; i < r->ntemp && !p->apart; i++)
        add_temp(&h, i);
    for (uint32_t i = 0; i < p->ncall && !p->apart; i++)
        if (p->call[i].scratch)
            move_in(&h, p->call[i].scratch, i, i, &p->call[i].scratch_at);
    if (h.apart)
        line_up(&h);
    else
        share(&h);
    for (size_t i = 0; i < h.n; i++)
        *h.v[i].where = h.v[i].at;
}
