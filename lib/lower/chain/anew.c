/* Rows of a warp one by one, as the equations say (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"

/* Computes row i, of which `row` has the other axes. */
static void compute_row(struct chain_tile *x, struct cg_val i, struct cg_val *row)
{
    if (x->t->i < x->t->f->nrow)
        row[x->t->i] = cg_index(x->g, i);
    chain_any_row(x->g, chain_exact(x->t->f), row, x->lane);
}

/* The same of a group's row, which may be one of no head. */
static void compute_packed(struct chain_tile *x, struct cg_val r, struct cg_val *row)
{
    struct cg *g = x->g;
    const struct chain_row of = chain_row_of(x, r);
    const uint32_t none = cg_label(g, "none");
    if (x->t->i < x->t->f->nrow)
        row[x->t->i] = of.i;
    row[x->t->pack.axis] = of.h;
    if (x->t->pack.ragged)
        cg_jump_if(g, cg_reg(g, of.exists), false, none);
    const size_t mark = cg_scope_open(g);
    chain_any_row(g, chain_exact(x->t->f), row, x->lane);
    cg_scope_close(g, mark);
    cg_place(g, none);
    cg_loop_head(g);
}

void chain_tile_anew(struct chain_tile *x)
{
    struct cg *g = x->g;
    const struct chain_tensor *t = x->t;
    const struct cg_val rows = cg_u32(x->high * 16);
    const struct lang_symbol *index = chain_rows_index(t, x->packs);
    struct cg_val row[CHAIN_AXES];
    struct cg_for loop;
    memcpy(row, x->row, sizeof row);
    cg_for_open(g, &loop, "anew", "rows", cg_u32(0), NULL);
    const struct cg_val i = cg_freeze(g, cg_add(g, x->first, cg_value(DT_U32, loop.at)));
    struct cg_val extent = cg_u32(1);
    if (index)
        extent = cg_convert(g, extent_of(g, index).v, DT_U32);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, i, extent)), true, loop.end);
    if (x->packs)
        compute_packed(x, i, row);
    else
        compute_row(x, i, row);
    cg_for_close(g, &loop, cg_u32(1), &rows);
}
