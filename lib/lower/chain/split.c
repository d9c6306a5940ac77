/* Blocks that share the j of their rows (chain.h): few rows have few tiles, and the device more
 * room than that. Each leaves what its streams have in memory, word by word for each thread; the
 * last one to be done folds all of that in the order of the blocks, so that results don't depend on
 * which one it is. Where they are many, that is done for every SIDE of them first, and then for
 * what that makes: the last block alone would take as long as all others together.
 *
 * Warps of a block that share rows leave theirs in shared memory. Each of them folds some of the
 * columns, of all warps and then of all blocks, several of which it loads at once; what it has at
 * last it leaves where its own of these columns were, for the first warp to go on with. */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/extent.h"
#include "lower/wgmma/ring.h"

bool chain_can_split(const struct chain_tensor *t)
{
    for (uint32_t i = 0; i < t->f->nstream; i++)
        if (t->f->stream[i].type != DT_F32)
            return false;
    return true;
}

/* Tiles are shared so that none has more than one more than another. */
void chain_split_range(struct chain_tile *x)
{
    struct cg *g = x->g;
    const struct cg_val first = cg_mul(g, cg_binary(g, OP_DIV, x->from, cg_u32(x->wide)), x->wide);
    int64_t one;
    if (cg_is_const(x->shares, &one) && one == 1) {
        x->from = cg_freeze(g, first);
        return;
    }
    struct cg_val tiles = cg_binary(g, OP_SUB, cg_add(g, x->to, cg_u32(x->wide - 1)), first);
    tiles = cg_select(g, cg_reg(g, cg_binary(g, OP_LT, first, x->to)), tiles, cg_u32(0));
    tiles = cg_freeze(g, cg_binary(g, OP_DIV, tiles, cg_u32(x->wide)));
    const struct cg_val each = cg_freeze(g, cg_binary(g, OP_DIV, tiles, x->shares));
    const struct cg_val more = cg_binary(g, OP_SUB, tiles, cg_binary(g, OP_MUL, each, x->shares));
    const struct cg_val extra = cg_minmax(g, false, x->share, more);
    const struct cg_val before = cg_add(g, cg_binary(g, OP_MUL, x->share, each), extra);
    const struct cg_val has_more = cg_binary(g, OP_LT, x->share, more);
    const struct cg_val own =
        cg_add(g, each, cg_select(g, cg_reg(g, has_more), cg_u32(1), cg_u32(0)));
    const struct cg_val from = cg_freeze(g, cg_add(g, first, cg_mul(g, before, x->wide)));
    x->to = cg_freeze(g, cg_minmax(g, false, x->to, cg_add(g, from, cg_mul(g, own, x->wide))));
    x->from = from;
}

/* ---- what a thread leaves -------------------------------------------------------------------- */

/* PARTS: parts that are folded at once, FEW_PARTS: those of a number that is not known, whose code
 * is to be short; HELD: words of them in registers. */
enum {
    LANES = 32,
    WORD = 4,
    SIDE = 8,
    SIDE_OF_SHARERS = 32,
    PARTS = 16,
    FEW_PARTS = 4,
    HELD = 128,
};

/* Where the thread's words of a part lie: addresses. */
struct part {
    int32_t base, columns; /* of the first word, and of the first that is of the warp's columns */
    int32_t exists;        /* a predicate, -1: it does */
};

struct left {
    struct chain_tile *x;
    const struct chain_split *s;
    const struct lang_symbol *parts;
    uint32_t words;  /* of a thread */
    uint32_t side;   /* parts that are folded at a time */
    uint32_t blocks; /* of 8 columns that a warp folds */
    /* Does the warp fold some, which is the first? Constants, or predicates. */
    struct cg_val folds, is_first;
    bool in_shared; /* parts are those of the block's warps */
    struct part mine;
    /* u32, mutable: the part of the first block that takes part, this block's number among these,
     * how many they are, and the number of their counter */
    int32_t first, number, count, counter;
    struct cg_val known; /* the count, where there is one side; of DT_VOID where there are more */
};

static uint32_t sums_of(const struct chain_tile *x)
{
    return x->high * x->columns / 2;
}

static bool has_splits(const struct chain_tensor *t)
{
    bool splits = false;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        splits |= t->score[i].splits;
    return splits;
}

static uint32_t words_of(const struct chain_tensor *t, uint32_t high, uint32_t columns)
{
    uint32_t n = t->ncolumn * high * columns / 2;
    for (uint32_t i = 0; i < t->f->nstream; i++)
        n += t->f->stream[i].has_column ? 0 : 2 * high;
    return n + has_splits(t);
}

uint32_t chain_split_bytes(const struct chain_tensor *t, uint32_t high, uint32_t columns)
{
    return words_of(t, high, columns) * LANES * WORD;
}

/* The number of a stream's first word: states come first. */
static uint32_t word_of_state(const struct chain_tile *x, uint32_t n)
{
    uint32_t word = 0;
    for (uint32_t i = 0; i < n; i++)
        word += chain_tile_stream(x, i)->has_column ? 0 : chain_tile_rows(x);
    return word;
}

static uint32_t word_of_sum(const struct chain_tile *x, uint32_t column)
{
    return word_of_state(x, x->t->f->nstream) + column * sums_of(x);
}

/* Words of the warp's columns, of one stream; the number of the nth of them, if its columns are the
 * first. */
static uint32_t own_sums(const struct left *l)
{
    return l->x->high * l->blocks * (l->x->half ? 2 : 4);
}

static uint32_t own_sum(const struct left *l, uint32_t n)
{
    const uint32_t of_block = l->x->half ? 2 : 4, each = l->blocks * of_block;
    return n / each * (l->x->columns / 2) + n % each / of_block * 4 + n % of_block;
}

/* The warp's number where it folds some columns, of others the last one's that does. */
static struct cg_val folding_warp(const struct left *l)
{
    struct cg *g = l->x->g;
    const uint32_t warps = l->x->columns / 8 / l->blocks;
    return warps < l->s->sharers ? cg_minmax(g, false, l->s->sharer, cg_u32(warps - 1))
                                 : l->s->sharer;
}

/* Bytes from a word to the thread's next. */
static uint32_t stride(const struct left *l)
{
    return (l->in_shared ? LANES : l->s->threads) * WORD;
}

/* The place of its columns, as far from the thread's as the base is from its words. */
static int32_t find_columns(const struct left *l, struct cg_val base)
{
    struct cg *g = l->x->g;
    if (l->s->sharers < 2)
        return cg_reg(g, base);
    struct cg_val at = cg_mul(g, folding_warp(l), l->blocks * 4 * stride(l));
    return cg_reg(g, cg_binary(g, OP_ADD, base, cg_convert(g, at, base.type)));
}

static struct cg_val thread_of_rows(const struct left *l)
{
    return l->s->sharers ? l->x->lane : l->s->thread;
}

/* The thread's words of block `number` of those that take part, or of the warp of that number. */
static struct part part_of(const struct left *l, struct cg_val number)
{
    struct cg *g = l->x->g;
    const struct chain_split *s = l->s;
    struct cg_val base;
    if (l->in_shared) {
        base = cg_add(g, cg_value(DT_U32, s->shared), cg_u32(s->before));
        base = cg_add(g, base, cg_mul(g, number, s->bytes));
        base = cg_add(g, base, cg_mul(g, l->x->lane, WORD));
    } else {
        struct cg_val at = cg_add(g, cg_value(DT_U32, l->first), number);
        at = cg_binary(g, OP_MUL, cg_convert(g, cg_index(g, at), DT_I64),
                       cg_int(DT_I64, (int64_t)l->words * s->threads));
        at = cg_binary(g, OP_ADD, at, cg_convert(g, thread_of_rows(l), DT_I64));
        const struct cg_place_of p = cg_address(g, l->parts, at);
        base = cg_binary(g, OP_ADD, cg_value(DT_I64, p.base), cg_int(DT_I64, p.offset));
    }
    return (struct part){.base = cg_reg(g, base), .columns = find_columns(l, base), .exists = -1};
}

static struct ptx_operand place(const struct left *l, int32_t base, uint32_t word)
{
    return ptx_mem(base, (int64_t)word * stride(l));
}

static struct cg_val load_at(const struct left *l, int32_t base, uint32_t word)
{
    struct cg *g = l->x->g;
    const int32_t r = cg_new(g, DT_F32);
    PTX(&g->b, l->in_shared ? "ld.shared.f32" : "ld.global.f32", ptx_r(r), place(l, base, word));
    return cg_value(DT_F32, r);
}

static struct cg_val load(const struct left *l, const struct part *p, uint32_t word)
{
    return load_at(l, p->base, word);
}

static struct cg_val load_sum(const struct left *l, const struct part *p, uint32_t c, uint32_t n)
{
    return load_at(l, p->columns, word_of_sum(l->x, c) + own_sum(l, n));
}

/* Stores the register where the condition holds, a constant or a predicate. */
static void store(const struct left *l, struct cg_val where, int32_t base, uint32_t word,
                  int32_t reg)
{
    struct cg *g = l->x->g;
    int64_t always;
    ptx_emit(&g->b, cg_is_const(where, &always) ? -1 : cg_reg(g, where), false,
             l->in_shared ? "st.shared.f32" : "st.global.f32",
             PTX_ARGS(place(l, base, word), ptx_r(reg)));
}

static void leave_states(const struct left *l)
{
    struct chain_tile *x = l->x;
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        for (uint32_t row = 0; row < chain_tile_rows(x) && !chain_tile_stream(x, n)->has_column;
             row++)
            store(l, l->is_first, l->mine.base, word_of_state(x, n) + row, x->state[n][row]);
    if (x->bad >= 0)
        store(l, l->is_first, l->mine.base, l->words - 1, x->bad);
}

/* The sums of the warp's columns. */
static void leave_own(const struct left *l)
{
    for (uint32_t c = 0; c < l->x->t->ncolumn; c++)
        for (uint32_t n = 0; n < own_sums(l); n++)
            store(l, l->folds, l->mine.columns, word_of_sum(l->x, c) + own_sum(l, n),
                  l->x->sum[c][own_sum(l, n)]);
}

/* ---- what the last block makes of it --------------------------------------------------------- */

/* Parts that are loaded at once. */
static uint32_t parts_at_once(const struct left *l)
{
    const uint32_t sums = l->x->t->ncolumn * own_sums(l);
    const uint32_t n = sums ? HELD / sums : PARTS;
    return l->s->sharers < 2 || n < 1 ? 1 : n < PARTS ? n : PARTS;
}

typedef void fold_parts(struct left *l, const struct part *p, uint32_t n);

/* For n parts from `number` on, of so many. */
static void for_some(struct left *l, struct cg_val number, uint32_t n, struct cg_val count,
                     fold_parts *body)
{
    struct cg *g = l->x->g;
    struct part p[PARTS];
    int64_t known, at;
    for (uint32_t i = 0; i < n; i++) {
        const struct cg_val here = cg_add(g, number, cg_u32(i));
        const struct cg_val last = cg_binary(g, OP_SUB, count, cg_u32(1));
        const bool exists = i == 0 ||
                            (cg_is_const(here, &at) && cg_is_const(count, &known) && at < known);
        p[i] = part_of(l, exists ? here : cg_minmax(g, false, here, last));
        if (!exists)
            p[i].exists = cg_reg(g, cg_binary(g, OP_LT, here, count));
    }
    body(l, p, n);
}

static void for_parts(struct left *l, struct cg_val count, fold_parts *body)
{
    struct cg *g = l->x->g;
    uint32_t n = parts_at_once(l);
    struct cg_for loop;
    int64_t known;
    const bool is_known = cg_is_const(count, &known);
    if (!is_known && n > FEW_PARTS)
        n = FEW_PARTS;
    if (is_known && known <= n) {
        for_some(l, cg_u32(0), (uint32_t)known, count, body);
        return;
    }
    cg_for_open(g, &loop, "share", NULL, cg_u32(0), NULL);
    for_some(l, cg_freeze(g, cg_value(DT_U32, loop.at)), n, count, body);
    cg_for_close(g, &loop, cg_u32(n), &count);
}

/* Where a part does not exist it is another one, which changes no maximum. */
static void fold_maxima(struct left *l, const struct part *p, uint32_t parts)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        for (uint32_t row = 0; row < chain_tile_rows(x) && chain_is_maximum(x, n); row++)
            for (uint32_t i = 0; i < parts; i++)
                cg_move(g, x->state[n][row],
                        cg_minmax(g, true, cg_value(DT_F32, x->state[n][row]),
                                  load(l, &p[i], word_of_state(x, n) + row)));
}

/* v if the part exists. */
static struct cg_val if_exists(const struct left *l, const struct part *p, struct cg_val v,
                               struct cg_val none)
{
    return p->exists < 0 ? v : cg_select(l->x->g, p->exists, v, none);
}

/* The factor of a part's sum of the stream: by how much the maximum of all is above its own. */
static struct cg_val factor(const struct left *l, const struct part *p, uint32_t n, uint32_t row)
{
    struct chain_tile *x = l->x;
    const uint32_t top = (uint32_t)chain_tile_stream(x, n)->running;
    return chain_rescaling(x, n, row, load(l, p, word_of_state(x, top) + row));
}

static void fold_state(struct left *l, const struct part *p, uint32_t n, uint32_t row)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const struct chain_stream *s = chain_tile_stream(x, n);
    const struct cg_val mine = cg_value(DT_F32, x->state[n][row]);
    struct cg_val v = if_exists(l, p, load(l, p, word_of_state(x, n) + row),
                                cg_reduce_identity(g, s->reduce, DT_F32));
    if (s->running >= 0)
        v = cg_fma(g, v, factor(l, p, n, row), mine);
    else if (s->reduce == RED_SUM)
        v = cg_binary(g, OP_ADD, mine, v);
    else
        v = cg_minmax(g, s->reduce == RED_MAX, mine, v);
    cg_move(g, x->state[n][row], v);
}

/* What does not exist counts 0 times: it is as good as another part's, unless that is infinite or
 * NaN, and then rows are computed anew in any case. */
static void fold_sums(struct left *l, const struct part *p, uint32_t parts, uint32_t c)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const uint32_t stream = x->t->column[c].stream, sums = own_sums(l);
    struct cg_val by[PARTS][CHAIN_ROWS];
    struct cg_val *const v = ARENA_ARRAY(g->a, (size_t)parts * sums, struct cg_val);
    for (uint32_t i = 0; i < parts * sums; i++)
        v[i] = load_sum(l, &p[i / sums], c, i % sums);
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t row = 0; row < chain_tile_rows(x); row++) {
            const bool runs = chain_tile_stream(x, stream)->running >= 0;
            const struct cg_val f = runs ? factor(l, &p[i], stream, row) : cg_float(g, DT_F32, 1);
            by[i][row] = if_exists(l, &p[i], f, cg_float(g, DT_F32, 0));
        }
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t n = 0; n < sums; n++) {
            const uint32_t w = own_sum(l, n), row = w / (x->columns / 2) * 2 + w % 4 / 2;
            cg_move(g, x->sum[c][w],
                    cg_fma(g, v[i * sums + n], by[i][row], cg_value(DT_F32, x->sum[c][w])));
        }
}

static void fold_others(struct left *l, const struct part *p, uint32_t parts)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        for (uint32_t row = 0; row < chain_tile_rows(x) && !chain_tile_stream(x, n)->has_column;
             row++)
            for (uint32_t i = 0; i < parts && !chain_is_maximum(x, n); i++)
                fold_state(l, &p[i], n, row);
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        fold_sums(l, p, parts, c);
    for (uint32_t i = 0; i < parts && x->bad >= 0; i++)
        cg_move(
            g, x->bad,
            cg_binary(g, OP_ADD, cg_value(DT_F32, x->bad),
                      if_exists(l, &p[i], load(l, &p[i], l->words - 1), cg_float(g, DT_F32, 0))));
}

/* The warp's columns and all states become those of all parts. */
static void fold(struct left *l, struct cg_val count)
{
    chain_tile_clear(l->x);
    for_parts(l, count, fold_maxima);
    chain_fall_follow(l->x);
    for_parts(l, count, fold_others);
}

/* ---- warps of a block ------------------------------------------------------------------------ */

static void meet(const struct left *l)
{
    PTX(&l->x->g->b, "bar.sync", ptx_imm(0));
}

/* The warp leaves all that it has, and folds its columns of what all have left. */
static void fold_warps(struct left *l)
{
    struct chain_tile *x = l->x;
    chain_fall_settle(x, false);
    l->in_shared = true;
    l->mine = part_of(l, l->s->sharer);
    const struct cg_val is_first = l->is_first;
    l->is_first = cg_bool(x->g, true);
    leave_states(l);
    l->is_first = is_first;
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        for (uint32_t w = 0; w < sums_of(x); w++)
            if (chain_tile_uses(x, w))
                store(l, cg_bool(x->g, true), l->mine.base, word_of_sum(x, c) + w, x->sum[c][w]);
    meet(l);
    fold(l, cg_u32(l->s->sharers));
    l->in_shared = false;
}

/* The first warp gets all columns, and others go to skip. Each leaves its own where nobody else
 * reads: where it left its own part of them before. */
static void gather(struct left *l, uint32_t skip)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const uint32_t each = l->blocks * 4;
    int64_t always;
    l->in_shared = true;
    l->mine = part_of(l, l->s->sharer);
    if (!cg_is_const(l->folds, &always))
        meet(l); /* those that fold nothing have read the last one's columns as it has */
    leave_own(l);
    meet(l);
    cg_jump_if(g, cg_reg(g, l->is_first), false, skip);
    for (uint32_t warp = 0; warp < x->columns / 2 / each; warp++) {
        const struct part p = part_of(l, cg_u32(warp));
        for (uint32_t c = 0; c < x->t->ncolumn; c++)
            for (uint32_t n = 0; n < own_sums(l); n++) {
                const uint32_t w = own_sum(l, n) + warp * each;
                cg_move(g, x->sum[c][w], load(l, &p, word_of_sum(x, c) + w));
            }
    }
    l->in_shared = false;
}

/* How many blocks of 8 columns a warp folds: the same for all that fold any. */
static uint32_t blocks_of_warp(const struct chain_tile *x, uint32_t warps)
{
    const uint32_t all = x->columns / 8;
    uint32_t n = (all + warps - 1) / warps;
    while (all % n)
        n++;
    return n;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Nothing is kept where the launch takes another entry, or finds that blocks don't share. */
static struct lang_expr *where_shared(const struct chain_tile *x, const struct chain_split *s,
                                      struct lang_expr *n)
{
    struct arena *a = x->g->a;
    struct lang_expr *several = lx_compare(a, OP_GT, s->splits, lx_int(a, 1));
    n = lx_select(a, lx_and(a, s->when, several), n, lx_int(a, 0));
    return s->unless ? lx_select(a, s->unless, lx_int(a, 0), n) : n;
}

/* The block's part among its neighbours'. sides: of these in a group. */
static void begin_sides(struct left *l, struct cg_val sides)
{
    struct cg *g = l->x->g;
    const struct chain_split *s = l->s;
    const struct cg_val side = cg_binary(g, OP_DIV, s->number, cg_u32(l->side));
    const struct cg_val counter = cg_add(g, cg_binary(g, OP_MUL, s->group, sides), side);
    const struct cg_val left = cg_binary(g, OP_SUB, s->count, cg_mul(g, side, l->side));
    l->counter = cg_mutable(g, counter);
    l->first = cg_mutable(g, cg_mul(g, counter, l->side));
    l->number = cg_mutable(g, cg_binary(g, OP_MOD, s->number, cg_u32(l->side)));
    l->count = cg_mutable(g, cg_minmax(g, false, left, cg_u32(l->side)));
}

/* The same among what neighbours have made. all: sides of all groups. */
static void go_on(struct left *l, struct cg_val all, struct cg_val sides)
{
    struct cg *g = l->x->g;
    const struct chain_split *s = l->s;
    const struct cg_val before = cg_binary(g, OP_MUL, s->group, sides);
    const struct cg_val first = cg_add(g, cg_mul(g, all, l->side), before);
    cg_move(g, l->counter, cg_add(g, all, s->group));
    cg_move(g, l->first, first);
    cg_move(g, l->number, cg_binary(g, OP_DIV, s->number, cg_u32(l->side)));
    cg_move(g, l->count, sides);
}

/* Leaves what the block has; the last one goes on with what all have left, the others to skip. */
static void fold_all(struct left *l, const struct lang_symbol *arrived, uint32_t skip)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const struct cg_val counter = cg_freeze(g, cg_value(DT_U32, l->counter));
    if (l->s->sharers < 2)
        chain_fall_settle(x, false);
    l->mine = part_of(l, cg_freeze(g, cg_value(DT_U32, l->number)));
    leave_states(l);
    leave_own(l);
    const struct cg_val count = l->known.type != DT_VOID ? l->known
                                                         : cg_freeze(g, cg_value(DT_U32, l->count));
    cg_arrive(g, cg_address(g, arrived, cg_index(g, counter)), count, l->s->thread, skip);
    fold(l, count);
}

/* For neighbours, then for what these have made where there is more than that. */
static void fold_sides(struct left *l, struct lang_expr *n, const struct lang_symbol *arrived,
                       uint32_t skip)
{
    struct cg *g = l->x->g;
    const uint32_t head = cg_label(g, "sides"), done = cg_label(g, "joined");
    const struct cg_val sides = extent_u32(g, extent_computed(g, n));
    const struct cg_val all = extent_u32(g, extent_computed(g, lx_mul(g->a, l->s->groups, n)));
    int64_t one;
    begin_sides(l, sides);
    if (lang_const_int(n, &one) && one == 1) {
        l->known = l->s->count;
        fold_all(l, arrived, skip);
        return;
    }
    const int32_t left = cg_mutable(g, sides);
    struct cg_nest nest;
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    const int32_t varies[] = {l->first, l->number, l->count, l->counter, left};
    for (size_t i = 0; i < COUNT(varies); i++)
        cg_nest_varies(g, &nest, varies[i]);
    fold_all(l, arrived, skip);
    const struct cg_val is_last =
        cg_binary(g, OP_LE, cg_freeze(g, cg_value(DT_U32, left)), cg_u32(1));
    cg_jump_if(g, cg_reg(g, is_last), true, done);
    go_on(l, all, sides);
    cg_move(g, left, cg_u32(1));
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
    cg_loop_head(g);
}

/* Of all blocks that share rows. */
static void fold_blocks(struct left *l, uint32_t skip)
{
    struct chain_tile *x = l->x;
    const struct chain_split *s = l->s;
    struct cg *g = x->g;
    struct arena *a = g->a;
    const uint32_t alone = cg_label(g, "alone");
    /* parts of all blocks, then those that neighbours have made; counters likewise */
    struct lang_expr *sides = lx_ceil_div_int(a, s->splits, l->side);
    struct lang_expr *all = lx_mul(a, s->groups, sides);
    struct lang_expr *words = lx_mul_int(a, all, (l->side + 1) * (int64_t)l->words * s->threads);
    words = where_shared(x, s, words);
    struct lang_expr *counters = where_shared(x, s, lx_add(a, all, s->groups));
    l->parts = cg_temp(g, "parts", DT_F32, 1, &words, false);
    const struct lang_symbol *arrived = cg_temp(g, "arrived", DT_U32, 1, &counters, true);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LE, s->count, cg_u32(1))), true, alone);
    const size_t mark = cg_scope_open(g);
    fold_sides(l, sides, arrived, skip);
    cg_scope_close(g, mark);
    cg_place(g, alone);
    cg_loop_head(g); /* either way has assigned registers */
}

void chain_split_join(struct chain_tile *x, const struct chain_split *s, uint32_t skip)
{
    struct cg *g = x->g;
    struct left l = {.x = x,
                     .s = s,
                     .words = words_of(x->t, x->high, x->columns),
                     .side = s->sharers > 1 ? SIDE_OF_SHARERS : SIDE,
                     .blocks = x->columns / 8,
                     .folds = cg_bool(g, true),
                     .is_first = cg_bool(g, true),
                     .known = {.type = DT_VOID}};
    if (s->sharers > 1) {
        l.blocks = blocks_of_warp(x, s->sharers);
        l.is_first = cg_freeze(g, cg_binary(g, OP_EQ, s->sharer, cg_u32(0)));
        const uint32_t warps = x->columns / 8 / l.blocks;
        if (warps < s->sharers)
            l.folds = cg_freeze(g, cg_binary(g, OP_LT, s->sharer, cg_u32(warps)));
        fold_warps(&l);
    }
    if (s->splits)
        fold_blocks(&l, skip);
    if (s->sharers > 1)
        gather(&l, skip);
}
