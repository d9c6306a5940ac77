/* Operations in flight: what they read and write is judged when they are issued, by what their
 * thread knows then; who comes later has to know of what completes them.
 */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

#include "sim/flight.h"

static struct check *of(const struct sim_block *b)
{
    return b->launch->check;
}

static bool orders(const struct sim_block *b)
{
    return of(b)->bits & (DEVICE_CHECK_RACE | DEVICE_CHECK_ASYNC);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Shared memory of a block of the cluster, as another sees it. */
static struct check_memory shared_of(const struct sim_block *from, const struct sim_block *b)
{
    return (struct check_memory){.shadow = &b->check->shared,
                                 .host = b->shared,
                                 .bytes = b->shared_bytes,
                                 .origin = b == from ? 0
                                                     : (uint64_t)(b->rank + 1) << SIM_RANK_SHIFT,
                                 .space = SIM_IN_SHARED};
}

static struct check_memory global_of(const struct sim_buffer *b)
{
    return (struct check_memory){.shadow = b->shadow,
                                 .host = b->host,
                                 .bytes = b->bytes,
                                 .origin = b->base,
                                 .space = SIM_IN_GLOBAL};
}

/* ---- what is moved is defined ---------------------------------------------------------------- */

/* Folding uses what it finds at once. */
static void find_undefined(const struct sim_flight *f, const struct check_memory *m, uint64_t at,
                           uint64_t bytes)
{
    const struct check_side side = {f->op, f->warp * SIM_LANES + f->lane, f->issuer->index};
    if (check_first_undefined(m->shadow, &at, bytes))
        check_find(of(f->issuer), &(struct check_finding){.kind = CHECK_F_INIT,
                                                          .at = side,
                                                          .other = side,
                                                          .count = 1,
                                                          .address = m->origin + at,
                                                          .space = (uint8_t)m->space,
                                                          .bytes = f->type});
}

/* Bytes become defined where those that they are copies of are. */
static void define_part(const struct sim_flight *f, const struct sim_piece *p)
{
    const struct check_memory here = shared_of(f->issuer, f->to);
    struct check_memory there = {0};
    if (f->kind != SIM_FLY_PEER && p->buffer && p->buffer->shadow)
        there = global_of(p->buffer);
    switch (f->kind) {
    case SIM_FLY_LOAD:
        check_copy_defined(here.shadow, p->shared, there.shadow, p->at, p->bytes);
        return;
    case SIM_FLY_PEER:
    case SIM_FLY_VALUE:
        if (f->fold != SIM_NO_FOLD)
            find_undefined(f, &here, p->shared, p->bytes);
        else if (f->kind == SIM_FLY_VALUE)
            check_define(here.shadow, p->shared, p->bytes);
        else
            check_copy_defined(here.shadow, p->shared, &f->issuer->check->shared, p->from,
                               p->bytes);
        return;
    case SIM_FLY_STORE:
        if (there.shadow)
            check_copy_defined(there.shadow, p->at, here.shadow, p->shared, p->bytes);
        return;
    case SIM_FLY_REDUCE:
        if (there.shadow)
            find_undefined(f, &there, p->at, p->bytes);
        return;
    case SIM_FLY_COPIES: return;
    }
}

void sim_check_flight_part(const struct sim_flight *f, const struct sim_piece *p, bool reads,
                           bool writes)
{
    (void)reads;
    if (writes && of(f->issuer)->bits & DEVICE_CHECK_INIT)
        define_part(f, p);
}

/* ---- what is read and written ---------------------------------------------------------------- */

static struct check_far far_of(struct sim_warp *w, const struct sim_op *op,
                               const struct sim_flight *f, uint32_t block, uint32_t agent)
{
    return (struct check_far){
        .w = w,
        .op = op,
        .lane = f->lane,
        .slot = check_slot_of(block, of(w->block)->clock, agent, (uint32_t)(op - w->code))};
}

/* Bytes come to shared memory, and complete at an mbarrier there. */
static void comes(struct sim_warp *w, const struct sim_op *op, const struct sim_flight *f,
                  const struct check_mbar *m)
{
    struct check_far far = far_of(w, op, f, (uint32_t)f->to->index, check_mbar_agent(f->to, m));
    const struct check_memory to = shared_of(w->block, f->to), own = shared_of(w->block, w->block);
    const enum check_far_access what = f->fold == SIM_NO_FOLD ? CHECK_FAR_WRITE : CHECK_FAR_FOLD;
    struct sim_piece p;
    far.generic = f->kind == SIM_FLY_VALUE;
    for (uint64_t cursor = 0; f->pieces(f, &cursor, &p);) {
        if (f->kind == SIM_FLY_LOAD && p.buffer && p.buffer->shadow) {
            const struct check_memory from = global_of(p.buffer);
            check_far(&far, &from, p.at, p.bytes, CHECK_FAR_READ);
        } else if (f->kind == SIM_FLY_PEER) {
            check_far(&far, &own, p.from, p.bytes, CHECK_FAR_READ);
        }
        check_far(&far, &to, p.shared, p.bytes, what);
        check_span(to.shadow, p.shared, p.bytes, f->span);
    }
    if (f->to != w->block)
        check_remote(w, f->to, &far.slot);
}

/* Bytes of shared memory go to global memory. */
static void goes(struct sim_warp *w, const struct sim_op *op, const struct sim_flight *f)
{
    const uint32_t block = (uint32_t)w->block->index, thread = w->index * SIM_LANES + f->lane;
    struct check_far reads = far_of(w, op, f, block, CHECK_A_READS + thread);
    struct check_far writes = far_of(w, op, f, block, CHECK_A_WRITES + thread);
    const struct check_memory own = shared_of(w->block, w->block);
    struct check_warp *cw = &w->block->check->warp[w->index];
    struct sim_piece p;
    for (uint64_t cursor = 0; f->pieces(f, &cursor, &p);) {
        check_far(&reads, &own, p.shared, p.bytes, CHECK_FAR_READ);
        if (!p.buffer || !p.buffer->shadow)
            continue;
        const struct check_memory to = global_of(p.buffer);
        check_far(&writes, &to, p.at, p.bytes,
                  f->kind == SIM_FLY_REDUCE ? CHECK_FAR_FOLD : CHECK_FAR_WRITE);
    }
    if (!cw->bulk && !(cw->bulk = calloc(SIM_LANES, sizeof *cw->bulk))) {
        of(w->block)->starved = true;
        return;
    }
    cw->bulk[f->lane].issued = reads.slot.clock;
    cw->bulk[f->lane].op = check_op_of(&reads.slot);
}

void sim_check_flight_issued(struct sim_warp *w, const struct sim_op *op,
                             const struct sim_flight *f)
{
    if (!orders(w->block) || f->kind == SIM_FLY_COPIES)
        return;
    if (!sim_flies_in(f->kind)) {
        goes(w, op, f);
        return;
    }
    struct check_mbar *m =
        check_mbar_named(w, op, f->lane, f->to, f->mbarrier, f->kind != SIM_FLY_VALUE);
    if (!m)
        return;
    m->flights++;
    m->op = (uint32_t)(op - w->code);
    m->thread = w->index * SIM_LANES + f->lane;
    m->block = w->block->index;
    comes(w, op, f, m);
}

/* Threads whose cp.async have landed arrive, all at one clock. */
static void arrive(const struct sim_flight *f)
{
    struct sim_warp *w = &f->issuer->warp[f->warp];
    const uint32_t clock = of(f->issuer)->clock;
    FOR_LANES(lane, f->lanes) {
        of(f->issuer)->clock = clock;
        sim_check_mbar_arrives(w, &w->code[f->op], lane, f->to, f->mbarrier, 1);
    }
}

void sim_check_flight_done(const struct sim_flight *f, bool reads, bool writes)
{
    (void)reads;
    if (f->kind == SIM_FLY_COPIES) {
        arrive(f);
        return;
    }
    struct check_mbar *m = writes && sim_flies_in(f->kind) ? check_mbar_at(f->to, f->mbarrier)
                                                           : NULL;
    if (m && m->flights)
        m->flights--;
}

void sim_check_flight_dropped(const struct sim_flight *f)
{
    struct sim_piece p;
    uint64_t cursor = 0;
    if (!orders(f->issuer) || f->kind == SIM_FLY_COPIES || !sim_flies_in(f->kind) ||
        !f->pieces(f, &cursor, &p))
        return;
    const struct check_side at = {f->op, f->warp * SIM_LANES + f->lane, f->issuer->index};
    check_find(of(f->issuer), &(struct check_finding){.kind = CHECK_F_DROPPED,
                                                      .at = at,
                                                      .other = at,
                                                      .count = 1,
                                                      .address = p.shared,
                                                      .space = SIM_IN_SHARED,
                                                      .bytes = 1});
}

/* ---- groups ---------------------------------------------------------------------------------- */

void check_commit(struct check *c, struct check_groups *g)
{
    g->clock[g->n++ % CHECK_GROUPS] = check_tick(c);
}

uint32_t check_committed(const struct check_groups *g, uint32_t pending)
{
    return pending < g->n && pending < CHECK_GROUPS ? g->clock[(g->n - pending - 1) % CHECK_GROUPS]
                                                    : 0;
}

void sim_check_bulk_commit(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    (void)op;
    struct check_bulk *bulk = w->block->check->warp[w->index].bulk;
    if (!bulk && !(bulk = calloc(SIM_LANES, sizeof *bulk))) {
        of(w->block)->starved = true;
        return;
    }
    w->block->check->warp[w->index].bulk = bulk;
    FOR_LANES(lane, lanes)
        check_commit(of(w->block), &bulk[lane].group);
}

void sim_check_bulk_waited(struct sim_warp *w, const struct sim_op *op, uint32_t lanes, bool read)
{
    struct check_bulk *bulk = w->block->check->warp[w->index].bulk;
    const uint32_t block = (uint32_t)w->block->index;
    FOR_LANES(lane, bulk ? lanes : 0) {
        const uint16_t thread = (uint16_t)(w->index * SIM_LANES + lane);
        const uint32_t clock = check_committed(&bulk[lane].group, (uint32_t)op->imm);
        if (!clock)
            continue;
        struct check_fact fact = {block, clock, (uint16_t)(CHECK_A_READS + thread),
                                  (uint16_t)(CHECK_A_READS + thread)};
        check_learn_fact(w, 1u << lane, &fact);
        if (clock > bulk[lane].read)
            bulk[lane].read = clock;
        fact.first = fact.last = (uint16_t)(CHECK_A_WRITES + thread);
        if (!read)
            check_learn_fact(w, 1u << lane, &fact);
    }
}

/* Bulk stores that may still read the shared memory of a block which is over. */
void check_flights_end(const struct sim_block *b)
{
    for (uint32_t i = 0; i < b->nwarp; i++) {
        const struct check_bulk *bulk = b->check->warp[i].bulk;
        for (uint32_t lane = 0; bulk && lane < SIM_LANES; lane++) {
            if (bulk[lane].issued <= bulk[lane].read || !orders(b))
                continue;
            const struct check_side at = {bulk[lane].op, i * SIM_LANES + lane, b->index};
            check_find(of(b), &(struct check_finding){
                                  .kind = CHECK_F_LEFT, .at = at, .other = at, .count = 1});
        }
    }
}
