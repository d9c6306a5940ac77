/* Reductions whose range grows by the element, or shrinks, but whose terms are the same:
 *
 *     y[r, i] = sum[k in 0..i + 1](x[r, k])        z[r, i] = sum[k in i..n](x[r, k])
 *
 * What has been gathered is kept after every REF_STEP terms, counted from the end of the range that
 * stays, so that an element goes on from there: without this all elements would take quadratic
 * time, and one of a long row as long as the row. The terms come in the same order whatever was
 * kept. Of a range that begins where it stays that is the order without this; else it is that of
 * steps from its end on.
 */
#include <config.h>

#include "ref/acc.h"

#include <stdlib.h>

/* PLACES: of rows, as indices number them. MOST: bytes of what is kept. */
enum { PLACES = 1024, MOST = 64 << 20 };

/* One lane of struct acc. */
struct gathered {
    double s, c, m, up, es, quantum, sure, top, bare, far;
    int64_t i, best, lo, hi;
    uint64_t n, terms;
    uint8_t met;
    bool any;
};

/* Of one row: what the first n steps from the end that stays come to, v[0] being that of none. */
struct steps {
    int64_t key[REF_KEYS], base;
    struct gathered *v;
    uint64_t n, room;
};

struct so_far {
    struct steps *place;
    size_t bytes;
};

struct so_far *ref_so_far_new(uint32_t n)
{
    return calloc(n ? n : 1, sizeof(struct so_far));
}

static void forget(struct so_far *t)
{
    for (uint32_t i = 0; t->place && i < PLACES; i++)
        free(t->place[i].v);
    free(t->place);
    *t = (struct so_far){0};
}

void ref_so_far_free(struct so_far *t, uint32_t n)
{
    for (uint32_t i = 0; t && i < n; i++)
        forget(&t[i]);
    free(t);
}

static struct gathered lane_of(const struct acc *a, int l)
{
    return (struct gathered){.s = a->s[l],
                             .c = a->c[l],
                             .m = a->m[l],
                             .up = a->up[l],
                             .es = a->es[l],
                             .quantum = a->quantum[l],
                             .sure = a->sure[l],
                             .top = a->top[l],
                             .bare = a->bare[l],
                             .far = a->far[l],
                             .i = a->i[l],
                             .n = a->n[l],
                             .terms = a->terms[l],
                             .met = a->met[l],
                             .any = a->any[l],
                             .best = a->best[l],
                             .lo = a->lo[l],
                             .hi = a->hi[l]};
}

static void set_lane(struct acc *a, int l, const struct gathered *x)
{
    a->s[l] = x->s;
    a->c[l] = x->c;
    a->m[l] = x->m;
    a->up[l] = x->up;
    a->es[l] = x->es;
    a->quantum[l] = x->quantum;
    a->sure[l] = x->sure;
    a->top[l] = x->top;
    a->bare[l] = x->bare;
    a->far[l] = x->far;
    a->i[l] = x->i;
    a->n[l] = x->n;
    a->terms[l] = x->terms;
    a->met[l] = x->met;
    a->any[l] = x->any;
    a->best[l] = x->best;
    a->lo[l] = x->lo;
    a->hi[l] = x->hi;
}

/* The row's place, where what another row left is forgotten; NULL: no memory. */
static struct steps *find(const struct frame *f, const struct reduce *r, struct so_far *t, int lane,
                          int64_t base)
{
    int64_t key[REF_KEYS] = {0};
    uint64_t h = 0;
    for (uint32_t k = 0; k < r->nterm_key; k++) {
        key[k] = f->slot[r->term_key[k]].i[lane];
        h = (h ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15u;
    }
    if (t->bytes > MOST)
        forget(t);
    if (!t->place && !(t->place = calloc(PLACES, sizeof *t->place)))
        return NULL;
    struct steps *s = &t->place[(h >> 32) % PLACES];
    if (s->n && s->base == base && memcmp(s->key, key, sizeof key) == 0)
        return s;
    memcpy(s->key, key, sizeof key);
    s->base = base;
    s->n = 0;
    return s;
}

static bool make_room(struct so_far *t, struct steps *s)
{
    if (s->n < s->room)
        return true;
    const uint64_t room = s->room ? 2 * s->room : 16;
    struct gathered *v = realloc(s->v, room * sizeof *v);
    if (!v)
        return false;
    t->bytes += (room - s->room) * sizeof *v;
    s->v = v;
    s->room = room;
    return true;
}

/* Terms `from` to `to` - 1 from the end that stays. */
static void take(struct frame *f, const struct reduce *r, struct acc *a, int lane, int64_t base,
                 int64_t from, int64_t to)
{
    if (r->so_far == REF_GROWS)
        ref_acc_along(f, r, a, lane, LANE_ON, base + from, base + to);
    else
        ref_acc_along(f, r, a, lane, LANE_ON, base - to, base - from);
}

/* So many terms from base on. False: no memory; the lane is as it was. */
static bool go_on(struct frame *f, const struct reduce *r, struct acc *a, int lane, int64_t base,
                  int64_t terms)
{
    struct so_far *t = &f->so_far[r->acc];
    struct steps *s = find(f, r, t, lane, base);
    const uint64_t steps = (uint64_t)terms / REF_STEP;
    if (!s || !make_room(t, s))
        return false;
    if (s->n == 0)
        s->v[s->n++] = lane_of(a, lane);
    const struct gathered before = lane_of(a, lane);
    uint64_t at = steps < s->n ? steps : s->n - 1;
    set_lane(a, lane, &s->v[at]);
    for (; at < steps && !f->failed; at++) {
        take(f, r, a, lane, base, (int64_t)at * REF_STEP, (int64_t)(at + 1) * REF_STEP);
        if (!make_room(t, s)) {
            set_lane(a, lane, &before);
            return false;
        }
        s->v[s->n++] = lane_of(a, lane);
    }
    take(f, r, a, lane, base, (int64_t)steps * REF_STEP, terms);
    if (f->interrupted && *f->interrupted)
        ref_fail(f, SPAN_NONE, "interrupted");
    return true;
}

bool ref_so_far(struct frame *f, const struct reduce *r, struct acc *a, const uint8_t *mask,
                uint8_t *rest)
{
    struct ref_range g;
    ref_loop_range(f, &r->loop[0], mask, a, &g);
    memcpy(rest, mask, LANES);
    for (int l = 0; l < LANES && !f->failed; l++) {
        int64_t terms; /* more than i64 has are none that memory has */
        if (mask[l] != LANE_ON || a->es[l] == INFINITY ||
            __builtin_sub_overflow(g.hi[l], g.lo[l], &terms) || terms < 2 * REF_STEP)
            continue;
        const int64_t base = r->so_far == REF_GROWS ? g.lo[l] : g.hi[l];
        if (go_on(f, r, a, l, base, terms))
            rest[l] = LANE_OFF;
    }
    return mask_any(rest);
}
