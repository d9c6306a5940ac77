/* Operations beside the threads of a cluster: bulk copies, tensor copies, stores to other blocks that complete a
 * transaction (PTX ISA, "asynchronous operations"). Private to lib/sim.
 *
 * A thread issues an operation; nothing of it has happened then. It takes effect when something forces it to, or at any
 * moment before, in any order with others:
 *
 *     loads and stores into shared memory      before the mbarrier that they name sees their bytes (complete_tx). They are
 *                                              in a list of the cluster; sim_flight_step() completes one when no thread of
 *                                              the cluster can go on.
 *     stores and reductions to global memory   before cp.async.bulk.wait_group returns, in the thread that issued them;
 *                                              what is read of shared memory before wait_group.read does. They are in a
 *                                              list of the warp.
 *
 * So, without a seed, everything happens as late as it may: who reads too soon gets what was there before, and who
 * refills a buffer too soon spoils what is still to be read. With one (device_options.seed) each operation draws whether
 * it is early, late or torn, and which of those in flight comes next.
 *
 * What an operation moves is told piece by piece, to whoever carries it out and to the sanitizer alike.
 */
#ifndef KAIO_SIM_FLIGHT_H
#define KAIO_SIM_FLIGHT_H

#include "sim/sim.h"

enum sim_flight_kind {
    SIM_FLY_LOAD,   /* global -> shared memory of a block of the cluster */
    SIM_FLY_PEER,   /* shared memory -> that of a block of the cluster */
    SIM_FLY_STORE,  /* shared -> global memory */
    SIM_FLY_REDUCE, /* shared memory is folded into global memory: .fold */
};

/* Neighbouring bytes on both sides. */
struct sim_piece {
    uint32_t shared; /* offset in the shared memory of the block that .block names */
    uint32_t bytes;
    uint32_t block; /* rank in the cluster */
    struct sim_buffer *
        buffer; /* global memory; NULL: nothing is there, the bytes are filled (loads) or dropped (stores) */
    uint64_t at;   /* offset in the buffer */
    uint32_t from; /* SIM_FLY_PEER: offset in the issuing block's shared memory */
};

struct sim_flight;
/* The piece after *cursor, which starts at 0; false: there are no more. */
typedef bool (*sim_pieces)(const struct sim_flight *f, uint64_t *cursor, struct sim_piece *p);

struct sim_flight {
    struct sim_flight *next;
    enum sim_flight_kind kind;
    struct sim_block *issuer;
    uint32_t warp, lane, op; /* who issued it, by which record */
    sim_pieces pieces;
    uint32_t
        blocks; /* SIM_FLY_LOAD: ranks that get the bytes, bit by bit (.multicast::cluster); else the one */
    uint32_t shared; /* offset of the first byte in shared memory, the same in every block */
    uint32_t bytes;  /* in each of the blocks: what its mbarrier is told */
    uint32_t
        mbarrier; /* its offset in shared memory, the same in every block; stores: SIM_NO_MBARRIER */
    uint32_t group;     /* stores: of the thread's bulk groups, from 0 */
    uint8_t fold, type; /* SIM_FLY_REDUCE: enum sim_atom; bytes of an element */
    uint32_t fill;      /* the bits that filled bytes repeat: 0, or a NaN of the tensor's type */
    /* linear copies */
    struct sim_buffer *buffer;
    uint64_t at;
    uint32_t from; /* SIM_FLY_PEER */
    /* tensor copies: tensor.c's, in the flight's own memory */
    void *tensor;
};
#define SIM_NO_MBARRIER UINT32_MAX

/* Puts a copy of *f, with its tensor of so many bytes, among those in flight. NULL when there is no memory. */
struct sim_flight *sim_flight_issue(struct sim_warp *w, const struct sim_flight *f,
                                    const void *tensor, size_t bytes);
/* Completes one operation that a thread of the cluster may wait for. False: none is in flight. */
bool sim_flight_step(struct sim_block *unit);
/* The one piece of a linear copy. */
bool sim_flight_linear(const struct sim_flight *f, uint64_t *cursor, struct sim_piece *p);
/* cp.async.bulk.commit_group; wait_group op->imm, op->more: .read */
const struct sim_op *sim_bulk_commit(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_bulk_wait(struct sim_warp *w, const struct sim_op *op);

#endif
