/* Contractions by fma of scalars: f32 and f64, and every other type as one of those or as integers
 * of 32 bits.
 *
 * A block brings tiles of the operands to shared memory, bk of k at a time, in two stages or more
 * (simt/bring.c): while the sums take in one, the others are on their way. So one barrier for each
 * tile is enough.
 *
 * In shared memory every operand lies as rows of k, with what its threads multiply side by side:
 * one that lies along k in global memory is turned while it is stored. Rows are 16 bytes longer
 * than the tile: then the eight rows that a warp turns at once lie in different banks.
 *
 * A thread's sums are fragments of 16 bytes squared, V by V: the 4 x 8 threads of a warp cover 4 V
 * x 8 V sums side by side, as often as a thread has fragments. Lanes are numbered such that a half
 * of the warp meets in two rows' and eight columns' fragments, which one access to shared memory
 * brings:
 *
 *     lane  0  2  4 ... 14      columns: tx = lane / 2 % 8
 *           1  3  5 ... 15      rows:    ty = lane / 16 * 2 + lane % 2
 *          16 18 ...
 *          17 19 ...
 *
 * Every sum is one chain of fma in the order of k.
 */
#include <config.h>

#include "lower/simt/simt.h"

enum {
    ROOM = 20 << 10,  /* bytes of sums in shared memory that cost no other block its place */
    MOST_WORDS = 228, /* registers of a thread, of those that the plan settles */
    OTHERS = 24,      /* that it needs besides, about */
    TERMS = 32,       /* and for terms that are no products */
    QUARTER = 512,    /* of a lane of a multiprocessor's quarter */
};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Rows of warps whose sums lie in shared memory together: as many as there is room for, which
 * blocks that share a tile make, to meet less often. */
static uint32_t patch_warps(const struct matmul_form *f, const struct matmul_plan *p)
{
    const uint32_t bytes = dtype_bits(f->sum) / 8, all = p->bm / (SIMT_DOWN * p->wm);
    const uint32_t one = f->nproduct * SIMT_DOWN * p->wm * (p->bn * bytes + 16);
    const uint32_t tiles = p->stages * simt_stage_bytes(f, p);
    const uint32_t room = p->split > 1 && tiles < ROOM ? ROOM : tiles;
    uint32_t n = 1;
    while (2 * n <= all && 2 * n * one <= room)
        n *= 2;
    return n;
}

static uint32_t patch_bytes(const struct matmul_form *f, const struct matmul_plan *p)
{
    const uint32_t bytes = dtype_bits(f->sum) / 8;
    return patch_warps(f, p) * f->nproduct * SIMT_DOWN * p->wm * (p->bn * bytes + 16);
}

static bool is_power(uint32_t v)
{
    return v && (v & (v - 1)) == 0;
}

/* Registers of a thread's sums, of two sets of fragments and of what it brings. */
static uint32_t words_of(const struct matmul_form *f, const struct matmul_plan *p)
{
    uint32_t n = f->nproduct * p->wm * p->wn;
    for (uint32_t i = 0; i < f->noperand; i++)
        n += 2 * (f->operand[i].side == MATMUL_A ? p->wm : p->wn);
    return n * dtype_bits(f->sum) / 32 + simt_bring_words(f, p);
}

uint32_t matmul_simt_shared(const struct ptx_target *target, const struct matmul_form *f,
                            const struct matmul_plan *p)
{
    const uint32_t v = 128 / dtype_bits(f->sum);
    const uint32_t bytes = p->stages * simt_stage_bytes(f, p), patch = patch_bytes(f, p);
    if (!is_power(p->bm) || !is_power(p->bn) || !is_power(p->wm) || !is_power(p->wn) || p->wm % v ||
        p->wn % v || p->wm > SIMT_TILE || p->wn > SIMT_TILE || p->bm % (SIMT_DOWN * p->wm) ||
        p->bn % (SIMT_ACROSS * p->wn) || !is_power(p->bk) || p->bk < SIMT_LEAST_TERMS ||
        p->stages < 2 || p->threads != p->bm / p->wm * (p->bn / p->wn) || p->threads > 1024 ||
        words_of(f, p) > MOST_WORDS || !simt_brings(target, f, p))
        return 0;
    int64_t k;
    if (f->whole && lang_const_int(f->k->dims[0], &k) && k % p->bk)
        return 0;
    const uint32_t all = bytes > patch ? bytes : patch;
    return all > target->shared_optin ? 0 : all;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Blocks that find room on a multiprocessor, each quarter of which has registers of its own for its
 * warps. */
static uint32_t blocks(const struct simt *s)
{
    const struct matmul_plan *p = s->m->p;
    const uint32_t words = words_of(s->m->f, p) + OTHERS + (s->m->f->pairs ? TERMS : 0);
    return 4 * (QUARTER / ((words + 7) / 8 * 8)) / ((p->threads + 31) / 32);
}

/* The fragments of row k of the stage that is read, into one of the two sets, where pred holds (-1:
 * always). */
static void load_fragments(struct simt *s, uint32_t k, uint32_t set, int32_t pred)
{
    struct cg *g = s->g;
    const char *m = arena_printf(g->a, "ld.shared.v%u.%s", s->v, s->type);
    for (uint32_t n = 0; n < s->nslab; n++) {
        const struct simt_slab *b = &s->slab[n];
        const bool is_a = b->o->side == MATMUL_A;
        const uint32_t count = is_a ? s->m->p->wm : s->m->p->wn,
                       wide = is_a ? SIMT_DOWN : SIMT_ACROSS;
        for (uint32_t i = 0; i < count; i += s->v) {
            struct ptx_operand reg[4];
            for (uint32_t x = 0; x < s->v; x++)
                reg[x] = ptx_r(b->frag[set][i + x]);
            const int64_t at = b->offset + (int64_t)(k * (b->side + s->pad) + i * wide) * s->bytes;
            ptx_emit(&g->b, pred, false, m,
                     PTX_ARGS(ptx_vec(&g->b, s->v, reg), ptx_mem(s->read[is_a ? 0 : 1], at)));
        }
    }
}

static void multiply(struct simt *s, int32_t sum, int32_t x, int32_t y)
{
    struct cg *g = s->g;
    const bool wide = s->m->f->sum == DT_F64;
    if (!dtype_is_float(s->m->f->sum)) {
        CG_ASSIGN(g, sum, "mad.lo.s32", ptx_r(x), ptx_r(y), ptx_r(sum));
    } else {
        CG_ASSIGN(g, sum, wide ? "fma.rn.f64" : "fma.rn.f32", ptx_r(x), ptx_r(y), ptx_r(sum));
    }
}

static const struct simt_slab *slab_of(const struct simt *s, uint32_t operand)
{
    return &s->slab[operand];
}

/* Takes in the term of the pair whose elements its variables have. */
static void take_pair(struct simt *s, const struct matmul_product *q, int32_t acc)
{
    struct cg *g = s->g;
    const struct lang_expr *e = q->pair->term;
    const enum dtype t = s->m->f->sum;
    const char *word = q->e->reduce == RED_MAX ? "max" : q->e->reduce == RED_MIN ? "min" : "add";
    if (q->e->reduce == RED_SUM && e->kind == E_BINARY && e->op == OP_MUL && e->type == t &&
        dtype_is_float(t)) {
        const struct cg_val x = cg_expr(g, e->args[0]), y = cg_expr(g, e->args[1]);
        CG_ASSIGN(g, acc, t == DT_F64 ? "fma.rn.f64" : "fma.rn.f32", cg_op(g, x), cg_op(g, y),
                  ptx_r(acc));
        return;
    }
    const struct cg_val v = cg_convert(g, cg_expr(g, e), t);
    const bool rounds = q->e->reduce == RED_SUM && dtype_is_float(t);
    CG_ASSIGN(g, acc, arena_printf(g->a, "%s%s.%s", word, rounds ? ".rn" : "", cg_suffix(t)),
              ptx_r(acc), cg_op(g, v));
}

static void take_fragments(struct simt *s, const struct matmul_product *q,
                           int32_t (*sum)[SIMT_TILE], uint32_t set)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    const size_t bound = g->bindings.n;
    const bool before = g->preloaded;
    g->preloaded = true;
    for (uint32_t j = 0; j < p->wn; j++)
        for (uint32_t n = 0; n < p->wm; n++) {
            const uint32_t i = j % 2 ? p->wm - 1 - n : n;
            const size_t mark = cg_scope_open(g);
            for (uint32_t v = 0; v < q->pair->n; v++) {
                const struct simt_slab *b = &s->slab[q->part[v]];
                const struct cg_val e =
                    cg_value(s->m->f->sum, b->frag[set][b->o->side == MATMUL_A ? i : j]);
                cg_bind(g, q->pair->var[v], cg_convert(g, e, q->pair->var[v]->type), false);
            }
            take_pair(s, q, sum[i][j]);
            cg_scope_close(g, mark);
            g->bindings.n = bound;
        }
    g->preloaded = before;
}

/* Up and down in turns, so that one operand of every fma is the one before's. */
static void multiply_fragments(struct simt *s, uint32_t set)
{
    const struct matmul_plan *p = s->m->p;
    for (uint32_t q = 0; q < s->m->f->nproduct; q++) {
        if (s->m->f->product[q].pair) {
            take_fragments(s, &s->m->f->product[q], s->sum[q], set);
            continue;
        }
        const struct simt_slab *a = slab_of(s, s->m->f->product[q].a);
        const struct simt_slab *b = slab_of(s, s->m->f->product[q].b);
        for (uint32_t j = 0; j < p->wn; j++)
            for (uint32_t n = 0; n < p->wm; n++) {
                const uint32_t i = j % 2 ? p->wm - 1 - n : n;
                multiply(s, s->sum[q][i][j], a->frag[set][i], b->frag[set][j]);
            }
    }
}

static void loop(struct simt *s)
{
    struct cg *g = s->g;
    const uint32_t head = cg_label(g, "tile"), bk = s->m->p->bk;
    struct cg_nest nest;
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, s->k);
    const size_t mark = cg_scope_open(g);
    simt_bring_next(s);
    for (uint32_t k = 0; k < bk; k++) {
        if (k + 1 == bk)
            simt_turn(s);
        /* behind the last tile nothing need have been stored */
        const int32_t there = s->streams && k + 1 == bk ? s->again : -1;
        load_fragments(s, (k + 1) % bk, (k + 1) % 2, there);
        multiply_fragments(s, k % 2);
    }
    cg_jump_if(g, s->again, true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

/* ---- to the epilogue ------------------------------------------------------------------------- */

static void put_sums(struct simt *s, const struct matmul_patch *patch)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    const char *m = arena_printf(g->a, "st.shared.v%u.%s", s->v, s->type);
    struct cg_val row = cg_binary(g, OP_MOD, s->warp_row, cg_u32(patch_warps(s->m->f, p)));
    row = cg_weighted(g, row, SIMT_DOWN * p->wm, s->ty, s->v);
    struct cg_val col = cg_weighted(g, s->warp_col, SIMT_ACROSS * p->wn, s->tx, s->v);
    struct cg_val at = cg_mul(g, cg_add(g, cg_mul(g, row, patch->pitch), col), s->bytes);
    at = cg_add(g, at, cg_value(DT_U32, patch->base));
    for (uint32_t q = 0; q < s->m->f->nproduct; q++)
        for (uint32_t i = 0; i < p->wm; i++)
            for (uint32_t j = 0; j < p->wn; j += s->v) {
                struct ptx_operand reg[4];
                const uint32_t r = q * patch->rows + i / s->v * SIMT_DOWN * s->v + i % s->v;
                for (uint32_t x = 0; x < s->v; x++)
                    reg[x] = ptx_r(s->sum[q][i][j + x]);
                PTX(&g->b, m,
                    ptx_mem(at.op.reg, (int64_t)(r * patch->pitch + j * SIMT_ACROSS) * s->bytes),
                    ptx_vec(&g->b, s->v, reg));
            }
}

/* The sums a patch at a time, each of some rows of warps. */
static void store_sums(struct simt *s)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    const uint32_t warps = patch_warps(s->m->f, p), rows = warps * SIMT_DOWN * p->wm;
    const uint32_t head = cg_label(g, "patch"), others = cg_label(g, "others");
    const int32_t first = cg_new_mutable(g, DT_U32);
    struct matmul_patch patch = {.base = s->m->shared,
                                 .first = cg_value(DT_U32, first),
                                 .rows = rows,
                                 .cols = p->bn,
                                 .pitch = p->bn + s->pad};
    struct cg_nest nest;
    cg_move(g, first, cg_u32(0));
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, first);
    size_t mark = cg_scope_open(g);
    simt_barrier(s);
    struct cg_val mine = cg_mul(g, cg_binary(g, OP_DIV, s->warp_row, cg_u32(warps)), rows);
    const size_t inner = cg_scope_open(g);
    if (rows < p->bm)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, mine, patch.first)), false, others);
    put_sums(s, &patch);
    cg_scope_close(g, inner);
    cg_place(g, others);
    simt_barrier(s);
    matmul_store(s->m, &patch);
    if (rows < p->bm) {
        cg_move(g, first, cg_add(g, patch.first, cg_u32(rows)));
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, patch.first, cg_u32(p->bm))), true, head);
    }
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

/* ---- the entry ------------------------------------------------------------------------------- */

static void find_threads(struct simt *s)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    const uint32_t across = p->bn / (SIMT_ACROSS * p->wn);
    struct cg_val lane = s->m->lane;
    s->tx = cg_binary(g, OP_MOD, cg_binary(g, OP_SHR, lane, cg_u32(1)), cg_u32(SIMT_ACROSS));
    const struct cg_val odd = cg_binary(g, OP_AND, lane, cg_u32(1));
    s->ty = cg_add(g, cg_mul(g, cg_binary(g, OP_SHR, lane, cg_u32(4)), 2), odd);
    s->warp_row = cg_binary(g, OP_DIV, s->m->warp, cg_u32(across));
    s->warp_col = cg_binary(g, OP_MOD, s->m->warp, cg_u32(across));
}

static void find_fragments(struct simt *s)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct simt_slab *b = &s->slab[n];
        const uint32_t count = b->o->side == MATMUL_A ? p->wm : p->wn;
        for (uint32_t i = 0; i < 2 * count; i++)
            b->frag[i % 2][i / 2] = cg_new_mutable(g, s->m->f->sum);
    }
    struct cg_val row = cg_weighted(g, s->warp_row, SIMT_DOWN * p->wm, s->ty, s->v);
    struct cg_val col = cg_weighted(g, s->warp_col, SIMT_ACROSS * p->wn, s->tx, s->v);
    s->read[0] = simt_address(s, row);
    s->read[1] = simt_address(s, col);
}

static void clear_sums(struct simt *s)
{
    for (uint32_t q = 0; q < s->m->f->nproduct; q++)
        for (uint32_t i = 0; i < s->m->p->wm; i++)
            for (uint32_t j = 0; j < s->m->p->wn; j++) {
                s->sum[q][i][j] = cg_new_mutable(s->g, s->m->f->sum);
                cg_move(s->g, s->sum[q][i][j],
                        cg_reduce_identity(s->g, s->m->f->product[q].e->reduce, s->m->f->sum));
            }
}

void matmul_simt(struct matmul *m)
{
    struct cg *g = m->g;
    struct simt *s = ARENA_NEW(g->a, struct simt);
    const enum dtype t = m->f->sum;
    *s = (struct simt){.m = m, .g = g, .bytes = dtype_bits(t) / 8};
    s->v = s->pad = 16 / s->bytes;
    s->type = t == DT_F64 ? "f64" : t == DT_F32 ? "f32" : "b32";
    find_threads(s);
    simt_find_slabs(s);
    find_fragments(s);
    clear_sums(s);
    if (!m->f->pairs || !m->f->computes) /* of which nobody knows how many registers they take */
        g->func->minnctapersm = blocks(s);
    const uint32_t sums = cg_label(g, "sums");
    const size_t mark = cg_scope_open(g);
    struct cg_val any = cg_binary(g, OP_LT, m->k_from, m->k_to);
    cg_jump_if(g, cg_reg(g, any), false, sums);
    simt_bring_first(s);
    load_fragments(s, 0, 0, -1);
    loop(s);
    cg_scope_close(g, mark);
    cg_place(g, sums);
    store_sums(s);
}
