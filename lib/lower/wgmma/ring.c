/* Stages and their barriers (wgmma/wgmma.h). */
#include <config.h>

#include "lower/wgmma/wgmma.h"

void wgmma_wait(struct wgmma *s, int32_t barrier, uint32_t offset, int32_t parity)
{
    struct cg *g = s->g;
    const uint32_t again = cg_label(g, "wait");
    const int32_t done = cg_new(g, DT_BOOL);
    cg_place(g, again);
    PTX(&g->b, "mbarrier.try_wait.parity.shared::cta.b64", ptx_r(done), ptx_mem(barrier, offset),
        ptx_r(parity));
    cg_jump_if(g, done, false, again);
}

int32_t wgmma_mutable(struct cg *g, struct cg_val v)
{
    const int32_t reg = cg_new_mutable(g, DT_U32);
    cg_move(g, reg, v);
    return reg;
}

static struct cg_val shared_at(struct wgmma *s, uint32_t offset)
{
    return cg_binary(s->g, OP_ADD, cg_value(DT_U32, s->m->shared), cg_int(DT_U32, offset));
}

void wgmma_hand_over(struct wgmma *s, uint32_t offset)
{
    struct cg *g = s->g;
    PTX0(&g->b, "fence.proxy.async.shared::cta");
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    const struct cg_val is_first = cg_binary(g, OP_EQ, s->m->lane, cg_u32(0));
    PTX_IF(&g->b, cg_reg(g, is_first), "mbarrier.arrive.shared::cta.b64", ptx_sink(),
           ptx_mem(s->ring.full, offset));
}

void wgmma_ring_begin(struct wgmma *s, unsigned parity)
{
    struct cg *g = s->g;
    s->ring.offset = wgmma_mutable(g, cg_int(DT_U32, 0));
    s->ring.full = wgmma_mutable(g, shared_at(s, s->barriers));
    s->ring.parity = wgmma_mutable(g, cg_int(DT_U32, parity));
}

void wgmma_ring_next(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct wgmma_ring *r = &s->ring;
    const uint32_t n = s->p->stages;
    const int32_t last = cg_new(g, DT_BOOL);
    PTX(&g->b, "add.s32", ptx_r(r->offset), ptx_r(r->offset), ptx_imm(s->stage_bytes));
    PTX(&g->b, "add.s32", ptx_r(r->full), ptx_r(r->full), ptx_imm(WGMMA_BARRIER));
    PTX(&g->b, "setp.eq.s32", ptx_r(last), ptx_r(r->offset), ptx_imm(n * s->stage_bytes));
    PTX_IF(&g->b, last, "mov.u32", ptx_r(r->offset), ptx_imm(0));
    PTX_IF(&g->b, last, "sub.s32", ptx_r(r->full), ptx_r(r->full), ptx_imm(n * WGMMA_BARRIER));
    PTX_IF(&g->b, last, "xor.b32", ptx_r(r->parity), ptx_r(r->parity), ptx_imm(1));
    cg_assigned(g, r->offset);
    cg_assigned(g, r->full);
    cg_assigned(g, r->parity);
}

uint32_t wgmma_ready(const struct wgmma *s)
{
    return 2 * s->p->stages * WGMMA_BARRIER;
}

uint32_t wgmma_barriers(const struct wgmma *s)
{
    return (s->converts ? 3 : 2) * s->p->stages * WGMMA_BARRIER;
}

void wgmma_ring_skip(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct wgmma_ring *r = &s->ring;
    const struct cg_val n = cg_int(DT_U32, s->p->stages), bar = cg_int(DT_U32, WGMMA_BARRIER);
    struct cg_val first = shared_at(s, s->barriers), full = cg_value(DT_U32, r->full);
    struct cg_val at = cg_binary(g, OP_DIV, cg_binary(g, OP_SUB, full, first), bar);
    at = cg_binary(g, OP_ADD, at, wgmma_stages(s));
    struct cg_val rounds = cg_binary(g, OP_DIV, at, n);
    at = cg_binary(g, OP_SUB, at, cg_binary(g, OP_MUL, rounds, n));
    rounds = cg_binary(g, OP_AND, rounds, cg_int(DT_U32, 1));
    cg_move(g, r->parity, cg_binary(g, OP_XOR, cg_value(DT_U32, r->parity), rounds));
    cg_move(g, r->full, cg_binary(g, OP_ADD, first, cg_binary(g, OP_MUL, at, bar)));
    cg_move(g, r->offset, cg_binary(g, OP_MUL, at, cg_int(DT_U32, s->stage_bytes)));
}

void wgmma_ring_varies(struct wgmma *s, struct cg_nest *nest)
{
    cg_nest_varies(s->g, nest, s->ring.offset);
    cg_nest_varies(s->g, nest, s->ring.full);
    cg_nest_varies(s->g, nest, s->ring.parity);
}

struct cg_val wgmma_stages(struct wgmma *s)
{
    struct cg *g = s->g;
    struct cg_val from = cg_convert(g, s->m->k_from, DT_U32),
                  to = cg_convert(g, s->m->k_to, DT_U32);
    struct cg_val n = cg_binary(g, OP_SUB, to, from);
    n = cg_binary(g, OP_ADD, n, cg_int(DT_U32, s->p->bk - 1));
    return cg_binary(g, OP_DIV, n, cg_int(DT_U32, s->p->bk));
}

void wgmma_for_stages(struct wgmma *s, void (*body)(struct wgmma *s))
{
    struct cg *g = s->g;
    const uint32_t head = cg_label(g, "stage");
    const int32_t more = cg_new(g, DT_BOOL);
    struct cg_nest nest;
    s->rest = wgmma_mutable(g, wgmma_stages(s));
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, s->rest);
    if (s->k >= 0)
        cg_nest_varies(g, &nest, s->k);
    if (s->next_k >= 0)
        cg_nest_varies(g, &nest, s->next_k);
    wgmma_ring_varies(s, &nest);
    body(s);
    wgmma_ring_next(s);
    PTX(&g->b, "sub.s32", ptx_r(s->rest), ptx_r(s->rest), ptx_imm(1));
    PTX(&g->b, "setp.ne.s32", ptx_r(more), ptx_r(s->rest), ptx_imm(0));
    cg_assigned(g, s->rest);
    cg_jump_if(g, more, true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}
