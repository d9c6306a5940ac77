/* cvt, put together from the steps of cvt.def: bring the source to a form that a step starts from,
 * convert, and fit the result into the destination register. */
#include <config.h>

#include "sim/cvt.h"
#include "sim/decode.h"

struct cvt {
    enum ptx_mod to, from;
    uint8_t round, flags;
    uint32_t slot; /* of the value at hand */
    bool guarded;
};

static bool is_int(enum ptx_mod t)
{
    return !ptx_type_is_float(t);
}

static bool is_half(enum ptx_mod t)
{
    return t == PTX_F16 || t == PTX_BF16;
}

static uint32_t bits_of(enum ptx_mod t)
{
    return ptx_type_bits(t);
}

/* A step into a new temporary. */
static struct sim_op *step(struct dec *dc, struct cvt *c, enum sim_handler_id h, bool mods)
{
    const uint32_t d = dec_temp(dc, dec_class_of(sim_rows[h].d));
    struct sim_op *op = dec_emit3(dc, h, d, c->slot, 0, 0);
    op->round = c->round;
    op->flags = c->flags;
    const struct sim_handler *f = &dc->in->build->h[h];
    if (mods && f->mod)
        op->fn[0] = op->fn[1] = f->mod;
    c->slot = d;
    return op;
}

static uint8_t sign_flags(const struct cvt *c)
{
    return (uint8_t)((ptx_type_is_signed(c->from) ? SIM_CVT_FROM_SIGNED : 0) |
                     (ptx_type_is_signed(c->to) ? SIM_CVT_TO_SIGNED : 0));
}

/* The source operand's slot, whatever its register's width, which may exceed the type's. */
static enum dec_class source(struct dec *dc, struct cvt *c)
{
    const struct ptx_operand *s = &dc->inst->operand[1];
    const uint32_t bits = bits_of(c->from);
    const enum dec_class least = bits == 64 ? DEC_64 : bits == 32 ? DEC_32 : DEC_16;
    const enum dec_class have = dec_operand_class(dc, s, least);
    if (have < least || have == DEC_PRED) {
        dec_error(dc, "the source register is too narrow for '%s'", dec_mnemonic(dc));
        return least;
    }
    enum sim_type t = have == DEC_64 ? SIM_T_u64 : have == DEC_32 ? SIM_T_u32 : SIM_T_u16;
    if (c->from == PTX_F32 && have == DEC_32)
        t = SIM_T_f32;
    if (c->from == PTX_F64)
        t = SIM_T_f64;
    c->slot = dec_src(dc, s, t);
    return have;
}

/* Moves the integer at hand, held in 64 bits when wide, into the destination: op->more bits of
 * it. */
static bool put_int(struct dec *dc, struct cvt *c, bool wide, uint32_t size)
{
    const struct ptx_operand *d = &dc->inst->operand[0];
    const uint32_t bits = bits_of(c->to);
    const enum dec_class least = bits == 64 ? DEC_64 : bits == 32 ? DEC_32 : DEC_16;
    const enum dec_class have = dec_operand_class(dc, d, least);
    if (have < least || have == DEC_PRED)
        return dec_error(dc, "the destination register is too narrow for '%s'", dec_mnemonic(dc));
    const uint32_t to = dec_dst(dc, d,
                                have == DEC_64   ? SIM_T_u64
                                : have == DEC_32 ? SIM_T_u32
                                                 : SIM_T_u16);
    enum sim_handler_id h = wide ? (have == DEC_64 ? SIM_H_EXT_64_64 : SIM_H_EXT_64_32)
                                 : (have == DEC_64 ? SIM_H_EXT_32_64 : SIM_H_EXT_32_32);
    if (!wide && size == 32 && bits == 64)
        h = ptx_type_is_signed(c->from) ? SIM_H_S64_S32 : SIM_H_U64_U32;
    else if (wide && bits == 32 && have == DEC_32)
        h = SIM_H_U32_U64;
    struct sim_op *op = dec_emit3(dc, h, to, c->slot, 0, 0);
    op->flags = sign_flags(c);
    op->size = (uint8_t)size;
    op->more = (uint8_t)bits;
    op->imm = have == DEC_16 ? UINT16_MAX : have == DEC_32 ? UINT32_MAX : UINT64_MAX;
    return !dc->failed;
}

/* The integer source extended to 64 bits. */
static void widen_int(struct dec *dc, struct cvt *c, enum dec_class have)
{
    struct sim_op *op = step(dc, c, have == DEC_64 ? SIM_H_EXT_64_64 : SIM_H_EXT_32_64, false);
    op->size = op->more = (uint8_t)bits_of(c->from);
    if (have != DEC_64)
        op->more = 64;
    op->flags = ptx_type_is_signed(c->from) ? SIM_CVT_FROM_SIGNED | SIM_CVT_TO_SIGNED : 0;
}

static bool int_to_int(struct dec *dc, struct cvt *c)
{
    const enum dec_class have = source(dc, c);
    const uint32_t bits = bits_of(c->from);
    if (!(c->flags & SIM_SAT) && have != DEC_64)
        return put_int(dc, c, false, bits);
    if (!(c->flags & SIM_SAT)) {
        if (bits < 64)
            widen_int(dc, c, have);
        return put_int(dc, c, true, 64);
    }
    widen_int(dc, c, have);
    struct sim_op *op = step(dc, c, SIM_H_SATI_64_64, false);
    op->flags = sign_flags(c);
    op->more = (uint8_t)bits_of(c->to);
    return put_int(dc, c, true, 64);
}

static enum sim_handler_id int_to_float(bool to_f64, bool wide, bool is_signed)
{
    static const enum sim_handler_id h[2][2][2] = {
        {{SIM_H_F32_U32, SIM_H_F32_S32}, {SIM_H_F32_U64, SIM_H_F32_S64}},
        {{SIM_H_F64_U32, SIM_H_F64_S32}, {SIM_H_F64_U64, SIM_H_F64_S64}}};
    return h[to_f64][wide][is_signed];
}

/* The last step of a conversion to float writes the destination. */
static bool finish(struct dec *dc, struct cvt *c, enum sim_handler_id h, enum sim_type t, bool mods)
{
    const uint32_t d = dec_dst(dc, &dc->inst->operand[0], t);
    step(dc, c, h, mods)->d = d;
    return !dc->failed;
}

/* Converts from double to the 16-bit format, with all modifiers. Only a double's own NaN keeps its
 * payload. */
static bool finish_half(struct dec *dc, struct cvt *c)
{
    const bool ok =
        finish(dc, c, c->to == PTX_F16 ? SIM_H_F16_F64 : SIM_H_BF16_F64, SIM_T_h, false);
    dc->op.v[dc->op.n - 1].more = c->from != PTX_F64;
    return ok;
}

static bool int_to_any_float(struct dec *dc, struct cvt *c)
{
    const enum dec_class have = source(dc, c);
    const bool is_signed = ptx_type_is_signed(c->from), wide = bits_of(c->from) == 64;
    if (bits_of(c->from) < 32 || (bits_of(c->from) == 32 && have == DEC_64)) {
        struct sim_op *op = step(dc, c, have == DEC_64 ? SIM_H_EXT_64_32 : SIM_H_EXT_32_32, false);
        op->size = op->more = (uint8_t)bits_of(c->from);
        op->flags = is_signed ? SIM_CVT_FROM_SIGNED | SIM_CVT_TO_SIGNED : 0;
        op->imm = UINT32_MAX;
    }
    if (is_half(c->to)) {
        const uint8_t round = c->round;
        step(dc, c,
             wide ? (is_signed ? SIM_H_ODD_S64 : SIM_H_ODD_U64)
                  : int_to_float(true, false, is_signed),
             false);
        c->round = round;
        return finish_half(dc, c);
    }
    const bool mods = c->round != SIM_RN || c->flags;
    return finish(dc, c, int_to_float(c->to == PTX_F64, wide, is_signed),
                  c->to == PTX_F64 ? SIM_T_f64 : SIM_T_f32, mods);
}

/* The float source as f32 (16-bit formats exactly) or f64. */
static void float_source(struct dec *dc, struct cvt *c)
{
    source(dc, c);
    if (is_half(c->from))
        step(dc, c, c->from == PTX_F16 ? SIM_H_F32_F16 : SIM_H_F32_BF16, false);
}

static bool float_to_int(struct dec *dc, struct cvt *c)
{
    static const enum sim_handler_id fast[2][4] = {
        {SIM_H_U32_F32_RN, SIM_H_U32_F32_RZ, SIM_H_U32_F32_RM, SIM_H_U32_F32_RP},
        {SIM_H_S32_F32_RN, SIM_H_S32_F32_RZ, SIM_H_S32_F32_RM, SIM_H_S32_F32_RP}};
    const bool is_signed = ptx_type_is_signed(c->to);
    float_source(dc, c);
    if (c->from == PTX_F32 && (c->flags & SIM_FTZ)) {
        const uint8_t round = c->round;
        c->round = SIM_RN;
        c->flags = SIM_FTZ;
        step(dc, c, SIM_H_F32_F32, true);
        c->round = round;
    }
    if (c->from != PTX_F64 && bits_of(c->to) == 32 &&
        dec_operand_class(dc, &dc->inst->operand[0], DEC_32) == DEC_32)
        return finish(dc, c, fast[is_signed][c->round], SIM_T_u32, false);
    struct sim_op *op = step(dc, c, c->from == PTX_F64 ? SIM_H_INT_F64 : SIM_H_INT_F32, false);
    op->flags = is_signed ? SIM_CVT_TO_SIGNED : 0;
    op->more = (uint8_t)bits_of(c->to);
    return put_int(dc, c, true, 64);
}

/* cvt.rni.f32.f32 and the like: rounding to an integral value. */
static enum sim_handler_id integral(bool wide, unsigned round)
{
    static const enum sim_handler_id h[2][4] = {
        {SIM_H_RINT_F32, SIM_H_TRUNC_F32, SIM_H_FLOOR_F32, SIM_H_CEIL_F32},
        {SIM_H_RINT_F64, SIM_H_TRUNC_F64, SIM_H_FLOOR_F64, SIM_H_CEIL_F64}};
    return h[wide][round];
}

static bool to_integral(struct dec *dc, struct cvt *c)
{
    const unsigned round = c->round;
    c->round = SIM_RN;
    if (c->from == PTX_F64) {
        step(dc, c, integral(true, round), false);
        return finish(dc, c, SIM_H_SAT_F64, SIM_T_f64, false);
    }
    if (c->to == PTX_F32)
        return finish(dc, c, integral(false, round), SIM_T_f32, true);
    step(dc, c, integral(false, round), true);
    step(dc, c, SIM_H_F64_F32, false)->flags = 0;
    return finish_half(dc, c);
}

static bool float_to_float(struct dec *dc, struct cvt *c, bool rint)
{
    if (c->to == PTX_F64 && c->from == PTX_F16) {
        source(dc, c);
        return finish(dc, c, SIM_H_F64_F16, SIM_T_f64, false);
    }
    if (c->to == PTX_F32 && c->from == PTX_BF16 && !c->flags) {
        source(dc, c);
        return finish(dc, c, SIM_H_F32_BF16, SIM_T_f32, false);
    }
    float_source(dc, c);
    if (c->from == PTX_F32 && c->to == PTX_F16) /* flushes nothing: what an H100 does */
        c->flags &= (uint8_t)~SIM_FTZ;
    if (rint)
        return to_integral(dc, c);
    if (c->from == PTX_F32 && c->to == PTX_F32 && !c->flags) /* NaNs as they are */
        return finish(dc, c, SIM_H_MOV_32, SIM_T_f32, false);
    if (is_half(c->to)) {
        if (c->from == PTX_F32 && c->round == SIM_RN && !c->flags)
            return finish(dc, c, c->to == PTX_F16 ? SIM_H_F16_F32 : SIM_H_BF16_F32, SIM_T_h, false);
        if (c->from != PTX_F64) {
            struct sim_op *op = step(dc, c, SIM_H_F64_F32, false);
            op->flags &= SIM_FTZ;
        }
        c->flags &= (uint8_t)~SIM_FTZ;
        return finish_half(dc, c);
    }
    const bool mods = c->flags || c->round != SIM_RN;
    if (c->to == PTX_F64)
        return c->from == PTX_F64 ? finish(dc, c, SIM_H_SAT_F64, SIM_T_f64, false)
                                  : finish(dc, c, SIM_H_F64_F32, SIM_T_f64, false);
    return finish(dc, c, c->from == PTX_F64 ? SIM_H_F32_F64 : SIM_H_F32_F32, SIM_T_f32, mods);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* cvt.rn.f16x2.f32 d, a, b: a goes to the upper half. */
static bool pair_of_halves(struct dec *dc, struct cvt *c)
{
    const struct ptx_inst *in = dc->inst;
    uint32_t slot[2];
    c->to = in->type[0] == PTX_F16X2 ? PTX_F16 : PTX_BF16;
    for (int i = 0; i < 2; i++) {
        c->slot = dec_src(dc, &in->operand[1 + i], SIM_T_f32);
        struct cvt part = *c;
        if (part.round == SIM_RN && !part.flags) {
            step(dc, &part, c->to == PTX_F16 ? SIM_H_F16_F32 : SIM_H_BF16_F32, false);
        } else {
            step(dc, &part, SIM_H_F64_F32, false)->flags = 0;
            step(dc, &part, c->to == PTX_F16 ? SIM_H_F16_F64 : SIM_H_BF16_F64, false)->more = true;
        }
        slot[i] = part.slot;
    }
    dec_emit3(dc, SIM_H_PACK_16, dec_dst(dc, &in->operand[0], SIM_T_u32), slot[1], slot[0], 0);
    return !dc->failed;
}

/* To fp8 pairs, from two f32 or one f16x2. */
static bool pair_of_fp8(struct dec *dc, struct cvt *c)
{
    const struct ptx_inst *in = dc->inst;
    const enum sim_handler_id h = in->type[0] == PTX_E4M3X2 ? SIM_H_E4M3_F32 : SIM_H_E5M2_F32;
    uint32_t slot[2]; /* upper, lower */
    for (uint32_t i = 0; i < 2; i++) {
        struct cvt part = *c;
        if (in->type[1] == PTX_F16X2) {
            const uint32_t pair = dec_src(dc, &in->operand[1], SIM_T_u32),
                           half = dec_temp(dc, DEC_32);
            dec_emit3(dc, SIM_H_UNPACK_16, half, pair, dec_const(dc, i ? 0 : 16, false), 0);
            part.slot = half;
            step(dc, &part, SIM_H_F32_F16, false);
        } else {
            part.slot = dec_src(dc, &in->operand[1 + i], SIM_T_f32);
        }
        step(dc, &part, h, false);
        slot[i] = part.slot;
    }
    dec_emit3(dc, SIM_H_BYTES, dec_dst(dc, &in->operand[0], SIM_T_u16), slot[1], slot[0], 0);
    return !dc->failed;
}

static bool dec_cvt_pair(struct dec *dc, struct cvt *c)
{
    const struct ptx_inst *in = dc->inst;
    if ((c->to == PTX_F16X2 || c->to == PTX_BF16X2) && c->from == PTX_F32 && in->noperand == 3)
        return pair_of_halves(dc, c);
    if ((c->to == PTX_E4M3X2 || c->to == PTX_E5M2X2) &&
        (c->from == PTX_F32 ? in->noperand == 3 : c->from == PTX_F16X2))
        return pair_of_fp8(dc, c);
    if (c->to == PTX_F16X2 && (c->from == PTX_E4M3X2 || c->from == PTX_E5M2X2)) {
        c->slot = dec_src(dc, &in->operand[1], SIM_T_u16);
        return finish(dc, c, c->from == PTX_E4M3X2 ? SIM_H_F16X2_E4M3X2 : SIM_H_F16X2_E5M2X2,
                      SIM_T_u32, false);
    }
    return dec_unsupported(dc);
}

static bool plain(enum ptx_mod t)
{
    switch (t) {
    case PTX_U8:
    case PTX_U16:
    case PTX_U32:
    case PTX_U64:
    case PTX_S8:
    case PTX_S16:
    case PTX_S32:
    case PTX_S64:
    case PTX_F16:
    case PTX_BF16:
    case PTX_F32:
    case PTX_F64: return true;
    default: return false;
    }
}

bool dec_cvt(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    struct cvt c = {.to = in->type[0], .from = in->type[1]};
    const enum ptx_mod round = in->mod[PTX_MC_ROUND];
    const bool rint = round == PTX_RNI || round == PTX_RZI || round == PTX_RMI || round == PTX_RPI;
    c.round = round == PTX_RZ || round == PTX_RZI   ? SIM_RZ
              : round == PTX_RM || round == PTX_RMI ? SIM_RM
              : round == PTX_RP || round == PTX_RPI ? SIM_RP
                                                    : SIM_RN;
    c.flags = (uint8_t)((in->mod[PTX_MC_FTZ] == PTX_FTZ ? SIM_FTZ : 0) |
                        (in->mod[PTX_MC_SAT] == PTX_SAT ? SIM_SAT : 0) |
                        (in->mod[PTX_MC_SAT] == PTX_SATFINITE ? SIM_SATFINITE : 0) |
                        (in->mod[PTX_MC_RELU] ? SIM_RELU : 0));
    if (in->guard >= 0)
        dec_keep_guard(dc);
    if (c.to == PTX_TF32 && c.from == PTX_F32) {
        c.slot = dec_src(dc, &in->operand[1], SIM_T_f32);
        if (!finish(dc, &c, SIM_H_TF32_F32, SIM_T_u32, false))
            return false;
        dc->op.v[dc->op.n - 1].more = round == PTX_RNA;
        return true;
    }
    if (!plain(c.to) || !plain(c.from))
        return dec_cvt_pair(dc, &c);
    if (is_int(c.from))
        return is_int(c.to) ? int_to_int(dc, &c) : int_to_any_float(dc, &c);
    return is_int(c.to) ? float_to_int(dc, &c) : float_to_float(dc, &c, rint);
}
