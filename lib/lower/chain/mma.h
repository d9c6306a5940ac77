/* Chains by mma.sync: what its files share (chain/mma.c). Private to lib/lower/chain.
 *
 *   chain/mma.c      what lies where, and the beginning
 *   chain/walk.c     along j
 */
#ifndef KAIO_LOWER_CHAIN_MMA_H
#define KAIO_LOWER_CHAIN_MMA_H

#include "lower/chain/chain.h"

enum { CHAIN_LANES = 32 };

struct chain_mma {
    struct cg *g;
    const struct chain_tensor *t;
    const struct chain_plan *p;
    struct chain_tile x;
    struct cg_val thread, warp; /* u32: warp: of those with rows of their own */
    struct chain_split split;
    int32_t shared, mine;   /* u32: addresses: of all, and of the first of the warp's stages */
    int32_t stage;          /* u32, mutable: bytes from there to the stage where the warp is */
    uint32_t bytes, before; /* of a stage; in front of the first warp's */
    struct chain_slab q[CHAIN_SCORES], k[CHAIN_SCORES], v[CHAIN_COLUMNS];
    /* addresses of the lane in each; q's words, where they are held */
    int32_t q_at[CHAIN_SCORES][MMA_WAYS], k_at[CHAIN_SCORES][MMA_WAYS],
        v_at[CHAIN_COLUMNS][MMA_WAYS];
    int32_t *held[CHAIN_SCORES];
    int32_t *score[CHAIN_SCORES]; /* mutable */
};

/* Steps of MMA_STEP bytes that score n's products take, and those of column n. */
uint32_t chain_mma_score_steps(const struct chain_mma *k, uint32_t n);
uint32_t chain_mma_column_steps(const struct chain_mma *k, uint32_t n);
/* Words of a lane's but q's: scores, sums, left operands, and the right ones of one step. */
uint32_t chain_mma_words(const struct chain_tensor *t, const struct chain_plan *p);

/* Streams over the block's tiles, which all warps bring together. */
void chain_mma_walk(struct chain_mma *k);
/* Streams over the warp's own tiles. */
void chain_mma_walk_own(struct chain_mma *k);

#endif
