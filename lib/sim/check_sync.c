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
    /* barriers for some of the block's threads, and producers' and consumers', may be met anywhere */
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

/* ---- masks ------------------------------------------------------------------------------------------- */

static uint32_t word(const struct sim_warp *w, uint32_t slot, uint32_t lane)
{
    uint32_t v;
    memcpy(&v, w->r + slot + 4 * lane, 4);
    return v;
}

static void find_mask(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                      enum check_finding_kind kind, uint32_t mask, uint32_t source)
{
    check_find(w->block->launch->check,
               &(struct check_finding){
                   .kind = kind,
                   .at = side(w->block, (uint32_t)(op - w->code), w->index * SIM_LANES + lane),
                   .count = 1,
                   .mask = mask,
                   .source = source});
}

/* The lane that a shuffle takes its value from (PTX ISA, shfl.sync). */
static uint32_t source_lane(const struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    const int bval = (int)(word(w, op->b, lane) & 31), c = (int)word(w, op->c, lane);
    const int segment = c >> 8 & 31, clamp = c & 31, self = (int)lane;
    const int least = self & segment, most = least | (clamp & ~segment);
    const int j = op->more == 0   ? self - bval
                  : op->more == 1 ? self + bval
                  : op->more == 2 ? self ^ bval
                                  : least | (bval & ~segment);
    const bool ok = op->more == 0 ? j >= most : j <= most;
    return (uint32_t)(ok ? j : self);
}

void check_masks(struct sim_warp *w, const struct check_op *o, const struct sim_op *op,
                 uint32_t lanes)
{
    if (!wanted(w->block))
        return;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left), mask = word(w, op->e, lane);
        if (!(mask >> lane & 1))
            find_mask(w, op, lane, CHECK_F_OUTSIDE, mask, 0);
        else if (o->shuffles) {
            const uint32_t from = source_lane(w, op, lane);
            if (mask >> from & ~w->live >> from & 1)
                find_mask(w, op, lane, CHECK_F_SOURCE, mask, from);
        }
    }
}
