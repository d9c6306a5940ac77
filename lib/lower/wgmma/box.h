/* A warp's 16 rows of results, or of what is worked into them, as boxes in shared memory. Nothing
 * here knows what they are.
 *
 * A box is 16 rows of 128 bytes, as a copy (wgmma/tma.h) takes it: 64 columns of 2 bytes or 32 of
 * 4. It begins on BOX_ALIGN bytes, and chunk c of 16 bytes of row r is at chunk c ^ (r % 8), so
 * that neither the matrices of 16-bit results nor the pairs of 32-bit ones meet conflicts of banks:
 *
 *     2 bytes: stmatrix stores 4 matrices of 8 x 8; lane l has the address of row l % 16 and
 *              chunk c + l / 16
 *     4 bytes: lane 4 r + c stores pairs 2 c of rows r and r + 8
 *
 * A piece is what one access of a lane takes: of 16 columns of 2 bytes, or of 8 columns of 4. Lanes
 * have results as wgmma/products.h says.
 */
#ifndef KAIO_LOWER_WGMMA_BOX_H
#define KAIO_LOWER_WGMMA_BOX_H

#include "lower/cg/cg.h"

enum {
    BOX_ROWS = 16,
    BOX_SPAN = 128, /* bytes of a row */
    BOX_BYTES = BOX_ROWS * BOX_SPAN,
    BOX_ALIGN = 1024,
    BOX_PIECES = 4,
};

/* Where the lane's pieces are in the box at the shared address `base`, a u32, of elements of `size`
 * bytes, 2 or 4: u32 registers. Pieces of 16-bit elements come in their order; of 32-bit ones the
 * piece of columns 8 c is at[c]. */
void box_pieces(struct cg *g, struct cg_val lane, uint32_t size, struct cg_val base,
                int32_t at[BOX_PIECES]);

/* 16 bits, all lanes of the warp: words of columns 0 to 7 of rows r and r + 8, then of columns 8 to
 * 15. */
void box_put_words(struct cg *g, int32_t at, uint32_t offset, const struct ptx_operand word[4]);
void box_take_words(struct cg *g, int32_t at, uint32_t offset, const struct ptx_operand word[4]);
/* 32 bits, of type t: the pair of row r (half 0) or r + 8 (half 1). */
void box_put_pair(struct cg *g, enum dtype t, int32_t at, uint32_t offset, uint32_t half,
                  const struct ptx_operand pair[2]);
void box_take_pair(struct cg *g, enum dtype t, int32_t at, uint32_t offset, uint32_t half,
                   const struct ptx_operand pair[2]);

#endif
