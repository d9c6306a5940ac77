/* Tiles in shared memory, and how a warp takes words for mma.sync from them (mma/products.h).
 * Nothing here knows what they hold.
 *
 * A tile is rows of chunks of 16 bytes. Chunk c of row r is where chunk c ^ x(r) would be, so that
 * the 8 rows that an ldmatrix takes at once, or the words of 4 rows that an ld.shared does, are in
 * banks of their own. A tall operand is the left one of the instructions, a flat one the right one.
 * A warp takes `span` rows (columns) of its own, step by step: 32 bytes of k each.
 *
 * The rows of the left operand and the columns of the right one may stand in any order among a
 * warp's, as long as the sums are put where they belong, and k in any order that is the same for
 * both. That is what makes do without transposing bytes: a lane takes pairs of neighbours as they
 * lie, which belong to different instructions. Elements of 32 bits that lie across are loaded into
 * the registers that the instruction wants them in: of a tall operand two neighbours, of a flat one
 * one by one.
 */
#ifndef KAIO_LOWER_MMA_FRAGMENT_H
#define KAIO_LOWER_MMA_FRAGMENT_H

#include "lower/mma/products.h"

enum {
    MMA_CHUNK = 16, /* bytes */
    MMA_WAYS = 8,   /* addresses of a lane, at most */
};

enum mma_layout {
    MMA_ALONG_K, /* rows along i or j: ldmatrix */
    MMA_16BIT,   /* rows along k, 16 bits: ldmatrix.trans */
    MMA_BYTES,   /* rows along k, 8 bits: ldmatrix.trans of pairs of neighbours, then parted */
    MMA_SINGLES, /* rows along k, 32 bits: ld.shared */
};

struct mma_lay {
    enum mma_layout layout;
    bool tall;
    /* of a tall operand that lies across: of 16 neighbours those of even numbers come first, as the
     * lanes have them that take two at a time */
    bool spaced;
    /* of single elements of a flat operand: a lane's two of a step are neighbours along k, as sums
     * of two columns are that become the left operand's */
    bool paired;
    uint32_t row_bytes;
    uint32_t span; /* rows, or columns, that a warp takes: a multiple of 16 */
};

/* The place of chunk number c of row r of the tile: bytes from its beginning, u32. */
struct cg_val mma_chunk(struct cg *g, const struct mma_lay *l, struct cg_val r, struct cg_val c);
/* Registers of a lane for a step. */
static inline uint32_t mma_words(const struct mma_lay *l)
{
    return l->span / 4;
}
/* Addresses that a lane needs for a stage of so many steps. */
uint32_t mma_ways(const struct mma_lay *l, uint32_t steps);
/* The address, a u32, number `way` of the lane, in the tile `offset` bytes behind the shared
 * address `shared`: base is the warp's first row (column). */
struct cg_val mma_lane_address(struct cg *g, const struct mma_lay *l, struct cg_val lane,
                               struct cg_val base, uint32_t way, int32_t shared, uint32_t offset);
/* Loads the words of a step, from the lane's addresses: mutable registers. */
void mma_load_words(struct cg *g, const struct mma_lay *l, const int32_t *at, uint32_t step,
                    const int32_t *word);
/* Loads the four words of them that are of block i of 16 rows (columns). */
void mma_load_block(struct cg *g, const struct mma_lay *l, const int32_t *at, uint32_t step,
                    uint32_t i, const int32_t *word);
/* Which row or column of a warp's words they are: lane's part = factor * group (tall) or 2 * factor
 * * member (flat) plus this; half: of the tall operand's 16, or which of a flat one's pair. */
uint32_t mma_factor(const struct mma_lay *l);
uint32_t mma_row_of(const struct mma_lay *l, uint32_t i, uint32_t half);
/* The first of pair i of a lane's words, which are of one row or column; the other is the one for k
 * + 4: the second next of a tall operand's, the next of a flat one's. */
uint32_t mma_pair_of(const struct mma_lay *l, uint32_t i);

/* cp.async of 4, 8 or 16 bytes to [to], where exists holds (-1: always); bytes behind the first
 * `bytes`, a u32, are zeros; -1: none are. */
void mma_copy_async(struct cg *g, int32_t exists, struct ptx_operand to, struct ptx_operand from,
                    uint32_t piece, int32_t bytes);
/* The copies so far are a group; all groups but the latest `but` are there, for the thread. */
void mma_commit_copies(struct cg *g);
void mma_wait_copies(struct cg *g, uint32_t but);

#endif
