/* Sums on their way out (matmul_wgmma.h).
 *
 * A warp has 16 of each 64 rows of its warpgroup: lane 4 r + c the words 4 j .. 4 j + 3 of each 8 columns j:
 *
 *     row r       columns 8 j + 2 c, 8 j + 2 c + 1
 *     row r + 8   the same
 *
 * It leaves some columns of these 16 rows in a patch of its own, and the epilogue takes them from there: no other warp is
 * waited for.
 */
#include <config.h>

#include "lower/matmul_wgmma.h"

static struct cg_val u32(uint32_t v)
{
    return cg_int(DT_U32, v);
}

static struct cg_val plus(struct cg *g, struct cg_val x, struct cg_val y)
{
    return cg_binary(g, OP_ADD, x, y);
}

static struct cg_val times(struct cg *g, struct cg_val x, uint32_t y)
{
    return cg_binary(g, OP_MUL, x, u32(y));
}

/* 16 lanes store 8 bytes each at once, of 4 rows: these begin 8 banks apart. */
uint32_t wgmma_pitch(uint32_t cols)
{
    return cols > 8 ? cols + 8 : cols;
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
            for (uint32_t j = 0; j < s->patch_cols / 8; j++) {
                const int32_t *w = sum + (size_t)(col / 8 + j) * 4 + half * 2;
                const struct ptx_operand v[2] = {ptx_r(w[0]), ptx_r(w[1])};
                const uint32_t row = q * WGMMA_PATCH + half * 8;
                PTX(&g->b, text, ptx_mem(at, (row * s->pitch + j * 8) * 4), ptx_vec(&g->b, 2, v));
            }
    }
}

static void meet(struct wgmma *s)
{
    PTX(&s->g->b, "bar.warp.sync", ptx_imm(-1));
}

void wgmma_out_tile(struct wgmma *s)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    const struct cg_val thread = m->thread, lane = m->lane;
    const struct cg_val warp = cg_binary(g, OP_SUB, m->warp, u32(WGMMA_GROUP / 32));
    const struct cg_val base = plus(g, plus(g, cg_value(DT_U32, m->shared), u32(s->patches)),
                                    times(g, warp, s->patch_bytes));
    struct cg_val row = times(g, cg_binary(g, OP_SHR, lane, u32(2)), s->pitch);
    struct cg_val in_row = times(g, cg_binary(g, OP_AND, lane, u32(3)), 2);
    const int32_t at = cg_reg(g, plus(g, base, times(g, plus(g, row, in_row), 4)));
    struct cg_val first = times(g, s->part, s->p->wm);
    first = plus(g, first, times(g, cg_binary(g, OP_AND, warp, u32(3)), WGMMA_PATCH));
    m->thread = lane;
    m->workers = 32;
    for (uint32_t i = 0; i < s->p->wm / WGMMA_ROWS; i++)
        for (uint32_t col = 0; col < s->p->bn; col += s->patch_cols) {
            const struct matmul_patch patch = {.base = cg_reg(g, base),
                                               .first = plus(g, first, u32(i * WGMMA_ROWS)),
                                               .first_col = col,
                                               .rows = WGMMA_PATCH,
                                               .cols = s->patch_cols,
                                               .pitch = s->pitch};
            put_patch(s, i, col, at);
            meet(s);
            matmul_store(m, &patch);
            meet(s);
        }
    m->thread = thread;
    m->workers = s->p->threads;
}
