/* What becomes of a warp's rows after their last tile (chain.h).
 *
 * Products are of finite numbers: where a row's maximum stays -inf, or its sums are infinite or
 * NaN, chain_any_row() computes it anew, which does what the equations say of such. That matters
 * since 0 times what lies behind a mask is NaN where that is infinite, and a term that the sum does
 * not have is not.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/cg/sync.h"

#include <math.h>

/* Folds what the row's four lanes have. */
static void complete_row(struct chain_tile *x, uint32_t n, uint32_t row)
{
    struct cg_val v = chain_tile_state(x, n, row);
    for (int64_t lane = 1; lane < 4; lane *= 2)
        v = chain_over_lanes(x->g, chain_fold(chain_tile_stream(x, n)), v, lane);
    cg_move(x->g, x->state[n][row], v);
}

/* What was folded in each lane becomes the row's. */
static void complete(struct chain_tile *x)
{
    for (uint32_t n = 0; n < x->t->f->nstream; n++) {
        for (uint32_t row = 0; row < chain_tile_rows(x) && !chain_tile_stream(x, n)->has_column;
             row++)
            if (!chain_is_maximum(x, n))
                complete_row(x, n, row);
    }
    chain_fall_meet(x);
}

/* Has the row terms of stream n, although its maximum is -inf, or so? m: what the terms subtract.
 */
static struct cg_val is_lost(struct chain_tile *x, uint32_t n, uint32_t row, struct cg_val m)
{
    struct cg *g = x->g;
    const struct cg_val least = cg_float(g, m.type, -INFINITY);
    if (!x->t->f->exact) {
        const struct cg_val any = cg_binary(g, OP_LT, x->low[n][row], x->high_of[n][row]);
        return cg_binary(g, OP_LAND, cg_binary(g, OP_EQ, m, least), any);
    }
    /* terms were left out on the assumption that it is a number */
    const struct chain_stream *e = &x->t->f->exact->stream[n];
    const struct cg_val most = cg_float(g, m.type, INFINITY);
    const struct cg_val below = cg_binary(g, OP_LT, m, most);
    const struct cg_val good = cg_binary(g, OP_LAND, cg_binary(g, OP_GT, m, least), below);
    const struct cg_val high = chain_bound(x, e->high);
    const struct cg_val some = cg_binary(g, OP_LT, chain_bound(x, e->low), high);
    return cg_binary(g, OP_LAND, cg_unary(g, OP_NOT, good), some);
}

/* 0, or NaN where a sum is not finite. Several chains of fma, since each waits for the one before.
 */
static struct cg_val find_infinite(struct chain_tile *x)
{
    enum { CHAINS = 4 };
    struct cg *g = x->g;
    struct cg_val all[CHAINS];
    for (uint32_t i = 0; i < CHAINS; i++)
        all[i] = i || x->bad < 0 ? chain_f32(g, 0) : cg_value(DT_F32, x->bad);
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        for (uint32_t w = 0; w < x->high * x->columns / 2; w++)
            if (chain_tile_uses(x, w))
                all[w % CHAINS] =
                    cg_fma(g, cg_value(DT_F32, x->sum[c][w]), chain_f32(g, 0), all[w % CHAINS]);
    for (uint32_t i = 1; i < CHAINS; i++)
        all[0] = cg_binary(g, OP_ADD, all[0], all[i]);
    return all[0];
}

/* Predicates: one of the lane's rows has such a maximum; sums that are not finite. */
static struct cg_val find_special(struct chain_tile *x, struct cg_val *infinite)
{
    struct cg *g = x->g;
    const struct cg_val sum = find_infinite(x);
    struct cg_val special = cg_bool(g, false);
    for (uint32_t n = 0; n < x->t->f->nstream; n++) {
        const struct chain_stream *s = chain_tile_stream(x, n);
        for (uint32_t row = 0; row < chain_tile_rows(x) && s->running >= 0; row++) {
            const size_t bound = g->bindings.n;
            chain_bind_row(x, row);
            const struct cg_val m =
                chain_base(g, x->t->f, s, chain_tile_state(x, (uint32_t)s->running, row));
            special = cg_binary(g, OP_LOR, special, is_lost(x, n, row, m));
            if (chain_is_rough(x) && chain_is_plain(s))
                special = cg_binary(g, OP_LOR, special, chain_is_coarse(x, m));
            g->bindings.n = bound;
        }
    }
    *infinite = cg_binary(g, OP_NE, sum, chain_f32(g, 0));
    return special;
}

/* Does the predicate hold in a lane of the warp? */
static int32_t in_any_lane(struct cg *g, struct cg_val p)
{
    const int32_t own = cg_reg(g, p), any = cg_new(g, DT_BOOL);
    warp_vote(g, false, any, own);
    return any;
}

/* Where sums are not finite, whatever was left out of other rows may not have been 0. */
static void ask_for_repair(struct chain_tile *x, struct cg_val infinite)
{
    struct cg *g = x->g;
    const uint32_t finite = cg_label(g, "finite");
    if (!x->t->repairs)
        return;
    cg_jump_if(g, in_any_lane(g, infinite), false, finite);
    const size_t mark = cg_scope_open(g);
    chain_repair_ask(x);
    cg_scope_close(g, mark);
    cg_place(g, finite);
}

void chain_tile_end(struct chain_tile *x)
{
    struct cg *g = x->g;
    const uint32_t usual = cg_label(g, "usual"), end = cg_label(g, "stored");
    complete(x);
    struct cg_val infinite, special = find_special(x, &infinite);
    special = cg_binary(g, OP_LOR, special, infinite);
    cg_jump_if(g, in_any_lane(g, special), false, usual);
    size_t mark = cg_scope_open(g);
    ask_for_repair(x, infinite);
    chain_tile_anew(x);
    cg_scope_close(g, mark);
    cg_jump(g, end);
    cg_place(g, usual);
    mark = cg_scope_open(g);
    chain_fall_settle(x, true);
    chain_store(x);
    cg_scope_close(g, mark);
    cg_place(g, end);
}
