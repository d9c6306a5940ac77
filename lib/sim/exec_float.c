#include <config.h>

#include "sim/exec.h"

/* ---- what the expressions of float.def call -------------------------------------------------- */

#define EXP64 ((u64)0x7ff << 52)

static inline u32 flush_bits(u32 u)
{
    return (u & 0x7f800000) ? u : u & 0x80000000;
}
static inline u32 nan_or(u32 a, u32 r)
{
    return (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r;
}
static inline u64 quiet_or(u64 a, u64 r)
{
    return (a & INT64_MAX) > EXP64 ? a | (u64)1 << 51 : r;
}
static inline f32 abs32(f32 x)
{
    return from32(bits32(x) & 0x7fffffff);
}
/* The operand that is a number wins; of two zeros, min is -0 and max is +0. Comparing the sign bits
 * of equal operands settles that: equal numbers differ in nothing else. */
static inline f32 min_f32(f32 a, f32 b)
{
    const f32 equal = from32(bits32(a) | bits32(b));
    const f32 r = a < b ? a : a > b ? b : a == b ? equal : a != a ? b : a;
    return r;
}
static inline f32 max_f32(f32 a, f32 b)
{
    const f32 equal = from32(bits32(a) & bits32(b));
    const f32 r = a > b ? a : a < b ? b : a == b ? equal : a != a ? b : a;
    return r;
}
static inline f32 nan_of2(f32 a, f32 b, f32 r)
{
    return a != a || b != b ? from32(0x7fffffff) : r;
}
static inline f32 xorsign(f32 a, f32 b, f32 r)
{
    return from32((bits32(r) & 0x7fffffff) | ((bits32(a) ^ bits32(b)) & 0x80000000));
}
/* div.approx gives zero for divisors above 2^126, where the hardware's reciprocal is flushed, and
 * NaN for an infinite dividend (PTX ISA, div). */
static inline f32 div_approx(f32 a, f32 b)
{
    const u32 mag = bits32(b) & 0x7fffffff;
    const bool huge = mag > 0x7e800000 && mag < 0x7f800000;
    return huge ? a * from32(bits32(b) & 0x80000000) : a / b;
}

static inline f64 min_f64(f64 a, f64 b)
{
    const f64 equal = from64(bits64(a) | bits64(b));
    const f64 r = a < b ? a : a > b ? b : a == b ? equal : a != a ? b : a;
    return r != r ? from64(bits64(b) | (u64)1 << 51) : r;
}
static inline f64 max_f64(f64 a, f64 b)
{
    const f64 equal = from64(bits64(a) & bits64(b));
    const f64 r = a > b ? a : a < b ? b : a == b ? equal : a != a ? b : a;
    return r != r ? from64(bits64(b) | (u64)1 << 51) : r;
}
/* The f64 approximations read and write the upper 32 bits only (PTX ISA, rcp.approx.ftz.f64). */
static inline f64 upper(f64 x)
{
    u64 u = bits64(x) & ~(u64)UINT32_MAX;
    if (!(u & EXP64))
        u &= (u64)1 << 63;
    return from64(u);
}
static inline f64 rcp_approx64(f64 a)
{
    const f64 r = upper(1.0 / upper(a));
    return r != r ? from64(0x7fffffff00000000) : r;
}
static inline f64 rsqrt_approx64(f64 a)
{
    const f64 r = upper(1.0 / sqrt(upper(a)));
    return r != r ? from64(0x7fffffff00000000) : r;
}

/* ---- handlers -------------------------------------------------------------------------------- */

/* A result as its type wants it, and the modifiers .ftz and .sat, which double precision has not.
 * keep is what of a subnormal is kept. */
#define END_f32(x)           nan32(x)
#define END_f64(x)           (x)
#define FLUSH_f32(x, keep)   from32((bits32(x) & 0x7f800000) ? bits32(x) : bits32(x) & (keep))
#define FLUSH_f64(x, keep)   (x)
#define SATURATE_f32(x, sat) ((sat) ? sat32(x) : (x))
#define SATURATE_f64(x, sat) (x)
#define SIM_LANE_MOD(T, x)   const T x = FLUSH_##T(((T)p##x[i]), keep)
#define SIM_LANE_MOD1(A)     SIM_LANE_MOD(A, a)
#define SIM_LANE_MOD2(A, B) \
    SIM_LANE_MOD(A, a);     \
    SIM_LANE_MOD(B, b)
#define SIM_LANE_MOD3(A, B, C) \
    SIM_LANE_MOD(A, a);        \
    SIM_LANE_MOD(B, b);        \
    SIM_LANE_MOD(C, c)

/* As SIM_PART, with rounding, .ftz and .sat from the record. */
#define SIM_MOD(NAME, D, ARGS, LANE, EXPR)                              \
    SIM_FN(NAME##_mod)                                                  \
    {                                                                   \
        const u32 *const lm = sim_lanes(w);                             \
        const u32 keep = op->flags & SIM_FTZ ? 0x80000000 : UINT32_MAX; \
        const bool sat = op->flags & SIM_SAT;                           \
        (void)keep, (void)sat;                                          \
        ARGS;                                                           \
        slot_##D *const pd = SLOT(D, op->d);                            \
        round_set(op->round);                                           \
        SIM_LANES_LOOP                                                  \
        {                                                               \
            LANE;                                                       \
            const D full = END_##D(EXPR);                               \
            const D r = SATURATE_##D(FLUSH_##D(full, keep), sat);       \
            pd[i] = lm[i] ? r : pd[i];                                  \
        }                                                               \
        round_reset(op->round);                                         \
        return op + 1;                                                  \
    }
/* As SIM_MOD, for f32; SCALED is needed only where a result is the smallest normal number. */
#define SIM_MODL(NAME, ARGS, LANE, EXPR, SCALED)                        \
    SIM_FN(NAME##_mod)                                                  \
    {                                                                   \
        const u32 *const lm = sim_lanes(w);                             \
        const u32 keep = op->flags & SIM_FTZ ? 0x80000000 : UINT32_MAX; \
        const bool sat = op->flags & SIM_SAT;                           \
        f32 full[SIM_LANES] __attribute__((aligned(SIM_SLOT)));         \
        u32 edges = 0;                                                  \
        ARGS;                                                           \
        slot_f32 *const pd = SLOT(f32, op->d);                          \
        round_set(op->round);                                           \
        SIM_LANES_LOOP                                                  \
        {                                                               \
            LANE;                                                       \
            full[i] = nan32(EXPR);                                      \
            edges |= (bits32(full[i]) & 0x7fffffff) == 0x00800000;      \
        }                                                               \
        if (edges && keep != UINT32_MAX)                                \
            SIM_LANES_LOOP                                              \
            {                                                           \
                LANE;                                                   \
                full[i] = settle(full[i], SCALED, keep);                \
            }                                                           \
        SIM_LANES_LOOP                                                  \
        {                                                               \
            const f32 r = SATURATE_f32(FLUSH_f32(full[i], keep), sat);  \
            pd[i] = lm[i] ? r : pd[i];                                  \
        }                                                               \
        round_reset(op->round);                                         \
        return op + 1;                                                  \
    }
#define SIM_F2L(NAME, SPELL, D, A, B, EXPR, SCALED)                    \
    SIM_BOTH(NAME, D, SIM_ARGS2(A, B), SIM_LANE2(A, B), END_##D(EXPR)) \
    SIM_MODL(NAME, SIM_ARGS2(A, B), SIM_LANE_MOD2(A, B), EXPR, SCALED)
#define SIM_F3L(NAME, SPELL, D, A, B, C, EXPR, SCALED)                       \
    SIM_BOTH(NAME, D, SIM_ARGS3(A, B, C), SIM_LANE3(A, B, C), END_##D(EXPR)) \
    SIM_MODL(NAME, SIM_ARGS3(A, B, C), SIM_LANE_MOD3(A, B, C), EXPR, SCALED)
#define SIM_F1(NAME, SPELL, D, A, EXPR)                          \
    SIM_BOTH(NAME, D, SIM_ARGS1(A), SIM_LANE1(A), END_##D(EXPR)) \
    SIM_MOD(NAME, D, SIM_ARGS1(A), SIM_LANE_MOD1(A), EXPR)
#define SIM_F2(NAME, SPELL, D, A, B, EXPR)                             \
    SIM_BOTH(NAME, D, SIM_ARGS2(A, B), SIM_LANE2(A, B), END_##D(EXPR)) \
    SIM_MOD(NAME, D, SIM_ARGS2(A, B), SIM_LANE_MOD2(A, B), EXPR)
#define SIM_F3(NAME, SPELL, D, A, B, C, EXPR)                                \
    SIM_BOTH(NAME, D, SIM_ARGS3(A, B, C), SIM_LANE3(A, B, C), END_##D(EXPR)) \
    SIM_MOD(NAME, D, SIM_ARGS3(A, B, C), SIM_LANE_MOD3(A, B, C), EXPR)
#define SIM_FCMP(NAME, SPELL, A, EXPR)                                                  \
    SIM_PRED(NAME, SIM_ARGS2(A, A), SIM_LANE2(A, A), EXPR)                              \
    static inline u32 NAME##_flushed(const struct sim_warp *w, const struct sim_op *op) \
    {                                                                                   \
        const u32 keep = 0x80000000;                                                    \
        SIM_ARGS2(A, A);                                                                \
        u32 bits = 0;                                                                   \
        SIM_LANES_LOOP                                                                  \
        {                                                                               \
            SIM_LANE_MOD2(A, A);                                                        \
            bits |= (EXPR) ? sim_bit[i] : 0;                                            \
        }                                                                               \
        return bits;                                                                    \
    }                                                                                   \
    SIM_FN(NAME##_mod)                                                                  \
    {                                                                                   \
        PRED(op->d) = (PRED(op->d) & ~w->em) | (NAME##_flushed(w, op) & w->em);         \
        return op + 1;                                                                  \
    }
#define SIM_TEST(NAME, SPELL, A, EXPR) SIM_PRED(NAME, SIM_ARGS1(A), SIM_LANE1(A), EXPR)
#define SIM_U                          SIM_DO_U
#define SIM_B                          SIM_DO_B
#define SIM_CMP                        SIM_DO_CMP
#include "sim/float.def"

#undef SIM_F1
#undef SIM_F2
#undef SIM_F3
#undef SIM_F2L
#undef SIM_F3L
#undef SIM_FCMP
#undef SIM_TEST
#undef SIM_U
#undef SIM_B
#undef SIM_CMP
#define SIM_F1(NAME, SPELL, D, A, EXPR)                SIM_ENTRY_MOD(NAME);
#define SIM_F2(NAME, SPELL, D, A, B, EXPR)             SIM_ENTRY_MOD(NAME);
#define SIM_F3(NAME, SPELL, D, A, B, C, EXPR)          SIM_ENTRY_MOD(NAME);
#define SIM_F2L(NAME, SPELL, D, A, B, EXPR, SCALED)    SIM_ENTRY_MOD(NAME);
#define SIM_F3L(NAME, SPELL, D, A, B, C, EXPR, SCALED) SIM_ENTRY_MOD(NAME);
#define SIM_FCMP(NAME, SPELL, A, EXPR)                 SIM_ENTRY_MOD(NAME);
#define SIM_TEST(NAME, SPELL, A, EXPR)                 SIM_ENTRY(NAME);
#define SIM_U(NAME, SPELL, D, A, EXPR)                 SIM_ENTRY(NAME);
#define SIM_B(NAME, SPELL, D, A, B, EXPR)              SIM_ENTRY(NAME);
#define SIM_CMP(NAME, SPELL, A, EXPR)                  SIM_ENTRY(NAME);

void SIM_NAMED(sim_fill_float)(struct sim_build *b)
{
#include "sim/float.def"
}
