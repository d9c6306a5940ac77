/* Rows of any length, one vector for each thread after the other: every level reads the row again, from the second on
 * mostly in the cache. */
#include <config.h>

#include "lower/row.h"

/* The vectors at pos, pos + stride ... of one round. */
static void one_round(struct row_gen *r, uint32_t level, struct row_fold *f, struct cg_val pos,
                      uint32_t n)
{
    struct cg *g = r->g;
    row_forget(r, false);
    row_forget(r, true);
    r->serial += ROW_HELD * ROW_VECTOR;
    for (uint32_t i = 0; i < n; i++) {
        struct cg_val before = cg_binary(g, OP_MUL, r->stride, cg_int(r->ct, i));
        int64_t known;
        bool fixed = cg_is_const(before, &known);
        struct cg_val at = fixed ? pos : cg_binary(g, OP_ADD, pos, before);
        r->start[i].from = cg_binary(g, OP_MUL, at, cg_int(r->ct, r->plan.vector));
        r->start[i].add = fixed ? (uint32_t)known * r->plan.vector : 0;
        r->has[i] = -1;
    }
    row_load(r, level, false, 0, n);
    for (uint32_t vec = 0; vec < n; vec++) {
        row_load(r, level, true, vec, vec + 1);
        for (uint32_t lane = 0; lane < r->plan.vector && f; lane++) {
            row_at(r, vec, lane);
            row_fold_lane(f, -1);
        }
        if (!f)
            row_store(r, vec);
    }
}

/* Rounds of n vectors for each thread, from pos on, as long as all of them are there. */
static void rounds(struct row_gen *r, uint32_t level, struct row_fold *f, int32_t pos, uint32_t n)
{
    struct cg *g = r->g;
    struct cg_val at = cg_value(r->ct, pos);
    struct cg_val all = cg_binary(g, OP_MUL, r->stride, cg_int(r->ct, n - 1));
    struct cg_val step = cg_binary(g, OP_MUL, r->stride, cg_int(r->ct, n));
    uint32_t head = cg_label(g, "round"), end = cg_label(g, "done");
    cg_place(g, head);
    cg_loop_head(g);
    struct cg_nest nest;
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, pos);
    size_t mark = cg_scope_open(g);
    struct cg_val last = cg_binary(g, OP_ADD, at, all);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, last, r->vectors)), true, end);
    one_round(r, level, f, at, n);
    struct cg_since since = cg_now(g);
    cg_move_new(g, pos, cg_binary(g, OP_ADD, at, step), since);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
}

static void pass(struct row_gen *r, uint32_t level, struct row_fold *f)
{
    struct cg *g = r->g;
    int32_t pos = cg_new_mutable(g, r->ct);
    cg_move(g, pos, r->thread);
    if (r->plan.held > 1)
        rounds(r, level, f, pos, r->plan.held);
    rounds(r, level, f, pos, 1);
}

void row_looped(struct row_gen *r)
{
    r->start[0] = (struct row_start){.from = cg_int(r->ct, 0)};
    row_load_scalars(r);
    for (uint32_t level = 0; level < r->row->nlevel; level++) {
        struct row_fold f = row_fold_begin(r, level);
        pass(r, level, &f);
        row_fold_end(&f);
    }
    row_store_scalars(r);
    if (r->row->bits_out)
        pass(r, r->row->nlevel, NULL);
}
