/* Small and large factors of products in parts (wgmma/wgmma.h).
 *
 * The second part of an f32 below 2^-112 has bits that tf32 has not: less than 2^-136 is lost of
 * each, times the other factor. So those that part the factors note the least of a tile's, but for
 * zeros, and the largest, M. Where a factor was that small, a sum of K terms may be off by K M
 * 2^-135. Those that this is much of, which are below K M 2^-109, are computed once more by fma,
 * from memory, each by the thread that has it. Of factors like those of a softmax, which are small
 * beside others that are not, there are none.
 *
 * Large factors' parts may overflow where the product does not, and an infinite one's parts make
 * NaN of factors whose first part is 0 or larger than they are. So where a square overflows, sums
 * that are infinite or NaN are computed once more, too.
 *
 * Converters leave what they note of a stage beside its barriers, in front of ready[], and
 * consumers take it from there; what these hold they note themselves. The least is 2 x - 1 as an
 * integer, which has no sign and of which zero is the largest. Instead of the largest it is a sum
 * of squares: fma takes half of a minimum's time.
 *
 * On an H100, 4096^3, NT: 1.146 ms without all this. Where two converters noted the largest, too,
 * 1.35; what they do must be done before the products of a stage begin. Three of them took 1.23,
 * and seven, with a warpgroup of their own, take 1.13. A warp of its own for what consumers hold
 * cost 0.01 ms, since it reads shared memory once more, and consumers 0.03.
 */
#include <config.h>

#include "lower/cg/sync.h"
#include "lower/wgmma/wgmma.h"

#include <math.h>

enum {
    WORD = 8,          /* bytes: the least, and the squares */
    WHOLE = 15u << 24, /* 2 x of 2^-112 */
    INFINITE = 0x7f800000,
    MASK = 32, /* sums that a mask has bits for */
    LANES = 32,
};

uint32_t wgmma_range_bytes(const struct wgmma_shape *s)
{
    return s->p->parts > 1 ? s->p->stages * s->converts * WORD : 0;
}

void wgmma_range_begin(struct wgmma *s)
{
    s->least = cg_new_mutable(s->g, DT_U32);
    s->most = cg_new_mutable(s->g, DT_U32);
}

void wgmma_range_clear(struct wgmma *s)
{
    cg_move(s->g, s->least, cg_u32(UINT32_MAX));
    cg_move(s->g, s->most, cg_u32(0));
}

/* Squares are compared as integers: they have no sign. */
int32_t wgmma_range_take(struct wgmma *s, const struct ptx_operand *x, uint32_t n)
{
    struct cg *g = s->g;
    const int32_t bits = cg_new(g, DT_U32);
    int32_t sum = -1;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t twice = cg_new(g, DT_U32), low = cg_new(g, DT_U32), more = cg_new(g, DT_F32);
        PTX(&g->b, "add.u32", ptx_r(twice), x[i], x[i]);
        PTX(&g->b, "add.u32", ptx_r(low), ptx_r(twice), ptx_imm(-1));
        CG_ASSIGN(g, s->least, "min.u32", ptx_r(s->least), ptx_r(low));
        if (i)
            PTX(&g->b, "fma.rn.f32", ptx_r(more), x[i], x[i], ptx_r(sum));
        else
            PTX(&g->b, "mul.rn.f32", ptx_r(more), x[i], x[i]);
        sum = more;
    }
    PTX(&g->b, "mov.b32", ptx_r(bits), ptx_r(sum));
    CG_ASSIGN(g, s->most, "max.u32", ptx_r(s->most), ptx_r(bits));
    return sum;
}

/* Over the warp's lanes. */
static void gather(struct wgmma *s)
{
    struct cg *g = s->g;
    CG_ASSIGN(g, s->least, "redux.sync.min.u32", ptx_r(s->least), ptx_imm(-1));
    CG_ASSIGN(g, s->most, "redux.sync.max.u32", ptx_r(s->most), ptx_imm(-1));
}

/* From a stage's barrier full[] to the word of the first converter. */
static uint32_t offset_of(const struct wgmma *s)
{
    return s->shape->ranges - s->shape->barriers;
}

void wgmma_range_tell(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct ptx_operand v[] = {ptx_r(s->least), ptx_r(s->most)};
    const struct cg_val more = cg_mul(g, s->part, s->p->stages * WORD);
    const struct cg_val at = cg_add(g, cg_value(DT_U32, s->ring.full), more);
    const struct cg_val leads = cg_binary(g, OP_EQ, s->m->lane, cg_u32(0));
    gather(s);
    ring_wait_read(&s->ring);
    PTX_IF(&g->b, cg_reg(g, leads), "st.shared.v2.b32", ptx_mem(cg_reg(g, at), offset_of(s)),
           ptx_vec(&g->b, 2, v));
}

/* Lane n hears converter n. All lanes have when one of them gives the stage back. */
void wgmma_range_hear(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct ptx_operand v[] = {ptx_r(cg_new(g, DT_U32)), ptx_r(cg_new(g, DT_U32))};
    const struct cg_val hears = cg_binary(g, OP_LT, s->m->lane, cg_u32(s->shape->converts));
    const struct cg_val more = cg_mul(g, s->m->lane, s->p->stages * WORD);
    const struct cg_val at = cg_add(g, cg_value(DT_U32, s->ring.full), more);
    PTX(&g->b, "mov.u32", v[0], ptx_imm(UINT32_MAX));
    PTX(&g->b, "mov.u32", v[1], ptx_imm(0));
    PTX_IF(&g->b, cg_reg(g, hears), "ld.shared.v2.b32", ptx_vec(&g->b, 2, v),
           ptx_mem(cg_reg(g, at), offset_of(s)));
    CG_ASSIGN(g, s->least, "min.u32", ptx_r(s->least), v[0]);
    CG_ASSIGN(g, s->most, "max.u32", ptx_r(s->most), v[1]);
}

/* ---- sums that may be off -------------------------------------------------------------------- */

/* K M 2^-109 where a factor is small, or else 0: an f32. M is the root of the largest sum of
 * squares, and the largest f32 where that overflows or is NaN. */
static int32_t find_limit(struct wgmma *s, int32_t is_small)
{
    struct cg *g = s->g;
    const int32_t square = cg_new(g, DT_F32), m = cg_new(g, DT_F32), some = cg_new(g, DT_F32),
                  most = cg_new(g, DT_F32);
    const int32_t part = cg_new(g, DT_F32), all = cg_new(g, DT_F32), limit = cg_new(g, DT_F32);
    const struct cg_val terms = cg_convert(g, cg_convert(g, s->m->k, DT_U32), DT_F32);
    const int32_t fits = cg_new(g, DT_BOOL);
    PTX(&g->b, "mov.b32", ptx_r(square), ptx_r(s->most));
    PTX(&g->b, "sqrt.approx.f32", ptx_r(m), ptx_r(square));
    PTX(&g->b, "setp.lt.f32", ptx_r(fits), ptx_r(m), ptx_immf32(0x1p63f));
    PTX(&g->b, "max.f32", ptx_r(some), ptx_r(m), ptx_immf32(0x1p-60f)); /* squares of less vanish */
    PTX(&g->b, "selp.f32", ptx_r(most), ptx_r(some), ptx_immf32(0x1.fffffep127f), ptx_r(fits));
    PTX(&g->b, "mul.rn.f32", ptx_r(part), ptx_r(most), ptx_immf32(0x1p-108f));
    PTX(&g->b, "mul.rn.f32", ptx_r(all), ptx_r(part), cg_op(g, terms));
    PTX(&g->b, "selp.f32", ptx_r(limit), ptx_r(all), ptx_immf32(0), ptx_r(is_small));
    return limit;
}

/* The bits of those of n sums that are below the limit, infinite or NaN: a mutable u32. */
static int32_t find_doubtful(struct wgmma *s, const int32_t *sum, uint32_t n, int32_t limit)
{
    struct cg *g = s->g;
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

/* The words of product q, from `first` on. */
static int32_t *words_of(const struct wgmma *s, uint32_t q, uint32_t first)
{
    return s->sum + (size_t)q * (s->shape->high / WGMMA_ROWS) * (s->shape->wide / 2) + first;
}

/* The subscripts of the lane's word w (a u32) of a product's sums. */
static void find_place(struct wgmma *s, struct cg_val w, struct cg_val *row, struct cg_val *col)
{
    struct cg *g = s->g;
    const struct cg_val each = cg_u32(s->shape->wide / 2);
    const struct cg_val rows = cg_binary(g, OP_DIV, w, each), v = cg_binary(g, OP_MOD, w, each);
    const struct cg_val half = cg_binary(g, OP_AND, cg_binary(g, OP_SHR, v, cg_u32(1)), cg_u32(1));
    struct cg_val along = cg_add(g, wgmma_along(s), cg_mul(g, rows, WGMMA_ROWS));
    along = cg_add(g, along, cg_binary(g, OP_SHR, s->m->lane, cg_u32(2)));
    along = cg_index(g, cg_add(g, along, cg_mul(g, half, 8)));
    struct cg_val across = cg_mul(g, cg_binary(g, OP_SHR, v, cg_u32(2)), 8);
    across = cg_add(g, across, cg_mul(g, cg_binary(g, OP_AND, s->m->lane, cg_u32(3)), 2));
    across = cg_index(g, cg_add(g, across, cg_binary(g, OP_AND, v, cg_u32(1))));
    const bool turned = s->shape->left == MATMUL_B;
    *row = cg_binary(g, OP_ADD, s->m->row, turned ? across : along);
    *col = cg_binary(g, OP_ADD, s->m->col, turned ? along : across);
}

/* Is there such a result? A predicate. */
static int32_t is_inside(struct wgmma *s, struct cg_val row, struct cg_val col)
{
    struct cg *g = s->g;
    const struct cg_val is_row = cg_binary(g, OP_LT, row, s->m->m);
    const struct cg_val is_col = cg_binary(g, OP_LT, col, s->m->n);
    return cg_reg(g, cg_binary(g, OP_LAND, is_row, is_col));
}

/* The sum of product q there, by fma, or the lane's part of it where a warp's lanes take terms by
 * turns: a mutable f32. So many terms at a time are loaded together; those behind the last are
 * products of 0. */
static int32_t sum_up(struct wgmma *s, uint32_t q, struct cg_val row, struct cg_val col,
                      bool by_turns)
{
    enum { AHEAD = 8 };
    struct cg *g = s->g;
    const uint32_t apart = by_turns ? LANES : 1;
    const struct matmul_product *p = &s->f->product[q];
    const struct cg_val end = cg_convert(g, s->m->k_to, DT_U32);
    const int32_t total = cg_new_mutable(g, DT_F32);
    int64_t terms;
    const bool whole = cg_is_const(s->m->k, &terms) && terms % (AHEAD * apart) == 0;
    struct cg_val a[AHEAD], b[AHEAD];
    struct cg_for l;
    cg_move(g, total, cg_float(g, DT_F32, 0));
    cg_for_open(g, &l, "term", "terms", cg_convert(g, s->m->k_from, DT_U32), &end);
    struct cg_val from = cg_freeze(g, cg_value(DT_U32, l.at));
    if (by_turns)
        from = cg_add(g, from, s->m->lane);
    for (uint32_t i = 0; i < AHEAD; i++) {
        const struct cg_val k = cg_add(g, from, cg_u32(i * apart));
        const int32_t inside = whole ? -1 : cg_reg(g, cg_binary(g, OP_LT, k, end));
        matmul_fetch(s->m, p->a, row, cg_index(g, k), 1, inside, &a[i]);
        matmul_fetch(s->m, p->b, col, cg_index(g, k), 1, inside, &b[i]);
    }
    for (uint32_t i = 0; i < AHEAD; i++)
        CG_ASSIGN(g, total, "fma.rn.f32", cg_op(g, a[i]), cg_op(g, b[i]), ptx_r(total));
    cg_for_close(g, &l, cg_u32(AHEAD * apart), &end);
    return total;
}

/* Computes the sums of product q, from its word `first` on, whose bits are set in `doubtful`. */
static void mend_own(struct wgmma *s, uint32_t q, uint32_t first, uint32_t n, int32_t doubtful)
{
    struct cg *g = s->g;
    int32_t *const sum = words_of(s, q, first);
    const int32_t next = cg_new(g, DT_U32);
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
    find_place(s, cg_add(g, at, cg_u32(first)), &row, &col);
    cg_jump_if(g, is_inside(s, row, col), false, head);
    const int32_t total = sum_up(s, q, row, col, false);
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
static void mend_together(struct wgmma *s, uint32_t q, uint32_t first, uint32_t n, int32_t doubtful)
{
    struct cg *g = s->g;
    int32_t *const sum = words_of(s, q, first);
    const int32_t some = cg_new(g, DT_BOOL), all = cg_new(g, DT_U32), whose = cg_new(g, DT_U32);
    const int32_t next = cg_new(g, DT_U32);
    const uint32_t head = cg_label(g, "mend"), done = cg_label(g, "mended");
    struct cg_nest nest;
    struct cg_val row, col;
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, doubtful);
    PTX(&g->b, "setp.ne.u32", ptx_r(some), ptx_r(doubtful), ptx_imm(0));
    PTX(&g->b, "vote.sync.ballot.b32", ptx_r(all), ptx_r(some), ptx_imm(-1));
    const struct cg_val lanes = cg_freeze(g, cg_value(DT_U32, all));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, lanes, cg_u32(0))), false, done);
    PTX(&g->b, "bfind.u32", ptx_r(whose), ptx_r(all));
    const struct cg_val owner = cg_freeze(g, cg_value(DT_U32, whose));
    const struct cg_val left = of_lane(g, cg_value(DT_U32, doubtful), whose);
    PTX(&g->b, "bfind.u32", ptx_r(next), ptx_r(cg_reg(g, left)));
    const struct cg_val at = cg_freeze(g, cg_value(DT_U32, next));
    const struct cg_val mine = cg_binary(g, OP_EQ, s->m->lane, owner);
    const int32_t is_mine = cg_reg(g, mine);
    const struct cg_val rest =
        cg_binary(g, OP_XOR, cg_value(DT_U32, doubtful), cg_binary(g, OP_SHL, cg_u32(1), at));
    CG_ASSIGN_IF(g, is_mine, doubtful, "mov.u32", cg_op(g, rest));
    find_place(s, cg_add(g, at, cg_u32(first)), &row, &col);
    row = cg_index(g, of_lane(g, cg_convert(g, row, DT_U32), whose));
    col = cg_index(g, of_lane(g, cg_convert(g, col, DT_U32), whose));
    cg_jump_if(g, is_inside(s, row, col), false, head);
    const struct cg_val total = over_lanes(g, sum_up(s, q, row, col, true));
    for (uint32_t w = 0; w < n; w++) {
        const int32_t is = cg_new(g, DT_BOOL);
        PTX(&g->b, "setp.eq.and.u32", ptx_r(is), cg_op(g, at), ptx_imm(w), ptx_r(is_mine));
        CG_ASSIGN_IF(g, is, sum[w], "mov.f32", cg_op(g, total));
    }
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
    cg_loop_head(g);
}

/* Computes those of n sums of product q, from its word `first` on, that are below the limit. */
static void mend(struct wgmma *s, uint32_t q, uint32_t first, uint32_t n, int32_t limit)
{
    const int32_t doubtful = find_doubtful(s, words_of(s, q, first), n, limit);
    (matmul_in_f16(s->p) ? mend_together : mend_own)(s, q, first, n, doubtful);
}

/* Of parts of tf32, predicates: is some factor small? any: or large? */
static int32_t find_small(struct wgmma *s, int32_t *any)
{
    struct cg *g = s->g;
    cg_assigned(g, s->least);
    cg_assigned(g, s->most);
    gather(s);
    const struct cg_val least = cg_value(DT_U32, s->least), most = cg_value(DT_U32, s->most);
    const struct cg_val is_small = cg_binary(g, OP_LT, least, cg_u32(WHOLE - 1));
    const struct cg_val is_large = cg_binary(g, OP_GE, most, cg_u32(INFINITE));
    *any = cg_reg(g, cg_binary(g, OP_LOR, is_small, is_large));
    return cg_reg(g, is_small);
}

void wgmma_mend(struct wgmma *s)
{
    struct cg *g = s->g;
    const uint32_t fine = cg_label(g, "fine");
    const uint32_t words = s->shape->high / WGMMA_ROWS * (s->shape->wide / 2);
    const bool in_f16 = matmul_in_f16(s->p);
    int32_t any, limit = in_f16 ? wgmma_scales_limit(s, &any) : -1;
    const int32_t is_small = in_f16 ? -1 : find_small(s, &any);
    cg_jump_if(g, any, false, fine);
    const size_t mark = cg_scope_open(g);
    if (!in_f16)
        limit = find_limit(s, is_small);
    for (uint32_t q = 0; q < s->f->nproduct; q++)
        for (uint32_t w = 0; w < words; w += MASK)
            mend(s, q, w, words - w < MASK ? words - w : MASK, limit);
    cg_scope_close(g, mark);
    cg_place(g, fine);
    cg_loop_head(g);
}
