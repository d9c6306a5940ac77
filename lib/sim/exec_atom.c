/* Atomic operations on memory, lane by lane in lane order, each one indivisible for other worker threads too. */
#include <config.h>

#include "sim/atom.h"
#include "sim/half.h"

static inline u32 apply32(unsigned code, u32 old, u32 b, u32 c)
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
    /* floating-point atomics on global memory flush subnormals (PTX ISA, atom) */
    case SIM_ATOM_ADD_F: return bits32(nan32(flush32(flush32(from32(old)) + flush32(from32(b)))));
    case SIM_ATOM_ADD_F16X2:
        return down_f16(up_f16(old & 0xffff) + up_f16(b & 0xffff)) |
               down_f16(up_f16(old >> 16) + up_f16(b >> 16)) << 16;
    case SIM_ATOM_ADD_BF16X2:
        return down_bf16(up_bf16(old & 0xffff) + up_bf16(b & 0xffff)) |
               down_bf16(up_bf16(old >> 16) + up_bf16(b >> 16)) << 16;
    }
    return old;
}

static inline u64 apply64(unsigned code, u64 old, u64 b, u64 c)
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
    case SIM_ATOM_ADD_F: return bits64(from64(old) + from64(b));
    default: return old;
    }
}

/* op->round is the enum sim_atom, op->b and op->c the operands, op->d where the old value goes. */
#define SIM_ATOMIC(NAME, T, APPLY)                                                          \
    SIM_FN(NAME)                                                                            \
    {                                                                                       \
        u64 at[SIM_LANES];                                                                  \
        for (unsigned i = 0; i < SIM_LANES; i++)                                            \
            at[i] = op->flags & SIM_A32 ? (u32)(SLOT(u32, op->a)[i] + (u32)op->imm)         \
                                        : SLOT(u64, op->a)[i] + op->imm;                    \
        if (!sim_resolve(w, op, at))                                                        \
            return NULL;                                                                    \
        for (u32 left = w->em; left; left &= left - 1) {                                    \
            const int i = __builtin_ctz(left);                                              \
            T *const p = (T *)(uintptr_t)at[i];                                             \
            const T b = SLOT(T, op->b)[i], c = SLOT(T, op->c)[i];                           \
            T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                   \
            while (!__atomic_compare_exchange_n(p, &old, APPLY(op->round, old, b, c), true, \
                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))        \
                ;                                                                           \
            if (op->flags & SIM_READS)                                                      \
                SLOT(T, op->d)[i] = old;                                                    \
        }                                                                                   \
        return op + 1;                                                                      \
    }
SIM_ATOMIC(ATOM_32, u32, apply32)
SIM_ATOMIC(ATOM_64, u64, apply64)

void SIM_NAMED(sim_fill_atom)(struct sim_build *b)
{
    SIM_ENTRY_ONE(ATOM_32);
    SIM_ENTRY_ONE(ATOM_64);
}
