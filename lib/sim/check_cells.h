/* The cells of shadow, and what the checks do with a warp's lanes at once. Private to the sanitizer
 * (check.h).
 *
 * A cell is kept by field, a run of cells is a run of words for each field, so that the accesses of
 * a warp to consecutive memory are looked at by loops that the compiler vectorises (exec_check.c,
 * built twice as the handlers are). What they cannot decide check_shadow.c goes through lane by
 * lane, by the same rules.
 */
#ifndef KAIO_SIM_CHECK_CELLS_H
#define KAIO_SIM_CHECK_CELLS_H

#include "sim/sim.h"

/* An access: who is agent << CHECK_OP_BITS | record. clock 0: none. */
struct check_slot {
    uint32_t block, clock, who;
};
enum { CHECK_OP_BITS = 20, CHECK_OPS = 1 << CHECK_OP_BITS, CHECK_WARP_BITS = CHECK_OP_BITS + 5 };
#define CHECK_PENDING UINT32_MAX /* clock of a write that goes on */
_Static_assert(1u << (CHECK_WARP_BITS - CHECK_OP_BITS) == SIM_LANES, "a warp's threads");

/* The slots of n cells. */
struct check_slots {
    uint32_t *block, *clock, *who;
};

struct check_cells {
    struct check_slots write; /* weak */
    struct check_slots read[2];
    uint32_t *more; /* 1 + index of struct check_more; 0: none. NULL: there are no cells */
};

static inline struct check_slot check_get(const struct check_slots *s, uint64_t i)
{
    return (struct check_slot){s->block[i], s->clock[i], s->who[i]};
}
static inline void check_put(const struct check_slots *s, uint64_t i, const struct check_slot *slot)
{
    s->block[i] = slot->block;
    s->clock[i] = slot->clock;
    s->who[i] = slot->who;
}

/* What orders the accesses of a warp before what it does now, as far as that is one clock each. */
struct check_when {
    uint32_t block, clock; /* now */
    uint32_t floor;        /* all accesses up to here, */
    uint32_t base;         /* those by threads of the block, */
    uint32_t warp;         /* and by lanes of the warp */
    bool coarse;           /* nothing else orders any */
};

#define CHECK_THREADS_END \
    ((uint32_t)SIM_MAX_THREADS << CHECK_OP_BITS) /* beyond: agents beside the threads */

/* Is an access before what thread mine >> CHECK_OP_BITS does, by the block's barriers or for it is
 * the thread's own? */
static inline bool check_settled(const struct check_when *n, const struct check_slot *s,
                                 uint32_t mine)
{
    const bool own = ((s->who ^ mine) >> CHECK_OP_BITS == 0) & (s->clock != CHECK_PENDING);
    return (s->clock <= n->floor) |
           ((s->block == n->block) & (s->who < CHECK_THREADS_END) & ((s->clock <= n->base) | own));
}

/* ..., or by its warp's meetings? Where the order is coarse, an access that is neither is not
 * ordered. */
static inline bool check_before(const struct check_when *n, const struct check_slot *s,
                                uint32_t mine)
{
    return check_settled(n, s, mine) |
           ((s->block == n->block) & (s->who < CHECK_THREADS_END) &
            ((s->who ^ mine) >> CHECK_WARP_BITS == 0) & (s->clock <= n->warp));
}

/* 0 the same thread, 1 the same warp, 2 the same block, 3 others. */
static inline unsigned check_apart(const struct check_slot *a, const struct check_slot *b)
{
    const uint32_t d = a->who ^ b->who;
    const unsigned near = (unsigned)(d >> CHECK_OP_BITS != 0) + (d >> CHECK_WARP_BITS != 0);
    return a->block != b->block ? 3 : near;
}

/* Which of two slots a read takes the place of, 2: neither. Kept are the ones as far apart as any
 * of those that are not ordered before later ones: for threads ordered in nested groups (block,
 * warp, thread) two stand for all, for whoever is unordered with any of them is unordered with one
 * of these. before: check_before() or more. */
static inline unsigned check_place(const struct check_slot slot[2], const struct check_slot *now,
                                   const bool settled[2], const bool before[2])
{
    const bool far = check_apart(&slot[0], now) > check_apart(&slot[0], &slot[1]);
    const bool first = settled[0] | (!settled[1] & before[0]);
    const bool second = settled[1] | before[1] | far;
    return first ? 0 : second ? 1 : 2;
}

/* What lanes access of some memory: 1 << each cells each, from at[lane] - origin >> shift on. */
struct check_run {
    const struct check_when *when;
    const struct check_cells *cell;
    const uint64_t *at;
    uint64_t origin;
    uint32_t lanes, who; /* who: lane 0's */
    unsigned shift, each;
    bool row, one;  /* as of struct check_aim */
    bool more;      /* some cells may have struct check_more */
    uint32_t stamp; /* clock of a write: now, or CHECK_PENDING */
};

/* The addresses of an access, in its space. Those of lanes that take no part repeat one that
 * does. */
struct check_aim {
    uint64_t at[SIM_LANES];
    uint64_t low, high; /* the least, the largest */
    uint64_t skew;      /* all bits of them that are below the size of the access */
    bool row;           /* of consecutive lanes, each one's behind that of the lane before */
};

#endif
