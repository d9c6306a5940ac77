/* Small and large factors of products in parts (mma/mma.h).
 *
 * The second part of an f32 below 2^-112 has bits that tf32 and bf16 have not: less than 2^-133 is
 * lost of each, times the other factor. Sums that K M 2^-133 is much of, M being the largest
 * factor, are computed once more by fma, and so are those that are infinite or NaN where a square
 * overflows: a large factor's parts may overflow where the product does not, and an infinite one's
 * make NaN (wgmma/small.c says more, and does the same).
 *
 * Each warp parts all of its words itself, and that is what takes its time. So it notes no more of
 * them than a sum of squares, one fma each. Is a sum below the limit, which is nearly always one of
 * zeros alone, the block's threads read its rows and columns once more and look for a factor that
 * is small.
 */
#include <config.h>

#include "lower/mma/mma.h"

#include <math.h>

enum {
    LANES = 32,
    AHEAD = 4,         /* loads of a thread at once */
    WHOLE = 15u << 24, /* 2 x of 2^-112 */
    INFINITE = 0x7f800000,
};

/* 2^-133 and what is left of it in the last bit that a sum has. */
static const float SHARE = 0x1p-107f;

void mma_range_begin(struct mma *s)
{
    for (uint32_t i = 0; i < MMA_CHAINS; i++)
        s->squares[i] = cg_new_mutable(s->g, DT_F32);
}

void mma_range_clear(struct mma *s)
{
    for (uint32_t i = 0; i < MMA_CHAINS; i++)
        PTX(&s->g->b, "mov.f32", ptx_r(s->squares[i]), ptx_immf32(0));
}

void mma_range_take(struct mma *s, int32_t word, uint32_t i)
{
    const int32_t sum = s->squares[i % MMA_CHAINS];
    CG_ASSIGN(s->g, sum, "fma.rn.f32", ptx_r(word), ptx_r(word), ptx_r(sum));
}

/* The bits of the largest of the lanes' sums of squares: a u32. */
static int32_t largest(struct mma *s)
{
    struct cg *g = s->g;
    const int32_t most = cg_new(g, DT_U32), bits = cg_new(g, DT_U32);
    int32_t sum = s->squares[0];
    for (uint32_t i = 1; i < MMA_CHAINS; i++) {
        const int32_t more = cg_new(g, DT_F32);
        PTX(&g->b, "add.rn.f32", ptx_r(more), ptx_r(sum), ptx_r(s->squares[i]));
        sum = more;
    }
    PTX(&g->b, "mov.b32", ptx_r(bits), ptx_r(sum));
    PTX(&g->b, "redux.sync.max.u32", ptx_r(most), ptx_r(bits), ptx_imm(-1));
    return most;
}

/* ---- is a sum doubtful? ---------------------------------------------------------------------- */

static uint32_t words_of(const struct mma *s)
{
    return s->shape->high * s->shape->wide * 4;
}

/* A sum, or of those outside of the results a large number. */
static int32_t sum_inside(struct mma *s, uint32_t q, uint32_t w)
{
    struct cg *g = s->g;
    const int32_t sum = s->sum[q * words_of(s) + w], inside = cg_new(g, DT_F32);
    struct cg_val row, col;
    if (s->m->whole_rows && s->m->whole_cols)
        return sum;
    mma_place_of(s, q, cg_u32(w), &row, &col);
    const struct cg_val is_col = cg_binary(g, OP_LT, col, s->m->n);
    const struct cg_val is_row = cg_binary(g, OP_LT, row, s->m->m);
    const struct cg_val is = cg_binary(g, OP_LAND, is_row, is_col);
    PTX(&g->b, "selp.f32", ptx_r(inside), ptx_r(sum), ptx_immf32(0x1.fffffep127f),
        ptx_r(cg_reg(g, is)));
    return inside;
}

/* Has a thread of the block a sum below the limit, or one that is NaN or infinite? A predicate. */
static int32_t any_doubtful(struct mma *s, int32_t limit)
{
    enum { CHAINS = 4 };
    struct cg *g = s->g;
    int32_t least[CHAINS] = {-1, -1, -1, -1}, zero[CHAINS] = {s->zero, s->zero, s->zero, s->zero};
    for (uint32_t i = 0; i < s->f->nproduct * words_of(s); i++) {
        const int32_t sum = sum_inside(s, i / words_of(s), i % words_of(s));
        const int32_t size = cg_new(g, DT_F32), less = cg_new(g, DT_F32), odd = cg_new(g, DT_F32);
        int32_t *const l = &least[i % CHAINS], *const z = &zero[i % CHAINS];
        PTX(&g->b, "abs.f32", ptx_r(size), ptx_r(sum));
        if (*l >= 0)
            PTX(&g->b, "min.f32", ptx_r(less), ptx_r(size), ptx_r(*l));
        *l = *l >= 0 ? less : size;
        PTX(&g->b, "fma.rn.f32", ptx_r(odd), ptx_r(sum), ptx_immf32(0), ptx_r(*z));
        *z = odd;
    }
    int32_t doubtful = -1;
    for (uint32_t i = 0; i < CHAINS; i++) {
        const int32_t is_odd = cg_new(g, DT_BOOL), is = cg_new(g, DT_BOOL);
        if (i)
            PTX(&g->b, "setp.nan.or.f32", ptx_r(is_odd), ptx_r(zero[i]), ptx_r(zero[i]),
                ptx_r(doubtful));
        else
            PTX(&g->b, "setp.nan.f32", ptx_r(is_odd), ptx_r(zero[i]), ptx_r(zero[i]));
        PTX(&g->b, "setp.lt.or.f32", ptx_r(is), ptx_r(least[i]), ptx_r(limit), ptx_r(is_odd));
        doubtful = is;
    }
    return doubtful;
}

/* A predicate: does it hold for a thread of the block? */
static int32_t of_any(struct mma *s, int32_t pred)
{
    const int32_t any = cg_new(s->g, DT_BOOL);
    PTX(&s->g->b, "bar.red.or.pred", ptx_r(any), ptx_imm(0), ptx_r(pred));
    return any;
}

/* ---- is a factor small? ---------------------------------------------------------------------- */

/* What threads read of an operand: pieces of `lanes` elements along its last axis, by the lanes of
 * a warp, and its rows (along k) or terms by the warps. */
struct sweep {
    uint32_t operand, lanes;
    bool along_k;
    struct cg_val first, pieces, rows; /* u32 but for the first row or column, i64 */
    int32_t least;                     /* 2 x - 1 of the smallest but for zeros: u32, mutable */
};

static void take_least(struct mma *s, const struct sweep *w, const struct cg_val *v)
{
    struct cg *g = s->g;
    for (uint32_t i = 0; i < w->lanes; i++) {
        const int32_t bits = cg_new(g, DT_U32), low = cg_new(g, DT_U32);
        PTX(&g->b, "mov.b32", ptx_r(bits), cg_op(g, v[i]));
        PTX(&g->b, "mad.lo.u32", ptx_r(low), ptx_r(bits), ptx_imm(2), ptx_imm(-1));
        CG_ASSIGN(g, w->least, "min.u32", ptx_r(w->least), ptx_r(low));
    }
}

/* Reads the piece of AHEAD rows, of which the first one exists. */
static void take_pieces(struct mma *s, const struct sweep *w, struct cg_val piece,
                        struct cg_val row)
{
    struct cg *g = s->g;
    const struct cg_val along = cg_mul(g, piece, w->lanes), from = s->m->k_from;
    struct cg_val v[AHEAD][MAP_LANES];
    for (uint32_t i = 0; i < AHEAD; i++) {
        const struct cg_val n = cg_add(g, row, cg_u32(i * s->p->threads / LANES));
        const struct cg_val at = cg_index(g, w->along_k ? n : along);
        const struct cg_val k = cg_index(g, w->along_k ? along : n);
        const int32_t exists = i ? cg_reg(g, cg_binary(g, OP_LT, n, w->rows)) : -1;
        const struct cg_val term = cg_binary(g, OP_ADD, from, k);
        const struct cg_val across = cg_binary(g, OP_ADD, w->first, at);
        matmul_fetch(s->m, w->operand, across, term, w->lanes, exists, v[i]);
    }
    for (uint32_t i = 0; i < AHEAD; i++)
        take_least(s, w, v[i]);
}

static void sweep(struct mma *s, const struct sweep *w)
{
    struct cg *g = s->g;
    const uint32_t warps = s->p->threads / LANES;
    struct cg_for rows, pieces;
    cg_for_open(g, &rows, "line", "lines", s->m->warp, &w->rows);
    const struct cg_val row = cg_freeze(g, cg_value(DT_U32, rows.at));
    cg_for_open(g, &pieces, "piece", "pieces", s->m->lane, &w->pieces);
    take_pieces(s, w, cg_freeze(g, cg_value(DT_U32, pieces.at)), row);
    cg_for_close(g, &pieces, cg_u32(LANES), &w->pieces);
    cg_for_close(g, &rows, cg_u32(warps * AHEAD), &w->rows);
}

/* Is a factor of the block's sums below 2^-112, but for zeros? A predicate, the same for all
 * threads. */
static int32_t any_small(struct mma *s)
{
    struct cg *g = s->g;
    const struct matmul *m = s->m;
    const struct cg_val from = cg_convert(g, m->k_from, DT_U32);
    const struct cg_val terms = cg_binary(g, OP_SUB, cg_convert(g, m->k_to, DT_U32), from);
    const int32_t least = cg_mutable(g, cg_u32(UINT32_MAX));
    for (uint32_t n = 0; n < s->f->noperand; n++) {
        const struct matmul_operand *o = &s->f->operand[n];
        const bool is_a = o->side == MATMUL_A;
        struct sweep w = {.operand = n,
                          .along_k = o->along_k,
                          .first = is_a ? m->row : m->col,
                          .lanes = s->p->align[n] < 4 ? s->p->align[n] : 4,
                          .least = least};
        const struct cg_val across = cg_u32(is_a ? s->p->bm : s->p->bn);
        const struct cg_val last = o->along_k ? terms : across;
        w.rows = o->along_k ? across : terms;
        w.pieces = cg_binary(g, OP_ADD, last, cg_u32(w.lanes - 1));
        w.pieces = cg_binary(g, OP_DIV, w.pieces, cg_u32(w.lanes));
        sweep(s, &w);
    }
    const struct cg_val small = cg_binary(g, OP_LT, cg_value(DT_U32, least), cg_u32(WHOLE - 1));
    return of_any(s, cg_reg(g, small));
}

/* ---- once more ------------------------------------------------------------------------------- */

static void place(void *of, uint32_t q, struct cg_val w, struct cg_val *row, struct cg_val *col)
{
    mma_place_of(of, q, w, row, col);
}

void mma_mend(struct mma *s)
{
    struct cg *g = s->g;
    const uint32_t fine = cg_label(g, "fine");
    for (uint32_t i = 0; i < MMA_CHAINS; i++)
        cg_assigned(g, s->squares[i]);
    const int32_t most = largest(s);
    const int32_t doubtful = any_doubtful(s, matmul_mend_limit(s->m, most, SHARE, -1));
    cg_jump_if(g, of_any(s, doubtful), false, fine);
    const size_t mark = cg_scope_open(g);
    const int32_t is_small = any_small(s);
    const struct cg_val is_large = cg_binary(g, OP_GE, cg_value(DT_U32, most), cg_u32(INFINITE));
    const struct cg_val any = cg_binary(g, OP_LOR, cg_value(DT_BOOL, is_small), is_large);
    cg_jump_if(g, cg_reg(g, any), false, fine);
    const struct matmul_mend d = {.sum = s->sum,
                                  .words = words_of(s),
                                  .limit = matmul_mend_limit(s->m, most, SHARE, is_small),
                                  .place = place,
                                  .of = s};
    matmul_mend(s->m, &d);
    cg_scope_close(g, mark);
    cg_place(g, fine);
    cg_loop_head(g);
    for (uint32_t i = 0; i < s->f->nproduct * words_of(s); i++)
        cg_assigned(g, s->sum[i]);
}
