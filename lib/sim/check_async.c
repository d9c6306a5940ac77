/* Asynchronous copies, from when they are issued to when their thread waits for them, and loads and
 * stores of matrices.
 */
#include <config.h>

#include "sim/check.h"

#include "sim/matrix.h"

static struct check *of(const struct sim_warp *w)
{
    return w->block->launch->check;
}

static bool orders(const struct check *c)
{
    return c->bits & (DEVICE_CHECK_RACE | DEVICE_CHECK_ASYNC);
}

/* ---- issue ----------------------------------------------------------------------------------- */

/* What the lanes read in global memory: that much is known once they have been issued. */
static void note_sources(struct sim_warp *w, struct check_op *o, const struct sim_op *op,
                         const struct sim_copy *copy)
{
    FOR_LANES(lane, copy->lanes) {
        const uint32_t n = copy->valid[lane];
        const uint64_t from = copy->source[lane];
        if (!n)
            continue;
        const struct check_memory m = check_memory_at(w, o, SIM_IN_GLOBAL, from);
        if (m.shadow)
            check_copy_reads(w, o, op, &m, lane, from - m.origin, n);
    }
}

const struct sim_op *check_on_copy(struct sim_warp *w, const struct sim_op *op)
{
    struct check_op *o = &of(w)->op[op - w->code];
    struct check_aim aim;
    w->block->launch->build->check_aim(w, op, &aim);
    if (o->var && check_strays(w, o, op, &aim))
        return NULL;
    if (orders(of(w))) {
        const struct check_memory m = check_memory_at(w, o, SIM_IN_SHARED, 0);
        struct check_access x;
        check_inside(&m, op, w->em, &aim, &x);
        check_copy_begins(w, o, op, &x);
    }
    const struct sim_op *next = check_handle(w, o, op);
    if (next && of(w)->bits & DEVICE_CHECK_RACE)
        note_sources(w, o, op, &w->copies->v[w->copies->n - 1]);
    return next;
}

/* ---- in flight ------------------------------------------------------------------------------- */

enum check_flight check_flight_of(const struct sim_warp *w, uint32_t lane,
                                  const struct check_slot *copy)
{
    const uint32_t thread = check_thread_of(copy);
    if (copy->block != (uint32_t)w->block->index || thread != w->index * SIM_LANES + lane)
        return CHECK_OTHERS;
    const struct sim_copies *all = w->copies;
    for (uint32_t i = all ? all->n : 0; i-- > all->head;) {
        const struct sim_copy *c = &all->v[i];
        if (c->op == check_op_of(copy) && c->lanes >> lane & 1)
            return c->group[lane] == all->committed[lane] ? CHECK_UNCOMMITTED : CHECK_OWN;
    }
    return CHECK_OWN;
}

/* Has somebody written the source meanwhile? */
static void compare_source(struct sim_warp *w, const struct sim_copy *copy, uint32_t lane,
                           const unsigned char *seen)
{
    const uint64_t from = copy->source[lane];
    const struct sim_buffer *b = sim_mem_near(w->block->launch->memory, from);
    uint32_t i = 0;
    while (i < copy->valid[lane] && seen[i] == copy->from[lane][i])
        i++;
    if (i == copy->valid[lane])
        return;
    struct check_finding f = {.kind = CHECK_F_CHANGED,
                              .at = {copy->op, w->index * SIM_LANES + lane, w->block->index},
                              .count = 1,
                              .address = from + i,
                              .space = SIM_IN_GLOBAL,
                              .bytes = 1};
    struct check_slot s;
    f.other = b && b->shadow && check_last_write(b->shadow, from + i - b->base, &s)
                  ? (struct check_side){check_op_of(&s), check_thread_of(&s), s.block}
                  : f.at;
    check_find(of(w), &f);
}

void sim_check_landed(struct sim_warp *w, const struct sim_copy *copy, uint32_t lanes)
{
    struct check_shadow *s = &w->block->check->shared;
    const struct sim_copies *all = w->copies;
    const unsigned bits = of(w)->bits;
    FOR_LANES(lane, lanes) {
        const uint32_t n = copy->valid[lane];
        const struct check_side who = {copy->op, w->index * SIM_LANES + lane, 0};
        if (orders(of(w)))
            check_copy_ends(of(w), s, who, copy->to[lane], copy->size);
        if (bits & DEVICE_CHECK_ASYNC && all->seen && n)
            compare_source(w, copy, lane, all->seen[copy - all->v][lane]);
        if (!(bits & DEVICE_CHECK_INIT))
            continue;
        const struct sim_buffer *b = n ? sim_mem_near(w->block->launch->memory, copy->source[lane])
                                       : NULL;
        check_copy_defined(s, copy->to[lane], b ? b->shadow : NULL,
                           b ? copy->source[lane] - b->base : 0, n);
        check_copy_defined(s, copy->to[lane] + n, NULL, 0, copy->size - n);
    }
}

void check_abandon_copies(struct sim_warp *w)
{
    const struct sim_copies *all = w->copies;
    for (uint32_t i = all ? all->head : 0; all && i < all->n; i++)
        FOR_LANES(lane, all->v[i].lanes) {
            const struct check_side who = {all->v[i].op, w->index * SIM_LANES + lane, 0};
            check_copy_ends(of(w), &w->block->check->shared, who, all->v[i].to[lane],
                            all->v[i].size);
        }
}

/* ---- matrices -------------------------------------------------------------------------------- */

const struct sim_op *check_on_matrix(struct sim_warp *w, const struct sim_op *op)
{
    struct check_op *o = &of(w)->op[op - w->code];
    const uint32_t n = op->round & SIM_MATRIX_COUNT;
    if (check_guarded(w, op) == UINT32_MAX) {
        struct check_aim aim;
        w->em = (uint32_t)(((uint64_t)1 << 8 * n) - 1); /* the lanes that have addresses */
        w->block->launch->build->check_aim(w, op, &aim);
        const bool strays = o->var && check_strays(w, o, op, &aim);
        if (!strays && w->block->check)
            check_watch(w, o, op, &aim);
        w->em = w->mask;
        if (strays)
            return NULL;
    }
    return o->fn[w->part](w, op);
}
