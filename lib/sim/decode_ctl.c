/* Control flow, barriers, and what lanes tell each other. */
#include <config.h>

#include "sim/decode.h"

#include "sim/system.h"

static bool bra(struct dec *dc)
{
    const struct ptx_operand *l = &dc->inst->operand[0];
    if (l->kind != PTX_O_LABEL)
        return dec_unsupported(dc);
    struct dec_fixup *fix = VEC_PUSH(dc->in->arena, &dc->fixups);
    dec_emit_control(dc, SIM_H_BRA)->more = 1;
    *fix = (struct dec_fixup){(uint32_t)dc->op.n - 1, l->label};
    return true;
}

/* brx.idx index, list: the list's .branchtargets item follows its label. */
static bool brx(struct dec *dc)
{
    const struct ptx_func *f = dc->in->func;
    const struct ptx_operand *l = &dc->inst->operand[1];
    const uint32_t at = l->kind == PTX_O_LABEL ? f->labels.v[l->label].item : UINT32_MAX;
    if (at >= f->items.n || at + 1 >= f->items.n || f->items.v[at + 1].kind != PTX_I_TARGETS)
        return dec_unsupported(dc);
    const uint32_t index = dec_src(dc, &dc->inst->operand[0], SIM_T_u32);
    struct dec_targets *t = VEC_PUSH(dc->in->arena, &dc->targets);
    *t = (struct dec_targets){&f->items.v[at + 1]};
    struct sim_op *op = dec_emit_control(dc, SIM_H_BRX);
    op->a = index;
    op->more = 1;
    op->target = (uint32_t)dc->targets.n - 1;
    return !dc->failed;
}

bool dec_branch(struct dec *dc)
{
    return dc->inst->op == PTX_OP_BRX ? brx(dc) : bra(dc);
}

/* Decodes a call of a function that the machine has; others have been put in the place of their
 * calls (inline.h). */
bool dec_call(struct dec *dc)
{
    const struct ptx_operand *o = dc->inst->operand;
    const struct system_function *f = o[1].kind == PTX_O_FUNC ? system_function(o[1].name) : NULL;
    uint32_t arg[5] = {0};
    if (!f)
        return dec_unsupported(dc);
    for (uint32_t i = 0; i < f->narg; i++)
        arg[i] = dec_src(dc, &o[2].elem[i], f->wide[i] ? SIM_T_u64 : SIM_T_u32);
    const bool wanted = f->nresult && o[0].elem[0].kind != PTX_O_SINK;
    const uint32_t d = wanted ? dec_dst(dc, &o[0].elem[0], f->wide_result ? SIM_T_u64 : SIM_T_u32)
                       : f->nresult ? dec_temp(dc, f->wide_result ? DEC_64 : DEC_32)
                                    : 0;
    struct sim_op *op = dec_emit3(dc, f->handler, d, arg[0], arg[1], arg[2]);
    op->e = arg[3];
    if (f->handler == SIM_H_MALLOC || f->handler == SIM_H_FREE)
        dc->code->allocates = dc->code->ordered = true;
    return !dc->failed;
}

bool dec_exit(struct dec *dc)
{
    dec_emit_control(dc, SIM_H_EXIT);
    return true;
}

bool dec_trap(struct dec *dc)
{
    dec_emit_control(dc, SIM_H_TRAP);
    return true;
}

/* Prefetches and the like change nothing that shows. */
bool dec_nothing(struct dec *dc)
{
    dec_emit_control(dc, SIM_H_NOP);
    return true;
}

bool dec_fence(struct dec *dc)
{
    if (dc->inst->op == PTX_OP_FENCE_TENSORMAP_RELEASE ||
        dc->inst->op == PTX_OP_FENCE_TENSORMAP_ACQUIRE)
        return dec_tensor_fence(dc);
    dec_emit_control(dc, SIM_H_FENCE);
    return true;
}

bool dec_sleep(struct dec *dc)
{
    dec_src(dc, &dc->inst->operand[0], SIM_T_u32);
    dec_emit(dc, SIM_H_SLEEP);
    return !dc->failed;
}

/* bar.warp.sync membermask */
static bool warp_sync(struct dec *dc)
{
    const uint32_t mask = dec_src(dc, &dc->inst->operand[0], SIM_T_u32);
    struct sim_op *op = dec_emit_control(dc, SIM_H_WARPSYNC);
    op->e = mask;
    op->size = SIM_MEET_SYNC;
    return !dc->failed;
}

/* What a barrier of a block does with its threads; false: it is no such barrier. */
static bool bar_kind(const struct ptx_inst *in, uint8_t *how)
{
    switch (in->op) {
    case PTX_OP_BAR_SYNC:
    case PTX_OP_BARRIER_SYNC: *how = SIM_BAR_SYNC; return true;
    case PTX_OP_BAR_ARRIVE:
    case PTX_OP_BARRIER_ARRIVE: *how = SIM_BAR_ARRIVE; return true;
    case PTX_OP_BAR_RED_POPC:
    case PTX_OP_BARRIER_RED_POPC: *how = SIM_BAR_POPC; return true;
    case PTX_OP_BAR_RED_BOOL:
    case PTX_OP_BARRIER_RED_BOOL:
        *how = in->mod[PTX_MC_OP] == PTX_AND ? SIM_BAR_AND : SIM_BAR_OR;
        return true;
    default: return false;
    }
}

/* bar and barrier of a block: .sync a[, b]  .arrive a, b  .red d, a[, b], {!}p */
static bool block_bar(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    uint8_t how;
    if (!bar_kind(in, &how))
        return dec_unsupported(dc);
    const bool red = how == SIM_BAR_POPC || how == SIM_BAR_AND || how == SIM_BAR_OR;
    const struct ptx_operand *o = in->operand + red;
    const uint32_t n = in->noperand - (red ? 2u : 0);
    const uint32_t id = dec_src(dc, &o[0], SIM_T_u32);
    const uint32_t threads = n > 1 ? dec_src(dc, &o[1], SIM_T_u32) : 0;
    const uint32_t p = red ? dec_pred(dc, &o[n]) : 0;
    const uint32_t d = red ? dec_dst(dc, &in->operand[0], how == SIM_BAR_POPC ? SIM_T_u32 : SIM_T_p)
                           : 0;
    struct sim_op *op = dec_emit_control(dc, SIM_H_BAR);
    op->d = d;
    op->a = id;
    op->b = threads;
    op->c = p;
    op->more = how;
    op->round = !dec_is_imm(&o[0]) || (n > 1 && !dec_is_imm(&o[1]));
    return !dc->failed;
}

bool dec_bar(struct dec *dc)
{
    switch (dc->inst->op) {
    case PTX_OP_BAR_WARP_SYNC: return warp_sync(dc);
    case PTX_OP_BARRIER_CLUSTER_ARRIVE: dec_emit_control(dc, SIM_H_CLUSTER_ARRIVE); return true;
    case PTX_OP_BARRIER_CLUSTER_WAIT: dec_emit_control(dc, SIM_H_CLUSTER_WAIT); return true;
    default: return block_bar(dc);
    }
}

/* ---- what lanes tell each other -------------------------------------------------------------- */

/* shfl.sync.mode.b32 d[|p], a, b, c, membermask */
static bool shfl(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    static const struct {
        enum ptx_mod mod;
        uint8_t mode;
    } modes[] = {{PTX_UP, 0}, {PTX_DOWN, 1}, {PTX_BFLY, 2}, {PTX_IDX, 3}};
    uint8_t mode = 4;
    for (size_t i = 0; i < 4; i++)
        if (in->mod[PTX_MC_MODE] == modes[i].mod)
            mode = modes[i].mode;
    if (in->noperand != 5 || mode == 4)
        return dec_unsupported(dc);
    uint32_t s[4];
    for (int i = 0; i < 4; i++)
        s[i] = dec_src(dc, &in->operand[i + 1], SIM_T_u32);
    const struct ptx_operand *d = &in->operand[0];
    const uint32_t to = dec_dst(dc, d, SIM_T_u32);
    const struct ptx_operand q = {.kind = PTX_O_REG, .reg = d->reg2, .reg2 = -1};
    const uint32_t p = d->kind == PTX_O_REG && d->reg2 >= 0 ? dec_dst(dc, &q, SIM_T_p) : 0;
    struct sim_op *op = dec_emit_control(dc, SIM_H_SHFL);
    op->d = to;
    op->a = s[0];
    op->b = s[1];
    op->c = s[2];
    op->e = s[3];
    op->imm = p;
    op->more = mode;
    op->size = SIM_MEET_SHFL;
    return !dc->failed;
}

/* vote.sync.mode d, {!}p, membermask */
static bool vote(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const uint8_t mode = in->op == PTX_OP_VOTE_BALLOT      ? 3
                         : in->mod[PTX_MC_MODE] == PTX_ALL ? 0
                         : in->mod[PTX_MC_MODE] == PTX_ANY ? 1
                                                           : 2;
    const uint32_t p = dec_pred(dc, &in->operand[1]);
    const uint32_t mask = dec_src(dc, &in->operand[2], SIM_T_u32);
    const uint32_t d = dec_dst(dc, &in->operand[0], mode == 3 ? SIM_T_u32 : SIM_T_p);
    struct sim_op *op = dec_emit_control(dc, SIM_H_VOTE);
    op->d = d;
    op->a = p;
    op->e = mask;
    op->more = mode;
    op->size = mode == 3 ? SIM_MEET_BALLOT : SIM_MEET_VOTE;
    return !dc->failed;
}

/* match.{any|all}.sync.b32|b64 d[|p], a, membermask */
static bool match(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const bool all = in->mod[PTX_MC_MODE] == PTX_ALL, wide = dec_type_bytes(in->type[0]) == 8;
    const struct ptx_operand *d = &in->operand[0];
    const uint32_t a = dec_src(dc, &in->operand[1], wide ? SIM_T_u64 : SIM_T_u32);
    const uint32_t mask = dec_src(dc, &in->operand[2], SIM_T_u32);
    const struct ptx_operand q = {.kind = PTX_O_REG, .reg = d->reg2, .reg2 = -1};
    const uint32_t to = dec_dst(dc, d, SIM_T_u32);
    const uint32_t p = d->kind == PTX_O_REG && d->reg2 >= 0 ? dec_dst(dc, &q, SIM_T_p) : 0;
    struct sim_op *op = dec_emit_control(dc, SIM_H_MATCH);
    op->d = to;
    op->a = a;
    op->e = mask;
    op->imm = p;
    op->more = (uint8_t)(all | wide << 1);
    op->size = wide ? SIM_MEET_MATCH64 : SIM_MEET_MATCH;
    return !dc->failed;
}

/* redux.sync.op.type d, a, membermask */
static bool redux(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    static const enum ptx_mod ops[] = {PTX_ADD, PTX_MIN, PTX_MAX, PTX_AND, PTX_OR, PTX_XOR};
    uint8_t code = 255;
    for (uint8_t i = 0; i < 6; i++)
        if (in->mod[PTX_MC_OP] == ops[i])
            code = i;
    if (code == 255 || in->type[0] == PTX_F32)
        return dec_unsupported(dc);
    const uint32_t a = dec_src(dc, &in->operand[1], SIM_T_u32);
    const uint32_t mask = dec_src(dc, &in->operand[2], SIM_T_u32);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_u32);
    struct sim_op *op = dec_emit_control(dc, SIM_H_REDUX);
    op->d = d;
    op->a = a;
    op->e = mask;
    op->more = code;
    op->round = in->type[0] == PTX_S32;
    op->size = SIM_MEET_REDUX;
    return !dc->failed;
}

/* elect.sync d|p, membermask */
static bool elect(struct dec *dc)
{
    const struct ptx_operand *d = &dc->inst->operand[0];
    const uint32_t mask = dec_src(dc, &dc->inst->operand[1], SIM_T_u32);
    const struct ptx_operand q = {.kind = PTX_O_REG, .reg = d->reg2, .reg2 = -1};
    const uint32_t to = dec_dst(dc, d, SIM_T_u32);
    const uint32_t p = d->kind == PTX_O_REG && d->reg2 >= 0 ? dec_dst(dc, &q, SIM_T_p)
                                                            : dec_temp(dc, DEC_PRED);
    struct sim_op *op = dec_emit_control(dc, SIM_H_ELECT);
    op->d = to;
    op->e = mask;
    op->imm = p;
    op->size = SIM_MEET_ELECT;
    return !dc->failed;
}

static bool activemask(struct dec *dc)
{
    const uint32_t d = dec_dst(dc, &dc->inst->operand[0], SIM_T_u32);
    dec_emit(dc, SIM_H_ACTIVEMASK)->d = d;
    return !dc->failed;
}

bool dec_warp(struct dec *dc)
{
    switch (dc->inst->op) {
    case PTX_OP_SHFL: return shfl(dc);
    case PTX_OP_VOTE:
    case PTX_OP_VOTE_BALLOT: return vote(dc);
    case PTX_OP_MATCH_ANY:
    case PTX_OP_MATCH_ALL: return match(dc);
    case PTX_OP_REDUX_INT:
    case PTX_OP_REDUX_BITS: return redux(dc);
    case PTX_OP_ACTIVEMASK: return activemask(dc);
    case PTX_OP_ELECT: return elect(dc);
    default: return dec_unsupported(dc);
    }
}
