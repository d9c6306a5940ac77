/* Atomic operations on memory, lane by lane in lane order, each one indivisible for other worker
 * threads too. */
#include <config.h>

#include "sim/atom.h"
#include "sim/half.h"

/* The number, not the NaN. */
static inline f32 lesser(f32 a, f32 b)
{
    return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b;
}
static inline f32 greater(f32 a, f32 b)
{
    return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b;
}

static inline u32 apply_half(unsigned code, u32 old, u32 b)
{
    switch ((enum sim_atom)code) {
    case SIM_ATOM_ADD_F16: return down_f16(up_f16(old) + up_f16(b));
    case SIM_ATOM_MIN_F16: return down_f16(lesser(up_f16(old), up_f16(b)));
    case SIM_ATOM_MAX_F16: return down_f16(greater(up_f16(old), up_f16(b)));
    case SIM_ATOM_ADD_BF16: return down_bf16(up_bf16(old) + up_bf16(b));
    case SIM_ATOM_MIN_BF16: return down_bf16(lesser(up_bf16(old), up_bf16(b)));
    case SIM_ATOM_MAX_BF16: return down_bf16(greater(up_bf16(old), up_bf16(b)));
    default: return old;
    }
}

static inline u16 apply16(unsigned code, u32 old, u32 b, u32 c, bool shared)
{
    (void)shared;
    if (code == SIM_ATOM_CAS)
        return (u16)(old == (b & 0xffff) ? c : old);
    return (u16)apply_half(code, old, b & 0xffff);
}

static inline u32 apply32(unsigned code, u32 old, u32 b, u32 c, bool shared)
{
    switch ((enum sim_atom)code) {
    case SIM_ATOM_ADD: return old + b;
    case SIM_ATOM_MIN_U: return old < b ? old : b;
    case SIM_ATOM_MAX_U: return old > b ? old : b;
    case SIM_ATOM_MIN_S: return (s32)old < (s32)b ? old : b;
    case SIM_ATOM_MAX_S: return (s32)old > (s32)b ? old : b;
    case SIM_ATOM_AND: return old & b;
    case SIM_ATOM_OR: return old | b;
    case SIM_ATOM_XOR: return old ^ b;
    case SIM_ATOM_EXCH: return b;
    case SIM_ATOM_CAS: return old == b ? c : old;
    case SIM_ATOM_INC: return old >= b ? 0 : old + 1;
    case SIM_ATOM_DEC: return old == 0 || old > b ? b : old - 1;
    /* on global memory these flush subnormals, on shared memory they do not (PTX ISA, atom) */
    case SIM_ATOM_ADD_F:
        return bits32(shared ? nan32(from32(old) + from32(b))
                             : nan32(flush32(flush32(from32(old)) + flush32(from32(b)))));
    default:
        return apply_half(code, old & 0xffff, b & 0xffff) | apply_half(code, old >> 16, b >> 16)
                                                                << 16;
    }
}

/* On global memory a NaN stays as it is, the operand's before the memory's; on shared memory it is
 * made quiet, the memory's before the operand's: what an H100 does. */
static inline u64 add_f64(u64 old, u64 b, bool shared)
{
    const f64 x = from64(old), y = from64(b);
    if (shared)
        return bits64(pick64(x, y, x, x + y));
    return y != y ? b : x != x ? old : bits64(pick64(x, x, x, x + y));
}

static inline u64 apply64(unsigned code, u64 old, u64 b, u64 c, bool shared)
{
    switch ((enum sim_atom)code) {
    case SIM_ATOM_ADD: return old + b;
    case SIM_ATOM_MIN_U: return old < b ? old : b;
    case SIM_ATOM_MAX_U: return old > b ? old : b;
    case SIM_ATOM_MIN_S: return (s64)old < (s64)b ? old : b;
    case SIM_ATOM_MAX_S: return (s64)old > (s64)b ? old : b;
    case SIM_ATOM_AND: return old & b;
    case SIM_ATOM_OR: return old | b;
    case SIM_ATOM_XOR: return old ^ b;
    case SIM_ATOM_EXCH: return b;
    case SIM_ATOM_CAS: return old == b ? c : old;
    case SIM_ATOM_ADD_F: return add_f64(old, b, shared);
    default: return old;
    }
}

static inline bool in_shared(const struct sim_op *op, u64 at)
{
    return op->more == SIM_IN_SHARED ||
           (op->more == SIM_IN_GENERIC && at >> SIM_WINDOW_BITS == SIM_WINDOW_SHARED);
}

/* Nobody else can come between: this worker alone runs the block, or all of them. */
static inline bool alone(const struct sim_warp *w, const struct sim_op *op)
{
    return op->more == SIM_IN_SHARED || !w->block->launch->many;
}

/* op->round is the enum sim_atom, op->b and op->c the operands, op->d where the old value goes:
 * memory type M, slots of type T. */
#define SIM_ATOMIC(NAME, M, T, APPLY)                                                         \
    static inline M NAME##_one(M *p, unsigned code, T b, T c, bool shared, bool is_alone)     \
    {                                                                                         \
        M old = __atomic_load_n(p, __ATOMIC_RELAXED);                                         \
        if (is_alone) {                                                                       \
            *p = APPLY(code, old, b, c, shared);                                              \
            return old;                                                                       \
        }                                                                                     \
        while (!__atomic_compare_exchange_n(p, &old, APPLY(code, old, b, c, shared), true,    \
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))              \
            ;                                                                                 \
        return old;                                                                           \
    }                                                                                         \
    SIM_FN(NAME)                                                                              \
    {                                                                                         \
        u64 at[SIM_LANES];                                                                    \
        lane_addresses(w, op, at);                                                            \
        const bool shared = in_shared(op, at[__builtin_ctz(w->em)]), is_alone = alone(w, op); \
        if (!sim_resolve(w, op, at))                                                          \
            return NULL;                                                                      \
        FOR_LANES(i, w->em) {                                                                 \
            const M old = NAME##_one((M *)(uintptr_t)at[i], op->round, SLOT(T, op->b)[i],     \
                                     SLOT(T, op->c)[i], shared, is_alone);                    \
            if (op->flags & SIM_READS)                                                        \
                SLOT(T, op->d)[i] = old;                                                      \
        }                                                                                     \
        return op + 1;                                                                        \
    }
SIM_ATOMIC(ATOM_16, u16, u32, apply16)
SIM_ATOMIC(ATOM_32, u32, u32, apply32)
SIM_ATOMIC(ATOM_64, u64, u64, apply64)

/* Puts the two words in if the old ones are still there; else old is what is. */
static inline bool swap_128(u64 *p, u64 old[2], u64 lo, u64 hi)
{
    bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*(u64(*)[2])p), "+a"(old[0]), "+d"(old[1])
                     : "b"(lo), "c"(hi)
                     : "memory");
    return done;
}

/* exch and cas of 128 bits, each operand two slots */
SIM_FN(ATOM_128)
{
    u64 at[SIM_LANES];
    lane_addresses(w, op, at);
    if (!sim_resolve(w, op, at))
        return NULL;
    FOR_LANES(i, w->em) {
        const u32 j = i + SIM_LANES;
        u64 *const p = (u64 *)(uintptr_t)at[i];
        u64 old[2] = {p[0], p[1]}; /* if they don't belong together, they will not be there */
        const slot_u64 *const b = SLOT(u64, op->b), *const c = SLOT(u64, op->c);
        bool cas, same;
        do {
            cas = op->round == SIM_ATOM_CAS;
            same = old[0] == b[i] && old[1] == b[j];
        } while (!swap_128(p, old,
                           !cas   ? b[i]
                           : same ? c[i]
                                  : old[0],
                           !cas   ? b[j]
                           : same ? c[j]
                                  : old[1]));
        if (op->flags & SIM_READS) {
            SLOT(u64, op->d)[i] = old[0];
            SLOT(u64, op->d)[j] = old[1];
        }
    }
    return op + 1;
}

#define SIM_FOLD(M, T, ATOMIC)                                                   \
    for (u32 i = 0; i + sizeof(M) <= n; i += sizeof(M)) {                        \
        M v;                                                                     \
        memcpy(&v, from + i, sizeof v);                                          \
        ATOMIC##_one((M *)(void *)(to + i), code, (T)v, (T)v, shared, is_alone); \
    }
static void fold(unsigned char *to, const unsigned char *from, u32 n, unsigned element,
                 unsigned code, bool shared, bool is_alone)
{
    if (element == 2) {
        SIM_FOLD(u16, u32, ATOM_16)
    } else if (element == 4) {
        SIM_FOLD(u32, u32, ATOM_32)
    } else {
        SIM_FOLD(u64, u64, ATOM_64)
    }
}

void SIM_NAMED(sim_fill_atom)(struct sim_build *b)
{
    SIM_ENTRY_ONE(ATOM_16);
    SIM_ENTRY_ONE(ATOM_32);
    SIM_ENTRY_ONE(ATOM_64);
    SIM_ENTRY_ONE(ATOM_128);
    b->fold = fold;
}
