/* Copies of boxes of tensors (wgmma/tma.h). */
#include <config.h>

#include "lower/wgmma/tma.h"

#include <stdio.h>

void tma_prefetch(struct cg *g, int32_t map)
{
    PTX(&g->b, "prefetch.tensormap", ptx_mem(map, 0));
}

void tma_load(struct cg *g, const struct tma_box *box, int32_t to, uint32_t offset, int32_t barrier,
              int32_t mask)
{
    char text[128];
    struct ptx_operand more[2];
    uint32_t n = 0;
    snprintf(text, sizeof text,
             "cp.async.bulk.tensor.%ud.shared::cluster.global.%s.mbarrier::complete_tx::bytes%s",
             (unsigned)box->rank, box->noffset ? "im2col" : "tile",
             mask >= 0 ? ".multicast::cluster" : "");
    const struct ptx_operand tensor = ptx_tensor(&g->b, box->map, box->rank, box->at);
    if (box->noffset)
        more[n++] = ptx_vec(&g->b, box->noffset, box->offset);
    if (mask >= 0)
        more[n++] = ptx_r(mask);
    if (n == 0)
        PTX(&g->b, text, ptx_mem(to, offset), tensor, ptx_mem(barrier, 0));
    else if (n == 1)
        PTX(&g->b, text, ptx_mem(to, offset), tensor, ptx_mem(barrier, 0), more[0]);
    else
        PTX(&g->b, text, ptx_mem(to, offset), tensor, ptx_mem(barrier, 0), more[0], more[1]);
}

void tma_store(struct cg *g, const struct tma_box *box, int32_t from, uint32_t offset)
{
    char text[96];
    snprintf(text, sizeof text, "cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group",
             (unsigned)box->rank);
    PTX(&g->b, text, ptx_tensor(&g->b, box->map, box->rank, box->at), ptx_mem(from, offset));
    PTX0(&g->b, "cp.async.bulk.commit_group");
}

void tma_wait_read(struct cg *g, uint32_t but)
{
    PTX(&g->b, "cp.async.bulk.wait_group.read", ptx_imm(but));
}
