/* mbarrier objects: 64 bits of shared memory that count arrivals and bytes (PTX ISA, "mbarrier").
 * Private to lib/sim.
 *
 *     bits  0..19   arrivals that the phase still waits for
 *     bits 20..39   arrivals of a phase
 *     bits 40..60   bytes that the phase still waits for, two's complement
 *     bit  62       the phase's parity
 *     bit  63       set: this is an mbarrier
 *
 * A phase is complete when both counts are 0; the next begins at once. (The hardware's layout is
 * not published; that of a state that arrive returns is the same here.) A block keeps a list of the
 * objects it has, with their values, so that an object that was never made, or that something else
 * has written to, is known.
 */
#ifndef KAIO_SIM_MBARRIER_H
#define KAIO_SIM_MBARRIER_H

#include "sim/sim.h"

enum { SIM_MBARRIER_MOST = (1 << 20) - 1 }; /* arrivals, bytes */

struct sim_mbarrier {
    uint32_t offset;   /* in the block's shared memory */
    uint32_t op, warp; /* who made it: the record and the warp */
    uint64_t state;
    uint64_t phase; /* phases completed */
};
static inline uint32_t sim_mbar_pending(uint64_t state)
{
    return state & SIM_MBARRIER_MOST;
}
static inline uint32_t sim_mbar_expected(uint64_t state)
{
    return state >> 20 & SIM_MBARRIER_MOST;
}
static inline int32_t sim_mbar_bytes(uint64_t state)
{
    return (int32_t)((int64_t)(state << 3) >> 43);
}
static inline unsigned sim_mbar_parity(uint64_t state)
{
    return state >> 62 & 1;
}

/* What can be wrong; the fault's mbar.error. */
enum sim_mbar_error {
    SIM_MBAR_FINE,
    SIM_MBAR_NONE,      /* no mbarrier was made there */
    SIM_MBAR_INVALID,   /* it was, and is no longer */
    SIM_MBAR_SPOILT,    /* something else has written to it */
    SIM_MBAR_AGAIN,     /* init: there is one already */
    SIM_MBAR_RANGE,     /* init, arrive, expect_tx: a count that cannot be */
    SIM_MBAR_COUNT,     /* more arrivals than the phase waits for */
    SIM_MBAR_BYTES,     /* more bytes than can be counted */
    SIM_MBAR_PHASE,     /* .noComplete has completed a phase */
    SIM_MBAR_APART,     /* in another block than the copy's bytes go to */
    SIM_MBAR_DROP,      /* arrive_drop: more than take part */
    SIM_MBAR_NO_PARITY, /* a wait for a phase of parity .count */
    SIM_MBAR_MEMORY,    /* the host has none left */
};

/* A place in shared memory of a block of the cluster. */
struct sim_place {
    struct sim_block *block;
    uint32_t offset;
};
/* Where an address of a space (shared or generic) is; bytes, a multiple of align, must be there.
 * remote: it may be in another block. False: the warp has stopped with the fault. */
bool sim_shared_place(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint64_t address,
                      unsigned space, bool remote, uint64_t bytes, uint32_t align, bool store,
                      struct sim_place *p);

/* The object at an offset of the block's shared memory; NULL with the reason. */
struct sim_mbarrier *sim_mbar_find(const struct sim_block *b, uint32_t offset,
                                   enum sim_mbar_error *why);
/* Arrivals and bytes; phases that complete wake those that wait. */
enum sim_mbar_error sim_mbar_arrive(struct sim_block *b, uint32_t offset, uint32_t count,
                                    uint64_t *state);
enum sim_mbar_error sim_mbar_expect(struct sim_block *b, uint32_t offset, uint32_t bytes);
enum sim_mbar_error sim_mbar_complete(struct sim_block *b, uint32_t offset, uint32_t bytes);
/* Is the phase of that parity complete: is the one that goes on another? */
enum sim_mbar_error sim_mbar_test(const struct sim_block *b, uint32_t offset, unsigned parity,
                                  bool *complete);
/* Do threads of the cluster wait in try_wait? */
bool sim_mbar_waiting(const struct sim_block *unit);
/* Nothing of the cluster moves any more: waits whose time is limited end. */
void sim_mbar_expire(struct sim_block *unit);
/* The block starts without any; without memory for them. */
void sim_mbars_reset(struct sim_block *b);
void sim_mbars_free(struct sim_block *b);

/* Faults. */

/* Fills in f->mbar. */
void sim_mbar_blame(struct sim_fault *f, const struct sim_block *b, uint32_t offset,
                    enum sim_mbar_error error);

/* mbarrier.init and the like: of the lanes' objects at the 64-bit addresses op->a, which are in the
 * space op->round. op->imm: enum sim_mbar_op; b, 32 bits: a count or bytes, 0: there is none; d: 64
 * bits that get the state before, 0: nothing does; flags: enum sim_mbar_flag. */
enum sim_mbar_op {
    SIM_MBAR_INIT,
    SIM_MBAR_INVAL,
    SIM_MBAR_ARRIVE,   /* b arrivals, or one */
    SIM_MBAR_EXPECT,   /* b bytes */
    SIM_MBAR_EXPECTS,  /* b bytes, and one arrival */
    SIM_MBAR_COMPLETE, /* b bytes */
};
enum sim_mbar_flag {
    SIM_MBAR_ANYWHERE = 1,   /* it may be in another block of the cluster */
    SIM_MBAR_DROPS = 2,      /* those that arrive take no part in phases to come */
    SIM_MBAR_UNFINISHED = 4, /* the phase must not complete by it */
    SIM_MBAR_NO_INC = 8,     /* sim_mbar_copies: the arrival was counted from the start */
};
const struct sim_op *sim_mbar_do(struct sim_warp *w, const struct sim_op *op);
/* cp.async.mbarrier.arrive: a, round and flags as there. */
const struct sim_op *sim_mbar_copies(struct sim_warp *w, const struct sim_op *op);
/* test_wait, try_wait: predicate d; a and round as above; b: a state, 64 bits, or a parity, 32
 * bits. A control record. */
enum sim_mbar_wait {
    SIM_MBAR_PARITY = 1,
    SIM_MBAR_SUSPENDS = 2,
};
const struct sim_op *sim_mbar_wait(struct sim_warp *w, const struct sim_op *op); /* more: that */

/* What a group of lanes that waits at an mbarrier, or that goes round a loop which tests one, waits
 * for; false: it does not. */
bool sim_mbar_stand(const struct sim_warp *w, const struct sim_group *g, struct sim_stand *s);

#endif
