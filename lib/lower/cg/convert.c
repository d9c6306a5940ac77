#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

#include <math.h>
#include <stdio.h>

/* Conversions round once, to nearest even, whatever the target has: where the instruction is
 * missing the library's convert.k gives the same bits. float -> integer truncates, saturates, and
 * NaN is 0. */

static bool is_small_float(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16 || dtype_is_fp8(t);
}

static bool is_wide(enum dtype t)
{
    return t == DT_I64 || t == DT_U64;
}

static struct cg_val one(struct cg *g, enum dtype rt, const char *m, struct ptx_operand x)
{
    return cg_value(rt, CG(g, cg_regtype(rt), m, x));
}

/* A small float's bits in a u32, and back. */
static struct cg_val small_bits(struct cg *g, struct cg_val v)
{
    if (v.op.kind == PTX_O_IMM)
        return cg_int(DT_U32, (int64_t)v.op.bits);
    return one(g, DT_U32, "cvt.u32.u16", v.op);
}

static struct cg_val small_from_bits(struct cg *g, struct cg_val bits, enum dtype to)
{
    return one(g, to, "cvt.u16.u32", cg_op(g, bits));
}

static bool has_fp8_cvt(const struct cg *g)
{
    return g->target->sm >= 89;
}

/* ---- between floats -------------------------------------------------------------------------- */

/* The f16 that a float of 8 bits is, by the instruction for pairs: the upper half is not used. */
static int32_t half_of_fp8(struct cg *g, struct cg_val v)
{
    const char *m = v.type == DT_E4M3 ? "cvt.rn.f16x2.e4m3x2" : "cvt.rn.f16x2.e5m2x2";
    const int32_t pair = CG(g, PTX_B32, m, ptx_r(cg_reg(g, v)));
    return CG(g, PTX_F16, "cvt.u16.u32", ptx_r(pair));
}

static struct cg_val widen(struct cg *g, struct cg_val v) /* small float -> f32, exact */
{
    switch (v.type) {
    case DT_F16: return one(g, DT_F32, "cvt.f32.f16", ptx_r(cg_reg(g, v)));
    case DT_BF16: {
        struct cg_val w = cg_binary(g, OP_SHL, small_bits(g, v), cg_int(DT_U32, 16));
        return cg_bitcast(g, w, DT_F32);
    }
    case DT_E4M3:
    case DT_E5M2: break;
    case DT_F64:
    case DT_F32:
    case DT_I64:
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4:
    case DT_COUNT: INTERNAL_ERROR("type %d is no small float", (int)v.type);
    }
    if (!has_fp8_cvt(g)) {
        struct cg_val bits = small_bits(g, v);
        return cg_library(g, v.type == DT_E4M3 ? "f32_from_e4m3" : "f32_from_e5m2", 1, &bits);
    }
    return one(g, DT_F32, "cvt.f32.f16", ptx_r(half_of_fp8(g, v)));
}

static struct cg_val from_f32(struct cg *g, struct cg_val v, enum dtype to)
{
    struct ptx_operand x = ptx_r(cg_reg(g, v));
    switch (to) {
    case DT_F64: return one(g, to, "cvt.f64.f32", x);
    case DT_F16: return one(g, to, "cvt.rn.f16.f32", x);
    case DT_BF16:
        if (g->target->sm >= 80)
            return one(g, to, "cvt.rn.bf16.f32", x);
        return small_from_bits(g, cg_library(g, "bf16_from_f32", 1, &v), to);
    case DT_E4M3:
    case DT_E5M2: break;
    case DT_F32:
    case DT_I64:
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4:
    case DT_COUNT: INTERNAL_ERROR("type %d is no other float", (int)to);
    }
    if (!has_fp8_cvt(g))
        return small_from_bits(
            g, cg_library(g, to == DT_E4M3 ? "e4m3_from_f32" : "e5m2_from_f32", 1, &v), to);
    const char *m = to == DT_E4M3 ? "cvt.rn.satfinite.e4m3x2.f32" : "cvt.rn.satfinite.e5m2x2.f32";
    return cg_value(to, CG(g, PTX_B16, m, ptx_immf32(0), x));
}

static struct cg_val from_f64(struct cg *g, struct cg_val v, enum dtype to)
{
    static const char *const names[] = {
        [DT_BF16] = "bf16_from_f64", [DT_E4M3] = "e4m3_from_f64", [DT_E5M2] = "e5m2_from_f64"};
    if (to == DT_F32)
        return one(g, to, "cvt.rn.f32.f64", ptx_r(cg_reg(g, v)));
    if (to == DT_F16)
        return one(g, to, "cvt.rn.f16.f64", ptx_r(cg_reg(g, v)));
    return small_from_bits(g, cg_library(g, names[to], 1, &v), to);
}

static struct cg_val float_to_float(struct cg *g, struct cg_val v, enum dtype to)
{
    if (to == DT_F16 && dtype_is_fp8(v.type) && has_fp8_cvt(g))
        return cg_value(to, half_of_fp8(g, v));
    if (is_small_float(v.type))
        v = widen(g, v);
    if (v.type == to)
        return v;
    return v.type == DT_F32 ? from_f32(g, v, to) : from_f64(g, v, to);
}

/* ---- integer -> float ------------------------------------------------------------------------ */

/* A 64-bit integer as the f64 that rounds to the same narrow float as the integer itself:
 * truncated, and made odd where that lost something. */
static struct cg_val odd_from_int64(struct cg *g, struct cg_val v)
{
    bool is_signed = v.type == DT_I64;
    int32_t x = cg_reg(g, v);
    int32_t f = CG(g, PTX_F64, is_signed ? "cvt.rz.f64.s64" : "cvt.rz.f64.u64", ptx_r(x));
    int32_t back = CG(g, PTX_B64, is_signed ? "cvt.rzi.s64.f64" : "cvt.rzi.u64.f64", ptx_r(f));
    int32_t lost = CG(g, PTX_PRED, "setp.ne.u64", ptx_r(back), ptx_r(x));
    int32_t bits = CG(g, PTX_B64, "mov.b64", ptx_r(f));
    int32_t odd = CG(g, PTX_B64, "or.b64", ptx_r(bits), ptx_imm(1));
    int32_t r = CG(g, PTX_B64, "selp.b64", ptx_r(odd), ptx_r(bits), ptx_r(lost));
    return cg_value(DT_F64, CG(g, PTX_F64, "mov.b64", ptx_r(r)));
}

static struct cg_val int_to_float(struct cg *g, struct cg_val v, enum dtype to)
{
    int64_t i;
    if (cg_is_const(v, &i) && (to == DT_F64 || to == DT_F32)) {
        bool u = dtype_class(v.type) == DTC_U;
        if (to == DT_F64)
            return cg_float(g, to, u ? (double)(uint64_t)i : (double)i);
        return cg_float(g, to, u ? (double)(float)(uint64_t)i : (double)(float)i);
    }
    bool wide = is_wide(v.type) && v.narrow == CG_FULL;
    if (to == DT_BF16 || dtype_is_fp8(to))
        return from_f64(g, wide ? odd_from_int64(g, v) : int_to_float(g, v, DT_F64), to);
    const char *from = wide                           ? cg_suffix(v.type)
                       : v.narrow == CG_U32           ? "u32"
                       : v.narrow == CG_S32           ? "s32"
                       : dtype_class(v.type) == DTC_I ? "s32"
                                                      : "u32";
    struct ptx_operand x = v.op.kind == PTX_O_IMM ? ptx_r(cg_reg(g, v)) : v.op;
    if (v.op.kind == PTX_O_IMM)
        from = cg_suffix(v.type);
    char m[32];
    snprintf(m, sizeof m, "cvt.rn.%s.%s", to == DT_F16 ? "f16" : cg_suffix(to), from);
    return one(g, to, m, x);
}

/* ---- float -> integer ------------------------------------------------------------------------ */

static struct cg_val float_to_int(struct cg *g, struct cg_val v, enum dtype to)
{
    if (is_small_float(v.type))
        v = widen(g, v);
    struct ptx_operand x = ptx_r(cg_reg(g, v));
    char m[32];
    snprintf(m, sizeof m, "cvt.rzi.%s.%s", cg_suffix(to), cg_suffix(v.type));
    struct cg_val r = one(g, to, m, x);
    if (v.type == DT_F64 ||
        is_wide(to)) { /* here the instruction makes 1 << 63 or 1 << 31 of NaN */
        snprintf(m, sizeof m, "setp.nan.%s", cg_suffix(v.type));
        int32_t nan = CG(g, PTX_PRED, m, x, x);
        r = cg_select(g, nan, cg_int(to, 0), r);
    }
    if (dtype_bits(to) < 32) {
        enum dtype t32 = dtype_class(to) == DTC_I ? DT_I32 : DT_U32;
        r.type = t32;
        if (t32 == DT_I32)
            r = cg_minmax(g, true, r, cg_int(t32, dtype_imin(to)));
        r = cg_minmax(g, false, r, cg_int(t32, (int64_t)dtype_imax(to)));
        r.type = to;
    }
    return r;
}

/* ---- between integers ------------------------------------------------------------------------ */

static bool contains(enum dtype to, enum dtype from)
{
    bool ts = dtype_class(to) == DTC_I, fs = dtype_class(from) == DTC_I;
    if (fs && !ts)
        return false;
    return dtype_bits(to) > dtype_bits(from) || (dtype_bits(to) == dtype_bits(from) && ts == fs);
}

static struct cg_val int_to_int(struct cg *g, struct cg_val v, enum dtype to)
{
    int64_t i;
    if (cg_is_const(v, &i))
        return cg_int(to, i);
    if (is_wide(to)) {
        if (is_wide(v.type)) {
            if (to == DT_U64 && v.narrow == CG_S32) /* sign-extended it is not a small u64 */
                v = cg_value(to, cg_reg(g, v));
            v.type = to;
            return v;
        }
        bool is_signed = dtype_class(v.type) == DTC_I;
        struct cg_val r = {.type = to, .narrow = is_signed ? CG_S32 : CG_U32, .op = v.op};
        return is_signed && to == DT_U64 ? cg_value(to, cg_reg(g, r)) : r;
    }
    if (contains(to, v.type)) {
        v.type = to;
        return v;
    }
    if (is_wide(v.type) && v.narrow == CG_FULL)
        v = one(g, to, "cvt.u32.u64", v.op);
    v.narrow = CG_FULL;
    v.type = to;
    unsigned bits = dtype_bits(to);
    if (bits == 32)
        return v;
    if (dtype_class(to) == DTC_I)
        return cg_value(to, CG(g, PTX_B32, bits == 8 ? "cvt.s32.s8" : "cvt.s32.s16", v.op));
    return cg_value(to, CG(g, PTX_B32, "and.b32", v.op, ptx_imm((INT64_C(1) << bits) - 1)));
}

int32_t cg_signed_part(struct cg *g, int32_t word, unsigned i, unsigned bits)
{
    if (bits < 8)
        return CG(g, PTX_B32, "bfe.s32", ptx_r(word), ptx_imm((int64_t)i * bits), ptx_imm(bits));
    unsigned low = i * bits / 8, high = low + bits / 8 - 1, sign = high | 8;
    unsigned pick = bits == 8 ? low | sign << 4 : low | high << 4;
    return CG(g, PTX_B32, "prmt.b32", ptx_r(word), ptx_imm(0),
              ptx_imm(pick | sign << 8 | sign << 12));
}

/* ---- all ------------------------------------------------------------------------------------- */

static struct cg_val from_bool(struct cg *g, struct cg_val v, enum dtype to)
{
    struct cg_val yes = dtype_is_float(to) ? cg_float(g, to, 1) : cg_int(to, 1);
    struct cg_val no = dtype_is_float(to) ? cg_float(g, to, 0) : cg_int(to, 0);
    int64_t i;
    if (cg_is_const(v, &i))
        return i ? yes : no;
    return cg_select(g, v.op.reg, yes, no);
}

static struct cg_val to_bool(struct cg *g, struct cg_val v)
{
    if (is_small_float(v.type))
        v = widen(g, v);
    return cg_binary(g, OP_NE, v,
                     dtype_is_float(v.type) ? cg_float(g, v.type, 0) : cg_int(v.type, 0));
}

struct cg_val cg_convert(struct cg *g, struct cg_val v, enum dtype to)
{
    struct cg_val lane[16];
    for (unsigned i = 0; i < v.lanes; i++)
        lane[i] = cg_convert(g, v.lane[i], to);
    if (v.lanes)
        return cg_vector(g, to, v.lanes, lane);
    if (v.type == to)
        return v;
    if (v.type == DT_BOOL)
        return from_bool(g, v, to);
    if (to == DT_BOOL)
        return to_bool(g, v);
    if (dtype_is_float(v.type))
        return dtype_is_float(to) ? float_to_float(g, v, to) : float_to_int(g, v, to);
    return dtype_is_float(to) ? int_to_float(g, v, to) : int_to_int(g, v, to);
}

/* ptxas 13.0 sees through cvt and mov that bits are a bool's 0 or 1, and converts those to float as
 * if they were the number: it does not look through prmt. */
static struct cg_val half_of_bits(struct cg *g, struct cg_val bits)
{
    int32_t low = CG(g, PTX_B32, "prmt.b32", ptx_r(cg_reg(g, bits)), ptx_imm(0), ptx_imm(0x4410));
    return small_from_bits(g, cg_value(DT_U32, low), DT_F16);
}

struct cg_val cg_bitcast(struct cg *g, struct cg_val v, enum dtype to)
{
    if (is_small_float(v.type)) {
        v = small_bits(g, v);
        v.type = to;
        return v;
    }
    if (is_small_float(to))
        return v.op.kind == PTX_O_IMM
                   ? (struct cg_val){.type = to, .op = ptx_imm((int64_t)v.op.bits)}
               : to == DT_F16 ? half_of_bits(g, v)
                              : small_from_bits(g, v, to);
    bool from_float = dtype_is_float(v.type), to_float = dtype_is_float(to);
    if (v.narrow)
        v = cg_value(v.type, cg_reg(g, v));
    if (from_float == to_float) {
        int64_t i;
        if (cg_is_const(v, &i))
            return cg_int(to, i);
        v.type = to;
        return v;
    }
    uint64_t bits = v.op.bits;
    if (v.op.kind == PTX_O_F32 || v.op.kind == PTX_O_F64)
        return cg_int(to, (int64_t)bits);
    if (v.op.kind == PTX_O_IMM) {
        struct cg_val r = cg_float(g, to, 0);
        r.op.bits = to == DT_F32 ? (uint32_t)bits : bits;
        return r;
    }
    return one(g, to, dtype_bits(to) == 64 ? "mov.b64" : "mov.b32", v.op);
}
