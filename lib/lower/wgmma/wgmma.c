/* Products by wgmma (wgmma/wgmma.h): who does what, and the tiles that a block takes.
 *
 *     producer, one thread of what is copied    consumers, each warpgroup
 *       for each tile, for each stage of k:       for each tile:
 *         wait empty[s]                             for each stage of k:
 *         arrive at full[s], expecting its bytes      wait full[s]
 *         copy A's and B's boxes, to full[s]          multiply: 4 instructions for each 128 bytes
 *                                                       of k, commit
 *                                                     wait for all but these
 *                                                     arrive at the last stage's empty[]
 *                                                   wait for these too; arrive
 *                                                   sums to the epilogue
 *
 * All of a producer's threads make what is computed, when the stage is empty, from what they have
 * loaded before; each warp arrives at full[s], too. Where what has come is not yet what is
 * multiplied, other warps of the producer convert it (_convert.c), and consumers wait for ready[s],
 * too. The producer goes on with the next tile while consumers are in the epilogue. Barriers'
 * phases go by parity: a new barrier counts as one whose phase of parity 1 is over, so the producer
 * begins with that.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

/* ---- tiles ----------------------------------------------------------------------------------- */

/* The block's tile of the cluster's number n. */
static void find_tile(struct wgmma *s, struct cg_val n)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    n = cg_binary(g, OP_MUL, n, cg_int(DT_U32, s->p->split));
    matmul_find(m, cg_binary(g, OP_ADD, n, s->at_share));
    if (s->shape->down > 1) {
        struct cg_val more = cg_binary(g, OP_MUL, s->at_row, cg_int(DT_U32, s->p->bm));
        m->row = cg_index(g, cg_binary(g, OP_ADD, cg_convert(g, m->row, DT_U32), more));
    }
    if (s->shape->across > 1) {
        struct cg_val more = cg_binary(g, OP_MUL, s->at_col, cg_int(DT_U32, s->p->bn));
        m->col = cg_index(g, cg_binary(g, OP_ADD, cg_convert(g, m->col, DT_U32), more));
    }
}

/* The numbers first, first + step ... of tiles. */
static void for_tiles(struct wgmma *s, struct cg_val first, struct cg_val step,
                      void (*body)(struct wgmma *s))
{
    struct cg *g = s->g;
    struct cg_val items;
    const uint32_t head = cg_label(g, "tile"), done = cg_label(g, "tiles");
    if (!s->p->blocks) {
        find_tile(s, first);
        body(s);
        return;
    }
    const int32_t at = cg_mutable(g, first);
    struct cg_nest nest;
    matmul_items(s->m, &items);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    ring_varies(&s->ring, &nest);
    wgmma_gather_varies(s, &nest);
    const struct cg_val n = cg_value(DT_U32, at);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, n, items)), false, done);
    find_tile(s, n);
    body(s);
    cg_move(g, at, cg_binary(g, OP_ADD, n, step));
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}

struct cg_val wgmma_stages(struct wgmma *s)
{
    struct cg *g = s->g;
    struct cg_val from = cg_convert(g, s->m->k_from, DT_U32),
                  to = cg_convert(g, s->m->k_to, DT_U32);
    struct cg_val n = cg_binary(g, OP_SUB, to, from);
    n = cg_binary(g, OP_ADD, n, cg_int(DT_U32, s->p->bk - 1));
    return cg_binary(g, OP_DIV, n, cg_int(DT_U32, s->p->bk));
}

/* The next tile's, which the other warpgroup takes. */
static void skip_stages(struct wgmma *s)
{
    const struct cg_val at = ring_number(&s->ring);
    ring_go_to(&s->ring, cg_add(s->g, at, wgmma_stages(s)));
}

void wgmma_for_stages(struct wgmma *s, void (*body)(struct wgmma *s))
{
    struct ring_loop l;
    ring_for(&s->ring, &l, wgmma_stages(s));
    s->rest = l.rest;
    if (s->k >= 0)
        cg_nest_varies(s->g, &l.nest, s->k);
    if (s->next_k >= 0)
        cg_nest_varies(s->g, &l.nest, s->next_k);
    wgmma_gather_varies(s, &l.nest);
    body(s);
    ring_for_end(&s->ring, &l);
}

/* ---- who does what --------------------------------------------------------------------------- */

static void find_rank(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val sharing = cg_int(DT_U32, s->shape->sharing);
    const struct cg_val in =
        cg_binary(g, OP_MOD, cg_special(g, SP_CTAID_X), cg_int(DT_U32, s->shape->blocks));
    s->rank = cg_binary(g, OP_MOD, in, sharing);
    s->at_share = s->p->split > 1 ? cg_binary(g, OP_DIV, in, sharing) : cg_int(DT_U32, 0);
    s->apart = cg_binary(g, OP_MUL, s->at_share, sharing);
    s->at_row = cg_binary(g, OP_MOD, s->rank, cg_int(DT_U32, s->shape->down));
    s->at_col = cg_binary(g, OP_DIV, s->rank, cg_int(DT_U32, s->shape->down));
    const struct cg_val of = cg_int(DT_U32, s->shape->blocks);
    s->first_tile = cg_binary(g, OP_DIV, cg_special(g, SP_CTAID_X), of);
    s->tile_step = cg_binary(g, OP_DIV, cg_special(g, SP_NCTAID_X), of);
}

/* One thread makes the barriers; then all blocks of the cluster may use them. */
static void make_barriers(struct wgmma *s)
{
    enum { WARPS = 4 };
    struct cg *g = s->g;
    const uint32_t made = cg_label(g, "made");
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, s->m->thread, cg_int(DT_U32, 0))), false, made);
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        if (!s->shape->tile[i].made)
            tma_prefetch(g, s->map[i]);
    const uint32_t full = (s->shape->copied ? 1u : 0u) + (s->shape->made ? WARPS : 0u);
    for (uint32_t o = 0; o < s->f->stage->n && s->shape->direct && !s->shape->by_threads; o++)
        tma_prefetch(g, s->out_map[o]);
    for (uint32_t i = 0; i < s->shape->nbrought; i++)
        tma_prefetch(g, s->brought[i].map);
    const uint32_t arrivals[] = {full, s->shape->peers * s->shape->takers * WARPS,
                                 s->shape->converts};
    ring_init(&s->ring, arrivals);
    for (uint32_t i = 0; i < s->shape->consumers * WARPS && s->shape->nbrought; i++)
        PTX(&g->b, "mbarrier.init.shared::cta.b64",
            ptx_mem(s->m->shared, s->shape->brought_barriers + i * RING_BARRIER), ptx_imm(1));
    PTX0(&g->b, "fence.mbarrier_init.release.cluster");
    cg_scope_close(g, mark);
    cg_place(g, made);
    if (s->shape->blocks > 1) {
        PTX0(&g->b, "barrier.cluster.arrive.relaxed.aligned");
        PTX0(&g->b, "barrier.cluster.wait.acquire.aligned");
    } else {
        PTX(&g->b, "bar.sync", ptx_imm(0));
    }
}

/* Registers that producers give up and consumers take: so many that all of the block's, which it
 * begins with, are enough. One consumer and one producer need none more. */
static void set_registers(struct wgmma *s, bool produces)
{
    if (s->shape->producers + s->shape->consumers > 2)
        PTX(&s->g->b,
            produces ? "setmaxnreg.dec.sync.aligned.u32" : "setmaxnreg.inc.sync.aligned.u32",
            ptx_imm(wgmma_registers(s->shape, produces)));
}

/* Warpgroups that take tiles by turns multiply by turns, too: one waits for the other's products,
 * not for its results. The barrier of warpgroup w is number 1 + w. */
static void take_turn(struct wgmma *s, bool begins)
{
    struct cg *g = s->g;
    if (!s->p->pingpong)
        return;
    struct cg_val whose = cg_binary(g, OP_XOR, s->group, cg_int(DT_U32, !begins));
    whose = cg_binary(g, OP_ADD, whose, cg_int(DT_U32, 1));
    PTX(&g->b, begins ? "bar.sync" : "bar.arrive", ptx_r(cg_reg(g, whose)),
        ptx_imm(2 * WGMMA_GROUP));
}

static void tile_of_consumer(struct wgmma *s)
{
    struct cg *g = s->g;
    take_turn(s, true);
    wgmma_sum_tile(s);
    take_turn(s, false);
    if (s->p->pingpong)
        skip_stages(s);
    const uint32_t skip = cg_label(g, "stored");
    const size_t mark = cg_scope_open(g);
    if (s->p->split > 1)
        wgmma_share(s, skip);
    if (s->shape->direct)
        wgmma_store_tile(s);
    else
        wgmma_out_tile(s);
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

/* The last of the producer's warps. */
static void convert(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t others = cg_label(g, "others"),
                   first = s->shape->producers * WGMMA_GROUP / 32 - s->shape->converts;
    if (!s->shape->converts)
        return;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, s->m->warp, cg_u32(first))), false, others);
    const size_t mark = cg_scope_open(g);
    ring_begin(&s->ring, 0);
    wgmma_convert_begin(s);
    for_tiles(s, s->first_tile, s->tile_step, wgmma_convert_tile);
    cg_jump(g, g->exit);
    cg_scope_close(g, mark);
    cg_place(g, others);
}

/* Leaves one thread of the producer, which issues all copies; the others exit. */
static void elect(struct wgmma *s)
{
    struct cg *g = s->g;
    const int32_t elected = cg_new(g, DT_BOOL);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, s->m->thread, cg_int(DT_U32, 32))), false, g->exit);
    PTX(&g->b, "elect.sync", ptx_pair(-1, elected), ptx_imm(-1));
    cg_jump_if(g, elected, false, g->exit);
}

static void produce(struct wgmma *s)
{
    struct cg *g = s->g;
    set_registers(s, true);
    convert(s);
    if (s->shape->made && !s->shape->gathers)
        wgmma_make_begin(s);
    else if (!s->shape->made)
        elect(s);
    g->exit_used = true;
    ring_begin(&s->ring, 1);
    if (s->shape->gathers)
        wgmma_gather_begin(s);
    for_tiles(s, s->first_tile, s->tile_step, wgmma_load_tile);
    wgmma_load_end(s);
    cg_jump(g, g->exit);
}

/* By turns: the second warpgroup begins with the second tile, and says that it is the first one's
 * turn. */
static void begin_turns(struct wgmma *s, struct cg_val *first, struct cg_val *step)
{
    struct cg *g = s->g;
    const uint32_t begun = cg_label(g, "begun");
    *first = cg_binary(g, OP_ADD, *first, cg_binary(g, OP_MUL, s->group, *step));
    *step = cg_binary(g, OP_MUL, *step, cg_int(DT_U32, 2));
    const struct cg_val is_first = cg_binary(g, OP_EQ, s->group, cg_int(DT_U32, 0));
    cg_jump_if(g, cg_reg(g, is_first), true, begun);
    const size_t mark = cg_scope_open(g);
    take_turn(s, false);
    skip_stages(s);
    cg_scope_close(g, mark);
    cg_place(g, begun);
}

static void consume(struct wgmma *s)
{
    struct cg_val first = s->first_tile, step = s->tile_step;
    set_registers(s, false);
    ring_begin(&s->ring, 0);
    wgmma_sum_begin(s);
    epilogue_ready(s);
    wgmma_columns_begin(s);
    if (s->p->pingpong)
        begin_turns(s, &first, &step);
    for_tiles(s, first, step, tile_of_consumer);
    if (s->shape->direct)
        wgmma_store_end(s);
}

void matmul_wgmma(struct matmul *m)
{
    struct cg *g = m->g;
    struct wgmma_shape shape = {.target = g->target, .f = m->f, .p = m->p};
    struct wgmma s = {.m = m,
                      .g = g,
                      .f = m->f,
                      .p = m->p,
                      .shape = &shape,
                      .k = -1,
                      .turn = -1,
                      .next_k = -1,
                      .begun = -1};
    if (!wgmma_measure(&shape, NULL))
        return;
    matmul_prepare(m);
    g->dynamic->align = WGMMA_ALIGN;
    g->func->minnctapersm = 1;
    if (shape.blocks > 1)
        g->func->directives = arena_printf(g->module->arena,
                                           ".explicitcluster\n.reqnctapercluster %u, 1, 1",
                                           (unsigned)shape.blocks);
    s.ring = (struct ring){.g = g,
                           .shared = m->shared,
                           .stages = s.p->stages,
                           .stage_bytes = shape.stage_bytes,
                           .barriers = shape.barriers,
                           .sets = wgmma_sets(&shape),
                           .lane = m->lane};
    find_rank(&s);
    wgmma_load_begin(&s);
    if (shape.direct)
        wgmma_store_begin(&s);
    make_barriers(&s);
    const uint32_t consumes = cg_label(g, "consumer");
    const struct cg_val group = cg_int(DT_U32, shape.producers * WGMMA_GROUP);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, m->thread, group)), true, consumes);
    size_t mark = cg_scope_open(g);
    produce(&s);
    cg_scope_close(g, mark);
    cg_place(g, consumes);
    mark = cg_scope_open(g);
    consume(&s);
    cg_scope_close(g, mark);
}
