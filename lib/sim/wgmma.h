/* wgmma: products of 64 x K by K x N that four warps have made while they go on. Private to
 * lib/sim.
 *
 * Four warps of a block, the first of them a multiple of four, are a warpgroup. D += A B; warp w of
 * the group holds rows 16 w to 16 w + 15 of D, and of A if that is in registers. K is 32 bytes: 16
 * elements of f16 and bf16, 8 of tf32, 32 of 8 bits.
 *
 * Nothing happens when a product is issued. It takes effect when a warp waits for its group
 * (wgmma.wait_group), which needs all four to have committed it; then for the four of them, in the
 * order of issue: shared memory is read then, registers with A are, and D changes. With a seed some
 * take effect at any moment between (device_options.seed).
 *
 * Registers
 *
 *     D in f32 or s32: register 4 j + 2 h + p of lane 4 g + t is row 16 w + g + 8 h and
 *     column 8 j + 2 t + p.
 *
 *              columns 8 j + 0     1     2     3     4     5     6     7
 *         row 16 w + 0   lane 0       lane 1      lane 2      lane 3      registers 4 j, 4 j + 1
 *                    1   lane 4       lane 5      lane 6      lane 7
 *                   ..
 *                    7   lane 28      lane 29     lane 30     lane 31
 *                    8   lane 0       lane 1      lane 2 lane 3 registers 4 j + 2, 4 j + 3
 *                   ..
 *                   15   lane 28      lane 29     lane 30     lane 31
 *
 *     D in f16: register 2 j + h has both columns, the lower one in its lower half.
 *     A: four registers of four bytes: E = 32 bits / element elements, from column E (4 (r / 2) +
 *     t) on, of row 16 w + g + 8 (r mod 2): for f16 columns 2 t, 2 t + 1 in registers 0 and 1, 2 t
 *     + 8,
 *     2 t + 9 in 2 and 3. (So D, rounded to f16, is the A of a product over what were its columns,
 *     in the same registers.)
 *
 * Matrices in shared memory are named by descriptors:
 *
 *     bits  0..13   start, in units of 16 bytes, as the next two
 *     bits 16..29   leading dimension offset, LBO
 *     bits 32..45   stride dimension offset, SBO
 *     bits 49..51   base offset: bits 7..9 of the address at which the swizzle's pattern begins, if
 *                   that is not a multiple of its length (1024 bytes for a span of 128, 512 for 64,
 *                   256 for 32)
 *     bits 62..63   swizzle: 0 none, 1 span of 128 bytes, 2 of 64, 3 of 32
 *     others        0
 *
 * Memory is thought of in chunks of 16 bytes, and eight of them make a core matrix: 8 rows of a
 * chunk each. A chunk is T elements (8 of f16) along K if the matrix is K-major, and along M or N
 * (here: N) if it is MN-major, which only f16 and bf16 may be. Offsets of chunks from the start, in
 * bytes:
 *
 *     K-major, no swizzle: core matrices are 128 bytes in one piece
 *
 *                   K:  chunk 0           chunk 1
 *         n =  0        0                 LBO
 *              1        16                LBO + 16
 *             ..
 *              7        112               LBO + 112
 *              8        SBO               LBO + SBO
 *
 *     K-major, span of W bytes: rows are W apart, and core matrices stand side by side; LBO means
 *     nothing. The next 32 bytes of K are reached by a start that is 32 more, within W.
 *
 *                   K:  chunk 0           chunk 1
 *         n =  0        0                 16
 *              1        W                 W + 16
 *             ..
 *              7        7 W               7 W + 16
 *              8        SBO               SBO + 16
 *
 *     MN-major, no swizzle: a chunk has 8 elements along N; 8 steps of K are a core matrix
 *
 *                   k = 0      1     ..   7       8         ..   15
 *         n =  0        0      16         112     LBO            LBO + 112
 *              8        SBO    SBO + 16           SBO + LBO
 *             16        2 SBO
 *
 *     MN-major, span of W bytes: W bytes of N are one row of memory, rows of K follow W apart
 *
 *                   k = 0      1     ..   7       8         ..   15
 *         n =  0        0      W          7 W     SBO            SBO + 7 W
 *              8        16     W + 16             SBO + 16
 *             ..
 *            W/2        LBO    LBO + W            LBO + SBO
 *
 * With a swizzle the address of a chunk is then changed: its bits 4 to 6 are xored with bits 7 to 9
 * less the base offset, of a span of 64 bytes two of these bits (4 and 5 with 7 and 8), of 32 bytes
 * one (4 with 7). Chunks of a pattern that begins at a multiple of 1024, by what they were at
 * before:
 *
 *         span of 128                 span of 64                      span of 32
 *            0   0 1 2 3 4 5 6 7         0   0 1 2 3   4 5 6 7           0   0 1  2 3  4 5  6 7
 *          128   1 0 3 2 5 4 7 6       128   1 0 3 2   5 4 7 6         128   1 0  3 2  5 4  7 6
 *          256   2 3 0 1 6 7 4 5       256   2 3 0 1   6 7 4 5
 *          384   3 2 1 0 7 6 5 4       384   3 2 1 0   7 6 5 4
 *          512   4 5 6 7 0 1 2 3
 *          640   5 4 7 6 1 0 3 2
 *          768   6 7 4 5 2 3 0 1
 *          896   7 6 5 4 3 2 1 0
 *
 * It is what cp.async.bulk.tensor does with a tensor map of that swizzle.
 *
 * Sums are those of mma.sync (matrix.h) with all of K in one go, but for fp8: terms are cut off 13
 * bits behind the point of the largest one, and a sum in f32 has 13 bits of fraction, too (MMA-Sim,
 * arXiv 2511.10909).
 *
 * Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". tests/unit/sim_wgmma.c reads
 * every place of every layout back.
 */
#ifndef KAIO_SIM_WGMMA_H
#define KAIO_SIM_WGMMA_H

#include "sim/matrix.h"

enum { SIM_WARPGROUP = 4 }; /* warps */

/* In sim_op.imm of the records, as a pointer; their a and b are the slots of the descriptors, c of
 * the predicate scale-d. */
struct sim_wgmma {
    struct sim_mma
        m; /* of 16 rows and 8 columns; a: slots of A, with na 0 when it is in shared memory */
    uint16_t n, nd;
    const uint32_t *d;     /* slots */
    bool a_mn, b_mn;       /* MN-major */
    bool a_minus, b_minus; /* negated */
};

static inline const struct sim_wgmma *sim_wgmma_of(const struct sim_op *op)
{
    return (const struct sim_wgmma *)(uintptr_t)op->imm;
}

/* A product that has been issued and has not taken effect. */
struct sim_wgmma_flight {
    uint32_t op; /* the record */
    uint32_t group;
    uint64_t a, b; /* descriptors */
    bool adds;     /* D is added to */
};

/* What a warp has issued last, for the other three of its group to compare with. */
enum { SIM_WGMMA_LOG = 64 };
struct sim_wgmmas {
    struct sim_wgmma_flight *v; /* those from head on */
    uint32_t head, n, cap;
    uint32_t committed; /* groups */
    uint32_t issued;
    struct sim_wgmma_flight log[SIM_WGMMA_LOG]; /* [i % SIM_WGMMA_LOG] is the i-th */
};

/* A matrix in shared memory. */
struct sim_tile {
    uint32_t start, leading, stride; /* bytes */
    uint8_t span;                    /* of the swizzle, bytes: 16 (none), 32, 64, 128 */
    uint8_t base;
    bool mn;
};
/* False: bits are set that must not be. */
bool sim_tile_of(uint64_t descriptor, bool mn, struct sim_tile *t);

/* The place of chunk k of row n (K-major), or of chunk n of row k (MN-major), in shared memory. */
static inline uint32_t sim_tile_at(const struct sim_tile *t, uint32_t n, uint32_t k)
{
    const uint32_t span = t->span, wide = span / 16;
    uint32_t at = t->start;
    if (t->mn && wide == 1)
        at += n * t->stride + k % 8 * 16 + k / 8 * t->leading;
    else if (t->mn)
        at += n % wide * 16 + n / wide * t->leading + k % 8 * span + k / 8 * t->stride;
    else
        at += n % 8 * span + n / 8 * t->stride + k * (wide == 1 ? t->leading : 16);
    return at ^ (((at >> 7) - t->base) & (wide - 1)) << 4;
}

/* Its i-th chunk: two to a row of K-major matrices, K-major or not 2 N of B and 32 of a warp's
 * A. */
static inline uint32_t sim_tile_chunk(const struct sim_tile *t, uint32_t i)
{
    return t->mn ? sim_tile_at(t, i / 16, i % 16) : sim_tile_at(t, i / 2, i % 2);
}

/* The stretches of shared memory that a warp's part of a product reads: its rows of A, all of B.
 * How many. */
enum { SIM_WGMMA_READS = 32 + 512 };
struct sim_wgmma_reads {
    uint32_t offset, bytes;
    uint8_t span; /* of the swizzle, bytes: 16 (none), 32, 64, 128 */
};
uint32_t sim_wgmma_reads(const struct sim_warp *w, const struct sim_wgmma_flight *f,
                         struct sim_wgmma_reads *to);

/* What the handler SIM_H_WGMMA_PRODUCT finds in sim_op.imm, as a pointer. */
struct sim_wgmma_product {
    const struct sim_wgmma *g;
    const struct sim_wgmma_flight *f;
};

enum sim_wgmma_fault {
    SIM_WG_BLOCK, /* the block does not have all four warps; others: its warps */
    SIM_WG_LANES, /* lanes have different descriptors or predicates */
    SIM_WG_BITS,  /* address: a descriptor with bits that must be 0 */
    SIM_WG_APART, /* warp others stood at record bytes */
    SIM_WG_LEFT,  /* warp others has exited */
};

/* The instructions, for all lanes of a warp; wait_group leaves op->imm groups. */
const struct sim_op *sim_wgmma_issue(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_wgmma_fence(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_wgmma_commit(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_wgmma_wait(struct sim_warp *w, const struct sim_op *op);
/* All lanes of the warp exit at op: what it has not waited for is gone. False: the others of its
 * group have executed more, and that is a fault. */
bool sim_wgmma_exit(struct sim_warp *w, const struct sim_op *op);
/* Lets some of what is in flight take effect when a warp stops, if there is a seed. */
void sim_wgmma_stopped(struct sim_warp *w);
/* The warps of its group, bit by bit, that have not committed what a warp waits for at op. */
uint32_t sim_wgmma_missing(const struct sim_warp *w, const struct sim_op *op);

/* None are in flight; and without memory for them. */
void sim_wgmmas_reset(struct sim_wgmmas *g);
void sim_wgmmas_free(struct sim_wgmmas *g);

/* Notes that the warp executes op, for its warpgroup. False: that can't be one, or another of its
 * warps has executed something else, and that is a fault. */
bool sim_wgmma_agree(struct sim_warp *w, const struct sim_op *op, uint64_t a, uint64_t b,
                     bool adds);

/* setmaxnreg (registers.c): op->imm registers a thread from now on, op->more: .inc. */
const struct sim_op *sim_set_registers(struct sim_warp *w, const struct sim_op *op);
/* The registers of each thread when the kernel starts; 0: not known before the PTX is compiled
 * (setmaxnreg is ignored then). */
uint32_t sim_registers_at_entry(const struct ptx_func *f);

#endif
