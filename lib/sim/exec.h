/* What the handler files (exec_*.c) share: lane types, loops, and the macros that turn the rows of
 * handlers.def into functions. Each of these files is compiled twice, with SIM_BUILD baseline or
 * avx2.
 */
#ifndef KAIO_SIM_EXEC_H
#define KAIO_SIM_EXEC_H

#include <fenv.h>
#include <math.h>

#include "sim/sim.h"

#define SIM_CAT_(a, b)  a##_##b
#define SIM_CAT(a, b)   SIM_CAT_(a, b)
#define SIM_NAMED(name) SIM_CAT(name, SIM_BUILD)

/* The parts of the table that each file fills. */
void SIM_NAMED(sim_fill_int)(struct sim_build *b);
void SIM_NAMED(sim_fill_float)(struct sim_build *b);
void SIM_NAMED(sim_fill_half)(struct sim_build *b);
void SIM_NAMED(sim_fill_cvt)(struct sim_build *b);
void SIM_NAMED(sim_fill_control)(struct sim_build *b);
void SIM_NAMED(sim_fill_warp)(struct sim_build *b);
void SIM_NAMED(sim_fill_mem)(struct sim_build *b);
void SIM_NAMED(sim_fill_matrix)(struct sim_build *b);
void SIM_NAMED(sim_fill_mma)(struct sim_build *b);
void SIM_NAMED(sim_fill_wgmma)(struct sim_build *b);
void SIM_NAMED(sim_fill_atom)(struct sim_build *b);
void SIM_NAMED(sim_fill_check)(struct sim_build *b);

/* A lane's value, as the expressions of handlers.def see it. h is the bits of a 16-bit float. */
typedef uint16_t u16;
typedef int16_t s16;
typedef uint16_t h;
typedef uint32_t u32;
typedef int32_t s32;
typedef float f32;
typedef uint64_t u64;
typedef int64_t s64;
typedef double f64;

/* These types are for the register file, where a slot is read with whatever type an instruction
 * has. */
typedef u32 __attribute__((may_alias)) slot_u32;
typedef s32 __attribute__((may_alias)) slot_s32;
typedef f32 __attribute__((may_alias)) slot_f32;
typedef u64 __attribute__((may_alias)) slot_u64;
typedef s64 __attribute__((may_alias)) slot_s64;
typedef f64 __attribute__((may_alias)) slot_f64;
typedef slot_u32 slot_u16, slot_s16, slot_h;

#define PUT_u16(x) ((u32)(u16)(x))
#define PUT_s16(x) ((u32)(u16)(x))
#define PUT_h(x)   ((u32)(u16)(x))
#define PUT_u32(x) ((u32)(x))
#define PUT_s32(x) ((s32)(x))
#define PUT_f32(x) ((f32)(x))
#define PUT_u64(x) ((u64)(x))
#define PUT_s64(x) ((s64)(x))
#define PUT_f64(x) ((f64)(x))

/* The lanes are independent: a destination either is an operand's slot or does not touch it. */
#if defined(__clang__)
#define SIM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SIM_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define SIM_LANES_LOOP SIM_INDEPENDENT for (int i = 0; i < SIM_LANES; i++)

#define SLOT(T, off) ((slot_##T *)__builtin_assume_aligned(w->r + (off), SIM_SLOT))
#define PRED(off)    (*(slot_u32 *)(w->r + (off)))

static const u32 sim_bit[SIM_LANES] __attribute__((aligned(64), unused)) = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

/* w->em spread over lanes. */
static inline const u32 *sim_lanes(struct sim_warp *w)
{
    if (w->lm_for != w->em) {
        const u32 em = w->em;
        u32 *lm = w->lm;
        SIM_LANES_LOOP
        {
            lm[i] = (em & sim_bit[i]) ? UINT32_MAX : 0;
        }
        w->lm_for = em;
    }
    return w->lm;
}

#define SIM_FN(NAME)      static const struct sim_op *NAME(struct sim_warp *w, const struct sim_op *op)
#define SIM_IN(T, x, off) const slot_##T *const p##x = SLOT(T, off)
#define SIM_LANE(T, x)    const T x = (T)p##x[i]

/* The loops of one row: ARGS declares the operands' slots, LANE reads lane i of each. PART writes
 * only lanes of em. */
#define SIM_FULL(NAME, D, ARGS, LANE, EXPR)  \
    SIM_FN(NAME##_full)                      \
    {                                        \
        ARGS;                                \
        slot_##D *const pd = SLOT(D, op->d); \
        SIM_LANES_LOOP                       \
        {                                    \
            LANE;                            \
            pd[i] = PUT_##D(EXPR);           \
        }                                    \
        return op + 1;                       \
    }
#define SIM_PART(NAME, D, ARGS, LANE, EXPR)   \
    SIM_FN(NAME##_part)                       \
    {                                         \
        const u32 *const lm = sim_lanes(w);   \
        ARGS;                                 \
        slot_##D *const pd = SLOT(D, op->d);  \
        SIM_LANES_LOOP                        \
        {                                     \
            LANE;                             \
            const slot_##D r = PUT_##D(EXPR); \
            pd[i] = lm[i] ? r : pd[i];        \
        }                                     \
        return op + 1;                        \
    }
/* Comparisons: one bit a lane. */
#define SIM_PRED(NAME, ARGS, LANE, EXPR)                                             \
    static inline u32 NAME##_bits(const struct sim_warp *w, const struct sim_op *op) \
    {                                                                                \
        ARGS;                                                                        \
        u32 bits = 0;                                                                \
        SIM_LANES_LOOP                                                               \
        {                                                                            \
            LANE;                                                                    \
            bits |= (EXPR) ? sim_bit[i] : 0;                                         \
        }                                                                            \
        return bits;                                                                 \
    }                                                                                \
    SIM_FN(NAME##_full)                                                              \
    {                                                                                \
        PRED(op->d) = NAME##_bits(w, op);                                            \
        return op + 1;                                                               \
    }                                                                                \
    SIM_FN(NAME##_part)                                                              \
    {                                                                                \
        PRED(op->d) = (PRED(op->d) & ~w->em) | (NAME##_bits(w, op) & w->em);         \
        return op + 1;                                                               \
    }
#define SIM_BOTH(NAME, D, ARGS, LANE, EXPR) \
    SIM_FULL(NAME, D, ARGS, LANE, EXPR)     \
    SIM_PART(NAME, D, ARGS, LANE, EXPR)

#define SIM_ARGS1(A) SIM_IN(A, a, op->a)
#define SIM_ARGS2(A, B)  \
    SIM_IN(A, a, op->a); \
    SIM_IN(B, b, op->b)
#define SIM_ARGS3(A, B, C) \
    SIM_IN(A, a, op->a);   \
    SIM_IN(B, b, op->b);   \
    SIM_IN(C, c, op->c)
#define SIM_LANE1(A) SIM_LANE(A, a)
#define SIM_LANE2(A, B) \
    SIM_LANE(A, a);     \
    SIM_LANE(B, b)
#define SIM_LANE3(A, B, C) \
    SIM_LANE(A, a);        \
    SIM_LANE(B, b);        \
    SIM_LANE(C, c)

#define SIM_DO_U(NAME, SPELL, D, A, EXPR) SIM_BOTH(NAME, D, SIM_ARGS1(A), SIM_LANE1(A), EXPR)
#define SIM_DO_B(NAME, SPELL, D, A, B, EXPR) \
    SIM_BOTH(NAME, D, SIM_ARGS2(A, B), SIM_LANE2(A, B), EXPR)
#define SIM_DO_T(NAME, SPELL, D, A, B, C, EXPR) \
    SIM_BOTH(NAME, D, SIM_ARGS3(A, B, C), SIM_LANE3(A, B, C), EXPR)
#define SIM_DO_CMP(NAME, SPELL, A, EXPR) SIM_PRED(NAME, SIM_ARGS2(A, A), SIM_LANE2(A, A), EXPR)

/* Enters a handler written by hand in the table; for some lanes it loops and blends itself. */
#define SIM_ENTRY(NAME)                       \
    b->h[SIM_H_##NAME] = (struct sim_handler) \
    {                                         \
        NAME##_full, NAME##_part, NULL        \
    }
#define SIM_ENTRY_MOD(NAME)                   \
    b->h[SIM_H_##NAME] = (struct sim_handler) \
    {                                         \
        NAME##_full, NAME##_part, NAME##_mod  \
    }
#define SIM_ENTRY_ONE(NAME)                   \
    b->h[SIM_H_##NAME] = (struct sim_handler) \
    {                                         \
        NAME, NAME, NULL                      \
    }

/* The lanes for which a control instruction runs. */
static inline u32 guarded(const struct sim_warp *w, const struct sim_op *op)
{
    if (op->guard == SIM_NO_GUARD)
        return w->mask;
    const u32 p = PRED(op->guard);
    return w->mask & (op->flags & SIM_GUARD_NOT ? ~p : p);
}

/* Begins the handler of an instruction that all 32 lanes execute together. */
#define ALL_TOGETHER()                \
    const u32 lanes = guarded(w, op); \
    if (!lanes)                       \
        return op + 1;                \
    if (lanes != UINT32_MAX)          \
    return sim_together(w, op, lanes)

/* The address of each lane's access, in the instruction's space. */
static inline void lane_addresses(struct sim_warp *w, const struct sim_op *op, u64 *at)
{
    if (op->flags & SIM_A32) {
        SIM_IN(u32, a, op->a);
        const u32 imm = (u32)op->imm;
        SIM_LANES_LOOP
        {
            at[i] = (u32)(pa[i] + imm);
        }
    } else {
        SIM_IN(u64, a, op->a);
        const u64 imm = op->imm;
        SIM_LANES_LOOP
        {
            at[i] = pa[i] + imm;
        }
    }
}

/* ---- floats ---------------------------------------------------------------------------------- */

static inline u32 bits32(f32 x)
{
    u32 u;
    memcpy(&u, &x, 4);
    return u;
}
static inline f32 from32(u32 u)
{
    f32 x;
    memcpy(&x, &u, 4);
    return x;
}
static inline u64 bits64(f64 x)
{
    u64 u;
    memcpy(&u, &x, 8);
    return u;
}
static inline f64 from64(u64 u)
{
    f64 x;
    memcpy(&x, &u, 8);
    return x;
}
/* Single precision has one NaN as a result. */
static inline f32 nan32(f32 x)
{
    return x != x ? from32(0x7fffffff) : x;
}
/* Double precision results that are NaN: the first operand that is one, made quiet, else the
 * default with its sign set, as an H100 has it. */
static inline f64 pick64(f64 a, f64 b, f64 c, f64 r)
{
    const u64 quiet = (u64)1 << 51;
    const u64 n = a != a   ? bits64(a) | quiet
                  : b != b ? bits64(b) | quiet
                  : c != c ? bits64(c) | quiet
                           : 0xfff8000000000000;
    return r != r ? from64(n) : r;
}
/* Subnormals become zeros of their sign. */
static inline f32 flush32(f32 x)
{
    const u32 u = bits32(x);
    return from32((u & 0x7f800000) ? u : u & 0x80000000);
}
/* The smallest normal number may be what is left of a result as a subnormal: an H100 flushes it all
 * the same if it would be too small with all its bits. scaled is 2^32 times the result. */
static inline f32 settle(f32 r, f32 scaled, u32 keep)
{
    const bool small = (bits32(r) & 0x7fffffff) == 0x00800000 && fabsf(scaled) < 0x1p-94f;
    return small ? from32(bits32(r) & (keep | 0x80000000)) : r;
}
/* NaN gives +0, as PTX says. */
static inline f32 sat32(f32 x)
{
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
static inline f64 sat64(f64 x)
{
    return x > 0 ? (x < 1 ? x : 1.0) : 0.0;
}

/* Directed rounding: the operations between these take their operands from memory and leave their
 * results there, so no compiler moves them across the calls. */
static inline void round_set(unsigned round)
{
    static const int mode[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (round != SIM_RN)
        fesetround(mode[round]);
}
static inline void round_reset(unsigned round)
{
    if (round != SIM_RN)
        fesetround(FE_TONEAREST);
}

#endif
