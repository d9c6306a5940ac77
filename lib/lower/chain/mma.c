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
    STEP = 16, /* what rows, columns and terms are multiples of */
    SHARED_ALIGN = 128,
    /* of a thread's registers: words of q at most; all words, of which q's are held; all words */
    HELD = 48,
    ROOM_TO_HOLD = 200,
    ROOM = 240,
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

static uint32_t round_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

uint32_t chain_terms(const struct chain_product *p, uint32_t most)
{
    return round_up(chain_padded(p->form.k, most), MMA_STEP / chain_size(p, MATMUL_A));
}

uint32_t chain_columns(const struct chain_tensor *t, uint32_t most)
{
    return round_up(chain_padded(t->f->column, most), chain_unit(t));
}

uint32_t chain_unit(const struct chain_tensor *t)
{
    return chain_has_bytes(t) ? MMA_STEP : STEP;
}

/* How an operand's tile lies: of f32 and of bytes as the instructions want it, wherever that is
 * otherwise in memory. */
static struct mma_lay lay_of(const struct chain_product *p, const struct matmul_operand *o,
                             bool is_score, uint32_t rows, uint32_t terms, uint32_t span)
{
    const uint32_t size = chain_size(p, o->side);
    struct mma_lay l = {.tall = o->side == MATMUL_A, .span = span};
    if (size == 2)
        l.layout = o->along_k ? MMA_ALONG_K : MMA_16BIT;
    else if (is_score && (o->along_k || l.tall || size == 1))
        l.layout = MMA_ALONG_K;
    else if (size == 4)
        l.layout = MMA_SINGLES;
    else /* pairs of neighbouring bytes */
        l = (struct mma_lay){.layout = MMA_16BIT, .span = span / 2};
    l.paired = !is_score && size == 4;
    l.row_bytes = (l.layout == MMA_ALONG_K ? terms : rows) * size;
    return l;
}

/* Lays the tile of a product's operand, `at` rows (columns) of `terms` each, behind the bytes that
 * are taken. */
static void lay(struct chain_slab *s, const struct chain_plan *p, const struct chain_product *of,
                enum matmul_side side, bool is_score, uint32_t at, uint32_t terms, uint32_t *bytes)
{
    const struct matmul_form *f = &of->form;
    s->m.f = f;
    s->operand = f->operand[0].side == side ? 0 : 1;
    s->type = side == MATMUL_A ? of->kind.left : of->kind.right;
    s->lay = lay_of(of, &f->operand[s->operand], is_score, at, terms,
                    side == MATMUL_A ? p->high * 16 : at);
    s->rows = s->lay.layout == MMA_ALONG_K ? at : terms;
    s->offset = *bytes;
    s->aligned = p->aligned;
    s->threads = p->warps * LANES;
    *bytes += round_up(chain_slab_bytes(s), SHARED_ALIGN);
}

static uint32_t block_rows(const struct chain_plan *p)
{
    return p->warps * p->high * 16;
}

static uint32_t lay_all(struct kernel *k, const struct chain_tensor *t, const struct chain_plan *p)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < t->f->nscore; i++) {
        const struct chain_product *of = &t->score[i];
        const uint32_t terms = chain_terms(of, p->terms);
        lay(&k->q[i], p, of, MATMUL_A, true, block_rows(p), terms, &bytes);
        lay(&k->k[i], p, of, MATMUL_B, true, p->wide, terms, &bytes);
    }
    for (uint32_t i = 0; i < t->ncolumn; i++)
        lay(&k->v[i], p, &t->column[i], MATMUL_B, false, p->columns, p->wide, &bytes);
    return bytes;
}

uint32_t chain_mma_shared(const struct chain_tensor *t, const struct chain_plan *p)
{
    static const struct kernel none;
    struct kernel k = none;
    return lay_all(&k, t, p);
}

/* Words of a lane's but q's: scores, sums, left operands, and the right ones of one step. */
static uint32_t words_of(const struct chain_tensor *t, const struct chain_plan *p)
{
    const uint32_t right = p->wide > p->columns || !t->ncolumn ? p->wide : p->columns;
    uint32_t n = t->f->nscore * p->high * p->wide / 2 + right / 4;
    for (uint32_t i = 0; i < t->ncolumn; i++)
        n += p->high * (p->columns / 2 + t->column[i].parts * p->wide / 4);
    return n;
}

bool chain_mma_has_registers(const struct chain_tensor *t, const struct chain_plan *p)
{
    enum { FILE = 65536, OTHERS = 255 - ROOM }; /* of a multiprocessor; but words */
    const uint32_t each = FILE / (p->warps * LANES);
    return words_of(t, p) <= (each < ROOM + OTHERS ? each - OTHERS : ROOM);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Blocks of a multiprocessor at once: so many warps, as far as shared memory has room for them. */
static uint32_t blocks_at_once(const struct kernel *k)
{
    enum { WARPS = 8, KEPT = 1024 }; /* KEPT: bytes of shared memory beside a block's own */
    const struct ptx_target *target = k->g->target;
    const uint32_t n = target->shared_per_sm / (chain_mma_shared(k->t, k->p) + KEPT);
    const uint32_t most = WARPS / k->p->warps;
    return n > most ? most : n > 0 ? n : 1;
}

/* How many blocks share rows: enough for all multiprocessors, if a block has some tiles left, and
 * no more than run at the same time. */
static struct lang_expr *splits_of(struct kernel *k, struct lang_expr *blocks)
{
    enum { TILES = 4 }; /* of a block */
    struct arena *a = k->g->a;
    const uint32_t room = blocks_at_once(k) * lower_multiprocessors(k->g->target);
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
    const bool packs = k->p->packs;
    const struct lang_symbol *rows = chain_rows_index(k->t, packs);
    struct lang_expr *n = extent_divided(k->g, rows, block_rows(k->p)).e;
    for (uint32_t a = k->t->f->nrow; a-- > 0;)
        if (a != k->t->i)
            n = lx_mul(k->g->a, n, extent_of(k->g, chain_batch_index(k->t, packs, a)).e);
    return n;
}

/* The group's number becomes the first of its members. */
static void find_first_of_group(struct kernel *k)
{
    struct cg *g = k->g;
    struct cg_val *const h = &k->x.row[k->t->pack.axis];
    const struct cg_val members = extent_u32(g, extent_of(g, k->t->pack.member).v);
    *h = cg_freeze(g, cg_index(g, cg_binary(g, OP_MUL, extent_u32(g, *h), members)));
}

/* The block's rows, those of most terms first where ranges differ; the grid. */
static struct lang_expr *find_block(struct kernel *k)
{
    struct cg *g = k->g;
    const struct chain_form *f = k->t->f;
    const uint32_t rows = block_rows(k->p);
    const struct extent tiles = extent_divided(g, chain_rows_index(k->t, k->p->packs), rows);
    struct cg_val n = cg_index(g, cg_special(g, SP_CTAID_X)), tile;
    struct lang_expr *grid = find_share(k, groups_of(k), &n);
    extent_split(g, n, tiles, &n, &tile);
    uint32_t left = 0;
    for (uint32_t a = 0; a < f->nrow; a++)
        left += a != k->t->i;
    for (uint32_t a = f->nrow; a-- > 0;) {
        if (a == k->t->i)
            continue;
        const struct extent e = extent_of(g, chain_batch_index(k->t, k->p->packs, a));
        if (--left)
            extent_split(g, n, e, &n, &k->x.row[a]);
        else
            k->x.row[a] = n;
    }
    if (k->p->packs)
        find_first_of_group(k);
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

static uint32_t steps_of_score(const struct kernel *k, uint32_t n)
{
    const struct chain_product *p = &k->t->score[n];
    return chain_terms(p, k->p->terms) * chain_size(p, MATMUL_A) / MMA_STEP;
}

static uint32_t steps_of_column(const struct kernel *k, uint32_t n)
{
    return k->p->wide * chain_size(&k->t->column[n], MATMUL_A) / MMA_STEP;
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

static void find_addresses(struct kernel *k, const struct chain_slab *s, uint32_t steps,
                           struct cg_val base, int32_t *at)
{
    struct cg *g = k->g;
    for (uint32_t way = 0; way < mma_ways(&s->lay, steps); way++)
        at[way] =
            cg_reg(g, mma_lane_address(g, &s->lay, k->x.lane, base, way, k->shared, s->offset));
}

static void begin_tiles(struct kernel *k)
{
    struct cg *g = k->g;
    const struct cg_val zero = cg_u32(0), rows = cg_mul(g, k->warp, k->p->high * 16);
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        k->q[i].packed = k->p->packs ? &k->x : NULL;
        begin_slab(k, &k->q[i]);
        begin_slab(k, &k->k[i]);
        find_addresses(k, &k->q[i], steps_of_score(k, i), rows, k->q_at[i]);
        find_addresses(k, &k->k[i], steps_of_score(k, i), zero, k->k_at[i]);
        k->score[i] = ARENA_ARRAY(g->a, k->p->high * k->p->wide / 2, int32_t);
        for (uint32_t w = 0; w < k->p->high * k->p->wide / 2; w++)
            k->score[i][w] = cg_new_mutable(g, DT_F32);
    }
    for (uint32_t i = 0; i < k->t->ncolumn; i++) {
        begin_slab(k, &k->v[i]);
        find_addresses(k, &k->v[i], steps_of_column(k, i), zero, k->v_at[i]);
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

/* Loads q's words once, where registers have room for all of them. */
static void hold(struct kernel *k)
{
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        const uint32_t steps = steps_of_score(k, i), each = mma_words(&k->q[i].lay);
        const uint32_t all = steps * each * k->t->f->nscore;
        if (all > HELD || words_of(k->t, k->p) + all > ROOM_TO_HOLD)
            continue;
        k->held[i] = words(k->g, steps * each);
        for (uint32_t s = 0; s < steps; s++)
            mma_load_words(k->g, &k->q[i].lay, k->q_at[i], s, k->held[i] + (size_t)s * each);
    }
}

static void multiply_scores(struct kernel *k)
{
    for (uint32_t n = 0; n < k->t->f->nscore; n++)
        chain_multiply_score(&(struct chain_multiply){.g = k->g,
                                                      .p = &k->t->score[n],
                                                      .high = k->p->high,
                                                      .wide = k->p->wide,
                                                      .steps = steps_of_score(k, n),
                                                      .left = &k->q[n].lay,
                                                      .right = &k->k[n].lay,
                                                      .left_at = k->q_at[n],
                                                      .right_at = k->k_at[n],
                                                      .word = k->held[n],
                                                      .sum = k->score[n]});
    chain_tile_look(&k->x, k->p->high * k->p->wide / 2, k->score);
}

static void multiply_columns(struct kernel *k)
{
    for (uint32_t n = 0; n < k->t->ncolumn; n++)
        chain_multiply_column(&(struct chain_multiply){.g = k->g,
                                                       .p = &k->t->column[n],
                                                       .high = k->p->high,
                                                       .wide = k->p->columns,
                                                       .steps = steps_of_column(k, n),
                                                       .right = &k->v[n].lay,
                                                       .right_at = k->v_at[n],
                                                       .word = k->x.word[n],
                                                       .sum = k->x.sum[n]});
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

static void require_alignment(struct kernel *k, const struct chain_slab *s,
                              struct variant_condition *c)
{
    const struct matmul_operand *o = &s->m.f->operand[s->operand];
    const struct lang_symbol *t = o->plain ? o->plain->sym : o->eq->sym;
    if (s->aligned)
        variant_require_multiple(k->g, c, t->dims[t->rank - 1],
                                 MMA_CHUNK * 8 / dtype_bits(s->type));
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
                               .columns = p->columns,
                               .fours = chain_has_bytes(t),
                               .packs = p->packs,
                               .eights = p->aligned && chain_has_eights(t)};
    lay_all(k, t, p);
    if (chain_has_bytes(t) || chain_has_splits(t))
        g->func->minnctapersm = 1; /* words on their way take more registers than ptxas expects */
    find_threads(k);
    struct lang_expr *grid = find_block(k);
    chain_tile_begin(&k->x);
    chain_split_range(&k->x, &k->split);
    begin_tiles(k);
    for_tiles(k);
    mma_wait_copies(g, 0);
    if (p->packs)
        chain_tile_find_again(&k->x);
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
