/* Operands that tf32() rounds (matmul_wgmma.h): wgmma leaves out the bits that tf32 has not, so consumers round each stage where it
 * lies, before they multiply it.
 *
 * A warpgroup rounds the rows of A that it takes and its share of B; then those that take the tile together meet. The
 * elements' order does not matter. It costs twice the stage's bytes of shared memory's bandwidth, beside the products' own
 * under way.
 */
#include <config.h>

#include "lower/matmul_wgmma.h"

enum { PIECE = 16, PASS = WGMMA_GROUP * PIECE, AT_ONCE = 4, TURNS = 3 };

static struct cg_val u32(uint32_t v)
{
    return cg_int(DT_U32, v);
}

static struct cg_val plus(struct cg *g, struct cg_val x, struct cg_val y)
{
    return cg_binary(g, OP_ADD, x, y);
}

static bool rounds(const struct wgmma *s, const struct wgmma_tile *t)
{
    return s->f->operand[t->operand].rounds;
}

bool wgmma_rounds(const struct wgmma *s)
{
    for (uint32_t i = 0; i < s->ntile; i++)
        if (rounds(s, &s->tile[i]))
            return true;
    return false;
}

uint32_t wgmma_round_unit(const struct wgmma *s)
{
    return PASS / WGMMA_SPAN * s->takers;
}

/* Passes of the warpgroup's threads over what begins at the address + offset. */
static void round_bytes(struct wgmma *s, int32_t at, uint32_t offset, uint32_t passes)
{
    struct cg *g = s->g;
    int32_t w[AT_ONCE][4];
    struct ptx_operand v[4];
    for (uint32_t from = 0; from < passes; from += AT_ONCE) {
        const uint32_t n = passes - from < AT_ONCE ? passes - from : AT_ONCE;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t e = 0; e < 4; e++)
                v[e] = ptx_r(w[i][e] = cg_new(g, DT_U32));
            PTX(&g->b, "ld.shared.v4.b32", ptx_vec(&g->b, 4, v),
                ptx_mem(at, offset + (from + i) * PASS));
        }
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t e = 0; e < 4; e++) {
                const int32_t r = cg_new(g, DT_U32);
                PTX(&g->b, "cvt.rna.tf32.f32", ptx_r(r), ptx_r(w[i][e]));
                v[e] = ptx_r(r);
            }
            PTX(&g->b, "st.shared.v4.b32", ptx_mem(at, offset + (from + i) * PASS),
                ptx_vec(&g->b, 4, v));
        }
    }
}

static void round_tile(struct wgmma *s, const struct wgmma_tile *t, struct cg_val stage)
{
    struct cg *g = s->g;
    const bool a = t->side == MATMUL_A;
    const uint32_t bytes = a ? s->p->wm * WGMMA_SPAN : t->bytes / s->takers;
    const struct cg_val part = cg_binary(g, OP_MUL, s->part, u32(bytes));
    const int32_t at = cg_reg(g, plus(g, stage, part));
    for (uint32_t i = 0; i < (a ? t->atoms : 1); i++)
        round_bytes(s, at, t->offset + i * t->atom_bytes, bytes / PASS);
}

void wgmma_round_stage(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val in_group = cg_binary(g, OP_AND, s->m->thread, u32(WGMMA_GROUP - 1));
    struct cg_val stage =
        plus(g, cg_value(DT_U32, s->m->shared), cg_binary(g, OP_MUL, in_group, u32(PIECE)));
    stage = plus(g, stage, cg_value(DT_U32, s->ring.offset));
    for (uint32_t i = 0; i < s->ntile; i++)
        if (rounds(s, &s->tile[i]))
            round_tile(s, &s->tile[i], stage);
    PTX0(&g->b,
         "fence.proxy.async.shared::cta"); /* wgmma reads by another way than threads write */
    const struct cg_val barrier = plus(g, u32(TURNS), s->p->pingpong ? s->group : u32(0));
    PTX(&g->b, "bar.sync", cg_op(g, barrier), ptx_imm(s->takers * WGMMA_GROUP));
}
