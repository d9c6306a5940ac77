/* Operations beside the threads of a cluster: bulk copies, tensor copies, stores to other blocks
 * that complete a transaction (PTX ISA, "asynchronous operations"). Private to lib/sim.
 *
 * A thread issues an operation; nothing of it has happened then. It takes effect when something
 * forces it to, or at any moment before, in any order with others:
 *
 *     what writes shared memory      before the mbarrier that it names sees its bytes
 *                                    (complete_tx): when no thread of the cluster can go on,
 *                                    sim_flight_step() completes one operation
 *     what writes global memory      before cp.async.bulk.wait_group returns, in the thread that
 *                                    issued it; what it reads of shared memory, before
 *                                    wait_group.read does
 *     the rest                       at the cluster's end
 *
 * So, without a seed, everything happens as late as it may: who reads too soon gets what was there
 * before, and who refills a buffer too soon spoils what is still to be read. With one
 * (device_options.seed) each operation draws whether it is early, late or torn (its bytes come a
 * few at a time, while threads run), and which one is completed next; so is which warp comes first,
 * and when a try_wait does not wait.
 *
 * All operations in flight are in one list of the cluster, in the order in which they were issued.
 * What one of them moves it tells piece by piece, to who carries it out and to the sanitizer alike.
 */
#ifndef KAIO_SIM_FLIGHT_H
#define KAIO_SIM_FLIGHT_H

#include "sim/sim.h"

enum sim_flight_kind {
    SIM_FLY_LOAD,   /* global -> shared memory of the block .to */
    SIM_FLY_PEER,   /* the issuer's shared memory -> that of .to */
    SIM_FLY_VALUE,  /* .value -> shared memory of .to (st.async), or folded into it (red.async) */
    SIM_FLY_STORE,  /* the issuer's shared memory -> global memory */
    SIM_FLY_REDUCE, /* the issuer's shared memory is folded into global memory: .fold, .type */
    SIM_FLY_COPIES, /* cp.async of some lanes, which then arrive at the mbarrier */
};
/* Does it end at an mbarrier, and not with a group? */
static inline bool sim_flies_in(enum sim_flight_kind k)
{
    return k != SIM_FLY_STORE && k != SIM_FLY_REDUCE;
}

/* Neighbouring bytes on both sides. */
struct sim_piece {
    uint32_t
        shared; /* offset in shared memory: of .to for what comes in, of the issuer for stores */
    uint32_t bytes;
    struct sim_buffer *buffer; /* global memory; NULL: nothing is there, the bytes are filled
                                  (loads) or dropped (stores) */
    uint64_t at;               /* offset in the buffer */
    uint32_t from;             /* SIM_FLY_PEER: offset in the issuer's shared memory */
};

struct sim_flight;
/* The piece after *cursor, which starts at 0; false: there are no more. */
typedef bool (*sim_pieces)(const struct sim_flight *f, uint64_t *cursor, struct sim_piece *p);

enum sim_timing {
    SIM_LATE,
    SIM_EARLY,
    SIM_TORN,
};

struct sim_flight {
    /* from who issues it */
    enum sim_flight_kind kind;
    sim_pieces pieces;
    uint32_t blocks; /* LOAD, PEER, VALUE: ranks of the blocks that get the bytes, a bit each
                        (.multicast::cluster) */
    uint32_t shared; /* offset of the first byte in shared memory, the same in every block */
    uint32_t bytes;  /* in each of the blocks: what its mbarrier is told */
    uint32_t
        mbarrier; /* offset in shared memory, the same in every block; stores: SIM_NO_MBARRIER */
    uint32_t
        extent; /* from .shared to the end of the last piece: bytes, or more where there are gaps */
    uint8_t
        span; /* tensor copies: bytes that rows are swizzled in, 16 where they are not; else 0 */
    uint8_t fold, type; /* REDUCE, PEER, VALUE: enum sim_atom or SIM_NO_FOLD; bytes of an element */
    uint64_t fill; /* what filled bytes repeat, from the first byte of the box on: 0 or NaNs of the
                      type */
    bool tf32;     /* LOAD: words of 32 bits are rounded to tf32 */
    struct sim_buffer *buffer; /* linear copies */
    uint64_t at;
    uint32_t from;           /* PEER */
    unsigned char value[16]; /* VALUE */
    uint32_t lanes, copies;  /* COPIES: of these lanes, those with a lower sim_copy.serial */
    /* from sim_flight_issue() */
    struct sim_block *issuer;
    uint32_t warp, lane, op; /* who issued it, by which record */
    uint32_t group;          /* stores: of the thread's bulk groups, from 0 */
    uint64_t id;             /* of its cluster, from 1 in the order of issue */
    struct sim_block *to;    /* whose shared memory, and mbarrier; stores: the issuer */
    void *tensor;            /* what tensor copies need for .pieces, in the flight's own memory */
    struct sim_flight *next;
    /* flight.c's own */
    enum sim_timing timing;
    uint64_t cursor; /* how far it is */
    struct sim_piece piece;
    uint32_t begun;      /* bytes of that piece which have landed */
    unsigned char *seen; /* stores: what was read of shared memory; NULL: nothing yet */
};
#define SIM_NO_MBARRIER UINT32_MAX
#define SIM_NO_FOLD     UINT8_MAX

/* Puts *f in flight, once for each of the blocks that get the bytes, each with a copy of the
 * tensor's so many bytes. Everything has been checked but the mbarriers. False: the warp has
 * stopped with a fault. */
bool sim_flight_issue(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                      const struct sim_flight *f, const void *tensor, size_t bytes);
/* A number below n drawn from the launch's seed, for the cluster of b; 0 without a seed. */
uint32_t sim_draw(struct sim_block *b, uint32_t n);
/* The one piece of a linear copy. */
bool sim_flight_linear(const struct sim_flight *f, uint64_t *cursor, struct sim_piece *p);

/* Completes one operation of the cluster whose first block is unit. SIM_BLOCKED: none is in flight;
 * SIM_YIELD; SIM_FAULT: unit->fault. */
enum sim_stop sim_flight_step(struct sim_block *unit);
/* Lets some of what is in flight land now, if there is a seed. SIM_YIELD or SIM_FAULT. */
enum sim_stop sim_flight_drift(struct sim_block *unit);
/* Its threads have exited: stores take effect, the rest has nobody to wait for it. SIM_DONE or
 * SIM_FAULT. */
enum sim_stop sim_flight_end(struct sim_block *unit);
/* None are in flight, and with a seed numbers can be drawn. */
void sim_flights_begin(struct sim_block *unit);
/* Forgets them. */
void sim_flights_free(struct sim_block *unit);
/* Bulk copies between linear stretches: op->more is the kind, a and b the 64-bit addresses of the
 * destination and the source, c the bytes (32 bits); into shared memory: d the 64-bit address of
 * the mbarrier and e the mask of blocks, 0: there is none; round, size: fold, type. */
const struct sim_op *sim_bulk_copy(struct sim_warp *w, const struct sim_op *op);
/* cp.async.bulk.prefetch: of c bytes at b. */
const struct sim_op *sim_bulk_prefetch(struct sim_warp *w, const struct sim_op *op);
/* applypriority: of the line of the cache at b, which changes nothing that shows. */
const struct sim_op *sim_line(struct sim_warp *w, const struct sim_op *op);
/* st.async: size bytes from the slots of op->elems elements, d, b, c, e, round of enum sim_vector,
 * to the 64-bit address a; imm: the slot of the mbarrier's 64-bit address; flags: the space of
 * both; more: how it is folded, SIM_NO_FOLD. */
const struct sim_op *sim_st_async(struct sim_warp *w, const struct sim_op *op);
/* cp.async.bulk.commit_group; wait_group op->imm, op->more: .read */
const struct sim_op *sim_bulk_commit(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_bulk_wait(struct sim_warp *w, const struct sim_op *op);

#endif
