/* What threads know of each other: barriers, __syncwarp, fences, release and acquire. */
#include <config.h>

#include <assert.h>

#include "sim/check.h"

#include <stdlib.h>

static struct check *of(const struct sim_block *b)
{
    return b->launch->check;
}

static uint32_t max32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* ---- a thread's lists ------------------------------------------------------------------------ */

/* The thread's lists, to be written. NULL: no memory. */
static struct check_thread *thread_of(struct sim_warp *w, uint32_t lane)
{
    struct check_block *cb = w->block->check;
    if (!cb->thread) {
        cb->thread = calloc(SIM_MAX_THREADS, sizeof *cb->thread);
        if (!cb->thread) {
            of(w->block)->starved = true;
            return NULL;
        }
    }
    cb->warp[w->index].holds |= 1u << lane;
    return &cb->thread[w->index * SIM_LANES + lane];
}

static void learn(struct check *c, struct check_known **k, struct check_known *more)
{
    *k = check_known_join(c, *k, more);
}

static void replace(struct check_known **k, struct check_known *by)
{
    check_known_drop(*k);
    *k = by;
}

static void learn_lists(struct check *c, struct check_lists *l, const struct check_lists *more)
{
    learn(c, &l->acquired, more->acquired);
    learn(c, &l->fenced, more->fenced);
    learn(c, &l->heard, more->heard);
}

static void drop_lists(struct check_lists *l)
{
    check_known_drop(l->acquired);
    check_known_drop(l->fenced);
    check_known_drop(l->heard);
    *l = (struct check_lists){0};
}

static void forget(struct check_thread *t)
{
    drop_lists(&t->lists);
    check_known_drop(t->pending);
    check_known_drop(t->fenced_cta);
    *t = (struct check_thread){0};
}

/* Everything a lane knows now; whole: everything that its warp's lanes know of themselves, too. */
static struct check_known *snapshot(const struct sim_warp *w, uint32_t lane, bool whole)
{
    const struct check_block *cb = w->block->check;
    const struct check_warp *cw = &cb->warp[w->index];
    struct check *c = of(w->block);
    struct check_fact fact[3 + SIM_LANES + SIM_MAX_WARPS];
    const uint32_t block = (uint32_t)w->block->index, first = w->index * SIM_LANES;
    uint32_t n = 0;
    const uint16_t lo = (uint16_t)first, hi = (uint16_t)(first + SIM_LANES - 1);
    fact[n++] = (struct check_fact){block, cb->base, 0, SIM_MAX_THREADS - 1};
    fact[n++] = (struct check_fact){block, whole ? c->clock : cw->base, lo, hi};
    fact[n++] = (struct check_fact){block, c->clock, (uint16_t)(lo + lane), (uint16_t)(lo + lane)};
    for (uint32_t j = 0; cw->lanes && !whole && j < SIM_LANES; j++) {
        const uint16_t t = (uint16_t)(first + j);
        fact[n++] = (struct check_fact){block, cw->lanes[lane * SIM_LANES + j], t, t};
    }
    for (uint32_t v = 0; cb->warps && v < w->block->nwarp; v++)
        fact[n++] = (struct check_fact){block, cb->warps[w->index * SIM_MAX_WARPS + v],
                                        (uint16_t)(v * SIM_LANES),
                                        (uint16_t)(v * SIM_LANES + SIM_LANES - 1)};
    struct check_known *k = check_known_new(c, fact, n);
    if (k && cb->thread)
        learn(c, &k, cb->thread[first + lane].lists.acquired);
    if (k)
        learn(c, &k, cb->lists.acquired);
    return k;
}

bool check_ordered(const struct sim_warp *w, uint32_t lane, const struct check_slot *s)
{
    const struct check *c = of(w->block);
    const struct check_block *cb = w->block->check;
    const struct check_warp *cw = &cb->warp[w->index];
    const uint32_t t = check_thread_of(s), me = w->index * SIM_LANES + lane;
    if (s->clock == CHECK_PENDING)
        return false;
    if (s->clock <= c->floor)
        return true;
    if (s->block == (uint32_t)w->block->index && check_is_thread(s)) {
        if (s->clock <= cb->base || t == me)
            return true;
        if (t / SIM_LANES == w->index &&
            (s->clock <= cw->base ||
             (cw->lanes && s->clock <= cw->lanes[lane * SIM_LANES + t % SIM_LANES])))
            return true;
        if (cb->warps && s->clock <= cb->warps[w->index * SIM_MAX_WARPS + t / SIM_LANES])
            return true;
    }
    return c->lists && ((cb->thread && check_known_has(cb->thread[me].lists.acquired, s)) ||
                        check_known_has(cb->lists.acquired, s) ||
                        (!check_is_thread(s) && check_heard(w, lane, s)));
}

bool check_heard(const struct sim_warp *w, uint32_t lane, const struct check_slot *s)
{
    const struct check_block *cb = w->block->check;
    return (cb->thread &&
            check_known_has(cb->thread[w->index * SIM_LANES + lane].lists.heard, s)) ||
           check_known_has(cb->lists.heard, s);
}

bool check_ordered_any(const struct sim_warp *w, const struct check_slot *s)
{
    FOR_LANES(lane, w->live)
        if (check_ordered(w, lane, s))
            return true;
    return false;
}

void check_learn(struct sim_warp *w, uint32_t lanes, struct check_known *k, bool acquires)
{
    struct check *c = of(w->block);
    FOR_LANES(lane, k ? lanes : 0) {
        struct check_thread *t = thread_of(w, lane);
        if (!t)
            return;
        learn(c, acquires ? &t->lists.acquired : &t->pending, k);
        c->lists = true;
    }
}

void check_hear(struct sim_warp *w, uint32_t lanes, struct check_known *k)
{
    struct check *c = of(w->block);
    FOR_LANES(lane, k ? lanes : 0) {
        struct check_thread *t = thread_of(w, lane);
        if (!t)
            return;
        learn(c, &t->lists.heard, k);
        c->lists = true;
    }
}

struct check_known *check_hearsay(const struct sim_warp *w, uint32_t lane)
{
    const struct check_block *cb = w->block->check;
    struct check_known *k = check_known_ref(cb->lists.heard);
    if (cb->thread)
        learn(of(w->block), &k, cb->thread[w->index * SIM_LANES + lane].lists.heard);
    return k;
}

void check_learn_fact(struct sim_warp *w, uint32_t lanes, const struct check_fact *fact)
{
    struct check_fact one = *fact;
    struct check_known *k = check_known_new(of(w->block), &one, 1);
    check_learn(w, lanes, k, true);
    check_known_drop(k);
}

/* ---- barriers -------------------------------------------------------------------------------- */

/* Adds the lanes' lists to l. A barrier and __syncwarp count as the fence behind a relaxed load:
 * the CUDA programming guide's own examples need that. */
static void gather(struct sim_warp *w, uint32_t lanes, struct check_lists *l)
{
    struct check_block *cb = w->block->check;
    struct check *c = of(w->block);
    FOR_LANES(lane, lanes & cb->warp[w->index].holds) {
        const struct check_thread *t = &cb->thread[w->index * SIM_LANES + lane];
        learn_lists(c, l, &t->lists);
        learn(c, &l->acquired, t->pending);
    }
}

static void hand_out(struct sim_warp *w, uint32_t lanes, const struct check_lists *l)
{
    struct check *c = of(w->block);
    if (!l->acquired && !l->fenced && !l->heard)
        return;
    FOR_LANES(lane, lanes) {
        struct check_thread *t = thread_of(w, lane);
        if (!t)
            return;
        learn_lists(c, &t->lists, l);
    }
}

static uint32_t *warps_of(struct sim_block *b)
{
    struct check_block *cb = b->check;
    if (!cb->warps)
        cb->warps = calloc(SIM_MAX_WARPS * SIM_MAX_WARPS, sizeof *cb->warps);
    if (!cb->warps)
        of(b)->starved = true;
    return cb->warps;
}

void check_arrive_order(struct sim_warp *w, uint32_t lanes, struct check_arrival *a, bool waits)
{
    struct check_block *cb = w->block->check;
    for (uint32_t v = 0; cb->warps && v < w->block->nwarp; v++)
        a->clock[v] = max32(a->clock[v], cb->warps[w->index * SIM_MAX_WARPS + v]);
    a->clock[w->index] = check_tick(of(w->block));
    if (waits) {
        a->waits |= 1u << w->index;
        a->threads += (uint32_t)__builtin_popcount(lanes);
    }
    gather(w, lanes, &a->lists);
}

/* All live threads have waited: one fact for the block. */
static void complete_all(struct sim_block *b, struct check_arrival *a)
{
    struct check_block *cb = b->check;
    struct check *c = of(b);
    cb->base = check_tick(c);
    learn_lists(c, &cb->lists, &a->lists);
    for (uint32_t i = 0; i < b->nwarp; i++) {
        FOR_LANES(lane, cb->warp[i].holds)
            forget(&cb->thread[i * SIM_LANES + lane]);
        cb->warp[i].holds = 0;
    }
}

static void complete_some(struct sim_block *b, struct check_arrival *a)
{
    uint32_t *warps = warps_of(b);
    for (uint32_t left = a->waits; left && warps; left &= left - 1) {
        const uint32_t x = (uint32_t)__builtin_ctz(left);
        for (uint32_t v = 0; v < b->nwarp; v++) {
            uint32_t *to = &warps[x * SIM_MAX_WARPS + v];
            *to = max32(*to, a->clock[v]);
        }
        hand_out(&b->warp[x], b->warp[x].live, &a->lists);
    }
    check_tick(of(b));
}

static void drop_arrival(struct check_arrival *a)
{
    drop_lists(&a->lists);
    *a = (struct check_arrival){0};
}

void check_complete_order(struct sim_block *b, struct check_arrival *a)
{
    if (a->threads >= b->nlive)
        complete_all(b, a);
    else
        complete_some(b, a);
    drop_arrival(a);
}

/* A relaxed arrival: of objects whose init the lanes have fenced is known, with what came before
 * that. */
static void publish_objects(struct sim_warp *w, uint32_t lanes)
{
    struct check_block *cb = w->block->check;
    struct check *c = of(w->block);
    for (uint32_t i = 0; i < cb->nmbar; i++) {
        const struct check_mbar *m = &cb->mbar[i];
        const uint16_t thread = (uint16_t)check_thread_of(&m->init);
        if (!m->live || !m->fenced || thread / SIM_LANES != w->index ||
            !(lanes >> thread % SIM_LANES & 1))
            continue;
        struct check_fact fact = {m->init.block, m->init.clock, thread, thread};
        struct check_known *k = check_known_new(c, &fact, 1);
        learn(c, &cb->cluster.lists.acquired, k);
        check_known_drop(k);
    }
}

void sim_check_cluster_arrive(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    const struct ptx_inst *in = &w->block->launch->code->func->items.v[op->item].inst;
    if (in->mod[PTX_MC_ORDER] == PTX_RELAXED)
        publish_objects(w, lanes);
    else
        check_arrive_order(w, lanes, &w->block->check->cluster, false);
}

/* What the threads of a block did before they arrived. */
static uint32_t arrived(struct sim_block *b, struct check_fact *fact)
{
    const struct check_arrival *a = &b->check->cluster;
    const uint32_t block = (uint32_t)b->index;
    uint32_t n = 0;
    fact[n++] = (struct check_fact){block, b->check->base, 0, SIM_MAX_THREADS - 1};
    for (uint32_t v = 0; v < b->nwarp; v++) {
        const uint16_t lane = (uint16_t)(v * SIM_LANES);
        const uint32_t clock = b->warp[v].live ? a->clock[v] : of(b)->clock;
        fact[n++] = (struct check_fact){block, clock, lane, (uint16_t)(lane + SIM_LANES - 1)};
    }
    return n;
}

/* Who waits for it learns what all did before they arrived. */
void sim_check_cluster(struct sim_block *first)
{
    struct check *c = of(first);
    struct check_fact fact[1 + SIM_MAX_WARPS];
    struct check_lists all = {0};
    for (uint32_t i = 0; i < first->npeer; i++) {
        struct sim_block *b = first->peer[i];
        struct check_known *k = check_known_new(c, fact, arrived(b, fact));
        learn(c, &all.acquired, k);
        check_known_drop(k);
        learn_lists(c, &all, &b->check->lists);
        learn_lists(c, &all, &b->check->cluster.lists);
    }
    for (uint32_t i = 0; i < first->npeer; i++) {
        struct check_block *cb = first->peer[i]->check;
        drop_lists(&cb->met);
        learn_lists(c, &cb->met, &all);
        drop_arrival(&cb->cluster);
    }
    drop_lists(&all);
    check_tick(c);
    c->lists = true;
}

void sim_check_cluster_passed(struct sim_warp *w, uint32_t lanes)
{
    const struct check_block *cb = w->block->check;
    hand_out(w, lanes, &cb->met);
}

/* Lanes that are not all of the warp: a clock for each pair of them. */
static void sync_some(struct sim_warp *w, uint32_t lanes, uint32_t now)
{
    struct check_warp *cw = &((struct check_block *)w->block->check)->warp[w->index];
    if (!cw->lanes)
        cw->lanes = calloc(SIM_LANES * SIM_LANES, sizeof *cw->lanes);
    if (!cw->lanes) {
        of(w->block)->starved = true;
        return;
    }
    uint32_t known[SIM_LANES] = {0};
    FOR_LANES(i, lanes) {
        for (uint32_t j = 0; j < SIM_LANES; j++)
            known[j] = max32(known[j], cw->lanes[i * SIM_LANES + j]);
    }
    FOR_LANES(lane, lanes)
        known[lane] = now;
    FOR_LANES(lane, lanes)
        memcpy(&cw->lanes[lane * SIM_LANES], known, sizeof known);
}

static void sync_lanes(struct sim_warp *w, uint32_t lanes)
{
    struct check_block *cb = w->block->check;
    struct check_lists all = {0};
    const uint32_t now = check_tick(of(w->block));
    if (lanes == w->live)
        cb->warp[w->index].base = now;
    else
        sync_some(w, lanes, now);
    if (!(cb->warp[w->index].holds & lanes))
        return;
    gather(w, lanes, &all);
    hand_out(w, lanes, &all);
    drop_lists(&all);
}

void sim_check_warp_sync(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    while (lanes) {
        uint32_t mask, one, same = 0;
        memcpy(&mask, w->r + op->e + 4 * __builtin_ctz(lanes), 4);
        for (uint32_t left = lanes; left; left &= left - 1) {
            memcpy(&one, w->r + op->e + 4 * __builtin_ctz(left), 4);
            same |= one == mask ? left & -left : 0;
        }
        sync_lanes(w, same);
        lanes &= ~same;
    }
}

/* ---- fences, release, acquire ---------------------------------------------------------------- */

static void fence_acquires(struct sim_warp *w, uint32_t lanes, unsigned scope)
{
    struct check_block *cb = w->block->check;
    struct check *c = of(w->block);
    FOR_LANES(lane, lanes & cb->warp[w->index].holds) {
        struct check_thread *t = &cb->thread[w->index * SIM_LANES + lane];
        if (scope == CHECK_GPU) {
            learn(c, &t->lists.acquired, t->pending);
            replace(&t->pending, NULL);
        } else if (t->pending) {
            struct check_known *own =
                check_known_of_block(c, t->pending, (uint32_t)w->block->index);
            learn(c, &t->lists.acquired, own);
            check_known_drop(own);
        }
    }
}

static void fence_releases(struct sim_warp *w, uint32_t lanes, unsigned scope)
{
    const bool whole = lanes == w->live;
    struct check_known *k = NULL;
    FOR_LANES(lane, lanes) {
        struct check_thread *t = thread_of(w, lane);
        if (!t)
            return;
        /* lanes that fence together and have learnt nothing each of its own share a list */
        if (!k || !whole || t->lists.acquired) {
            check_known_drop(k);
            k = snapshot(w, lane, whole);
        }
        replace(&t->fenced_cta, scope == CHECK_GPU ? NULL : check_known_ref(k));
        if (scope == CHECK_GPU)
            replace(&t->lists.fenced, check_known_ref(k));
    }
    check_known_drop(k);
    check_tick(of(w->block));
}

void check_fence(struct sim_warp *w, uint32_t lanes, unsigned scope, bool acquires, bool releases)
{
    if (acquires)
        fence_acquires(w, lanes, scope);
    if (releases && lanes)
        fence_releases(w, lanes, scope);
}

/* What the value that a lane writes publishes: to everyone, and to its block. */
static void publication(struct sim_warp *w, uint32_t lane, const struct check_op *o,
                        struct check_known **gpu, struct check_known **cta)
{
    const struct check_block *cb = w->block->check;
    struct check *c = of(w->block);
    *gpu = *cta = NULL;
    if (o->release) {
        *(o->scope == CHECK_GPU ? gpu : cta) = snapshot(w, lane, false);
        check_tick(c);
        return;
    }
    const struct check_thread *t = cb->thread ? &cb->thread[w->index * SIM_LANES + lane] : NULL;
    struct check_known **fenced = o->scope == CHECK_GPU ? gpu : cta;
    learn(c, fenced, cb->lists.fenced);
    if (t) {
        learn(c, fenced, t->lists.fenced);
        learn(c, cta, t->fenced_cta);
    }
}

/* Does the lane arrive by the instruction by which another lane of its warp arrived just before?
 *
 * These lanes arrive at one moment and share a clock, although the clock has ticked behind the
 * first of them. To set it back by that one tick is right only while nothing bears the new clock.
 * It cannot: the same record is still being executed for the same lanes (block, warp, record,
 * lanes), this lane has yet to arrive by it (left; a loop that comes to the record again starts
 * anew), nothing else has ticked since (clock), and all that an arrival marks, it marks with
 * arrival.clock. */
static bool is_together(const struct sim_warp *w, uint32_t lane, const struct check_op *o,
                        uint32_t record)
{
    const struct check *c = of(w->block);
    return o->kind == CHECK_MBAR && c->arrival.clock + 1 == c->clock &&
           c->arrival.block == w->block->index && c->arrival.warp == w->index &&
           c->arrival.record == record && c->arrival.lanes == w->em && c->arrival.left >> lane & 1;
}

struct check_known *check_released(struct sim_warp *w, uint32_t lane, const struct check_op *o,
                                   uint32_t record)
{
    struct check *c = of(w->block);
    struct check_known *gpu, *cta;
    if (o->release && is_together(w, lane, o, record)) {
        assert(c->clock == c->arrival.clock + 1 && c->arrival.clock > c->floor);
        c->clock = c->arrival.clock;
    } else {
        c->arrival.left = w->em;
    }
    c->arrival.block = w->block->index;
    c->arrival.warp = w->index;
    c->arrival.record = record;
    c->arrival.clock = c->clock;
    c->arrival.lanes = w->em;
    c->arrival.left &= ~(1u << lane);
    publication(w, lane, o, &gpu, &cta);
    learn(c, &gpu, cta);
    check_known_drop(cta);
    return gpu;
}

void check_unpublish(struct check_more *m)
{
    replace(&m->gpu, NULL);
    replace(&m->cta, NULL);
}

bool check_tells(const struct sim_warp *w, const struct check_op *o)
{
    const struct check_block *cb = w->block->check;
    return o->release || cb->lists.fenced || cb->thread || of(w->block)->published;
}

void check_publish(struct sim_warp *w, uint32_t lane, const struct check_op *o, bool joins,
                   struct check_more *m)
{
    struct check *c = of(w->block);
    const uint32_t block = (uint32_t)w->block->index;
    struct check_known *gpu, *cta;
    publication(w, lane, o, &gpu, &cta);
    c->published |= gpu || cta;
    if (!joins)
        check_unpublish(m);
    else if (m->from != block)
        replace(&m->cta, NULL);
    learn(c, &m->gpu, gpu);
    learn(c, &m->cta, cta);
    check_known_drop(gpu);
    check_known_drop(cta);
    m->from = block;
}

void check_observe(struct sim_warp *w, uint32_t lane, const struct check_op *o,
                   const struct check_more *m)
{
    struct check *c = of(w->block);
    const bool near = m->from == (uint32_t)w->block->index;
    struct check_known *gpu = o->scope == CHECK_GPU || near ? m->gpu : NULL;
    struct check_known *cta = near ? m->cta : NULL;
    if (!gpu && !cta)
        return;
    struct check_thread *t = thread_of(w, lane);
    if (!t)
        return;
    struct check_known **to = o->acquire ? &t->lists.acquired : &t->pending;
    uint64_t *seen = o->acquire ? t->seen_acquired : t->seen_pending;
    struct check_known *const list[2] = {gpu, cta};
    for (int i = 0; i < 2; i++)
        if (list[i] && list[i]->id != seen[i]) {
            learn(c, to, list[i]);
            seen[i] = list[i]->id;
        }
    c->lists = true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void check_order_start(struct sim_block *b)
{
    struct check_block *cb = b->check;
    cb->base = check_tick(of(b));
}

/* Forgets what a block that is over knew. */
void check_order_end(struct sim_block *b)
{
    struct check_block *cb = b->check;
    for (uint32_t i = 0; i < b->nwarp; i++) {
        FOR_LANES(lane, cb->warp[i].holds)
            forget(&cb->thread[i * SIM_LANES + lane]);
        free(cb->warp[i].lanes);
        free(cb->warp[i].taint);
        free(cb->warp[i].bulk);
        check_fences_free(cb->warp[i].fences);
        cb->warp[i] = (struct check_warp){0};
    }
    for (uint32_t id = 0; id < SIM_BARRIERS; id++)
        drop_arrival(&cb->barrier[id]);
    drop_arrival(&cb->cluster);
    drop_lists(&cb->met);
    drop_lists(&cb->lists);
    free(cb->warps);
    cb->warps = NULL;
    free(cb->thread);
    cb->thread = NULL;
}
