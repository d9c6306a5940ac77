/* Chains by mma.sync (chain.h). A block has some rows of one batch, 16 or 32 of them each warp, and
 * walks along j by tiles: the tile of v comes while the scores are computed, that of k for the next
 * tile while v is multiplied.
 *
 *     bring q, k
 *     for each tile:  wait; bring v; s = q k; streams; wait; bring the next k; o += p v
 */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"
#include "lower/mma/fragment.h"

enum {
    LANES = 32,
    STEP = MMA_STEP / 2, /* terms of an instruction */
    SHARED_ALIGN = 128,
    HELD = 48, /* words of q in registers, at most */
};

struct kernel {
    struct cg *g;
    const struct chain_tensor *t;
    const struct chain_plan *p;
    struct chain_tile x;
    struct cg_val thread, warp; /* u32 */
    struct chain_split split;
    int32_t shared;
    struct chain_slab q[CHAIN_SCORES], k[CHAIN_SCORES], v[CHAIN_COLUMNS];
    /* addresses of the lane in each; q's words, where they are held */
    int32_t q_at[CHAIN_SCORES][MMA_WAYS], k_at[CHAIN_SCORES][MMA_WAYS],
        v_at[CHAIN_COLUMNS][MMA_WAYS];
    int32_t *held[CHAIN_SCORES];
    int32_t *score[CHAIN_SCORES]; /* mutable */
};

/* ---- what lies where ------------------------------------------------------------------------- */

uint32_t chain_padded(const struct lang_symbol *index, uint32_t most)
{
    int64_t n = 1;
    if (index && !lang_const_int(index->dims[0], &n))
        return most;
    return n < 1 ? STEP : (uint32_t)((n + STEP - 1) / STEP * STEP);
}

static struct mma_lay lay_of(const struct matmul_operand *o, uint32_t rows, uint32_t terms,
                             uint32_t span)
{
    const bool tall = o->side == MATMUL_A;
    return (struct mma_lay){.layout = o->along_k ? MMA_ALONG_K : MMA_16BIT,
                            .tall = tall,
                            .row_bytes = (o->along_k ? terms : rows) * 2,
                            .span = span};
}

/* Lays the tile of a product's operand, `at` rows (columns) of `terms` each, behind the bytes that
 * are taken. */
static void lay(struct chain_slab *s, const struct chain_plan *p, const struct matmul_form *f,
                uint32_t operand, uint32_t at, uint32_t terms, uint32_t span, uint32_t *bytes)
{
    const struct matmul_operand *o = &f->operand[operand];
    s->m.f = f;
    s->operand = operand;
    s->lay = lay_of(o, at, terms, span);
    s->rows = o->along_k ? at : terms;
    s->offset = *bytes;
    s->aligned = p->aligned;
    s->threads = p->warps * LANES;
    *bytes += (chain_slab_bytes(s) + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
}

static uint32_t block_rows(const struct chain_plan *p)
{
    return p->warps * p->high * 16;
}

static uint32_t of_side(const struct matmul_form *f, enum matmul_side side)
{
    return f->operand[0].side == side ? 0 : 1;
}

static uint32_t lay_all(struct kernel *k, const struct chain_tensor *t, const struct chain_plan *p)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < t->f->nscore; i++) {
        const struct matmul_form *f = &t->score[i].form;
        const uint32_t terms = chain_padded(f->k, p->terms);
        lay(&k->q[i], p, f, of_side(f, MATMUL_A), block_rows(p), terms, p->high * 16, &bytes);
        lay(&k->k[i], p, f, of_side(f, MATMUL_B), p->wide, terms, p->wide, &bytes);
    }
    for (uint32_t i = 0; i < t->ncolumn; i++) {
        const struct matmul_form *f = &t->column[i].form;
        lay(&k->v[i], p, f, of_side(f, MATMUL_B), p->columns, p->wide, p->columns, &bytes);
    }
    return bytes;
}

uint32_t chain_mma_shared(const struct chain_tensor *t, const struct chain_plan *p)
{
    static const struct kernel none;
    struct kernel k = none;
    return lay_all(&k, t, p);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* How many blocks share rows: enough for all multiprocessors, if a block has some tiles left. */
static struct lang_expr *splits_of(struct kernel *k, struct lang_expr *blocks)
{
    enum { WARPS = 8, TILES = 4 }; /* of a multiprocessor; of a block */
    struct arena *a = k->g->a;
    const uint32_t room = WARPS / k->p->warps * lower_multiprocessors(k->g->target);
    if (k->p->split == 1 || !chain_can_split(k->t))
        return NULL;
    struct lang_expr *n = lx_div(a, lx_int(a, room), lx_max(a, blocks, lx_int(a, 1)));
    if (k->p->split)
        n = lx_int(a, k->p->split);
    struct lang_expr *most =
        lx_ceil_div_int(a, k->t->f->j->dims[0], k->p->split ? k->p->wide : k->p->wide * TILES);
    n = lx_max(a, lx_int(a, 1), lx_min(a, n, most));
    int64_t one;
    return lang_const_int(n, &one) && one == 1 ? NULL : n;
}

/* The block's number among those that share its rows, and that of the group; the grid. */
static struct lang_expr *find_share(struct kernel *k, struct lang_expr *groups, struct cg_val *n)
{
    struct cg *g = k->g;
    struct chain_split *s = &k->split;
    *s = (struct chain_split){.groups = groups,
                              .splits = splits_of(k, groups),
                              .thread = k->thread,
                              .threads = k->p->warps * LANES,
                              .when = k->p->when,
                              .unless = k->p->unless};
    k->x.share = cg_u32(0);
    k->x.shares = cg_u32(1);
    if (!s->splits)
        return groups;
    struct cg_val number;
    const struct extent count = {s->splits, extent_computed(g, s->splits)};
    extent_split(g, *n, count, n, &number);
    s->number = extent_u32(g, number);
    s->group = cg_freeze(g, extent_u32(g, *n));
    s->count = extent_u32(g, count.v);
    k->x.share = s->number;
    k->x.shares = s->count;
    return lx_mul(g->a, groups, s->splits);
}

/* The groups of blocks that share rows. */
static struct lang_expr *groups_of(struct kernel *k)
{
    const struct chain_form *f = k->t->f;
    const struct lang_symbol *i = k->t->i < f->nrow ? f->row[k->t->i] : NULL;
    struct lang_expr *n = extent_divided(k->g, i, block_rows(k->p)).e;
    for (uint32_t a = f->nrow; a-- > 0;)
        if (a != k->t->i)
            n = lx_mul(k->g->a, n, extent_of(k->g, f->row[a]).e);
    return n;
}

/* The block's rows, those of most terms first where ranges differ; the grid. */
static struct lang_expr *find_block(struct kernel *k)
{
    struct cg *g = k->g;
    const struct chain_form *f = k->t->f;
    const uint32_t rows = block_rows(k->p);
    const struct lang_symbol *i = k->t->i < f->nrow ? f->row[k->t->i] : NULL;
    const struct extent tiles = extent_divided(g, i, rows);
    struct cg_val n = cg_index(g, cg_special(g, SP_CTAID_X)), tile;
    struct lang_expr *grid = find_share(k, groups_of(k), &n);
    extent_split(g, n, tiles, &n, &tile);
    uint32_t left = 0;
    for (uint32_t a = 0; a < f->nrow; a++)
        left += a != k->t->i;
    for (uint32_t a = f->nrow; a-- > 0;) {
        if (a == k->t->i)
            continue;
        const struct extent e = extent_of(g, f->row[a]);
        if (--left)
            extent_split(g, n, e, &n, &k->x.row[a]);
        else
            k->x.row[a] = n;
    }
    tile = extent_u32(g, tile);
    tile = cg_binary(g, OP_SUB, cg_binary(g, OP_SUB, extent_u32(g, tiles.v), cg_u32(1)), tile);
    k->x.block_first = cg_freeze(g, cg_mul(g, tile, rows));
    k->x.first = cg_add(g, k->x.block_first, cg_mul(g, k->warp, k->p->high * 16));
    return grid;
}

static void find_threads(struct kernel *k)
{
    struct cg *g = k->g;
    struct ptx_var *const area = cg_dynamic(g);
    area->align = area->align < SHARED_ALIGN ? SHARED_ALIGN : area->align;
    const struct ptx_operand shared = ptx_sym(area);
    k->thread = cg_special(g, SP_TID_X);
    k->warp = cg_binary(g, OP_SHR, k->thread, cg_u32(5));
    k->x.lane = cg_binary(g, OP_AND, k->thread, cg_u32(LANES - 1));
    k->shared = cg_pure(g, PTX_B32, "mov.u32", 1, &shared);
}

/* Where a product's operands are found: the values of the row's axes, and the extents. */
static void begin_slab(struct kernel *k, struct chain_slab *s)
{
    struct cg *g = k->g;
    const struct matmul_form *f = s->m.f;
    uint32_t b = 0;
    s->m.g = g;
    s->m.shared = k->shared;
    s->m.m = extent_of(g, f->i).v;
    s->m.n = extent_of(g, f->j).v;
    s->m.k = extent_of(g, f->k).v;
    s->m.reader.shape = f->operand[s->operand].eq->sym;
    s->m.reader.lanes = 1;
    s->m.reader.assumes = true;
    for (uint32_t a = 0; a < k->t->f->nrow; a++)
        if (a != k->t->i)
            s->m.batch[b++] = k->x.row[a];
    chain_slab_begin(s, k->thread);
}

static void find_addresses(struct kernel *k, const struct chain_slab *s, uint32_t terms,
                           struct cg_val base, int32_t *at)
{
    struct cg *g = k->g;
    for (uint32_t way = 0; way < mma_ways(&s->lay, terms / STEP); way++)
        at[way] =
            cg_reg(g, mma_lane_address(g, &s->lay, k->x.lane, base, way, k->shared, s->offset));
}

static void begin_tiles(struct kernel *k)
{
    struct cg *g = k->g;
    const struct cg_val zero = cg_u32(0), rows = cg_mul(g, k->warp, k->p->high * 16);
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        const uint32_t terms = chain_padded(k->t->score[i].form.k, k->p->terms);
        begin_slab(k, &k->q[i]);
        begin_slab(k, &k->k[i]);
        find_addresses(k, &k->q[i], terms, rows, k->q_at[i]);
        find_addresses(k, &k->k[i], terms, zero, k->k_at[i]);
        k->score[i] = ARENA_ARRAY(g->a, k->p->high * k->p->wide / 2, int32_t);
        for (uint32_t w = 0; w < k->p->high * k->p->wide / 2; w++)
            k->score[i][w] = cg_new_mutable(g, DT_F32);
    }
    for (uint32_t i = 0; i < k->t->ncolumn; i++) {
        begin_slab(k, &k->v[i]);
        find_addresses(k, &k->v[i], k->p->wide, zero, k->v_at[i]);
    }
}

/* ---- products -------------------------------------------------------------------------------- */

static int32_t *words(struct cg *g, uint32_t n)
{
    int32_t *w = ARENA_ARRAY(g->a, n, int32_t);
    for (uint32_t i = 0; i < n; i++)
        w[i] = cg_new_mutable(g, DT_U32);
    return w;
}

static uint32_t steps_of_score(const struct kernel *k, uint32_t n)
{
    return chain_padded(k->t->score[n].form.k, k->p->terms) / STEP;
}

/* Loads q's words once, where registers have room for all of them. */
static void hold(struct kernel *k)
{
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        const uint32_t steps = steps_of_score(k, i), each = mma_words(&k->q[i].lay);
        if (steps * each * k->t->f->nscore > HELD)
            continue;
        k->held[i] = words(k->g, steps * each);
        for (uint32_t s = 0; s < steps; s++)
            mma_load_words(k->g, &k->q[i].lay, k->q_at[i], s, k->held[i] + (size_t)s * each);
    }
}

static void multiply(struct kernel *k, const int32_t *d, const int32_t *a, const int32_t *b)
{
    const struct mma_kind kind = {k->t->type, k->t->type};
    mma_product(k->g, &kind, d, d, a, b);
    for (uint32_t i = 0; i < 4; i++)
        cg_assigned(k->g, d[i]);
}

static void multiply_scores(struct kernel *k, uint32_t n)
{
    struct cg *g = k->g;
    const uint32_t wide = k->p->wide, each = mma_words(&k->q[n].lay);
    int32_t *const kw = words(g, mma_words(&k->k[n].lay));
    int32_t *const own = k->held[n] ? NULL : words(g, each);
    for (uint32_t w = 0; w < k->p->high * wide / 2; w++)
        cg_move(g, k->score[n][w], cg_float(g, DT_F32, 0));
    for (uint32_t s = 0; s < steps_of_score(k, n); s++) {
        const int32_t *q = own ? own : k->held[n] + (size_t)s * each;
        if (own)
            mma_load_words(g, &k->q[n].lay, k->q_at[n], s, own);
        mma_load_words(g, &k->k[n].lay, k->k_at[n], s, kw);
        for (uint32_t b = 0; b < wide / 8; b++)
            for (uint32_t i = 0; i < k->p->high; i++)
                multiply(k, k->score[n] + (size_t)(i * wide / 8 + b) * 4, q + (size_t)4 * i,
                         kw + (size_t)2 * b);
    }
}

static void multiply_columns(struct kernel *k, uint32_t n)
{
    struct cg *g = k->g;
    const uint32_t columns = k->p->columns, steps = k->p->wide / STEP;
    int32_t *const v = words(g, mma_words(&k->v[n].lay));
    for (uint32_t s = 0; s < steps; s++) {
        mma_load_words(g, &k->v[n].lay, k->v_at[n], s, v);
        for (uint32_t q = 0; q < k->t->column[n].parts; q++)
            for (uint32_t b = 0; b < columns / 8; b++)
                for (uint32_t i = 0; i < k->p->high; i++)
                    multiply(k, k->x.sum[n] + (size_t)(i * columns / 8 + b) * 4,
                             k->x.word[n] + (size_t)((q * k->p->high + i) * steps + s) * 4,
                             v + (size_t)2 * b);
    }
}

/* ---- along j --------------------------------------------------------------------------------- */

static void bring_k(struct kernel *k, struct cg_val j)
{
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        chain_bring(&k->k[i], j, cg_u32(0));
    mma_commit_copies(k->g);
}

static void bring_v(struct kernel *k, struct cg_val j)
{
    for (uint32_t i = 0; i < k->t->ncolumn; i++)
        chain_bring(&k->v[i], cg_u32(0), j);
    mma_commit_copies(k->g);
}

/* All copies are there, for all threads, which have read what was there before. */
static void meet(struct kernel *k)
{
    mma_wait_copies(k->g, 0);
    PTX(&k->g->b, "bar.sync", ptx_imm(0));
}

static void for_tiles(struct kernel *k)
{
    struct cg *g = k->g;
    const uint32_t head = cg_label(g, "tile"), end = cg_label(g, "tiles");
    const int32_t j = cg_new_mutable(g, DT_U32);
    struct cg_nest nest;
    cg_move(g, j, k->x.from);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, cg_value(DT_U32, j), k->x.to)), true, end);
    size_t mark = cg_scope_open(g);
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        chain_bring(&k->q[i], k->x.block_first, cg_u32(0));
    bring_k(k, cg_value(DT_U32, j));
    meet(k);
    hold(k);
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, j);
    const struct cg_val here = cg_freeze(g, cg_value(DT_U32, j));
    bring_v(k, here);
    for (uint32_t i = 0; i < k->t->f->nscore; i++)
        multiply_scores(k, i);
    chain_tile_step(&k->x, here, k->score);
    meet(k);
    CG_ASSIGN(g, j, "add.s32", ptx_r(j), ptx_imm(k->p->wide));
    bring_k(k, cg_value(DT_U32, j));
    for (uint32_t i = 0; i < k->t->ncolumn; i++)
        multiply_columns(k, i);
    meet(k);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, cg_value(DT_U32, j), k->x.to)), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
}

static void require_alignment(struct kernel *k, const struct chain_slab *s,
                              struct variant_condition *c)
{
    const struct matmul_operand *o = &s->m.f->operand[s->operand];
    const struct lang_symbol *t = o->plain ? o->plain->sym : o->eq->sym;
    if (s->aligned)
        variant_require_multiple(k->g, c, t->dims[t->rank - 1], MMA_CHUNK / 2);
    for (size_t i = 0; i < s->m.reader.needs.n; i++)
        variant_require_multiple(k->g, c, s->m.reader.needs.v[i].e, s->m.reader.needs.v[i].of);
}

struct lang_expr *chain_mma(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p,
                            struct variant_condition *c)
{
    struct kernel *k = ARENA_NEW(g->a, struct kernel);
    *k = (struct kernel){.g = g, .t = t, .p = p};
    k->x = (struct chain_tile){.g = g,
                               .t = t,
                               .high = p->high,
                               .wide = p->wide,
                               .block_rows = block_rows(p),
                               .columns = p->columns};
    lay_all(k, t, p);
    find_threads(k);
    struct lang_expr *grid = find_block(k);
    chain_tile_begin(&k->x);
    chain_split_range(&k->x, &k->split);
    begin_tiles(k);
    for_tiles(k);
    mma_wait_copies(g, 0);
    g->exit_used |= k->split.splits != NULL;
    chain_split_join(&k->x, &k->split, g->exit);
    chain_tile_end(&k->x);
    for (uint32_t i = 0; i < t->f->nscore; i++) {
        require_alignment(k, &k->q[i], c);
        require_alignment(k, &k->k[i], c);
    }
    for (uint32_t i = 0; i < t->ncolumn; i++)
        require_alignment(k, &k->v[i], c);
    return grid;
}
