/* What lanes wait for: barriers, and other lanes of their warp. */
#include <config.h>

#include "sim/check.h"
#include "sim/mbarrier.h"
#include "sim/wgmma.h"

/* ---- barriers -------------------------------------------------------------------------------- */

static uint32_t wanted_at(const struct sim_block *b, const struct sim_barrier *bar)
{
    return bar->expected ? bar->expected : b->nwarp_live * SIM_LANES;
}

/* The result of a bar.red, for the lanes of one group that waited behind it. */
static void put_result(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                       const struct sim_barrier *bar)
{
    const uint32_t yes = bar->yes;
    unsigned char *d = w->r + op->d;
    if (op->more == SIM_BAR_POPC) {
        for (; lanes; lanes &= lanes - 1)
            memcpy(d + 4 * __builtin_ctz(lanes), &yes, 4);
    } else if (op->more >= SIM_BAR_AND) {
        const bool holds = op->more == SIM_BAR_AND ? yes == bar->lanes : yes != 0;
        uint32_t p;
        memcpy(&p, d, 4);
        p = holds ? p | lanes : p & ~lanes;
        memcpy(d, &p, 4);
    }
}

/* Lets the threads at a barrier go when enough have come. */
static void check_barrier(struct sim_block *b, uint32_t id)
{
    struct sim_barrier *bar = &b->barrier[id];
    if (bar->arrived == 0 || bar->arrived < wanted_at(b, bar))
        return;
    if (b->check)
        sim_check_complete(b, id);
    for (uint32_t i = 0; i < b->nwarp; i++) {
        struct sim_warp *w = &b->warp[i];
        for (uint32_t g = 0; g < w->ngroup; g++)
            if (w->group[g].waits == SIM_WAIT_BAR + id) {
                if (bar->lanes)
                    put_result(w, w->code + w->group[g].pc - 1, w->group[g].mask, bar);
                w->group[g].waits = 0;
                w->group[g].lap = 0;
            }
    }
    *bar = (struct sim_barrier){0};
}

/* Lanes have come or exited: is all of the warp there? */
static void check_warp(struct sim_warp *w, uint32_t id)
{
    struct sim_block *b = w->block;
    if (!w->came[id] || (w->live & ~w->came[id]))
        return;
    w->came[id] = 0;
    for (uint32_t g = 0; g < w->ngroup; g++)
        if (w->group[g].waits == SIM_WAIT_WARP + id)
            w->group[g].waits = 0;
    b->barrier[id].arrived += SIM_LANES;
    check_barrier(b, id);
}

const struct sim_op *sim_barrier(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                                 uint32_t id, uint32_t threads, uint32_t yes)
{
    struct sim_block *b = w->block;
    const uint32_t rest = w->mask & ~lanes, all = b->nwarp * SIM_LANES;
    if (id >= SIM_BARRIERS || threads % SIM_LANES != 0 || threads > all)
        return sim_fault_at(w, op, (uint32_t)__builtin_ctz(lanes), SIM_F_BARRIER);
    struct sim_barrier *bar = &b->barrier[id];
    if (!bar->used)
        bar->expected = threads;
    else if ((bar->expected ? bar->expected : all) != (threads ? threads : all))
        return sim_fault_at(w, op, (uint32_t)__builtin_ctz(lanes), SIM_F_COUNT);
    sim_count(w, op + 1);
    if (b->check)
        sim_check_arrive(w, op, lanes, id, threads, op->more != SIM_BAR_ARRIVE);
    bar->used = true;
    if (op->more >= SIM_BAR_POPC) {
        bar->lanes += (uint32_t)__builtin_popcount(lanes);
        bar->yes += (uint32_t)__builtin_popcount(lanes & yes);
    }
    w->came[id] |= lanes;
    const uint32_t how = op->more == SIM_BAR_ARRIVE ? SIM_WAIT_WARP : SIM_WAIT_BAR;
    sim_push(w, sim_pc(w, op + 1), lanes, (uint8_t)(how + id));
    check_warp(w, id);
    if (rest)
        sim_push(w, sim_pc(w, op + 1), rest, 0);
    return sim_next_group(w);
}

/* ---- the cluster's barrier ------------------------------------------------------------------- */

static void check_cluster(struct sim_block *b)
{
    struct sim_block *first = b->peer[0];
    uint32_t live = 0;
    for (uint32_t i = 0; i < b->npeer; i++)
        live += b->peer[i]->nlive;
    if (!first->cluster_came || first->cluster_came < live)
        return;
    first->cluster_came = 0;
    if (first->check)
        sim_check_cluster(first);
    for (uint32_t i = 0; i < b->npeer; i++)
        for (uint32_t k = 0; k < b->nwarp; k++) {
            struct sim_warp *w = &b->peer[i]->warp[k];
            w->cluster_came = 0;
            for (uint32_t g = 0; g < w->ngroup; g++)
                if (w->group[g].waits == SIM_WAIT_CLUSTER) {
                    w->group[g].waits = 0;
                    if (first->check)
                        sim_check_cluster_passed(w, w->group[g].mask);
                }
        }
}

const struct sim_op *sim_cluster_arrive(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    const uint32_t again = lanes & w->cluster_came;
    if (again)
        return sim_fault_at(w, op, (uint32_t)__builtin_ctz(again), SIM_F_TWICE);
    w->cluster_came |= lanes;
    if (w->block->check)
        sim_check_cluster_arrive(w, op, lanes);
    w->block->peer[0]->cluster_came += (uint32_t)__builtin_popcount(lanes);
    check_cluster(w->block);
    return op + 1;
}

const struct sim_op *sim_cluster_wait(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    const uint32_t waits = lanes & w->cluster_came, rest = w->mask & ~waits;
    if (w->block->check)
        sim_check_cluster_passed(w, lanes & ~waits);
    if (!waits)
        return op + 1;
    sim_count(w, op + 1);
    sim_push(w, sim_pc(w, op + 1), waits, SIM_WAIT_CLUSTER);
    if (rest)
        sim_push(w, sim_pc(w, op + 1), rest, 0);
    return sim_next_group(w);
}

/* ---- lanes that meet ------------------------------------------------------------------------- */

/* The lanes that the first of these names. */
static uint32_t named_by(const struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    if (op->size >= SIM_MEET_ALL)
        return UINT32_MAX;
    return sim_word(w, op->e, (uint32_t)__builtin_ctz(lanes));
}

/* Does group g wait at such an instruction, with that mask? */
static bool fellow(const struct sim_warp *w, const struct sim_group *g, const struct sim_op *op,
                   uint32_t named)
{
    const struct sim_op *at = w->code + g->pc;
    return g->waits == SIM_WAIT_LANES && at->size == op->size && at->more == op->more &&
           at->round == op->round && named_by(w, at, g->mask) == named;
}

static uint32_t fellows(const struct sim_warp *w, const struct sim_op *op, uint32_t named)
{
    uint32_t lanes = 0;
    for (uint32_t g = 0; g < w->ngroup; g++)
        if (fellow(w, &w->group[g], op, named))
            lanes |= w->group[g].mask;
    return lanes;
}

/* One operand of some lanes from slot to slot. */
static void move_word(struct sim_warp *w, uint32_t to, uint32_t from, uint32_t lanes,
                      uint32_t bytes)
{
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t at = (uint32_t)__builtin_ctz(lanes) * bytes;
        memcpy(w->r + to + at, w->r + from + at, bytes);
    }
}

static void move_pred(struct sim_warp *w, uint32_t to, uint32_t from, uint32_t lanes)
{
    const uint32_t p = (sim_word(w, to, 0) & ~lanes) | (sim_word(w, from, 0) & lanes);
    memcpy(w->r + to, &p, 4);
}

static void move_in(struct sim_warp *w, const struct sim_op *to, const struct sim_op *from,
                    uint32_t lanes)
{
    const unsigned kind = from->size;
    move_word(w, to->e, from->e, lanes, 4);
    if (kind == SIM_MEET_VOTE || kind == SIM_MEET_BALLOT)
        move_pred(w, to->a, from->a, lanes);
    else if (kind == SIM_MEET_MATCH64)
        move_word(w, to->a, from->a, lanes, 8);
    else if (kind != SIM_MEET_SYNC && kind != SIM_MEET_ELECT)
        move_word(w, to->a, from->a, lanes, 4);
    if (kind == SIM_MEET_SHFL) {
        move_word(w, to->b, from->b, lanes, 4);
        move_word(w, to->c, from->c, lanes, 4);
    }
}

static void move_out(struct sim_warp *w, const struct sim_op *to, const struct sim_op *from,
                     uint32_t lanes)
{
    if (to->size == SIM_MEET_VOTE)
        move_pred(w, to->d, from->d, lanes);
    else if (to->size != SIM_MEET_SYNC)
        move_word(w, to->d, from->d, lanes, 4);
    if (to->imm)
        move_pred(w, (uint32_t)to->imm, (uint32_t)from->imm, lanes);
}

static const uint16_t handler_of[] = {
    [SIM_MEET_SHFL] = SIM_H_SHFL,     [SIM_MEET_VOTE] = SIM_H_VOTE,
    [SIM_MEET_BALLOT] = SIM_H_VOTE,   [SIM_MEET_MATCH] = SIM_H_MATCH,
    [SIM_MEET_MATCH64] = SIM_H_MATCH, [SIM_MEET_REDUX] = SIM_H_REDUX,
    [SIM_MEET_SYNC] = SIM_H_WARPSYNC, [SIM_MEET_ELECT] = SIM_H_ELECT,
};

/* Executes op for lanes which stand there and for their fellows, who may stand at another such
 * instruction with other registers: on a copy whose operands are in the file's scratch room. */
static void execute_for_all(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                            uint32_t named)
{
    const uint32_t at = w->block->launch->code->scratch, each = 8 * SIM_LANES;
    struct sim_op copy = *op;
    copy.d = at + SIM_SLOT;
    copy.a = copy.d + each;
    copy.b = copy.a + each;
    copy.c = copy.b + each;
    copy.e = copy.c + each;
    copy.imm = at;
    if (op->size == SIM_MEET_VOTE)
        copy.d = at + 4;
    if (op->size == SIM_MEET_VOTE || op->size == SIM_MEET_BALLOT)
        copy.a = at + 8;
    copy.guard = SIM_NO_GUARD;
    move_in(w, &copy, op, lanes);
    uint32_t all = lanes;
    for (uint32_t g = 0; g < w->ngroup; g++)
        if (fellow(w, &w->group[g], op, named)) {
            move_in(w, &copy, w->code + w->group[g].pc, w->group[g].mask);
            all |= w->group[g].mask;
        }
    sim_set_mask(w, all);
    const struct sim_handler *h = &w->block->launch->build->h[handler_of[op->size]];
    (w->part ? h->part : h->full)(w, &copy);
    move_out(w, op, &copy, lanes);
    for (uint32_t g = 0; g < w->ngroup; g++) {
        struct sim_group *group = &w->group[g];
        if (!fellow(w, group, op, named))
            continue;
        move_out(w, w->code + group->pc, &copy, group->mask);
        w->count += (uint32_t)__builtin_popcount(group->mask);
        group->waits = 0;
        group->rank = w->rank[++group->pc];
    }
}

const struct sim_op *sim_meet(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    const uint32_t pc = sim_pc(w, op);
    sim_count(w, op);
    uint32_t go_on = w->mask & ~lanes;
    while (lanes) {
        const uint32_t named = named_by(w, op, lanes);
        uint32_t same = 0;
        for (uint32_t left = lanes; left; left &= left - 1)
            if (sim_word(w, op->e, (uint32_t)__builtin_ctz(left)) == named)
                same |= left & -left;
        lanes &= ~same;
        if (named & w->live & ~(same | fellows(w, op, named))) {
            sim_push(w, pc, same, SIM_WAIT_LANES);
        } else {
            execute_for_all(w, op, same, named);
            go_on |= same;
        }
    }
    if (!go_on)
        return sim_next_group(w);
    sim_set_mask(w, go_on);
    return sim_arrive(w, op + 1, w->rank[pc + 1]);
}

const struct sim_op *sim_together(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    const uint32_t pc = sim_pc(w, op);
    uint32_t all = lanes;
    if (lanes != w->mask || w->live != UINT32_MAX) {
        sim_fault_at(w, op, (uint32_t)__builtin_ctz(lanes), SIM_F_APART);
        w->block->fault.lanes = lanes;
        return NULL;
    }
    sim_count(w, op);
    for (uint32_t i = 0; i < w->ngroup;) {
        if (w->group[i].pc == pc && w->group[i].waits == SIM_WAIT_LANES) {
            all |= w->group[i].mask;
            sim_take_out(w, i);
        } else {
            i++;
        }
    }
    if (all != UINT32_MAX) {
        sim_push(w, pc, all, SIM_WAIT_LANES);
        return sim_next_group(w);
    }
    sim_set_mask(w, all);
    return op;
}

/* ---- exits ----------------------------------------------------------------------------------- */

const struct sim_op *sim_exit(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    struct sim_block *b = w->block;
    sim_count(w, op + 1);
    if (w->live == lanes && !sim_wgmma_exit(w, op))
        return NULL;
    w->live &= ~lanes;
    b->nlive -= (uint32_t)__builtin_popcount(lanes);
    b->peer[0]->cluster_came -= (uint32_t)__builtin_popcount(lanes & w->cluster_came);
    w->cluster_came &= ~lanes;
    check_cluster(b);
    const uint32_t rest = w->mask & ~lanes;
    if (w->live) {
        for (uint32_t id = 0; id < SIM_BARRIERS; id++)
            check_warp(w, id);
    } else {
        b->nwarp_live--;
        for (uint32_t id = 0; id < SIM_BARRIERS; id++)
            if (!b->barrier[id].expected)
                check_barrier(b, id);
    }
    /* lanes that waited for these look again */
    for (uint32_t i = 0; i < w->ngroup; i++)
        if (w->group[i].waits == SIM_WAIT_LANES)
            w->group[i].waits = 0;
    if (!rest)
        return sim_next_group(w);
    sim_set_mask(w, rest);
    return w->ngroup ? sim_arrive(w, op + 1, w->rank[sim_pc(w, op + 1)]) : op + 1;
}

/* ---- for reports ----------------------------------------------------------------------------- */

struct sim_stand sim_stand_of(const struct sim_warp *w, const struct sim_group *g)
{
    struct sim_stand s = {.block = w->block->index,
                          .warp = w->index,
                          .op = g->pc,
                          .mask = g->mask,
                          .waits = g->waits};
    if (g->waits == SIM_WAIT_LANES) {
        const struct sim_op *op = w->code + g->pc;
        s.named = named_by(w, op, g->mask);
        s.missing = s.named & w->live & ~fellows(w, op, s.named);
        return s;
    }
    if (g->waits == 0 || g->waits == SIM_WAIT_MBAR) {
        sim_mbar_stand(w, g, &s);
        return s;
    }
    if (g->waits == SIM_WAIT_WARPGROUP) {
        s.missing = sim_wgmma_missing(w, w->code + g->pc);
        return s;
    }
    if (g->waits == SIM_WAIT_REGISTERS) {
        s.wanted = ((uint32_t)w->code[g->pc].imm - w->registers) * SIM_LANES;
        s.came = w->block->spare_registers;
        return s;
    }
    s.op--;
    if (g->waits == SIM_WAIT_CLUSTER) {
        s.came = w->block->peer[0]->cluster_came;
        for (uint32_t i = 0; i < w->block->npeer; i++)
            s.wanted += w->block->peer[i]->nlive;
        return s;
    }
    s.barrier = (uint32_t)(g->waits - SIM_WAIT_BAR) % SIM_BARRIERS;
    const struct sim_barrier *bar = &w->block->barrier[s.barrier];
    s.missing = w->came[s.barrier] ? w->live & ~w->came[s.barrier] : 0;
    s.came = bar->arrived;
    s.wanted = wanted_at(w->block, bar);
    return s;
}
