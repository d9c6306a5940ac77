#include <config.h>

#include "data/dtype.h"
#include "sim/cvt.h"
#include "sim/half.h"

/* ---- integers -------------------------------------------------------------------------------- */

static inline u32 field32(u32 x, unsigned bits, bool is_signed)
{
    const unsigned s = 32 - bits;
    return is_signed ? (u32)((s32)(x << s) >> s) : (x << s) >> s;
}
static inline u64 field64(u64 x, unsigned bits, bool is_signed)
{
    const unsigned s = 64 - bits;
    return is_signed ? (u64)((s64)(x << s) >> s) : (x << s) >> s;
}
static inline u32 extend32(u32 x, const struct sim_op *op)
{
    return field32(x, op->size, op->flags & SIM_CVT_FROM_SIGNED);
}
static inline u32 narrow32(u32 x, const struct sim_op *op)
{
    return field32(x, op->more, op->flags & SIM_CVT_TO_SIGNED);
}
static inline u64 narrow64(u64 x, const struct sim_op *op)
{
    return field64(x, op->more, op->flags & SIM_CVT_TO_SIGNED);
}
static inline u64 sign_or_zero(u32 x, const struct sim_op *op)
{
    return op->flags & SIM_CVT_FROM_SIGNED ? (u64)(s64)(s32)x : x;
}
/* x as an s64 or, without SIM_CVT_FROM_SIGNED, a u64. */
static inline u64 saturate(u64 x, const struct sim_op *op)
{
    const bool from_signed = op->flags & SIM_CVT_FROM_SIGNED,
               to_signed = op->flags & SIM_CVT_TO_SIGNED;
    const bool negative = from_signed && (s64)x < 0;
    const u64 most = to_signed ? ((u64)1 << (op->more - 1)) - 1 : UINT64_MAX >> (64 - op->more);
    const s64 least = to_signed ? -(s64)most - 1 : 0;
    if (negative)
        return (s64)x < least ? (u64)least : x;
    return x > most ? most : x;
}

/* clang converts with a subtraction of equal constants, which is -0 when rounding down. The zero is
 * tested behind the optimiser's back, since it takes the conversion's word for it. */
static inline f64 f64_u64(u64 x)
{
    u64 same = x;
    __asm__("" : "+r"(same));
    return same ? (f64)x : 0;
}

static inline f64 odd_u64(u64 x)
{
    const unsigned extra = x >> 53 ? 11 - (unsigned)__builtin_clzll(x) : 0;
    const u64 lost = x & (((u64)1 << extra) - 1);
    return (f64)((x - lost) | (lost ? (u64)1 << extra : 0));
}
static inline f64 odd_s64(s64 x)
{
    return x < 0 ? -odd_u64(0 - (u64)x) : odd_u64((u64)x);
}

/* ---- floats to integers ---------------------------------------------------------------------- */

static inline s32 to_s32(f32 x)
{
    const f32 in = x >= -2147483648.0f && x < 2147483648.0f ? x : 0.0f;
    return x >= 2147483648.0f ? INT32_MAX : x < -2147483648.0f ? INT32_MIN : (s32)in;
}
static inline u32 to_u32(f32 x)
{
    const f32 in = x >= 0.0f && x < 4294967296.0f ? x : 0.0f;
    return x >= 4294967296.0f ? UINT32_MAX : (u32)(s64)in;
}
static inline f64 round_f64(f64 x, unsigned mode)
{
    return mode == SIM_RN   ? rint(x)
           : mode == SIM_RZ ? trunc(x)
           : mode == SIM_RM ? floor(x)
                            : ceil(x);
}
/* nan: what a NaN gives when the result has 32 bits or less. */
static inline u64 to_int(f64 x, const struct sim_op *op, u64 nan)
{
    const bool to_signed = op->flags & SIM_CVT_TO_SIGNED;
    const unsigned bits = op->more;
    const f64 r = round_f64(x, op->round);
    const f64 top = ldexp(1.0, (int)(bits - to_signed));
    if (r != r)
        return bits == 64 ? (u64)1 << 63 : nan;
    if (r >= top)
        return to_signed ? ((u64)1 << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    if (to_signed)
        return r < -top ? (u64)(-1) << (bits - 1) : (u64)(s64)r;
    return r <= 0 ? 0 : (u64)r;
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* The host's functions may hand a signalling NaN back as it is. */
static inline f64 quiet64(f64 a, f64 r)
{
    return a != a ? from64(bits64(a) | (u64)1 << 51) : r;
}
/* Widening keeps a NaN's payload, but not with .ftz. */
static inline f64 widen(f32 x, const struct sim_op *op)
{
    const f32 a = op->flags & SIM_FTZ ? nan32(flush32(x)) : x;
    const f64 r = (f64)a;
    return op->flags & SIM_SAT ? sat64(r) : r;
}
static inline f64 widen_f16(u32 x, const struct sim_op *op)
{
    const u64 nan = (u64)(x & 0x8000) << 48 | (u64)0x7ff8 << 48 | (u64)(x & 0x3ff) << 42;
    const f64 r = (x & 0x7fff) > 0x7c00 ? from64(nan) : (f64)up_f16(x);
    return op->flags & SIM_SAT ? sat64(r) : r;
}
/* op->more: a NaN becomes the canonical one. */
static inline u32 modify(u32 x, const struct sim_op *op, u32 one, u32 inf)
{
    const u32 mag = x & 0x7fff;
    const bool nan = mag > inf, negative = (x & 0x8000) != 0;
    if (op->flags & SIM_SAT)
        return nan || negative ? 0 : mag > one ? one : mag;
    if (nan && op->more)
        return 0x7fff;
    if ((op->flags & SIM_RELU) && negative && !nan)
        return 0;
    if ((op->flags & SIM_SATFINITE) && mag == inf)
        return x - 1;
    return x;
}
static inline f32 relu32(f32 x, const struct sim_op *op)
{
    return (op->flags & SIM_RELU) && x <= 0 ? 0.0f : x;
}
/* 10 bits of mantissa in the f32 format; op->more: ties go away from zero. */
static inline u32 to_tf32(f32 x, const struct sim_op *op)
{
    const u32 u = bits32(relu32(x, op)), mag = u & 0x7fffffff;
    if (mag > 0x7f800000) /* as an H100 does; .satfinite comes with op->more alone */
        return !op->more                   ? 0x7fffe000
               : op->flags & SIM_SATFINITE ? (u & ~0x1fffu) - 0x2000
                                           : u & ~0x1fffu;
    const u32 add = op->more ? 0x1000 : op->round == SIM_RN ? 0xfff + ((u >> 13) & 1) : 0;
    u32 r = mag == 0x7f800000 ? mag : (mag + add) & ~0x1fffu;
    if ((op->flags & SIM_SATFINITE) && r >= 0x7f800000)
        r = 0x7f7fe000;
    return r | (u & 0x80000000);
}
static inline u32 one_fp8(u32 x, const struct sim_op *op, float (*up)(uint8_t))
{
    const u32 r = down_f16(up((uint8_t)x));
    return (op->flags & SIM_RELU) && (r & 0x8000) && (r & 0x7fff) <= 0x7c00 ? 0 : r;
}
static inline u32 two_fp8(u32 x, const struct sim_op *op, float (*up)(uint8_t))
{
    return one_fp8(x & 0xff, op, up) | one_fp8(x >> 8, op, up) << 16;
}

/* ---- handlers -------------------------------------------------------------------------------- */

/* A conversion to float with rounding, .ftz of source and result, .sat. */
#define SOURCE_s32(x, keep)     (x)
#define SOURCE_u32(x, keep)     (x)
#define SOURCE_s64(x, keep)     (x)
#define SOURCE_u64(x, keep)     (x)
#define SOURCE_f64(x, keep)     (x)
#define SOURCE_f32(x, keep)     from32((bits32(x) & 0x7f800000) ? bits32(x) : bits32(x) & (keep))
#define RESULT_f32_f32(x, keep) SOURCE_f32(nan32(x), keep)
/* a NaN keeps its payload */
#define RESULT_f32_f64(x, keep) SOURCE_f32(settle(x, (f32)(a * 0x1p32), keep), keep)
#define RESULT_f32_s32(x, keep) (x)
#define RESULT_f32_u32(x, keep) (x)
#define RESULT_f32_s64(x, keep) (x)
#define RESULT_f32_u64(x, keep) (x)
#define RESULT_f64_s32(x, keep) (x)
#define RESULT_f64_u32(x, keep) (x)
#define RESULT_f64_s64(x, keep) (x)
#define RESULT_f64_u64(x, keep) (x)
#define LIMIT_f32(x)            sat32(x)
#define LIMIT_f64(x)            sat64(x)
#define SIM_F1(NAME, SPELL, D, A, EXPR)                                                    \
    SIM_BOTH(NAME, D, SIM_ARGS1(A), SIM_LANE1(A), RESULT_##D##_##A((D)(EXPR), UINT32_MAX)) \
    SIM_FN(NAME##_mod)                                                                     \
    {                                                                                      \
        const u32 *const lm = sim_lanes(w);                                                \
        const u32 keep = op->flags & SIM_FTZ ? 0x80000000 : UINT32_MAX;                    \
        const bool sat = op->flags & SIM_SAT;                                              \
        (void)keep;                                                                        \
        SIM_ARGS1(A);                                                                      \
        slot_##D *const pd = SLOT(D, op->d);                                               \
        round_set(op->round);                                                              \
        SIM_LANES_LOOP                                                                     \
        {                                                                                  \
            const A a = SOURCE_##A(pa[i], keep);                                           \
            const D full = EXPR;                                                           \
            const D r = RESULT_##D##_##A(full, keep);                                      \
            pd[i] = !lm[i] ? pd[i] : sat ? LIMIT_##D(r) : r;                               \
        }                                                                                  \
        round_reset(op->round);                                                            \
        return op + 1;                                                                     \
    }
#define SIM_U SIM_DO_U
#define SIM_B SIM_DO_B
#include "sim/cvt.def"

#undef SIM_F1
#undef SIM_U
#undef SIM_B
#define SIM_F1(NAME, SPELL, D, A, EXPR)   SIM_ENTRY_MOD(NAME);
#define SIM_U(NAME, SPELL, D, A, EXPR)    SIM_ENTRY(NAME);
#define SIM_B(NAME, SPELL, D, A, B, EXPR) SIM_ENTRY(NAME);

void SIM_NAMED(sim_fill_cvt)(struct sim_build *b)
{
#include "sim/cvt.def"
}
