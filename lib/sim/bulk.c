/* Bulk copies between linear stretches of memory, st.async, and what is said of lines of the cache:
 * what is checked when they are issued. */
#include <config.h>

#include "sim/check.h"
#include "sim/flight.h"
#include "sim/mbarrier.h"

/* The buffer that [address, address + bytes) lies in, 16-byte aligned, and where in it. */
static bool global_place(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                         uint64_t address, uint32_t bytes, bool store, struct sim_flight *f)
{
    struct sim_buffer *b = sim_mem_near(w->block->launch->memory, address);
    const uint64_t at = b ? address - b->base : 0;
    struct sim_fault about = {
        .address = address, .bytes = bytes, .space = SIM_IN_GLOBAL, .store = store};
    if (!b || b->released || address < b->base || at > b->bytes || bytes > b->bytes - at)
        return sim_fault_about(w, op, lane, SIM_F_BOUNDS, about);
    if (store && b->read_only)
        return sim_fault_about(w, op, lane, SIM_F_READONLY, about);
    about.bytes = 16;
    if (address % 16)
        return sim_fault_about(w, op, lane, SIM_F_ALIGN, about);
    f->buffer = b;
    f->at = at;
    return true;
}

/* The mbarrier that is to be told of the bytes: in the block that gets them. */
static bool mbarrier_place(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                           uint64_t address, unsigned space, const struct sim_block *to,
                           struct sim_flight *f)
{
    struct sim_place p;
    if (!sim_shared_place(w, op, lane, address, space, true, 8, 8, true, &p))
        return false;
    f->mbarrier = p.offset;
    if (p.block == to)
        return true;
    sim_fault_about(w, op, lane, SIM_F_MBARRIER, (struct sim_fault){0});
    sim_mbar_blame(&w->block->fault, p.block, p.offset, SIM_MBAR_APART);
    return false;
}

/* Finds where the bytes go in shared memory, and the mbarrier there. */
static bool into_shared(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                        struct sim_flight *f)
{
    const struct sim_block *b = w->block;
    struct sim_place to;
    if (!sim_shared_place(w, op, lane, sim_wide(w, op->a, lane), SIM_IN_SHARED, true, f->bytes, 16,
                          true, &to))
        return false;
    f->shared = to.offset;
    f->blocks = op->e ? sim_word(w, op->e, lane) & 0xffff : 1u << to.block->rank;
    if (f->blocks >> b->npeer)
        return sim_fault_about(w, op, lane, SIM_F_RANKS, (struct sim_fault){.lanes = f->blocks});
    return mbarrier_place(w, op, lane, sim_wide(w, op->d, lane), SIM_IN_SHARED, to.block, f);
}

static bool from_shared(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                        struct sim_place *from, uint32_t bytes)
{
    return sim_shared_place(w, op, lane, sim_wide(w, op->b, lane), SIM_IN_SHARED, false, bytes, 16,
                            false, from);
}

static bool copy_lane(struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    struct sim_flight f = {.kind = op->more,
                           .pieces = sim_flight_linear,
                           .bytes = sim_word(w, op->c, lane),
                           .mbarrier = SIM_NO_MBARRIER,
                           .fold = op->round,
                           .type = op->size};
    struct sim_place from;
    f.extent = f.bytes;
    if (f.bytes % 16)
        return sim_fault_about(w, op, lane, SIM_F_BULK, (struct sim_fault){.bytes = f.bytes});
    if (sim_flies_in(f.kind) && !into_shared(w, op, lane, &f))
        return false;
    if (f.kind == SIM_FLY_LOAD) {
        if (!global_place(w, op, lane, sim_wide(w, op->b, lane), f.bytes, false, &f))
            return false;
    } else {
        if (!from_shared(w, op, lane, &from, f.bytes))
            return false;
        if (f.kind == SIM_FLY_PEER)
            f.from = from.offset;
        else
            f.shared = from.offset;
    }
    if (!sim_flies_in(f.kind) &&
        !global_place(w, op, lane, sim_wide(w, op->a, lane), f.bytes, true, &f))
        return false;
    return sim_flight_issue(w, op, lane, &f, NULL, 0);
}

const struct sim_op *sim_bulk_copy(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->em)
        if (!copy_lane(w, op, lane))
            return NULL;
    return op + 1;
}

const struct sim_op *sim_bulk_prefetch(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->em) {
        const uint32_t bytes = sim_word(w, op->c, lane);
        struct sim_flight f;
        if (bytes % 16) {
            sim_fault_about(w, op, lane, SIM_F_BULK, (struct sim_fault){.bytes = bytes});
            return NULL;
        }
        if (!global_place(w, op, lane, sim_wide(w, op->b, lane), bytes, false, &f))
            return NULL;
    }
    return op + 1;
}

/* A line may end behind its buffer: what follows is memory all the same. */
const struct sim_op *sim_line(struct sim_warp *w, const struct sim_op *op)
{
    enum { LINE = 128 };
    FOR_LANES(lane, w->em) {
        const uint64_t address = sim_wide(w, op->b, lane);
        const struct sim_buffer *b = sim_mem_near(w->block->launch->memory, address);
        const struct sim_fault about = {.address = address, .bytes = LINE, .space = SIM_IN_GLOBAL};
        const bool inside = b && !b->released && address >= b->base && address - b->base < b->bytes;
        if (!inside || address % LINE) {
            sim_fault_about(w, op, lane, inside ? SIM_F_ALIGN : SIM_F_BOUNDS, about);
            return NULL;
        }
    }
    return op + 1;
}

/* ---- st.async -------------------------------------------------------------------------------- */

static bool store_lane(struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    const uint32_t slot[4] = {op->d, op->b, op->c, op->e}, each = op->size / op->elems;
    struct sim_flight f = {.kind = SIM_FLY_VALUE,
                           .pieces = sim_flight_linear,
                           .bytes = op->size,
                           .extent = op->size,
                           .fold = op->more,
                           .type = op->size};
    struct sim_place to;
    if (!sim_shared_place(w, op, lane, sim_wide(w, op->a, lane), op->flags, true, op->size,
                          op->size, true, &to) ||
        !mbarrier_place(w, op, lane, sim_wide(w, (uint32_t)op->imm, lane), op->flags, to.block, &f))
        return false;
    f.shared = to.offset;
    f.blocks = 1u << to.block->rank;
    for (uint32_t i = 0; i < op->elems; i++) {
        const uint32_t from = slot[i] + lane * (op->round & SIM_V_WIDE ? 8 : 4);
        memcpy(f.value + i * each, w->r + from, each);
    }
    return sim_flight_issue(w, op, lane, &f, NULL, 0);
}

const struct sim_op *sim_st_async(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->em)
        if (!store_lane(w, op, lane))
            return NULL;
    return op + 1;
}
