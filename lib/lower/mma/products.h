/* Instructions of mma.sync on words that the lanes of a warp hold. Nothing here knows what is
 * multiplied.
 *
 * An instruction adds to 16 x 8 sums the products of 16 rows and 8 columns over 32 bytes of k. Lane
 * 4 r + c has
 *
 *     of the left operand    words 0 and 1: rows r and r + 8, bytes 4 c .. of k; words 2 and 3: the
 *                            same, 16 bytes of k on
 *     of the right operand   words 0 and 1: column r, bytes 4 c .. of k; and 16 bytes on
 *     of the sums            words 0 and 1: row r, columns 2 c and 2 c + 1; words 2 and 3: row r +
 *                            8
 *
 * so that the sums of two instructions side by side, packed to 16 bits, are the left operand of one
 * that follows.
 */
#ifndef KAIO_LOWER_MMA_PRODUCTS_H
#define KAIO_LOWER_MMA_PRODUCTS_H

#include "lower/cg/cg.h"

enum {
    MMA_ROWS = 16,
    MMA_COLUMNS = 8,
    MMA_STEP = 32, /* bytes of k */
};

/* f32 is multiplied as tf32. f16, f32, bf16: of sums of f32; i8 and u8: of i32; e4m3 and e5m2: of
 * f32. */
struct mma_kind {
    enum dtype left, right;
};
/* d = c + a b, each of 4, 4, 4 and 2 words; c may be d. Where the target has smaller instructions
 * alone (sm_75) it is made of several, and c must be d. d is the caller's to tell of
 * (cg_assigned()). */
void mma_product(struct cg *g, const struct mma_kind *k, const int32_t *d, const int32_t *c,
                 const int32_t *a, const int32_t *b);

#endif
