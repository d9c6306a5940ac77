/* Scales of products in parts of f16 (matmul/parts.c), by consumers (wgmma/wgmma.h).
 *
 * A stage has 64 terms, and a warpgroup's rows and columns lie in one block of 128 each, so that
 * the left operand and the right one have one scale each: 2^-s and 2^-t. The stage's sum, which is
 * multiplied from zero, is that many times the terms' own: what adds it to others is an fma by
 * 2^-(s + t). Rests are 2^11 times what they stand for, and their products come first, so these are
 * scaled down where they lie, and the first parts' product is added to them.
 *
 * An element below 2^(-14 - s) has parts that lack at most 2^(-36 - s); what its rest, up to 2^(-25
 * - s), makes with the other factor's is at most 2^(-36 - s) times that factor, too; and that is
 * below 2^(15 - t). So a stage loses less than 2^(15 - 35) 2^-(s + t) for each such element on
 * either side. Sums that this is more than 2^-24 of, all stages taken together, are computed once
 * more, by fma (small.c): of normal numbers, 4096 terms, one in 2^32. So are those that are
 * infinite or NaN, where a factor is or a scale says that sums may overflow.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

/* What a sum is compared with: 2^24 times what an element loses in units of 2^-(s + t); and 2^-(s +
 * t) from which sums may overflow. */
static const double worth = 0x1p4, large = 0x1p60;

void wgmma_scales_begin(struct wgmma *s)
{
    struct cg *g = s->g;
    struct wgmma_scales *c = &s->scales;
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        c->at[i] = cg_new_mutable(g, DT_U64);
    c->lost = cg_new_mutable(g, DT_F32);
    c->largest = cg_new_mutable(g, DT_F32);
    c->all = cg_new_mutable(g, DT_U32);
}

/* The row or column that the warpgroup begins with, or the last that there is. */
static struct cg_val begin_of(struct wgmma *s, const struct wgmma_tile *t)
{
    struct cg *g = s->g;
    const bool a = t->side == MATMUL_A;
    struct cg_val at = a ? s->m->row : s->m->col;
    if (t->side == s->shape->left)
        at = cg_binary(g, OP_ADD, at, cg_index(g, cg_mul(g, s->part, s->shape->high)));
    const struct cg_val last = cg_binary(g, OP_SUB, a ? s->m->m : s->m->n, cg_int(DT_I64, 1));
    return cg_minmax(g, false, at, last);
}

/* The address of the tile's first word, and how far it is to the next. */
static void find_words(struct wgmma *s, uint32_t tile)
{
    enum { WORD = 4 };
    struct cg *g = s->g;
    const struct wgmma_tile *t = &s->shape->tile[tile];
    const struct lang_symbol *scale = s->m->parted[t->operand].scale;
    const uint32_t rank = scale->rank, other = matmul_other_subscript(s->f, t->operand);
    const uint32_t k = t->along_k ? rank - 1 : other, side = t->along_k ? other : rank - 1;
    struct cg_val sub[VARIANT_RANK], step = cg_int(DT_I64, WORD);
    matmul_subscripts(s->m, t->operand, begin_of(s, t), s->m->k_from, sub);
    sub[side] = cg_binary(g, OP_DIV, sub[side], cg_int(DT_I64, MATMUL_SCALED_SIDE));
    sub[k] = cg_binary(g, OP_DIV, sub[k], cg_int(DT_I64, MATMUL_SCALED_TERMS));
    for (uint32_t d = k + 1; d < rank; d++)
        step = cg_binary(g, OP_MUL, step, cg_extent(g, scale, d));
    const struct cg_place_of at = cg_address(g, scale, cg_flat_index(g, scale, rank, sub));
    const struct cg_val first = cg_value(DT_I64, at.base);
    cg_move(g, s->scales.at[tile], cg_binary(g, OP_ADD, first, cg_int(DT_I64, at.offset)));
    s->scales.step[tile] = cg_reg(g, cg_convert(g, step, DT_I64));
}

void wgmma_scales_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        find_words(s, i);
    cg_move(g, s->scales.lost, cg_float(g, DT_F32, 0));
    cg_move(g, s->scales.largest, cg_float(g, DT_F32, 0));
    cg_move(g, s->scales.all, cg_u32(0));
}

void wgmma_scales_load(struct wgmma *s)
{
    struct cg *g = s->g;
    struct wgmma_scales *c = &s->scales;
    for (uint32_t i = 0; i < s->shape->ntile; i++) {
        c->word[i] = cg_new(g, DT_U32);
        PTX(&g->b, "ld.global.b32", ptx_r(c->word[i]), ptx_mem(c->at[i], 0));
        CG_ASSIGN(g, c->at[i], "add.s64", ptx_r(c->at[i]), ptx_r(c->step[i]));
    }
}

/* The word without what else it says: an f32. */
static int32_t scale_of(struct wgmma *s, int32_t word)
{
    struct cg *g = s->g;
    const int32_t bits = cg_new(g, DT_U32), scale = cg_new(g, DT_F32);
    PTX(&g->b, "and.b32", ptx_r(bits), ptx_r(word), ptx_imm(~(uint32_t)MATMUL_SCALED_BITS));
    PTX(&g->b, "mov.b32", ptx_r(scale), ptx_r(bits));
    return scale;
}

/* How many small elements it says there are: a u32. */
static struct cg_val small_of(struct cg *g, int32_t word)
{
    return cg_binary(g, OP_AND, cg_value(DT_U32, word), cg_u32(MATMUL_SCALED_SMALL));
}

void wgmma_scales_take(struct wgmma *s, uint32_t q)
{
    struct cg *g = s->g;
    struct wgmma_scales *c = &s->scales;
    const struct matmul_product *p = &s->f->product[q];
    const int32_t a = c->word[s->shape->tile_of[p->a]], b = c->word[s->shape->tile_of[p->b]];
    const int32_t both = cg_new(g, DT_F32);
    PTX(&g->b, "mul.rn.f32", ptx_r(both), ptx_r(scale_of(s, a)), ptx_r(scale_of(s, b)));
    const struct cg_val of_b = small_of(g, b);
    const struct cg_val lose = cg_add(g, small_of(g, a), of_b);
    const struct cg_val n = cg_convert(g, lose, DT_F32);
    CG_ASSIGN(g, c->lost, "fma.rn.f32", cg_op(g, n), ptx_r(both), ptx_r(c->lost));
    CG_ASSIGN(g, c->largest, "max.f32", ptx_r(c->largest), ptx_r(both));
    CG_ASSIGN(g, c->all, "or.b32", ptx_r(c->all), ptx_r(a));
    CG_ASSIGN(g, c->all, "or.b32", ptx_r(c->all), ptx_r(b));
    c->both[q] = both;
}

void wgmma_scale_rests(struct wgmma *s)
{
    struct cg *g = s->g;
    for (uint32_t w = 0; w < s->shape->wide / 2; w++)
        CG_ASSIGN(g, s->stage_sum[w], "mul.rn.f32", ptx_r(s->stage_sum[w]), ptx_immf32(0x1p-11f));
}

void wgmma_scaled_add(struct wgmma *s, uint32_t q, const int32_t *sum)
{
    struct cg *g = s->g;
    for (uint32_t w = 0; w < s->shape->wide / 2; w++)
        CG_ASSIGN(g, sum[w], "fma.rn.f32", ptx_r(s->stage_sum[w]), ptx_r(s->scales.both[q]),
                  ptx_r(sum[w]));
}

int32_t wgmma_scales_limit(struct wgmma *s, int32_t *any)
{
    struct cg *g = s->g;
    struct wgmma_scales *c = &s->scales;
    cg_assigned(g, c->lost);
    cg_assigned(g, c->largest);
    cg_assigned(g, c->all);
    const struct cg_val lost = cg_value(DT_F32, c->lost), largest = cg_value(DT_F32, c->largest);
    const struct cg_val wild =
        cg_binary(g, OP_AND, cg_value(DT_U32, c->all), cg_u32(MATMUL_SCALED_WILD));
    struct cg_val some = cg_binary(g, OP_GT, lost, cg_float(g, DT_F32, 0));
    some = cg_binary(g, OP_LOR, some, cg_binary(g, OP_GE, largest, cg_float(g, DT_F32, large)));
    some = cg_binary(g, OP_LOR, some, cg_binary(g, OP_NE, wild, cg_u32(0)));
    *any = cg_reg(g, some);
    return cg_reg(g, cg_binary(g, OP_MUL, lost, cg_float(g, DT_F32, worth)));
}
