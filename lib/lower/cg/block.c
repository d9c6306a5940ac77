/* Reductions over a block of any size: each warp folds its own values, then the warps' results are
 * folded.
 *
 * The results meet in shared memory of 32 slots. There are two such areas and calls take them in
 * turn, so that a call may write while slow threads still read what the call before left: before
 * the area comes round again everyone has passed the barrier of the call between. That costs one
 * barrier a call where all warps are full, else two.
 */
#include <config.h>

#include "lower/cg/sync.h"

#include <math.h>
#include <stdio.h>

/* FEW: as many warps as are read by every thread itself, which takes less time than shuffles do */
enum { SLOT = 8, SLOTS = 32, AREA = SLOT * SLOTS, FEW = 8 };

/* The address of the area that this call uses; the other one is next. */
static int32_t area(struct cg *g)
{
    if (!g->area_var) {
        size_t from = g->func->items.n;
        g->area_var = ptx_array_new(&g->b, PTX_SHARED, "$reduce", PTX_B64, 16, 2 * AREA / SLOT);
        g->area_turn = cg_new_mutable(g, DT_U32);
        g->area_sum = cg_new(g, DT_U32);
        PTX(&g->b, "mov.u32", ptx_r(g->area_turn), ptx_sym(g->area_var));
        PTX(&g->b, "shl.b32", ptx_r(g->area_sum), ptx_r(g->area_turn), ptx_imm(1));
        CG_ASSIGN(g, g->area_sum, "add.s32", ptx_r(g->area_sum), ptx_imm(AREA));
        cg_to_prologue(g, from, 3000000);
        g->again |= !g->reserved && g->variables.n > 0; /* the layout did not know of it */
        g->reserved = 2 * AREA;
    }
    int32_t now = cg_new(g, DT_U32);
    PTX(&g->b, "mov.b32", ptx_r(now), ptx_r(g->area_turn));
    CG_ASSIGN(g, g->area_turn, "sub.s32", ptx_r(g->area_sum), ptx_r(now));
    return now;
}

static struct ptx_operand slot_of(struct cg *g, enum dtype t, int32_t area, struct cg_val n)
{
    int64_t i;
    unsigned size = dtype_bits(t) / 8;
    if (cg_is_const(n, &i))
        return ptx_mem(area, i * size);
    struct cg_val bytes = cg_binary(g, OP_MUL, n, cg_int(DT_U32, size));
    return ptx_mem(cg_reg(g, cg_binary(g, OP_ADD, cg_value(DT_U32, area), bytes)), 0);
}

static void store_if(struct cg *g, int32_t pred, struct ptx_operand at, struct cg_val v)
{
    char m[32];
    cg_dotted(m, "st.shared", cg_bits_suffix(v.type));
    PTX_IF(&g->b, pred, m, at, ptx_r(cg_reg(g, v)));
}

static struct cg_val load(struct cg *g, enum dtype t, struct ptx_operand at)
{
    char m[32];
    int32_t r = cg_new(g, t);
    cg_dotted(m, "ld.shared", cg_bits_suffix(t));
    PTX(&g->b, m, ptx_r(r), at);
    return cg_value(t, r);
}

static struct cg_val load_if(struct cg *g, int32_t pred, struct ptx_operand at,
                             struct cg_val otherwise)
{
    char m[32];
    int32_t r = cg_new_mutable(g, otherwise.type);
    cg_move(g, r, otherwise);
    cg_dotted(m, "ld.shared", cg_bits_suffix(otherwise.type));
    CG_ASSIGN_IF(g, pred, r, m, at);
    return cg_value(otherwise.type, r);
}

static void barrier(struct cg *g)
{
    PTX(&g->b, "bar.sync", ptx_imm(0));
}

/* What changes no sum: -0 for floats, as -0 + +0 is +0 and -0 + -0 is -0. */
static struct cg_val zero(struct cg *g, enum dtype t)
{
    return dtype_is_float(t) ? cg_float(g, t, -0.0) : cg_int(t, 0);
}

/* All results, two of 8 bytes or four of 4 at a time, then folded in pairs. */
static struct cg_val fold_few(struct cg *g, enum fold_kind f, enum dtype t, int32_t area,
                              unsigned warps)
{
    struct cg_val v[FEW];
    unsigned size = dtype_bits(t) / 8, most = 16 / size;
    for (unsigned i = 0; i < warps;) {
        struct ptx_operand reg[4];
        unsigned k = most;
        char m[32];
        while (k > warps - i)
            k /= 2;
        for (unsigned j = 0; j < k; j++) {
            v[i + j] = cg_value(t, cg_new(g, t));
            reg[j] = v[i + j].op;
        }
        snprintf(m, sizeof m, "ld.shared%s.%s",
                 k == 4   ? ".v4"
                 : k == 2 ? ".v2"
                          : "",
                 cg_bits_suffix(t));
        PTX(&g->b, m, k == 1 ? reg[0] : ptx_vec(&g->b, k, reg), ptx_mem(area, (int64_t)i * size));
        i += k;
    }
    for (unsigned n = warps; n > 1; n = (n + 1) / 2)
        for (unsigned i = 0; i < n / 2; i++) {
            v[i] = fold_pair(g, f, v[2 * i], v[2 * i + 1]);
            if (i == n / 2 - 1 && n % 2)
                v[i + 1] = v[n - 1];
        }
    return v[0];
}

/* All warps are full, and there are `warps` of them: each folds all results for itself. */
static struct cg_val fold_everywhere(struct cg *g, enum fold_kind f, enum dtype t, int32_t area,
                                     unsigned warps)
{
    unsigned span = 1;
    while (span < warps)
        span *= 2;
    if (warps <= FEW)
        return fold_few(g, f, t, area, warps);
    struct cg_val lane = cg_special(g, SP_LANEID), v;
    if (span < SLOTS)
        lane = cg_binary(g, OP_AND, lane, cg_int(DT_U32, span - 1));
    if (span == warps) {
        v = load(g, t, slot_of(g, t, area, lane));
    } else if (f == FOLD_SUM) {
        int32_t has = cg_reg(g, cg_binary(g, OP_LT, lane, cg_int(DT_U32, warps)));
        v = load_if(g, has, slot_of(g, t, area, lane), zero(g, t));
    } else { /* the last one again */
        lane = cg_minmax(g, false, lane, cg_int(DT_U32, warps - 1));
        v = load(g, t, slot_of(g, t, area, lane));
    }
    for (unsigned s = span / 2; s; s /= 2)
        v = fold_pair(
            g, f, v,
            shuffle(g, SHUFFLE_XOR, v, ptx_imm(s), ptx_imm(31), ptx_imm(UINT32_MAX), NULL));
    return v;
}

/* The last warp may lack lanes: the first one folds, and leaves the result in slot 0, which only
 * its lane 0 read. */
static struct cg_val fold_first(struct cg *g, enum fold_kind f, enum dtype t, int32_t area)
{
    struct cg_val n = block_threads(g), lane = cg_special(g, SP_LANEID);
    struct cg_val warps = cg_binary(g, OP_ADD, n, cg_int(DT_U32, 31));
    warps = cg_binary(g, OP_SHR, warps, cg_int(DT_U32, 5));
    struct lanes of = warp_lanes(g);
    struct cg_val others = cg_binary(g, OP_NE, cg_special(g, SP_WARPID), cg_int(DT_U32, 0));
    uint32_t end = cg_label(g, "folded");
    int32_t has = cg_reg(g, cg_binary(g, OP_LT, lane, warps));
    int32_t first = cg_reg(g, cg_binary(g, OP_EQ, lane, cg_int(DT_U32, 0)));
    cg_jump_if(g, cg_reg(g, others), true, end);
    size_t mark = cg_scope_open(g);
    struct cg_val v = load_if(g, has, slot_of(g, t, area, lane), zero(g, t));
    for (unsigned s = SLOTS / 2; s; s /= 2) {
        struct cg_val other = shuffle(g, SHUFFLE_DOWN, v, ptx_imm(s), ptx_imm(31), of.mask, NULL);
        struct cg_val partner = cg_binary(g, OP_ADD, lane, cg_int(DT_U32, s));
        int32_t exists = cg_reg(g, cg_binary(g, OP_LT, partner, warps));
        v = cg_select(g, exists, fold_pair(g, f, v, other), v);
    }
    store_if(g, first, ptx_mem(area, 0), v);
    cg_scope_close(g, mark);
    cg_place(g, end);
    barrier(g);
    return load(g, t, ptx_mem(area, 0));
}

struct cg_val block_reduction(struct cg *g, const struct lang_expr *e)
{
    enum fold_kind f = e->fn == FN_BLOCK_SUM   ? FOLD_SUM
                       : e->fn == FN_BLOCK_MAX ? FOLD_MAX
                                               : FOLD_MIN;
    struct cg_val v = cg_expr(g, e->args[0]);
    struct lanes of = warp_lanes(g);
    int64_t threads = 0;
    bool known = cg_is_const(block_threads(g), &threads);
    v = warp_fold(g, f, v, &of);
    if (known && threads <= 32)
        return v;
    int32_t here = area(g);
    struct cg_val lane = cg_special(g, SP_LANEID);
    int32_t first = cg_reg(g, cg_binary(g, OP_EQ, lane, cg_int(DT_U32, 0)));
    store_if(g, first, slot_of(g, v.type, here, cg_special(g, SP_WARPID)), v);
    barrier(g);
    return of.all && known ? fold_everywhere(g, f, v.type, here, (unsigned)threads / 32)
                           : fold_first(g, f, v.type, here);
}
