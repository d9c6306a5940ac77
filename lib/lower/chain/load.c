/* The producer (chain/wgmma.h): tiles of q, k and v to shared memory, by copies of boxes (TMA).
 * What is outside of a tensor reads as zeros. */
#include <config.h>

#include "lower/chain/wgmma.h"

#include "lower/wgmma/tma.h"

void chain_wgmma_make_map(struct chain_wgmma *k, struct chain_box *s)
{
    const struct matmul_form *f = s->m.f;
    const struct matmul_operand *o = &f->operand[s->operand];
    const struct lang_expr *e = o->plain;
    uint32_t box[CONTRACT_MAP_RANK];
    s->m.g = k->g;
    for (uint32_t d = 0; d < e->nargs; d++) {
        const struct lang_expr *sub = e->args[e->nargs - 1 - d];
        const bool moves = inspect_is_index(sub, f->k) ||
                           inspect_is_index(sub, o->side == MATMUL_A ? f->i : f->j);
        box[d] = d == 0 ? WGMMA_SPAN / s->lay.size : moves ? s->lay.atom_bytes / WGMMA_SPAN : 1;
    }
    s->map = cg_param_map(k->g, e->sym, box, false);
}

/* By one thread: the tile whose first row (column) and term these are comes to the ring's stage. */
static void copy(struct chain_wgmma *k, struct chain_box *s, const struct ring *r, struct cg_val at,
                 struct cg_val term)
{
    struct cg *g = k->g;
    const struct lang_expr *e = s->m.f->operand[s->operand].plain;
    struct tma_box box = {.map = s->map, .rank = e->nargs};
    struct cg_val sub[VARIANT_RANK];
    uint32_t b = 0;
    for (uint32_t a = 0; a < k->t->f->nrow; a++)
        if (a != k->t->i)
            s->m.batch[b++] = k->x.row[a];
    const int32_t stage = cg_reg(g, ring_stage(r));
    for (uint32_t a = 0; a < s->lay.atoms; a++) {
        const struct cg_val more = cg_u32(a * (WGMMA_SPAN / s->lay.size));
        const struct cg_val down = cg_index(g, s->lay.along_k ? cg_add(g, term, more) : term);
        const struct cg_val across = cg_index(g, s->lay.along_k ? at : cg_add(g, at, more));
        matmul_subscripts(&s->m, s->operand, across, down, sub);
        for (uint32_t d = 0; d < e->nargs; d++)
            box.at[d] = ptx_r(cg_reg(g, cg_convert(g, sub[e->nargs - 1 - d], DT_U32)));
        tma_load(g, &box, stage, s->offset + a * s->lay.atom_bytes, r->full, -1);
    }
}

static uint32_t bytes_of(const struct chain_box *s, uint32_t n)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += s[i].lay.atoms * s[i].lay.atom_bytes;
    return bytes;
}

/* Waits for the ring's stage, and brings n tiles there. */
static void bring(struct chain_wgmma *k, struct chain_box *s, uint32_t n,
                  const struct chain_store *to, struct cg_val at, struct cg_val term)
{
    const uint32_t along = to == k->at_v ? chain_wgmma_along(k) : 0;
    ring_wait(&to->ring, RING_EMPTY);
    ring_expect(&to->ring,
                bytes_of(s, n) + along * chain_wgmma_along_boxes(k) * CHAIN_ALONG_BOX * 4);
    for (uint32_t i = 0; i < n; i++)
        copy(k, &s[i], &to->ring, at, term);
    if (along)
        chain_wgmma_copy_along(k, k->shares ? at : term, false);
}

/* By one thread of the warp, all of which find what is brought. */
static void produce_item(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const uint32_t brought = cg_label(g, "brought");
    const struct chain_form *f = k->t->f;
    struct ring_loop l;
    const struct chain_store *const of_v = k->turns ? &k->of_raw : &k->of_v;
    chain_tile_find(&k->x);
    chain_wgmma_find_tiles(k);
    const struct cg_val mine = cg_binary(g, OP_EQ, k->x.lane, cg_u32(0));
    const struct cg_val some = cg_binary(g, OP_NE, k->count, cg_u32(0));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LAND, mine, some)), false, brought);
    const size_t mark = cg_scope_open(g);
    bring(k, k->q, f->nscore, &k->of_q, k->x.block_first, cg_u32(0));
    ring_next(&k->of_q.ring);
    const int32_t j = cg_mutable(g, chain_wgmma_first_j(k));
    ring_for(&k->of_k.ring, &l, k->count);
    cg_nest_varies(g, &l.nest, j);
    if (!k->shares)
        ring_varies(&of_v->ring, &l.nest);
    if (k->p->sheets)
        ring_varies(&k->of_sheets.ring, &l.nest);
    const struct cg_val here = cg_freeze(g, cg_value(DT_U32, j));
    bring(k, k->k, f->nscore, &k->of_k, here, cg_u32(0));
    if (k->p->sheets)
        chain_wgmma_bring_sheets(k, here);
    if (!k->shares) {
        bring(k, k->turns ? k->raw : k->v, k->t->ncolumn, of_v, cg_u32(0), here);
        ring_next(&of_v->ring);
    }
    cg_move(g, j, chain_wgmma_next_j(k, here, false));
    ring_for_end(&k->of_k.ring, &l);
    cg_scope_close(g, mark);
    cg_place(g, brought);
    cg_loop_head(g);
    PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
}

void chain_wgmma_set_registers(struct chain_wgmma *k, bool produces)
{
    if (chain_wgmma_consumers(k->p) > 1 || k->p->each > 1)
        PTX(&k->g->b,
            produces ? "setmaxnreg.dec.sync.aligned.u32" : "setmaxnreg.inc.sync.aligned.u32",
            ptx_imm(chain_wgmma_registers(k->p, produces)));
}

void chain_wgmma_begin_rings(struct chain_wgmma *k, unsigned parity)
{
    struct chain_store *all[CHAIN_STORES];
    const uint32_t n = chain_wgmma_stores(k, all);
    for (uint32_t i = 0; i < n; i++)
        ring_begin(&all[i]->ring, parity);
}

void chain_wgmma_produce(struct chain_wgmma *k)
{
    struct cg *g = k->g;
    const bool helps = k->turns || k->t->across;
    const uint32_t others = helps ? cg_label(g, k->turns ? "turner" : "writer") : g->exit;
    chain_wgmma_set_registers(k, true);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, k->warp, cg_u32(0))), false, others);
    g->exit_used = true;
    size_t mark = cg_scope_open(g);
    k->before = cg_u32(0);
    chain_wgmma_begin_rings(k, 1);
    chain_wgmma_for_items(k, true, produce_item);
    cg_scope_close(g, mark);
    cg_jump(g, g->exit);
    if (!helps)
        return;
    cg_place(g, others);
    mark = cg_scope_open(g);
    if (k->turns)
        chain_wgmma_turn(k);
    else
        chain_across_write(k);
    cg_scope_close(g, mark);
    cg_jump(g, g->exit);
}
