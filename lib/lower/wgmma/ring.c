/* A ring of stages and their barriers (wgmma/ring.h). */
#include <config.h>

#include "lower/wgmma/ring.h"

/* ---- where a thread stands ------------------------------------------------------------------- */

static struct cg_val first_barrier(const struct ring *r)
{
    return cg_add(r->g, cg_value(DT_U32, r->shared), cg_u32(r->barriers));
}

void ring_init(const struct ring *r, const uint32_t *arrivals)
{
    for (uint32_t i = 0; i < r->sets * r->stages; i++)
        PTX(&r->g->b, "mbarrier.init.shared::cta.b64",
            ptx_mem(r->shared, r->barriers + i * RING_BARRIER), ptx_imm(arrivals[i / r->stages]));
}

void ring_begin(struct ring *r, unsigned parity)
{
    struct cg *g = r->g;
    r->offset = cg_mutable(g, cg_u32(0));
    r->full = cg_mutable(g, first_barrier(r));
    r->parity = cg_mutable(g, cg_u32(parity));
}

void ring_next(const struct ring *r)
{
    struct cg *g = r->g;
    const uint32_t n = r->stages;
    const int32_t last = cg_new(g, DT_BOOL);
    CG_ASSIGN(g, r->offset, "add.s32", ptx_r(r->offset), ptx_imm(r->stage_bytes));
    CG_ASSIGN(g, r->full, "add.s32", ptx_r(r->full), ptx_imm(RING_BARRIER));
    PTX(&g->b, "setp.eq.s32", ptx_r(last), ptx_r(r->offset), ptx_imm(n * r->stage_bytes));
    CG_ASSIGN_IF(g, last, r->offset, "mov.u32", ptx_imm(0));
    CG_ASSIGN_IF(g, last, r->full, "sub.s32", ptx_r(r->full), ptx_imm(n * RING_BARRIER));
    CG_ASSIGN_IF(g, last, r->parity, "xor.b32", ptx_r(r->parity), ptx_imm(1));
}

struct cg_val ring_number(const struct ring *r)
{
    struct cg *g = r->g;
    const struct cg_val at = cg_binary(g, OP_SUB, cg_value(DT_U32, r->full), first_barrier(r));
    return cg_binary(g, OP_DIV, at, cg_u32(RING_BARRIER));
}

void ring_go_to(const struct ring *r, struct cg_val n)
{
    struct cg *g = r->g;
    const struct cg_val all = cg_u32(r->stages), first = first_barrier(r);
    struct cg_val rounds = cg_binary(g, OP_DIV, n, all);
    const struct cg_val at = cg_binary(g, OP_SUB, n, cg_binary(g, OP_MUL, rounds, all));
    rounds = cg_binary(g, OP_AND, rounds, cg_u32(1));
    cg_move(g, r->parity, cg_binary(g, OP_XOR, cg_value(DT_U32, r->parity), rounds));
    cg_move(g, r->full, cg_add(g, first, cg_mul(g, at, RING_BARRIER)));
    cg_move(g, r->offset, cg_mul(g, at, r->stage_bytes));
}

void ring_varies(const struct ring *r, struct cg_nest *nest)
{
    cg_nest_varies(r->g, nest, r->offset);
    cg_nest_varies(r->g, nest, r->full);
    cg_nest_varies(r->g, nest, r->parity);
}

struct cg_val ring_stage(const struct ring *r)
{
    return cg_add(r->g, cg_value(DT_U32, r->shared), cg_value(DT_U32, r->offset));
}

/* ---- barriers -------------------------------------------------------------------------------- */

/* Bytes from a stage's barrier `full` to that of the set. */
static uint32_t apart(const struct ring *r, enum ring_set set)
{
    return (uint32_t)set * r->stages * RING_BARRIER;
}

void ring_wait_for(struct cg *g, int32_t barrier, uint32_t offset, int32_t parity)
{
    const uint32_t again = cg_label(g, "wait");
    const int32_t done = cg_new(g, DT_BOOL);
    cg_place(g, again);
    PTX(&g->b, "mbarrier.try_wait.parity.shared::cta.b64", ptx_r(done), ptx_mem(barrier, offset),
        ptx_r(parity));
    cg_jump_if(g, done, false, again);
}

void ring_wait(const struct ring *r, enum ring_set set)
{
    ring_wait_for(r->g, r->full, apart(r, set), r->parity);
}

void ring_wait_read(const struct ring *r)
{
    const struct cg_val before = cg_binary(r->g, OP_XOR, cg_value(DT_U32, r->parity), cg_u32(1));
    ring_wait_for(r->g, r->full, apart(r, RING_EMPTY), cg_reg(r->g, before));
}

void ring_expect(const struct ring *r, uint32_t bytes)
{
    PTX(&r->g->b, "mbarrier.arrive.expect_tx.shared::cta.b64", ptx_sink(), ptx_mem(r->full, 0),
        ptx_imm(bytes));
}

void ring_hand_over(const struct ring *r, enum ring_set set)
{
    struct cg *g = r->g;
    PTX0(&g->b, "fence.proxy.async.shared::cta");
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
    const struct cg_val is_first = cg_binary(g, OP_EQ, r->lane, cg_u32(0));
    PTX_IF(&g->b, cg_reg(g, is_first), "mbarrier.arrive.shared::cta.b64", ptx_sink(),
           ptx_mem(r->full, apart(r, set)));
}

void ring_drain(const struct ring *r)
{
    for (uint32_t i = 0; i < r->stages; i++) {
        ring_wait(r, RING_EMPTY);
        ring_next(r);
    }
}

/* ---- stages that are given back -------------------------------------------------------------- */

struct ring_release ring_release_here(const struct ring *r)
{
    struct cg *g = r->g;
    const int32_t mine = cg_reg(g, cg_binary(g, OP_EQ, r->lane, cg_u32(0)));
    return (struct ring_release){.mine = mine, .delta = -1, .at = cg_new_mutable(g, DT_U32)};
}

void ring_note(const struct ring *r, const struct ring_release *e)
{
    struct cg *g = r->g;
    struct cg_val at = cg_value(DT_U32, r->full);
    if (e->delta >= 0)
        at = cg_add(g, at, cg_value(DT_U32, e->delta));
    cg_move(g, e->at, at);
}

void ring_release(const struct ring *r, const struct ring_release *e, int32_t pred)
{
    PTX_IF(&r->g->b, pred,
           e->delta >= 0 ? "mbarrier.arrive.shared::cluster.b64"
                         : "mbarrier.arrive.shared::cta.b64",
           ptx_sink(), ptx_mem(e->at, apart(r, RING_EMPTY)));
}

/* ---- a loop over stages ---------------------------------------------------------------------- */

void ring_for(const struct ring *r, struct ring_loop *l, struct cg_val n)
{
    struct cg *g = r->g;
    l->head = cg_label(g, "stage");
    l->more = cg_new(g, DT_BOOL);
    l->rest = cg_mutable(g, n);
    cg_place(g, l->head);
    cg_loop_head(g);
    l->mark = cg_scope_open(g);
    cg_nest_open(g, &l->nest, NULL);
    cg_nest_varies(g, &l->nest, l->rest);
    ring_varies(r, &l->nest);
}

void ring_for_end(const struct ring *r, struct ring_loop *l)
{
    struct cg *g = r->g;
    ring_next(r);
    CG_ASSIGN(g, l->rest, "sub.s32", ptx_r(l->rest), ptx_imm(1));
    PTX(&g->b, "setp.ne.s32", ptx_r(l->more), ptx_r(l->rest), ptx_imm(0));
    cg_jump_if(g, l->more, true, l->head);
    cg_nest_close(g, &l->nest);
    cg_scope_close(g, l->mark);
}
