/* Products by mma.sync (mma/mma.h): what goes where, and the loop along k.
 *
 * With S stages, tiles t .. t + S - 2 are there or under way while tile t is multiplied and tile t
 * + S - 1 is sent for, into the stage of tile t - 1, which everyone has read: one barrier a tile
 * does for both. A warp loads its words a step ahead of the products, also across the barrier,
 * where a tile has an even number of steps.
 */
#include <config.h>

#include "lower/mma/mma.h"

#include "base/internal.h"

#include <stdarg.h>
#include <stdio.h>

/* Words of a thread; of parts, of which it has two. */
enum { MOST_SUMS = 192, MOST_SUMS_OF_PARTS = 64 };

/* ---- what goes where ------------------------------------------------------------------------- */

static bool fails(struct buf *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool fails(struct buf *why, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (!why) /* most plans are only tried */
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_puts(why, text);
    return false;
}

static bool has_instruction(const struct mma_shape *s, struct buf *why)
{
    const unsigned sm = s->target->sm;
    unsigned least = 0;
    const char *what = "";
    switch (s->p->type) {
    case MATMUL_F16:
        least = 75;
        what = "f16";
        break;
    case MATMUL_INT8:
        least = 75;
        what = "8-bit integers";
        break;
    case MATMUL_BF16:
        least = 80;
        what = "bf16";
        break;
    case MATMUL_TF32:
        least = 80;
        what = "tf32";
        break;
    case MATMUL_FP8:
        least = 89;
        what = "e4m3 and e5m2";
        break;
    case MATMUL_F32:
        return fails(why,
                     "tensor cores multiply no f32: 'mma: tf32x3' makes three products of each");
    case MATMUL_F64: return fails(why, "no products of f64 by tensor cores");
    case MATMUL_I32: return fails(why, "tensor cores take no such terms");
    }
    return sm >= least ||
           fails(why, "sm_%u has tensor cores for no %s: sm_%u does", sm, what, least);
}

static bool is_multiple(uint32_t x, uint32_t y)
{
    return x && y && x % y == 0;
}

static bool measure_block(const struct mma_shape *s, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    if (!is_multiple(p->wm, 16) || !is_multiple(p->wn, 16) || p->wm > 128 || p->wn > 256)
        return fails(
            why, "a warp takes multiples of 16 rows and columns, up to 128 and 256, not %u x %u",
            p->wm, p->wn);
    if (!is_multiple(p->bm, p->wm) || !is_multiple(p->bn, p->wn))
        return fails(why, "warps of %u x %u don't divide a tile of %u x %u", p->wm, p->wn, p->bm,
                     p->bn);
    const uint32_t warps = p->bm / p->wm * (p->bn / p->wn);
    if (warps > 32 || warps * 32 != p->threads)
        return fails(why, "a tile of %u x %u takes %u warps of %u x %u, and a block has 32 at most",
                     p->bm, p->bn, warps, p->wm, p->wn);
    return true;
}

static bool is_across(const struct matmul_operand *o)
{
    return !o->along_k && dtype_bits(o->type) == 32;
}

bool matmul_mma_turned(const struct matmul_form *f)
{
    int more = 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        if (is_across(&f->operand[i]))
            more += f->operand[i].side == MATMUL_B ? 1 : -1;
    return more > 0;
}

static void measure_warp(struct mma_shape *s)
{
    const struct matmul_plan *p = s->p;
    s->turned = matmul_mma_turned(s->f);
    s->high = (s->turned ? p->wn : p->wm) / 16;
    s->wide = (s->turned ? p->wm : p->wn) / 8;
}

static bool measure_tile(struct mma_shape *s, uint32_t n, struct buf *why)
{
    const struct matmul_plan *p = s->p;
    const struct matmul_operand *o = &s->f->operand[n];
    struct mma_tile *t = &s->tile[s->ntile];
    *t = (struct mma_tile){.operand = n, .side = o->side, .size = dtype_bits(o->type) / 8};
    if (s->as_f16)
        t->size = 2;
    const uint32_t side = o->side == MATMUL_A ? p->bm : p->bn;
    t->lay.tall = (o->side == MATMUL_A) != s->turned;
    t->lay.span = o->side == MATMUL_A ? p->wm : p->wn;
    t->lay.layout = o->along_k     ? MMA_ALONG_K
                    : t->size == 1 ? MMA_BYTES
                    : t->size == 2 ? MMA_16BIT
                                   : MMA_SINGLES;
    t->lay.spaced = s->as_f16 && t->lay.tall && !o->along_k;
    t->rows = o->along_k ? side : p->bk;
    t->lay.row_bytes = (o->along_k ? p->bk : side) * t->size;
    t->offset = s->stage_bytes;
    if (!is_multiple(p->bk * t->size, MMA_STEP))
        return fails(why, "a tile's third side must be a multiple of %u, not %u",
                     MMA_STEP / t->size, p->bk);
    if (s->steps && s->steps != p->bk * t->size / MMA_STEP)
        return fails(why, "operands of different sizes");
    s->steps = p->bk * t->size / MMA_STEP;
    if (!mma_plan_copy(s, t))
        return fails(why, "%u threads can't share rows of %u bytes evenly", p->threads,
                     t->lay.row_bytes);
    s->stage_bytes += t->rows * t->lay.row_bytes;
    s->tile_of[n] = s->ntile++;
    return true;
}

static uint32_t larger(uint32_t x, uint32_t y)
{
    return x > y ? x : y;
}

static uint32_t shared_of(const struct mma_shape *s)
{
    struct mma_shape h;
    struct matmul_plan p;
    uint32_t need = larger(s->stage_bytes * s->p->stages, s->patches + mma_patch_bytes(s));
    if (s->p->as_f16 && mma_measure_as_f16(s, &h, &p))
        need = larger(need, mma_as_f16_shared(&h));
    return need;
}

/* Words of sums of a thread. */
static uint32_t sums_of(const struct mma_shape *s)
{
    return s->f->nproduct * (s->p->wm / 16) * (s->p->wn / 8) * 4;
}

/* Rows of a thread that it has to know the places of, in tiles that are gathered. */
static uint32_t places_of(const struct mma_shape *s)
{
    enum { OF_TERMS = 8 }; /* of terms, which are found for each row of a tile */
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->ntile; i++) {
        const struct mma_tile *t = &s->tile[i];
        if (t->gather)
            n += t->lay.layout == MMA_ALONG_K ? t->count / t->across : t->across + OF_TERMS;
    }
    return n;
}

bool mma_measure(struct mma_shape *s, struct buf *why)
{
    enum { FEW_PLACES = 4, PLACE = 4 /* registers of one */, MOST_WITH_PLACES = 156 };
    const struct matmul_form *f = s->f;
    const struct matmul_plan *p = s->p;
    if (!has_instruction(s, why) || !measure_block(s, why))
        return false;
    measure_warp(s);
    for (uint32_t i = 0; i < f->noperand; i++)
        if (!measure_tile(s, i, why))
            return false;
    struct mma_shape h;
    struct matmul_plan of_h;
    if (p->as_f16 && !mma_measure_as_f16(s, &h, &of_h))
        return fails(why, "no such tile is possible for f16 beside it");
    if (p->stages < 1 || p->stages > 8)
        return fails(why, "stages must be 1 to 8, not %u", p->stages);
    if (p->blocks && (p->stages < 2 || p->split > 1))
        return fails(why, "blocks that take tiles by turns have 2 stages or more, and share none");
    mma_measure_patch(s);
    const uint32_t room = s->target->shared_optin, need = shared_of(s);
    if (need > room)
        return fails(why,
                     "%u stages of %u bytes each don't fit %u bytes of shared memory: %u do, or a "
                     "smaller tile",
                     p->stages, s->stage_bytes, room, room / s->stage_bytes);
    const uint32_t most = p->parts > 1 ? MOST_SUMS_OF_PARTS : MOST_SUMS, places = places_of(s);
    if (places > FEW_PLACES && sums_of(s) + PLACE * places > MOST_WITH_PLACES)
        return fails(why, "a thread would keep %u sums and the places of %u rows", sums_of(s),
                     places);
    if (sums_of(s) > most)
        return fails(why, "a thread would keep %u sums: tile / warps may have %u at most",
                     sums_of(s), most);
    return true;
}

bool matmul_mma_fits(const struct ptx_target *target, const struct matmul_form *f,
                     const struct matmul_plan *p, struct buf *why)
{
    struct mma_shape s = {.target = target, .f = f, .p = p};
    return mma_measure(&s, why);
}

uint32_t matmul_mma_shared(const struct ptx_target *target, const struct matmul_form *f,
                           const struct matmul_plan *p)
{
    struct mma_shape s = {.target = target, .f = f, .p = p};
    return mma_measure(&s, NULL) ? shared_of(&s) : 0;
}

/* Has a multiprocessor registers for two blocks: for a thread's sums, the words of two steps, and
 * some more? */
static bool holds_two(const struct mma_shape *s)
{
    enum { OTHERS = 40 };
    uint32_t need = sums_of(s) + OTHERS;
    for (uint32_t i = 0; i < s->ntile; i++)
        need += 2 * (s->tile[i].side == MATMUL_A ? s->p->wm / 4 : s->p->wn / 4);
    return need <= s->target->regs_per_sm / (2 * s->p->threads);
}

bool matmul_mma_fills(const struct ptx_target *target, const struct matmul_form *f,
                      const struct matmul_plan *p)
{
    struct mma_shape s = {.target = target, .f = f, .p = p};
    if (!mma_measure(&s, NULL) || holds_two(&s))
        return false;
    for (uint32_t i = 0; i < s.ntile; i++)
        if (!s.tile[i].is_async)
            return false;
    return true;
}

void mma_begin(struct mma *s, struct matmul *m, const struct mma_shape *shape)
{
    *s = (struct mma){.m = m, .g = m->g, .f = shape->f, .p = shape->p, .shape = shape};
    for (uint32_t i = 0; i < shape->ntile; i++)
        s->slab[i].of = &shape->tile[i];
}

/* ---- the loop -------------------------------------------------------------------------------- */

void mma_barrier(struct mma *s)
{
    PTX(&s->g->b, "bar.sync", ptx_imm(0));
}

static bool copies(const struct mma *s)
{
    for (uint32_t i = 0; i < s->shape->ntile; i++)
        if (s->shape->tile[i].is_async)
            return true;
    return false;
}

/* All but the latest `but` tiles that were sent for are there, for everyone; nobody reads the tile
 * before. */
static void meet(struct mma *s, uint32_t but)
{
    if (copies(s))
        mma_wait_copies(s->g, but);
    mma_barrier(s);
}

/* The stage after `stage`. */
static void next_stage(struct mma *s, int32_t stage)
{
    struct cg *g = s->g;
    const int32_t last = cg_new(g, DT_BOOL);
    if (s->p->stages == 1)
        return;
    CG_ASSIGN(g, stage, "add.s32", ptx_r(stage), ptx_imm(s->shape->stage_bytes));
    PTX(&g->b, "setp.eq.s32", ptx_r(last), ptx_r(stage),
        ptx_imm(s->shape->stage_bytes * s->p->stages));
    CG_ASSIGN(g, stage, "selp.b32", ptx_imm(0), ptx_r(stage), ptx_r(last));
}

static void sent(struct mma *s)
{
    mma_bring_end(s);
    next_stage(s, s->write);
}

static void make_sums(struct mma *s)
{
    struct cg *g = s->g;
    const uint32_t n = sums_of(s->shape);
    s->sum = ARENA_ARRAY(g->a, n, int32_t);
    s->part = ARENA_ARRAY(g->a, n, int32_t);
    s->zero = cg_reg(g, cg_float(g, DT_F32, 0));
    if (s->p->parts > 1)
        mma_range_begin(s);
    for (uint32_t i = 0; i < n; i++) {
        s->sum[i] = cg_new_mutable(g, s->f->sum);
        s->part[i] = s->p->parts > 1 ? cg_new_mutable(g, DT_F32) : -1;
    }
}

static void clear_sums(struct mma *s)
{
    const bool is_float = s->f->sum == DT_F32;
    if (s->p->parts > 1)
        mma_range_clear(s);
    for (uint32_t i = 0; i < sums_of(s->shape); i++) {
        PTX(&s->g->b, is_float ? "mov.f32" : "mov.b32", ptx_r(s->sum[i]),
            is_float ? ptx_immf32(0) : ptx_imm(0));
        if (s->p->parts > 1)
            PTX(&s->g->b, "mov.f32", ptx_r(s->part[i]), ptx_immf32(0));
    }
}

/* A loop whose count of rounds, > 0, is in a register; -1, or how many of them come after the
 * epilogue's reads are asked for. */
struct rounds {
    int32_t left, late;
    uint32_t head;
    size_t mark;
    struct cg_nest nest;
};

static void rounds_begin(struct mma *s, struct rounds *r, struct cg_val n)
{
    struct cg *g = s->g;
    const int32_t varies[] = {s->k, s->left, s->write, s->read};
    r->late = -1;
    r->left = cg_new_mutable(g, DT_U32);
    cg_move(g, r->left, n);
    r->head = cg_label(g, "tile");
    cg_place(g, r->head);
    cg_loop_head(g);
    r->mark = cg_scope_open(g);
    cg_nest_open(g, &r->nest, NULL);
    for (size_t i = 0; i < sizeof varies / sizeof varies[0]; i++)
        cg_nest_varies(g, &r->nest, varies[i]);
}

/* Before the late ones. */
static void ask_late(struct mma *s, struct rounds *r)
{
    struct cg *g = s->g;
    const uint32_t none = cg_label(g, "none");
    const int32_t any = cg_new(g, DT_BOOL);
    PTX(&g->b, "setp.ne.s32", ptx_r(any), ptx_r(r->late), ptx_imm(0));
    cg_jump_if(g, any, false, none);
    const size_t mark = cg_scope_open(g);
    matmul_prefetch(s->m);
    PTX(&g->b, "mov.u32", ptx_r(r->left), ptx_r(r->late));
    PTX(&g->b, "mov.u32", ptx_r(r->late), ptx_imm(0));
    cg_jump(g, r->head);
    cg_scope_close(g, mark);
    cg_place(g, none);
}

static void rounds_end(struct mma *s, struct rounds *r)
{
    struct cg *g = s->g;
    const int32_t more = cg_new(g, DT_BOOL);
    CG_ASSIGN(g, r->left, "sub.s32", ptx_r(r->left), ptx_imm(1));
    PTX(&g->b, "setp.ne.s32", ptx_r(more), ptx_r(r->left), ptx_imm(0));
    cg_jump_if(g, more, true, r->head);
    if (r->late >= 0)
        ask_late(s, r);
    cg_nest_close(g, &r->nest);
    cg_scope_close(g, r->mark);
}

/* Begins n rounds, of which LATE come late, if there are more. LATE is enough for memory to bring
 * what the epilogue reads, and few enough for it to stay in the L2 cache. */
static void rounds_begin_late(struct mma *s, struct rounds *r, struct cg_val n)
{
    enum { LATE = 8 };
    struct cg *g = s->g;
    /* of blocks that share the tile one reads it, and later */
    const bool asks = s->p->split < 2 && matmul_own(s->f).n;
    const struct cg_val more = asks ? cg_binary(g, OP_GT, n, cg_u32(LATE)) : cg_bool(g, false);
    int64_t is_more;
    if (cg_is_const(more, &is_more) && !is_more) {
        rounds_begin(s, r, n);
        return;
    }
    const int32_t late = cg_new_mutable(g, DT_U32);
    cg_move(g, late, cg_select(g, cg_reg(g, more), cg_u32(LATE), cg_u32(0)));
    rounds_begin(s, r, cg_binary(g, OP_SUB, n, cg_value(DT_U32, late)));
    r->late = late;
}

/* The first stages but one. */
static void fill(struct mma *s)
{
    struct rounds r;
    const uint32_t n = s->p->stages - 1;
    if (n > 1)
        rounds_begin(s, &r, cg_int(DT_U32, n));
    const size_t mark = cg_scope_open(s->g);
    mma_bring(s, 0, 1);
    sent(s);
    cg_scope_close(s->g, mark);
    if (n > 1)
        rounds_end(s, &r);
}

static void step_alone(struct mma *s, uint32_t step)
{
    mma_load(s, step, step % 2);
    mma_round(s, step % 2);
    mma_multiply(s, step, step % 2, step % 2);
}

/* One stage, in which tiles come and go. */
static void tile_alone(struct mma *s)
{
    mma_bring(s, 0, 1);
    sent(s);
    meet(s, 0);
    for (uint32_t step = 0; step < s->shape->steps; step++) {
        step_alone(s, step);
    }
    mma_barrier(s);
}

/* Multiplies a tile where there are several stages and no words wait for the next tile. */
static void tile_after_barrier(struct mma *s)
{
    meet(s, s->p->stages - 2);
    mma_bring(s, 0, 1);
    for (uint32_t step = 0; step < s->shape->steps; step++) {
        step_alone(s, step);
    }
    sent(s);
    next_stage(s, s->read);
}

/* Do all meet at a tile's begin, when the next one is there? Then nothing comes between the words
 * of its first step, which are parted, and the products that hide that. */
static bool meets_early(const struct mma *s)
{
    return s->p->parts > 1 && s->p->stages > 2;
}

static void tile_ahead(struct mma *s)
{
    const uint32_t last = s->shape->steps - 1;
    if (meets_early(s))
        meet(s, s->p->stages - 3);
    for (uint32_t step = 0; step < s->shape->steps; step++) {
        mma_load(s, (step + 1) % s->shape->steps, (step + 1) % 2);
        if (step < last)
            mma_bring(s, step, last);
        mma_multiply(s, step, step % 2, (step + 1) % 2);
        if (step + 1 != last)
            continue;
        sent(s);
        if (!meets_early(s))
            meet(s, s->p->stages - 2);
        next_stage(s, s->read);
    }
}

/* Tiles along k. */
static struct cg_val count_rounds(struct mma *s)
{
    struct cg *g = s->g;
    const struct cg_val from = cg_convert(g, s->m->k_from, DT_U32);
    struct cg_val n = cg_binary(g, OP_SUB, cg_convert(g, s->m->k_to, DT_U32), from);
    n = cg_binary(g, OP_ADD, n, cg_int(DT_U32, s->p->bk - 1));
    return cg_binary(g, OP_DIV, n, cg_int(DT_U32, s->p->bk));
}

/* Adds up the n tiles along k, the first of which are on their way to stages from the first on.
 * done: a label. */
static void add_up(struct mma *s, struct cg_val n, uint32_t done)
{
    struct cg *g = s->g;
    const bool ahead = s->p->stages > 1 && s->shape->steps % 2 == 0;
    struct rounds r;
    int64_t always;
    if (!cg_is_const(n, &always) || !always)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, n, cg_int(DT_U32, 0))), true, done);
    if (ahead) {
        meet(s, s->p->stages - 2);
        mma_load(s, 0, 0);
        mma_round(s, 0);
    }
    rounds_begin_late(s, &r, n);
    if (ahead)
        tile_ahead(s);
    else if (s->p->stages > 1)
        tile_after_barrier(s);
    else
        tile_alone(s);
    rounds_end(s, &r);
    cg_place(g, done);
    if (s->p->parts > 1)
        mma_promote_rest(s);
    if (copies(s))
        PTX0(&g->b, "cp.async.wait_all");
    mma_barrier(s);
}

/* Multiplies from m->k_from on; fresh: in place of what the sums hold. */
static void multiply(struct mma *s, bool fresh)
{
    struct cg *g = s->g;
    mma_copy_begin(s);
    if (fresh)
        clear_sums(s);
    const struct cg_val n = count_rounds(s);
    const uint32_t done = cg_label(g, "summed");
    s->read = cg_new_mutable(g, DT_U32);
    cg_move(g, s->read, cg_int(DT_U32, 0));
    if (s->p->stages > 1)
        fill(s);
    add_up(s, n, done);
}

void mma_find_thread(struct mma *s, struct cg_val thread, struct cg_val n)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    s->none = cg_reg(g, cg_binary(g, OP_SHR, n, cg_u32(31)));
    m->thread = cg_add(g, thread, cg_value(DT_U32, s->none));
    m->warp = cg_binary(g, OP_SHR, m->thread, cg_u32(5));
    m->lane = cg_binary(g, OP_AND, m->thread, cg_u32(31));
}

static void find_again(struct mma *s, int32_t n)
{
    struct cg *g = s->g;
    mma_find_thread(s, cg_special(g, SP_TID_X), cg_value(DT_U32, n));
    matmul_find(s->m, cg_add(g, cg_special(g, SP_CTAID_X), cg_value(DT_U32, s->none)));
}

void mma_go_on(struct mma *s, int32_t left)
{
    struct cg *g = s->g;
    find_again(s, left);
    const struct cg_val done = cg_binary(g, OP_SUB, count_rounds(s), cg_value(DT_U32, left));
    const struct cg_val from = cg_convert(g, s->m->k_from, DT_U32);
    s->m->k_from = cg_index(g, cg_weighted(g, from, 1, done, s->p->bk));
}

/* Multiplies as f16, and where elements do not allow it as tf32 from there on. */
static void multiply_as_f16(struct mma *s)
{
    struct cg *g = s->g;
    struct mma h;
    struct mma_shape shape;
    struct matmul_plan p;
    if (!mma_measure_as_f16(s->shape, &shape, &p))
        INTERNAL_ERROR("a plan that goes as f16 was measured as one that does");
    mma_begin(&h, s->m, &shape);
    const uint32_t done = cg_label(g, "multiplied");
    const struct cg_val n = count_rounds(s);
    const int32_t left = cg_new_mutable(g, DT_U32);
    int64_t always;
    clear_sums(s);
    cg_move(g, left, n);
    if (!cg_is_const(n, &always) || !always)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, n, cg_u32(0))), true, done);
    h.sum = s->sum;
    const size_t mark = cg_scope_open(g);
    const int32_t bad = mma_multiply_as_f16(&h, left);
    cg_jump_if(g, bad, false, done);
    mma_go_on(s, left);
    mma_read_begin(s);
    multiply(s, false);
    cg_scope_close(g, mark);
    cg_place(g, done);
    cg_assigned(g, left);
    find_again(s, left);
    for (uint32_t i = 0; i < sums_of(s->shape); i++)
        cg_assigned(g, s->sum[i]);
}

/* Two blocks on a multiprocessor, of which one multiplies while the other waits, where there is
 * room for them. */
static void ask_for_two(const struct mma *s)
{
    if (holds_two(s->shape) && 2 * shared_of(s->shape) <= s->g->target->shared_per_sm)
        s->g->func->minnctapersm = 2;
    /* of parts threads have twice as much; ptxas must be told not to spill it for the sake of a
     * third block */
    if (s->p->parts > 1)
        s->g->func->minnctapersm = 1;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* The tile that the sums belong to, while m is already at the next one: mutable u32. */
struct place {
    int32_t row, col, batch[MATMUL_BATCH];
};

static void make_place(struct mma *s, struct place *at)
{
    at->row = cg_new_mutable(s->g, DT_U32);
    at->col = cg_new_mutable(s->g, DT_U32);
    for (uint32_t b = 0; b < s->f->nbatch; b++)
        at->batch[b] = cg_new_mutable(s->g, DT_U32);
}

static void place_varies(struct mma *s, struct cg_nest *nest, const struct place *at)
{
    cg_nest_varies(s->g, nest, at->row);
    cg_nest_varies(s->g, nest, at->col);
    for (uint32_t b = 0; b < s->f->nbatch; b++)
        cg_nest_varies(s->g, nest, at->batch[b]);
}

static void keep_place(struct mma *s, const struct place *at)
{
    struct cg *g = s->g;
    cg_move(g, at->row, cg_convert(g, s->m->row, DT_U32));
    cg_move(g, at->col, cg_convert(g, s->m->col, DT_U32));
    for (uint32_t b = 0; b < s->f->nbatch; b++)
        cg_move(g, at->batch[b], cg_convert(g, s->m->batch[b], DT_U32));
}

static void stand_at(struct mma *s, const struct place *at)
{
    struct cg *g = s->g;
    s->m->row = cg_index(g, cg_value(DT_U32, at->row));
    s->m->col = cg_index(g, cg_value(DT_U32, at->col));
    for (uint32_t b = 0; b < s->f->nbatch; b++)
        s->m->batch[b] = cg_index(g, cg_value(DT_U32, at->batch[b]));
}

/* Tiles ctaid, ctaid + nctaid ...: the first stages of the next one are on their way while the last
 * one's sums are stored. */
static void take_turns(struct mma *s)
{
    struct cg *g = s->g;
    struct matmul *m = s->m;
    const uint32_t head = cg_label(g, "turn"), found = cg_label(g, "found"),
                   stored = cg_label(g, "stored"), done = cg_label(g, "turns");
    const struct cg_val first = cg_special(g, SP_CTAID_X), step = cg_special(g, SP_NCTAID_X);
    const struct cg_val thread = m->thread;
    const int32_t number = cg_new_mutable(g, DT_U32);
    struct cg_val items;
    struct place sums;
    struct cg_nest nest;
    matmul_items(m, &items);
    const struct cg_val rounds = count_rounds(s);
    make_place(s, &sums);
    s->read = cg_new_mutable(g, DT_U32);
    cg_move(g, number, first);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, number);
    cg_nest_varies(g, &nest, s->read);
    place_varies(s, &nest, &sums);
    const struct cg_val n = cg_value(DT_U32, number);
    mma_find_thread(s, thread, n);
    const int32_t more = cg_reg(g, cg_binary(g, OP_LT, n, items));
    const int32_t fresh = cg_reg(g, cg_binary(g, OP_LT, n, step));
    cg_jump_if(g, more, false, found);
    size_t inner = cg_scope_open(g);
    matmul_find(m, n);
    mma_copy_begin(s);
    fill(s);
    const struct matmul next = *m;
    cg_scope_close(g, inner);
    cg_place(g, found);
    cg_jump_if(g, fresh, true, stored);
    inner = cg_scope_open(g);
    stand_at(s, &sums);
    mma_store(s);
    cg_scope_close(g, inner);
    cg_place(g, stored);
    cg_jump_if(g, more, false, done);
    m->row = next.row;
    m->col = next.col;
    memcpy(m->batch, next.batch, sizeof m->batch);
    keep_place(s, &sums);
    stand_at(s, &sums);
    clear_sums(s);
    cg_move(g, s->read, cg_u32(0));
    add_up(s, rounds, cg_label(g, "summed"));
    if (m->p->parts > 1)
        mma_mend(s);
    cg_move(g, number, cg_add(g, n, step));
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, done);
}

void matmul_mma(struct matmul *m)
{
    struct mma s;
    struct mma_shape shape = {.target = m->g->target, .f = m->f, .p = m->p};
    if (!mma_measure(&shape, NULL))
        return;
    mma_begin(&s, m, &shape);
    if (m->p->blocks)
        matmul_prepare(m);
    ask_for_two(&s);
    if (!m->p->as_f16)
        mma_read_begin(&s);
    make_sums(&s);
    if (m->p->blocks) {
        take_turns(&s);
        return;
    }
    if (m->p->as_f16)
        multiply_as_f16(&s);
    else
        multiply(&s, true);
    if (m->p->parts > 1)
        mma_mend(&s);
    mma_store(&s);
}
