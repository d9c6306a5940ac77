/* What the lanes of a warp tell each other. Each instruction names the lanes that take part (op->e)
 * and waits until those that have not exited are all here, or at another such instruction
 * (sim_meet). */
#include <config.h>

#include "sim/check.h"
#include "sim/exec.h"

/* The lanes named by those that are here, less those that have exited or are here. */
static inline u32 missing(const struct sim_warp *w, u32 lanes, u32 members_slot)
{
    SIM_IN(u32, a, members_slot);
    u32 named = 0;
    if (w->live == lanes)
        return 0;
    FOR_LANES(lane, lanes)
        named |= pa[lane];
    return named & w->live & ~lanes;
}

#define COME_TOGETHER(lanes)          \
    const u32 lanes = guarded(w, op); \
    if (!lanes)                       \
        return op + 1;                \
    if (missing(w, lanes, op->e))     \
    return sim_meet(w, op, lanes)

/* Modes up, down, bfly, idx (PTX ISA, shfl.sync): a source lane out of range leaves the lane its
 * own value. A lane that does not take part gives what it holds. source[] is the lane that each
 * reads, inside[] whether it was in range. */
static inline void shfl_sources(const struct sim_warp *w, const struct sim_op *op, unsigned mode,
                                s32 source[SIM_LANES], u32 inside[SIM_LANES])
{
    SIM_IN(u32, b, op->b);
    SIM_IN(u32, c, op->c);
    SIM_LANES_LOOP
    {
        const s32 by = (s32)(pb[i] & 31), clamp = (s32)(pc[i] & 31);
        const s32 segment = (s32)((pc[i] >> 8) & 31);
        const s32 least = i & segment, most = least | (clamp & ~segment);
        const s32 j = mode == 0   ? i - by
                      : mode == 1 ? i + by
                      : mode == 2 ? i ^ by
                                  : least | (by & ~segment);
        const bool fine = mode == 0 ? j >= most : j <= most;
        source[i] = fine ? j : i;
        inside[i] = fine ? sim_bit[i] : 0;
    }
}

SIM_FN(SHFL)
{
    COME_TOGETHER(lanes);
    u32 from[SIM_LANES], inside[SIM_LANES];
    s32 source[SIM_LANES];
    memcpy(from, w->r + op->a, sizeof from);
    switch (op->more) {
    case 0: shfl_sources(w, op, 0, source, inside); break;
    case 1: shfl_sources(w, op, 1, source, inside); break;
    case 2: shfl_sources(w, op, 2, source, inside); break;
    default: shfl_sources(w, op, 3, source, inside); break;
    }
    slot_u32 *const pd = SLOT(u32, op->d);
    if (lanes == UINT32_MAX)
        for (int i = 0; i < SIM_LANES; i++)
            pd[i] = from[source[i]];
    else
        FOR_LANES(lane, lanes)
            pd[lane] = from[source[lane]];
    if (op->imm) {
        u32 yes = 0;
        for (int i = 0; i < SIM_LANES; i++)
            yes |= inside[i];
        PRED(op->imm) = (PRED(op->imm) & ~lanes) | (yes & lanes);
    }
    return op + 1;
}

/* Modes all, any, uni, ballot. */
SIM_FN(VOTE)
{
    COME_TOGETHER(lanes);
    SIM_IN(u32, e, op->e);
    const u32 p = PRED(op->a);
    u32 yes = 0;
    FOR_LANES(lane, lanes) {
        const u32 among = pe[lane] & lanes, set = p & among;
        if (op->more == 3) {
            SLOT(u32, op->d)[lane] = set;
            continue;
        }
        const bool holds = op->more == 0   ? set == among
                           : op->more == 1 ? set != 0
                                           : set == among || !set;
        yes |= holds ? sim_bit[lane] : 0;
    }
    if (op->more != 3)
        PRED(op->d) = (PRED(op->d) & ~lanes) | yes;
    return op + 1;
}

/* op->more: 1 all, 2 wide. */
SIM_FN(MATCH)
{
    COME_TOGETHER(lanes);
    SIM_IN(u32, e, op->e);
    u64 v[SIM_LANES];
    for (int i = 0; i < SIM_LANES; i++)
        v[i] = op->more & 2 ? SLOT(u64, op->a)[i] : SLOT(u32, op->a)[i];
    u32 same[SIM_LANES], every = 0;
    FOR_LANES(lane, lanes) {
        const u32 among = pe[lane] & lanes;
        same[lane] = 0;
        FOR_LANES(j, among)
            same[lane] |= v[j] == v[lane] ? sim_bit[j] : 0;
        every |= same[lane] == among ? sim_bit[lane] : 0;
        if (op->more & 1)
            same[lane] = same[lane] == among ? among : 0;
    }
    FOR_LANES(lane, lanes)
        SLOT(u32, op->d)[lane] = same[lane];
    if (op->imm)
        PRED(op->imm) = (PRED(op->imm) & ~lanes) | every;
    return op + 1;
}

static inline u32 reduce(unsigned code, bool is_signed, u32 x, u32 y)
{
    const bool less = is_signed ? (s32)x < (s32)y : x < y;
    switch (code) {
    case 0: return x + y;
    case 1: return less ? x : y;
    case 2: return less ? y : x;
    case 3: return x & y;
    case 4: return x | y;
    default: return x ^ y;
    }
}

SIM_FN(REDUX)
{
    COME_TOGETHER(lanes);
    SIM_IN(u32, e, op->e);
    u32 from[SIM_LANES];
    memcpy(from, w->r + op->a, sizeof from);
    FOR_LANES(lane, lanes) {
        u32 others = pe[lane] & lanes;
        if (!others)
            continue;
        u32 r = from[__builtin_ctz(others)];
        for (others &= others - 1; others; others &= others - 1)
            r = reduce(op->more, op->round, r, from[__builtin_ctz(others)]);
        SLOT(u32, op->d)[lane] = r;
    }
    return op + 1;
}

SIM_FN(ACTIVEMASK)
{
    FOR_LANES(lane, w->em)
        SLOT(u32, op->d)[lane] = w->em;
    return op + 1;
}

SIM_FN(WARPSYNC)
{
    COME_TOGETHER(lanes);
    if (w->block->check)
        sim_check_warp_sync(w, op, lanes);
    return op + 1;
}

SIM_FN(ELECT)
{
    COME_TOGETHER(lanes);
    SIM_IN(u32, e, op->e);
    u32 leaders = 0;
    FOR_LANES(lane, lanes) {
        const u32 among = pe[lane] & lanes, leader = among ? (u32)__builtin_ctz(among) : 0;
        SLOT(u32, op->d)[lane] = leader;
        leaders |= leader == lane ? sim_bit[lane] : 0;
    }
    PRED(op->imm) = (PRED(op->imm) & ~lanes) | leaders;
    return op + 1;
}

void SIM_NAMED(sim_fill_warp)(struct sim_build *b)
{
    SIM_ENTRY_ONE(SHFL);
    SIM_ENTRY_ONE(VOTE);
    SIM_ENTRY_ONE(ACTIVEMASK);
    SIM_ENTRY_ONE(MATCH);
    SIM_ENTRY_ONE(REDUX);
    SIM_ENTRY_ONE(WARPSYNC);
    SIM_ENTRY_ONE(ELECT);
}
