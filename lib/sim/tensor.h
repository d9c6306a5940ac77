/* Tensor maps and the copies that use them (PTX ISA, "Tensors", cp.async.bulk.tensor). Private to
 * lib/sim.
 *
 * A tensor map is 128 bytes that only tensormap.replace may change. The hardware's layout is not
 * published; ours has a magic number and a check sum, so that bytes which are no map, or a map that
 * something else has written to, are a reported fault. It may lie in parameters, constant or global
 * memory.
 *
 * A box of units (run/tensor_map.h: elements, or with interleave slices of channels) lies in shared
 * memory row by row, dimension 0 innermost. Rows follow each other; with a swizzle they are at
 * least its span apart. A swizzle moves the 16-byte chunks of each 128 bytes of shared memory. It
 * is a function of the ADDRESS alone, not of the place in the box: bits 7 and up are xored into
 * bits 4 and up.
 *
 *     swizzle  32:  bit  7     -> bit  4       address ^ (address >> 3 & 0x10) Swizzle<1,4,3> of
 *                                              CUTLASS
 *     swizzle  64:  bits 7-8   -> bits 4-5     address ^ (address >> 3 & 0x30)   Swizzle<2,4,3>
 *     swizzle 128:  bits 7-9   -> bits 4-6     address ^ (address >> 3 & 0x70)   Swizzle<3,4,3>
 *
 * so the pattern repeats each 256, 512, 1024 bytes, and a box that does not start at such a
 * multiple (it must at one of 128) starts in the midst of it. Which chunk of the unswizzled box is
 * where, each line 128 bytes of shared memory:
 *
 *              swizzle 32          swizzle 64          swizzle 128
 *     +0x000   0 1 2 3 4 5 6 7     0 1 2 3 4 5 6 7     0 1 2 3 4 5 6 7
 *     +0x080   1 0 3 2 5 4 7 6     1 0 3 2 5 4 7 6     1 0 3 2 5 4 7 6
 *     +0x100   (again)             2 3 0 1 6 7 4 5     2 3 0 1 6 7 4 5
 *     +0x180                       3 2 1 0 7 6 5 4     3 2 1 0 7 6 5 4
 *     +0x200                       (again)             4 5 6 7 0 1 2 3
 *     +0x280                                           5 4 7 6 1 0 3 2
 *     +0x300                                           6 7 4 5 2 3 0 1
 *     +0x380                                           7 6 5 4 3 2 1 0
 *
 * A box {64, 8} of f16 with swizzle 128: row y is line y, and its columns 8 x .. 8 x + 7 are in
 * chunk x ^ y. That of a box {32, 8} with swizzle 64: rows 2 y and 2 y + 1 share line y,
 *
 *     +0x000   r0c0 r0c1 r0c2 r0c3 r1c0 r1c1 r1c2 r1c3
 *     +0x080   r2c1 r2c0 r2c3 r2c2 r3c1 r3c0 r3c3 r3c2       (rNcM: row N, columns 8 M .. 8 M + 7)
 *     +0x100   r4c2 r4c3 r4c0 r4c1 r5c2 r5c3 r5c0 r5c1
 *     +0x180   r6c3 r6c2 r6c1 r6c0 r7c3 r7c2 r7c1 r7c0
 *
 * Outside of the tensor (a coordinate below 0, or past the end) loads fill with 0 or with NaNs, and
 * the bytes count for the mbarrier as others do; stores and reductions leave memory alone, except
 * that along dimension 0 they end at a multiple of 16 bytes from the row's start: a row of 70 f32
 * is written to its 72nd (seen on an H100).
 */
#ifndef KAIO_SIM_TENSOR_H
#define KAIO_SIM_TENSOR_H

#include "run/tensor_map.h"
#include "sim/flight.h"

/* ---- maps (tensor_map.c) --------------------------------------------------------------------- */

void sim_tensor_encode(const struct device_tensor_map *m, unsigned char to[DEVICE_TENSOR_MAP]);

enum sim_tensor_error {
    SIM_TENSOR_FINE,
    SIM_TENSOR_PLACE,   /* not in memory where a map can be */
    SIM_TENSOR_ALIGN,   /* not at a multiple of 64 */
    SIM_TENSOR_GARBAGE, /* no map */
    SIM_TENSOR_SPOILT,  /* a map that something has written to */
    SIM_TENSOR_RULES,   /* a map that is against device_tensor_map_check()'s rules */
    SIM_TENSOR_RANK,    /* a map of another rank */
    SIM_TENSOR_MODE,    /* one of boxes for .im2col, or the other way round */
    SIM_TENSOR_FOLD,    /* elements of this type can't be reduced like that */
};

/* The map that these bytes are, which the rules need not like. SIM_TENSOR_FINE, _GARBAGE or
 * _SPOILT. */
enum sim_tensor_error sim_tensor_decode(const unsigned char from[DEVICE_TENSOR_MAP],
                                        struct device_tensor_map *m);

/* ---- operands (decode_tensor.c) -------------------------------------------------------------- */

enum sim_tensor_kind {
    SIM_TENSOR_LOAD,
    SIM_TENSOR_STORE,
    SIM_TENSOR_REDUCE,
    SIM_TENSOR_PREFETCH,
    SIM_TENSOR_TOUCH, /* prefetch.tensormap: only the map */
};

/* What the record of such an instruction does; sim_op.imm points to it. Slots: */
struct sim_tensor_op {
    uint8_t kind;  /* enum sim_tensor_kind */
    uint8_t rank;  /* coordinates */
    bool im2col;   /* the mode; offsets are then given, too */
    bool own;      /* the destination is in the block's own memory (.shared::cta) */
    uint16_t fold; /* REDUCE: enum ptx_mod */
    uint32_t mask; /* 32 bits, .multicast::cluster; 0: none */
    uint32_t at[DEVICE_TENSOR_RANK];      /* 32 bits */
    uint32_t offset[DEVICE_TENSOR_SPACE]; /* 16 bits */
    uint32_t map, shared, mbarrier;       /* 64 bits: addresses */
};
static inline const struct sim_tensor_op *sim_tensor_of(const struct sim_op *op)
{
    return (const struct sim_tensor_op *)(uintptr_t)op->imm;
}

/* Handlers.
 * cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, the prefetches. */
const struct sim_op *sim_tensor_issue(struct sim_warp *w, const struct sim_op *op);
/* tensormap.replace: of the map at the 64-bit address op->a in the space op->more, field op->round
 * (enum sim_tensor_field), number op->c of it, becomes op->b, a slot of op->e bits. */
enum sim_tensor_field {
    SIM_TENSOR_ADDRESS,
    SIM_TENSOR_DIMS, /* one less */
    SIM_TENSOR_BOX,
    SIM_TENSOR_DIM,
    SIM_TENSOR_STRIDE,
    SIM_TENSOR_STEP,
    /* as the PTX ISA numbers their values */
    SIM_TENSOR_TYPE,
    SIM_TENSOR_INTERLEAVE,
    SIM_TENSOR_SWIZZLE,
    SIM_TENSOR_FILL,
};
const struct sim_op *sim_tensor_replace(struct sim_warp *w, const struct sim_op *op);
/* tensormap.cp_fenceproxy: 128 bytes, from the 64-bit address op->b in shared to op->a in global
 * memory, by all lanes together. */
const struct sim_op *sim_tensor_publish(struct sim_warp *w, const struct sim_op *op);

/* fence.proxy.tensormap: .acquire of the map at the 64-bit address op->a, 0: .release. */
const struct sim_op *sim_tensor_fence(struct sim_warp *w, const struct sim_op *op);

/* A fault of kind SIM_F_TENSOR, about the map at a generic address; map: its bytes, for errors that
 * tell of them. */
void sim_tensor_fault(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint64_t address,
                      enum sim_tensor_error error, const unsigned char *map);
/* What it says. */
void sim_tensor_report(struct sim_launch *l, const struct sim_fault *f, struct diags *d);

/* ---- copies (tensor.c) ----------------------------------------------------------------------- */

/* What is filled with NaNs, every 16 bits of it: one that fma.oob takes for 0. */
#define SIM_TENSOR_NAN UINT64_C(0x7ff77ff77ff77ff7)

/* A box and where it lies, as sim_flight.tensor. */
struct sim_tensor_box {
    struct sim_buffer *buffer; /* the tensor's; NULL: nothing of the box is inside of the tensor */
    uint64_t base;             /* where in the buffer the tensor starts */
    uint32_t rank, unit;       /* dimensions; bytes of a unit */
    uint32_t row, pitch;       /* bytes of a row, and from one to the next in shared memory */
    uint32_t swizzle;          /* bits of an address that change: 0, 0x10, 0x30, 0x70 */
    int64_t from, to;          /* bytes of the tensor's rows that are copied; step[0] 1 */
    int64_t at[DEVICE_TENSOR_RANK];
    uint64_t dim[DEVICE_TENSOR_RANK], stride[DEVICE_TENSOR_RANK]; /* stride[0]: of a unit */
    uint32_t count[DEVICE_TENSOR_RANK], step[DEVICE_TENSOR_RANK];
    /* With im2col rows are pixels one after the other, and .at is where the window of the first one
     * begins; of dimension 1 + i .count[1 + i] windows begin, the first at lower[i], and of each
     * the pixel that is so far from there: */
    bool im2col;
    uint32_t pixels;
    int64_t lower[DEVICE_TENSOR_SPACE], offset[DEVICE_TENSOR_SPACE];
};
/* Fills in the box of a map that device_tensor_map_check() lets through; .buffer and .base are NULL
 * and 0. offset: of a map with .im2col, else not looked at. */
void sim_tensor_box(const struct device_tensor_map *m, const int32_t *at, const uint16_t *offset,
                    bool stores, struct sim_tensor_box *box);
/* Bytes from the tensor's start on between which everything lies that is copied; false: nothing
 * is. */
bool sim_tensor_extent(const struct sim_tensor_box *box, uint64_t *first, uint64_t *end);
/* The pieces of a flight with a box. */
bool sim_tensor_pieces(const struct sim_flight *f, uint64_t *cursor, struct sim_piece *p);

#endif
