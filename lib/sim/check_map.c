/* Tensor maps that a kernel changes. Copies read a map through the tensormap proxy: what a thread
 * has written of one is seen there once the thread has executed
 * fence.proxy.tensormap::generic.release behind it (tensormap.cp_fenceproxy is both), and the warp
 * that copies knows of that and has executed fence.proxy.tensormap::generic.acquire for the map's
 * address (PTX ISA, membar/fence). Maps that the host made need neither.
 *
 * A launch keeps the last of these fences. What is older than the oldest of them, if some have been
 * forgotten, counts as fenced.
 */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

enum { KEPT = 1024 };

struct check_map_fence {
    uint64_t address; /* of an acquire; 0: a release */
    uint32_t block, warp, clock;
};

struct check_maps {
    uint64_t n;
    struct check_map_fence fence[KEPT]; /* the i-th in [i % KEPT] */
};

static bool orders(const struct sim_warp *w)
{
    return w->block->launch->check->bits & (DEVICE_CHECK_RACE | DEVICE_CHECK_ASYNC);
}

void sim_check_map_access(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                          unsigned space, uint64_t address, bool writes)
{
    struct check *c = w->block->launch->check;
    const uint32_t record = (uint32_t)(op - w->code);
    const struct check_memory m = check_memory_at(w, &c->op[record], space, address);
    struct check_far far = {.w = w,
                            .op = op,
                            .lane = lane,
                            .generic = true,
                            .slot = check_slot_of((uint32_t)w->block->index, c->clock,
                                                  w->index * SIM_LANES + lane, record)};
    if (!m.shadow)
        return;
    if (orders(w))
        check_far(&far, &m, address - m.origin, DEVICE_TENSOR_MAP,
                  writes ? CHECK_FAR_WRITE : CHECK_FAR_READ);
    if (writes)
        check_define(m.shadow, address - m.origin, DEVICE_TENSOR_MAP);
}

void sim_check_map_fence(struct sim_warp *w, uint64_t address)
{
    struct check *c = w->block->launch->check;
    if (!orders(w))
        return;
    if (!c->maps && !(c->maps = calloc(1, sizeof *c->maps))) {
        c->starved = true;
        return;
    }
    c->maps->fence[c->maps->n++ % KEPT] =
        (struct check_map_fence){address, (uint32_t)w->block->index, w->index, check_tick(c)};
}

/* Has a warp executed a fence since the write? */
static bool fenced(const struct check_maps *m, uint32_t block, uint32_t warp, uint64_t address,
                   uint32_t since)
{
    const uint64_t n = m ? m->n : 0, kept = n < KEPT ? n : KEPT;
    for (uint64_t i = n - kept; i < n; i++) {
        const struct check_map_fence *f = &m->fence[i % KEPT];
        if (f->clock >= since && f->block == block && f->warp == warp && f->address == address)
            return true;
    }
    return n > kept && since < m->fence[n % KEPT].clock;
}

/* What of the fences between a write that the lane knows of and its copy is there: kind of finding,
 * CHECK_F_RACE if it does not know of it. */
static bool reached(const struct sim_warp *w, uint32_t lane, uint64_t address,
                    const struct check_slot *s, struct check_finding *f)
{
    const struct check_maps *m = w->block->launch->check->maps;
    const bool known = check_ordered(w, lane, s);
    const bool released = fenced(m, s->block, check_thread_of(s) / SIM_LANES, 0, s->clock);
    f->kind = known ? CHECK_F_MAP : CHECK_F_RACE;
    f->mask = released;
    return known && released && fenced(m, (uint32_t)w->block->index, w->index, address, s->clock);
}

void sim_check_map_used(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                        uint64_t address)
{
    struct check *c = w->block->launch->check;
    const uint32_t record = (uint32_t)(op - w->code);
    const struct check_memory m = check_memory_at(w, &c->op[record], SIM_IN_GLOBAL, address);
    struct check_finding f = {.at = {record, w->index * SIM_LANES + lane, w->block->index},
                              .count = 1,
                              .address = address,
                              .space = SIM_IN_GLOBAL,
                              .bytes = DEVICE_TENSOR_MAP};
    if (!m.shadow || !orders(w))
        return;
    for (uint64_t at = address - m.origin, end = at + DEVICE_TENSOR_MAP; at < end; at += 4) {
        struct check_slot s;
        if (!check_last_write(m.shadow, at, &s) || !check_is_thread(&s) ||
            s.clock == CHECK_PENDING || reached(w, lane, address, &s, &f))
            continue;
        f.other = check_side_of(w->block, &s);
        check_find(c, &f);
        return;
    }
}

void check_maps_end(struct check *c)
{
    free(c->maps);
    c->maps = NULL;
}
