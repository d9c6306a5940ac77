/* wgmma and setmaxnreg. */
#include <config.h>

#include "sim/decode.h"
#include "sim/wgmma.h"

/* Describes a warp's rows and eight columns of it as the product of mma.sync that they are. */
static bool numbers(struct dec *dc, struct sim_wgmma *g)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_shape shape = ptx_shape(in);
    struct sim_mma *m = &g->m;
    unsigned bits, other;
    g->n = shape.n;
    m->m = 16;
    m->n = 8;
    m->k = shape.k;
    if (!dec_element(in->type[1], &m->a_type, &bits) ||
        !dec_element(in->type[2], &m->b_type, &other) || bits != other || m->k * bits != 256)
        return false;
    m->half = in->type[0] == PTX_F16;
    m->saturate = in->mod[PTX_MC_SAT] == PTX_SATFINITE;
    m->step = (uint8_t)m->k;
    m->bits = bits == 8 ? 13 : 25;
    m->out_bits = bits == 8 ? 13 : 23;
    m->nc = m->half ? 2 : 4;
    g->nd = (uint16_t)(g->n / 8u * m->nc);
    return true;
}

static bool is_one(const struct ptx_inst *in, uint32_t i, uint64_t v)
{
    return i < in->noperand && in->operand[i].bits == v;
}

/* d, {a | a-descriptor}, b-descriptor, scale-d {, imm-scale-a, imm-scale-b {, imm-trans-a} {,
 * imm-trans-b}} */
bool dec_wgmma(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *o = in->operand;
    struct sim_wgmma *g = ARENA_NEW(dc->in->arena, struct sim_wgmma);
    if (!numbers(dc, g))
        return dec_unsupported(dc);
    uint32_t *d = ARENA_ARRAY(dc->in->arena, g->nd, uint32_t), a = 0, trans = 6;
    g->d = d;
    g->a_minus = is_one(in, 4, (uint64_t)-1);
    g->b_minus = is_one(in, 5, (uint64_t)-1);
    if (o[1].kind == PTX_O_VEC) {
        g->m.na = 4;
        if (!dec_group(dc, &o[1], g->m.na, SIM_T_u32, false, g->m.a))
            return false;
    } else {
        a = dec_src(dc, &o[1], SIM_T_u64);
        g->a_mn = is_one(in, trans++, 1);
    }
    g->b_mn = is_one(in, trans, 1);
    const uint32_t b = dec_src(dc, &o[2], SIM_T_u64), scale = dec_pred(dc, &o[3]);
    if (dc->failed || !dec_group(dc, &o[0], g->nd, SIM_T_u32, true, d))
        return false;
    struct sim_op *op = dec_emit_control(dc, SIM_H_WGMMA);
    op->a = a;
    op->b = b;
    op->c = scale;
    op->imm = (uint64_t)(uintptr_t)g;
    op->size = SIM_MEET_ALL;
    return true;
}

bool dec_wgmma_group(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    struct sim_op *op;
    switch (in->op) {
    case PTX_OP_WGMMA_FENCE: op = dec_emit_control(dc, SIM_H_WGMMA_FENCE); break;
    case PTX_OP_WGMMA_COMMIT: op = dec_emit_control(dc, SIM_H_WGMMA_COMMIT); break;
    case PTX_OP_WGMMA_WAIT:
        op = dec_emit_control(dc, SIM_H_WGMMA_WAIT);
        op->imm = in->operand[0].bits;
        break;
    default: return dec_unsupported(dc);
    }
    op->size = SIM_MEET_ALL;
    return true;
}

bool dec_setmaxnreg(struct dec *dc)
{
    struct sim_op *op = dec_emit_control(dc, SIM_H_SETMAXNREG);
    op->imm = dc->inst->operand[0].bits;
    op->more = dc->inst->mod[PTX_MC_OP] == PTX_INC;
    op->size = SIM_MEET_ALL;
    return true;
}
