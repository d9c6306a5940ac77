/* Sums of products in parts that may be off, once more by fma (matmul.h): each by the thread that
 * has it, from memory. So they are few, or this takes long. */
#include <config.h>

#include "lower/matmul/matmul.h"

#include <math.h>

enum { MASK = 32 }; /* sums that a mask has bits for */

int32_t matmul_mend_limit(struct matmul *m, int32_t squares, float share, int32_t is_small)
{
    struct cg *g = m->g;
    const int32_t square = cg_new(g, DT_F32), root = cg_new(g, DT_F32), some = cg_new(g, DT_F32),
                  most = cg_new(g, DT_F32);
    const int32_t part = cg_new(g, DT_F32), all = cg_new(g, DT_F32), limit = cg_new(g, DT_F32);
    const struct cg_val terms = cg_convert(g, cg_convert(g, m->k, DT_U32), DT_F32);
    const int32_t fits = cg_new(g, DT_BOOL);
    PTX(&g->b, "mov.b32", ptx_r(square), ptx_r(squares));
    PTX(&g->b, "sqrt.approx.f32", ptx_r(root), ptx_r(square));
    PTX(&g->b, "setp.lt.f32", ptx_r(fits), ptx_r(root), ptx_immf32(0x1p63f));
    PTX(&g->b, "max.f32", ptx_r(some), ptx_r(root),
        ptx_immf32(0x1p-60f)); /* squares of less vanish */
    PTX(&g->b, "selp.f32", ptx_r(most), ptx_r(some), ptx_immf32(0x1.fffffep127f), ptx_r(fits));
    PTX(&g->b, "mul.rn.f32", ptx_r(part), ptx_r(most), ptx_immf32(share));
    PTX(&g->b, "mul.rn.f32", ptx_r(all), ptx_r(part), cg_op(g, terms));
    if (is_small < 0)
        return all;
    PTX(&g->b, "selp.f32", ptx_r(limit), ptx_r(all), ptx_immf32(0), ptx_r(is_small));
    return limit;
}

/* The bits of those of n sums that are below the limit, infinite or NaN: a mutable u32. */
static int32_t find_doubtful(struct cg *g, const int32_t *sum, uint32_t n, int32_t limit)
{
    const int32_t all = cg_mutable(g, cg_u32(0));
    for (uint32_t w = 0; w < n; w++) {
        const int32_t size = cg_new(g, DT_F32), finite = cg_new(g, DT_BOOL);
        const int32_t good = cg_new(g, DT_BOOL);
        const int32_t bit = cg_new(g, DT_U32);
        PTX(&g->b, "abs.f32", ptx_r(size), ptx_r(sum[w]));
        PTX(&g->b, "setp.lt.f32", ptx_r(finite), ptx_r(size), ptx_immf32(INFINITY));
        PTX(&g->b, "setp.ge.and.f32", ptx_r(good), ptx_r(size), ptx_r(limit), ptx_r(finite));
        PTX(&g->b, "selp.b32", ptx_r(bit), ptx_imm(0), ptx_imm((int64_t)(1u << w)), ptx_r(good));
        CG_ASSIGN(g, all, "or.b32", ptx_r(all), ptx_r(bit));
    }
    return all;
}

/* The sum of product q there, by fma: a mutable f32. */
static int32_t sum_up(struct matmul *m, uint32_t q, struct cg_val row, struct cg_val col)
{
    struct cg *g = m->g;
    const struct matmul_product *p = &m->f->product[q];
    const struct cg_val end = cg_convert(g, m->k_to, DT_U32);
    const int32_t total = cg_new_mutable(g, DT_F32);
    struct cg_val a, b;
    struct cg_for l;
    cg_move(g, total, cg_float(g, DT_F32, 0));
    cg_for_open(g, &l, "term", "terms", cg_convert(g, m->k_from, DT_U32), &end);
    const struct cg_val k = cg_index(g, cg_freeze(g, cg_value(DT_U32, l.at)));
    matmul_fetch(m, p->a, row, k, 1, -1, &a);
    matmul_fetch(m, p->b, col, k, 1, -1, &b);
    CG_ASSIGN(g, total, "fma.rn.f32", cg_op(g, a), cg_op(g, b), ptx_r(total));
    cg_for_close(g, &l, cg_u32(1), &end);
    return total;
}

/* Computes those of n sums of product q, from its word `first` on, that are below the limit. */
static void mend(struct matmul *m, const struct matmul_mend *d, uint32_t q, uint32_t first,
                 uint32_t n)
{
    struct cg *g = m->g;
    int32_t *const sum = d->sum + (size_t)q * d->words + first;
    const int32_t doubtful = find_doubtful(g, sum, n, d->limit), next = cg_new(g, DT_U32);
    const uint32_t head = cg_label(g, "mend"), done = cg_label(g, "mended");
    struct cg_nest nest;
    struct cg_val row, col;
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, doubtful);
    const struct cg_val left = cg_value(DT_U32, doubtful);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, left, cg_u32(0))), false, done);
    PTX(&g->b, "bfind.u32", ptx_r(next), ptx_r(doubtful));
    const struct cg_val at = cg_freeze(g, cg_value(DT_U32, next));
    const struct cg_val bit = cg_binary(g, OP_SHL, cg_u32(1), at);
    cg_move(g, doubtful, cg_binary(g, OP_XOR, left, bit));
    d->place(d->of, q, cg_add(g, at, cg_u32(first)), &row, &col);
    const struct cg_val is_row = cg_binary(g, OP_LT, row, m->m);
    const struct cg_val is_col = cg_binary(g, OP_LT, col, m->n);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LAND, is_row, is_col)), false, head);
    const int32_t total = sum_up(m, q, row, col);
    for (uint32_t w = 0; w < n; w++) {
        const int32_t is = cg_new(g, DT_BOOL);
        PTX(&g->b, "setp.eq.u32", ptx_r(is), cg_op(g, at), ptx_imm(w));
        CG_ASSIGN(g, sum[w], "selp.f32", ptx_r(total), ptx_r(sum[w]), ptx_r(is));
    }
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
    cg_loop_head(g);
}

void matmul_mend(struct matmul *m, const struct matmul_mend *d)
{
    for (uint32_t q = 0; q < m->f->nproduct; q++)
        for (uint32_t w = 0; w < d->words; w += MASK)
            mend(m, d, q, w, d->words - w < MASK ? d->words - w : MASK);
}
