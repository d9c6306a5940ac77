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

#include "lower/wgmma/wgmma.h"

#include <math.h>

enum {
    WORD = 8,          /* bytes: the least, and the squares */
    WHOLE = 15u << 24, /* 2 x of 2^-112 */
    INFINITE = 0x7f800000,
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
    const int32_t leads = cg_reg(g, cg_binary(g, OP_EQ, s->m->lane, cg_u32(0)));
    gather(s);
    ring_wait_read(&s->ring);
    PTX_IF(&g->b, leads, "st.shared.v2.b32", ptx_mem(cg_reg(g, at), offset_of(s)),
           ptx_vec(&g->b, 2, v));
}

/* Lane n hears converter n. All lanes have when one of them gives the stage back. */
void wgmma_range_hear(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct ptx_operand v[] = {ptx_r(cg_new(g, DT_U32)), ptx_r(cg_new(g, DT_U32))};
    const int32_t hears = cg_reg(g, cg_binary(g, OP_LT, s->m->lane, cg_u32(s->shape->converts)));
    const struct cg_val more = cg_mul(g, s->m->lane, s->p->stages * WORD);
    const struct cg_val at = cg_add(g, cg_value(DT_U32, s->ring.full), more);
    PTX(&g->b, "mov.u32", v[0], ptx_imm(UINT32_MAX));
    PTX(&g->b, "mov.u32", v[1], ptx_imm(0));
    PTX_IF(&g->b, hears, "ld.shared.v2.b32", ptx_vec(&g->b, 2, v),
           ptx_mem(cg_reg(g, at), offset_of(s)));
    CG_ASSIGN(g, s->least, "min.u32", ptx_r(s->least), v[0]);
    CG_ASSIGN(g, s->most, "max.u32", ptx_r(s->most), v[1]);
}

/* ---- sums that may be off -------------------------------------------------------------------- */

/* The subscripts of the lane's word w (a u32) of a product's sums. */
static void find_place(void *of, uint32_t q, struct cg_val w, struct cg_val *row,
                       struct cg_val *col)
{
    struct wgmma *s = of;
    (void)q; /* all are alike */
    struct cg *g = s->g;
    const struct cg_val each = cg_u32(s->shape->wide / 2);
    const struct cg_val rows = cg_binary(g, OP_DIV, w, each), v = cg_binary(g, OP_MOD, w, each);
    const struct cg_val half = cg_binary(g, OP_AND, cg_binary(g, OP_SHR, v, cg_u32(1)), cg_u32(1));
    const struct cg_val before = cg_mul(g, rows, WGMMA_ROWS);
    struct cg_val along = cg_add(g, wgmma_along(s), before);
    along = cg_add(g, along, cg_binary(g, OP_SHR, s->m->lane, cg_u32(2)));
    along = cg_index(g, cg_add(g, along, cg_mul(g, half, 8)));
    struct cg_val across = cg_mul(g, cg_binary(g, OP_SHR, v, cg_u32(2)), 8);
    across = cg_add(g, across, cg_mul(g, cg_binary(g, OP_AND, s->m->lane, cg_u32(3)), 2));
    across = cg_index(g, cg_add(g, across, cg_binary(g, OP_AND, v, cg_u32(1))));
    const bool turned = s->shape->left == MATMUL_B;
    *row = cg_binary(g, OP_ADD, s->m->row, turned ? across : along);
    *col = cg_binary(g, OP_ADD, s->m->col, turned ? along : across);
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
    const bool in_f16 = matmul_in_f16(s->p);
    struct matmul_mend d = {.sum = s->sum,
                            .words = s->shape->high / WGMMA_ROWS * (s->shape->wide / 2),
                            .together = in_f16,
                            .place = find_place,
                            .of = s};
    int32_t any, is_small = -1;
    if (in_f16)
        d.limit = wgmma_scales_limit(s, &any);
    else
        is_small = find_small(s, &any);
    cg_jump_if(g, any, false, fine);
    const size_t mark = cg_scope_open(g);
    if (!in_f16)
        d.limit = matmul_mend_limit(s->m, s->most, 0x1p-108f, is_small);
    matmul_mend(s->m, &d);
    cg_scope_close(g, mark);
    cg_place(g, fine);
    cg_loop_head(g);
}
