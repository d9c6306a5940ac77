/* Sums on their way out (wgmma/wgmma.h).
 *
 * A warp has 16 of each 64 rows of its warpgroup (wgmma/products.h). It leaves some columns of
 * these 16 rows in a patch of its own, and the epilogue takes them from there: no other warp is
 * waited for.
 */
#include <config.h>

#include "lower/wgmma/wgmma.h"

/* Does it call what takes more than a few instructions? */
static bool calls(const struct wgmma_shape *s, const struct lang_expr *e)
{
    if (e->kind == E_CALL)
        switch ((int)e->fn) {
        case FN_RELU:
        case FN_ABS:
        case FN_MIN:
        case FN_MAX:
        case FN_CLAMP:
        case FN_FMA:
        case FN_TF32:
        case FN_TF32_RN:
        case FN_TF32_RZ: break;
        default:
            if (s->f->sum != DT_F32 || !cg_has_tensor_call(s->target, e))
                return true;
        }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (calls(s, e->args[i]))
            return true;
    return e->pad && calls(s, e->pad);
}

bool wgmma_is_heavy(const struct wgmma_shape *s)
{
    for (uint32_t i = 0; i < s->f->stage->n; i++)
        if (calls(s, s->f->stage->eq[i]->rhs))
            return true;
    return false;
}

/* 16 lanes store 8 bytes each at once, of 4 rows: these begin 8 banks apart. */
uint32_t wgmma_pitch(uint32_t cols)
{
    return cols > 8 ? cols + 8 : cols;
}

struct cg_val wgmma_warp(struct wgmma *s)
{
    return cg_binary(s->g, OP_SUB, s->m->warp, cg_u32(s->shape->producers * WGMMA_GROUP / 32));
}

struct cg_val wgmma_patch(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val warp = wgmma_warp(s);
    const struct cg_val first =
        cg_add(g, cg_value(DT_U32, s->m->shared), cg_u32(s->shape->patches));
    return cg_add(g, first, cg_mul(g, warp, s->shape->patch_bytes));
}

struct cg_val wgmma_along(struct wgmma *s)
{
    struct cg *g = s->g;
    const struct cg_val warp = wgmma_warp(s);
    const struct cg_val part = cg_mul(g, s->part, s->shape->high);
    return cg_add(g, part, cg_mul(g, cg_binary(g, OP_AND, warp, cg_u32(3)), WGMMA_PATCH));
}

/* Columns [col, col + patch_cols) of 64 rows i. */
static void put_patch(struct wgmma *s, uint32_t i, uint32_t col, int32_t at)
{
    struct cg *g = s->g;
    const uint32_t high = s->p->wm / WGMMA_ROWS;
    const char *text = s->f->sum == DT_F32 ? "st.shared.v2.f32" : "st.shared.v2.b32";
    for (uint32_t q = 0; q < s->f->nproduct; q++) {
        const int32_t *sum = s->sum + ((size_t)q * high + i) * (s->p->wn / 2);
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t j = 0; j < s->shape->patch_cols / 8; j++) {
                const int32_t *w = sum + (size_t)(col / 8 + j) * 4 + half * 2;
                const struct ptx_operand v[2] = {ptx_r(w[0]), ptx_r(w[1])};
                const uint32_t row = q * WGMMA_PATCH + half * 8;
                PTX(&g->b, text, ptx_mem(at, (row * s->shape->pitch + j * 8) * 4),
                    ptx_vec(&g->b, 2, v));
            }
    }
}

static void meet(struct wgmma *s)
{
    PTX(&s->g->b, "bar.warp.sync", ptx_imm(-1));
}

/* Patches are counted by 64 rows, and then by columns. */
struct count {
    uint32_t across, n; /* of 64 rows; all */
};

/* Puts patch number n, which is known when the code runs: registers have no numbers then. */
static void put_number(struct wgmma *s, struct count c, struct cg_val n, int32_t at)
{
    struct cg *g = s->g;
    const uint32_t put = cg_label(g, "put");
    for (uint32_t i = 0; i < c.n; i++) {
        const uint32_t other = cg_label(g, "other");
        const size_t mark = cg_scope_open(g);
        if (i + 1 < c.n)
            cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, n, cg_u32(i))), false, other);
        put_patch(s, i / c.across, i % c.across * s->shape->patch_cols, at);
        cg_scope_close(g, mark);
        if (i + 1 < c.n)
            cg_jump(g, put);
        cg_place(g, other);
    }
    cg_place(g, put);
}

static void store_patch(struct wgmma *s, struct cg_val base, struct cg_val row, struct cg_val col)
{
    const struct matmul_patch patch = {.base = cg_reg(s->g, base),
                                       .first = row,
                                       .first_col = &col,
                                       .rows = WGMMA_PATCH,
                                       .cols = s->shape->patch_cols,
                                       .pitch = s->shape->pitch};
    meet(s);
    matmul_store(s->m, &patch);
    meet(s);
}

/* One after the other, the same code for all: an epilogue that is much code is written once. */
static void store_in_loop(struct wgmma *s, struct count c, struct cg_val base, struct cg_val first,
                          int32_t at)
{
    struct cg *g = s->g;
    const int32_t number = cg_new_mutable(g, DT_U32);
    const uint32_t head = cg_label(g, "patch");
    const struct cg_val n = cg_value(DT_U32, number);
    struct cg_nest nest;
    cg_move(g, number, cg_u32(0));
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, number);
    const size_t mark = cg_scope_open(g);
    put_number(s, c, n, at);
    const struct cg_val i = cg_binary(g, OP_DIV, n, cg_u32(c.across));
    const struct cg_val j = cg_binary(g, OP_MOD, n, cg_u32(c.across));
    const struct cg_val col = cg_mul(g, j, s->shape->patch_cols);
    store_patch(s, base, cg_add(g, first, cg_mul(g, i, WGMMA_ROWS)), col);
    cg_move(g, number, cg_add(g, n, cg_u32(1)));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, n, cg_u32(c.n))), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

void wgmma_out_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    const struct count c = {s->p->bn / s->shape->patch_cols,
                            s->p->wm / WGMMA_ROWS * (s->p->bn / s->shape->patch_cols)};
    const struct cg_val thread = m->thread, lane = m->lane;
    const struct cg_val base = wgmma_patch(s);
    struct cg_val row = cg_mul(g, wgmma_lane_row(g, lane), s->shape->pitch);
    struct cg_val in_row = wgmma_lane_column(g, lane);
    const int32_t at = cg_reg(g, cg_add(g, base, cg_mul(g, cg_add(g, row, in_row), 4)));
    const struct cg_val first = wgmma_along(s);
    m->thread = lane;
    m->workers = 32;
    const bool loops = c.n > 1 && wgmma_is_heavy(s->shape);
    if (loops)
        store_in_loop(s, c, base, first, at);
    for (uint32_t i = 0; i < c.n && !loops; i++) {
        put_patch(s, i / c.across, i % c.across * s->shape->patch_cols, at);
        store_patch(s, base, cg_add(g, first, cg_u32(i / c.across * WGMMA_ROWS)),
                    cg_u32(i % c.across * s->shape->patch_cols));
    }
    m->thread = thread;
    m->workers = s->p->threads;
}
