/* A ring of stages in shared memory, with barriers between the threads that fill them and those
 * that read them.
 *
 * Nothing here knows what the stages hold. `shared` is the register with the address that
 * everything is counted from, a u32 of the shared window; the stages begin there, stage_bytes each.
 * The barriers, mbarriers of 8 bytes, begin `barriers` bytes from there:
 *
 *     full[stages]    producers (or their copies) have filled the stage
 *     empty[stages]   consumers have read it
 *     ready[stages]   somebody has worked on what came (where sets is 3)
 *
 * A thread walks around the ring with three registers of its own: the offset of the stage that it
 * is at, the address of the stage's barrier `full`, and the parity of the phase that it waits for.
 * A new barrier counts as one whose phase of parity 1 is over: who fills stages begins with parity
 * 1, who reads them with parity 0.
 *
 * The order of calls: the members up to `lane` are set by hand; one thread calls ring_init(), and
 * all of the block's threads meet; each role calls ring_begin(), and at every stage waits, works,
 * hands over or releases, and calls ring_next().
 */
#ifndef KAIO_LOWER_WGMMA_RING_H
#define KAIO_LOWER_WGMMA_RING_H

#include "lower/cg/cg.h"

enum { RING_BARRIER = 8 }; /* bytes of an mbarrier */
enum ring_set { RING_FULL, RING_EMPTY, RING_READY, RING_SETS };

struct ring {
    struct cg *g;
    int32_t shared;               /* u32: the address of the first stage */
    uint32_t stages, stage_bytes; /* stages: at least 2 */
    uint32_t barriers;            /* bytes from `shared` to the first barrier */
    uint32_t sets;                /* of barriers: 2, or 3 where there is `ready` */
    struct cg_val lane;           /* u32: the thread's number in its warp */
    int32_t offset, full, parity; /* u32, mutable: ring_begin() */
};

/* Bytes of all barriers. */
static inline uint32_t ring_barrier_bytes(uint32_t stages, uint32_t sets)
{
    return sets * stages * RING_BARRIER;
}

/* One thread makes the barriers: those of each set wait for arrivals[set] arrivals, sets of
 * them. */
void ring_init(const struct ring *r, const uint32_t *arrivals);
/* The thread stands at the first stage and waits for the phase `parity`. */
void ring_begin(struct ring *r, unsigned parity);
/* On to the next stage. */
void ring_next(const struct ring *r);
/* The number of the stage where the thread stands, and the way to stage n of the same round, or of
 * a later one where n is not less than `stages`: both u32. So threads pass over stages that others
 * take. */
struct cg_val ring_number(const struct ring *r);
void ring_go_to(const struct ring *r, struct cg_val n);
/* The thread's place varies in the loop. */
void ring_varies(const struct ring *r, struct cg_nest *nest);
/* The address of the stage: u32. */
struct cg_val ring_stage(const struct ring *r);

/* Waits for the phase `parity` of the barrier at the address plus offset. Neither this nor arriving
 * in another block names the scope of the cluster: nothing that threads wrote is handed over, only
 * memory that they have read, and each would cost a fence of all memory (MEMBAR.ALL.GPU, CCTL.IVALL
 * in SASS). */
void ring_wait_for(struct cg *g, int32_t barrier, uint32_t offset, int32_t parity);
/* Waits for the phase of the stage's barrier of this set. */
void ring_wait(const struct ring *r, enum ring_set set);
/* Waits until those who read the stage the time before have given it back. Who has waited for
 * `full` finds it so, by way of the producer; compute-sanitizer does not look that far. */
void ring_wait_read(const struct ring *r);
/* One thread arrives at the stage's `full` and says that copies of so many bytes arrive there,
 * too. */
void ring_expect(const struct ring *r, uint32_t bytes);
/* The warp's threads have written their part of the stage, and one of them arrives at the stage's
 * barrier of this set. Each fences what it wrote: wgmma reads by another way. All lanes of the warp
 * come. */
void ring_hand_over(const struct ring *r, enum ring_set set);
/* Waits until all stages are read: of a block whose barriers others arrive at, before it ends. */
void ring_drain(const struct ring *r);

/* How a warp that reads stages gives them back. It is done with a stage some time after it has gone
 * on to the next, so the place is noted. */
struct ring_release {
    int32_t mine;  /* a predicate: does the lane arrive? */
    int32_t delta; /* u32: bytes from this block's shared memory to that of the block that is told;
                      -1: it is this one */
    int32_t at;    /* u32, mutable: `full` of the stage that was noted, in that block */
};
/* Lane 0 arrives, in this block. */
struct ring_release ring_release_here(const struct ring *r);
/* The stage where the thread stands is the one that is released next. */
void ring_note(const struct ring *r, const struct ring_release *e);
/* Arrives at `empty` of the stage that was noted, where pred holds. */
void ring_release(const struct ring *r, const struct ring_release *e, int32_t pred);

/* A loop over n stages, n > 0, a u32: what stands between begin and end is generated once. The
 * ring's registers vary in it, and those that the caller names to cg_nest_varies(). ring_for_end()
 * goes on to the next stage. */
struct ring_loop {
    int32_t rest; /* u32, mutable: the stages that are left, with this one */
    int32_t more; /* a predicate */
    uint32_t head;
    size_t mark;
    struct cg_nest nest;
};
void ring_for(const struct ring *r, struct ring_loop *l, struct cg_val n);
void ring_for_end(const struct ring *r, struct ring_loop *l);

#endif
