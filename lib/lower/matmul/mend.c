/* Sums of products in parts that may be off, once more by fma (matmul.h), from memory: each by the
 * thread that has it, or by a warp. So they are few, or this takes long. */
#include <config.h>

#include "lower/cg/sync.h"
#include "lower/matmul/matmul.h"

#include <math.h>

enum { MASK = 32, LANES = 32 }; /* sums that a mask has bits for; of a warp */

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

/* Is there such a result? A predicate. */
static int32_t is_inside(struct matmul *m, struct cg_val row, struct cg_val col)
{
    struct cg *g = m->g;
    const struct cg_val is_row = cg_binary(g, OP_LT, row, m->m);
    const struct cg_val is_col = cg_binary(g, OP_LT, col, m->n);
    return cg_reg(g, cg_binary(g, OP_LAND, is_row, is_col));
}

/* The sum of product q there, by fma, or the lane's part of it where a warp's lanes take terms by
 * turns: a mutable f32. So many terms at a time are loaded together; those behind the last are
 * products of 0. */
static int32_t sum_up(struct matmul *m, uint32_t q, struct cg_val row, struct cg_val col,
                      bool by_turns)
{
    enum { AHEAD = 8 };
    struct cg *g = m->g;
    const uint32_t apart = by_turns ? LANES : 1;
    const struct matmul_product *p = &m->f->product[q];
    const struct cg_val end = cg_convert(g, m->k_to, DT_U32);
    const int32_t total = cg_new_mutable(g, DT_F32);
    int64_t terms;
    const bool whole = cg_is_const(m->k, &terms) && terms % (AHEAD * apart) == 0;
    struct cg_val a[AHEAD], b[AHEAD];
    struct cg_for l;
    cg_move(g, total, cg_float(g, DT_F32, 0));
    cg_for_open(g, &l, "term", "terms", cg_convert(g, m->k_from, DT_U32), &end);
    struct cg_val from = cg_freeze(g, cg_value(DT_U32, l.at));
    if (by_turns)
        from = cg_add(g, from, m->lane);
    for (uint32_t i = 0; i < AHEAD; i++) {
        const struct cg_val k = cg_add(g, from, cg_u32(i * apart));
        const int32_t inside = whole ? -1 : cg_reg(g, cg_binary(g, OP_LT, k, end));
        matmul_fetch(m, p->a, row, cg_index(g, k), 1, inside, &a[i]);
        matmul_fetch(m, p->b, col, cg_index(g, k), 1, inside, &b[i]);
    }
    for (uint32_t i = 0; i < AHEAD; i++)
        CG_ASSIGN(g, total, "fma.rn.f32", cg_op(g, a[i]), cg_op(g, b[i]), ptx_r(total));
    cg_for_close(g, &l, cg_u32(AHEAD * apart), &end);
    return total;
}

/* A loop over the sums that are left; who is in it jumps to its head for the next one. */
struct mending {
    uint32_t head, done;
    struct cg_nest nest;
    size_t mark;
};

static void open_mending(struct cg *g, struct mending *l, int32_t doubtful)
{
    l->head = cg_label(g, "mend");
    l->done = cg_label(g, "mended");
    cg_place(g, l->head);
    cg_loop_head(g);
    l->mark = cg_scope_open(g);
    cg_nest_open(g, &l->nest, NULL);
    cg_nest_varies(g, &l->nest, doubtful);
}

static void close_mending(struct cg *g, struct mending *l)
{
    cg_jump(g, l->head);
    cg_nest_close(g, &l->nest);
    cg_scope_close(g, l->mark);
    cg_place(g, l->done);
    cg_loop_head(g);
}

/* Computes the sums of product q, from its word `first` on, whose bits are set in `doubtful`. */
static void mend_own(struct matmul *m, const struct matmul_mend *d, uint32_t q, uint32_t first,
                     uint32_t n, int32_t doubtful)
{
    struct cg *g = m->g;
    int32_t *const sum = d->sum + (size_t)q * d->words + first;
    const int32_t next = cg_new(g, DT_U32);
    struct mending l;
    struct cg_val row, col;
    open_mending(g, &l, doubtful);
    const struct cg_val left = cg_value(DT_U32, doubtful);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, left, cg_u32(0))), false, l.done);
    PTX(&g->b, "bfind.u32", ptx_r(next), ptx_r(doubtful));
    const struct cg_val at = cg_freeze(g, cg_value(DT_U32, next));
    const struct cg_val bit = cg_binary(g, OP_SHL, cg_u32(1), at);
    cg_move(g, doubtful, cg_binary(g, OP_XOR, left, bit));
    d->place(d->of, q, cg_add(g, at, cg_u32(first)), &row, &col);
    cg_jump_if(g, is_inside(m, row, col), false, l.head);
    const int32_t total = sum_up(m, q, row, col, false);
    for (uint32_t w = 0; w < n; w++) {
        const int32_t is = cg_new(g, DT_BOOL);
        PTX(&g->b, "setp.eq.u32", ptx_r(is), cg_op(g, at), ptx_imm(w));
        CG_ASSIGN(g, sum[w], "selp.f32", ptx_r(total), ptx_r(sum[w]), ptx_r(is));
    }
    close_mending(g, &l);
}

/* Of all of a warp's lanes. */
static struct cg_val of_lane(struct cg *g, struct cg_val v, int32_t lane)
{
    return shuffle(g, SHUFFLE_IDX, v, ptx_r(lane), ptx_imm(LANES - 1), ptx_imm(-1), NULL);
}

static struct cg_val over_lanes(struct cg *g, int32_t part)
{
    struct cg_val v = cg_freeze(g, cg_value(DT_F32, part));
    for (uint32_t apart = LANES / 2; apart; apart /= 2)
        v = cg_binary(
            g, OP_ADD, v,
            shuffle(g, SHUFFLE_XOR, v, ptx_imm(apart), ptx_imm(LANES - 1), ptx_imm(-1), NULL));
    return v;
}

/* The same by all of a warp, one sum after the other: of parts of f16 they are few and far
 * between. */
static void mend_together(struct matmul *m, const struct matmul_mend *d, uint32_t q, uint32_t first,
                          uint32_t n, int32_t doubtful)
{
    struct cg *g = m->g;
    int32_t *const sum = d->sum + (size_t)q * d->words + first;
    const int32_t some = cg_new(g, DT_BOOL), all = cg_new(g, DT_U32), whose = cg_new(g, DT_U32);
    const int32_t next = cg_new(g, DT_U32);
    struct mending l;
    struct cg_val row, col;
    open_mending(g, &l, doubtful);
    PTX(&g->b, "setp.ne.u32", ptx_r(some), ptx_r(doubtful), ptx_imm(0));
    PTX(&g->b, "vote.sync.ballot.b32", ptx_r(all), ptx_r(some), ptx_imm(-1));
    const struct cg_val lanes = cg_freeze(g, cg_value(DT_U32, all));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, lanes, cg_u32(0))), false, l.done);
    PTX(&g->b, "bfind.u32", ptx_r(whose), ptx_r(all));
    const struct cg_val owner = cg_freeze(g, cg_value(DT_U32, whose));
    const struct cg_val left = of_lane(g, cg_value(DT_U32, doubtful), whose);
    PTX(&g->b, "bfind.u32", ptx_r(next), ptx_r(cg_reg(g, left)));
    const struct cg_val at = cg_freeze(g, cg_value(DT_U32, next));
    const struct cg_val mine = cg_binary(g, OP_EQ, m->lane, owner);
    const int32_t is_mine = cg_reg(g, mine);
    const struct cg_val rest =
        cg_binary(g, OP_XOR, cg_value(DT_U32, doubtful), cg_binary(g, OP_SHL, cg_u32(1), at));
    CG_ASSIGN_IF(g, is_mine, doubtful, "mov.u32", cg_op(g, rest));
    d->place(d->of, q, cg_add(g, at, cg_u32(first)), &row, &col);
    row = cg_index(g, of_lane(g, cg_convert(g, row, DT_U32), whose));
    col = cg_index(g, of_lane(g, cg_convert(g, col, DT_U32), whose));
    cg_jump_if(g, is_inside(m, row, col), false, l.head);
    const struct cg_val total = over_lanes(g, sum_up(m, q, row, col, true));
    for (uint32_t w = 0; w < n; w++) {
        const int32_t is = cg_new(g, DT_BOOL);
        PTX(&g->b, "setp.eq.and.u32", ptx_r(is), cg_op(g, at), ptx_imm(w), ptx_r(is_mine));
        CG_ASSIGN_IF(g, is, sum[w], "mov.f32", cg_op(g, total));
    }
    close_mending(g, &l);
}

/* Computes those of n sums of product q, from its word `first` on, that are below the limit. */
static void mend(struct matmul *m, const struct matmul_mend *d, uint32_t q, uint32_t first,
                 uint32_t n)
{
    const int32_t *sum = d->sum + (size_t)q * d->words + first;
    const int32_t doubtful = find_doubtful(m->g, sum, n, d->limit);
    (d->together ? mend_together : mend_own)(m, d, q, first, n, doubtful);
}

void matmul_mend(struct matmul *m, const struct matmul_mend *d)
{
    for (uint32_t q = 0; q < m->f->nproduct; q++)
        for (uint32_t w = 0; w < d->words; w += MASK)
            mend(m, d, q, w, d->words - w < MASK ? d->words - w : MASK);
}
