/* Rows of which j were left out that they needed (chain.h).
 *
 * A stream that leaves j out, since their weights are 0 (chain/skip.c), lacks 0 times v, which is
 * NaN where v is infinite or NaN. Some block of the batch brings that v, for rows that do not leave
 * it out; its sums become NaN, so that it knows. Where none does, between the rows' ranges and
 * around all of them, blocks look at v for this alone. Since neighbouring rows' ranges and what is
 * between them hang together, that is every v.
 *
 * Whoever meets one marks all rows of the batch, in a word for each 128 of them. The launch behind
 * finds the words 0, which is all that it does as a rule, or it computes the rows by
 * chain_any_row() and clears the word.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"

enum { LANES = 32, WARPS = CHAIN_REPAIR_BLOCK / LANES, HIGH = CHAIN_HIGH };
_Static_assert(WARPS *HIGH * 16 == CHAIN_REPAIR_BLOCK, "a row for each thread");

static struct extent parts_of(struct cg *g, const struct chain_tensor *t)
{
    return extent_divided(g, chain_rows_index(t, false), CHAIN_REPAIR_BLOCK);
}

static struct lang_expr *words_of(struct cg *g, const struct chain_tensor *t)
{
    const struct lang_symbol *i = chain_rows_index(t, false);
    struct lang_expr *n = i ? lx_ceil_div_int(g->a, i->dims[0], CHAIN_REPAIR_BLOCK)
                            : lx_int(g->a, 1);
    for (uint32_t a = 0; a < t->f->nrow; a++)
        if (a != t->i)
            n = lx_mul(g->a, n, t->f->row[a]->dims[0]);
    return n;
}

void chain_repair_begin(struct cg *g, struct chain_tensor *t)
{
    struct lang_expr *n = words_of(g, t);
    t->repairs = cg_temp(g, "repairs", DT_U32, 1, &n, true);
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* Begins a loop over u32 from `first` on: the variable. */
static struct cg_val begin_loop(struct cg *g, struct cg_for *l, struct cg_val first,
                                const struct cg_val *end)
{
    cg_for_open(g, l, "look", "looked", first, end);
    return cg_freeze(g, cg_value(DT_U32, l->at));
}

static void end_loop(struct cg *g, struct cg_for *l, struct cg_val step, const struct cg_val *end)
{
    cg_for_close(g, l, step, end);
    cg_loop_head(g); /* either way has assigned registers */
}

/* Marks all rows of a batch, the values of whose axes are these. */
static void mark_batch(struct chain_tile *x, const struct cg_val *row)
{
    struct cg *g = x->g;
    const struct chain_form *f = x->t->f;
    const struct extent parts = parts_of(g, x->t);
    struct cg_val batch = cg_int(DT_I64, 0);
    struct cg_for l;
    for (uint32_t a = 0; a < f->nrow; a++) {
        if (a == x->t->i)
            continue;
        const struct cg_val own = cg_convert(g, row[a], DT_I64);
        batch = cg_binary(g, OP_MUL, batch, extent_of(g, f->row[a]).v);
        batch = cg_binary(g, OP_ADD, batch, own);
    }
    batch = cg_freeze(g, cg_binary(g, OP_MUL, batch, parts.v));
    const struct cg_val end = extent_u32(g, parts.v), part = begin_loop(g, &l, x->lane, &end);
    const struct cg_val word = cg_binary(g, OP_ADD, batch, cg_convert(g, part, DT_I64));
    PTX(&g->b, "red.relaxed.gpu.global.or.b32", cg_mem(cg_address(g, x->t->repairs, word)),
        ptx_imm(1));
    end_loop(g, &l, cg_u32(LANES), &end);
}

/* The batches of all heads of a group. */
static void mark_group(struct chain_tile *x)
{
    struct cg *g = x->g;
    const struct chain_pack *p = &x->t->pack;
    const struct cg_val first = extent_u32(g, x->row[p->axis]);
    const struct cg_val heads = extent_u32(g, extent_of(g, x->t->f->row[p->axis]).v);
    struct cg_val row[CHAIN_AXES], end = extent_u32(g, extent_of(g, p->member).v);
    struct cg_for l;
    memcpy(row, x->row, sizeof row);
    end = cg_freeze(g, cg_minmax(g, false, cg_add(g, first, end), heads));
    row[p->axis] = cg_index(g, begin_loop(g, &l, first, &end));
    mark_batch(x, row);
    end_loop(g, &l, cg_u32(1), &end);
}

void chain_repair_ask(struct chain_tile *x)
{
    if (x->packs)
        mark_group(x);
    else
        mark_batch(x, x->row);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* The warp's number among those that share the work. */
struct crew {
    struct cg_val number, of; /* u32 */
    int32_t sum;              /* mutable, f32: NaN once a v was infinite or NaN */
};

/* 0 times what the streams multiply at j, in the lane's columns. */
static void look_at(struct chain_tile *x, const struct crew *c, struct cg_val j)
{
    struct cg *g = x->g;
    const struct chain_form *f = x->t->f;
    const struct cg_val end = extent_of(g, f->column).v;
    cg_bind(g, f->j, cg_index(g, j), false);
    for (uint32_t k = 0; k < (x->columns + LANES - 1) / LANES; k++) {
        const struct cg_val column = cg_index(g, cg_add(g, x->lane, cg_u32(k * LANES)));
        const struct cg_val exists = cg_binary(g, OP_LT, column, end);
        const struct cg_guard before = cg_guard(g, exists, true);
        const size_t bound = g->bindings.n;
        cg_bind(g, f->column, column, false);
        for (uint32_t n = 0; n < x->t->ncolumn; n++) {
            const struct chain_stream *s = &f->stream[x->t->column[n].stream];
            cg_bind(g, s->part[0].sym, cg_float(g, s->part[0].e->type, 0), false);
            const struct cg_val v = cg_convert(g, cg_expr(g, s->term), DT_F32);
            const struct cg_val none = cg_float(g, DT_F32, 0);
            cg_move(g, c->sum,
                    cg_binary(g, OP_ADD, cg_value(DT_F32, c->sum),
                              cg_select(g, cg_reg(g, exists), v, none)));
        }
        g->bindings.n = bound;
        cg_unguard(g, before);
    }
}

/* The crew looks at from <= j < to, all u32. */
static void look(struct chain_tile *x, const struct crew *c, struct cg_val from, struct cg_val to)
{
    struct cg *g = x->g;
    const size_t bound = g->bindings.n;
    struct cg_for l;
    int64_t none;
    if (cg_is_const(to, &none) && none == 0)
        return;
    const struct cg_val j = begin_loop(g, &l, cg_add(g, from, c->number), &to);
    g->converts = true;
    chain_bind_row(x, 0);
    look_at(x, c, j);
    g->converts = false;
    g->bindings.n = bound;
    end_loop(g, &l, c->of, &to);
}

/* The least j that a stream has for row r (i64) of the batch, or where the last one ends: u32. */
static struct cg_val edge(struct chain_tile *x, struct cg_val r, bool is_high)
{
    struct cg *g = x->g;
    const struct chain_form *f = x->t->f;
    const size_t bound = g->bindings.n;
    struct cg_val all = {.type = DT_VOID};
    chain_bind_row(x, 0);
    if (x->packs) {
        const struct chain_row row = chain_row_of(x, extent_u32(g, r));
        chain_bind(x, &row);
    } else if (chain_rows_index(x->t, false)) {
        cg_bind(g, chain_rows_index(x->t, false), cg_index(g, r), false);
    }
    for (uint32_t n = 0; n < f->nstream; n++) {
        const struct cg_val v = chain_bound(x, is_high ? f->stream[n].high : f->stream[n].low);
        all = n ? cg_minmax(g, is_high, all, v) : v;
    }
    g->bindings.n = bound;
    return cg_freeze(g, cg_convert(g, all, DT_U32));
}

/* The j between the block's and the next rows', whichever come first. */
static void look_between(struct chain_tile *x, const struct crew *c)
{
    struct cg *g = x->g;
    struct chain_tile next = *x;
    struct cg_val from, to;
    int64_t zero;
    if (cg_is_const(x->all_from, &zero) && zero == 0)
        return; /* ranges begin together */
    next.block_first = cg_add(g, x->block_first, cg_u32(x->block_rows));
    chain_tile_reach(&next, &from, &to);
    from = cg_freeze(g, cg_convert(g, from, DT_U32));
    to = cg_freeze(g, cg_minmax(g, true, cg_convert(g, to, DT_U32), from));
    look(x, c, cg_freeze(g, cg_minmax(g, true, x->all_to, x->all_from)), from);
    look(x, c, to, x->all_from);
}

/* The crew of all warps of the block, and of all of the batch. */
static void number_warps(struct chain_tile *x, struct crew *block, struct crew *batch)
{
    struct cg *g = x->g;
    const uint32_t rows = x->high * 16, warps = x->block_rows / rows;
    const struct extent tiles = extent_divided(g, chain_rows_index(x->t, x->packs), x->block_rows);
    const struct cg_val before = cg_binary(g, OP_SUB, x->first, x->block_first);
    const struct cg_val tile = cg_binary(g, OP_DIV, x->block_first, cg_u32(x->block_rows));
    const struct cg_val share = cg_mul(g, x->share, warps);
    block->of = cg_freeze(g, cg_mul(g, x->shares, warps));
    block->number = cg_freeze(g, cg_add(g, share, cg_binary(g, OP_DIV, before, cg_u32(rows))));
    batch->of = cg_freeze(g, cg_binary(g, OP_MUL, block->of, extent_u32(g, tiles.v)));
    batch->number = cg_freeze(g, cg_add(g, cg_binary(g, OP_MUL, tile, block->of), block->number));
}

void chain_repair_cover(struct chain_tile *x)
{
    struct cg *g = x->g;
    const int32_t met = cg_new(g, DT_BOOL);
    const uint32_t none = cg_label(g, "none");
    struct crew block, batch;
    block.sum = batch.sum = cg_new_mutable(g, DT_F32);
    cg_move(g, block.sum, cg_float(g, DT_F32, 0));
    number_warps(x, &block, &batch);
    const struct extent rows = extent_of(g, chain_rows_index(x->t, x->packs));
    const struct cg_val last = cg_binary(g, OP_SUB, rows.v, cg_int(DT_I64, 1));
    look_between(x, &block);
    look(x, &batch, cg_u32(0), edge(x, cg_int(DT_I64, 0), false));
    look(x, &batch, edge(x, last, true), x->end);
    const struct cg_val is_met =
        cg_binary(g, OP_NE, cg_value(DT_F32, block.sum), cg_float(g, DT_F32, 0));
    warp_vote(g, false, met, cg_reg(g, is_met));
    cg_jump_if(g, met, false, none);
    const size_t mark = cg_scope_open(g);
    chain_repair_ask(x);
    cg_scope_close(g, mark);
    cg_place(g, none);
}

/* ---- the launch behind ----------------------------------------------------------------------- */

struct lang_expr *chain_repair(struct cg *g, const struct chain_tensor *t)
{
    struct chain_tile x = {.g = g, .t = t, .high = HIGH};
    const struct chain_form *f = t->f;
    const struct cg_val thread = cg_special(g, SP_TID_X), block = cg_special(g, SP_CTAID_X);
    const struct cg_val warp = cg_binary(g, OP_SHR, thread, cg_u32(5));
    const struct cg_place_of word = cg_address(g, t->repairs, cg_index(g, block));
    const int32_t marked = cg_new(g, DT_U32);
    const uint32_t first = cg_label(g, "first");
    struct cg_val n = cg_index(g, block), part;
    PTX(&g->b, "ld.global.u32", ptx_r(marked), cg_mem(word));
    g->exit_used = true;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, cg_value(DT_U32, marked), cg_u32(0))), true,
               g->exit);
    PTX(&g->b, "bar.sync", ptx_imm(0)); /* all have seen it */
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, thread, cg_u32(0))), true, first);
    PTX(&g->b, "st.global.u32", cg_mem(word), ptx_imm(0));
    cg_place(g, first);
    extent_split(g, n, parts_of(g, t), &n, &part);
    for (uint32_t a = f->nrow; a-- > 0;)
        if (a != t->i)
            extent_split(g, n, extent_of(g, f->row[a]), &n, &x.row[a]);
    x.lane = cg_binary(g, OP_AND, thread, cg_u32(LANES - 1));
    const struct cg_val before = cg_mul(g, warp, HIGH * 16);
    x.first = cg_freeze(g, cg_add(g, cg_mul(g, extent_u32(g, part), CHAIN_REPAIR_BLOCK), before));
    chain_tile_anew(&x);
    return words_of(g, t);
}
