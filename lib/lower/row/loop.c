/* Rows of any length, one vector for each thread after the other: every level reads the row again,
 * from the second on mostly in the cache. A maximum and the sums of exponentials that are relative
 * to it take one reading. */
#include <config.h>

#include "lower/row/row.h"

#include <float.h>
#include <math.h>

/* Sums of exp(x - max(x)) need not wait for the maximum: they are kept relative to the largest x so
 * far, and scaled when that grows. */
struct online {
    struct row_fold *sums;     /* of the next level; NULL: none */
    uint32_t top[ROW_REDUCES]; /* of each sum: which of this level's it is relative to */
    int32_t now[ROW_REDUCES];  /* of each sum: the largest so far, -FLT_MAX at least */
    bool finite[ROW_REDUCES];  /* of each sum: in the end it is relative to 0 if the maximum is
                                  infinite */
};

/* Are all of the next level's reductions such sums? */
static bool is_online(const struct row_gen *r, uint32_t level)
{
    bool any = false;
    for (uint32_t i = 0; i < r->row->nreduce; i++) {
        const struct row_reduce *d = &r->row->reduce[i];
        if (d->level != level + 1)
            continue;
        const struct row_falling *f = row_falling_term(r, d);
        if (!f || f->top->level != level)
            return false;
        any = true;
    }
    return any;
}

bool row_is_read_once(struct row *row)
{
    const struct row_gen r = {.g = row->g, .row = row, .plan = {.looped = true}};
    return row->bits_out == 0 && (row->nlevel == 1 || (row->nlevel == 2 && is_online(&r, 0)));
}

uint32_t row_readings(struct row *row)
{
    const struct row_gen r = {.g = row->g, .row = row, .plan = {.looped = true}};
    uint32_t n = 0;
    for (uint32_t level = 0; level < row->nlevel; level++, n++)
        level += is_online(&r, level);
    return n;
}

static void online_begin(struct row_gen *r, struct online *o, const struct row_fold *f,
                         struct row_fold *sums)
{
    o->sums = sums;
    for (uint32_t i = 0; i < sums->n; i++) {
        const struct row_falling *t = row_falling_term(r, sums->reduce[i]);
        for (uint32_t k = 0; k < f->n; k++)
            if (f->reduce[k] == t->top)
                o->top[i] = k;
        o->finite[i] = t->finite;
        o->now[i] = cg_new_mutable(r->g, DT_F32);
        cg_move(r->g, o->now[i], cg_float(r->g, DT_F32, -FLT_MAX));
    }
}

static struct cg_val exp_of_difference(struct cg *g, struct cg_val x, struct cg_val y)
{
    struct cg_val d = cg_binary(g, OP_SUB, x, y);
    return cg_library(g, "exp_falling_f32", 1, &d);
}

/* To the maximum, or 0 where that is infinite. */
static struct cg_val exp_to_finite(struct cg *g, struct cg_val own, struct cg_val top)
{
    struct cg_val size = cg_value(DT_F32, CG(g, PTX_F32, "abs.f32", top.op));
    int32_t infinite = cg_reg(g, cg_binary(g, OP_EQ, size, cg_float(g, DT_F32, INFINITY)));
    top = cg_select(g, infinite, cg_float(g, DT_F32, 0), top);
    struct cg_val d = cg_binary(g, OP_SUB, own, top);
    return cg_library(g, "exp_f32", 1, &d);
}

/* Takes the terms of n vectors, of which f has the maxima already. */
static void online_round(struct row_gen *r, struct online *o, struct row_fold *f, uint32_t n)
{
    struct cg *g = r->g;
    size_t mark = cg_scope_open(g); /* what reads the maximum means this one */
    for (uint32_t i = 0; i < o->sums->n; i++) {
        struct cg_val before = cg_value(DT_F32, o->now[i]);
        struct cg_val top = row_fold_largest(f, o->top[i]);
        top = cg_minmax(g, true, top, cg_float(g, DT_F32, -FLT_MAX));
        if (o->finite[i])
            top = cg_minmax(g, false, top, cg_float(g, DT_F32, FLT_MAX));
        row_fold_scale(o->sums, i, exp_of_difference(g, before, top));
        cg_move(g, o->now[i], top);
        f->reduce[o->top[i]]->value = top;
        f->reduce[o->top[i]]->is_done = true;
    }
    for (uint32_t vec = 0; vec < n; vec++)
        for (uint32_t lane = 0; lane < r->plan.vector; lane++) {
            row_at(r, vec, lane);
            row_fold_lane(o->sums, -1);
        }
    cg_scope_close(g, mark);
    for (uint32_t i = 0; i < f->n; i++)
        f->reduce[i]->is_done = false;
}

/* The maxima are known: what each thread has becomes relative to them. A thread that saw no number
 * has a sum of 0 or NaN; if none saw any, the difference is NaN, as it should be, unless there are
 * no columns: a sum of nothing is 0. */
static void online_end(struct row_gen *r, struct online *o, struct row_fold *f)
{
    int64_t known;
    const bool always = cg_is_const(r->vectors, &known) && known > 0;
    for (uint32_t i = 0; i < o->sums->n; i++) {
        struct cg_val top = f->reduce[o->top[i]]->value;
        if (o->finite[i]) {
            row_fold_scale(o->sums, i, exp_to_finite(r->g, cg_value(DT_F32, o->now[i]), top));
            continue;
        }
        struct cg_val own = row_fold_largest(f, o->top[i]);
        struct cg_val scale = exp_of_difference(r->g, own, top);
        if (!always) {
            const int32_t none = cg_reg(r->g, cg_binary(r->g, OP_EQ, r->vectors, cg_int(r->ct, 0)));
            scale = cg_select(r->g, none, cg_float(r->g, DT_F32, 0), scale);
        }
        row_fold_scale(o->sums, i, scale);
    }
    row_fold_end(o->sums);
}

/* The vectors at pos, pos + stride ... of one round. */
static void one_round(struct row_gen *r, uint32_t level, struct row_fold *f, struct online *o,
                      struct cg_val pos, uint32_t n)
{
    struct cg *g = r->g;
    row_forget(r, false);
    row_forget(r, true);
    r->serial += ROW_HELD * ROW_VECTOR;
    for (uint32_t i = 0; i < n; i++) {
        struct cg_val before = cg_binary(g, OP_MUL, r->stride, cg_int(r->ct, i));
        int64_t known;
        bool fixed = cg_is_const(before, &known);
        struct cg_val at = fixed ? pos : cg_binary(g, OP_ADD, pos, before);
        r->start[i].from = cg_binary(g, OP_MUL, at, cg_int(r->ct, r->plan.vector));
        r->start[i].add = fixed ? (uint32_t)known * r->plan.vector : 0;
        r->has[i] = -1;
    }
    row_load(r, level, false, 0, n);
    if (o)
        row_load(r, level + 1, false, 0, n);
    for (uint32_t vec = 0; vec < n; vec++) {
        row_load(r, level, true, vec, vec + 1);
        if (o)
            row_load(r, level + 1, true, vec, vec + 1);
        for (uint32_t lane = 0; lane < r->plan.vector && f; lane++) {
            row_at(r, vec, lane);
            row_fold_lane(f, -1);
        }
        if (!f)
            row_store(r, vec, false);
    }
    if (o)
        online_round(r, o, f, n);
}

/* Rounds of n vectors for each thread, from pos on, as long as all of them are there. */
static void rounds(struct row_gen *r, uint32_t level, struct row_fold *f, struct online *o,
                   int32_t pos, uint32_t n)
{
    struct cg *g = r->g;
    struct cg_val at = cg_value(r->ct, pos);
    struct cg_val all = cg_binary(g, OP_MUL, r->stride, cg_int(r->ct, n - 1));
    struct cg_val step = cg_binary(g, OP_MUL, r->stride, cg_int(r->ct, n));
    uint32_t head = cg_label(g, "round"), end = cg_label(g, "done");
    cg_place(g, head);
    cg_loop_head(g);
    struct cg_nest nest;
    cg_nest_open(g, &nest, NULL);
    cg_nest_varies(g, &nest, pos);
    size_t mark = cg_scope_open(g);
    struct cg_val last = cg_binary(g, OP_ADD, at, all);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, last, r->vectors)), true, end);
    one_round(r, level, f, o, at, n);
    struct cg_since since = cg_now(g);
    cg_move_new(g, pos, cg_binary(g, OP_ADD, at, step), since);
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, end);
}

static void pass(struct row_gen *r, uint32_t level, struct row_fold *f, struct online *o)
{
    struct cg *g = r->g;
    int32_t pos = cg_new_mutable(g, r->ct);
    cg_move(g, pos, r->thread);
    if (r->plan.held > 1)
        rounds(r, level, f, o, pos, r->plan.held);
    rounds(r, level, f, o, pos, 1);
}

void row_looped(struct row_gen *r)
{
    r->start[0] = (struct row_start){.from = cg_int(r->ct, 0)};
    row_load_scalars(r, false);
    for (uint32_t level = 0; level < r->row->nlevel; level++) {
        bool online = is_online(r, level);
        struct row_fold f = row_fold_begin(r, level, !online), sums;
        struct online o;
        if (online) {
            sums = row_fold_begin(r, level + 1, false);
            online_begin(r, &o, &f, &sums);
        }
        pass(r, level, &f, online ? &o : NULL);
        if (level == 0)
            row_load_scalars(r, true);
        row_fold_end(&f);
        if (online) {
            online_end(r, &o, &f);
            level++;
        }
    }
    row_store_scalars(r);
    if (r->row->bits_out)
        pass(r, r->row->nlevel, NULL, NULL);
}
