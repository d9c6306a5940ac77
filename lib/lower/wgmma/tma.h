/* Copies of boxes of tensors between memory and shared memory (TMA). Nothing here knows what they
 * are for.
 *
 * A tensor is known by its map (cg_param_map(), whose boxes are swizzled over the bytes of their
 * rows), a box by the coordinates of its first element. What of a box is outside of the tensor
 * reads as zeros, counts among the bytes that arrive, and is not written.
 */
#ifndef KAIO_LOWER_WGMMA_TMA_H
#define KAIO_LOWER_WGMMA_TMA_H

#include "lower/cg/cg.h"

struct tma_box {
    int32_t map; /* the register of the map's address, of 64 bits */
    uint32_t rank;
    struct ptx_operand
        at[CONTRACT_MAP_RANK]; /* elements: u32, those along the innermost dimension first */
    /* Of windows of pixels (.im2col) there are offsets, too, of 16 bits; 0: of others. */
    uint32_t noffset;
    struct ptx_operand offset[CONTRACT_MAP_SPACE];
};

/* Asks for the map: by one thread, some time before the first copy. */
void tma_prefetch(struct cg *g, int32_t map);
/* By one thread: the box comes to the shared address `to` + offset, and its bytes arrive at the
 * mbarrier `barrier`, whose phase expects them. mask: -1, or a register of 16 bits: the blocks of
 * the cluster, bit by bit, to each of which the box comes at the same places. */
void tma_load(struct cg *g, const struct tma_box *box, int32_t to, uint32_t offset, int32_t barrier,
              int32_t mask);
/* By one thread: the box goes from the shared address `from` + offset to memory, as a group of its
 * own. Writes by threads come before it behind a fence.proxy.async of each and a barrier. */
void tma_store(struct cg *g, const struct tma_box *box, int32_t from, uint32_t offset);
/* Waits until all of the thread's groups but the latest `but` have read their shared memory. */
void tma_wait_read(struct cg *g, uint32_t but);

#endif
