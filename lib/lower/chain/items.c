/* The rows that a block takes (chain/wgmma.h). An item is a tile of rows of one batch, and blocks
 * take them by turns. Where items differ, by the rows' ranges, the block that was first in one
 * round is last in the next. */
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

/* How many there are. */
void chain_wgmma_count_items(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct chain_form *f = k->t->f;
    struct extent n = k->tiles = extent_divided(g, f->row[k->t->i], chain_wgmma_block_rows(k->p));
    struct lang_expr *items = n.e;
    for (uint32_t a = 0; a < f->nrow; a++) {
        if (a == k->t->i)
            continue;
        const struct extent e = extent_of(g, f->row[a]);
        items = lx_mul(g->a, items, e.e);
        n = extent_times(g, n, e);
    }
    k->items = extent_u32(g, n.v);
    k->grid = k->p->own ? items : lx_min(g->a, items, lx_multiprocessors(g->a));
}

/* The rows of item n: those of most terms first, where ranges end later in later rows. */
static void find_item(struct chain_wgmma *k, struct cg_val item)
{
    struct cg *g = k->g;
    const struct chain_form *f = k->t->f;
    struct cg_val n = cg_index(g, item), tile;
    uint32_t left = f->nrow - 1;
    if (left)
        extent_split(g, n, k->tiles, &n, &tile);
    else
        tile = n;
    for (uint32_t a = f->nrow; a-- > 0;) {
        if (a == k->t->i)
            continue;
        if (--left)
            extent_split(g, n, extent_of(g, f->row[a]), &n, &k->x.row[a]);
        else
            k->x.row[a] = n;
    }
    tile = extent_u32(g, tile);
    tile = cg_binary(g, OP_SUB, cg_binary(g, OP_SUB, extent_u32(g, k->tiles.v), cg_u32(1)), tile);
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

void chain_wgmma_for_items(struct chain_wgmma *k, void (*body)(struct chain_wgmma *k))
{
    struct cg *g = k->g;
    const struct cg_val block = cg_special(g, SP_CTAID_X), blocks = cg_special(g, SP_NCTAID_X);
    const uint32_t head = cg_label(g, "item"), done = cg_label(g, "items");
    const int32_t at = ring_mutable(g, block);
    struct cg_val step = blocks;
    int32_t turns = -1;
    struct cg_nest nest;
    if (chain_wgmma_differs(k->t)) {
        step = cg_binary(g, OP_SUB, cg_mul(g, cg_binary(g, OP_SUB, blocks, block), 2), cg_u32(1));
        turns = ring_mutable(g, step);
    }
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    ring_varies(&k->of_q.ring, &nest);
    ring_varies(&k->of_k.ring, &nest);
    ring_varies(&k->of_v.ring, &nest);
    if (k->turns)
        ring_varies(&k->of_raw.ring, &nest);
    const struct cg_val n = cg_freeze(g, cg_value(DT_U32, at));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, n, k->items)), false, done);
    find_item(k, n);
    body(k);
    if (turns >= 0) {
        step = cg_value(DT_U32, turns);
        CG_ASSIGN(g, at, "add.s32", ptx_r(at), ptx_r(turns));
        cg_move(g, turns, cg_binary(g, OP_SUB, cg_mul(g, blocks, 2), step));
    } else {
        cg_move(g, at, cg_add(g, cg_value(DT_U32, at), step));
    }
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}
