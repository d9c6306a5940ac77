/* Keeps the values of reductions that do not depend on all indices around them, by those indices
 * that they do depend on.
 *
 *     y[i, j] = exp(x[i, j] - max[l](x[i, l])) / sum[l](exp(x[i, l] - max[q](x[i, q])))
 *
 * Here the sum is the same for all j, and the maximum in it for all l as well: without this the
 * equation would be cubic. A lane finds what it would compute, bit for bit: a reduction's value in
 * a lane rests on nothing but its indices and on whether the lane is only perhaps taken.
 */
#include <config.h>

#include "ref/acc.h"

#include <stdlib.h>

enum { SMALLEST = 256, LARGEST = 2 * REF_KEPT, SEEN = 256 };

struct kept {
    int64_t key[REF_KEYS];
    int64_t i; /* or the bits of v */
    double e;
    uint8_t state; /* of the lane; LANE_OFF: nothing is kept */
};

/* Open addressing, at most half full. */
struct keeps {
    struct kept *v;
    uint32_t size, n;
};

struct keeps *ref_keeps_new(uint32_t n)
{
    return calloc(n ? n : 1, sizeof(struct keeps));
}

void ref_keeps_free(struct keeps *k, uint32_t n)
{
    for (uint32_t i = 0; k && i < n; i++)
        free(k[i].v);
    free(k);
}

static uint32_t hash_of(const struct reduce *r, const int64_t *key)
{
    uint64_t h = 0;
    for (uint32_t k = 0; k < r->nkey; k++)
        h = (h ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

/* Its place, which is free where it is not there. */
static struct kept *find(const struct keeps *t, const struct reduce *r, const int64_t *key,
                         uint8_t state)
{
    for (uint32_t at = hash_of(r, key);; at++) {
        struct kept *k = &t->v[at & (t->size - 1)];
        if (!k->state || (k->state == state && memcmp(k->key, key, r->nkey * sizeof *key) == 0))
            return k;
    }
}

/* Makes room for one more: in a larger table, or where there is none in place of all. False: no
 * memory for any. */
static bool make_room(struct keeps *t, const struct reduce *r)
{
    if (2 * (t->n + 1) <= t->size)
        return true;
    const uint32_t size = t->size ? 2 * t->size : SMALLEST;
    struct keeps larger = {
        .v = size <= LARGEST ? calloc(size, sizeof *larger.v) : NULL, .size = size, .n = t->n};
    if (!larger.v) {
        if (t->size)
            memset(t->v, 0, t->size * sizeof *t->v);
        t->n = 0;
        return t->size > 0;
    }
    for (uint32_t k = 0; k < t->size; k++)
        if (t->v[k].state)
            *find(&larger, r, t->v[k].key, t->v[k].state) = t->v[k];
    free(t->v);
    *t = larger;
    return true;
}

static void key_of(const struct frame *f, const struct reduce *r, int lane, int64_t *key)
{
    for (uint32_t k = 0; k < r->nkey; k++)
        key[k] = f->slot[r->key[k]].i[lane];
}

static bool is_key(const struct frame *f, const struct reduce *r, int lane, const int64_t *key)
{
    for (uint32_t k = 0; k < r->nkey; k++)
        if (f->slot[r->key[k]].i[lane] != key[k])
            return false;
    return true;
}

void ref_reduce_once(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct reduce *r = n->reduce;
    struct keeps *kept = &f->kept[r->acc];
    struct vec *o = node_out(f, n);
    int64_t key[REF_KEYS] = {0};
    uint8_t left[LANES] = {0}, from[LANES], seen[SEEN];
    memset(from, LANES, sizeof from);
    memset(seen, LANES, sizeof seen);
    if (!kept->size && !make_room(kept, r)) {
        ref_reduce(f, n, mask);
        return;
    }
    for (int l = 0; l < LANES; l++) {
        if (!mask[l])
            continue;
        key_of(f, r, l, key);
        const struct kept *k = find(kept, r, key, mask[l]);
        if (k->state) {
            o->i[l] = k->i;
            o->e[l] = k->e;
            continue;
        }
        /* the first of the lanes with this key computes it */
        uint8_t *first = &seen[hash_of(r, key) % SEEN];
        if (*first == LANES || mask[*first] != mask[l] || !is_key(f, r, *first, key)) {
            *first = (uint8_t)l;
            left[l] = mask[l];
        }
        from[l] = *first;
    }
    if (!mask_any(left))
        return;
    ref_reduce(f, n, left);
    for (int l = 0; l < LANES && !f->failed; l++) {
        if (from[l] == LANES)
            continue;
        o->i[l] = o->i[from[l]];
        o->e[l] = o->e[from[l]];
        if (from[l] != l)
            continue;
        make_room(kept, r);
        key_of(f, r, l, key);
        struct kept *k = find(kept, r, key, mask[l]);
        kept->n += !k->state;
        *k = (struct kept){.i = o->i[l], .e = o->e[l], .state = mask[l]};
        memcpy(k->key, key, sizeof k->key);
    }
}

/* ---- which they are -------------------------------------------------------------------------- */

/* Slots below a reduction: which were met, and which of the equation's indices are read, or are
 * loops of its own. */
struct reads {
    const struct equation *eq;
    bool *met, *bound;
    bool outside; /* a value is read that was computed before */
};

static void read_node(struct reads *s, const struct node *n)
{
    if (!n)
        return;
    /* a local variable's value, which its own node has computed */
    if (!n->eval && n->src->kind == E_NAME && n->src->sym->kind == SYM_LOCAL)
        s->outside |= !s->met[n->slot];
    if (s->met[n->slot])
        return;
    for (uint32_t k = 0; k < n->nargs; k++)
        read_node(s, n->args[k]);
    read_node(s, n->pad);
    for (uint32_t k = 0; n->reduce && k < n->reduce->nloop; k++) {
        s->bound[n->reduce->loop[k].slot] = true;
        read_node(s, n->reduce->loop[k].lo);
        read_node(s, n->reduce->loop[k].hi);
    }
    if (n->reduce)
        read_node(s, n->reduce->body);
    s->met[n->slot] = true;
}

/* The equation's indices that a reduction's terms and one end of its range depend on; *outside:
 * something that was computed before, too. */
static struct reads reads_of_terms(struct arena *a, const struct program *p,
                                   const struct equation *eq, const struct reduce *r,
                                   const struct node *end)
{
    struct reads s = {
        .eq = eq, .met = ARENA_ARRAY(a, p->nslot, bool), .bound = ARENA_ARRAY(a, p->nslot, bool)};
    s.bound[r->loop[0].slot] = true;
    read_node(&s, end);
    read_node(&s, r->body);
    return s;
}

/* Are there indices that only the other end of the range depends on? Then terms may go on from
 * those of other elements. */
static bool goes_on(struct arena *a, const struct program *p, const struct equation *eq,
                    struct reduce *r, const bool *read, const struct node *end)
{
    const struct reads s = reads_of_terms(a, p, eq, r, end);
    uint32_t found = 0;
    bool other = false;
    for (uint32_t k = eq->first_index; k < eq->first_index + eq->nindex; k++) {
        other |= read[k] && !s.met[k];
        if (s.met[k] && !s.bound[k] && found++ < REF_KEYS)
            r->term_key[found - 1] = k;
    }
    r->nterm_key = found;
    return other && found <= REF_KEYS && !s.outside;
}

/* Such take their terms in the order of the index. */
static bool is_arg(const struct reduce *r)
{
    return r->kind == RED_ARGMAX || r->kind == RED_ARGMIN;
}

void ref_reduce_keys(struct arena *a, const struct program *p, const struct equation *eq,
                     const struct node *n, uint32_t around)
{
    struct reduce *r = n->reduce;
    struct reads s = {
        .eq = eq, .met = ARENA_ARRAY(a, p->nslot, bool), .bound = ARENA_ARRAY(a, p->nslot, bool)};
    uint32_t found = 0;
    read_node(&s, n);
    for (uint32_t k = eq->first_index; k < eq->first_index + eq->nindex; k++)
        if (s.met[k] && !s.bound[k] && found++ < REF_KEYS)
            r->key[found - 1] = k;
    /* a recurrence reads what it has not computed yet */
    r->keeps = found < around && found <= REF_KEYS && !s.outside && !eq->recurrence;
    r->nkey = r->keeps ? found : 0;
    if (r->nloop != 1 || eq->recurrence || eq->nindex > REF_ALONG)
        return;
    if (goes_on(a, p, eq, r, s.met, r->loop[0].lo))
        r->so_far = REF_GROWS;
    else if (!is_arg(r) && goes_on(a, p, eq, r, s.met, r->loop[0].hi))
        r->so_far = REF_SHRINKS;
}
