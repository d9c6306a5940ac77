#include <config.h>

#include "sim/half.h"
#include "sim/tensor.h"

static inline u32 lo(u32 x)
{
    return x & 0xffff;
}
static inline u32 hi(u32 x)
{
    return x >> 16;
}
static inline u32 pair(u32 l, u32 u)
{
    return (l & 0xffff) | (u << 16);
}

/* Modifiers on a value of either format: SUB is the mask of its exponent. */
static inline u32 flush(u32 x, unsigned flags, u32 exponent)
{
    return (flags & SIM_FTZ) && !(x & exponent) ? x & 0x8000 : x;
}
/* NaN: +0 for .sat, NaN for .relu. one is 1.0. */
static inline u32 limit(u32 x, unsigned flags, u32 one, u32 inf)
{
    const bool nan = (x & 0x7fff) > inf, negative = (x & 0x8000) != 0;
    if (flags & SIM_SAT)
        return nan || negative ? 0 : x > one ? one : x;
    if (flags & SIM_RELU)
        return negative && !nan ? 0 : x;
    return x;
}
#define IN_f16(x)  up_f16(flush((x), flags, 0x7c00))
#define IN_bf16(x) up_bf16(x)
/* A result is flushed that would be too small if it were rounded to its 11 bits alone, which is
 * when an H100 looks; not what is left of it as a subnormal, which may be the smallest normal
 * number. */
static inline f64 flush_f16(f64 r, unsigned flags)
{
    return (flags & SIM_FTZ) && r > -0x1.ffep-15 && r < 0x1.ffep-15 ? copysign(0.0, r) : r;
}
#define SMALL_f16(x)  (f32) flush_f16((x), flags)
#define SMALL_bf16(x) (x)
#define OUT_f16(x)    limit(flush((x), flags, 0x7c00), flags, 0x3c00, 0x7c00)
#define OUT_bf16(x)   limit((x), flags, 0x3f80, 0x7f80)

/* a * b + c as a double rounded to odd, so that rounding it to fewer bits is right: the product of
 * two values of at most 11 bits is exact in double, and the error of the sum says which way an even
 * last bit must go. */
static inline f64 fma_odd(f64 a, f64 b, f64 c)
{
    const f64 p = a * b, s = p + c;
    const f64 t = s - p, err = (p - (s - t)) + (c - t);
    u64 u = bits64(s);
    const bool finite = ((u >> 52) & 0x7ff) != 0x7ff;
    if (finite && err != 0 && !(u & 1))
        u += (err > 0) == (s > 0) ? 1 : UINT64_MAX;
    return from64(u);
}

static inline f32 smaller(f32 a, f32 b)
{
    const f32 equal = from32(bits32(a) | bits32(b));
    return a < b ? a : a > b ? b : a == b ? equal : a != a ? b : a;
}
static inline f32 larger(f32 a, f32 b)
{
    const f32 equal = from32(bits32(a) & bits32(b));
    return a > b ? a : a < b ? b : a == b ? equal : a != a ? b : a;
}
static inline f32 if_nan(f32 a, f32 b, f32 r)
{
    return a != a || b != b ? from32(0x7fffffff) : r;
}
#define ONE(NAME, T, EXPR)                              \
    static inline u32 NAME##_##T(u32 x, unsigned flags) \
    {                                                   \
        const f32 a = IN_##T(x);                        \
        (void)flags;                                    \
        return OUT_##T(down_##T(EXPR));                 \
    }
#define TWO(NAME, T, EXPR)                                     \
    static inline u32 NAME##_##T(u32 x, u32 y, unsigned flags) \
    {                                                          \
        const f32 a = IN_##T(x), b = IN_##T(y);                \
        (void)flags;                                           \
        return OUT_##T(down_##T(SMALL_##T(EXPR)));             \
    }
#define BOTH_1(NAME, EXPR) ONE(NAME, f16, EXPR) ONE(NAME, bf16, EXPR)
#define BOTH_2(NAME, EXPR) TWO(NAME, f16, EXPR) TWO(NAME, bf16, EXPR)

BOTH_2(add, a + b)
BOTH_2(sub, a - b)
BOTH_2(mul, a *b)
BOTH_2(min, smaller(a, b))
BOTH_2(max, larger(a, b))
BOTH_2(min_nan, if_nan(a, b, smaller(a, b)))
BOTH_2(max_nan, if_nan(a, b, larger(a, b)))
BOTH_1(ex2, (f32)exp2((f64)a))
BOTH_1(tanh, (f32)tanh((f64)a))

static inline bool is_nan(u32 x, u32 inf)
{
    return (x & 0x7fff) > inf;
}
static inline u32 neg_f16(u32 x, unsigned flags)
{
    return is_nan(x, 0x7c00) ? 0x7fff : flush(x, flags, 0x7c00) ^ 0x8000;
}
static inline u32 neg_bf16(u32 x, unsigned flags)
{
    (void)flags;
    return is_nan(x, 0x7f80) ? 0x7fff : x ^ 0x8000;
}
static inline u32 abs_f16(u32 x, unsigned flags)
{
    return is_nan(x, 0x7c00) ? 0x7fff : flush(x, flags, 0x7c00) & 0x7fff;
}
static inline u32 abs_bf16(u32 x, unsigned flags)
{
    (void)flags;
    return is_nan(x, 0x7f80) ? 0x7fff : x & 0x7fff;
}
/* The smaller or larger magnitude with the sign that the product would have, whatever NaNs there
 * are. */
#define XORSIGN(NAME, T, OF)                                        \
    static inline u32 NAME##_##T(u32 x, u32 y, unsigned flags)      \
    {                                                               \
        const u32 r = OF##_##T(x & 0x7fff, y & 0x7fff, flags);      \
        return r == 0x7fff ? r : (r & 0x7fff) | ((x ^ y) & 0x8000); \
    }
XORSIGN(min_xor, f16, min)
XORSIGN(max_xor, f16, max)
XORSIGN(min_nan_xor, f16, min_nan)
XORSIGN(max_nan_xor, f16, max_nan)
XORSIGN(min_xor, bf16, min)
XORSIGN(max_xor, bf16, max)
XORSIGN(min_nan_xor, bf16, min_nan)
XORSIGN(max_nan_xor, bf16, max_nan)
static inline u32 canonical(u32 x, u32 inf)
{
    return is_nan(x, inf) ? 0x7fff : x;
}
static inline u32 fma_f16(u32 x, u32 y, u32 z, unsigned flags)
{
    const f64 r = fma_odd((f64)IN_f16(x), (f64)IN_f16(y), (f64)IN_f16(z));
    return OUT_f16(canonical(narrow_f16(flush_f16(r, flags), SIM_RN), 0x7c00));
}
static inline u32 fma_bf16(u32 x, u32 y, u32 z, unsigned flags)
{
    const f64 r = fma_odd((f64)IN_bf16(x), (f64)IN_bf16(y), (f64)IN_bf16(z));
    return OUT_bf16(canonical(narrow_bf16(r, SIM_RN), 0x7f80));
}

/* A factor that a tensor copy filled with its NaN, for want of elements, makes the result 0. */
static inline bool is_filled(u32 x)
{
    return (x & 0x7fff) == (SIM_TENSOR_NAN & 0x7fff);
}
static inline u32 fma_oob_f16(u32 x, u32 y, u32 z, unsigned flags)
{
    return is_filled(x) || is_filled(y) ? 0 : fma_f16(x, y, z, flags);
}
static inline u32 fma_oob_bf16(u32 x, u32 y, u32 z, unsigned flags)
{
    return is_filled(x) || is_filled(y) ? 0 : fma_bf16(x, y, z, flags);
}

#define SIM_H1 SIM_DO_U
#define SIM_H2 SIM_DO_B
#define SIM_H3 SIM_DO_T
#define SIM_HCMP(NAME, SPELL, UP, EXPR)                                      \
    SIM_PRED(NAME, SIM_ARGS2(h, h), const f32 a = UP(flush_half(pa[i], op)); \
             const f32 b = UP(flush_half(pb[i], op)), EXPR)
/* only f16 comparisons have .ftz */
static inline u32 flush_half(u32 x, const struct sim_op *op)
{
    return flush(x, op->flags, 0x7c00);
}
#include "sim/half.def"

#undef SIM_H1
#undef SIM_H2
#undef SIM_H3
#undef SIM_HCMP
/* the modifiers are in the record: one function serves all forms */
#define SIM_ENTRY_FLAGS(NAME)                 \
    b->h[SIM_H_##NAME] = (struct sim_handler) \
    {                                         \
        NAME##_full, NAME##_part, NAME##_part \
    }
#define SIM_H1(NAME, SPELL, D, A, EXPR)       SIM_ENTRY_FLAGS(NAME);
#define SIM_H2(NAME, SPELL, D, A, B, EXPR)    SIM_ENTRY_FLAGS(NAME);
#define SIM_H3(NAME, SPELL, D, A, B, C, EXPR) SIM_ENTRY_FLAGS(NAME);
#define SIM_HCMP(NAME, SPELL, UP, EXPR)       SIM_ENTRY_FLAGS(NAME);

void SIM_NAMED(sim_fill_half)(struct sim_build *b)
{
#include "sim/half.def"
}
