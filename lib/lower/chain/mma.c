/* Chains by mma.sync (chain.h): where operands lie, which rows a block has and what it shares of
 * them, and the kernel. chain/walk.c says how it goes along j. */
#include <config.h>

#include "lower/chain/mma.h"

#include "lower/extent.h"

enum {
    STEP = 16, /* what rows, columns and terms are multiples of */
    SHARED_ALIGN = 128,
    ROOM = 240, /* words of a thread's registers */
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
    s->threads = side == MATMUL_B && p->sharers ? CHAIN_LANES : chain_mma_threads(p);
    *bytes += round_up(chain_slab_bytes(s), SHARED_ALIGN);
}

static uint32_t block_rows(const struct chain_plan *p)
{
    return p->warps * p->high * 16;
}

uint32_t chain_mma_threads(const struct chain_plan *p)
{
    return p->warps * (p->sharers ? p->sharers : 1) * CHAIN_LANES;
}

static void lay_k_and_v(struct chain_mma *k, const struct chain_tensor *t,
                        const struct chain_plan *p, uint32_t *bytes)
{
    for (uint32_t i = 0; i < t->f->nscore; i++)
        lay(&k->k[i], p, &t->score[i], MATMUL_B, true, p->wide, chain_terms(&t->score[i], p->terms),
            bytes);
    for (uint32_t i = 0; i < t->ncolumn; i++)
        lay(&k->v[i], p, &t->column[i], MATMUL_B, false, p->columns, p->wide, bytes);
}

/* Bytes of a warp that shares rows: its stages, in which it leaves what it has at last. */
static uint32_t bytes_of_sharer(const struct chain_mma *k, const struct chain_tensor *t,
                                const struct chain_plan *p)
{
    const uint32_t left = chain_split_bytes(t, p->high, p->columns), all = p->stages * k->bytes;
    return left > all ? round_up(left, SHARED_ALIGN) : all;
}

static uint32_t lay_all(struct chain_mma *k, const struct chain_tensor *t,
                        const struct chain_plan *p)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        lay(&k->q[i], p, &t->score[i], MATMUL_A, true, block_rows(p),
            chain_terms(&t->score[i], p->terms), &bytes);
    k->before = bytes;
    if (!p->sharers) {
        lay_k_and_v(k, t, p, &bytes);
        return bytes;
    }
    k->bytes = 0;
    lay_k_and_v(k, t, p, &k->bytes);
    return bytes + p->sharers * bytes_of_sharer(k, t, p);
}

uint32_t chain_mma_shared(const struct chain_tensor *t, const struct chain_plan *p)
{
    static const struct chain_mma none;
    struct chain_mma k = none;
    return lay_all(&k, t, p);
}

uint32_t chain_mma_words(const struct chain_tensor *t, const struct chain_plan *p)
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
    const uint32_t each = FILE / (p->warps * CHAIN_LANES);
    return chain_mma_words(t, p) <= (each < ROOM + OTHERS ? each - OTHERS : ROOM);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Blocks of a multiprocessor at once: so many warps, as far as shared memory has room for them. */
static uint32_t blocks_at_once(const struct chain_mma *k)
{
    enum { WARPS = 8, KEPT = 1024 }; /* KEPT: bytes of shared memory beside a block's own */
    const struct ptx_target *target = k->g->target;
    const uint32_t n = target->shared_per_sm / (chain_mma_shared(k->t, k->p) + KEPT);
    const uint32_t warps = chain_mma_threads(k->p) / CHAIN_LANES;
    const uint32_t all = k->p->sharers ? CHAIN_SHARERS : WARPS;
    const uint32_t most = warps < all ? all / warps : 1;
    return n > most ? most : n > 0 ? n : 1;
}

/* How many blocks share rows: enough for all multiprocessors, if a block has some tiles left, and
 * no more than run at the same time. */
static struct lang_expr *splits_of(struct chain_mma *k, struct lang_expr *blocks)
{
    enum { TILES = 4, TILES_OF_SHARER = 2 };
    struct arena *a = k->g->a;
    const uint32_t room = blocks_at_once(k) * lower_multiprocessors(k->g->target);
    const uint32_t tiles = k->p->sharers ? k->p->sharers * TILES_OF_SHARER : TILES;
    if (k->p->split == 1 || !chain_can_split(k->t))
        return NULL;
    struct lang_expr *n = lx_div(a, lx_int(a, room), lx_max(a, blocks, lx_int(a, 1)));
    if (k->p->split)
        n = lx_int(a, k->p->split);
    struct lang_expr *most =
        lx_ceil_div_int(a, k->t->f->j->dims[0], k->p->split ? k->p->wide : k->p->wide * tiles);
    n = lx_max(a, lx_int(a, 1), lx_min(a, n, most));
    int64_t one;
    return lang_const_int(n, &one) && one == 1 ? NULL : n;
}

/* The block's number among those that share its rows, and that of the group; the grid. */
static struct lang_expr *find_share(struct chain_mma *k, struct lang_expr *groups, struct cg_val *n)
{
    struct cg *g = k->g;
    struct chain_split *s = &k->split;
    *s = (struct chain_split){.groups = groups,
                              .splits = splits_of(k, groups),
                              .thread = k->thread,
                              .threads = k->p->warps * CHAIN_LANES,
                              .sharers = k->p->sharers,
                              .bytes = k->p->sharers ? bytes_of_sharer(k, k->t, k->p) : 0,
                              .shared = k->shared,
                              .before = k->before,
                              .when = k->p->when,
                              .unless = k->p->unless};
    if (k->p->sharers)
        s->sharer = cg_freeze(g, cg_binary(g, OP_SHR, k->thread, cg_u32(5)));
    k->x.share = k->p->sharers ? s->sharer : cg_u32(0);
    k->x.shares = cg_u32(k->p->sharers ? k->p->sharers : 1);
    if (!s->splits)
        return groups;
    struct cg_val number;
    int64_t known;
    const struct extent count = lang_const_int(s->splits, &known)
                                    ? extent_constant(g, known)
                                    : (struct extent){s->splits, extent_computed(g, s->splits)};
    extent_split(g, *n, count, n, &number);
    s->number = extent_u32(g, number);
    s->group = cg_freeze(g, extent_u32(g, *n));
    s->count = extent_u32(g, count.v);
    if (!k->p->sharers) {
        k->x.share = s->number;
        k->x.shares = s->count;
    } else {
        k->x.share = cg_add(g, cg_mul(g, s->number, k->p->sharers), s->sharer);
        k->x.shares = cg_freeze(g, cg_mul(g, s->count, k->p->sharers));
    }
    return lx_mul(g->a, groups, s->splits);
}

/* The groups of blocks that share rows. */
static struct lang_expr *groups_of(struct chain_mma *k)
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
static void find_first_of_group(struct chain_mma *k)
{
    struct cg *g = k->g;
    struct cg_val *const h = &k->x.row[k->t->pack.axis];
    const struct cg_val members = extent_u32(g, extent_of(g, k->t->pack.member).v);
    *h = cg_freeze(g, cg_index(g, cg_binary(g, OP_MUL, extent_u32(g, *h), members)));
}

/* The block's rows, those of most terms first where ranges differ; the grid. */
static struct lang_expr *find_block(struct chain_mma *k)
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

static void find_threads(struct chain_mma *k)
{
    struct cg *g = k->g;
    struct ptx_var *const area = cg_dynamic(g);
    area->align = area->align < SHARED_ALIGN ? SHARED_ALIGN : area->align;
    const struct ptx_operand shared = ptx_sym(area);
    k->thread = cg_special(g, SP_TID_X);
    k->warp = k->p->sharers ? cg_u32(0) : cg_binary(g, OP_SHR, k->thread, cg_u32(5));
    k->x.lane = cg_binary(g, OP_AND, k->thread, cg_u32(CHAIN_LANES - 1));
    k->shared = cg_pure(g, PTX_B32, "mov.u32", 1, &shared);
}

uint32_t chain_mma_score_steps(const struct chain_mma *k, uint32_t n)
{
    const struct chain_product *p = &k->t->score[n];
    return chain_terms(p, k->p->terms) * chain_size(p, MATMUL_A) / MMA_STEP;
}

uint32_t chain_mma_column_steps(const struct chain_mma *k, uint32_t n)
{
    return k->p->wide * chain_size(&k->t->column[n], MATMUL_A) / MMA_STEP;
}

static bool is_multiple(const struct lang_symbol *index, uint32_t of)
{
    int64_t n;
    return lang_const_int(index->dims[0], &n) && n > 0 && n % of == 0;
}

/* Tiles that nobody has are not brought: which of k's and of v's lie in the operand as a whole? */
static void find_whole(struct chain_slab *s)
{
    const struct matmul_form *f = s->m.f;
    const bool along_k = s->lay.layout == MMA_ALONG_K;
    const uint32_t across = s->lay.row_bytes * 8 / dtype_bits(s->type);
    s->m.whole_cols = is_multiple(f->j, along_k ? s->rows : across);
    s->m.whole_k = is_multiple(f->k, along_k ? across : s->rows);
}

/* Where a product's operands are found: the values of the row's axes, and the extents; thread: of
 * those that bring it. */
static void begin_slab(struct chain_mma *k, struct chain_slab *s, int32_t shared,
                       struct cg_val thread)
{
    struct cg *g = k->g;
    const struct matmul_form *f = s->m.f;
    uint32_t b = 0;
    s->m.g = g;
    s->m.shared = shared;
    s->m.m = extent_of(g, f->i).v;
    s->m.n = extent_of(g, f->j).v;
    s->m.k = extent_of(g, f->k).v;
    s->m.reader.shape = f->operand[s->operand].eq->sym;
    s->m.reader.lanes = 1;
    s->m.reader.assumes = true;
    if (k->p->sharers && f->operand[s->operand].side == MATMUL_B)
        find_whole(s);
    for (uint32_t a = 0; a < k->t->f->nrow; a++)
        if (a != k->t->i)
            s->m.batch[b++] = k->x.row[a];
    chain_slab_begin(s, thread);
}

static void find_addresses(struct chain_mma *k, const struct chain_slab *s, uint32_t steps,
                           struct cg_val base, int32_t *at)
{
    struct cg *g = k->g;
    for (uint32_t way = 0; way < mma_ways(&s->lay, steps); way++)
        at[way] =
            cg_reg(g, mma_lane_address(g, &s->lay, k->x.lane, base, way, s->m.shared, s->offset));
}

/* The warp's stages. */
static void begin_stages(struct chain_mma *k)
{
    struct cg *g = k->g;
    const struct chain_split *s = &k->split;
    const struct cg_val first = cg_add(g, cg_value(DT_U32, k->shared), cg_u32(k->before));
    k->mine = cg_reg(g, cg_freeze(g, cg_add(g, first, cg_mul(g, s->sharer, s->bytes))));
    k->stage = k->p->stages > 1 ? cg_new_mutable(g, DT_U32) : -1;
}

static void begin_tiles(struct chain_mma *k)
{
    struct cg *g = k->g;
    const struct cg_val zero = cg_u32(0), rows = cg_mul(g, k->warp, k->p->high * 16);
    const struct cg_val thread = k->p->sharers ? k->x.lane : k->thread;
    k->mine = k->shared;
    if (k->p->sharers)
        begin_stages(k);
    for (uint32_t i = 0; i < k->t->f->nscore; i++) {
        k->q[i].packed = k->p->packs ? &k->x : NULL;
        begin_slab(k, &k->q[i], k->shared, k->thread);
        begin_slab(k, &k->k[i], k->mine, thread);
        find_addresses(k, &k->q[i], chain_mma_score_steps(k, i), rows, k->q_at[i]);
        find_addresses(k, &k->k[i], chain_mma_score_steps(k, i), zero, k->k_at[i]);
        k->score[i] = ARENA_ARRAY(g->a, k->p->high * k->p->wide / 2, int32_t);
        for (uint32_t w = 0; w < k->p->high * k->p->wide / 2; w++)
            k->score[i][w] = cg_new_mutable(g, DT_F32);
    }
    for (uint32_t i = 0; i < k->t->ncolumn; i++) {
        begin_slab(k, &k->v[i], k->mine, thread);
        find_addresses(k, &k->v[i], chain_mma_column_steps(k, i), zero, k->v_at[i]);
    }
}

/* ---- the kernel -------------------------------------------------------------------------------
 */

static void require_alignment(struct chain_mma *k, const struct chain_slab *s,
                              struct variant_condition *c)
{
    const struct matmul_operand *o = &s->m.f->operand[s->operand];
    const struct lang_symbol *t = o->plain      ? o->plain->sym
                                  : s->gathered ? s->gathered->sym
                                                : o->eq->sym;
    if (s->aligned)
        variant_require_multiple(k->g, c, t->dims[t->rank - 1],
                                 MMA_CHUNK * 8 / dtype_bits(s->type));
    for (size_t i = 0; i < s->m.reader.needs.n; i++)
        variant_require_multiple(k->g, c, s->m.reader.needs.v[i].e, s->m.reader.needs.v[i].of);
}

/* Are there at most 8 rows? */
static bool has_half(const struct chain_tensor *t, const struct chain_plan *p)
{
    const struct lang_symbol *rows = chain_rows_index(t, p->packs);
    int64_t n;
    return !rows || (lang_const_int(rows->dims[0], &n) && n <= STEP / 2);
}

struct lang_expr *chain_mma(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p,
                            struct variant_condition *c)
{
    struct chain_mma *k = ARENA_NEW(g->a, struct chain_mma);
    *k = (struct chain_mma){.g = g, .t = t, .p = p};
    k->x = (struct chain_tile){.g = g,
                               .t = t,
                               .high = p->high,
                               .wide = p->wide,
                               .block_rows = block_rows(p),
                               .columns = p->columns,
                               .fours = chain_has_bytes(t),
                               .packs = p->packs,
                               .half = p->sharers && p->high == 1 && has_half(t, p),
                               .eights = p->aligned && chain_has_eights(t)};
    lay_all(k, t, p);
    if (chain_has_bytes(t) || chain_has_splits(t))
        g->func->minnctapersm = 1; /* words on their way take more registers than ptxas expects */
    find_threads(k);
    struct lang_expr *grid = find_block(k);
    chain_tile_begin(&k->x);
    chain_split_range(&k->x);
    begin_tiles(k);
    if (p->sharers)
        chain_mma_walk_own(k);
    else
        chain_mma_walk(k);
    mma_wait_copies(g, 0);
    if (p->packs)
        chain_tile_find_again(&k->x);
    g->exit_used |= k->split.splits != NULL || p->sharers > 1;
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
