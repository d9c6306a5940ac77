/* Lists of what a thread knows to have happened before. */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

enum {
    LAST = SIM_MAX_THREADS - 1,
    MOST_OF_BLOCK =
        96,      /* facts about a block's threads; beyond, they become one about all of them */
    MOST = 2048, /* facts; beyond, everything up to the latest clock counts as known */
};

struct check_known *check_known_ref(struct check_known *k)
{
    if (k)
        k->refs++;
    return k;
}

void check_known_drop(struct check_known *k)
{
    if (k && --k->refs == 0)
        free(k);
}

/* Orders facts by block, then wide ones before the narrower ones inside them. */
static int order(const struct check_fact *a, const struct check_fact *b)
{
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->last < b->last) - (a->last > b->last);
}

static int by_order(const void *a, const void *b)
{
    return order(a, b);
}

/* Makes the facts from index `from` on, all about one block, a single one. */
static uint32_t collapse(struct check_fact *f, uint32_t from, uint32_t n)
{
    struct check_fact all = {f[from].block, 0, 0, LAST};
    for (uint32_t i = from; i < n; i++)
        all.clock = f[i].clock > all.clock ? f[i].clock : all.clock;
    f[from] = all;
    return from + 1;
}

/* Are two facts about the same block, both about threads or both about agents beside them? */
static bool akin(const struct check_fact *a, const struct check_fact *b)
{
    return a->block == b->block && (a->first > LAST) == (b->first > LAST);
}

/* Merges two facts into a, if they allow it: neighbours known up to the same clock become one fact;
 * of two that differ in the clock alone, the later stays. */
static bool merged(struct check_fact *a, const struct check_fact *b)
{
    if (order(a, b) == 0)
        a->clock = b->clock > a->clock ? b->clock : a->clock;
    else if (a->clock == b->clock && a->last + 1 == b->first)
        a->last = b->last;
    else
        return false;
    return true;
}

/* Makes one fact of those from index `start` on, if they are too many and about threads. */
static uint32_t limit(struct check_fact *f, uint32_t start, uint32_t n)
{
    return n - start > MOST_OF_BLOCK && f[start].first <= LAST ? collapse(f, start, n) : n;
}

/* Drops from sorted facts what others say as well. Both limits only ever make more known than is,
 * so that nothing is reported wrongly. */
static void settle(struct check_known *k)
{
    struct check_fact *f = k->fact;
    uint32_t n = 0, start = 0; /* kept; of the block at hand */
    uint32_t block_clock = 0, warp_clock = 0, warp_last = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        const struct check_fact x = f[i];
        if (!n || !akin(&x, &f[start])) {
            n = limit(f, start, n);
            start = n;
            block_clock = warp_clock = warp_last = 0;
        }
        if (x.clock <= k->all || x.clock <= block_clock ||
            (x.last <= warp_last && x.clock <= warp_clock))
            continue;
        if (x.first == 0 && x.last == LAST) {
            block_clock = x.clock;
        } else if (x.last > x.first) {
            warp_clock = x.clock;
            warp_last = x.last;
        }
        if (n == start || !merged(&f[n - 1], &x))
            f[n++] = x;
    }
    n = limit(f, start, n);
    k->n = n;
    if (n <= MOST)
        return;
    for (uint32_t i = 0; i < n; i++)
        k->all = f[i].clock > k->all ? f[i].clock : k->all;
    k->n = 0;
}

static struct check_known *make(struct check *c, uint32_t n)
{
    struct check_known *k = malloc(sizeof *k + n * sizeof k->fact[0]);
    if (!k) {
        c->starved = true;
        return NULL;
    }
    *k = (struct check_known){.refs = 1, .n = n, .id = ++c->nknown};
    return k;
}

struct check_known *check_known_new(struct check *c, struct check_fact *fact, uint32_t n)
{
    struct check_known *k = make(c, n);
    if (!k)
        return NULL;
    qsort(fact, n, sizeof *fact, by_order);
    memcpy(k->fact, fact, n * sizeof *fact);
    settle(k);
    return k;
}

static bool same(const struct check_known *a, const struct check_known *b)
{
    if (a->n != b->n || a->all != b->all)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (order(&a->fact[i], &b->fact[i]) != 0 || a->fact[i].clock != b->fact[i].clock)
            return false;
    return true;
}

void check_known_end(struct check *c)
{
    check_known_drop(c->join);
    c->join = NULL;
}

static struct check_known *remember(struct check *c, struct check_known *a,
                                    const struct check_known *b, struct check_known *k)
{
    c->joined[0] = a->id;
    c->joined[1] = b->id;
    check_known_drop(c->join);
    c->join = check_known_ref(k);
    if (k != a)
        check_known_drop(a);
    return k;
}

struct check_known *check_known_join(struct check *c, struct check_known *a, struct check_known *b)
{
    if (!b || a == b)
        return a;
    if (!a)
        return check_known_ref(b);
    if (c->join && c->joined[0] == a->id && c->joined[1] == b->id) {
        struct check_known *same_as_last = check_known_ref(c->join);
        check_known_drop(a);
        return same_as_last;
    }
    struct check_known *k = make(c, a->n + b->n);
    if (!k)
        return a;
    k->all = a->all > b->all ? a->all : b->all;
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->n || j < b->n) {
        const bool take_a = j == b->n || (i < a->n && order(&a->fact[i], &b->fact[j]) <= 0);
        k->fact[n++] = take_a ? a->fact[i++] : b->fact[j++];
    }
    settle(k);
    if (same(k, a)) {
        check_known_drop(k);
        k = a;
    }
    return remember(c, a, b, k);
}

struct check_known *check_known_of_block(struct check *c, const struct check_known *k,
                                         uint32_t block)
{
    if (!k)
        return NULL;
    struct check_known *own = make(c, k->n);
    if (!own)
        return NULL;
    own->all = k->all;
    own->n = 0;
    for (uint32_t i = 0; i < k->n; i++)
        if (k->fact[i].block == block)
            own->fact[own->n++] = k->fact[i];
    return own;
}

bool check_known_has(const struct check_known *k, const struct check_slot *s)
{
    if (!k)
        return false;
    if (s->clock <= k->all)
        return true;
    uint32_t low = 0, high = k->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (k->fact[mid].block < s->block)
            low = mid + 1;
        else
            high = mid;
    }
    const uint32_t t = check_thread_of(s);
    for (; low < k->n && k->fact[low].block == s->block && k->fact[low].first <= t; low++)
        if (t <= k->fact[low].last && s->clock <= k->fact[low].clock)
            return true;
    return false;
}
