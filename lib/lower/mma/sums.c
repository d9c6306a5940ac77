/* Sums of products by mma.sync (mma/mma.h) on their way to the epilogue: from registers to patches
 * of shared memory. */
#include <config.h>

#include "lower/mma/mma.h"

/* ---- what goes where ------------------------------------------------------------------------- */

/* How a lane's sums of a product lie in the patch: the first one in row group * by_group[0] +
 * member * by_member[0], the column likewise, of `width` neighbours. */
struct lay {
    const struct mma_tile *tall, *flat;
    uint32_t by_group[2], by_member[2], width;
};

static struct lay lay_of(const struct mma_shape *s, uint32_t q)
{
    const struct matmul_product *p = &s->f->product[q];
    struct lay l = {.tall = &s->tile[s->tile_of[s->turned ? p->b : p->a]],
                    .flat = &s->tile[s->tile_of[s->turned ? p->a : p->b]]};
    const uint32_t ft = mma_factor(&l.tall->lay), ff = mma_factor(&l.flat->lay);
    l.by_group[s->turned] = ft;
    l.by_member[!s->turned] = 2 * ff;
    l.width = s->turned ? ft : ff == 1 ? 2 : 4;
    return l;
}

/* The pitch of so many columns' sums that meets the fewest conflicts of banks. */
static uint32_t pitch_of(const struct mma_shape *s, uint32_t cols)
{
    const struct lay l = lay_of(s, 0);
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t pitch = cols; pitch < cols + 32; pitch += 4) {
        uint32_t uses[32] = {0}, most = 0;
        for (uint32_t lane = 0; lane < 32 / l.width; lane++) /* one pass of the hardware's */
            for (uint32_t w = 0; w < l.width; w++) {
                const uint32_t group = lane / 4, member = lane % 4;
                const uint32_t row = group * l.by_group[0] + member * l.by_member[0];
                const uint32_t col = group * l.by_group[1] + member * l.by_member[1];
                const uint32_t bank = (row * pitch + col + w) % 32;
                most = ++uses[bank] > most ? uses[bank] : most;
            }
        if (most < least) {
            least = most;
            best = pitch;
        }
    }
    return best;
}

/* Warps with a patch each. */
static uint32_t sharing(const struct mma_shape *s)
{
    return s->p->blocks ? s->p->threads / 32 : 1;
}

uint32_t mma_patch_bytes(const struct mma_shape *s)
{
    return sharing(s) * s->f->nproduct * s->patch_rows * s->pitch * 4;
}

/* Takes as many rows of sums at once as there is room for: whole rows of warps, or parts of one. */
void mma_measure_patch(struct mma_shape *s)
{
    enum { UNIT = 16 };
    const struct matmul_plan *p = s->p;
    const uint32_t stages = p->blocks ? 1 : p->stages, high = p->blocks ? p->wm : p->bm;
    s->pitch = pitch_of(s, p->blocks ? p->wn : p->bn);
    s->patches = s->stage_bytes * (p->stages - stages);
    uint32_t most = UNIT;
    for (uint32_t rows = UNIT; rows <= high; rows += UNIT) {
        const bool fits = rows <= p->wm ? p->wm % rows == 0
                                        : rows % p->wm == 0 && p->bm % rows == 0;
        s->patch_rows = rows;
        if (fits && mma_patch_bytes(s) <= s->stage_bytes * stages)
            most = rows;
    }
    s->patch_rows = most;
}

void mma_place_of(struct mma *s, uint32_t q, struct cg_val w, struct cg_val *row,
                  struct cg_val *col)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->p;
    const struct lay l = lay_of(s->shape, q);
    const bool turned = s->shape->turned;
    const struct cg_val each = cg_u32(s->shape->wide * 4), v = cg_binary(g, OP_MOD, w, each);
    const struct cg_val half = cg_binary(g, OP_AND, cg_binary(g, OP_SHR, v, cg_u32(1)), cg_u32(1));
    struct cg_val tall = cg_mul(g, half, mma_row_of(&l.tall->lay, 0, 1));
    tall = cg_add(g, tall, cg_mul(g, cg_binary(g, OP_DIV, w, each), 16));
    struct cg_val flat = cg_mul(g, cg_binary(g, OP_SHR, v, cg_u32(2)), 8);
    flat = cg_add(g, flat, cg_binary(g, OP_AND, v, cg_u32(1)));
    const struct cg_val group = cg_binary(g, OP_SHR, s->m->lane, cg_u32(2));
    const struct cg_val member = cg_binary(g, OP_AND, s->m->lane, cg_u32(3));
    const struct cg_val across = cg_u32(p->bn / p->wn);
    struct cg_val r = cg_mul(g, cg_binary(g, OP_DIV, s->m->warp, across), p->wm);
    struct cg_val c = cg_mul(g, cg_binary(g, OP_MOD, s->m->warp, across), p->wn);
    r = cg_add(g, r, cg_weighted(g, group, l.by_group[0], member, l.by_member[0]));
    c = cg_add(g, c, cg_weighted(g, group, l.by_group[1], member, l.by_member[1]));
    r = cg_index(g, cg_add(g, r, turned ? flat : tall));
    c = cg_index(g, cg_add(g, c, turned ? tall : flat));
    *row = cg_binary(g, OP_ADD, s->m->row, r);
    *col = cg_binary(g, OP_ADD, s->m->col, c);
}

/* ---- from registers -------------------------------------------------------------------------- */

/* In blocks that take several tiles words of different instructions go by way of others: ptxas
 * would have the sums lie as they are stored, and move all of them in each round of the loop. */
static void put(struct mma *s, uint32_t n, struct ptx_operand to, const struct ptx_operand *v)
{
    static const char *const bits[] = {
        [1] = "st.shared.b32", [2] = "st.shared.v2.b32", [4] = "st.shared.v4.b32"};
    static const char *const real[] = {
        [1] = "st.shared.f32", [2] = "st.shared.v2.f32", [4] = "st.shared.v4.f32"};
    struct cg *g = s->g;
    struct ptx_operand w[4];
    const bool apart = s->p->blocks && n > (s->shape->turned ? 1 : 2);
    for (uint32_t i = 0; i < n; i++) {
        w[i] = v[i];
        if (!apart)
            continue;
        w[i] = ptx_r(cg_new(g, s->f->sum));
        PTX(&g->b, "or.b32", w[i], v[i], ptx_r(s->none));
    }
    PTX(&g->b, s->f->sum == DT_F32 ? real[n] : bits[n], to, n == 1 ? w[0] : ptx_vec(&g->b, n, w));
}

/* The lane's sums of row `half` of the tall operand's 16 rows i of product q, at the place of its
 * first. */
static void put_row(struct mma *s, const struct lay *l, uint32_t q, uint32_t i, uint32_t half,
                    int32_t at, uint32_t offset)
{
    const uint32_t f = mma_factor(&l->flat->lay), width = l->width;
    const int32_t *sum = s->sum + ((size_t)q * s->shape->high + i) * s->shape->wide * 4 + half * 2;
    for (uint32_t j = 0; j < s->shape->wide; j += f)
        for (uint32_t from = 0; from < 2 * f; from += width) { /* of so many neighbours */
            struct ptx_operand v[4];
            for (uint32_t e = from; e < from + width; e++)
                v[e - from] = ptx_r(sum[(j + e % f) * 4 + e / f]);
            put(s, width, ptx_mem(at, offset + (mma_row_of(&l->flat->lay, j, 0) + from) * 4), v);
        }
}

/* The same, of a transposed product, of number `of` of the pair in the flat operand's 8 columns
 * j. */
static void put_column(struct mma *s, const struct lay *l, uint32_t q, uint32_t j, uint32_t of,
                       int32_t at, uint32_t offset)
{
    for (uint32_t i = 0; i < s->shape->high; i++) {
        const int32_t *sum = s->sum + (((size_t)q * s->shape->high + i) * s->shape->wide + j) * 4 +
                             of;
        for (uint32_t half = 0; half < 2; half += l->width) {
            const struct ptx_operand v[2] = {ptx_r(sum[2 * half]), ptx_r(sum[2])};
            put(s, l->width, ptx_mem(at, offset + mma_row_of(&l->tall->lay, i, half) * 4), v);
        }
    }
}

/* The lane's sums of rows [from, to) of its warp's, at the place of the first. */
static void put_rows(struct mma *s, const struct lay *l, uint32_t q, uint32_t from, uint32_t to,
                     int32_t at)
{
    const uint32_t unit = s->shape->turned ? 8 : 16;
    const struct mma_tile *t = s->shape->turned ? l->flat : l->tall;
    for (uint32_t i = from / unit; i < to / unit; i++)
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t row = q * s->shape->patch_rows + mma_row_of(&t->lay, i, half) - from;
            (s->shape->turned ? put_column : put_row)(s, l, q, i, half, at,
                                                      row * s->shape->pitch * 4);
        }
}

/* The sums of rows [first, first + patch_rows) of the tile go to the patch: of some rows of warps,
 * or of part of one. */
static void put_patch(struct mma *s, uint32_t first)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->p;
    const uint32_t across = p->bn / p->wn, rows = s->shape->patch_rows, skip = cg_label(g, "put");
    struct cg_val wr = cg_binary(g, OP_DIV, s->m->warp, cg_int(DT_U32, across));
    struct cg_val wc = cg_binary(g, OP_MOD, s->m->warp, cg_int(DT_U32, across));
    if (rows < p->bm) {
        const uint32_t n = rows > p->wm ? rows / p->wm : 1;
        struct cg_val mine = cg_binary(g, OP_DIV, wr, cg_int(DT_U32, n));
        mine = cg_binary(g, OP_EQ, mine, cg_int(DT_U32, first / p->wm / n));
        cg_jump_if(g, cg_reg(g, mine), false, skip);
    }
    const size_t mark = cg_scope_open(g);
    const uint32_t from = rows < p->wm ? first % p->wm : 0;
    const uint32_t to = rows < p->wm ? from + rows : p->wm;
    struct cg_val group = cg_binary(g, OP_SHR, s->m->lane, cg_int(DT_U32, 2));
    struct cg_val member = cg_binary(g, OP_AND, s->m->lane, cg_int(DT_U32, 3));
    for (uint32_t q = 0; q < s->f->nproduct; q++) {
        const struct lay l = lay_of(s->shape, q);
        /* the first row of the warp, as the patch counts them */
        struct cg_val row = cg_binary(g, OP_MUL, wr, cg_int(DT_U32, p->wm));
        row = cg_binary(g, OP_SUB, row, cg_int(DT_U32, first - from));
        row = cg_add(g, row, cg_weighted(g, group, l.by_group[0], member, l.by_member[0]));
        struct cg_val col = cg_binary(g, OP_MUL, wc, cg_int(DT_U32, p->wn));
        col = cg_add(g, col, cg_weighted(g, group, l.by_group[1], member, l.by_member[1]));
        struct cg_val at = cg_binary(g, OP_MUL, row, cg_int(DT_U32, s->shape->pitch));
        at = cg_binary(g, OP_MUL, cg_binary(g, OP_ADD, at, col), cg_int(DT_U32, 4));
        at = cg_binary(g, OP_ADD, at, cg_value(DT_U32, s->m->shared));
        put_rows(s, &l, q, from, to, cg_reg(g, at));
    }
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

/* ---- to the epilogue ------------------------------------------------------------------------- */

/* Stores the block's sums together; all of its threads meet before and after. */
static void store_together(struct mma *s)
{
    struct matmul *m = s->m;
    for (uint32_t first = 0; first < m->p->bm; first += s->shape->patch_rows) {
        const struct matmul_patch patch = {.base = m->shared,
                                           .first = cg_int(DT_U32, first),
                                           .rows = s->shape->patch_rows,
                                           .cols = m->p->bn,
                                           .pitch = s->shape->pitch};
        if (first)
            mma_barrier(s);
        matmul_store_begin(m, &patch);
        put_patch(s, first);
        mma_barrier(s);
        matmul_store(m, &patch);
    }
}

/* The sums of rows [from, from + patch_rows) of the warp go to its patch. */
static void put_part(struct mma *s, uint32_t from, int32_t base)
{
    struct cg *g = s->g;
    const struct cg_val group = cg_binary(g, OP_SHR, s->m->lane, cg_u32(2));
    const struct cg_val member = cg_binary(g, OP_AND, s->m->lane, cg_u32(3));
    for (uint32_t q = 0; q < s->f->nproduct; q++) {
        const struct lay l = lay_of(s->shape, q);
        struct cg_val row = cg_weighted(g, group, l.by_group[0], member, l.by_member[0]);
        struct cg_val col = cg_weighted(g, group, l.by_group[1], member, l.by_member[1]);
        struct cg_val at = cg_mul(g, cg_add(g, cg_mul(g, row, s->shape->pitch), col), 4);
        at = cg_add(g, at, cg_value(DT_U32, base));
        put_rows(s, &l, q, from, from + s->shape->patch_rows, cg_reg(g, at));
    }
}

/* Stores the sums of each warp, which waits for no other. It loads what a patch takes beside the
 * sums while the last one is stored. */
static void store_apart(struct mma *s)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    const struct matmul_plan *p = s->p;
    const uint32_t across = p->bn / p->wn;
    const struct cg_val thread = m->thread;
    const struct cg_val row = cg_mul(g, cg_binary(g, OP_DIV, m->warp, cg_u32(across)), p->wm);
    const struct cg_val col = cg_mul(g, cg_binary(g, OP_MOD, m->warp, cg_u32(across)), p->wn);
    struct cg_val base = cg_mul(g, m->warp, mma_patch_bytes(s->shape) / sharing(s->shape));
    base = cg_add(g, cg_add(g, cg_value(DT_U32, m->shared), cg_u32(s->shape->patches)), base);
    struct matmul_patch patch = {.base = cg_reg(g, base),
                                 .first = row,
                                 .first_col = &col,
                                 .rows = s->shape->patch_rows,
                                 .cols = p->wn,
                                 .pitch = s->shape->pitch};
    m->thread = m->lane;
    m->workers = 32;
    matmul_store_begin(m, &patch);
    for (uint32_t from = 0; from < p->wm; from += s->shape->patch_rows) {
        const struct cg_val *const loaded = m->loaded;
        struct matmul_patch next = patch;
        next.first = cg_add(g, row, cg_u32(from + s->shape->patch_rows));
        if (from)
            PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
        put_part(s, from, patch.base);
        PTX(&g->b, "bar.warp.sync", ptx_imm(-1));
        if (from + s->shape->patch_rows < p->wm)
            matmul_store_begin(m, &next);
        const struct cg_val *const ahead = m->loaded;
        m->loaded = loaded;
        matmul_store(m, &patch);
        m->loaded = ahead;
        patch = next;
    }
    m->thread = thread;
    m->workers = p->threads;
}

void mma_store(struct mma *s)
{
    (s->p->blocks ? store_apart : store_together)(s);
}
