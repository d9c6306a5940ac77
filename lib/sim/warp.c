/* How the lanes of a warp part and meet.
 *
 * Every lane has a program counter; lanes that share one form a group. One group runs at a time:
 * the one that stands first in an order of the code (order.c) in which a place that all ways out of
 * a branch lead to comes behind those ways, and what follows a loop behind the loop. So lanes which
 * took the longer way are waited for where the ways join, the branch's post-dominator at the
 * latest; groups that stand at the same record merge.
 *
 * Lanes may also wait for each other, as on hardware since sm_70. A group that goes round in a loop
 * which may do that (order.c knows them) is set back behind all others after a number of rounds
 * (its lap grows); in any other loop that takes much longer.
 */
#include <config.h>

#include "sim/sim.h"

void sim_push(struct sim_warp *w, uint32_t pc, uint32_t mask, uint8_t waits)
{
    w->group[w->ngroup++] = (struct sim_group){pc, mask, w->rank[pc], w->lap, waits};
}

static bool before(const struct sim_group *a, const struct sim_group *b)
{
    return a->lap != b->lap ? a->lap < b->lap : a->rank < b->rank;
}

void sim_take_out(struct sim_warp *w, uint32_t i)
{
    w->group[i] = w->group[--w->ngroup];
}

/* Adds to the running group, which stands at pc, every group that is ready there too. */
static void merge_at(struct sim_warp *w, uint32_t pc)
{
    for (uint32_t i = 0; i < w->ngroup;) {
        const struct sim_group *g = &w->group[i];
        if (g->pc == pc && g->waits == 0) {
            sim_set_mask(w, w->mask | g->mask);
            w->lap = w->lap > g->lap ? w->lap : g->lap;
            sim_take_out(w, i);
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
const struct sim_op *sim_next_group(struct sim_warp *w)
{
    const int i = best_group(w);
    if (i < 0) {
        w->stop = w->live ? SIM_BLOCKED : SIM_DONE;
        sim_set_mask(w, 0);
        return NULL;
    }
    const struct sim_group g = w->group[i];
    sim_take_out(w, (uint32_t)i);
    sim_set_mask(w, g.mask);
    w->lap = g.lap;
    w->mark = w->code[g.pc].serial;
    if (w->ngroup)
        merge_at(w, g.pc);
    return w->code + g.pc;
}

const struct sim_op *sim_arrive(struct sim_warp *w, const struct sim_op *op, uint32_t rank)
{
    const uint32_t pc = sim_pc(w, op);
    sim_count(w, op);
    merge_at(w, pc);
    const int i = best_group(w);
    const struct sim_group here = {pc, w->mask, rank, w->lap, 0};
    if (i < 0 || !before(&w->group[i], &here))
        return op;
    w->group[w->ngroup++] = here;
    return sim_next_group(w);
}

/* The rank of a group that went from one record to another: the head of a loop that it came back to
 * is behind the rest of the loop, so that those still on their way round are waited for. */
static uint32_t rank_after(const struct sim_warp *w, const struct sim_op *from,
                           const struct sim_op *to)
{
    const uint32_t rank = w->rank[sim_pc(w, to)];
    const uint32_t late = w->block->launch->code->late[sim_pc(w, to)];
    return rank <= w->rank[sim_pc(w, from)] && late ? late : rank;
}

const struct sim_op *sim_jump(struct sim_warp *w, const struct sim_op *from,
                              const struct sim_op *to)
{
    return sim_arrive(w, to, rank_after(w, from, to));
}

static bool over_limit(const struct sim_warp *w)
{
    return w->block->count + (w->count - w->counted) > w->block->launch->limit;
}

/* Behind all groups that are ready. */
static void set_back(struct sim_warp *w)
{
    uint32_t lap = 0;
    for (uint32_t i = 0; i < w->ngroup; i++)
        if (w->group[i].waits == 0 && w->group[i].lap >= lap)
            lap = w->group[i].lap + 1;
    w->lap = lap;
}

/* The running group stands at op and may have to stop there. */
static bool must_stop(struct sim_warp *w, const struct sim_op *op)
{
    const struct sim_launch *l = w->block->launch;
    const uint32_t lane = (uint32_t)__builtin_ctz(w->mask);
    sim_count(w, op);
    if (l->interrupted && *l->interrupted)
        sim_fault_at(w, op, lane, SIM_F_INTERRUPTED);
    else if (atomic_load_explicit(&l->stop_after, memory_order_relaxed) < w->block->turn)
        sim_fault_at(w, op, lane, SIM_F_ABANDONED);
    else if (over_limit(w))
        sim_fault_at(w, op, lane, SIM_F_LIMIT);
    else
        return false;
    return true;
}

static const struct sim_op *yield(struct sim_warp *w, const struct sim_op *op, uint32_t rank,
                                  bool spun)
{
    sim_push(w, sim_pc(w, op), w->mask, 0);
    w->group[w->ngroup - 1].rank = rank;
    sim_set_mask(w, 0);
    w->stop = SIM_YIELD;
    w->spun = spun;
    return NULL;
}

const struct sim_op *sim_tick(struct sim_warp *w, const struct sim_op *from,
                              const struct sim_op *to)
{
    const bool polls = from->more > 1;
    w->fuel = SIM_TICK;
    if (must_stop(w, to))
        return NULL;
    w->patience = w->ngroup ? w->patience + 1 : 0;
    if (polls || w->patience >= SIM_PATIENCE) {
        w->patience = 0;
        set_back(w);
    }
    w->ticks += polls ? SIM_SLICE / 2 : 1;
    const uint32_t rank = rank_after(w, from, to);
    if (w->ticks >= SIM_SLICE)
        return yield(w, to, rank, polls);
    return w->ngroup ? sim_arrive(w, to, rank) : to;
}

const struct sim_op *sim_sleep(struct sim_warp *w, const struct sim_op *op)
{
    if (must_stop(w, op + 1))
        return NULL;
    set_back(w);
    return yield(w, op + 1, w->rank[sim_pc(w, op + 1)], true);
}

const struct sim_op *sim_split(struct sim_warp *w, const struct sim_op *at, uint32_t taken,
                               const struct sim_op *target, const struct sim_op *next)
{
    sim_count(w, at + 1);
    const uint32_t rest = w->mask & ~taken;
    const uint32_t there = rank_after(w, at, target), here = rank_after(w, at, next);
    const bool jump = there < here;
    const struct sim_op *const to = jump ? target : next;
    sim_push(w, sim_pc(w, jump ? next : target), jump ? rest : taken, 0);
    w->group[w->ngroup - 1].rank = jump ? here : there;
    sim_set_mask(w, jump ? taken : rest);
    w->mark = to->serial;
    if (target <= at && (w->fuel -= at->more) <= 0)
        return sim_tick(w, at, to);
    return sim_arrive(w, to, jump ? there : here);
}

const struct sim_op *sim_scatter(struct sim_warp *w, const struct sim_op *at,
                                 const uint32_t to[SIM_LANES], uint32_t lanes)
{
    sim_count(w, at + 1);
    uint32_t rest = w->mask & ~lanes;
    if (rest)
        sim_push(w, sim_pc(w, at + 1), rest, 0);
    while (lanes) {
        const uint32_t pc = to[__builtin_ctz(lanes)];
        uint32_t same = 0;
        for (uint32_t left = lanes; left; left &= left - 1)
            if (to[__builtin_ctz(left)] == pc)
                same |= left & -left;
        lanes &= ~same;
        sim_push(w, pc, same, 0);
        w->group[w->ngroup - 1].rank = rank_after(w, at, w->code + pc);
    }
    const struct sim_op *next = sim_next_group(w);
    return next <= at && (w->fuel -= at->more) <= 0 ? sim_tick(w, at, next) : next;
}

/* ---- starting, running, stopping ------------------------------------------------------------- */

const struct sim_op *sim_fault_at(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                  enum sim_fault_kind kind)
{
    struct sim_fault *f = &w->block->fault;
    sim_count(w, op);
    *f = (struct sim_fault){.kind = kind, .op = sim_pc(w, op), .warp = w->index, .lane = lane};
    f->block = w->block->index;
    f->turn = w->block->turn;
    w->stop = SIM_FAULT;
    sim_push(w, sim_pc(w, op), w->mask, 0); /* where it stood, for the report */
    return NULL;
}

bool sim_fault_about(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                     enum sim_fault_kind kind, struct sim_fault about)
{
    struct sim_fault *f = &w->block->fault;
    sim_fault_at(w, op, lane, kind);
    f->address = about.address;
    f->bytes = about.bytes;
    f->space = about.space;
    f->store = about.store;
    f->others = about.others;
    f->why = about.why;
    f->lanes = about.lanes;
    return false;
}

bool sim_warp_ready(const struct sim_warp *w)
{
    return best_group(w) >= 0;
}

void sim_warp_run(struct sim_warp *w)
{
    w->ticks = 0; /* but the fuel goes on: a loop with a barrier in it must come to its end too */
    w->spun = false;
    const struct sim_op *op = sim_next_group(w);
    while (op)
        op = op->fn[w->part](w, op);
}
