/* Contractions by fma of scalars: f32 and f64, and every other type as one of those or as integers of 32 bits.
 *
 * A block brings tiles of the operands to shared memory, bk of k at a time, in two stages: while the sums take in one, the
 * next is on its way into registers, and is put into the other stage when most of the work is done. So one barrier
 * for each tile is enough.
 *
 * In shared memory every operand lies as rows of k, with what its threads multiply side by side: one that lies along k
 * in global memory is turned while it is stored. Rows are 16 bytes longer than the tile: then the eight rows that a
 * warp turns at once lie in different banks.
 *
 * A thread's sums are fragments of 16 bytes squared, V by V: the 4 x 8 threads of a warp cover 4 V x 8 V sums side by
 * side, as often as a thread has fragments. Lanes are numbered such that a half of the warp meets in two rows' and
 * eight columns' fragments, which one access to shared memory brings:
 *
 *     lane  0  2  4 ... 14      columns: tx = lane / 2 % 8
 *           1  3  5 ... 15      rows:    ty = lane / 16 * 2 + lane % 2
 *          16 18 ...
 *          17 19 ...
 *
 * Every sum is one chain of fma in the order of k.
 */
#include <config.h>

#include "lower/matmul.h"

#include <stdio.h>

enum {
    DOWN = 4, /* threads of a warp */
    ACROSS = 8,
    MOST_TILE = 16, /* of a thread */
    MOST_PASSES = 32,
    CHUNK = 8, /* rows of k that a warp turns at once */
    MOST_FETCH = 8,
    MOST_WORDS = 210,
    QUARTER = 512, /* registers of a lane */
    /* About so many registers does a thread need besides; for what is computed: */
    OTHERS = 20,
    COMPUTED = 4,
};

/* An operand's tile. */
struct slab {
    const struct matmul_operand *o;
    uint32_t operand, side;
    bool turned, copied; /* lies along k; its elements are moved as they are */
    uint32_t lanes, passes;
    struct cg_val at, k; /* u32: the thread's first element in the tile */
    uint32_t at_by[MOST_PASSES], k_by[MOST_PASSES];
    int32_t idle; /* a predicate of the threads that have elements; -1: all */
    struct cg_place_of from[MOST_PASSES]; /* copied: base is a register that moves along k */
    bool moves[MOST_PASSES];              /* the pass has a base of its own */
    struct cg_val step;                   /* bytes from one element to the next along k */
    int32_t to;                           /* u32: where the thread stores */
    int64_t offset;                       /* bytes, in a stage */
    struct cg_val v[MOST_PASSES * MOST_FETCH];
    int32_t frag[2][MOST_TILE];
};

struct simt {
    struct matmul *m;
    struct cg *g;
    uint32_t bytes, v, pad; /* of an element; elements of a fragment; elements between rows */
    const char *type;
    uint32_t nslab;
    struct slab slab[MATMUL_OPERANDS];
    uint32_t stage; /* bytes */
    struct cg_val warp_row, warp_col, tx, ty;
    int32_t sum[MATMUL_PRODUCTS][MOST_TILE][MOST_TILE];
    int32_t k;       /* u32: the first of the tile that is loaded next */
    int32_t read[2]; /* u32: by side, the thread's first fragment in the stage that is read */
    int32_t swap;    /* s32: what goes to the other stage, to store */
};

static struct cg_val u32(uint32_t v)
{
    return cg_int(DT_U32, v);
}

static struct cg_val plus(struct cg *g, struct cg_val x, struct cg_val y)
{
    return cg_binary(g, OP_ADD, x, y);
}

static struct cg_val times(struct cg *g, struct cg_val x, uint32_t k)
{
    return cg_binary(g, OP_MUL, x, u32(k));
}

static uint32_t least(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

static uint32_t side_of(const struct matmul_plan *p, const struct matmul_operand *o)
{
    return o->side == MATMUL_A ? p->bm : p->bn;
}

/* ---- sizes ---------------------------------------------------------------------------------------- */

static uint32_t pitch_of(const struct simt *s, const struct slab *b)
{
    return b->side + s->pad;
}

/* Of the shared memory of a stage. */
static uint32_t stage_bytes(const struct matmul_form *f, const struct matmul_plan *p)
{
    const uint32_t bytes = dtype_bits(f->sum) / 8;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        sum += p->bk * (side_of(p, &f->operand[i]) * bytes + 16);
    return sum;
}

/* Rows of warps whose sums lie in shared memory together. */
static uint32_t patch_warps(const struct matmul_form *f, const struct matmul_plan *p)
{
    const uint32_t bytes = dtype_bits(f->sum) / 8, all = p->bm / (DOWN * p->wm);
    const uint32_t one = f->nproduct * DOWN * p->wm * (p->bn * bytes + 16);
    uint32_t n = 1;
    while (2 * n <= all && 2 * n * one <= 2 * stage_bytes(f, p))
        n *= 2;
    return n;
}

static uint32_t patch_bytes(const struct matmul_form *f, const struct matmul_plan *p)
{
    const uint32_t bytes = dtype_bits(f->sum) / 8;
    return patch_warps(f, p) * f->nproduct * DOWN * p->wm * (p->bn * bytes + 16);
}

static bool is_power(uint32_t v)
{
    return v && (v & (v - 1)) == 0;
}

static uint32_t lanes_of(const struct matmul_form *f, const struct matmul_plan *p, uint32_t operand)
{
    const struct matmul_operand *o = &f->operand[operand];
    uint32_t lanes = least(p->align[operand] ? p->align[operand] : 1, MOST_FETCH);
    if (o->bits >= 32)
        lanes = least(lanes, 128 / o->bits);
    return least(lanes, o->along_k ? CHUNK : side_of(p, o));
}

/* Registers of a thread's sums, of two sets of fragments and of what it brings. */
static uint32_t words_of(const struct matmul_form *f, const struct matmul_plan *p)
{
    uint32_t n = f->nproduct * p->wm * p->wn;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const uint32_t side = side_of(p, &f->operand[i]);
        n += 2 * (f->operand[i].side == MATMUL_A ? p->wm : p->wn) + side * p->bk / p->threads;
    }
    return n * dtype_bits(f->sum) / 32;
}

uint32_t matmul_simt_shared(const struct cg *g, const struct matmul_form *f,
                            const struct matmul_plan *p)
{
    const uint32_t v = 128 / dtype_bits(f->sum);
    const uint32_t most = g->target->shared_optin ? g->target->shared_optin : 48 << 10;
    const uint32_t bytes = 2 * stage_bytes(f, p), patch = patch_bytes(f, p);
    if (!is_power(p->bm) || !is_power(p->bn) || !is_power(p->wm) || !is_power(p->wn) || p->wm % v ||
        p->wn % v || p->wm > MOST_TILE || p->wn > MOST_TILE || p->bm % (DOWN * p->wm) ||
        p->bn % (ACROSS * p->wn) || !is_power(p->bk) || p->bk % CHUNK ||
        p->threads != p->bm / p->wm * (p->bn / p->wn) || p->threads > 1024 ||
        words_of(f, p) > MOST_WORDS)
        return 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        if (side_of(p, &f->operand[i]) * p->bk / lanes_of(f, p, i) > MOST_PASSES * p->threads)
            return 0;
    const uint32_t all = bytes > patch ? bytes : patch;
    return all > most ? 0 : all;
}

/* ---- global memory to registers ------------------------------------------------------------------- */

/* Which elements of the tile the thread brings: vectors are numbered along k and then the side where the operand lies along k,
 * CHUNK of k at a time; else along the side and then k. */
static void find_elements(struct simt *s, struct slab *b)
{
    struct cg *g = s->g;
    const uint32_t inner = b->turned ? CHUNK / b->lanes : b->side / b->lanes;
    const uint32_t extent[3] = {inner, b->turned ? b->side : s->m->p->bk,
                                b->turned ? s->m->p->bk / CHUNK : 1};
    struct cg_val at[3], t = s->m->thread;
    uint32_t by[3][MOST_PASSES], threads = s->m->p->threads;
    b->passes = 1;
    for (uint32_t l = 0; l < 3; l++) {
        const uint32_t have = least(threads, extent[l]), more = extent[l] / have;
        at[l] = cg_binary(g, OP_MOD, t, u32(have));
        t = cg_binary(g, OP_DIV, t, u32(have));
        threads /= have;
        for (uint32_t i = b->passes * more; i-- > 0;) {
            for (uint32_t k = 0; k < l; k++)
                by[k][i] = by[k][i % b->passes];
            by[l][i] = i / b->passes * have;
        }
        b->passes *= more;
    }
    b->idle = threads > 1 ? cg_reg(g, cg_binary(g, OP_EQ, t, u32(0))) : -1;
    struct cg_val along = times(g, at[0], b->lanes);
    b->k = b->turned ? plus(g, along, times(g, at[2], CHUNK)) : at[1];
    b->at = b->turned ? at[1] : along;
    for (uint32_t i = 0; i < b->passes; i++) {
        b->k_by[i] = b->turned ? by[0][i] * b->lanes + by[2][i] * CHUNK : by[1][i];
        b->at_by[i] = b->turned ? by[1][i] : by[0][i] * b->lanes;
    }
}

/* Element numbers of A's row or B's column, no further than the last that there is: what is brought from there is stored
 * nowhere. */
static struct cg_val clamped(struct simt *s, const struct slab *b, struct cg_val at)
{
    struct cg *g = s->g;
    const bool a = b->o->side == MATMUL_A;
    const struct cg_val from = cg_convert(g, a ? s->m->row : s->m->col, DT_U32);
    at = plus(g, from, at);
    if (a ? s->m->whole_rows || !s->m->f->i : s->m->whole_cols)
        return at;
    struct cg_val last = cg_convert(g, a ? s->m->m : s->m->n, DT_U32);
    last = cg_binary(g, OP_SUB, last, u32(b->turned ? 1 : b->lanes));
    return cg_minmax(g, false, at, last);
}

/* A register for each place that is not a constant away from one before. */
static void find_places(struct simt *s, struct slab *b)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    const uint32_t size = b->o->bits / 8;
    const struct cg_val step =
        cg_binary(g, OP_MUL, matmul_step(m, b->operand), cg_int(DT_I64, size));
    b->step = step;
    for (uint32_t i = 0; i < b->passes; i++) {
        int64_t c;
        uint32_t k = i;
        while (k > 0 && !(b->moves[k - 1] && b->at_by[k - 1] == b->at_by[i]))
            k--;
        if (k > 0 && cg_is_const(step, &c)) {
            b->from[i] = b->from[k - 1];
            b->from[i].offset += c * ((int64_t)b->k_by[i] - (int64_t)b->k_by[k - 1]);
            continue;
        }
        struct cg_val row =
            plus(g, cg_convert(g, m->k_from, DT_U32), plus(g, b->k, u32(b->k_by[i])));
        struct cg_val at = clamped(s, b, plus(g, b->at, u32(b->at_by[i])));
        struct cg_place_of from = matmul_place(m, b->operand, cg_index(g, at), cg_index(g, row));
        const int32_t base = cg_new_mutable(g, DT_U64);
        cg_move(g, base, cg_value(DT_U64, from.base));
        from.base = base;
        b->from[i] = from;
        b->moves[i] = true;
    }
    for (uint32_t i = 0; i < b->passes * b->lanes; i++)
        b->v[i] = cg_value(b->o->type, cg_new_mutable(g, b->o->type));
}

static bool is_copied(const struct matmul_form *f, const struct matmul_operand *o)
{
    return o->plain && !o->rounds && o->type == f->sum;
}

static void copy_pass(struct simt *s, struct slab *b, uint32_t i, int32_t pred)
{
    struct cg *g = s->g;
    char m[48];
    struct ptx_operand reg[MOST_FETCH];
    const bool constant = cg_is_constant(g, b->o->plain->sym);
    for (uint32_t l = 0; l < b->lanes; l++)
        reg[l] = b->v[i * b->lanes + l].op;
    snprintf(m, sizeof m, "ld.global%s%s.%s", constant ? ".nc" : "",
             b->lanes == 4   ? ".v4"
             : b->lanes == 2 ? ".v2"
                             : "",
             s->type);
    const struct ptx_operand to = b->lanes == 1 ? reg[0] : ptx_vec(&g->b, b->lanes, reg);
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(to, cg_mem(b->from[i])));
}

static void zero(struct simt *s, int32_t reg)
{
    struct cg *g = s->g;
    const enum dtype t = s->m->f->sum;
    cg_move(g, reg, dtype_is_float(t) ? cg_float(g, t, 0) : cg_int(t, 0));
}

/* Does the tile's element exist that the thread brings in pass i? of: a predicate for the whole tile, or -1; end: that of
 * a tile that is not whole. */
static int32_t exists(struct simt *s, const struct slab *b, uint32_t i, int32_t of,
                      struct cg_val end)
{
    struct cg *g = s->g;
    int64_t all;
    struct cg_val ok = of < 0 ? cg_bool(g, true) : cg_value(DT_BOOL, of);
    if (b->idle >= 0)
        ok = cg_binary(g, OP_LAND, ok, cg_value(DT_BOOL, b->idle));
    if (end.op.kind == PTX_O_REG) {
        struct cg_val k = plus(g, cg_value(DT_U32, s->k), plus(g, b->k, u32(b->k_by[i])));
        ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, k, end));
    }
    return cg_is_const(ok, &all) ? -1 : cg_reg(g, ok);
}

static void move_on(struct simt *s, struct cg_val by)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->nslab; n++) {
        const struct slab *b = &s->slab[n];
        for (uint32_t i = 0; b->copied && i < b->passes; i++) {
            if (!b->moves[i])
                continue;
            const struct cg_val bytes = cg_binary(g, OP_MUL, cg_index(g, by), b->step);
            PTX(&g->b, "add.s64", ptx_r(b->from[i].base), ptx_r(b->from[i].base), cg_op(g, bytes));
            cg_assigned(g, b->from[i].base);
        }
    }
}

/* Brings the tile at s->k to registers, where `of` holds (-1: always), and moves on by `by`. end: where a tile that is
 * not whole ends; a constant: it is. */
static void load_tile(struct simt *s, int32_t of, struct cg_val end, struct cg_val by)
{
    struct cg *g = s->g;
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct slab *b = &s->slab[n];
        for (uint32_t i = 0; i < b->passes; i++) {
            const int32_t inside = exists(s, b, i, of, end);
            if (b->copied) {
                copy_pass(s, b, i, inside);
                continue;
            }
            const bool a = b->o->side == MATMUL_A;
            struct cg_val from = cg_convert(g, a ? s->m->row : s->m->col, DT_U32);
            struct cg_val at = plus(g, from, plus(g, b->at, u32(b->at_by[i])));
            struct cg_val k = plus(g, cg_value(DT_U32, s->k), plus(g, b->k, u32(b->k_by[i])));
            matmul_fetch(s->m, b->operand, cg_index(g, at), cg_index(g, k), b->lanes, inside,
                         b->v + i * b->lanes);
        }
    }
    move_on(s, by);
    cg_move(g, s->k, plus(g, cg_value(DT_U32, s->k), by));
}

/* ---- registers to shared memory ------------------------------------------------------------------- */

static void put(struct simt *s, const struct slab *b, int64_t offset, uint32_t n,
                const struct cg_val *v)
{
    struct cg *g = s->g;
    struct ptx_operand reg[4];
    for (uint32_t i = 0; i < n; i++)
        reg[i] = ptx_r(cg_reg(g, v[i]));
    const char *m = arena_printf(g->a, "st.shared%s.%s",
                                 n == 4   ? ".v4"
                                 : n == 2 ? ".v2"
                                          : "",
                                 s->type);
    const struct ptx_operand from = n == 1 ? reg[0] : ptx_vec(&g->b, n, reg);
    ptx_emit(&g->b, b->idle, false, m, PTX_ARGS(ptx_mem(b->to, offset), from));
}

/* The registers' tile to the stage that is not read. */
static void store_tile(struct simt *s)
{
    struct cg *g = s->g;
    const enum dtype t = s->m->f->sum;
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct slab *b = &s->slab[n];
        const uint32_t pitch = pitch_of(s, b), width = b->turned ? 1 : least(b->lanes, s->v);
        for (uint32_t i = 0; i < b->passes; i++)
            for (uint32_t l = 0; l < b->lanes; l += width) {
                struct cg_val v[4];
                const uint32_t k = b->k_by[i] + (b->turned ? l : 0);
                const uint32_t at = b->at_by[i] + (b->turned ? 0 : l);
                for (uint32_t x = 0; x < width; x++)
                    v[x] = cg_convert(g, b->v[i * b->lanes + l + x], t);
                put(s, b, b->offset + (int64_t)(k * pitch + at) * s->bytes, width, v);
            }
    }
}

/* ---- sums ----------------------------------------------------------------------------------------- */

/* Blocks that find room on a multiprocessor, each quarter of which has registers of its own for its warps. */
static uint32_t blocks(const struct simt *s)
{
    const struct matmul_plan *p = s->m->p;
    uint32_t words = words_of(s->m->f, p) + OTHERS;
    for (uint32_t n = 0; n < s->nslab; n++) {
        const struct slab *b = &s->slab[n];
        for (uint32_t i = 0; i < b->passes; i++)
            words += !b->copied ? COMPUTED : b->moves[i] ? 2 : 0;
    }
    return 4 * (QUARTER / ((words + 7) / 8 * 8)) / ((p->threads + 31) / 32);
}

/* The fragments of row k of the stage that is read, into one of the two sets. */
static void load_fragments(struct simt *s, uint32_t k, uint32_t set)
{
    struct cg *g = s->g;
    const char *m = arena_printf(g->a, "ld.shared.v%u.%s", s->v, s->type);
    for (uint32_t n = 0; n < s->nslab; n++) {
        const struct slab *b = &s->slab[n];
        const bool is_a = b->o->side == MATMUL_A;
        const uint32_t count = is_a ? s->m->p->wm : s->m->p->wn, wide = is_a ? DOWN : ACROSS;
        for (uint32_t i = 0; i < count; i += s->v) {
            struct ptx_operand reg[4];
            for (uint32_t x = 0; x < s->v; x++)
                reg[x] = ptx_r(b->frag[set][i + x]);
            const int64_t at = b->offset + (int64_t)(k * pitch_of(s, b) + i * wide) * s->bytes;
            PTX(&g->b, m, ptx_vec(&g->b, s->v, reg), ptx_mem(s->read[is_a ? 0 : 1], at));
        }
    }
}

/* Is a product's rounding its own? That of numbers of 16 bits has none. */
static bool apart(const struct simt *s)
{
    const enum matmul_type t = s->m->f->type;
    return !s->g->contract_fma && (t == MATMUL_F32 || t == MATMUL_F64);
}

static void multiply(struct simt *s, int32_t sum, int32_t x, int32_t y)
{
    struct cg *g = s->g;
    const bool wide = s->m->f->sum == DT_F64;
    if (!dtype_is_float(s->m->f->sum)) {
        PTX(&g->b, "mad.lo.s32", ptx_r(sum), ptx_r(x), ptx_r(y), ptx_r(sum));
    } else if (apart(s)) {
        const int32_t r = cg_new(g, s->m->f->sum);
        PTX(&g->b, wide ? "mul.rn.f64" : "mul.rn.f32", ptx_r(r), ptx_r(x), ptx_r(y));
        PTX(&g->b, wide ? "add.rn.f64" : "add.rn.f32", ptx_r(sum), ptx_r(sum), ptx_r(r));
    } else {
        PTX(&g->b, wide ? "fma.rn.f64" : "fma.rn.f32", ptx_r(sum), ptx_r(x), ptx_r(y), ptx_r(sum));
    }
}

static const struct slab *slab_of(const struct simt *s, uint32_t operand)
{
    return &s->slab[operand];
}

/* Up and down in turns, so that one operand of every fma is the one before's. */
static void multiply_fragments(struct simt *s, uint32_t set)
{
    const struct matmul_plan *p = s->m->p;
    for (uint32_t q = 0; q < s->m->f->nproduct; q++) {
        const struct slab *a = slab_of(s, s->m->f->product[q].a);
        const struct slab *b = slab_of(s, s->m->f->product[q].b);
        for (uint32_t j = 0; j < p->wn; j++)
            for (uint32_t n = 0; n < p->wm; n++) {
                const uint32_t i = j % 2 ? p->wm - 1 - n : n;
                multiply(s, s->sum[q][i][j], a->frag[set][i], b->frag[set][j]);
            }
    }
}

static void barrier(struct simt *s)
{
    PTX(&s->g->b, "bar.sync", ptx_imm(0));
}

/* To the stage that was stored, and back. */
static void swap_stages(struct simt *s)
{
    struct cg *g = s->g;
    for (uint32_t i = 0; i < 2; i++)
        PTX(&g->b, "add.s32", ptx_r(s->read[i]), ptx_r(s->read[i]), ptx_r(s->swap));
    PTX(&g->b, "neg.s32", ptx_r(s->swap), ptx_r(s->swap));
    for (uint32_t n = 0; n < s->nslab; n++)
        PTX(&g->b, "add.s32", ptx_r(s->slab[n].to), ptx_r(s->slab[n].to), ptx_r(s->swap));
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
    struct cg_val more =
        cg_binary(g, OP_LT, cg_value(DT_U32, s->k), cg_convert(g, s->m->k_to, DT_U32));
    const int32_t again = cg_reg(g, more);
    load_tile(s, again, u32(0), u32(bk));
    for (uint32_t k = 0; k < bk; k++) {
        if (k + 1 == bk) {
            store_tile(s);
            swap_stages(s);
            barrier(s);
        }
        load_fragments(s, (k + 1) % bk, (k + 1) % 2);
        multiply_fragments(s, k % 2);
    }
    cg_jump_if(g, again, true, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

/* The first tile has what the others, which are whole, leave: 1 to bk of k, and zeros behind them. So the loop needs to
 * ask for nothing but whether there is another tile. */
static void load_first(struct simt *s)
{
    struct cg *g = s->g;
    const uint32_t bk = s->m->p->bk;
    struct cg_val from = cg_convert(g, s->m->k_from, DT_U32), n = u32(bk), end = u32(0);
    if (!s->m->whole_k) {
        n = cg_binary(g, OP_SUB, cg_convert(g, s->m->k_to, DT_U32), from);
        n = cg_binary(g, OP_MOD, cg_binary(g, OP_SUB, n, u32(1)), u32(bk));
        n = plus(g, n, u32(1));
        end = cg_value(DT_U32, cg_reg(g, plus(g, from, n)));
    }
    for (uint32_t i = 0; i < s->nslab; i++) {
        const struct slab *b = &s->slab[i];
        for (uint32_t k = 0; b->copied && k < b->passes * b->lanes; k++)
            zero(s, b->v[k].op.reg);
    }
    s->m->whole_k = true; /* here on, what exists along k is asked by tiles */
    load_tile(s, -1, end, n);
    store_tile(s);
    barrier(s);
    load_fragments(s, 0, 0);
    /* what follows is stored to the other stage */
    for (uint32_t i = 0; i < s->nslab; i++)
        PTX(&g->b, "add.s32", ptx_r(s->slab[i].to), ptx_r(s->slab[i].to), ptx_r(s->swap));
}

/* ---- to the epilogue ------------------------------------------------------------------------------ */

static void put_sums(struct simt *s, const struct matmul_patch *patch)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    const char *m = arena_printf(g->a, "st.shared.v%u.%s", s->v, s->type);
    struct cg_val row = cg_binary(g, OP_MOD, s->warp_row, u32(patch_warps(s->m->f, p)));
    row = plus(g, times(g, row, DOWN * p->wm), times(g, s->ty, s->v));
    struct cg_val col = plus(g, times(g, s->warp_col, ACROSS * p->wn), times(g, s->tx, s->v));
    struct cg_val at = times(g, plus(g, times(g, row, patch->pitch), col), s->bytes);
    at = plus(g, at, cg_value(DT_U32, patch->base));
    for (uint32_t q = 0; q < s->m->f->nproduct; q++)
        for (uint32_t i = 0; i < p->wm; i++)
            for (uint32_t j = 0; j < p->wn; j += s->v) {
                struct ptx_operand reg[4];
                const uint32_t r = q * patch->rows + i / s->v * DOWN * s->v + i % s->v;
                for (uint32_t x = 0; x < s->v; x++)
                    reg[x] = ptx_r(s->sum[q][i][j + x]);
                PTX(&g->b, m,
                    ptx_mem(at.op.reg, (int64_t)(r * patch->pitch + j * ACROSS) * s->bytes),
                    ptx_vec(&g->b, s->v, reg));
            }
}

/* The sums a patch at a time, each of some rows of warps. */
static void store_sums(struct simt *s)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    const uint32_t warps = patch_warps(s->m->f, p), rows = warps * DOWN * p->wm;
    const uint32_t head = cg_label(g, "patch"), others = cg_label(g, "others");
    const int32_t first = cg_new_mutable(g, DT_U32);
    struct matmul_patch patch = {.base = s->m->shared,
                                 .first = cg_value(DT_U32, first),
                                 .rows = rows,
                                 .cols = p->bn,
                                 .pitch = p->bn + s->pad};
    struct cg_nest nest;
    cg_move(g, first, u32(0));
    cg_place(g, head);
    cg_loop_head(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, first);
    size_t mark = cg_scope_open(g);
    barrier(s);
    struct cg_val mine = times(g, cg_binary(g, OP_DIV, s->warp_row, u32(warps)), rows);
    const size_t inner = cg_scope_open(g);
    if (rows < p->bm)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, mine, patch.first)), false, others);
    put_sums(s, &patch);
    cg_scope_close(g, inner);
    cg_place(g, others);
    barrier(s);
    matmul_store(s->m, &patch);
    if (rows < p->bm) {
        cg_move(g, first, plus(g, patch.first, u32(rows)));
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, patch.first, u32(p->bm))), true, head);
    }
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
}

/* ---- the entry ------------------------------------------------------------------------------------ */

static void find_threads(struct simt *s)
{
    struct cg *g = s->g;
    const struct matmul_plan *p = s->m->p;
    const uint32_t across = p->bn / (ACROSS * p->wn);
    struct cg_val lane = s->m->lane;
    s->tx = cg_binary(g, OP_MOD, cg_binary(g, OP_SHR, lane, u32(1)), u32(ACROSS));
    s->ty = plus(g, times(g, cg_binary(g, OP_SHR, lane, u32(4)), 2),
                 cg_binary(g, OP_AND, lane, u32(1)));
    s->warp_row = cg_binary(g, OP_DIV, s->m->warp, u32(across));
    s->warp_col = cg_binary(g, OP_MOD, s->m->warp, u32(across));
}

/* A u32 register that steps between the stages. */
static int32_t address(struct simt *s, struct cg_val element)
{
    struct cg *g = s->g;
    const int32_t r = cg_new_mutable(g, DT_U32);
    cg_move(g, r, plus(g, times(g, element, s->bytes), cg_value(DT_U32, s->m->shared)));
    return r;
}

static void find_slabs(struct simt *s)
{
    struct cg *g = s->g;
    const struct matmul_form *f = s->m->f;
    const struct matmul_plan *p = s->m->p;
    int64_t offset = 0;
    s->nslab = f->noperand;
    for (uint32_t n = 0; n < s->nslab; n++) {
        struct slab *b = &s->slab[n];
        b->o = &f->operand[n];
        b->operand = n;
        b->side = side_of(p, b->o);
        b->turned = b->o->along_k;
        b->copied = is_copied(f, b->o);
        b->lanes = lanes_of(f, p, n);
        b->offset = offset;
        offset += (int64_t)p->bk * pitch_of(s, b) * s->bytes;
        find_elements(s, b);
        if (b->copied)
            find_places(s, b);
        b->to = address(s, plus(g, times(g, b->k, pitch_of(s, b)), b->at));
        for (uint32_t i = 0; i < 2 * MOST_TILE; i++)
            b->frag[i / MOST_TILE][i % MOST_TILE] = -1;
        for (uint32_t i = 0; i < 2 * (b->o->side == MATMUL_A ? p->wm : p->wn); i++)
            b->frag[i % 2][i / 2] = cg_new_mutable(g, f->sum);
    }
    struct cg_val row = plus(g, times(g, s->warp_row, DOWN * p->wm), times(g, s->ty, s->v));
    struct cg_val col = plus(g, times(g, s->warp_col, ACROSS * p->wn), times(g, s->tx, s->v));
    s->read[0] = address(s, row);
    s->read[1] = address(s, col);
    s->swap = cg_new_mutable(g, DT_I32);
    cg_move(g, s->swap, cg_int(DT_I32, s->stage));
}

static void clear_sums(struct simt *s)
{
    for (uint32_t q = 0; q < s->m->f->nproduct; q++)
        for (uint32_t i = 0; i < s->m->p->wm; i++)
            for (uint32_t j = 0; j < s->m->p->wn; j++) {
                s->sum[q][i][j] = cg_new_mutable(s->g, s->m->f->sum);
                zero(s, s->sum[q][i][j]);
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
    s->stage = stage_bytes(m->f, m->p);
    s->k = cg_new_mutable(g, DT_U32);
    cg_move(g, s->k, cg_convert(g, m->k_from, DT_U32));
    find_threads(s);
    find_slabs(s);
    clear_sums(s);
    g->func->minnctapersm = blocks(s);
    const uint32_t sums = cg_label(g, "sums");
    const size_t mark = cg_scope_open(g);
    struct cg_val any = cg_binary(g, OP_LT, m->k_from, m->k_to);
    cg_jump_if(g, cg_reg(g, any), false, sums);
    load_first(s);
    loop(s);
    cg_scope_close(g, mark);
    cg_place(g, sums);
    store_sums(s);
}
