/* What is read along j by boxes, of kernels by wgmma (chain/along.c): vectors' numbers come with v,
 * and sheets' tiles to a ring of their own, since they are read later than k and given back before
 * v. A sheet's tile has all of the block's rows, and each warp reads its own. */
#include <config.h>

#include "lower/chain/wgmma.h"

#include "lower/wgmma/tma.h"

/* ---- what lies where ------------------------------------------------------------------------- */

bool chain_wgmma_brings(const struct chain_wgmma *k, uint32_t n)
{
    return k->t->along[n].is_sheet ? k->p->sheets : chain_wgmma_is_apart(k->t, k->p);
}

uint32_t chain_wgmma_along(const struct chain_wgmma *k)
{
    uint32_t vectors = 0;
    for (uint32_t n = 0; n < k->t->nalong; n++)
        vectors += !k->t->along[n].is_sheet && chain_wgmma_brings(k, n);
    return vectors;
}

uint32_t chain_wgmma_along_boxes(const struct chain_wgmma *k)
{
    return (k->p->wide + CHAIN_ALONG_BOX - 1) / CHAIN_ALONG_BOX;
}

/* Lays the tiles of sheets: of all of the block's rows. */
void chain_wgmma_lay_sheets(struct chain_wgmma *k)
{
    for (uint32_t n = 0; n < k->t->nalong; n++) {
        const struct chain_along *a = &k->t->along[n];
        const uint32_t size = dtype_bits(a->e->sym->type) / 8, span = CHAIN_SHEET_SPAN / size;
        if (!a->is_sheet || !chain_wgmma_brings(k, n))
            continue;
        k->sheet[n].lay = wgmma_layout(true, size, chain_wgmma_block_rows(k->p),
                                       (k->p->wide + span - 1) / span * span);
        k->sheet[n].offset = k->of_sheets.bytes;
        k->of_sheets.bytes += k->sheet[n].lay.atoms * k->sheet[n].lay.atom_bytes;
    }
}

/* ---- the producer ---------------------------------------------------------------------------- */

/* Elements along j of a box. */
static uint32_t span_of(const struct chain_along *a)
{
    return a->is_sheet ? CHAIN_SHEET_SPAN * 8 / dtype_bits(a->e->sym->type) : CHAIN_ALONG_BOX;
}

void chain_wgmma_make_along_maps(struct chain_wgmma *k)
{
    for (uint32_t n = 0; n < k->t->nalong; n++) {
        const struct chain_along *a = &k->t->along[n];
        uint32_t box[CONTRACT_MAP_RANK] = {span_of(a)};
        if (!chain_wgmma_brings(k, n))
            continue;
        for (uint32_t d = 1; d < a->e->nargs; d++)
            box[d] = inspect_is_index(a->e->args[a->e->nargs - 1 - d], k->t->f->row[k->t->i])
                         ? chain_wgmma_block_rows(k->p)
                         : 1;
        k->along[n] = cg_param_map(k->g, a->e->sym, box, false);
    }
}

/* By one thread: `boxes` boxes of read n, the first of which begins at j = `at`, come to the ring's
 * stage, `bytes` each, behind so many others. */
static void copy_boxes(struct chain_wgmma *k, uint32_t n, const struct ring *r, struct cg_val at,
                       uint32_t boxes, uint32_t to, uint32_t bytes)
{
    struct cg *g = k->g;
    const struct chain_along *a = &k->t->along[n];
    const struct lang_expr *e = a->e;
    struct tma_box box = {.map = k->along[n], .rank = e->nargs};
    const int32_t stage = cg_reg(g, ring_stage(r));
    for (uint32_t d = 1; d < e->nargs; d++)
        box.at[d] = ptx_r(cg_reg(g, cg_convert(g, cg_expr(g, e->args[e->nargs - 1 - d]), DT_U32)));
    for (uint32_t b = 0; b < boxes; b++) {
        box.at[0] = ptx_r(cg_reg(g, cg_add(g, at, cg_u32(b * span_of(a)))));
        tma_load(g, &box, stage, to + b * bytes, r->full, -1);
    }
}

/* By one thread: vectors come to v's stage, or sheets to their own. */
void chain_wgmma_copy_along(struct chain_wgmma *k, struct cg_val at, bool sheets)
{
    struct cg *g = k->g;
    const struct chain_form *f = k->t->f;
    const uint32_t boxes = chain_wgmma_along_boxes(k), bytes = boxes * CHAIN_ALONG_BYTES;
    const size_t bound = g->bindings.n;
    uint32_t to = k->along_at;
    for (uint32_t a = 0; a < f->nrow; a++)
        cg_bind(g, f->row[a], a == k->t->i ? cg_index(g, k->x.block_first) : k->x.row[a], false);
    for (uint32_t n = 0; n < k->t->nalong; n++) {
        const struct chain_sheet *s = &k->sheet[n];
        if (k->t->along[n].is_sheet != sheets || !chain_wgmma_brings(k, n))
            continue;
        if (sheets)
            copy_boxes(k, n, &k->of_sheets.ring, at, s->lay.atoms, s->offset, s->lay.atom_bytes);
        else
            copy_boxes(k, n, &k->at_v->ring, at, boxes, to, CHAIN_ALONG_BYTES);
        to += sheets ? 0 : bytes;
    }
    g->bindings.n = bound;
}

void chain_wgmma_bring_sheets(struct chain_wgmma *k, struct cg_val at)
{
    const struct ring *r = &k->of_sheets.ring;
    ring_wait(r, RING_EMPTY);
    ring_expect(r, k->of_sheets.bytes);
    chain_wgmma_copy_along(k, at, true);
    ring_next(r);
}

/* ---- those that read them -------------------------------------------------------------------- */

/* Where the vectors along j are that have come with v. */
void chain_wgmma_find_along(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const struct cg_val member = cg_binary(g, OP_AND, k->x.lane, cg_u32(3));
    const struct cg_val pair = cg_mul(g, member, 2 * 4);
    const struct cg_val mine = cg_add(g, ring_stage(&k->at_v->ring), pair);
    const uint32_t bytes = chain_wgmma_along_boxes(k) * CHAIN_ALONG_BYTES;
    uint32_t at = k->along_at;
    k->x.has_along = chain_wgmma_along(k) > 0;
    for (uint32_t n = 0; n < k->t->nalong; n++) {
        if (k->t->along[n].is_sheet)
            continue;
        k->x.along[n] = cg_reg(g, cg_add(g, mine, cg_u32(at)));
        at += bytes;
    }
}

/* Waits for their tile, and finds the warp's rows of it. */
void chain_wgmma_take_sheets(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    if (!k->p->sheets)
        return;
    ring_wait(&k->of_sheets.ring, RING_FULL);
    const struct cg_val rows = cg_mul(g, k->before, CHAIN_SHEET_SPAN);
    const struct cg_val stage = cg_add(g, ring_stage(&k->of_sheets.ring), rows);
    for (uint32_t n = 0; n < k->t->nalong; n++) {
        if (!k->t->along[n].is_sheet)
            continue;
        const struct cg_val at = cg_add(g, stage, cg_u32(k->sheet[n].offset));
        k->x.along[n] = cg_reg(
            g, cg_freeze(g, chain_sheet_lane(g, k->t->along[n].e->sym->type, at, k->x.lane)));
    }
    k->x.has_sheets = true;
}

/* All lanes have read theirs. */
void chain_wgmma_leave_sheets(struct chain_wgmma *k)
{
    if (!k->p->sheets)
        return;
    k->x.has_sheets = false;
    PTX(&k->g->b, "bar.warp.sync", ptx_imm(-1));
    chain_wgmma_give_back(&k->of_sheets);
}
