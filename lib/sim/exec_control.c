#include <config.h>

#include <time.h>

#include "sim/exec.h"

/* Helpers that stand for no instruction: they see one lane group at a time like any other
 * record. */

/* A place that branches go to: groups of lanes meet here. */
SIM_FN(LABEL)
{
    return w->ngroup ? sim_arrive(w, op + 1, w->rank[op + 1 - w->code]) : op + 1;
}

/* The guard of the record that follows. */
SIM_FN(GUARD)
{
    const u32 p = PRED(op->a);
    const u32 em = w->mask & (op->flags & SIM_GUARD_NOT ? ~p : p);
    op++;
    if (!em)
        return op + 1;
    if (em == UINT32_MAX)
        return op->fn[0](w, op);
    w->em = em;
    op = op->fn[1](w, op);
    w->em = w->mask;
    return op;
}

SIM_FN(BRA)
{
    const u32 taken = guarded(w, op);
    if (taken == w->mask) {
        const struct sim_op *to = w->code + op->target;
        w->count += (u64)(op->serial + 1 - w->mark) * (unsigned)__builtin_popcount(taken);
        w->mark = to->serial;
        if (to <= op && (w->fuel -= op->more) <= 0)
            return sim_tick(w, op, to);
        return w->ngroup ? sim_jump(w, op, to) : to;
    }
    if (!taken)
        return w->ngroup ? sim_arrive(w, op + 1, w->rank[op + 1 - w->code]) : op + 1;
    return sim_split(w, op, taken, w->code + op->target, op + 1);
}

/* brx.idx: op->a the index, op->target the list. */
SIM_FN(BRX)
{
    const u32 lanes = guarded(w, op);
    const struct sim_targets *list = &w->block->launch->code->targets[op->target];
    u32 to[SIM_LANES];
    if (!lanes)
        return op + 1;
    FOR_LANES(i, lanes) {
        const u32 index = SLOT(u32, op->a)[i];
        if (index >= list->n)
            return sim_fault_at(w, op, i, SIM_F_INDEX);
        to[i] = list->op[index];
    }
    return sim_scatter(w, op, to, lanes);
}

SIM_FN(EXIT)
{
    const u32 lanes = guarded(w, op);
    return lanes ? sim_exit(w, op, lanes) : op + 1;
}

SIM_FN(TRAP)
{
    const u32 lanes = guarded(w, op);
    return lanes ? sim_fault_at(w, op, (u32)__builtin_ctz(lanes), SIM_F_TRAP) : op + 1;
}

/* Those of the lanes that name this barrier and count; the others come to theirs later. */
static inline u32 apart(struct sim_warp *w, const struct sim_op *op, u32 lanes, u32 id, u32 threads)
{
    u32 others = 0;
    FOR_LANES(i, lanes) {
        if (SLOT(u32, op->a)[i] != id || (op->b && SLOT(u32, op->b)[i] != threads))
            others |= sim_bit[i];
    }
    if (others) {
        sim_count(w, op);
        sim_push(w, sim_pc(w, op), others, 0);
        sim_set_mask(w, w->mask & ~others);
    }
    return lanes & ~others;
}

/* bar.*: op->round: the lanes may name different ones; op->a the barrier, op->b the threads, op->c
 * the predicate; op->more is enum sim_bar. */
SIM_FN(BAR)
{
    u32 lanes = guarded(w, op);
    if (!lanes)
        return op + 1;
    const u32 first = (u32)__builtin_ctz(lanes);
    const u32 id = SLOT(u32, op->a)[first];
    const u32 threads = op->b ? SLOT(u32, op->b)[first] : 0;
    if (op->round)
        lanes = apart(w, op, lanes, id, threads);
    return sim_barrier(w, op, lanes, id, threads, op->c ? PRED(op->c) : 0);
}

SIM_FN(CLUSTER_ARRIVE)
{
    const u32 lanes = guarded(w, op);
    return lanes ? sim_cluster_arrive(w, op, lanes) : op + 1;
}
SIM_FN(CLUSTER_WAIT)
{
    const u32 lanes = guarded(w, op);
    return lanes ? sim_cluster_wait(w, op, lanes) : op + 1;
}

SIM_FN(SLEEP)
{
    return w->em ? sim_sleep(w, op) : op + 1;
}

/* Orders this thread's accesses, also as other worker threads see them. */
SIM_FN(FENCE)
{
    (void)w;
    atomic_thread_fence(memory_order_seq_cst);
    return op + 1;
}

SIM_FN(NOP)
{
    (void)w;
    return op + 1;
}

/* A clock that is the same in every run: the warp's own instruction count. */
SIM_FN(CLOCK)
{
    const u64 now = (w->count + (op->serial - w->mark)) >> op->imm;
    for (unsigned i = 0; i < SIM_LANES; i++)
        if (w->em & sim_bit[i]) {
            if (op->more)
                SLOT(u64, op->d)[i] = now;
            else
                SLOT(u32, op->d)[i] = (u32)now;
        }
    return op + 1;
}

#define SIM_PLOGIC(NAME, EXPR)                                 \
    SIM_FN(NAME)                                               \
    {                                                          \
        const u32 a = PRED(op->a), b = PRED(op->b);            \
        (void)b;                                               \
        PRED(op->d) = (PRED(op->d) & ~w->em) | ((EXPR)&w->em); \
        return op + 1;                                         \
    }
SIM_PLOGIC(PMOV, a)
SIM_PLOGIC(PNOT, ~a)
SIM_PLOGIC(PAND, a &b)
SIM_PLOGIC(POR, a | b)
SIM_PLOGIC(PXOR, a ^ b)

void SIM_NAMED(sim_fill_control)(struct sim_build *b)
{
    SIM_ENTRY_ONE(LABEL);
    SIM_ENTRY_ONE(GUARD);
    SIM_ENTRY_ONE(BRA);
    SIM_ENTRY_ONE(BRX);
    SIM_ENTRY_ONE(CLUSTER_ARRIVE);
    SIM_ENTRY_ONE(CLUSTER_WAIT);
    SIM_ENTRY_ONE(SLEEP);
    SIM_ENTRY_ONE(FENCE);
    SIM_ENTRY_ONE(EXIT);
    SIM_ENTRY_ONE(TRAP);
    SIM_ENTRY_ONE(BAR);
    SIM_ENTRY_ONE(NOP);
    SIM_ENTRY_ONE(CLOCK);
    SIM_ENTRY_ONE(PMOV);
    SIM_ENTRY_ONE(PNOT);
    SIM_ENTRY_ONE(PAND);
    SIM_ENTRY_ONE(POR);
    SIM_ENTRY_ONE(PXOR);
}
