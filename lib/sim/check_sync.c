/* Barriers that not every thread comes to, and member masks that are wrong. */
#include <config.h>

#include "sim/check.h"

static bool wanted(const struct sim_block *b)
{
    return b->launch->check->bits & DEVICE_CHECK_SYNC;
}

static struct check_side side(const struct sim_block *b, uint32_t op, uint32_t thread)
{
    return (struct check_side){op, thread, b->index};
}

void sim_check_arrive(struct sim_warp *w, const struct sim_op *op, uint32_t lanes, uint32_t id,
                      uint32_t threads, bool waits)
{
    struct sim_block *b = w->block;
    struct check_arrival *a = &b->check->barrier[id];
    const uint32_t record = (uint32_t)(op - w->code);
    const uint32_t thread = w->index * SIM_LANES + (uint32_t)__builtin_ctz(lanes);
    /* barriers for some of the block's threads, and producers' and consumers', may be met
     * anywhere */
    if (!a->op) {
        a->op = record + 1;
        a->thread = thread;
        a->named = threads;
    } else if (wanted(b) && waits && !threads && a->op != record + 1) {
        const bool warp = a->thread / SIM_LANES == w->index;
        check_find(b->launch->check,
                   &(struct check_finding){.kind = warp ? CHECK_F_DIVERGED : CHECK_F_MIXED,
                                           .at = side(b, record, thread),
                                           .other = side(b, a->op - 1, a->thread),
                                           .count = 1});
    }
    if (wanted(b) && (a->came[w->index] & lanes))
        check_find(b->launch->check, &(struct check_finding){.kind = CHECK_F_AGAIN,
                                                             .at = side(b, record, thread),
                                                             .count = 1});
    a->came[w->index] |= lanes;
    check_arrive_order(w, lanes, a, waits);
}

/* A thread that has exited. */
static uint32_t exited_thread(const struct sim_block *b)
{
    for (uint32_t i = 0; i < b->launch->threads; i++) {
        const struct sim_warp *w = &b->warp[i / SIM_LANES];
        if (w->started && !(w->live >> i % SIM_LANES & 1))
            return i;
    }
    return 0;
}

void sim_check_complete(struct sim_block *b, uint32_t id)
{
    struct check_arrival *a = &b->check->barrier[id];
    if (!a->op)
        return;
    if (wanted(b) && !a->named && b->nlive < b->launch->threads)
        check_find(b->launch->check, &(struct check_finding){.kind = CHECK_F_EXITED,
                                                             .at = side(b, a->op - 1, a->thread),
                                                             .other = side(b, 0, exited_thread(b)),
                                                             .count = 1});
    check_complete_order(b, a);
}

/* ---- masks ----------------------------------------------------------------------------------- */

static void find_mask(struct sim_warp *w, const struct sim_op *op, uint32_t lane, uint32_t mask)
{
    check_find(w->block->launch->check,
               &(struct check_finding){
                   .kind = CHECK_F_OUTSIDE,
                   .at = side(w->block, (uint32_t)(op - w->code), w->index * SIM_LANES + lane),
                   .count = 1,
                   .mask = mask});
}

void check_masks(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    if (!wanted(w->block))
        return;
    uint32_t named = 0;
    for (uint32_t i = 0; i < SIM_LANES; i++)
        named |= sim_word(w, op->e, i) & 1u << i;
    FOR_LANES(lane, lanes & ~named) {
        find_mask(w, op, lane, sim_word(w, op->e, lane));
    }
}
