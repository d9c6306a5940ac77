/* Copies of tensors, and tensor maps. */
#include <config.h>

#include "sim/decode.h"
#include "sim/tensor.h"

/* [map, {coordinates}] */
static bool tensor(struct dec *dc, const struct ptx_operand *o, struct sim_tensor_op *t)
{
    t->map = dec_flat(dc, o, SIM_IN_GENERIC);
    t->rank = (uint8_t)o->nelem;
    if (o->nelem > DEVICE_TENSOR_RANK)
        return dec_unsupported(dc);
    for (uint32_t i = 0; i < o->nelem; i++)
        t->at[i] = dec_src(dc, &o->elem[i], SIM_T_s32);
    return !dc->failed;
}

static bool emit(struct dec *dc, const struct sim_tensor_op *t)
{
    struct sim_tensor_op *own = ARENA_NEW(dc->in->arena, struct sim_tensor_op);
    *own = *t;
    dec_emit(dc, SIM_H_TENSOR)->imm = (uintptr_t)own;
    return !dc->failed;
}

/* A cache policy changes nothing that shows. */
static void policy(struct dec *dc, uint32_t operand)
{
    if (operand < dc->inst->noperand)
        dec_src(dc, &dc->inst->operand[operand], SIM_T_u64);
}

/* createpolicy d [, fraction] or d, [address], bytes, bytes: a policy like any other. */
bool dec_policy(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const bool range = in->op == PTX_OP_CREATEPOLICY_RANGE;
    if (range)
        dec_flat(dc, &in->operand[1], SIM_IN_GENERIC);
    for (uint32_t i = range ? 2 : 1; i < in->noperand; i++)
        dec_src(dc, &in->operand[i], range ? SIM_T_u32 : SIM_T_f32);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_u64);
    dec_emit3(dc, SIM_H_MOV_64, d, dec_const(dc, UINT64_C(0x1000000000000000), true), 0, 0);
    return !dc->failed;
}

/* {offsets of windows' pixels} */
static void offsets(struct dec *dc, const struct ptx_operand *o, struct sim_tensor_op *t)
{
    t->im2col = true;
    for (uint32_t i = 0; i < o->nelem; i++)
        t->offset[i] = dec_src(dc, &o->elem[i], SIM_T_u16);
}

/* [to], [map, {coordinates}], [mbarrier] [, {offsets}] [, mask of blocks] [, cache policy] */
static bool load(struct dec *dc, bool im2col)
{
    const struct ptx_inst *in = dc->inst;
    const bool spread = in->mod[PTX_MC_MODE2] == PTX_MULTICAST;
    struct sim_tensor_op t = {.kind = SIM_TENSOR_LOAD,
                              .own = in->mod[PTX_MC_SPACE] == PTX_SHARED_CTA};
    uint32_t next = 3;
    if (!tensor(dc, &in->operand[1], &t))
        return false;
    t.shared = dec_flat(dc, &in->operand[0], SIM_IN_SHARED);
    t.mbarrier = dec_flat(dc, &in->operand[2], SIM_IN_SHARED);
    if (im2col)
        offsets(dc, &in->operand[next++], &t);
    t.mask = spread ? dec_src(dc, &in->operand[next++], SIM_T_u16) : 0;
    policy(dc, next);
    return emit(dc, &t);
}

/* [map, {coordinates}], [from] [, cache policy] */
static bool store(struct dec *dc, enum sim_tensor_kind kind)
{
    const struct ptx_inst *in = dc->inst;
    struct sim_tensor_op t = {.kind = (uint8_t)kind};
    if (!tensor(dc, &in->operand[0], &t))
        return false;
    t.shared = dec_flat(dc, &in->operand[1], SIM_IN_SHARED);
    t.fold = kind == SIM_TENSOR_REDUCE ? in->mod[PTX_MC_OP] : 0;
    if (t.fold) /* elements may be floats, for whose sums the order of blocks shows */
        dc->code->ordered = true;
    policy(dc, 2);
    return emit(dc, &t);
}

bool dec_tensor(struct dec *dc)
{
    struct sim_tensor_op t = {.kind = SIM_TENSOR_PREFETCH};
    switch (dc->inst->op) {
    case PTX_OP_CP_TENSOR_LOAD: return load(dc, false);
    case PTX_OP_CP_IM2COL_LOAD_3D:
    case PTX_OP_CP_IM2COL_LOAD_4D:
    case PTX_OP_CP_IM2COL_LOAD_5D: return load(dc, true);
    case PTX_OP_CP_TENSOR_STORE: return store(dc, SIM_TENSOR_STORE);
    case PTX_OP_CP_TENSOR_REDUCE: return store(dc, SIM_TENSOR_REDUCE);
    case PTX_OP_CP_TENSOR_PREFETCH:
        policy(dc, 1);
        return tensor(dc, &dc->inst->operand[0], &t) && emit(dc, &t);
    case PTX_OP_CP_IM2COL_PREFETCH_3D:
    case PTX_OP_CP_IM2COL_PREFETCH_4D:
    case PTX_OP_CP_IM2COL_PREFETCH_5D:
        offsets(dc, &dc->inst->operand[1], &t);
        policy(dc, 2);
        return tensor(dc, &dc->inst->operand[0], &t) && emit(dc, &t);
    default: return dec_unsupported(dc);
    }
}

/* prefetch.tensormap [map] */
bool dec_prefetch(struct dec *dc)
{
    struct sim_tensor_op t = {.kind = SIM_TENSOR_TOUCH};
    if (dc->inst->op != PTX_OP_PREFETCH_TENSORMAP)
        return dec_nothing(dc);
    t.map = dec_flat(dc, &dc->inst->operand[0], SIM_IN_GENERIC);
    return emit(dc, &t);
}

/* ---- tensormap.* ----------------------------------------------------------------------------- */

static const struct {
    uint16_t op;
    uint8_t field, operand; /* which operand is the new value */
} fields[] = {
    {PTX_OP_TENSORMAP_ADDRESS, SIM_TENSOR_ADDRESS, 1},
    {PTX_OP_TENSORMAP_RANK, SIM_TENSOR_DIMS, 1},
    {PTX_OP_TENSORMAP_BOX, SIM_TENSOR_BOX, 2},
    {PTX_OP_TENSORMAP_DIM, SIM_TENSOR_DIM, 2},
    {PTX_OP_TENSORMAP_STRIDE, SIM_TENSOR_STRIDE, 2},
    {PTX_OP_TENSORMAP_STEP, SIM_TENSOR_STEP, 2},
    {PTX_OP_TENSORMAP_TYPE, SIM_TENSOR_TYPE, 1},
    {PTX_OP_TENSORMAP_INTERLEAVE, SIM_TENSOR_INTERLEAVE, 1},
    {PTX_OP_TENSORMAP_SWIZZLE, SIM_TENSOR_SWIZZLE, 1},
    {PTX_OP_TENSORMAP_FILL, SIM_TENSOR_FILL, 1},
};

static bool replace(struct dec *dc, size_t form)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *value = &in->operand[fields[form].operand];
    const bool wide = in->type[0] == PTX_B64;
    enum sim_space space;
    if (!dec_space(dc, in->mod[PTX_MC_SPACE], &space))
        return false;
    const uint32_t a = dec_flat(dc, &in->operand[0], space);
    const uint32_t b = dec_src(dc, value, wide ? SIM_T_u64 : SIM_T_u32);
    struct sim_op *op = dec_emit3(dc, SIM_H_TENSOR_REPLACE, 0, a, b, 0);
    op->c = fields[form].operand == 2 ? (uint32_t)in->operand[1].bits : 0;
    op->e = wide ? 64 : 32;
    op->round = fields[form].field;
    op->more = (uint8_t)space;
    return !dc->failed;
}

bool dec_tensormap(struct dec *dc)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].op == dc->inst->op)
            return replace(dc, i);
    if (dc->inst->op != PTX_OP_TENSORMAP_COPY)
        return dec_unsupported(dc);
    const uint32_t a = dec_flat(dc, &dc->inst->operand[0], SIM_IN_GLOBAL);
    const uint32_t b = dec_flat(dc, &dc->inst->operand[1], SIM_IN_SHARED);
    dec_emit3(dc, SIM_H_TENSOR_PUBLISH, 0, a, b, 0);
    return !dc->failed;
}

/* fence.proxy.tensormap::generic: .acquire [map], 128 or .release */
bool dec_tensor_fence(struct dec *dc)
{
    const bool acquire = dc->inst->op == PTX_OP_FENCE_TENSORMAP_ACQUIRE;
    const uint32_t a = acquire ? dec_flat(dc, &dc->inst->operand[0], SIM_IN_GENERIC) : 0;
    dec_emit3(dc, SIM_H_TENSOR_FENCE, 0, a, 0, 0);
    return !dc->failed;
}
