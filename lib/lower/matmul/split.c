/* Blocks that share a tile along k.
 *
 * Each leaves its sums of a patch in a buffer and counts itself. The one that finds that it is the
 * last adds all of them, in the order of their shares, and goes on with the sums in its patch:
 *
 *     share 0   sums -> parts[0]; count 0 -> 1
 *     share 2   sums -> parts[2]; count 1 -> 2
 *     share 1   sums -> parts[1]; count 2 -> 0: the last; ((0 + parts[0]) + parts[1]) + parts[2] ->
 *               patch
 *
 * So the bits depend neither on the order in which blocks run nor on the device. A share of no
 * elements leaves zeros. Patches are counted one by one: the last block of one need not be that of
 * the next. The count is acquire and release at the scope of the GPU, the barriers around it extend
 * that to all threads; it wraps to 0, for the next launch.
 */
#include <config.h>

#include "lower/matmul/matmul.h"

/* Accesses of a thread that are on their way together: 256 threads with 8 of 16 bytes cover the
 * latency of the L2 cache, out of which the parts come. */
enum { FLIGHT = 8 };

struct share {
    struct matmul *m;
    const struct matmul_patch *patch;
    const struct lang_symbol *parts;
    struct cg_val splits, first; /* i64: of the patch's parts, the first's first element */
    uint32_t lanes, across;      /* elements of an access, accesses of a row */
    uint32_t n, size;            /* accesses and elements of a part */
    uint32_t chunk;              /* accesses of a thread at a time */
    int32_t at;                  /* u32: the thread's first access of the chunk */
};

/* Access u of the chunk. */
static struct cg_val access_of(struct share *s, uint32_t u)
{
    struct cg *g = s->m->g;
    return cg_binary(g, OP_ADD, cg_value(DT_U32, s->at), cg_int(DT_U32, u * s->m->p->threads));
}

/* Is there one? -1: always. */
static int32_t exists(struct share *s, struct cg_val access)
{
    struct cg *g = s->m->g;
    if (s->n % (s->chunk * s->m->p->threads) == 0)
        return -1;
    return cg_reg(g, cg_binary(g, OP_LT, access, cg_int(DT_U32, s->n)));
}

static struct cg_place_of in_patch(struct share *s, struct cg_val access)
{
    struct cg *g = s->m->g;
    struct cg_val row = access, c = cg_int(DT_U32, 0);
    const unsigned bytes = dtype_bits(s->parts->type) / 8;
    if (s->across > 1) {
        struct cg_val q, r;
        cg_divmod(g, cg_index(g, access), cg_int(DT_I64, s->across), &q, &r);
        row = cg_convert(g, q, DT_U32);
        c = cg_convert(g, r, DT_U32);
    }
    row = cg_binary(g, OP_MUL, row, cg_int(DT_U32, s->patch->pitch * bytes));
    c = cg_binary(g, OP_MUL, c, cg_int(DT_U32, s->lanes * bytes));
    struct cg_val at =
        cg_binary(g, OP_ADD, cg_binary(g, OP_ADD, row, c), cg_value(DT_U32, s->patch->base));
    return (struct cg_place_of){.space = CG_SHARED, .base = cg_reg(g, at)};
}

static struct cg_place_of in_part(struct share *s, struct cg_val share, struct cg_val access)
{
    struct cg *g = s->m->g;
    struct cg_val at = cg_binary(g, OP_MUL, cg_index(g, share), cg_int(DT_I64, s->size));
    const struct cg_val e = cg_index(g, cg_binary(g, OP_MUL, access, cg_int(DT_U32, s->lanes)));
    at = cg_binary(g, OP_ADD, cg_binary(g, OP_ADD, s->first, at), e);
    return cg_address(g, s->parts, at);
}

/* ---- a loop over the thread's accesses, a chunk at a time ------------------------------------ */

static void for_chunks(struct share *s, void (*body)(struct share *s))
{
    struct cg *g = s->m->g;
    const uint32_t step = s->chunk * s->m->p->threads;
    const bool loop = s->n > step;
    const uint32_t head = cg_label(g, "chunk"), done = cg_label(g, "chunks");
    struct cg_nest nest;
    s->at = cg_new_mutable(g, DT_U32);
    cg_move(g, s->at, s->m->thread);
    if (loop) {
        cg_place(g, head);
        cg_loop_head(g);
        cg_nest_open(g, &nest, NULL);
        cg_nest_varies(g, &nest, s->at);
    }
    size_t mark = cg_scope_open(g);
    body(s);
    if (loop) {
        struct cg_val next = cg_binary(g, OP_ADD, cg_value(DT_U32, s->at), cg_int(DT_U32, step));
        cg_move(g, s->at, next);
        struct cg_val more = cg_binary(g, OP_LT, cg_value(DT_U32, s->at), cg_int(DT_U32, s->n));
        cg_jump_if(g, cg_reg(g, more), true, head);
        cg_nest_close(g, &nest);
    }
    cg_scope_close(g, mark);
    cg_place(g, done);
}

static void leave_chunk(struct share *s)
{
    struct cg *g = s->m->g;
    struct cg_val v[FLIGHT][4];
    struct cg_place_of to[FLIGHT];
    for (uint32_t u = 0; u < s->chunk; u++) {
        struct cg_val access = access_of(s, u);
        const int32_t here = exists(s, access);
        const uint32_t none = cg_label(g, "none");
        size_t mark = cg_scope_open(g);
        if (here >= 0)
            cg_jump_if(g, here, false, none);
        to[u] = in_part(s, cg_index(g, s->m->split), access);
        cg_load_words(g, s->parts->type, false, in_patch(s, access), s->lanes, v[u]);
        cg_store_words(g, s->parts->type, to[u], s->lanes, v[u]);
        cg_scope_close(g, mark);
        cg_place(g, none);
    }
}

/* Adds `batch` shares' parts of the chunk, from share `share` on, to the sums. */
static void add_shares(struct share *s, struct cg_val share, uint32_t batch, const int32_t *sum)
{
    struct cg *g = s->m->g;
    const enum dtype t = s->parts->type;
    struct cg_val v[FLIGHT][4];
    int64_t known;
    const bool all = cg_is_const(s->splits, &known) && known % batch == 0;
    for (uint32_t b = 0; b < batch; b++) {
        struct cg_val which = cg_binary(g, OP_ADD, share, cg_int(DT_U32, b));
        for (uint32_t u = 0; u < s->chunk; u++) {
            struct cg_val access = access_of(s, u);
            struct cg_val here = cg_bool(g, true);
            const int32_t in_chunk = exists(s, access);
            if (in_chunk >= 0)
                here = cg_value(DT_BOOL, in_chunk);
            if (!all && b)
                here = cg_binary(g, OP_LAND, here, cg_binary(g, OP_LT, which, s->splits));
            struct cg_guard before = cg_guard(g, here, true);
            cg_load_words(g, t, false, in_part(s, which, access), s->lanes, v[b * s->chunk + u]);
            cg_unguard(g, before);
        }
    }
    for (uint32_t i = 0; i < batch * s->chunk; i++)
        for (uint32_t l = 0; l < s->lanes; l++) {
            const int32_t reg = sum[i % s->chunk * s->lanes + l];
            cg_move(g, reg, cg_binary(g, OP_ADD, cg_value(t, reg), v[i][l]));
        }
}

static void join_chunk(struct share *s)
{
    struct cg *g = s->m->g;
    const enum dtype t = s->parts->type;
    const uint32_t batch = FLIGHT / s->chunk, head = cg_label(g, "share");
    const int32_t share = cg_new_mutable(g, DT_U32);
    int32_t sum[FLIGHT * 4];
    struct cg_nest nest;
    const struct cg_val zero = dtype_is_float(t) ? cg_float(g, t, 0) : cg_int(t, 0);
    for (uint32_t i = 0; i < s->chunk * s->lanes; i++) {
        sum[i] = cg_new_mutable(g, t);
        cg_move(g, sum[i], zero);
    }
    cg_move(g, share, cg_int(DT_U32, 0));
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, share);
    size_t mark = cg_scope_open(g);
    add_shares(s, cg_value(DT_U32, share), batch, sum);
    cg_move(g, share, cg_binary(g, OP_ADD, cg_value(DT_U32, share), cg_int(DT_U32, batch)));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, cg_value(DT_U32, share), s->splits)), true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    for (uint32_t u = 0; u < s->chunk; u++) {
        struct cg_val access = access_of(s, u), v[4];
        const int32_t here = exists(s, access);
        const uint32_t none = cg_label(g, "none");
        mark = cg_scope_open(g);
        if (here >= 0)
            cg_jump_if(g, here, false, none);
        for (uint32_t l = 0; l < s->lanes; l++)
            v[l] = cg_value(t, sum[u * s->lanes + l]);
        cg_store_words(g, t, in_patch(s, access), s->lanes, v);
        cg_scope_close(g, mark);
        cg_place(g, none);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Counts the block; jumps unless it is the last one. */
static void count_block(struct share *s, struct cg_val which, struct lang_expr *patches,
                        uint32_t skip)
{
    struct cg *g = s->m->g;
    const struct lang_symbol *arrived = cg_temp(g, "arrived", DT_U32, 1, &patches, true);
    cg_arrive(g, cg_address(g, arrived, which), s->splits, s->m->thread, skip);
}

/* Nothing is kept for variants that the sizes do not choose, or that turn out not to share. */
static struct lang_expr *where_shared(const struct share *s, struct lang_expr *n)
{
    const struct matmul_plan *p = s->m->p;
    struct arena *a = s->m->g->a;
    int64_t known;
    struct lang_expr *when = p->when;
    if (!cg_is_const(s->splits, &known))
        when = lx_and(a, when, lx_compare(a, OP_GT, p->splits, lx_int(a, 1)));
    return when ? lx_select(a, when, n, lx_int(a, 0)) : n;
}

static struct share share_of(struct matmul *m, const struct matmul_patch *patch)
{
    struct share s = {.m = m, .patch = patch, .splits = m->splits};
    const uint32_t most = 128 / dtype_bits(m->f->sum);
    s.lanes = most;
    while (patch->cols % s.lanes)
        s.lanes /= 2;
    s.across = patch->cols / s.lanes;
    s.n = m->f->nproduct * patch->rows * s.across;
    s.size = s.n * s.lanes;
    s.chunk = (s.n + m->p->threads - 1) / m->p->threads;
    s.chunk = s.chunk > FLIGHT ? FLIGHT : s.chunk;
    return s;
}

void matmul_split_join(struct matmul *m, const struct matmul_patch *patch, uint32_t skip)
{
    struct cg *g = m->g;
    struct share s = share_of(m, patch);
    const uint32_t alone = cg_label(g, "alone"), patches = m->p->bm / patch->rows;
    struct lang_expr *grid = matmul_grid(m);
    int64_t known;
    if (m->p->split <= 1)
        return;
    size_t mark = cg_scope_open(g);
    if (!cg_is_const(s.splits, &known))
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LE, s.splits, cg_int(DT_U32, 1))), true, alone);
    struct lang_expr *n = where_shared(&s, lx_mul_int(g->a, grid, patches * s.size));
    s.parts = cg_temp(g, "parts", m->f->sum, 1, &n, false);
    struct cg_val which = cg_index(g, m->tile), number = cg_index(g, patch->first), rest;
    cg_divmod(g, number, cg_int(DT_I64, patch->rows), &number, &rest);
    which = cg_binary(g, OP_MUL, which, cg_int(DT_I64, patches));
    which = cg_binary(g, OP_ADD, which, number);
    s.first = cg_binary(g, OP_MUL, which, cg_index(g, s.splits));
    s.first = cg_binary(g, OP_MUL, s.first, cg_int(DT_I64, s.size));
    for_chunks(&s, leave_chunk);
    count_block(&s, which, where_shared(&s, lx_mul_int(g->a, grid, patches)), skip);
    for_chunks(&s, join_chunk);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    cg_scope_close(g, mark);
    cg_place(g, alone);
}
