/* Instructions of wgmma on tiles in shared memory, and on sums in registers. Nothing here knows
 * what is multiplied.
 *
 * An operand of an instruction is a tile of rows i (of the left one) or columns j (of the right
 * one) by k. It is made of atoms, as wgmma and TMA have them with the swizzle of 128 bytes: rows of
 * 128 bytes, of which the 16-byte chunk c of row r is at chunk c ^ (r % 8). So each 8 rows fill
 * 1024 bytes, all 32 banks of them. A tile begins on WGMMA_ALIGN bytes.
 *
 *     along k                                     across (elements of 16 bits alone)
 *     atom a: k from a * 128 bytes on             atom a: i or j from a * 64 elements on
 *     row r:  i or j = r                          row r:  k = r
 *
 *            k: 128 bytes                                i or j: 64 elements
 *     i 0   |0|1|2|3|4|5|6|7|                     k 0   |0|1|2|3|4|5|6|7|
 *       1   |1|0|3|2|5|4|7|6|                       1   |1|0|3|2|5|4|7|6|
 *       2   |2|3|0|1|6|7|4|5|                       2   |2|3|0|1|6|7|4|5|
 *       ..                                          ..
 *     rows  |...            |                      k    |...            |
 *
 * An instruction takes 64 rows i, up to 256 columns j and a step of 32 bytes of k: two chunks of
 * the rows along k, or 16 rows of what lies across. Its descriptors (64 bits): the address and two
 * strides, in units of 16 bytes, and the kind of swizzle:
 *
 *     bits      along k                           across
 *      0..13    address: + 32 bytes for each      + 2048 bytes for each
 *     16..29    unused                            from an atom to the next: k * 128
 *     32..45    from 8 rows to the next: 1024     from 8 rows (of k) to the next: 1024
 *     62..63    1: 128 bytes                      1
 *
 * A lane has of 64 rows and n columns n / 2 sums, as mma.sync has them: warp w of the warpgroup
 * rows 16 w on, lane 4 r + c of it words 4 j .. 4 j + 3 of each 8 columns j:
 *
 *     row r       columns 8 j + 2 c, 8 j + 2 c + 1
 *     row r + 8   the same
 *
 * Where the left operand is in registers instead, a lane has 4 words of each step: of 16-bit
 * elements k = 2 c, 2 c + 1 of rows r and r + 8, and then k + 8 of both. So two results of 8
 * columns, packed, are the left operand of a step of a product that follows.
 */
#ifndef KAIO_LOWER_WGMMA_PRODUCTS_H
#define KAIO_LOWER_WGMMA_PRODUCTS_H

#include "lower/cg/cg.h"

enum {
    WGMMA_SPAN = 128,   /* bytes of a row of an atom */
    WGMMA_ALIGN = 1024, /* of a tile */
    WGMMA_ROWS = 64,    /* of an instruction, and of its results' 4 warps 16 each */
    WGMMA_WIDE = 256,   /* columns of an instruction at most; elements of a box along each side */
    WGMMA_STEP = 32,    /* bytes of k of an instruction */
    WGMMA_GROUP = 128,  /* threads of a warpgroup */
};

/* How a tile lies. */
struct wgmma_layout {
    bool along_k;
    uint32_t size;       /* bytes of an element */
    uint32_t atoms;      /* of the tile */
    uint32_t atom_bytes; /* rows of the atom * WGMMA_SPAN */
};
/* Of `rows` rows i (or columns j) and `terms` k. What is contiguous, k or rows, must be a multiple
 * of 128 bytes, the other one of 8. */
struct wgmma_layout wgmma_layout(bool along_k, uint32_t size, uint32_t rows, uint32_t terms);
/* Bytes from the tile's beginning to that of row `row`, a multiple of 8, or across of 128 bytes;
 * and to step `step` of k. */
uint32_t wgmma_row_bytes(const struct wgmma_layout *l, uint32_t row);
uint32_t wgmma_step_bytes(const struct wgmma_layout *l, uint32_t step);

/* A u32 register with the low word of the descriptor of a tile that lies at the shared address
 * `at`, a u32. */
int32_t wgmma_low_word(struct cg *g, const struct wgmma_layout *l, struct cg_val at);
/* The high word is the same of all tiles: a u32 register. */
int32_t wgmma_high_word(struct cg *g);
/* The descriptor, an operand of 64 bits, of what lies `offset` bytes behind the low word's
 * address. */
struct ptx_operand wgmma_descriptor(struct cg *g, int32_t low, int32_t high, uint32_t offset);

/* An instruction. f32 is multiplied as tf32. */
struct wgmma_kind {
    enum dtype left, right, sum; /* sum: f32, or i32 where the others are i8 or u8 */
    uint32_t columns;            /* a multiple of 8 up to WGMMA_WIDE */
    bool across[2]; /* the left operand lies across, the right one does: of 16 bits alone */
};
/* sum += a b where the predicate `adds` holds, else sum = a b, when the instructions so far are
 * committed and waited for. sum: the registers of columns / 2 words; a: a descriptor or a vector of
 * 4 words; b: a descriptor. */
void wgmma_multiply(struct cg *g, const struct wgmma_kind *k, const struct ptx_operand *sum,
                    struct ptx_operand a, struct ptx_operand b, int32_t adds);
/* Before instructions that take registers which something else has written: sums, or words of a
 * left operand. */
void wgmma_fence(struct cg *g);
/* The instructions so far are a group. */
void wgmma_commit(struct cg *g);
/* All groups but the latest `but` are over. Sums are the caller's to tell of (cg_assigned()). */
void wgmma_wait_groups(struct cg *g, uint32_t but);

/* The lane's r, and 2 c: u32. */
struct cg_val wgmma_lane_row(struct cg *g, struct cg_val lane);
struct cg_val wgmma_lane_column(struct cg *g, struct cg_val lane);

#endif
