/* What threads do together: the calls of kind SYNC. Private to lib/lower. */
#ifndef KAIO_LOWER_SYNC_H
#define KAIO_LOWER_SYNC_H

#include "lower/cg/cg.h"

const char *cg_scope_word(enum lang_memory_scope s); /* "cta", "gpu" ... */
void cg_fence(struct cg *g, struct span s, enum lang_order order, enum lang_memory_scope scope);

/* warp.c */
struct cg_val warp_shuffle(struct cg *g, const struct lang_expr *e);
struct cg_val warp_reduce_sync(struct cg *g,
                               const struct lang_expr *e);             /* __reduce_add_sync() ... */
struct cg_val warp_reduction(struct cg *g, const struct lang_expr *e); /* warp_sum() ... */

enum fold_kind { FOLD_SUM, FOLD_MAX, FOLD_MIN, FOLD_AND, FOLD_OR, FOLD_XOR };
enum shuffle { SHUFFLE_IDX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };

struct cg_val fold_pair(struct cg *g, enum fold_kind f, struct cg_val x, struct cg_val y);
/* v of another lane. clamp: as PTX defines the operand c of shfl. in_range, if not NULL, gets the
 * predicate that there is such a lane. */
struct cg_val shuffle(struct cg *g, enum shuffle how, struct cg_val v, struct ptx_operand lane,
                      struct ptx_operand clamp, struct ptx_operand mask, int32_t *in_range);
/* Writes the predicate `to`: does p hold in one of a warp's 32 lanes, or in all? */
void warp_vote(struct cg *g, bool all, int32_t to, int32_t p);

/* The lanes of the thread's warp that exist: all 32, unless the block's threads are not a multiple
 * of 32. */
struct lanes {
    bool all;
    struct cg_val count;     /* u32 */
    struct ptx_operand mask; /* of those lanes */
};
struct lanes warp_lanes(struct cg *g);
struct cg_val block_threads(struct cg *g); /* how many, u32; an immediate where that is known */
/* v folded over those lanes, in every one of them. */
struct cg_val warp_fold(struct cg *g, enum fold_kind f, struct cg_val v, const struct lanes *of);

/* atom.c */
struct cg_val atomic_call(struct cg *g, const struct lang_expr *e); /* a call of kind ATOMIC */

/* block.c */
struct cg_val block_reduction(struct cg *g, const struct lang_expr *e); /* block_sum() ... */

#endif
