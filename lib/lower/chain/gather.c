/* Outputs of a sum across (chain/across.c), from what blocks have added up in memory: a launch
 * behind theirs, whose warps have 16 rows each as those that multiplied them had. What they have
 * read becomes 0 again. Rows that have infinities or NaN are computed anew, as everywhere
 * (chain/end.c): what is masked, or behind the last row, counts 0 times what it is. */
#include <config.h>

#include "lower/chain/wgmma.h"

enum { WARPS = CHAIN_GATHER_BLOCK / 32, BLOCK = 8, VECTOR = 4 };

/* Loads the warp's sums of the tile of this number, and leaves 0. */
static void load_sums(struct chain_tile *x, const struct chain_across *a,
                      const struct chain_plan *p, struct cg_val tile, struct cg_val thread)
{
    struct cg *g = x->g;
    const uint32_t each = chain_across_columns(p);
    const struct cg_val numbers = cg_int(DT_I64, WGMMA_ROWS * p->columns);
    const struct cg_val mine = cg_index(g, cg_mul(g, thread, VECTOR));
    const struct cg_val at = cg_add(g, cg_binary(g, OP_MUL, tile, numbers), mine);
    const struct cg_place_of from = cg_address(g, a->sums, cg_freeze(g, at));
    const int32_t zero = cg_reg(g, cg_freeze(g, cg_float(g, DT_F32, 0)));
    const struct ptx_operand zeros[VECTOR] = {ptx_r(zero), ptx_r(zero), ptx_r(zero), ptx_r(zero)};
    for (uint32_t b = 0; b < p->columns / BLOCK; b++) {
        const uint32_t part = b * BLOCK / each, of_part = b % (each / BLOCK);
        const uint32_t bytes = (part * WGMMA_ROWS * each + of_part * VECTOR * WGMMA_GROUP) * 4;
        const struct ptx_operand place = ptx_mem(from.base, from.offset + bytes);
        struct ptx_operand word[VECTOR];
        for (uint32_t w = 0; w < VECTOR; w++)
            word[w] = ptx_r(x->sum[0][b * VECTOR + w]);
        PTX(&g->b, "ld.global.v4.f32", ptx_vec(&g->b, VECTOR, word), place);
        for (uint32_t w = 0; w < VECTOR; w++)
            cg_assigned(g, x->sum[0][b * VECTOR + w]);
        PTX(&g->b, "st.global.v4.f32", place, ptx_vec(&g->b, VECTOR, zeros));
    }
}

/* No block has added to the tile yet: by one thread. */
static void clear_count(struct cg *g, const struct chain_across *a, struct cg_val tile,
                        struct cg_val thread)
{
    const uint32_t cleared = cg_label(g, "cleared");
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, thread, cg_u32(0))), false, cleared);
    PTX(&g->b, "st.global.u32", cg_mem(cg_address(g, a->added, tile)), ptx_imm(0));
    cg_place(g, cleared);
}

struct lang_expr *chain_gather(struct cg *g, const struct chain_across *a,
                               const struct chain_plan *p)
{
    const struct chain_form *f = a->t->f;
    struct chain_tile x = {.g = g,
                           .t = a->t,
                           .high = 1,
                           .wide = 16,
                           .block_rows = WARPS * 16,
                           .columns = p->columns,
                           .eights = chain_has_eights(a->t),
                           .share = cg_u32(0),
                           .shares = cg_u32(1)};
    const struct cg_val thread = cg_special(g, SP_TID_X);
    const struct extent tiles = extent_divided(g, f->row[a->t->i], WGMMA_ROWS);
    struct extent all = tiles;
    struct cg_val n, tile;
    extent_split(g, cg_index(g, cg_special(g, SP_CTAID_X)), tiles, &n, &tile);
    for (uint32_t i = f->nrow; i-- > 0;) {
        if (i == a->t->i)
            continue;
        all = extent_times(g, all, extent_of(g, f->row[i]));
        extent_split(g, n, extent_of(g, f->row[i]), &n, &x.row[i]);
        x.row[i] = cg_freeze(g, x.row[i]);
    }
    const struct cg_val warp = cg_binary(g, OP_SHR, thread, cg_u32(5));
    x.lane = cg_binary(g, OP_AND, thread, cg_u32(31));
    x.block_first = cg_freeze(g, cg_mul(g, extent_u32(g, tile), WGMMA_ROWS));
    x.first = cg_freeze(g, cg_add(g, x.block_first, cg_mul(g, warp, 16)));
    chain_tile_begin(&x);
    const struct cg_val first = chain_across_first(g, f, a->t->i, x.row, f->row[a->t->i]);
    const struct cg_val number = cg_freeze(g, cg_add(g, first, tile));
    if (!a->any)
        clear_count(g, a, number, thread);
    load_sums(&x, a, p, number, thread);
    chain_tile_end(&x);
    return all.e;
}
