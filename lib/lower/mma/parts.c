/* f32 by tensor cores (mma/mma.h): words in two parts of tf32, and three products of these.
 *
 *     a = a0 + a1, b = b0 + b1:  a b = a1 b0 + a0 b1 + a0 b0, without a1 b1, less than 2^-22 of it
 *
 * a0 is a rounded to 11 bits, so that the rest a1 is of either sign: what is lost of rests does not
 * add up. Instructions cut off what does not fit their sums, always toward zero: they add up the
 * terms of MMA_TOGETHER steps from zero, the small products of a step first, and these sums are
 * added as f32 is.
 *
 * Where plans are coarse, a0 b1 of two steps is one product of bf16, which takes half as long as
 * one of tf32 for each of the steps. Of a0 and b1 it has 8 bits, that is, of a b all but 2^-19, and
 * of either sign: as terms grow in number this vanishes in what any sum of f32 loses.
 *
 * Errors in units of 2^-24 of sum |a b|, of 1024 x 1024 x 4096 in two shares, as the instructions'
 * sums are modelled (and as they were measured on an H100 when words of the tall operand were cut
 * off): root mean square, and mean for numbers in [0, 1):
 *
 *                                   normal     [0, 1)
 *     a0 cut off                    0.13       4.0 (-3.6)
 *     a0 rounded                    0.10       2.5 (-1.7)
 *     a0 rounded, coarse            0.21       2.4 (-1.6)
 *     cuBLAS sgemm                  0.24       3.7 (0)
 *
 * Products alone take 1.60 ms of 4096^3 on an H100. With 5 instructions for each word and promotion
 * every 8 terms it was 2.5 ms, every 16 terms 2.11; with 2 for each word 1.77; with 3, which
 * rounding takes, 1.81; coarse 1.72 (foretold by the tensor cores' time: 1.50). A scheduler's two
 * warps hide little behind each other there: of 80 products and 291 other instructions for 16
 * terms, one takes 4.9 clocks of a warp and the other 1.4. Two rows at a time, or two blocks of
 * four warps, made no difference; tiles of 32 terms took a fifth more.
 */
#include <config.h>

#include "lower/mma/mma.h"

/* ---- parts ----------------------------------------------------------------------------------- */

/* In the word's place what instructions are to take, of which they cut the last bits off, and the
 * rest of it. What is infinite becomes NaN (mma/range.c). */
static void part_word(struct mma *s, int32_t w, int32_t rest)
{
    struct cg *g = s->g;
    const int32_t up = cg_new(g, DT_U32), cut = cg_new(g, DT_U32);
    PTX(&g->b, "add.s32", ptx_r(up), ptx_r(w), ptx_imm(1 << 12));
    PTX(&g->b, "and.b32", ptx_r(cut), ptx_r(up), ptx_imm(0xffffe000));
    CG_ASSIGN(g, rest, "sub.rn.f32", ptx_r(w), ptx_r(cut));
    CG_ASSIGN(g, w, "mov.b32", ptx_r(up));
}

void mma_part(struct mma *s, const struct mma_slab *t, uint32_t of, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        mma_range_take(s, t->word[of][i], i);
        part_word(s, t->word[of][i], t->rest[of][i]);
    }
}

void mma_pair(struct mma *s, const struct mma_slab *t, uint32_t of, uint32_t from, uint32_t to)
{
    struct cg *g = s->g;
    const int32_t *v = t->of->lay.tall ? t->word[of] : t->rest[of];
    for (uint32_t i = from; i < to; i++) {
        const uint32_t low = mma_pair_of(&t->of->lay, i), high = low + (t->of->lay.tall ? 2 : 1);
        CG_ASSIGN(g, t->pair[of][i], "cvt.rn.bf16x2.f32", ptx_r(v[high]), ptx_r(v[low]));
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Do sums of MMA_TOGETHER steps end before the last step of a tile, and go on in the next? Those of
 * half of the rows do, so that additions always have products behind them that do not wait; not
 * where a product is of two steps, which one tile has both. */
static bool goes_on(const struct mma *s, uint32_t i)
{
    return s->shape->steps % MMA_TOGETHER == 0 && 2 * i >= s->shape->high && !s->p->coarse;
}

static int32_t *parts_of_row(const struct mma *s, uint32_t q, uint32_t i)
{
    return s->part + (mma_sums_of_row(s, q, i) - s->sum);
}

static void promote(struct mma *s, uint32_t q, uint32_t i)
{
    struct cg *g = s->g;
    const int32_t *sum = mma_sums_of_row(s, q, i), *part = parts_of_row(s, q, i);
    for (uint32_t w = 0; w < 4 * s->shape->wide; w++)
        CG_ASSIGN(g, sum[w], "add.rn.f32", ptx_r(sum[w]), ptx_r(part[w]));
}

void mma_promote_rest(struct mma *s)
{
    for (uint32_t q = 0; q < s->f->nproduct; q++)
        for (uint32_t i = 0; i < s->shape->high; i++)
            if (goes_on(s, i))
                promote(s, q, i);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Multiplies one step. It begins with a rest of the tall operand's, or of the flat one's: these
 * were made a step ahead, which counts where the others wait for words that come one by one. */
static void multiply_step(struct mma *s, uint32_t q, uint32_t i, uint32_t of,
                          const struct mma_slab *tall, const struct mma_slab *flat, bool fresh)
{
    const bool singles = tall->of->lay.layout == MMA_SINGLES;
    int32_t *part = parts_of_row(s, q, i);
    for (uint32_t k = 0; k < 3; k++) {
        const bool rest_of_tall = k == singles, rest_of_flat = k == !singles;
        const int32_t *a = (rest_of_tall ? tall->rest : tall->word)[of] + (size_t)i * 4;
        const int32_t *b = (rest_of_flat ? flat->rest : flat->word)[of];
        mma_multiply_row(s, q, (k + (singles ? i : 0)) % 2, part, fresh && k == 0, a, b);
    }
}

/* The same, with the flat operand's rests where both steps' are there. */
static void multiply_coarse(struct mma *s, uint32_t q, uint32_t i, uint32_t of,
                            const struct mma_slab *tall, const struct mma_slab *flat, bool fresh)
{
    int32_t *part = parts_of_row(s, q, i);
    mma_multiply_row(s, q, false, part, fresh, tall->rest[of] + (size_t)i * 4, flat->word[of]);
    if (of) {
        const int32_t *const a[2] = {tall->pair[0] + (size_t)i * 2, tall->pair[1] + (size_t)i * 2};
        mma_multiply_pairs(s, part, a, flat->pair[0], flat->pair[1]);
    }
    mma_multiply_row(s, q, !of, part, false, tall->word[of] + (size_t)i * 4, flat->word[of]);
}

void mma_multiply_parts(struct mma *s, uint32_t q, uint32_t i, uint32_t of)
{
    const struct matmul_product *p = &s->f->product[q];
    const struct mma_slab *tall = &s->slab[s->shape->tile_of[s->shape->turned ? p->b : p->a]];
    const struct mma_slab *flat = &s->slab[s->shape->tile_of[s->shape->turned ? p->a : p->b]];
    const uint32_t step = (s->step + goes_on(s, i)) % MMA_TOGETHER;
    (s->p->coarse ? multiply_coarse : multiply_step)(s, q, i, of, tall, flat, step == 0);
    if (step + 1 == MMA_TOGETHER || (s->step + 1 == s->shape->steps && !goes_on(s, i)))
        promote(s, q, i);
}
