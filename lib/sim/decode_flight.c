/* mbarriers, and what completes at them or with a bulk group. */
#include <config.h>

#include "sim/decode.h"
#include "sim/flight.h"
#include "sim/mbarrier.h"

/* ---- mbarriers ------------------------------------------------------------------------------- */

static const struct {
    uint16_t op;   /* row of isa.def */
    uint8_t what;  /* enum sim_mbar_op */
    uint8_t flags; /* enum sim_mbar_flag */
    bool state;    /* the first operand gets the state, or is the sink */
} forms[] = {
    {PTX_OP_MBARRIER_INIT, SIM_MBAR_INIT, 0, false},
    {PTX_OP_MBARRIER_INVAL, SIM_MBAR_INVAL, 0, false},
    {PTX_OP_MBARRIER_ARRIVE, SIM_MBAR_ARRIVE, 0, true},
    {PTX_OP_MBARRIER_ARRIVE_REMOTE, SIM_MBAR_ARRIVE, SIM_MBAR_ANYWHERE, true},
    {PTX_OP_MBARRIER_ARRIVE_NO_COMPLETE, SIM_MBAR_ARRIVE, SIM_MBAR_UNFINISHED, true},
    {PTX_OP_MBARRIER_ARRIVE_EXPECT_TX, SIM_MBAR_EXPECTS, 0, true},
    {PTX_OP_MBARRIER_ARRIVE_EXPECT_TX_REMOTE, SIM_MBAR_EXPECTS, SIM_MBAR_ANYWHERE, true},
    {PTX_OP_MBARRIER_ARRIVE_DROP, SIM_MBAR_ARRIVE, SIM_MBAR_DROPS, true},
    {PTX_OP_MBARRIER_ARRIVE_DROP_REMOTE, SIM_MBAR_ARRIVE, SIM_MBAR_DROPS | SIM_MBAR_ANYWHERE, true},
    {PTX_OP_MBARRIER_EXPECT_TX, SIM_MBAR_EXPECT, 0, false},
    {PTX_OP_MBARRIER_COMPLETE_TX, SIM_MBAR_COMPLETE, 0, false},
};

/* mbarrier.init and the like: [d,] [address] [, count] */
static bool change(struct dec *dc, size_t form)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *o = in->operand + forms[form].state;
    const uint32_t n = in->noperand - forms[form].state;
    enum sim_space space;
    if (!dec_space(dc, in->mod[PTX_MC_SPACE], &space))
        return false;
    const uint32_t a = dec_flat(dc, &o[0], space);
    const uint32_t b = n > 1 ? dec_src(dc, &o[1], SIM_T_u32) : 0;
    const bool wanted = forms[form].state && in->operand[0].kind != PTX_O_SINK;
    const uint32_t d = wanted ? dec_dst(dc, &in->operand[0], SIM_T_u64) : 0;
    struct sim_op *op = dec_emit3(dc, SIM_H_MBAR, d, a, b, 0);
    op->imm = forms[form].what;
    op->flags = forms[form].flags;
    if (in->mod[PTX_MC_SPACE] == PTX_SHARED_CLUSTER)
        op->flags |= SIM_MBAR_ANYWHERE;
    op->round = (uint8_t)space;
    return !dc->failed;
}

/* p, [address], state or parity [, time limit] */
static bool await(struct dec *dc, bool parity, bool suspends)
{
    const struct ptx_inst *in = dc->inst;
    enum sim_space space;
    if (!dec_space(dc, in->mod[PTX_MC_SPACE], &space))
        return false;
    const uint32_t a = dec_flat(dc, &in->operand[1], space);
    const uint32_t b = dec_src(dc, &in->operand[2], parity ? SIM_T_u32 : SIM_T_u64);
    if (in->noperand > 3) /* how long to wait at most is up to the device */
        dec_src(dc, &in->operand[3], SIM_T_u32);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_p);
    struct sim_op *op = dec_emit_control(dc, SIM_H_MBAR_WAIT);
    op->d = d;
    op->a = a;
    op->b = b;
    op->more = (uint8_t)((parity ? SIM_MBAR_PARITY : 0) | (suspends ? SIM_MBAR_SUSPENDS : 0));
    op->round = (uint8_t)space;
    return !dc->failed;
}

/* mbarrier.pending_count.b64 d, state */
static bool pending_count(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const uint32_t state = dec_src(dc, &in->operand[1], SIM_T_u64);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_u32);
    const uint32_t low = dec_temp(dc, DEC_32);
    dec_keep_guard(dc);
    dec_emit3(dc, SIM_H_U32_U64, low, state, 0, 0);
    dec_emit3(dc, SIM_H_AND_32, d, low, dec_const(dc, SIM_MBARRIER_MOST, false), 0);
    return !dc->failed;
}

bool dec_mbar_wait(struct dec *dc)
{
    switch (dc->inst->op) {
    case PTX_OP_MBARRIER_TEST_WAIT: return await(dc, false, false);
    case PTX_OP_MBARRIER_TEST_PARITY: return await(dc, true, false);
    case PTX_OP_MBARRIER_TRY_WAIT: return await(dc, false, true);
    case PTX_OP_MBARRIER_TRY_PARITY: return await(dc, true, true);
    default: return dec_unsupported(dc);
    }
}

bool dec_mbarrier(struct dec *dc)
{
    if (dc->inst->op == PTX_OP_MBARRIER_PENDING_COUNT)
        return pending_count(dc);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].op == dc->inst->op)
            return change(dc, i);
    return dec_unsupported(dc);
}

/* cp.async.mbarrier.arrive[.noinc] [address] */
bool dec_copy_arrive(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    enum sim_space space;
    if (!dec_space(dc, in->mod[PTX_MC_SPACE], &space))
        return false;
    const uint32_t a = dec_flat(dc, &in->operand[0], space);
    struct sim_op *op = dec_emit(dc, SIM_H_MBAR_COPIES);
    op->a = a;
    op->flags = in->mod[PTX_MC_MODE3] == PTX_NOINC ? SIM_MBAR_NO_INC : 0;
    op->round = (uint8_t)space;
    return !dc->failed;
}

/* ---- bulk copies ----------------------------------------------------------------------------- */

/* The destination and, after it, the source: [to], [from], bytes. */
static struct sim_op *copy(struct dec *dc, enum sim_flight_kind kind, uint32_t mbar, uint32_t mask)
{
    const struct ptx_operand *o = dc->inst->operand;
    const enum sim_space to = sim_flies_in(kind) ? SIM_IN_SHARED : SIM_IN_GLOBAL;
    const enum sim_space from = kind == SIM_FLY_LOAD ? SIM_IN_GLOBAL : SIM_IN_SHARED;
    const uint32_t a = dec_flat(dc, &o[0], to), b = dec_flat(dc, &o[1], from);
    const uint32_t c = dec_src(dc, &o[2], SIM_T_u32);
    struct sim_op *op = dec_emit3(dc, SIM_H_BULK, mbar, a, b, c);
    op->e = mask;
    op->more = (uint8_t)kind;
    op->round = SIM_NO_FOLD;
    return op;
}

/* [to], [from], bytes, [mbarrier] [, mask of blocks] [, cache policy] */
static struct sim_op *copy_in(struct dec *dc, enum sim_flight_kind kind)
{
    const struct ptx_inst *in = dc->inst;
    const bool spread = in->mod[PTX_MC_MODE2] == PTX_MULTICAST;
    const uint32_t mbar = dec_flat(dc, &in->operand[3], SIM_IN_SHARED);
    const uint32_t mask = spread ? dec_src(dc, &in->operand[4], SIM_T_u16) : 0;
    return copy(dc, kind, mbar, mask);
}

/* Into global memory, or that of a block of the cluster. */
static bool reduce(struct dec *dc, bool peer)
{
    const struct ptx_inst *in = dc->inst;
    const uint8_t fold = dec_fold(dc, in->mod[PTX_MC_OP], in->type[0], peer);
    struct sim_op *op = peer ? copy_in(dc, SIM_FLY_PEER) : copy(dc, SIM_FLY_REDUCE, 0, 0);
    op->round = fold;
    op->size = (uint8_t)dec_type_bytes(in->type[0]);
    return !dc->failed;
}

static bool prefetch(struct dec *dc)
{
    const uint32_t b = dec_flat(dc, &dc->inst->operand[0], SIM_IN_GLOBAL);
    const uint32_t c = dec_src(dc, &dc->inst->operand[1], SIM_T_u32);
    dec_emit3(dc, SIM_H_BULK_PREFETCH, 0, 0, b, c);
    return !dc->failed;
}

/* applypriority{.global}.L2::evict_normal [a], 128; discard, which may leave everything as it is */
bool dec_line(struct dec *dc)
{
    enum sim_space space;
    if (dc->inst->op == PTX_OP_DISCARD)
        return dec_nothing(dc);
    if (!dec_space(dc, dc->inst->mod[PTX_MC_SPACE], &space))
        return false;
    const uint32_t b = dec_flat(dc, &dc->inst->operand[0], space);
    dec_emit3(dc, SIM_H_LINE, 0, 0, b, 0);
    return !dc->failed;
}

bool dec_bulk(struct dec *dc)
{
    const enum ptx_op op = dc->inst->op;
    switch (ptx_op_family(op)) {
    case PTX_FAMILY_BULK_LOAD:
        copy_in(dc, op == PTX_OP_CP_BULK_CLUSTER ? SIM_FLY_PEER : SIM_FLY_LOAD);
        return !dc->failed;
    case PTX_FAMILY_BULK_STORE: copy(dc, SIM_FLY_STORE, 0, 0); return !dc->failed;
    case PTX_FAMILY_BULK_REDUCE: return reduce(dc, false);
    case PTX_FAMILY_BULK_PEER: return reduce(dc, true);
    case PTX_FAMILY_BULK_PREFETCH: return prefetch(dc);
    default: return dec_unsupported(dc);
    }
}

/* cp.async.bulk.commit_group, cp.async.bulk.wait_group{.read} n */
bool dec_bulk_group(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    if (in->op == PTX_OP_CP_BULK_COMMIT) {
        dec_emit(dc, SIM_H_BULK_COMMIT);
        return true;
    }
    struct sim_op *op = dec_emit(dc, SIM_H_BULK_WAIT);
    op->imm = in->operand[0].bits;
    op->more = in->mod[PTX_MC_MODE3] == PTX_READ;
    return true;
}

/* st.async...[.v2|.v4].type [to], value, [mbarrier]; red.async...op.type */
bool dec_st_async(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *v = &in->operand[1];
    const uint32_t bytes = dec_type_bytes(in->type[0]);
    const uint32_t n = v->kind == PTX_O_VEC ? v->nelem : 1;
    const enum sim_type t = in->type[0] == PTX_F32   ? SIM_T_f32
                            : in->type[0] == PTX_F64 ? SIM_T_f64
                            : bytes == 8             ? SIM_T_u64
                                                     : SIM_T_u32;
    enum sim_space space;
    uint32_t slot[4] = {0};
    if (n > 4 || n * bytes > 16)
        return dec_unsupported(dc);
    if (!dec_space(dc, in->mod[PTX_MC_SPACE], &space))
        return false;
    for (uint32_t i = 0; i < n; i++)
        slot[i] = dec_src(dc, v->kind == PTX_O_VEC ? &v->elem[i] : v, t);
    const uint32_t a = dec_flat(dc, &in->operand[0], space);
    const uint32_t mbar = dec_flat(dc, &in->operand[2], space);
    const bool folds = in->op != PTX_OP_ST_ASYNC;
    const uint8_t fold = folds ? dec_fold(dc, in->mod[PTX_MC_OP], in->type[0], true) : SIM_NO_FOLD;
    struct sim_op *op = dec_emit3(dc, SIM_H_ST_ASYNC, slot[0], a, slot[1], slot[2]);
    op->e = slot[3];
    op->elems = n;
    op->size = (uint8_t)(n * bytes);
    op->imm = mbar;
    op->more = fold;
    op->flags = (uint8_t)space;
    op->round = bytes == 8 ? SIM_V_WIDE : 0;
    return !dc->failed;
}
