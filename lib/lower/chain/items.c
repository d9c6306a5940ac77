/* The rows that a block takes (chain/wgmma.h). An item is a tile of rows of one batch; blocks are
 * as many as the device has multiprocessors, and take items by turns.
 *
 * Where items take as long as each other, block b takes every item whose number is b more than a
 * multiple of the blocks', and those of a batch come side by side: what they read is in the L2
 * cache then. Where they don't, the first item is the block's number, and the next one is whatever
 * comes next on a counter: the producer takes it while the one before is computed, and leaves its
 * number in shared memory. The longest items come first, of as many batches together as the cache
 * has room for. The counter begins with 0 and wraps around at the last item.
 *
 * Batches that read the same elements of a sheet come side by side, too, so that these come from
 * memory once: axes of a row that no sheet has are those by which neighbours differ.
 */
#include <config.h>

#include "lower/chain/wgmma.h"

bool chain_wgmma_differs(const struct chain_tensor *t)
{
    const struct chain_form *f = t->f;
    for (uint32_t i = 0; i < f->nstream; i++) {
        const struct chain_stream *s = &f->stream[i];
        if (chain_mentions(s->high, f->row[t->i]) ||
            (s->low && chain_mentions(s->low, f->row[t->i])))
            return true;
    }
    return false;
}

/* Do elements of sheets differ by the row's axis a? */
static bool has_axis(const struct chain_wgmma *k, uint32_t a)
{
    bool has = false;
    for (uint32_t n = 0; n < k->t->nalong; n++)
        has |= k->t->along[n].is_sheet && chain_wgmma_brings(k, n) &&
               chain_mentions(k->t->along[n].e, k->t->f->row[a]);
    return has;
}

/* Do batches share elements of sheets? */
static bool shares_sheets(const struct chain_wgmma *k)
{
    bool shares = false;
    for (uint32_t a = 0; a < k->t->f->nrow; a++)
        shares |= a != k->t->i && k->p->sheets && !has_axis(k, a);
    return shares;
}

/* Batches whose keys and values the cache has room for, no more than there are. */
static struct cg_val near_of(struct chain_wgmma *k)
{
    /* Bytes, of 50 MB: blocks are not all at the same place. Those that wait for each other are,
     * and each waits the less, the fewer are before it. */
    enum { CACHE = 16 << 20, ACROSS = 64 << 20 };
    struct cg *g = k->g;
    const bool by_turns = k->t->across && !k->t->across->any;
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        bytes += chain_wgmma_terms_of(k, i) * chain_size(&k->t->score[i], MATMUL_B);
    for (uint32_t i = 0; i < k->t->ncolumn; i++)
        bytes += k->p->columns * chain_size(&k->t->column[i], MATMUL_B);
    struct cg_val n = cg_u32(1);
    if (k->t->f->ends)
        n = extent_u32(g, extent_of(g, k->t->f->j).v);
    n = cg_binary(g, OP_DIV, cg_u32((by_turns ? ACROSS : CACHE) / bytes),
                  cg_minmax(g, true, n, cg_u32(1)));
    return cg_minmax(g, true, cg_minmax(g, false, n, k->heads), cg_u32(1));
}

/* How many there are. */
void chain_wgmma_count_items(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct chain_form *f = k->t->f;
    struct extent n = extent_constant(g, 1);
    k->tiles = extent_divided(g, f->row[k->t->i], chain_wgmma_block_rows(k->p));
    for (uint32_t a = 0; a < f->nrow; a++)
        if (a != k->t->i)
            n = extent_times(g, n, extent_of(g, f->row[a]));
    k->heads = extent_u32(g, n.v);
    n = extent_times(g, n, k->tiles);
    k->items = extent_u32(g, n.v);
    struct lang_expr *room = lx_multiprocessors(g->a);
    if (k->p->each > 1)
        room = lx_mul_int(g->a, room, k->p->each);
    k->grid = k->p->own ? n.e : lx_min(g->a, n.e, room);
    k->mixes = k->fetches || shares_sheets(k);
    k->near = k->mixes ? cg_freeze(g, near_of(k)) : cg_u32(1);
}

/* Item n's batch and its tile, counted from the last. */
static void find_order(struct chain_wgmma *k, struct cg_val n, struct cg_val *batch,
                       struct cg_val *tile)
{
    struct cg *g = k->g;
    const struct cg_val tiles = extent_u32(g, k->tiles.v);
    if (!k->mixes) {
        extent_split(g, cg_index(g, n), k->tiles, batch, tile);
        *tile = extent_u32(g, *tile);
        return;
    }
    const struct cg_val each = cg_binary(g, OP_MUL, tiles, k->near);
    const struct cg_val first = cg_binary(g, OP_MUL, cg_binary(g, OP_DIV, n, each), k->near);
    const struct cg_val left = cg_binary(g, OP_SUB, k->heads, first);
    const struct cg_val side = cg_minmax(g, false, left, k->near);
    const struct cg_val rest = cg_binary(g, OP_MOD, n, each);
    *tile = cg_binary(g, OP_DIV, rest, side);
    *batch = cg_index(g, cg_add(g, first, cg_binary(g, OP_MOD, rest, side)));
}

/* Finds the row's axes of a batch. */
static void find_axes(struct chain_wgmma *k, struct cg_val n)
{
    const struct chain_form *f = k->t->f;
    uint32_t left = f->nrow - 1;
    for (uint32_t has = 0; has < 2; has++)
        for (uint32_t a = f->nrow; a-- > 0;) {
            if (a == k->t->i || (k->p->sheets && has_axis(k, a)) != has)
                continue;
            if (--left)
                extent_split(k->g, n, extent_of(k->g, f->row[a]), &n, &k->x.row[a]);
            else
                k->x.row[a] = n;
        }
}

/* The rows of item n: those of most terms first, where ranges end later in later rows, or where
 * they begin later, as those do that have a sum across. */
static void find_item(struct chain_wgmma *k, struct cg_val item)
{
    struct cg *g = k->g;
    struct cg_val n, tile;
    find_order(k, item, &n, &tile);
    find_axes(k, n);
    const struct cg_val last = cg_binary(g, OP_SUB, extent_u32(g, k->tiles.v), cg_u32(1));
    tile = k->t->across ? tile : cg_binary(g, OP_SUB, last, tile);
    k->x.block_first = cg_freeze(g, cg_mul(g, tile, chain_wgmma_block_rows(k->p)));
    k->x.first = cg_add(g, k->x.block_first, k->before);
}

/* The tiles of j that have terms of the item's rows. */
void chain_wgmma_find_tiles(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct cg_val wide = cg_u32(k->p->wide), from = k->x.from, to = k->x.to;
    k->first = cg_freeze(g, cg_mul(g, cg_binary(g, OP_DIV, from, wide), k->p->wide));
    const struct cg_val all = cg_add(g, cg_binary(g, OP_SUB, to, k->first), cg_u32(k->p->wide - 1));
    const struct cg_val some = cg_binary(g, OP_LT, from, to);
    const struct cg_val n = cg_binary(g, OP_DIV, all, wide);
    int64_t known;
    k->count = cg_is_const(some, &known) && known ? n : cg_select(g, cg_reg(g, some), n, cg_u32(0));
    k->count = cg_freeze(g, k->count);
}

struct cg_val chain_wgmma_first_j(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    if (!k->t->across)
        return k->first;
    const struct cg_val more = cg_mul(g, cg_binary(g, OP_SUB, k->count, cg_u32(1)), k->p->wide);
    return cg_add(g, k->first, more);
}

struct cg_val chain_wgmma_next_j(struct chain_wgmma *k, struct cg_val j, bool before)
{
    const bool back = before != (k->t->across != NULL);
    return cg_binary(k->g, back ? OP_SUB : OP_ADD, j, cg_u32(k->p->wide));
}

/* Takes the next item from the counter, and leaves its number for others. */
static void fetch(struct chain_wgmma *k, int32_t at)
{
    struct cg *g = k->g;
    const struct ring *r = &k->of_item.ring;
    struct lang_expr *one = lx_int(g->a, 1);
    const struct lang_symbol *taken = cg_temp(g, "taken", DT_U32, 1, &one, true);
    const struct cg_place_of counter = cg_address(g, taken, cg_index(g, cg_u32(0)));
    const struct cg_val is_first = cg_binary(g, OP_EQ, r->lane, cg_u32(0));
    const uint32_t fetched = cg_label(g, "fetched");
    ring_wait(r, RING_EMPTY);
    cg_jump_if(g, cg_reg(g, is_first), false, fetched);
    const size_t mark = cg_scope_open(g);
    PTX(&g->b, "atom.global.inc.u32", ptx_r(at), cg_mem(counter),
        cg_op(g, cg_binary(g, OP_SUB, k->items, cg_u32(1))));
    CG_ASSIGN(g, at, "add.s32", ptx_r(at), cg_op(g, cg_special(g, SP_NCTAID_X)));
    PTX(&g->b, "st.shared.u32", ptx_mem(cg_reg(g, ring_stage(r)), 0), ptx_r(at));
    PTX(&g->b, "mbarrier.arrive.shared::cta.b64", ptx_sink(), ptx_mem(r->full, 0));
    cg_scope_close(g, mark);
    cg_place(g, fetched);
    cg_loop_head(g);
}

/* The next item: `at` becomes its number, the same in all lanes. */
static void go_on(struct chain_wgmma *k, bool leads, int32_t at)
{
    struct cg *g = k->g;
    const struct ring *r = &k->of_item.ring;
    const struct ptx_operand all = ptx_imm(UINT32_MAX);
    if (!k->fetches) {
        CG_ASSIGN(g, at, "add.s32", ptx_r(at), cg_op(g, cg_special(g, SP_NCTAID_X)));
        return;
    }
    if (leads) {
        fetch(k, at);
    } else {
        ring_wait(r, RING_FULL);
        CG_ASSIGN(g, at, "ld.shared.u32", ptx_mem(cg_reg(g, ring_stage(r)), 0));
    }
    cg_move(g, at,
            shuffle(g, SHUFFLE_IDX, cg_value(DT_U32, at), ptx_imm(0), ptx_imm(31), all, NULL));
    if (!leads) {
        ring_note(r, &k->of_item.release);
        ring_release(r, &k->of_item.release, k->of_item.release.mine);
    }
    ring_next(r);
}

void chain_wgmma_for_items(struct chain_wgmma *k, bool leads, void (*body)(struct chain_wgmma *k))
{
    struct cg *g = k->g;
    const uint32_t head = cg_label(g, "item"), done = cg_label(g, "items");
    const int32_t at = cg_mutable(g, cg_special(g, SP_CTAID_X));
    struct chain_store *all[CHAIN_STORES];
    const uint32_t stores = chain_wgmma_stores(k, all);
    struct cg_nest nest;
    if (k->fetches && !leads)
        k->of_item.release = ring_release_here(&k->of_item.ring);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    for (uint32_t i = 0; i < stores; i++)
        ring_varies(&all[i]->ring, &nest);
    if (k->turn.g)
        ring_varies(&k->turn, &nest);
    const struct cg_val n = cg_freeze(g, cg_value(DT_U32, at));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, n, k->items)), false, done);
    find_item(k, n);
    body(k);
    go_on(k, leads, at);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}
