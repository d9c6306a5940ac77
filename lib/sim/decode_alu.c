/* Moves, predicate logic, comparisons. */
#include <config.h>

#include "sim/decode.h"
#include "sim/video.h"

static enum sim_type move_type(enum ptx_mod t)
{
    switch (t) {
    case PTX_F32: return SIM_T_f32;
    case PTX_F64: return SIM_T_f64;
    default: break;
    }
    switch (dec_type_bytes(t)) {
    case 2: return SIM_T_u16;
    case 4: return SIM_T_u32;
    case 8: return SIM_T_u64;
    default: return SIM_T_none;
    }
}

/* Two or four bytes to one register. */
static bool pack_bytes(struct dec *dc, const struct ptx_operand *d, const struct ptx_operand *v)
{
    uint32_t half[2] = {0};
    const bool two = v->nelem == 2;
    for (uint32_t i = 0; i < v->nelem; i += 2) {
        const uint32_t lo = dec_src(dc, &v->elem[i], SIM_T_u16);
        const uint32_t hi = dec_src(dc, &v->elem[i + 1], SIM_T_u16);
        half[i / 2] = two ? dec_dst(dc, d, SIM_T_u16) : dec_temp(dc, DEC_16);
        dec_emit3(dc, SIM_H_BYTES, half[i / 2], lo, hi, 0);
    }
    if (!two)
        dec_emit3(dc, SIM_H_PACK_16, dec_dst(dc, d, SIM_T_u32), half[0], half[1], 0);
    return !dc->failed;
}

/* {lo, hi} of so many bits each to one register of twice or four times that. */
static bool pack(struct dec *dc, const struct ptx_operand *d, const struct ptx_operand *v,
                 uint32_t bytes)
{
    const uint32_t each = bytes / (v->nelem ? v->nelem : 1);
    uint32_t off[4] = {0};
    if (v->nelem == 1) {
        off[0] = dec_src(dc, &v->elem[0],
                         bytes == 8   ? SIM_T_u64
                         : bytes == 4 ? SIM_T_u32
                                      : SIM_T_u16);
        dec_emit3(dc, bytes == 8 ? SIM_H_MOV_64 : SIM_H_MOV_32,
                  dec_dst(dc, d,
                          bytes == 8   ? SIM_T_u64
                          : bytes == 4 ? SIM_T_u32
                                       : SIM_T_u16),
                  off[0], 0, 0);
        return !dc->failed;
    }
    if ((v->nelem != 2 && v->nelem != 4) || each * v->nelem != bytes)
        return dec_unsupported(dc);
    if (each == 1)
        return pack_bytes(dc, d, v);
    for (uint32_t i = 0; i < v->nelem; i++)
        off[i] = dec_src(dc, &v->elem[i], each == 2 ? SIM_T_u16 : SIM_T_u32);
    uint32_t lo = off[0], hi = off[1];
    if (v->nelem == 4) {
        lo = dec_temp(dc, DEC_32);
        hi = dec_temp(dc, DEC_32);
        dec_emit3(dc, SIM_H_PACK_16, lo, off[0], off[1], 0);
        dec_emit3(dc, SIM_H_PACK_16, hi, off[2], off[3], 0);
    }
    dec_emit3(dc, bytes == 8 ? SIM_H_PACK_32 : SIM_H_PACK_16,
              dec_dst(dc, d, bytes == 8 ? SIM_T_u64 : SIM_T_u32), lo, hi, 0);
    return !dc->failed;
}

static bool unpack(struct dec *dc, const struct ptx_operand *v, const struct ptx_operand *s,
                   uint32_t bytes)
{
    const uint32_t each = bytes / (v->nelem ? v->nelem : 1);
    if ((v->nelem != 2 && v->nelem != 4) || each * v->nelem != bytes)
        return dec_unsupported(dc);
    const uint32_t from = dec_src(dc, s,
                                  bytes == 8   ? SIM_T_u64
                                  : bytes == 4 ? SIM_T_u32
                                               : SIM_T_u16);
    for (uint32_t i = 0; i < v->nelem; i++) {
        if (v->elem[i].kind == PTX_O_SINK)
            continue;
        if (each == 1) {
            const uint32_t part = dec_temp(dc, DEC_16);
            dec_emit3(dc, SIM_H_UNPACK_16, part, from, dec_const(dc, 8 * i, false), 0);
            dec_emit3(dc, SIM_H_AND_16, dec_dst(dc, &v->elem[i], SIM_T_u16), part,
                      dec_const(dc, 0xff, false), 0);
            continue;
        }
        const uint32_t shift = dec_const(dc, (uint64_t)i * each * 8, false);
        const uint32_t d = dec_dst(dc, &v->elem[i], each == 2 ? SIM_T_u16 : SIM_T_u32);
        const enum sim_handler_id h = each == 4    ? SIM_H_UNPACK_32
                                      : bytes == 8 ? SIM_H_UNPACK_64_16
                                                   : SIM_H_UNPACK_16;
        dec_emit3(dc, h, d, from, shift, 0);
    }
    return !dc->failed;
}

/* The two halves to or from registers of 64 bits, or four of 32; all are read before any is written
 * only where that can matter: between registers of 128 bits nothing overlaps but a register with
 * itself. */
static bool move_128(struct dec *dc)
{
    const struct ptx_operand *d = &dc->inst->operand[0], *s = &dc->inst->operand[1];
    const bool packs = s->kind == PTX_O_VEC, unpacks = d->kind == PTX_O_VEC;
    const struct ptx_operand *v = packs ? s : d;
    const uint32_t n = packs || unpacks ? v->nelem : 2;
    const enum sim_type t = n == 4 ? SIM_T_u32 : SIM_T_u64;
    uint32_t to[2], from[2], part[4] = {0};
    if ((n != 2 && n != 4) || (!packs && !dec_halves(dc, s, false, from)) ||
        (!unpacks && !dec_halves(dc, d, true, to)))
        return dc->failed ? false : dec_unsupported(dc);
    for (uint32_t i = 0; i < n && (packs || unpacks); i++)
        part[i] = packs ? dec_src(dc, &v->elem[i], t) : dec_dst(dc, &v->elem[i], t);
    for (uint32_t i = 0; i < n; i++) {
        if (n == 2)
            dec_emit3(dc, SIM_H_MOV_64, unpacks ? part[i] : to[i], packs ? part[i] : from[i], 0, 0);
        else if (unpacks)
            dec_emit3(dc, SIM_H_UNPACK_32, part[i], from[i / 2], dec_const(dc, i % 2 * 32, false),
                      0);
        else if (i % 2)
            dec_emit3(dc, SIM_H_PACK_32, to[i / 2], part[i - 1], part[i], 0);
    }
    return !dc->failed;
}

static bool clock_reg(struct dec *dc, const struct ptx_operand *d, enum ptx_sreg reg)
{
    const bool wide = reg == PTX_SR_CLOCK64 || reg == PTX_SR_GLOBALTIMER;
    const bool high = reg == PTX_SR_CLOCK_HI || reg == PTX_SR_GLOBALTIMER_HI;
    dec_emit(dc, SIM_H_CLOCK);
    const size_t at = dc->op.n - 1;
    const uint32_t off = dec_dst(dc, d, wide ? SIM_T_u64 : SIM_T_u32);
    dc->op.v[at].d = off;
    dc->op.v[at].more = wide;
    dc->op.v[at].imm = high ? 32 : 0;
    return !dc->failed;
}

bool dec_mov(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *d = &in->operand[0], *s = &in->operand[1];
    const enum ptx_mod type = in->type[0];
    if (type == PTX_PRED) {
        const uint32_t from = dec_pred(dc, s);
        dec_emit3(dc, SIM_H_PMOV, dec_dst(dc, d, SIM_T_p), from, 0, 0);
        return !dc->failed;
    }
    if (type == PTX_B128)
        return move_128(dc);
    const enum sim_type t = move_type(type);
    if (t == SIM_T_none)
        return dec_unsupported(dc);
    if (s->kind == PTX_O_VEC)
        return pack(dc, d, s, dec_type_bytes(type));
    if (d->kind == PTX_O_VEC)
        return unpack(dc, d, s, dec_type_bytes(type));
    if (s->kind == PTX_O_SREG && dec_is_clock(s->sreg))
        return clock_reg(dc, d, s->sreg);
    const uint32_t from = dec_src(dc, s, t);
    dec_emit3(dc, dec_class_of(t) == DEC_64 ? SIM_H_MOV_64 : SIM_H_MOV_32, dec_dst(dc, d, t), from,
              0, 0);
    return !dc->failed;
}

static enum sim_handler_id pred_logic(enum ptx_mod boolop)
{
    return boolop == PTX_BOOL_AND ? SIM_H_PAND : boolop == PTX_BOOL_OR ? SIM_H_POR : SIM_H_PXOR;
}

bool dec_logic(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    if (in->type[0] != PTX_PRED)
        return dec_generic(dc);
    dec_keep_guard(dc);
    const uint32_t a = dec_pred(dc, &in->operand[1]);
    const uint32_t b = in->noperand > 2 ? dec_pred(dc, &in->operand[2]) : 0;
    const enum sim_handler_id h = in->op == PTX_OP_NOT   ? SIM_H_PNOT
                                  : in->op == PTX_OP_AND ? SIM_H_PAND
                                  : in->op == PTX_OP_OR  ? SIM_H_POR
                                                         : SIM_H_PXOR;
    dec_emit3(dc, h, dec_dst(dc, &in->operand[0], SIM_T_p), a, b, 0);
    return !dc->failed;
}

/* The handler of the instruction's comparison of that type; NULL after an error. */
static enum sim_handler_id comparison(struct dec *dc, enum ptx_mod type)
{
    const struct ptx_inst *in = dc->inst;
    const enum sim_handler_id h = dec_comparison(in->mod[PTX_MC_COMPARE], type);
    const bool ftz = in->mod[PTX_MC_FTZ] == PTX_FTZ;
    const struct sim_handler *f = &dc->in->build->h[h];
    if (!h || (ftz && !f->mod)) {
        dec_unsupported(dc);
        return SIM_H_NONE;
    }
    return h;
}

static void emit_comparison(struct dec *dc, enum sim_handler_id h, uint32_t d, uint32_t x,
                            uint32_t y)
{
    struct sim_op *op = dec_emit3(dc, h, d, x, y, 0);
    if (dc->inst->mod[PTX_MC_FTZ] == PTX_FTZ) {
        op->fn[0] = op->fn[1] = dc->in->build->h[h].mod;
        op->flags |= SIM_FTZ; /* halves look there */
    }
}

/* Emits the comparison of operands a and b into the predicate d. */
static bool compare(struct dec *dc, enum ptx_mod type, const struct ptx_operand *a,
                    const struct ptx_operand *b, uint32_t d)
{
    const enum sim_handler_id h = comparison(dc, type);
    if (!h)
        return false;
    const uint32_t x = dec_src(dc, a, sim_rows[h].a), y = dec_src(dc, b, sim_rows[h].b);
    emit_comparison(dc, h, d, x, y);
    return !dc->failed;
}

static bool is_pair(enum ptx_mod type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

/* Compares pairs of halves: the lower ones into the predicate low, the others into high, each with
 * the instruction's boolean operator. */
static bool compare_halves(struct dec *dc, enum ptx_mod pair, uint32_t low, uint32_t high)
{
    const struct ptx_inst *in = dc->inst;
    const enum ptx_mod boolop = in->mod[PTX_MC_BOOLOP];
    const enum sim_handler_id h = comparison(dc, pair == PTX_F16X2 ? PTX_F16 : PTX_BF16);
    if (!h)
        return false;
    const uint32_t c = boolop ? dec_pred(dc, &in->operand[3]) : 0;
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t x[2];
        const uint32_t shift = dec_const(dc, 16 * half, false), d = half ? high : low;
        for (int i = 0; i < 2; i++) {
            x[i] = dec_temp(dc, DEC_16);
            dec_emit3(dc, SIM_H_UNPACK_16, x[i], dec_src(dc, &in->operand[1 + i], SIM_T_u32), shift,
                      0);
        }
        emit_comparison(dc, h, d, x[0], x[1]);
        if (boolop)
            dec_emit3(dc, pred_logic(boolop), d, d, c, 0);
    }
    return !dc->failed;
}

/* setp of pairs: p|q are for the lower and the upper halves. */
static bool setp_halves(struct dec *dc)
{
    const struct ptx_operand *d = &dc->inst->operand[0];
    const struct ptx_operand q = {.kind = PTX_O_REG, .reg = d->reg2, .reg2 = -1};
    const uint32_t low = dec_temp(dc, DEC_PRED), high = dec_temp(dc, DEC_PRED);
    dec_keep_guard(dc);
    if (!compare_halves(dc, dc->inst->type[0], low, high))
        return false;
    if (d->kind == PTX_O_REG && d->reg >= 0)
        dec_emit3(dc, SIM_H_PMOV, dec_dst(dc, d, SIM_T_p), low, 0, 0);
    if (d->kind == PTX_O_REG && d->reg2 >= 0)
        dec_emit3(dc, SIM_H_PMOV, dec_dst(dc, &q, SIM_T_p), high, 0, 0);
    return !dc->failed;
}

/* setp.cmp[.bool].type p[|q], a, b[, c]: p = (a cmp b) bool c, q = !(a cmp b) bool c. */
bool dec_setp(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *d = &in->operand[0];
    const bool pair = d->kind == PTX_O_REG && d->reg2 >= 0;
    const enum ptx_mod boolop = in->mod[PTX_MC_BOOLOP];
    if (is_pair(in->type[0]))
        return setp_halves(dc);
    if (!pair && !boolop)
        return compare(dc, in->type[0], &in->operand[1], &in->operand[2], dec_dst(dc, d, SIM_T_p));
    dec_keep_guard(dc);
    const uint32_t yes = dec_temp(dc, DEC_PRED), no = dec_temp(dc, DEC_PRED);
    if (!compare(dc, in->type[0], &in->operand[1], &in->operand[2], yes))
        return false;
    uint32_t c = boolop ? dec_pred(dc, &in->operand[3]) : 0;
    if (pair && boolop) {
        /* c may be one of the destinations */
        const uint32_t copy = dec_temp(dc, DEC_PRED);
        dec_emit3(dc, SIM_H_PMOV, copy, c, 0, 0);
        c = copy;
    }
    const enum sim_handler_id h = boolop ? pred_logic(boolop) : SIM_H_PMOV;
    dec_emit3(dc, h, dec_dst(dc, d, SIM_T_p), yes, c, 0);
    if (pair) {
        const struct ptx_operand q = {.kind = PTX_O_REG, .reg = d->reg2, .reg2 = -1};
        dec_emit3(dc, SIM_H_PNOT, no, yes, 0, 0);
        dec_emit3(dc, h, dec_dst(dc, &q, SIM_T_p), no, c, 0);
    }
    return !dc->failed;
}

/* set of pairs: each half is all ones or 1.0 where its comparison holds, else 0. */
static bool set_halves(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const uint64_t one = in->type[0] == PTX_F16X2    ? 0x3c00
                         : in->type[0] == PTX_BF16X2 ? 0x3f80
                                                     : 0xffff;
    const uint32_t p[2] = {dec_temp(dc, DEC_PRED), dec_temp(dc, DEC_PRED)};
    const uint32_t h[2] = {dec_temp(dc, DEC_16), dec_temp(dc, DEC_16)};
    if (!compare_halves(dc, in->type[1], p[0], p[1]))
        return false;
    for (int i = 0; i < 2; i++)
        dec_emit3(dc, SIM_H_SELP_16, h[i], dec_const(dc, one, false), dec_const(dc, 0, false),
                  p[i]);
    dec_emit3(dc, SIM_H_PACK_16, dec_dst(dc, &in->operand[0], SIM_T_u32), h[0], h[1], 0);
    return !dc->failed;
}

/* set.cmp[.bool].dtype.stype d, a, b[, c]: all ones or 1.0 where it holds, else 0. */
bool dec_set(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const enum ptx_mod boolop = in->mod[PTX_MC_BOOLOP];
    uint64_t one;
    if (is_pair(in->type[1]))
        return set_halves(dc);
    switch (in->type[0]) {
    case PTX_U16:
    case PTX_S16: one = 0xffff; break;
    case PTX_U32:
    case PTX_S32: one = 0xffffffff; break;
    case PTX_F32: one = 0x3f800000; break;
    case PTX_F16: one = 0x3c00; break;
    case PTX_BF16: one = 0x3f80; break;
    default: return dec_unsupported(dc);
    }
    const bool half = dec_type_bytes(in->type[0]) == 2;
    const uint32_t p = dec_temp(dc, DEC_PRED);
    if (!compare(dc, in->type[1], &in->operand[1], &in->operand[2], p))
        return false;
    if (boolop) {
        const uint32_t c = dec_pred(dc, &in->operand[3]);
        dec_emit3(dc, pred_logic(boolop), p, p, c, 0);
    }
    dec_emit3(dc, half ? SIM_H_SELP_16 : SIM_H_SELP_32,
              dec_dst(dc, &in->operand[0], half ? SIM_T_u16 : SIM_T_u32), dec_const(dc, one, false),
              dec_const(dc, 0, false), p);
    return !dc->failed;
}

/* lop3.and.b32 d|p, a, b, c, table, q: p = (d != 0) && q. */
static bool lop3_bool(struct dec *dc, uint32_t d)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand p = {.kind = PTX_O_REG, .reg = in->operand[0].reg2, .reg2 = -1};
    const uint32_t q = dec_pred(dc, &in->operand[5]);
    if (p.reg < 0)
        return !dc->failed;
    const uint32_t any = dec_temp(dc, DEC_PRED);
    dec_emit3(dc, SIM_H_NE_32, any, d, dec_const(dc, 0, false), 0);
    dec_emit3(dc, in->mod[PTX_MC_OP] == PTX_AND ? SIM_H_PAND : SIM_H_POR, dec_dst(dc, &p, SIM_T_p),
              any, q, 0);
    return !dc->failed;
}

bool dec_lop3(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const bool with_pred = in->op == PTX_OP_LOP3_BOOL;
    if (in->noperand != 5u + with_pred || in->operand[4].kind != PTX_O_IMM)
        return dec_unsupported(dc);
    uint32_t s[3];
    if (with_pred)
        dec_keep_guard(dc);
    for (int i = 0; i < 3; i++)
        s[i] = dec_src(dc, &in->operand[i + 1], SIM_T_u32);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_u32);
    struct sim_op *op = dec_emit3(dc, SIM_H_LOP3, d, s[0], s[1], s[2]);
    op->more = (uint8_t)in->operand[4].bits;
    return with_pred ? lop3_bool(dc, d) : !dc->failed;
}

static const struct {
    uint16_t op;
    uint8_t what; /* enum sim_video */
    bool bytes;   /* of four bytes, else of two halves */
} videos[] = {
    {PTX_OP_VADD2, SIM_VADD, false},         {PTX_OP_VADD4, SIM_VADD, true},
    {PTX_OP_VSUB2, SIM_VSUB, false},         {PTX_OP_VSUB4, SIM_VSUB, true},
    {PTX_OP_VAVRG2, SIM_VAVRG, false},       {PTX_OP_VAVRG4, SIM_VAVRG, true},
    {PTX_OP_VABSDIFF2, SIM_VABSDIFF, false}, {PTX_OP_VABSDIFF4, SIM_VABSDIFF, true},
    {PTX_OP_VMIN2, SIM_VMIN, false},         {PTX_OP_VMIN4, SIM_VMIN, true},
    {PTX_OP_VMAX2, SIM_VMAX, false},         {PTX_OP_VMAX4, SIM_VMAX, true},
};

/* vadd2.u32.s32.u32.sat d, a, b, c */
bool dec_video(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    size_t i = 0;
    while (i < sizeof videos / sizeof *videos && videos[i].op != in->op)
        i++;
    if (i == sizeof videos / sizeof *videos)
        return dec_unsupported(dc);
    if (!dec_row(dc, SIM_H_VIDEO, false))
        return false;
    struct sim_op *op = &dc->op.v[dc->op.n - 1];
    op->more = videos[i].what;
    op->imm = (videos[i].bytes ? SIM_VIDEO_4 : 0) | (in->type[0] == PTX_S32 ? SIM_VIDEO_D : 0) |
              (in->type[1] == PTX_S32 ? SIM_VIDEO_A : 0) |
              (in->type[2] == PTX_S32 ? SIM_VIDEO_B : 0) |
              (in->mod[PTX_MC_SAT] ? SIM_VIDEO_SAT : 0) | (in->mod[PTX_MC_OP] ? SIM_VIDEO_ADD : 0);
    return true;
}
