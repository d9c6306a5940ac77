/* Blocks that share the j of their rows (chain.h): few rows have few tiles, and the device more
 * room than that. Each leaves what its streams have in memory, word by word for each thread; the
 * last one to be done folds all of that in the order of the blocks, so that results don't depend on
 * which one it is. Where they are many, that is done for every SIDE of them first, and then for
 * what that makes: the last block alone would take as long as all others together. */
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

void chain_split_range(struct chain_tile *x, const struct chain_split *s)
{
    struct cg *g = x->g;
    const struct cg_val first = cg_mul(g, cg_binary(g, OP_DIV, x->from, cg_u32(x->wide)), x->wide);
    if (!s->splits) {
        x->from = cg_freeze(g, first);
        return;
    }
    struct cg_val tiles = cg_binary(g, OP_SUB, cg_add(g, x->to, cg_u32(x->wide - 1)), first);
    tiles = cg_select(g, cg_reg(g, cg_binary(g, OP_LT, first, x->to)), tiles, cg_u32(0));
    tiles = cg_binary(g, OP_DIV, tiles, cg_u32(x->wide));
    struct cg_val each = cg_binary(g, OP_SUB, cg_add(g, tiles, s->count), cg_u32(1));
    each = cg_mul(g, cg_binary(g, OP_DIV, each, s->count), x->wide);
    const struct cg_val from = cg_add(g, first, cg_binary(g, OP_MUL, s->number, each));
    x->to = cg_freeze(g, cg_minmax(g, false, x->to, cg_add(g, from, each)));
    x->from = cg_freeze(g, from);
}

/* ---- what a thread leaves -------------------------------------------------------------------- */

enum { SIDE = 8 };

struct left {
    struct chain_tile *x;
    const struct chain_split *s;
    const struct lang_symbol *parts;
    uint32_t words; /* of a thread */
    int32_t base;   /* address of the thread's first word, of a block of the group; 64 bits */
    /* u32, mutable: the part of the first block that takes part, this block's number among these,
     * how many they are, and the number of their counter */
    int32_t first, number, count, counter;
};

static uint32_t sums_of(const struct chain_tile *x)
{
    return x->high * x->columns / 2;
}

static uint32_t words_of(const struct chain_tile *x)
{
    uint32_t n = x->t->ncolumn * sums_of(x);
    for (uint32_t i = 0; i < x->t->f->nstream; i++)
        n += chain_tile_stream(x, i)->has_column ? 0 : chain_tile_rows(x);
    return n + (x->bad >= 0);
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

/* The thread's words of block `number` of those that take part. */
static void stand_at(struct left *l, struct cg_val number)
{
    struct cg *g = l->x->g;
    const struct chain_split *s = l->s;
    struct cg_val at = cg_add(g, cg_value(DT_U32, l->first), number);
    at = cg_binary(g, OP_MUL, cg_convert(g, cg_index(g, at), DT_I64),
                   cg_int(DT_I64, (int64_t)l->words * s->threads));
    at = cg_binary(g, OP_ADD, at, cg_convert(g, s->thread, DT_I64));
    const struct cg_place_of p = cg_address(g, l->parts, at);
    const struct cg_val base = cg_value(DT_I64, p.base);
    l->base = cg_reg(g, cg_binary(g, OP_ADD, base, cg_int(DT_I64, p.offset)));
}

static struct ptx_operand place(const struct left *l, uint32_t word)
{
    return ptx_mem(l->base, (int64_t)word * l->s->threads * 4);
}

static struct cg_val load(const struct left *l, uint32_t word)
{
    struct cg *g = l->x->g;
    const int32_t r = cg_new(g, DT_F32);
    PTX(&g->b, "ld.global.f32", ptx_r(r), place(l, word));
    return cg_value(DT_F32, r);
}

static void leave(struct left *l)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        for (uint32_t row = 0; row < chain_tile_rows(x) && !chain_tile_stream(x, n)->has_column;
             row++)
            PTX(&g->b, "st.global.f32", place(l, word_of_state(x, n) + row),
                ptx_r(x->state[n][row]));
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        for (uint32_t w = 0; w < sums_of(x); w++)
            PTX(&g->b, "st.global.f32", place(l, word_of_sum(x, c) + w), ptx_r(x->sum[c][w]));
    if (x->bad >= 0)
        PTX(&g->b, "st.global.f32", place(l, l->words - 1), ptx_r(x->bad));
}

/* ---- what the last block makes of it --------------------------------------------------------- */

static void for_blocks(struct left *l, void (*body)(struct left *l))
{
    struct cg *g = l->x->g;
    struct cg_for loop;
    const struct cg_val count = cg_freeze(g, cg_value(DT_U32, l->count));
    cg_for_open(g, &loop, "share", NULL, cg_u32(0), NULL);
    stand_at(l, cg_freeze(g, cg_value(DT_U32, loop.at)));
    body(l);
    cg_for_close(g, &loop, cg_u32(1), &count);
}

static void fold_maxima(struct left *l)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        for (uint32_t row = 0; row < chain_tile_rows(x) && chain_is_maximum(x, n); row++)
            cg_move(g, x->state[n][row],
                    cg_minmax(g, true, cg_value(DT_F32, x->state[n][row]),
                              load(l, word_of_state(x, n) + row)));
}

/* The factor of a block's sum of the stream: by how much the maximum of all is above its own. */
static struct cg_val factor(const struct left *l, uint32_t n, uint32_t row)
{
    struct chain_tile *x = l->x;
    const uint32_t top = (uint32_t)chain_tile_stream(x, n)->running;
    return chain_rescaling(x, n, row, load(l, word_of_state(x, top) + row));
}

static void fold_state(struct left *l, uint32_t n, uint32_t row)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const struct chain_stream *s = chain_tile_stream(x, n);
    const struct cg_val mine = cg_value(DT_F32, x->state[n][row]);
    struct cg_val v = load(l, word_of_state(x, n) + row);
    if (s->running >= 0)
        v = cg_fma(g, v, factor(l, n, row), mine);
    else if (s->reduce == RED_SUM)
        v = cg_binary(g, OP_ADD, mine, v);
    else
        v = cg_minmax(g, s->reduce == RED_MAX, mine, v);
    cg_move(g, x->state[n][row], v);
}

static void fold_sums(struct left *l, uint32_t c)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const uint32_t n = x->t->column[c].stream;
    struct cg_val by[CHAIN_ROWS];
    for (uint32_t row = 0; row < chain_tile_rows(x); row++)
        by[row] = chain_tile_stream(x, n)->running >= 0 ? factor(l, n, row)
                                                        : cg_float(g, DT_F32, 1);
    for (uint32_t w = 0; w < sums_of(x); w++) {
        const uint32_t row = w / (x->columns / 2) * 2 + w % 4 / 2;
        const struct cg_val mine = cg_value(DT_F32, x->sum[c][w]);
        cg_move(g, x->sum[c][w], cg_fma(g, load(l, word_of_sum(x, c) + w), by[row], mine));
    }
}

static void fold_others(struct left *l)
{
    struct chain_tile *x = l->x;
    for (uint32_t n = 0; n < x->t->f->nstream; n++)
        for (uint32_t row = 0; row < chain_tile_rows(x) && !chain_tile_stream(x, n)->has_column;
             row++)
            if (!chain_is_maximum(x, n))
                fold_state(l, n, row);
    for (uint32_t c = 0; c < x->t->ncolumn; c++)
        fold_sums(l, c);
    if (x->bad >= 0)
        cg_move(x->g, x->bad,
                cg_binary(x->g, OP_ADD, cg_value(DT_F32, x->bad), load(l, l->words - 1)));
}

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
    const struct cg_val side = cg_binary(g, OP_DIV, s->number, cg_u32(SIDE));
    const struct cg_val counter = cg_add(g, cg_binary(g, OP_MUL, s->group, sides), side);
    const struct cg_val left = cg_binary(g, OP_SUB, s->count, cg_mul(g, side, SIDE));
    l->counter = ring_mutable(g, counter);
    l->first = ring_mutable(g, cg_mul(g, counter, SIDE));
    l->number = ring_mutable(g, cg_binary(g, OP_MOD, s->number, cg_u32(SIDE)));
    l->count = ring_mutable(g, cg_minmax(g, false, left, cg_u32(SIDE)));
}

/* The same among what neighbours have made. all: sides of all groups. */
static void go_on(struct left *l, struct cg_val all, struct cg_val sides)
{
    struct cg *g = l->x->g;
    const struct chain_split *s = l->s;
    const struct cg_val before = cg_binary(g, OP_MUL, s->group, sides);
    const struct cg_val first = cg_add(g, cg_mul(g, all, SIDE), before);
    cg_move(g, l->counter, cg_add(g, all, s->group));
    cg_move(g, l->first, first);
    cg_move(g, l->number, cg_binary(g, OP_DIV, s->number, cg_u32(SIDE)));
    cg_move(g, l->count, sides);
}

/* Leaves what the block has; the last one goes on with what all have left, the others to skip. */
static void fold_all(struct left *l, const struct lang_symbol *arrived, uint32_t skip)
{
    struct chain_tile *x = l->x;
    struct cg *g = x->g;
    const struct cg_val counter = cg_freeze(g, cg_value(DT_U32, l->counter));
    chain_fall_settle(x, false);
    stand_at(l, cg_freeze(g, cg_value(DT_U32, l->number)));
    leave(l);
    const struct cg_val count = cg_freeze(g, cg_value(DT_U32, l->count));
    cg_arrive(g, cg_address(g, arrived, cg_index(g, counter)), count, l->s->thread, skip);
    chain_tile_clear(x);
    for_blocks(l, fold_maxima);
    chain_fall_follow(x);
    for_blocks(l, fold_others);
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
        fold_all(l, arrived, skip);
        return;
    }
    const int32_t left = ring_mutable(g, sides);
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

void chain_split_join(struct chain_tile *x, const struct chain_split *s, uint32_t skip)
{
    struct cg *g = x->g;
    struct arena *a = g->a;
    struct left l = {.x = x, .s = s, .words = words_of(x)};
    const uint32_t alone = cg_label(g, "alone");
    if (!s->splits)
        return;
    /* parts of all blocks, then those that neighbours have made; counters likewise */
    struct lang_expr *sides = lx_ceil_div_int(a, s->splits, SIDE);
    struct lang_expr *all = lx_mul(a, s->groups, sides);
    struct lang_expr *words = lx_mul_int(a, all, (SIDE + 1) * (int64_t)l.words * s->threads);
    words = where_shared(x, s, words);
    struct lang_expr *counters = where_shared(x, s, lx_add(a, all, s->groups));
    l.parts = cg_temp(g, "parts", DT_F32, 1, &words, false);
    const struct lang_symbol *arrived = cg_temp(g, "arrived", DT_U32, 1, &counters, true);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LE, s->count, cg_u32(1))), true, alone);
    const size_t mark = cg_scope_open(g);
    fold_sides(&l, sides, arrived, skip);
    cg_scope_close(g, mark);
    cg_place(g, alone);
    cg_loop_head(g); /* either way has assigned registers */
}
