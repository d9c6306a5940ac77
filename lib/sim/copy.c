/* cp.async: copies from global to shared memory that are in flight until the thread waits for
 * them. */
#include <config.h>

#include <stdlib.h>

#include "sim/check.h"

/* ---- the list -------------------------------------------------------------------------------- */

void sim_copies_reset(struct sim_copies *c)
{
    if (!c)
        return;
    c->head = c->n = c->issued = 0;
    memset(c->committed, 0, sizeof c->committed);
}

void sim_copies_free(struct sim_copies *c)
{
    if (!c)
        return;
    free(c->v);
    free(c->seen);
    free(c);
}

static bool grow(struct sim_copies *c, bool checked)
{
    const uint32_t cap = c->cap ? 2 * c->cap : 16;
    struct sim_copy *v = realloc(c->v, cap * sizeof *v);
    if (!v)
        return false;
    c->v = v;
    if (checked) {
        void *seen = realloc(c->seen, cap * sizeof *c->seen);
        if (!seen)
            return false;
        c->seen = seen;
    }
    c->cap = cap;
    return true;
}

/* Room for one more; NULL: no memory. */
static struct sim_copy *add(struct sim_warp *w)
{
    struct sim_copies *c = w->copies;
    if (!c && !(c = w->copies = calloc(1, sizeof *c)))
        return NULL;
    if (c->n == c->cap && c->head) {
        memmove(c->v, c->v + c->head, (c->n - c->head) * sizeof *c->v);
        if (c->seen)
            memmove(c->seen, c->seen + c->head, (c->n - c->head) * sizeof *c->seen);
        c->n -= c->head;
        c->head = 0;
    }
    if (c->n == c->cap && !grow(c, w->block->check))
        return NULL;
    return &c->v[c->n];
}

/* ---- issue ----------------------------------------------------------------------------------- */

/* How many bytes a lane reads. */
static uint32_t bytes_read(const struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    if (op->e && sim_word(w, op->e, 0) >> lane & 1)
        return 0;
    return op->c ? sim_word(w, op->c, lane) : op->size;
}

static uint64_t target_of(const struct sim_warp *w, const struct sim_op *op, uint32_t lane)
{
    if (op->flags & SIM_A32)
        return (uint32_t)(sim_word(w, op->a, lane) + (uint32_t)op->imm);
    return sim_wide(w, op->a, lane) + op->imm;
}

static bool issue_lane(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                       struct sim_copy *c, struct sim_buffer **buffer)
{
    const struct sim_block *b = w->block;
    const uint64_t to = target_of(w, op, lane), from = sim_wide(w, op->b, lane);
    const uint32_t n = bytes_read(w, op, lane), size = op->size;
    if (n > size)
        return sim_fault_about(w, op, lane, SIM_F_SIZE,
                               (struct sim_fault){.address = n, .bytes = size});
    const struct sim_fault load = {.address = from, .bytes = n, .space = SIM_IN_GLOBAL};
    const struct sim_fault store = {
        .address = to, .bytes = size, .space = SIM_IN_SHARED, .store = true};
    if (to % size)
        return sim_fault_about(w, op, lane, SIM_F_ALIGN, store);
    if (b->shared_bytes < size || to > b->shared_bytes - size)
        return sim_fault_about(w, op, lane, SIM_F_BOUNDS, store);
    c->to[lane] = (uint32_t)to;
    c->source[lane] = from;
    c->valid[lane] = (uint8_t)n;
    c->from[lane] = NULL;
    if (!n)
        return true;
    if (from % size)
        return sim_fault_about(
            w, op, lane, SIM_F_ALIGN,
            (struct sim_fault){.address = from, .bytes = size, .space = SIM_IN_GLOBAL});
    if (!*buffer || from < (*buffer)->base || from - (*buffer)->base > (*buffer)->bytes)
        *buffer = sim_mem_near(b->launch->memory, from);
    const uint64_t at = *buffer ? from - (*buffer)->base : 0;
    if (!*buffer || (*buffer)->released || from < (*buffer)->base || at > (*buffer)->bytes ||
        n > (*buffer)->bytes - at)
        return sim_fault_about(w, op, lane, SIM_F_BOUNDS, load);
    c->from[lane] = (*buffer)->host + at;
    return true;
}

const struct sim_op *sim_copy_issue(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_buffer *buffer = NULL;
    struct sim_copy *c = add(w);
    if (!c)
        return sim_fault_at(w, op, (uint32_t)__builtin_ctz(w->em), SIM_F_MEMORY);
    struct sim_copies *all = w->copies;
    c->op = sim_pc(w, op);
    c->lanes = w->em;
    c->size = op->size;
    c->serial = all->issued++;
    memcpy(c->group, all->committed, sizeof c->group);
    FOR_LANES(lane, w->em) {
        if (!issue_lane(w, op, lane, c, &buffer))
            return NULL;
        if (all->seen && c->valid[lane])
            memcpy(all->seen[all->n][lane], c->from[lane], c->valid[lane]);
    }
    all->n++;
    return op + 1;
}

/* ---- groups ---------------------------------------------------------------------------------- */

const struct sim_op *sim_copy_commit(struct sim_warp *w, const struct sim_op *op)
{
    FOR_LANES(lane, w->copies ? w->em : 0)
        w->copies->committed[lane]++;
    return op + 1;
}

static void land(struct sim_warp *w, const struct sim_copy *c, uint32_t lanes)
{
    unsigned char *const shared = w->block->shared;
    FOR_LANES(lane, lanes) {
        const uint32_t n = c->valid[lane];
        unsigned char *const to = shared + c->to[lane];
        if (n == 16) {
            memcpy(to, c->from[lane], 16);
            continue;
        }
        if (n)
            memcpy(to, c->from[lane], n);
        memset(to + n, 0, c->size - n);
    }
}

/* These lanes' part of a copy. */
static void complete(struct sim_warp *w, struct sim_copy *c, uint32_t lanes)
{
    if (!lanes)
        return;
    land(w, c, lanes);
    if (w->block->check)
        sim_check_landed(w, c, lanes);
    c->lanes &= ~lanes;
}

static void drop_done(struct sim_copies *all)
{
    while (all->head < all->n && !all->v[all->head].lanes)
        all->head++;
    if (all->head == all->n)
        all->head = all->n = 0;
}

/* Lets the groups of each lane before limit[lane] land. */
static void land_groups(struct sim_warp *w, uint32_t lanes, const uint32_t limit[SIM_LANES])
{
    struct sim_copies *all = w->copies;
    for (uint32_t i = all->head; i < all->n; i++) {
        struct sim_copy *c = &all->v[i];
        uint32_t done = 0;
        FOR_LANES(lane, lanes & c->lanes) {
            done |= c->group[lane] < limit[lane] ? 1u << lane : 0;
        }
        complete(w, c, done);
    }
    drop_done(all);
}

void sim_copies_land(struct sim_warp *w, uint32_t lanes, uint32_t before)
{
    struct sim_copies *all = w->copies;
    for (uint32_t i = all ? all->head : 0; all && i < all->n; i++)
        if (all->v[i].serial < before)
            complete(w, &all->v[i], lanes & all->v[i].lanes);
    if (all)
        drop_done(all);
}

const struct sim_op *sim_copy_wait(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_copies *all = w->copies;
    uint32_t limit[SIM_LANES];
    if (!all)
        return op + 1;
    for (uint32_t i = 0; i < SIM_LANES; i++) {
        const uint32_t n = all->committed[i];
        limit[i] = op->more ? UINT32_MAX : n > op->imm ? n - (uint32_t)op->imm : 0;
    }
    land_groups(w, w->em, limit);
    return op + 1;
}
