/* Multiplies f32 that are rounded to tf32 as f16 (mma/mma.h). Both types have 10 bits of mantissa,
 * so f16 has a tf32 exactly where its exponent allows, and an instruction multiplies twice as many
 * f16.
 *
 * A block multiplies each operand by a power of two, its scale. The scale brings the largest
 * element of the block's first tile to between 2^14 and 2^15. So f16 has all elements that are at
 * most twice as large, and those down to 2^28 times smaller.
 *
 * Elements go from memory to registers, which scale, round and pack them, and from there to tiles
 * of f16. There are two stages: one is multiplied while the other is written. Two loops do this,
 * and both test each element on its way. The first loop ends at an f16 that is too large, or so
 * small that it may have been rounded to a subnormal or to the smallest normal number; zeros end
 * it, too. The second goes on from there, and tells zeros from what is too small. The tests are:
 *
 *   too large   The largest |f16| so far is 65504, infinite or NaN. Where a sum rounds the words,
 *               the largest |f32| is tested instead.
 *   too small   First loop: the smallest |f16| so far is less than 2^-14. Where words are rounded
 *               to even it may not be 2^-14 either, since what is half a bit of tf32 less becomes
 *               2^-14. Second loop: 2 |x| - 1 of the f32, as an unsigned integer, is less than that
 *               of 2^-14 / scale. A zero makes the largest number there is of it, and passes.
 *
 * Scales are 2^112 at most. So subnormal f32, which have fewer bits, count as too small.
 *
 * A tile with elements that f16 does not have is not multiplied. The sums are scaled back, and the
 * loop of tf32 (mma/mma.c) does the rest. So a block whose elements are soon out of reach is nearly
 * as fast as without all this.
 */
#include <config.h>

#include "lower/mma/mma.h"

enum {
    PIECE = 4, /* elements */
    STAGES = 2,
    LANES = 32,
};

bool mma_measure_as_f16(const struct mma_shape *s, struct mma_shape *h, struct matmul_plan *p)
{
    *p = *s->p;
    p->as_f16 = false;
    p->type = MATMUL_F16;
    p->stages = STAGES;
    *h = (struct mma_shape){.target = s->target, .f = s->f, .p = p, .as_f16 = true};
    if (!mma_measure(h, NULL))
        return false;
    for (uint32_t n = 0; n < h->ntile; n++)
        if (h->tile[n].lanes != PIECE || h->tile[n].count > MMA_SLOTS)
            return false;
    return true;
}

/* Bytes of the stages and, behind them, of one word for each operand and warp. */
uint32_t mma_as_f16_shared(const struct mma_shape *h)
{
    return h->stage_bytes * STAGES + h->ntile * LANES * 4;
}

/* ---- a thread's pieces ----------------------------------------------------------------------- */

/* How far an operand's elements reach. Its elements are multiplied by scale, a power of two. least
 * is what look_for_small() makes of the smallest element that f16 has then (find_least()). low and
 * high are the smallest and the largest so far. */
struct reach {
    int32_t scale, least, low, high;
};

struct as_f16 {
    struct mma *h;
    bool exact; /* the second loop */
    struct reach of[MATMUL_OPERANDS];
};

static enum matmul_cut cut_of(const struct mma *h, const struct mma_slab *t)
{
    return h->f->operand[t->of->operand].cut;
}

/* Loads piece i of the tile at t->from. */
static void load_piece(struct mma *h, struct mma_slab *t, uint32_t i)
{
    struct cg *g = h->g;
    struct cg_val inside;
    struct ptx_operand to[PIECE];
    int64_t always;
    const struct ptx_operand from = mma_source(h, t, i, &inside);
    if (mma_exists(t, i) >= 0)
        inside = cg_binary(g, OP_LAND, inside, cg_value(DT_BOOL, mma_exists(t, i)));
    for (uint32_t w = 0; w < PIECE; w++) {
        to[w] = ptx_r(t->raw[i][w]);
        if (!h->m->whole_k)
            PTX(&g->b, "mov.b32", to[w], ptx_imm(0));
        cg_assigned(g, t->raw[i][w]);
    }
    const int32_t p = cg_is_const(inside, &always) && always ? -1 : cg_reg(g, inside);
    ptx_emit(&g->b, p, false, "ld.global.L1::no_allocate.v4.b32",
             PTX_ARGS(ptx_vec(&g->b, PIECE, to), from));
}

/* Does a sum round the word? Then only the f32 tells whether the word was too large. */
static bool by_sum(const struct mma *h, const struct mma_slab *t)
{
    return cut_of(h, t) == MATMUL_AWAY;
}

/* Replaces `to` by op of `to` and x; op is a minimum or maximum. */
static void keep(struct mma *h, const char *op, int32_t to, int32_t x)
{
    CG_ASSIGN(h->g, to, op, ptx_r(to), ptx_r(x));
}

static int32_t both(struct mma *h, const char *op, int32_t x, int32_t y)
{
    const int32_t z = cg_new(h->g, DT_U32);
    PTX(&h->g->b, op, ptx_r(z), ptx_r(x), ptx_r(y));
    return z;
}

static int32_t one(struct mma *h, const char *op, int32_t x)
{
    const int32_t y = cg_new(h->g, DT_U32);
    PTX(&h->g->b, op, ptx_r(y), ptx_r(x));
    return y;
}

/* Keeps the smallest word of the piece in r->low, as 2 |x| - 1: so zeros are the largest. */
static void look_for_small(struct mma *h, struct reach *r, const int32_t *raw)
{
    struct cg *g = h->g;
    int32_t small[PIECE];
    for (uint32_t w = 0; w < PIECE; w++) {
        small[w] = cg_new(g, DT_U32);
        PTX(&g->b, "mad.lo.u32", ptx_r(small[w]), ptx_r(raw[w]), ptx_imm(2), ptx_imm(-1));
    }
    small[0] = both(h, "min.u32", small[0], small[1]);
    small[2] = both(h, "min.u32", small[2], small[3]);
    keep(h, "min.u32", r->low, both(h, "min.u32", small[0], small[2]));
}

/* Scales and rounds the piece's elements: word[0] gets elements 0 and `second`, word[1] the
 * others. */
static void pack(struct as_f16 *x, uint32_t n, const int32_t *raw, uint32_t second, int32_t word[2])
{
    enum { HALF = 1 << 12 };
    struct mma *h = x->h;
    struct cg *g = h->g;
    const struct mma_slab *t = &h->slab[n];
    struct reach *r = &x->of[n];
    const bool sum = by_sum(h, t);
    int32_t y[PIECE];
    for (uint32_t w = 0; w < PIECE; w++) {
        y[w] = both(h, "mul.rn.f32", raw[w], r->scale);
        if (!sum)
            continue;
        keep(h, "max.NaN.f32", r->high, one(h, "abs.f32", y[w]));
        const int32_t up = cg_new(g, DT_U32);
        PTX(&g->b, "add.s32", ptx_r(up), ptx_r(y[w]), ptx_imm(HALF));
        y[w] = up;
    }
    const char *const cvt = cut_of(h, t) == MATMUL_EVEN ? "cvt.rn.f16x2.f32" : "cvt.rz.f16x2.f32";
    word[0] = both(h, cvt, y[second], y[0]);
    word[1] = both(h, cvt, y[3], y[3 - second]);
    const int32_t first = one(h, "abs.f16x2", word[0]), other = one(h, "abs.f16x2", word[1]);
    if (!sum)
        keep(h, "max.NaN.f16x2", r->high, both(h, "max.NaN.f16x2", first, other));
    if (!x->exact)
        keep(h, "min.f16x2", r->low, both(h, "min.f16x2", first, other));
}

/* Writes piece i of the operand to the stage that is filled now. */
static void put_piece(struct as_f16 *x, uint32_t n, uint32_t i)
{
    enum { OTHER = 16 }; /* bytes to the chunk of odd neighbours, or from there */
    struct mma *h = x->h;
    struct cg *g = h->g;
    struct mma_slab *t = &h->slab[n];
    const int32_t *raw = t->raw[i];
    const struct ptx_operand to = mma_target(t, i);
    int32_t word[2];
    if (x->exact)
        look_for_small(h, &x->of[n], raw);
    pack(x, n, raw, t->of->lay.spaced ? 2 : 1, word);
    if (!t->of->lay.spaced) {
        struct ptx_operand v[2] = {ptx_r(word[0]), ptx_r(word[1])};
        ptx_emit(&g->b, mma_exists(t, i), false, "st.shared.v2.b32",
                 PTX_ARGS(to, ptx_vec(&g->b, 2, v)));
        return;
    }
    const int32_t other =
        CG(g, PTX_B32, "xor.b32", ptx_r(mma_target_register(t, i)), ptx_imm(OTHER));
    ptx_emit(&g->b, mma_exists(t, i), false, "st.shared.b32", PTX_ARGS(to, ptx_r(word[0])));
    ptx_emit(&g->b, mma_exists(t, i), false, "st.shared.b32",
             PTX_ARGS(ptx_mem(other, mma_target_offset(t, i)), ptx_r(word[1])));
}

static uint32_t count(const struct mma *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->shape->ntile; i++)
        n += h->shape->tile[i].count;
    return n;
}

static void load_all(struct mma *h)
{
    for (uint32_t n = 0; n < h->shape->ntile; n++) {
        mma_tile_begin(h, &h->slab[n]);
        for (uint32_t i = 0; i < h->shape->tile[n].count; i++)
            load_piece(h, &h->slab[n], i);
    }
    mma_advance(h);
}

/* ---- scales ---------------------------------------------------------------------------------- */

/* The largest of the words that the threads of a warp have, one each. */
static int32_t largest_of_warp(struct mma *h, int32_t word)
{
    struct cg *g = h->g;
    const int32_t most = cg_new(g, DT_U32);
    PTX(&g->b, "redux.sync.max.u32", ptx_r(most), ptx_r(word), ptx_imm(-1));
    return most;
}

/* 2 |x| of the thread's elements, at most. */
static int32_t largest_of_thread(struct mma *h, const struct mma_slab *t)
{
    struct cg *g = h->g;
    const int32_t most = cg_new_mutable(g, DT_U32);
    PTX(&g->b, "mov.u32", ptx_r(most), ptx_imm(0));
    for (uint32_t i = 0; i < t->of->count; i++)
        for (uint32_t w = 0; w < PIECE; w++) {
            const int32_t twice = cg_new(g, DT_U32);
            PTX(&g->b, "add.u32", ptx_r(twice), ptx_r(t->raw[i][w]), ptx_r(t->raw[i][w]));
            CG_ASSIGN(g, most, "max.u32", ptx_r(most), ptx_r(twice));
        }
    return most;
}

/* The exponent field of f32: its value in 2^0, its value in the largest scale, its lowest bit. */
enum { EXPONENT_BIAS = 127, EXPONENT_OF_MOST = EXPONENT_BIAS + 112, EXPONENT = 23 };

/* Sets the scale to 2^(14 - e), where 2^e is the largest power of two in |x|, or to the largest
 * scale. most: 2 |x| of the largest element. */
static void choose_scale(struct mma *h, const struct reach *r, int32_t most)
{
    enum { AIM = 2 * EXPONENT_BIAS + 14 };
    struct cg *g = h->g;
    struct cg_val s = cg_binary(g, OP_SHR, cg_value(DT_U32, most), cg_u32(EXPONENT + 1));
    s = cg_convert(g, cg_binary(g, OP_SUB, cg_u32(AIM), s), DT_I32);
    s = cg_convert(g, cg_minmax(g, false, s, cg_int(DT_I32, EXPONENT_OF_MOST)), DT_U32);
    cg_move(g, r->scale, cg_binary(g, OP_SHL, s, cg_u32(EXPONENT)));
}

/* 1 / scale */
static int32_t inverse(struct mma *h, const struct reach *r)
{
    struct cg *g = h->g;
    const struct cg_val twice = cg_u32((2u * EXPONENT_BIAS) << EXPONENT);
    return cg_reg(g, cg_binary(g, OP_SUB, twice, cg_value(DT_U32, r->scale)));
}

/* Computes 2 x - 1, as integers, for x = 2^-14 / scale. */
static void find_least(struct mma *h, const struct reach *r)
{
    struct cg *g = h->g;
    const int32_t least = cg_new(g, DT_U32);
    PTX(&g->b, "mul.rn.f32", ptx_r(least), ptx_r(inverse(h, r)), ptx_immf32(0x1p-14f));
    CG_ASSIGN(g, r->least, "mad.lo.u32", ptx_r(least), ptx_imm(2), ptx_imm(-1));
}

/* Chooses scales by the largest elements of the tile that was loaded. All of the block's threads
 * call it. */
static void choose_scales(struct as_f16 *x)
{
    struct mma *h = x->h;
    struct cg *g = h->g;
    const struct matmul *m = h->m;
    const uint32_t warps = h->p->threads / LANES, words = h->shape->stage_bytes * STAGES;
    struct cg_val at = cg_value(DT_U32, m->shared);
    const int32_t mine = cg_reg(g, cg_weighted(g, at, 1, m->warp, 4));
    const int32_t first = cg_reg(g, cg_binary(g, OP_EQ, m->lane, cg_u32(0)));
    for (uint32_t n = 0; n < h->shape->ntile; n++) {
        const int32_t most = largest_of_warp(h, largest_of_thread(h, &h->slab[n]));
        PTX_IF(&g->b, first, "st.shared.u32", ptx_mem(mine, words + n * LANES * 4), ptx_r(most));
    }
    mma_barrier(h);
    at = cg_weighted(g, at, 1, cg_binary(g, OP_MOD, m->lane, cg_u32(warps)), 4);
    const int32_t others = cg_reg(g, at);
    for (uint32_t n = 0; n < h->shape->ntile; n++) {
        const int32_t most = cg_new(g, DT_U32);
        PTX(&g->b, "ld.shared.u32", ptx_r(most), ptx_mem(others, words + n * LANES * 4));
        choose_scale(h, &x->of[n], largest_of_warp(h, most));
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void make_registers(struct as_f16 *x)
{
    struct mma *h = x->h;
    struct cg *g = h->g;
    for (uint32_t n = 0; n < h->shape->ntile; n++) {
        struct mma_slab *t = &h->slab[n];
        struct reach *r = &x->of[n];
        int32_t *const word[] = {&r->scale, &r->least, &r->low, &r->high};
        for (size_t i = 0; i < sizeof word / sizeof *word; i++)
            *word[i] = cg_new_mutable(g, DT_U32);
        t->raw = arena_alloc(g->a, t->of->count * sizeof *t->raw);
        for (uint32_t i = 0; i < t->of->count; i++)
            for (uint32_t w = 0; w < PIECE; w++)
                t->raw[i][w] = cg_new_mutable(g, DT_U32);
    }
    h->read = cg_new_mutable(g, DT_U32);
}

/* Prepares a loop that begins at m->k_from. */
static void begin(struct as_f16 *x)
{
    enum { F16_INFINITY = 0x7c00 };
    struct mma *h = x->h;
    struct cg *g = h->g;
    mma_copy_begin(h);
    mma_read_begin(h);
    for (uint32_t n = 0; n < h->shape->ntile; n++) {
        struct mma_slab *t = &h->slab[n];
        const struct reach *r = &x->of[n];
        cg_move(g, r->low,
                cg_u32(x->exact ? UINT32_MAX : (uint32_t)F16_INFINITY << 16 | F16_INFINITY));
        cg_move(g, r->high, cg_u32(0));
        if (x->exact)
            find_least(h, r);
        for (uint32_t i = 0; i < t->of->count; i++)
            for (uint32_t w = 0; w < PIECE; w++)
                cg_move(g, t->raw[i][w], cg_u32(0));
    }
    cg_move(g, h->read, cg_u32(0));
}

enum { F16_SIGN = 0x8000 };

/* The same 16 bits in both halves of a word. */
static struct cg_val of_both(uint32_t half)
{
    return cg_u32(half << 16 | half);
}

/* Is one of two f16, not negative, at least 65504 or NaN? */
static struct cg_val is_large(struct cg *g, struct cg_val pair)
{
    enum { TO_SIGN = 0x0401 }; /* from 65504, 0x7bff, and more to the sign's bit */
    const struct cg_val up = cg_add(g, pair, of_both(TO_SIGN));
    return cg_binary(g, OP_NE, cg_binary(g, OP_AND, up, of_both(F16_SIGN)), cg_u32(0));
}

/* Is one of two f16, not negative, less than 2^-14, or 2^-14 where or_equal? */
static struct cg_val is_small(struct cg *g, struct cg_val pair, bool or_equal)
{
    enum { TO_SIGN = 0x7c00 }; /* from 2^-14, 0x0400, and more to the sign's bit */
    const struct cg_val up = cg_add(g, pair, of_both(or_equal ? TO_SIGN - 1 : TO_SIGN));
    const struct cg_val signs = of_both(F16_SIGN);
    return cg_binary(g, OP_NE, cg_binary(g, OP_AND, up, signs), signs);
}

/* Waits until all threads have read one stage and written the other one. bad: was an element that
 * they wrote out of reach? */
static void meet(struct as_f16 *x, int32_t bad)
{
    enum { F32_65504 = 0x477fe000 };
    struct mma *h = x->h;
    struct cg *g = h->g;
    struct cg_val any = cg_bool(g, false);
    for (uint32_t n = 0; n < h->shape->ntile; n++) {
        const struct reach *r = &x->of[n];
        const struct cg_val low = cg_value(DT_U32, r->low), high = cg_value(DT_U32, r->high);
        const struct cg_val least = cg_value(DT_U32, r->least);
        const bool even = cut_of(h, &h->slab[n]) == MATMUL_EVEN;
        any = cg_binary(g, OP_LOR, any,
                        x->exact ? cg_binary(g, OP_LT, low, least) : is_small(g, low, even));
        any = cg_binary(g, OP_LOR, any,
                        by_sum(h, &h->slab[n]) ? cg_binary(g, OP_GE, high, cg_u32(F32_65504))
                                               : is_large(g, high));
    }
    CG_ASSIGN(g, bad, "bar.red.or.pred", ptx_imm(0), ptx_r(cg_reg(g, any)));
}

static void swap_stages(struct mma *h)
{
    struct cg *g = h->g;
    const int32_t stage[] = {h->read, h->write};
    for (uint32_t i = 0; i < 2; i++) {
        CG_ASSIGN(g, stage[i], "sub.s32", ptx_imm(h->shape->stage_bytes), ptx_r(stage[i]));
    }
}

/* Writes piece k of the next tile to its stage, and begins to load piece k of the tile after it. */
static void pass_on(struct as_f16 *x, uint32_t k)
{
    struct mma *h = x->h;
    uint32_t i = k, n = 0;
    for (; i >= h->shape->tile[n].count; n++)
        i -= h->shape->tile[n].count;
    if (i == 0)
        mma_tile_begin(h, &h->slab[n]);
    put_piece(x, n, i);
    load_piece(h, &h->slab[n], i);
}

/* Multiplies the stage that is read, and passes pieces on before each row of products. ptxas would
 * move that to the end, for all pieces at once, and wait for what is loaded last. The bar.warp.sync
 * keeps it from doing so: it has to finish what stands before (at 4096^3 on an H100 1.15 times as
 * fast; with one before each row, 1.08). */
static void multiply_tile(struct as_f16 *x)
{
    struct mma *h = x->h;
    const uint32_t rows = h->shape->steps * h->shape->high, all = count(h);
    for (uint32_t row = 0; row < rows; row++) {
        if (row % h->shape->high == 0) {
            mma_load(h, row / h->shape->high, 0);
            PTX(&h->g->b, "bar.warp.sync", ptx_imm(-1));
        }
        for (uint32_t k = all * row / rows; k < all * (row + 1) / rows; k++)
            pass_on(x, k);
        mma_multiply_rows(h, row % h->shape->high, 0);
    }
    mma_advance(h);
}

/* Divides the sums by both scales. It multiplies by two powers of two that are as near to each
 * other as can be: after one operand's scale alone, sums could overflow or lose bits as
 * subnormals. */
static void scale_back(struct as_f16 *x)
{
    struct mma *h = x->h;
    struct cg *g = h->g;
    const uint32_t each = h->shape->high * h->shape->wide * 4;
    for (uint32_t q = 0; q < h->f->nproduct; q++) {
        const struct matmul_product *p = &h->f->product[q];
        const int32_t of_a = inverse(h, &x->of[h->shape->tile_of[p->a]]);
        const int32_t of_b = inverse(h, &x->of[h->shape->tile_of[p->b]]);
        const struct cg_val both = cg_add(g, cg_value(DT_U32, of_a), cg_value(DT_U32, of_b));
        const struct cg_val half = cg_binary(g, OP_SHR, both, cg_u32(EXPONENT + 1));
        const struct cg_val first = cg_binary(g, OP_SHL, half, cg_u32(EXPONENT));
        const int32_t a = cg_reg(g, first), b = cg_reg(g, cg_binary(g, OP_SUB, both, first));
        for (uint32_t i = 0; i < each; i++) {
            const int32_t sum = h->sum[q * each + i];
            CG_ASSIGN(g, sum, "mul.rn.f32", ptx_r(sum), ptx_r(a));
            CG_ASSIGN(g, sum, "mul.rn.f32", ptx_r(sum), ptx_r(b));
        }
    }
}

/* Writes the tile that was loaded to the first stage, and begins to load the next one. */
static void fill(struct as_f16 *x, int32_t bad)
{
    struct mma *h = x->h;
    for (uint32_t n = 0; n < h->shape->ntile; n++) {
        mma_tile_begin(h, &h->slab[n]);
        for (uint32_t i = 0; i < h->shape->tile[n].count; i++)
            put_piece(x, n, i);
    }
    load_all(h);
    cg_move(h->g, h->write, cg_u32(h->shape->stage_bytes));
    meet(x, bad);
}

/* Multiplies tiles until none is left or one is bad. */
static void loop(struct as_f16 *x, int32_t left, int32_t bad)
{
    struct mma *h = x->h;
    struct cg *g = h->g;
    const int32_t varies[] = {h->k, h->left, h->write, h->read};
    const int32_t some = cg_new(g, DT_BOOL), more = cg_new(g, DT_BOOL);
    const uint32_t head = cg_label(g, "half"), done = cg_label(g, "halves");
    struct cg_nest nest;
    cg_jump_if(g, bad, true, done);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    for (size_t i = 0; i < sizeof varies / sizeof *varies; i++)
        cg_nest_varies(g, &nest, varies[i]);
    multiply_tile(x);
    CG_ASSIGN(g, left, "sub.s32", ptx_r(left), ptx_imm(1));
    PTX(&g->b, "setp.ne.s32", ptx_r(some), ptx_r(left), ptx_imm(0));
    meet(x, bad);
    CG_ASSIGN(g, bad, "and.pred", ptx_r(bad), ptx_r(some));
    PTX(&g->b, "xor.pred", ptx_r(more), ptx_r(bad), ptx_r(some));
    swap_stages(h);
    cg_jump_if(g, more, true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}

int32_t mma_multiply_as_f16(struct mma *h, int32_t left)
{
    struct cg *g = h->g;
    struct as_f16 x = {.h = h};
    const int32_t bad = cg_new_mutable(g, DT_BOOL);
    const uint32_t done = cg_label(g, "added");
    make_registers(&x);
    begin(&x);
    load_all(h);
    choose_scales(&x);
    fill(&x, bad);
    loop(&x, left, bad);
    cg_jump_if(g, bad, false, done);
    const size_t mark = cg_scope_open(g);
    x.exact = true;
    mma_go_on(h, left);
    begin(&x);
    load_all(h);
    fill(&x, bad);
    loop(&x, left, bad);
    cg_scope_close(g, mark);
    cg_place(g, done);
    scale_back(&x);
    return bad;
}
