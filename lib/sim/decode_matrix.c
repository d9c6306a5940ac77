/* Matrix instructions, and the copies that feed them. */
#include <config.h>

#include "sim/decode.h"
#include "sim/matrix.h"

/* ---- operands -------------------------------------------------------------------------------- */

bool dec_group(struct dec *dc, const struct ptx_operand *o, uint32_t n, enum sim_type t,
               bool written, uint32_t *slot)
{
    const bool list = o->kind == PTX_O_VEC;
    if (list ? o->nelem != n : n != 1)
        return dec_error(dc, "'%s' needs %u registers in { }", dec_mnemonic(dc), n);
    for (uint32_t i = 0; i < n; i++) {
        const struct ptx_operand *e = list ? &o->elem[i] : o;
        slot[i] = written ? dec_dst(dc, e, t) : dec_src(dc, e, t);
    }
    return !dc->failed;
}

/* ---- ldmatrix, stmatrix, movmatrix ----------------------------------------------------------- */

/* ldmatrix.sync.aligned.m8n8.xN{.trans}{.shared}.b16 r, [a]; stmatrix has them the other way
 * round */
static bool copy_matrix(struct dec *dc, bool store)
{
    const struct ptx_inst *in = dc->inst;
    const enum ptx_mod times = in->mod[PTX_MC_TIMES];
    const uint32_t n = times == PTX_X4 ? 4 : times == PTX_X2 ? 2 : 1;
    enum sim_space space;
    uint32_t at, slot[4] = {0};
    uint64_t offset;
    bool narrow;
    if (!dec_space(dc, in->mod[PTX_MC_SPACE], &space) ||
        !dec_memory(dc, &in->operand[!store], space, &at, &offset, &narrow) ||
        !dec_group(dc, &in->operand[store], n, SIM_T_u32, !store, slot))
        return false;
    struct sim_op *op = dec_emit_control(dc, store ? SIM_H_STMATRIX : SIM_H_LDMATRIX);
    op->a = at;
    op->imm = offset;
    op->d = slot[0];
    op->b = slot[1];
    op->c = slot[2];
    op->e = slot[3];
    op->size = 16;
    op->more = (uint8_t)space;
    op->round = (uint8_t)(n | (in->mod[PTX_MC_MODE] == PTX_TRANS ? SIM_MATRIX_TRANS : 0));
    op->flags |= (uint8_t)((narrow ? SIM_A32 : 0) | (store ? SIM_STORES : 0));
    return true;
}

static bool turn_matrix(struct dec *dc)
{
    const uint32_t a = dec_src(dc, &dc->inst->operand[1], SIM_T_u32);
    const uint32_t d = dec_dst(dc, &dc->inst->operand[0], SIM_T_u32);
    struct sim_op *op = dec_emit_control(dc, SIM_H_MOVMATRIX);
    op->a = a;
    op->d = d;
    op->size = SIM_MEET_ALL;
    return !dc->failed;
}

bool dec_ldmatrix(struct dec *dc)
{
    switch (dc->inst->op) {
    case PTX_OP_LDMATRIX_X1:
    case PTX_OP_LDMATRIX_X2:
    case PTX_OP_LDMATRIX_X4: return copy_matrix(dc, false);
    case PTX_OP_STMATRIX_X1:
    case PTX_OP_STMATRIX_X2:
    case PTX_OP_STMATRIX_X4: return copy_matrix(dc, true);
    case PTX_OP_MOVMATRIX: return turn_matrix(dc);
    default: return dec_unsupported(dc);
    }
}

/* ---- mma ------------------------------------------------------------------------------------- */

bool dec_element(enum ptx_mod t, uint8_t *element, unsigned *bits)
{
    switch (t) {
    case PTX_F16: *element = SIM_E_F16, *bits = 16; return true;
    case PTX_BF16: *element = SIM_E_BF16, *bits = 16; return true;
    case PTX_TF32: *element = SIM_E_TF32, *bits = 32; return true;
    case PTX_E4M3: *element = SIM_E_E4M3, *bits = 8; return true;
    case PTX_E5M2: *element = SIM_E_E5M2, *bits = 8; return true;
    case PTX_U8: *element = SIM_E_U8, *bits = 8; return true;
    case PTX_S8: *element = SIM_E_S8, *bits = 8; return true;
    case PTX_U4: *element = SIM_E_U4, *bits = 4; return true;
    case PTX_S4: *element = SIM_E_S4, *bits = 4; return true;
    case PTX_B1: *element = SIM_E_B1, *bits = 1; return true;
    case PTX_F64: *element = SIM_E_F64, *bits = 64; return true;
    default: return false;
    }
}

uint8_t dec_round(const struct ptx_inst *in)
{
    switch (in->mod[PTX_MC_ROUND]) {
    case PTX_RZ: return SIM_RZ;
    case PTX_RM: return SIM_RM;
    case PTX_RP: return SIM_RP;
    default: return SIM_RN;
    }
}

/* How the tensor cores of an architecture add up floats; measured on sm_90, else as published for
 * MMA-Sim. */
void dec_accumulation(struct sim_mma *m, unsigned sm, unsigned element_bits)
{
    const bool fp8 = m->a_type == SIM_E_E4M3 || m->a_type == SIM_E_E5M2;
    m->bits = sm >= 90 ? 25 : sm >= 75 ? 24 : 23;
    m->out_bits = 23;
    m->step = (uint8_t)m->k;
    if (sm >= 80 && sm < 90 && m->k * element_bits > 128)
        m->step = (uint8_t)(128 / element_bits);
    m->emulated = m->quads && sm >= 80;
    if (fp8 && sm >= 90 && sm < 100) { /* HMMA of f16, half of K at a time */
        m->as_f16 = true;
        m->step = (uint8_t)(m->k / 2);
    } else if (fp8 && sm < 90) {
        m->bits = m->out_bits = 13;
    }
}

static enum sim_handler_id handler_of(const struct sim_mma *m)
{
    switch ((enum sim_element)m->a_type) {
    case SIM_E_U8:
    case SIM_E_S8:
    case SIM_E_U4:
    case SIM_E_S4: return SIM_H_MMA_INT;
    case SIM_E_B1: return SIM_H_MMA_BIT;
    case SIM_E_F64: return SIM_H_MMA_F64;
    default: return SIM_H_MMA_FLOAT;
    }
}

void dec_emit_mma(struct dec *dc, const struct sim_mma *m)
{
    struct sim_op *op = dec_emit_control(dc, handler_of(m));
    op->imm = (uint64_t)(uintptr_t)m;
    op->size = SIM_MEET_ALL;
}

/* mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c */
bool dec_mma(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    struct sim_mma *m = ARENA_NEW(dc->in->arena, struct sim_mma);
    const struct ptx_shape shape = ptx_shape(in);
    unsigned bits, other;
    if (!dec_element(in->type[1], &m->a_type, &bits) ||
        !dec_element(in->type[2], &m->b_type, &other) || bits != other)
        return dec_unsupported(dc);
    m->m = (uint8_t)shape.m;
    m->n = (uint8_t)shape.n;
    m->k = shape.k;
    m->half = in->type[0] == PTX_F16;
    m->saturate = in->mod[PTX_MC_SAT] == PTX_SATFINITE;
    m->round = dec_round(in);
    m->and = in->mod[PTX_MC_OP] == PTX_AND;
    m->quads = m->k == 4 && m->a_type == SIM_E_F16;
    m->a_col = in->mod[PTX_MC_LAYOUT] == PTX_COL;
    m->b_row = in->mod[PTX_MC_LAYOUT2] == PTX_ROW2;
    dec_accumulation(m, dc->in->sm, bits);
    const unsigned wide = bits == 64 ? 64 : 32;
    m->na = (uint8_t)(m->quads ? 2 : m->m * m->k * bits / wide / SIM_LANES);
    m->nb = (uint8_t)(m->quads ? 2 : m->n * m->k * bits / wide / SIM_LANES);
    m->nc = (uint8_t)((m->quads ? 8 : m->m * m->n / SIM_LANES) / (m->half ? 2 : 1));
    const enum sim_type t = wide == 64 ? SIM_T_f64 : SIM_T_u32;
    const enum sim_type sum = wide == 64 ? SIM_T_f64 : in->type[0] == PTX_F32 ? SIM_T_f32 : t;
    if (!dec_group(dc, &in->operand[1], m->na, t, false, m->a) ||
        !dec_group(dc, &in->operand[2], m->nb, t, false, m->b) ||
        !dec_group(dc, &in->operand[3], m->nc, sum, false, m->c) ||
        !dec_group(dc, &in->operand[0], m->nc, sum, true, m->d))
        return false;
    dec_emit_mma(dc, m);
    return true;
}

/* ---- cp.async -------------------------------------------------------------------------------- */

/* The address of the source as one 64-bit slot. */
static bool source_of(struct dec *dc, const struct ptx_operand *m, uint32_t *slot)
{
    uint64_t offset;
    bool narrow;
    if (!dec_memory(dc, m, SIM_IN_GLOBAL, slot, &offset, &narrow))
        return false;
    if (offset) {
        const uint32_t sum = dec_temp(dc, DEC_64);
        dec_emit3(dc, SIM_H_ADD_64, sum, *slot, dec_const(dc, offset, true), 0);
        *slot = sum;
    }
    return !dc->failed;
}

/* Is the optional operand, before the cache policy, a predicate? */
static bool is_predicate(const struct dec *dc, const struct ptx_operand *o)
{
    return o->kind == PTX_O_REG && o->reg >= 0 && dc->reg_class[o->reg] == DEC_PRED;
}

/* cp.async.{ca|cg}.shared.global [d], [s], bytes{, read | ignore}{, policy} */
static bool copy(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *o = in->operand;
    const uint32_t n = in->noperand - (in->mod[PTX_MC_HINT] ? 1u : 0);
    uint32_t to, from, bytes = 0, ignore = 0;
    uint64_t offset;
    bool narrow;
    if (o[2].kind != PTX_O_IMM || (o[2].bits != 4 && o[2].bits != 8 && o[2].bits != 16))
        return dec_error(dc, "'%s' copies 4, 8 or 16 bytes", dec_mnemonic(dc));
    if (!dec_memory(dc, &o[0], SIM_IN_SHARED, &to, &offset, &narrow) ||
        !source_of(dc, &o[1], &from))
        return false;
    if (n > 3 && is_predicate(dc, &o[3]))
        ignore = dec_pred(dc, &o[3]);
    else if (n > 3)
        bytes = dec_src(dc, &o[3], SIM_T_u32);
    if (n < in->noperand)
        dec_src(dc, &o[n], SIM_T_u64);
    struct sim_op *op = dec_emit(dc, SIM_H_COPY);
    op->a = to;
    op->imm = offset;
    op->b = from;
    op->c = bytes;
    op->e = ignore;
    op->size = (uint8_t)o[2].bits;
    op->more = SIM_IN_SHARED;
    op->flags = (uint8_t)(SIM_STORES | (narrow ? SIM_A32 : 0));
    return !dc->failed;
}

bool dec_copy(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    struct sim_op *op;
    switch (in->op) {
    case PTX_OP_CP_ASYNC: return copy(dc);
    case PTX_OP_CP_ASYNC_COMMIT: dec_emit(dc, SIM_H_COPY_COMMIT); return true;
    case PTX_OP_CP_ASYNC_WAIT:
        op = dec_emit(dc, SIM_H_COPY_WAIT);
        op->imm = in->operand[0].bits;
        return true;
    case PTX_OP_CP_ASYNC_WAIT_ALL: dec_emit(dc, SIM_H_COPY_WAIT)->more = true; return true;
    default: return dec_unsupported(dc);
    }
}
