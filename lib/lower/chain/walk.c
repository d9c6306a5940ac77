/* How kernels by mma.sync go along j (chain/mma.h). A block has some rows of one batch, 16 or 32 of
 * them each warp, and walks along j by tiles: the tile of v comes while the scores are computed,
 * that of k for the next tile while v is multiplied.
 *
 *     bring q, k
 *     for each tile:  wait; bring v; s = q k; streams; wait; bring the next k; o += p v
 *
 * Rows that are few are all of them each warp's, which has a part of their j for itself. What takes
 * time then is to wait for k and v: a warp has stages for several tiles, and brings a tile when
 * another one has been read, without waiting for other warps.
 *
 *     bring q, k and v of all stages
 *     for each tile:  wait; s = q k; bring k; streams; wait; o += p v; bring v
 */
#include <config.h>

#include "lower/chain/mma.h"

enum { HELD = 48, ROOM_TO_HOLD = 200 }; /* words of q at most; all words, of which q's are held */

/* ---- products -------------------------------------------------------------------------------- */

static int32_t *words(struct cg *g, uint32_t n)
{
    int32_t *w = ARENA_ARRAY(g->a, n, int32_t);
    for (uint32_t i = 0; i < n; i++)
        w[i] = cg_new_mutable(g, DT_U32);
    return w;
}

/* Loads q's words once, where registers have room for all of them. */
static void hold(struct chain_mma *k)
{
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        const uint32_t steps = chain_mma_score_steps(k, i), each = mma_words(&k->q[i].lay);
        const uint32_t all = steps * each * k->t->f->nscore;
        if (all > HELD || chain_mma_words(k->t, k->p) + all > ROOM_TO_HOLD)
            continue;
        k->held[i] = words(k->g, steps * each);
        for (uint32_t s = 0; s < steps; s++)
            mma_load_words(k->g, &k->q[i].lay, k->q_at[i], s, k->held[i] + (size_t)s * each);
    }
}

/* Addresses of the lane in the tile of the stage where the warp is. */
static const int32_t *at_stage(struct chain_mma *k, const struct chain_slab *s, uint32_t steps,
                               const int32_t *at)
{
    struct cg *g = k->g;
    const uint32_t n = mma_ways(&s->lay, steps);
    if (!k->p->sharers || k->stage < 0)
        return at;
    int32_t *const here = ARENA_ARRAY(g->a, n, int32_t);
    for (uint32_t way = 0; way < n; way++) {
        here[way] = cg_new(g, DT_U32);
        PTX(&g->b, "add.s32", ptx_r(here[way]), ptx_r(at[way]), ptx_r(k->stage));
    }
    return here;
}

static void multiply_scores(struct chain_mma *k)
{
    for (uint32_t n = 0; n < k->t->f->nscore; n++)
        chain_multiply_score(&(struct chain_multiply){
            .g = k->g,
            .p = &k->t->score[n],
            .high = k->p->high,
            .wide = k->p->wide,
            .steps = chain_mma_score_steps(k, n),
            .left = &k->q[n].lay,
            .right = &k->k[n].lay,
            .left_at = k->q_at[n],
            .right_at = at_stage(k, &k->k[n], chain_mma_score_steps(k, n), k->k_at[n]),
            .word = k->held[n],
            .sum = k->score[n]});
    chain_tile_look(&k->x, k->p->high * k->p->wide / 2, k->score);
}

static void multiply_columns(struct chain_mma *k)
{
    for (uint32_t n = 0; n < k->t->ncolumn; n++)
        chain_multiply_column(&(struct chain_multiply){
            .g = k->g,
            .p = &k->t->column[n],
            .high = k->p->high,
            .wide = k->p->columns,
            .steps = chain_mma_column_steps(k, n),
            .right = &k->v[n].lay,
            .right_at = at_stage(k, &k->v[n], chain_mma_column_steps(k, n), k->v_at[n]),
            .word = k->x.word[n],
            .sum = k->x.sum[n]});
}

/* ---- along j --------------------------------------------------------------------------------- */

static void bring_q(struct chain_mma *k)
{
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        chain_bring(&k->q[i], k->x.block_first, cg_u32(0));
}

static void bring_k(struct chain_mma *k, struct cg_val j)
{
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        chain_bring(&k->k[i], j, cg_u32(0));
    mma_commit_copies(k->g);
}

static void bring_v(struct chain_mma *k, struct cg_val j)
{
    for (uint32_t i = 0; i < k->t->ncolumn; i++)
        chain_bring(&k->v[i], cg_u32(0), j);
    mma_commit_copies(k->g);
}

/* All copies are there, for all threads, which have read what was there before. */
static void meet(struct chain_mma *k)
{
    mma_wait_copies(k->g, 0);
    PTX(&k->g->b, "bar.sync", ptx_imm(0));
}

void chain_mma_walk(struct chain_mma *k)
{
    struct cg *g = k->g;
    const uint32_t head = cg_label(g, "tile"), end = cg_label(g, "tiles");
    const int32_t j = cg_new_mutable(g, DT_U32);
    struct cg_nest nest;
    cg_move(g, j, k->x.from);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, cg_value(DT_U32, j), k->x.to)), true, end);
    size_t mark = cg_scope_open(g);
    bring_q(k);
    bring_k(k, cg_value(DT_U32, j));
    meet(k);
    hold(k);
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, j);
    const struct cg_val here = cg_freeze(g, cg_value(DT_U32, j));
    bring_v(k, here);
    multiply_scores(k);
    chain_tile_step(&k->x, here, k->score);
    meet(k);
    CG_ASSIGN(g, j, "add.s32", ptx_r(j), ptx_imm(k->p->wide));
    bring_k(k, cg_value(DT_U32, j));
    multiply_columns(k);
    meet(k);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, cg_value(DT_U32, j), k->x.to)), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
}

/* ---- along a warp's own j -------------------------------------------------------------------- */

/* The stage that tiles are brought to. */
static void stand_at(struct chain_mma *k, struct cg_val stage)
{
    const int32_t at = cg_reg(k->g, cg_add(k->g, cg_value(DT_U32, k->mine), stage));
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        k->k[i].m.shared = at;
    for (uint32_t i = 0; i < k->t->ncolumn; i++)
        k->v[i].m.shared = at;
}

/* Brings the tile that begins with j if it is one of the warp's. There is a group of copies for it
 * in any case. */
static void bring_if_any(struct chain_mma *k, struct cg_val j, bool is_v)
{
    struct cg *g = k->g;
    const uint32_t none = cg_label(g, "none");
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, j, k->x.to)), true, none);
    const size_t mark = cg_scope_open(g);
    for (uint32_t i = 0; i < k->t->f->nscore && !is_v; i++)
        chain_bring(&k->k[i], j, cg_u32(0));
    for (uint32_t i = 0; i < k->t->ncolumn && is_v; i++)
        chain_bring(&k->v[i], cg_u32(0), j);
    cg_scope_close(g, mark);
    cg_place(g, none);
    mma_commit_copies(g);
}

/* The warp's copies are there but for what was brought later, for all of its lanes. */
static void meet_lanes(struct chain_mma *k)
{
    mma_wait_copies(k->g, 2 * k->p->stages - 1);
    PTX(&k->g->b, "bar.warp.sync", ptx_imm(-1));
}

/* The lanes have read the tile: brings the one that takes its place. */
static void bring_next(struct chain_mma *k, struct cg_val next, bool is_v)
{
    PTX(&k->g->b, "bar.warp.sync", ptx_imm(-1));
    bring_if_any(k, next, is_v);
}

static void next_stage(struct chain_mma *k)
{
    struct cg *g = k->g;
    const int32_t last = cg_new(g, DT_BOOL);
    if (k->stage < 0)
        return;
    CG_ASSIGN(g, k->stage, "add.s32", ptx_r(k->stage), ptx_imm(k->bytes));
    PTX(&g->b, "setp.eq.s32", ptx_r(last), ptx_r(k->stage), ptx_imm(k->bytes * k->p->stages));
    CG_ASSIGN(g, k->stage, "selp.b32", ptx_imm(0), ptx_r(k->stage), ptx_r(last));
}

/* Begins to bring k and v of the first tiles, and brings q. */
static void fill_stages(struct chain_mma *k)
{
    struct cg *g = k->g;
    bring_q(k);
    mma_commit_copies(g);
    for (uint32_t n = 0; n < k->p->stages; n++) {
        const struct cg_val j = cg_freeze(g, cg_add(g, k->x.from, cg_u32(n * k->p->wide)));
        stand_at(k, cg_u32(n * k->bytes));
        bring_if_any(k, j, false);
        bring_if_any(k, j, true);
    }
    mma_wait_copies(g, 2 * k->p->stages);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    hold(k);
}

void chain_mma_walk_own(struct chain_mma *k)
{
    struct cg *g = k->g;
    const uint32_t head = cg_label(g, "tile"), end = cg_label(g, "tiles");
    const int32_t j = cg_new_mutable(g, DT_U32);
    struct cg_nest nest;
    fill_stages(k);
    cg_move(g, j, k->x.from);
    if (k->stage >= 0)
        cg_move(g, k->stage, cg_u32(0));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, cg_value(DT_U32, j), k->x.to)), true, end);
    const size_t mark = cg_scope_open(g);
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, j);
    if (k->stage >= 0)
        cg_nest_varies(g, &nest, k->stage);
    const struct cg_val here = cg_freeze(g, cg_value(DT_U32, j));
    const struct cg_val next = cg_freeze(g, cg_add(g, here, cg_u32(k->p->stages * k->p->wide)));
    stand_at(k, k->stage < 0 ? cg_u32(0) : cg_freeze(g, cg_value(DT_U32, k->stage)));
    meet_lanes(k);
    multiply_scores(k);
    bring_next(k, next, false);
    chain_tile_step(&k->x, here, k->score);
    meet_lanes(k);
    multiply_columns(k);
    bring_next(k, next, true);
    next_stage(k);
    CG_ASSIGN(g, j, "add.s32", ptx_r(j), ptx_imm(k->p->wide));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, cg_value(DT_U32, j), k->x.to)), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
    cg_loop_head(g);
}
