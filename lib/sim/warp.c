/* How the lanes of a warp part and meet.
 *
 * Every lane has a program counter; lanes that share one form a group. One group runs at a time, the one with the
 * lowest counter, so that lanes which took the longer way are waited for where the ways join; groups that stand
 * at the same record merge. A group that goes round in a loop while others wait is set back behind them after
 * SIM_TICK rounds (its lap grows), so that lanes which spin on what another lane must do let it happen, as on
 * hardware since sm_70.
 */
#include <config.h>

#include "sim/sim.h"

static uint32_t pc_of(const struct sim_warp *w, const struct sim_op *op)
{
    return (uint32_t)(op - w->code);
}

static void push(struct sim_warp *w, uint32_t pc, uint32_t mask, uint8_t waits)
{
    w->group[w->ngroup++] = (struct sim_group){pc, mask, w->lap, waits};
}

static bool before(const struct sim_group *a, const struct sim_group *b)
{
    return a->lap != b->lap ? a->lap < b->lap : a->pc < b->pc;
}

static void take_out(struct sim_warp *w, uint32_t i)
{
    w->group[i] = w->group[--w->ngroup];
}

/* Adds to the running group, which stands at pc, every group that stands there too. */
static void merge_at(struct sim_warp *w, uint32_t pc)
{
    for (uint32_t i = 0; i < w->ngroup;) {
        const struct sim_group *g = &w->group[i];
        if (g->pc == pc && (g->waits == 0 || g->waits == SIM_WAIT_LANES)) {
            sim_set_mask(w, w->mask | g->mask);
            w->lap = w->lap > g->lap ? w->lap : g->lap;
            take_out(w, i);
        } else {
            i++;
        }
    }
    if (!w->ngroup)
        w->lap = 0;
}

/* The ready group that should run next; -1: none. */
static int best_group(const struct sim_warp *w)
{
    int best = -1;
    for (uint32_t i = 0; i < w->ngroup; i++)
        if (w->group[i].waits == 0 && (best < 0 || before(&w->group[i], &w->group[best])))
            best = (int)i;
    return best;
}

/* No group runs: go on with the best one, or stop. */
static const struct sim_op *next_group(struct sim_warp *w)
{
    const int i = best_group(w);
    if (i < 0) {
        w->stop = w->live ? SIM_BLOCKED : SIM_DONE;
        sim_set_mask(w, 0);
        return NULL;
    }
    const struct sim_group g = w->group[i];
    take_out(w, (uint32_t)i);
    sim_set_mask(w, g.mask);
    w->lap = g.lap;
    w->mark = w->code[g.pc].serial;
    merge_at(w, g.pc);
    return w->code + g.pc;
}

/* The running group has come to op, where others may stand or should run first. */
const struct sim_op *sim_arrive(struct sim_warp *w, const struct sim_op *op)
{
    const uint32_t pc = pc_of(w, op);
    sim_count(w, op);
    merge_at(w, pc);
    const int i = best_group(w);
    const struct sim_group here = {pc, w->mask, w->lap, 0};
    if (i < 0 || !before(&w->group[i], &here))
        return op;
    push(w, pc, w->mask, 0);
    return next_group(w);
}

static bool over_limit(const struct sim_warp *w)
{
    return w->block->count + (w->count - w->counted) > w->block->launch->limit;
}

const struct sim_op *sim_tick(struct sim_warp *w, const struct sim_op *op)
{
    const struct sim_launch *l = w->block->launch;
    w->fuel = SIM_TICK;
    if (l->interrupted && *l->interrupted)
        return sim_fault_at(w, op, (uint32_t)__builtin_ctz(w->mask), SIM_F_INTERRUPTED);
    if (atomic_load_explicit(&l->stop_after, memory_order_relaxed) < w->block->index)
        return sim_fault_at(w, op, 0, SIM_F_ABANDONED);
    if (over_limit(w))
        return sim_fault_at(w, op, (uint32_t)__builtin_ctz(w->mask), SIM_F_LIMIT);
    if (w->ngroup)
        w->lap++;
    if (++w->ticks >= SIM_SLICE) {
        sim_count(w, op);
        push(w, pc_of(w, op), w->mask, 0);
        sim_set_mask(w, 0);
        w->stop = SIM_YIELD;
        return NULL;
    }
    return w->ngroup ? sim_arrive(w, op) : op;
}

const struct sim_op *sim_split(struct sim_warp *w, const struct sim_op *at, uint32_t taken,
                               const struct sim_op *target, const struct sim_op *next)
{
    sim_count(w, at + 1);
    const uint32_t rest = w->mask & ~taken;
    const bool jump = target < next;
    const struct sim_op *const to = jump ? target : next;
    if (jump) {
        push(w, pc_of(w, next), rest, 0);
        sim_set_mask(w, taken);
    } else {
        push(w, pc_of(w, target), taken, 0);
        sim_set_mask(w, rest);
    }
    w->mark = to->serial;
    if (to <= at && --w->fuel == 0)
        return sim_tick(w, to);
    return sim_arrive(w, to);
}

/* ---- waiting ----------------------------------------------------------------------------------------- */

/* Lets the threads at a barrier go when enough have come. */
static void check_barrier(struct sim_block *b, uint32_t id)
{
    struct sim_barrier *bar = &b->barrier[id];
    const uint32_t wanted = bar->expected ? bar->expected : b->nlive;
    if (bar->arrived == 0 || bar->arrived < wanted)
        return;
    bar->arrived = 0;
    for (uint32_t i = 0; i < b->nwarp; i++)
        for (uint32_t g = 0; g < b->warp[i].ngroup; g++)
            if (b->warp[i].group[g].waits == 1 + id)
                b->warp[i].group[g].waits = 0;
}

const struct sim_op *sim_exit(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    struct sim_block *b = w->block;
    sim_count(w, op + 1);
    w->live &= ~lanes;
    b->nlive -= (uint32_t)__builtin_popcount(lanes);
    for (uint32_t id = 0; id < SIM_BARRIERS; id++)
        if (b->barrier[id].arrived && !b->barrier[id].expected)
            check_barrier(b, id);
    /* lanes that waited for these look again */
    for (uint32_t i = 0; i < w->ngroup; i++)
        if (w->group[i].waits == SIM_WAIT_LANES)
            w->group[i].waits = 0;
    if (lanes == w->mask)
        return next_group(w);
    sim_set_mask(w, w->mask & ~lanes);
    return w->ngroup ? sim_arrive(w, op + 1) : op + 1;
}

const struct sim_op *sim_wait_lanes(struct sim_warp *w, const struct sim_op *op)
{
    const uint32_t pc = pc_of(w, op), mask = w->mask;
    sim_count(w, op);
    merge_at(w, pc);
    if (w->mask != mask)
        return op;
    push(w, pc, w->mask, SIM_WAIT_LANES);
    return next_group(w);
}

const struct sim_op *sim_barrier(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                                 uint32_t id, uint32_t threads, bool wait)
{
    struct sim_block *b = w->block;
    const uint32_t rest = w->mask & ~lanes;
    if (id >= SIM_BARRIERS || threads % SIM_LANES != 0 || threads > b->nwarp * SIM_LANES)
        return sim_fault_at(w, op, (uint32_t)__builtin_ctz(lanes), SIM_F_BARRIER);
    sim_count(w, op + 1);
    b->barrier[id].expected = threads;
    b->barrier[id].arrived += (uint32_t)__builtin_popcount(lanes);
    if (wait)
        push(w, pc_of(w, op + 1), lanes, (uint8_t)(1 + id));
    check_barrier(b, id);
    if (!wait)
        return op + 1;
    if (!rest)
        return next_group(w);
    sim_set_mask(w, rest);
    return sim_arrive(w, op + 1);
}

/* ---- starting, running, stopping --------------------------------------------------------------------- */

const struct sim_op *sim_fault_at(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                  enum sim_fault_kind kind)
{
    struct sim_fault *f = &w->block->fault;
    sim_count(w, op);
    *f = (struct sim_fault){.kind = kind, .op = pc_of(w, op), .warp = w->index, .lane = lane};
    f->block = w->block->index;
    w->stop = SIM_FAULT;
    push(w, pc_of(w, op), w->mask, 0); /* where it stood, for the report */
    return NULL;
}

bool sim_warp_ready(const struct sim_warp *w)
{
    return best_group(w) >= 0;
}

void sim_warp_run(struct sim_warp *w)
{
    w->ticks = 0;
    w->fuel = SIM_TICK;
    w->lm_for = 0;
    memset(w->lm, 0, sizeof w->lm);
    const struct sim_op *op = next_group(w);
    while (op)
        op = op->fn[w->part](w, op);
}
