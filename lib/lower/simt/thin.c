/* Few rows: as fast as B can be read.
 *
 * Every element of B is read once, by one thread, and multiplied with all rows of A there and then;
 * no tile of it is kept. A thread takes wn columns and of each step, bk elements along k, as many
 * as one access of B brings or, where B lies along its columns, a few rows of B:
 *
 *     B along k:   neighbouring threads at neighbouring k     each: wn columns x one access
 *     B along j:   neighbouring threads at neighbouring j     each: one access x wk rows
 *
 * p->stages steps are begun together, so that enough of B is on its way. A comes out of the L1
 * cache: all threads of the multiprocessor read the same few rows. In the end the threads that
 * share columns fold their sums: those of a warp by shuffles, each lane keeping half of the sums it
 * has as long as their number is even, then warps through shared memory, in their order, which
 * leaves the sums as a patch.
 */
#include <config.h>

#include "lower/matmul/matmul.h"
#include "lower/cg/sync.h"

/* LEAST_THREADS: of a multiprocessor, so that enough of B is on its way. */
enum { MOST_SUMS = 128, LANES = 32, MOST_WK = 64, MOST_STEPS = 8, LEAST_THREADS = 512 };

struct thin {
    struct matmul *m;
    bool along_k;         /* B's elements */
    uint32_t tk, tn;      /* threads along k and along the columns: powers of two */
    uint32_t wk, wn;      /* a thread's elements along k in a step, and columns */
    struct cg_val ik, in; /* u32: which of them the thread is */
    uint32_t nsum;        /* (product, row, column) */
    int32_t sum[MOST_SUMS];
};

/* ---- the plan's numbers ---------------------------------------------------------------------- */

static bool lies_along_k(const struct matmul_form *f)
{
    return f->operand[f->product[0].b].along_k;
}

static uint32_t pitch_of(const struct matmul_plan *p)
{
    return (p->bn + 3) / 4 * 4;
}

/* Warps that have sums of the same columns. */
static uint32_t warps_along_k(const struct matmul_form *f, const struct matmul_plan *p)
{
    const uint32_t tn = p->bn / p->wn, tk = p->threads / tn;
    if (lies_along_k(f))
        return tk > LANES ? tk / LANES : 1;
    return tn >= LANES ? tk : tk / (LANES / tn) ? tk / (LANES / tn) : 1;
}

uint32_t matmul_thin_shared(const struct ptx_target *target, const struct matmul_form *f,
                            const struct matmul_plan *p)
{
    const uint32_t bytes = warps_along_k(f, p) * f->nproduct * p->bm * pitch_of(p) *
                           (dtype_bits(f->sum) / 8);
    const bool fits = f->nproduct * p->bm * p->wn <= MOST_SUMS && p->bk <= p->threads * MOST_WK &&
                      p->stages <= MOST_STEPS;
    return fits && bytes <= target->shared_optin ? bytes : 0;
}

static void take_place(struct thin *t)
{
    struct cg *g = t->m->g;
    const struct matmul_plan *p = t->m->p;
    struct cg_val q, r;
    t->along_k = lies_along_k(t->m->f);
    t->wn = p->wn;
    t->tn = p->bn / p->wn;
    t->tk = p->threads / t->tn;
    t->wk = p->bk / t->tk;
    t->nsum = t->m->f->nproduct * p->bm * p->wn;
    const uint32_t fast = t->along_k ? t->tk : t->tn;
    q = cg_binary(g, OP_SHR, t->m->thread, cg_int(DT_U32, __builtin_ctz(fast)));
    r = cg_binary(g, OP_AND, t->m->thread, cg_int(DT_U32, fast - 1));
    if (fast == p->threads)
        q = cg_int(DT_U32, 0), r = t->m->thread;
    t->ik = t->along_k ? r : q;
    t->in = t->along_k ? q : r;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* The operand's elements at `n` rows or columns from `at` on, for wk elements from k on, as what is
 * multiplied. */
static void fetch(struct thin *t, uint32_t operand, struct cg_val at, uint32_t n, struct cg_val k,
                  struct cg_val *v)
{
    struct matmul *m = t->m;
    struct cg *g = m->g;
    const bool along_k = m->f->operand[operand].along_k;
    const uint32_t align = m->p->align[operand], run = along_k ? t->wk : n;
    uint32_t lanes = align ? align : 1;
    while (run % lanes)
        lanes /= 2;
    struct cg_val piece[MOST_WK];
    for (uint32_t x = 0; x < n; x += along_k ? 1 : lanes)
        for (uint32_t y = 0; y < t->wk; y += along_k ? lanes : 1) {
            struct cg_val from = cg_binary(g, OP_ADD, at, cg_int(DT_I64, x));
            struct cg_val to = cg_binary(g, OP_ADD, k, cg_int(DT_I64, y));
            matmul_fetch(m, operand, from, to, lanes, -1, piece);
            for (uint32_t l = 0; l < lanes; l++)
                v[along_k ? x * t->wk + y + l : (x + l) * t->wk + y] = piece[l];
        }
}

static void multiply(struct thin *t, struct cg_val a, struct cg_val b, int32_t sum)
{
    struct cg *g = t->m->g;
    const enum dtype type = t->m->f->sum;
    struct cg_val x = cg_convert(g, a, type), y = cg_convert(g, b, type);
    if (type == DT_I32) {
        CG_ASSIGN(g, sum, "mad.lo.s32", cg_op(g, x), cg_op(g, y), ptx_r(sum));
        return;
    }
    CG_ASSIGN(g, sum, type == DT_F64 ? "fma.rn.f64" : "fma.rn.f32", cg_op(g, x), cg_op(g, y),
              ptx_r(sum));
}

/* A side's operands for the step that begins at the thread's k: operand o's at v + o * most. */
static void fetch_side(struct thin *t, enum matmul_side side, struct cg_val k, uint32_t most,
                       struct cg_val *v)
{
    struct matmul *m = t->m;
    struct cg *g = m->g;
    struct cg_val col = cg_binary(g, OP_MUL, t->in, cg_int(DT_U32, t->wn));
    col = cg_binary(g, OP_ADD, m->col, cg_index(g, col));
    for (uint32_t o = 0; o < m->f->noperand; o++)
        if (m->f->operand[o].side == side)
            fetch(t, o, side == MATMUL_A ? m->row : col, side == MATMUL_A ? m->p->bm : t->wn, k,
                  v + (size_t)o * most);
}

/* `n` steps from the thread's k on: first all of B, which is waited for. */
static void steps(struct thin *t, struct cg_val k, uint32_t n)
{
    struct matmul *m = t->m;
    struct cg *g = m->g;
    const struct matmul_form *f = m->f;
    const uint32_t rows = m->p->bm, most = (rows > t->wn ? rows : t->wn) * t->wk;
    struct cg_val *v[MOST_STEPS], at[MOST_STEPS];
    for (uint32_t u = 0; u < n; u++) {
        v[u] = ARENA_ARRAY(g->a, (size_t)f->noperand * most, struct cg_val);
        at[u] = cg_binary(g, OP_ADD, k, cg_int(DT_I64, u * m->p->bk));
        fetch_side(t, MATMUL_B, at[u], most, v[u]);
    }
    for (uint32_t u = 0; u < n; u++) {
        fetch_side(t, MATMUL_A, at[u], most, v[u]);
        for (uint32_t y = 0; y < t->wk; y++)
            for (uint32_t s = 0; s < t->nsum; s++) {
                const struct matmul_product *q = &f->product[s / t->wn / rows];
                const uint32_t r = s / t->wn % rows, c = s % t->wn;
                multiply(t, v[u][(size_t)q->a * most + r * t->wk + y],
                         v[u][(size_t)q->b * most + c * t->wk + y], t->sum[s]);
            }
    }
}

/* The thread's k in the step that begins at k. */
static struct cg_val thread_k(struct thin *t, struct cg_val k)
{
    struct cg *g = t->m->g;
    struct cg_val mine = cg_binary(g, OP_MUL, t->ik, cg_int(DT_U32, t->wk));
    return cg_binary(g, OP_ADD, k, cg_index(g, mine));
}

/* While there is a whole batch of n steps left. */
static void batches(struct thin *t, int32_t at, uint32_t n)
{
    struct cg *g = t->m->g;
    const uint32_t head = cg_label(g, "step"), done = cg_label(g, "steps");
    struct cg_nest nest;
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, at);
    for (uint32_t i = 0; i < t->nsum; i++)
        cg_nest_varies(g, &nest, t->sum[i]);
    size_t mark = cg_scope_open(g);
    struct cg_val now = cg_index(g, cg_value(DT_U32, at));
    struct cg_val last = cg_binary(g, OP_ADD, now, cg_int(DT_I64, (int64_t)(n - 1) * t->m->p->bk));
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, last, t->m->k_to)), true, done);
    steps(t, thread_k(t, now), n);
    struct cg_val next =
        cg_binary(g, OP_ADD, cg_value(DT_U32, at), cg_int(DT_U32, n * t->m->p->bk));
    cg_move(g, at, next);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}

/* The steps of every block, where they all have as many; else 0. */
static uint32_t steps_of(const struct thin *t)
{
    const struct matmul *m = t->m;
    int64_t k, splits;
    if (!m->whole_k || !cg_is_const(m->k, &k) || !cg_is_const(m->splits, &splits))
        return 0;
    const int64_t all = k / m->p->bk;
    return all % splits || all / splits > UINT32_MAX ? 0 : (uint32_t)(all / splits);
}

static void walk(struct thin *t)
{
    struct cg *g = t->m->g;
    const enum dtype type = t->m->f->sum;
    const uint32_t each = t->m->p->stages, n = steps_of(t);
    for (uint32_t i = 0; i < t->nsum; i++) {
        t->sum[i] = cg_new_mutable(g, type);
        cg_move(g, t->sum[i], dtype_is_float(type) ? cg_float(g, type, 0) : cg_int(type, 0));
    }
    if (n && n <= each) {
        steps(t, thread_k(t, t->m->k_from), n);
        return;
    }
    const int32_t at = cg_new_mutable(g, DT_U32);
    cg_move(g, at, cg_convert(g, t->m->k_from, DT_U32));
    if (each > 1)
        batches(t, at, each);
    if (each == 1 || !n || n % each)
        batches(t, at, 1);
}

/* ---- bringing the sums together -------------------------------------------------------------- */

/* Folds over the lanes that differ in the bits first, 2 first .. below end. What the lane has then
 * are the sums from *base (u32) on; *only: in lanes with none of these bits, -1: in all. */
static uint32_t fold_lanes(struct thin *t, uint32_t first, uint32_t end, struct cg_val *v,
                           struct cg_val *base, uint32_t *same)
{
    struct cg *g = t->m->g;
    uint32_t n = t->nsum;
    const struct ptx_operand all = ptx_imm(0xffffffff), clamp = ptx_imm(LANES - 1);
    *base = cg_int(DT_U32, 0);
    *same = 0;
    for (uint32_t bit = first; bit < end; bit *= 2) {
        if (n % 2) {
            for (uint32_t i = 0; i < n; i++) {
                struct cg_val other = shuffle(g, SHUFFLE_XOR, v[i], ptx_imm(bit), clamp, all, NULL);
                v[i] = cg_binary(g, OP_ADD, v[i], other);
            }
            *same |= bit;
            continue;
        }
        n /= 2;
        struct cg_val has = cg_binary(g, OP_AND, t->m->lane, cg_int(DT_U32, bit));
        const int32_t upper = cg_reg(g, cg_binary(g, OP_NE, has, cg_int(DT_U32, 0)));
        for (uint32_t i = 0; i < n; i++) {
            struct cg_val keep = cg_select(g, upper, v[i + n], v[i]);
            struct cg_val give = cg_select(g, upper, v[i], v[i + n]);
            struct cg_val other = shuffle(g, SHUFFLE_XOR, give, ptx_imm(bit), clamp, all, NULL);
            v[i] = cg_binary(g, OP_ADD, keep, other);
        }
        struct cg_val add = cg_select(g, upper, cg_int(DT_U32, n), cg_int(DT_U32, 0));
        *base = cg_binary(g, OP_ADD, *base, add);
    }
    return n;
}

static struct cg_place_of in_shared(struct thin *t, struct cg_val element)
{
    struct cg *g = t->m->g;
    struct cg_val at = cg_binary(g, OP_MUL, element, cg_int(DT_U32, dtype_bits(t->m->f->sum) / 8));
    at = cg_binary(g, OP_ADD, at, cg_value(DT_U32, t->m->shared));
    return (struct cg_place_of){.space = CG_SHARED, .base = cg_reg(g, at)};
}

/* The lane's n sums from base on, into the area of the warp's number along k. */
static void leave_sums(struct thin *t, uint32_t n, const struct cg_val *v, struct cg_val base,
                       uint32_t same, struct cg_val area)
{
    struct cg *g = t->m->g;
    const struct matmul_plan *p = t->m->p;
    const uint32_t pitch = pitch_of(p), left = cg_label(g, "left");
    size_t mark = cg_scope_open(g);
    if (same) {
        struct cg_val other = cg_binary(g, OP_AND, t->m->lane, cg_int(DT_U32, same));
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, other, cg_int(DT_U32, 0))), true, left);
    }
    const uint32_t size = t->m->f->nproduct * p->bm * pitch;
    struct cg_val first = cg_binary(g, OP_MUL, t->in, cg_int(DT_U32, t->wn));
    first = cg_binary(g, OP_ADD, first, cg_binary(g, OP_MUL, area, cg_int(DT_U32, size)));
    for (uint32_t i = 0; i < n; i++) {
        struct cg_val s = cg_binary(g, OP_ADD, base, cg_int(DT_U32, i)), row, col;
        cg_divmod(g, cg_index(g, s), cg_int(DT_I64, t->wn), &row, &col);
        row = cg_binary(g, OP_MUL, cg_convert(g, row, DT_U32), cg_int(DT_U32, pitch));
        s = cg_binary(g, OP_ADD, row, cg_convert(g, col, DT_U32));
        cg_store_at(g, t->m->f->sum, in_shared(t, cg_binary(g, OP_ADD, first, s)), v[i]);
    }
    cg_scope_close(g, mark);
    cg_place(g, left);
}

/* Adds the areas of all warps along k into the first. */
static void join_warps(struct thin *t, uint32_t warps)
{
    struct cg *g = t->m->g;
    const struct matmul_plan *p = t->m->p;
    const enum dtype type = t->m->f->sum;
    const uint32_t rows = t->m->f->nproduct * p->bm, n = rows * p->bn;
    const int64_t area = (int64_t)rows * pitch_of(p) * (dtype_bits(type) / 8);
    for (uint32_t from = 0; from < n; from += p->threads) {
        const uint32_t none = cg_label(g, "joined");
        struct cg_val e = cg_binary(g, OP_ADD, t->m->thread, cg_int(DT_U32, from)), row, col;
        size_t mark = cg_scope_open(g);
        if (from + p->threads > n) {
            struct cg_val outside = cg_binary(g, OP_GE, e, cg_int(DT_U32, n));
            cg_jump_if(g, cg_reg(g, outside), true, none);
        }
        cg_divmod(g, cg_index(g, e), cg_int(DT_I64, p->bn), &row, &col);
        row = cg_binary(g, OP_MUL, cg_convert(g, row, DT_U32), cg_int(DT_U32, pitch_of(p)));
        e = cg_binary(g, OP_ADD, row, cg_convert(g, col, DT_U32));
        struct cg_place_of at = in_shared(t, e);
        struct cg_val v = cg_load_at(g, type, false, at);
        for (uint32_t w = 1; w < warps; w++) {
            struct cg_place_of next = at;
            next.offset = w * area;
            v = cg_binary(g, OP_ADD, v, cg_load_at(g, type, false, next));
        }
        cg_store_at(g, type, at, v);
        cg_scope_close(g, mark);
        cg_place(g, none);
    }
}

/* The block's sums as one patch in shared memory. */
static struct matmul_patch join(struct thin *t)
{
    struct matmul *m = t->m;
    struct cg *g = m->g;
    struct cg_val v[MOST_SUMS], base;
    uint32_t same, first = t->along_k ? 1 : t->tn, end = t->along_k ? t->tk : t->tn * t->tk;
    const uint32_t warps = warps_along_k(m->f, m->p);
    for (uint32_t i = 0; i < t->nsum; i++)
        v[i] = cg_value(m->f->sum, t->sum[i]);
    end = end > LANES ? LANES : end;
    const uint32_t n = fold_lanes(t, first, end, v, &base, &same);
    struct cg_val area = cg_int(DT_U32, 0);
    if (warps > 1) /* of the threads along k, those that another warp has */
        area = cg_binary(g, OP_SHR, t->ik, cg_int(DT_U32, __builtin_ctz(t->tk / warps)));
    leave_sums(t, n, v, base, same, area);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    if (warps > 1) {
        join_warps(t, warps);
        PTX(&g->b, "bar.sync", ptx_imm(0));
    }
    return (struct matmul_patch){.base = m->shared,
                                 .first = cg_int(DT_U32, 0),
                                 .rows = m->p->bm,
                                 .cols = m->p->bn,
                                 .pitch = pitch_of(m->p)};
}

void matmul_thin(struct matmul *m)
{
    struct thin t = {.m = m};
    m->g->func->minnctapersm = LEAST_THREADS / m->p->threads;
    take_place(&t);
    walk(&t);
    const struct matmul_patch patch = join(&t);
    matmul_store(m, &patch);
}
