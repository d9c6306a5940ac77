/* Going through positions with several accesses in flight.
 *
 *     while at + (unroll - 1) * step < end: load them all, take them all
 *     then the rest likewise: loads while there is a position, each in a block of its own but none
 *     waiting for another; the elements are taken, in order, behind the last load
 */
#include <config.h>

#include "lower/reduce/reduce.h"

/* at, at + step, ...: n positions. */
static void positions(struct cg *g, const struct reduce_sweep *s, struct cg_val at, uint32_t n,
                      struct cg_val *p)
{
    for (uint32_t u = 0; u < n; u++) {
        p[u] = at;
        at = cg_binary(g, OP_ADD, at, s->step);
    }
}

static void prepare(struct reduce_sweep *s, const struct cg_val *p, uint32_t n)
{
    for (uint32_t u = 0; u < n; u++) {
        s->at = p[u];
        s->advance(s->ctx, u, u == 0);
    }
}

static void full_batches(struct cg *g, struct reduce_sweep *s, int32_t at, uint32_t rest)
{
    struct cg_val p[REDUCE_UNROLL + 1];
    uint32_t head = cg_label(g, "batch");
    struct cg_val ahead = cg_binary(g, OP_MUL, s->step, cg_int(DT_I64, s->unroll - 1));
    cg_place(g, head);
    cg_loop_head(g);
    struct cg_nest nest;
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    for (uint32_t i = 0; i < s->nstate; i++)
        cg_nest_varies(g, &nest, s->state[i]);
    size_t mark = cg_scope_open(g);
    struct cg_val now = cg_value(DT_I64, at), last = cg_binary(g, OP_ADD, now, ahead);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, last, s->end)), true, rest);
    positions(g, s, now, s->unroll + 1, p);
    prepare(s, p, s->unroll);
    for (uint32_t u = 0; u < s->unroll; u++)
        s->load(s->ctx, u);
    for (uint32_t u = 0; u < s->unroll; u++)
        s->take(s->ctx, u);
    if (s->leave)
        s->leave(s->ctx);
    cg_move(g, at, p[s->unroll]);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

static void last_batch(struct cg *g, struct reduce_sweep *s, int32_t at)
{
    struct cg_val p[REDUCE_UNROLL];
    int32_t exists[REDUCE_UNROLL];
    uint32_t n = s->unroll - 1, take = cg_label(g, "take"), done = cg_label(g, "done");
    size_t mark = cg_scope_open(g);
    positions(g, s, cg_value(DT_I64, at), n, p);
    prepare(s, p, n);
    for (uint32_t u = 0; u < n; u++)
        exists[u] = cg_reg(g, cg_binary(g, OP_LT, p[u], s->end));
    for (uint32_t u = 0; u < n; u++) {
        cg_jump_if(g, exists[u], false, u ? take : done);
        s->load(s->ctx, u);
    }
    cg_place(g, take);
    for (uint32_t u = 0; u < n; u++) {
        if (u)
            cg_jump_if(g, exists[u], false, done);
        s->take(s->ctx, u);
    }
    cg_scope_close(g, mark);
    cg_place(g, done);
}

void reduce_sweep(struct cg *g, struct reduce_sweep *s)
{
    int32_t at = cg_new_mutable(g, DT_I64);
    uint32_t rest = cg_label(g, "rest");
    cg_move(g, at, s->start);
    full_batches(g, s, at, rest);
    cg_place(g, rest);
    if (s->unroll > 1)
        last_batch(g, s, at);
}
