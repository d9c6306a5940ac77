/* A thread's own share of a row's reductions.
 *
 * A thread keeps several accumulators, so that one need not wait for another. The order is fixed.
 */
#include <config.h>

#include "lower/row/row.h"

#include <stdio.h>

/* ---- a thread's own -------------------------------------------------------------------------- */

/* argmax: no column yet; the identity's is 0 in the end, which is what comes of a row without a
 * number in it. */
enum { NOWHERE = -1 };

/* The read of 16-bit floats along the row, in words of two, whose largest or smallest is wanted; or
 * NULL. */
static const struct lang_expr *pair_of(const struct row_gen *r, const struct row_reduce *d)
{
    const struct lang_expr *e = inspect_strip(d->e->args[0]);
    bool best = d->e->reduce == RED_MAX || d->e->reduce == RED_MIN;
    if (!best || r->g->target->sm < 80 || r->plan.vector < 2 || row_term_type(d) != DT_F32 ||
        e->kind != E_INDEX || (e->type != DT_F16 && e->type != DT_BF16) ||
        cg_is_defined(r->g, e->sym) || row_is_shared(r->row, e->sym) ||
        !row_is_along(r->row, e, d->env, d))
        return NULL;
    for (uint32_t i = 0; i < r->row->nread; i++)
        if (r->row->read[i].e->sym == e->sym && r->row->read[i].scope == d)
            return e;
    return NULL;
}

/* Infinities in both halves. */
static struct cg_val pair_identity(const struct lang_expr *e, enum lang_reduce how)
{
    int64_t half = e->type == DT_F16 ? 0x7c00 : 0x7f80;
    half |= how == RED_MAX ? 0x8000 : 0;
    return cg_int(DT_U32, half << 16 | half);
}

struct row_fold row_fold_begin(struct row_gen *r, uint32_t level, bool pairs)
{
    struct cg *g = r->g;
    struct row_fold f = {.r = r, .level = level};
    f.ways = r->plan.vector < ROW_WAYS ? r->plan.vector : ROW_WAYS;
    for (uint32_t i = 0; i < r->row->nreduce; i++) {
        struct row_reduce *d = &r->row->reduce[i];
        if (d->level != level)
            continue;
        const struct lang_expr *pair = pairs ? pair_of(r, d) : NULL;
        f.reduce[f.n] = d;
        f.pairs[f.n] = pair != NULL;
        for (uint32_t k = 0; k < (pair ? 2 : f.ways); k++) {
            f.value[f.n][k] = cg_new_mutable(g, pair ? DT_U32 : row_term_type(d));
            cg_move(g, f.value[f.n][k],
                    pair ? pair_identity(pair, d->e->reduce)
                         : cg_reduce_identity(g, d->e->reduce, row_term_type(d)));
            if (row_is_arg(d)) {
                f.at[f.n][k] = cg_new_mutable(g, r->ct);
                cg_move(g, f.at[f.n][k], cg_int(r->ct, NOWHERE));
            }
        }
        f.n++;
    }
    return f;
}

static void best_of_pairs(struct cg *g, int32_t pred, const struct row_reduce *d, enum dtype t,
                          int32_t acc, int32_t word)
{
    char m[24];
    snprintf(m, sizeof m, "%s.%sx2", d->e->reduce == RED_MAX ? "max" : "min", dtype_name(t));
    CG_ASSIGN_IF(g, pred, acc, m, ptx_r(acc), ptx_r(word));
}

/* Two elements with one instruction, once for both. */
static void take_pair(struct row_fold *f, uint32_t i, int32_t pred)
{
    struct row_gen *r = f->r;
    const struct lang_expr *e = inspect_strip(f->reduce[i]->e->args[0]);
    if (r->lane % 2 == 0)
        best_of_pairs(r->g, pred, f->reduce[i], e->type, f->value[i][r->lane / 2 % 2],
                      row_pair(r, e));
}

static void accumulate(struct cg *g, int32_t pred, const char *name, int32_t acc, struct cg_val v)
{
    char m[32];
    snprintf(m, sizeof m, "%s.%s", name, cg_suffix(v.type));
    CG_ASSIGN_IF(g, pred, acc, m, ptx_r(acc), cg_op(g, v));
}

/* x y + acc in one rounding, where the term is a product: as elsewhere (lower.h). */
static bool accumulate_product(struct cg *g, const struct lang_expr *e, int32_t pred, int32_t acc)
{
    const struct lang_expr *a = e->args[0];
    if (e->reduce != RED_SUM || (e->type != DT_F32 && e->type != DT_F64) || a->kind != E_BINARY ||
        a->op != OP_MUL || a->type != e->type)
        return false;
    struct cg_val x = cg_expr(g, a->args[0]), y = cg_expr(g, a->args[1]);
    CG_ASSIGN_IF(g, pred, acc, e->type == DT_F32 ? "fma.rn.f32" : "fma.rn.f64", x.op, y.op,
                 ptx_r(acc));
    return true;
}

/* The expression that e reads by way of equations. bind: their indices are bound. */
static const struct lang_expr *behind(struct cg *g, const struct lang_expr *e, bool bind)
{
    for (;;) {
        e = inspect_strip(cg_view(g, e));
        if (e->kind != E_INDEX || e->pad || !cg_is_defined(g, e->sym) ||
            e->sym->type != e->sym->def->rhs->type)
            return e;
        struct cg_val sub[ROW_RANK];
        for (uint32_t i = 0; bind && i < e->nargs && i < ROW_RANK; i++)
            sub[i] = cg_index(g, cg_expr(g, e->args[i]));
        for (uint32_t i = 0; bind && i < e->nargs && i < ROW_RANK; i++)
            cg_bind(g, e->sym->def->index[i], sub[i], false);
        e = e->sym->def->rhs;
    }
}

const struct row_falling *row_falling_term(const struct row_gen *r, const struct row_reduce *d)
{
    const struct lang_expr *a = behind(r->g, d->e->args[0], false);
    bool fits = d->e->reduce == RED_SUM && a->kind == E_CALL && !a->func && !a->fast &&
                !a->rounded && a->type == DT_F32 && r->g->contract_fma && !r->g->fast;
    for (uint32_t i = 0; i < r->row->nfalling && fits; i++) {
        const struct row_falling *f = &r->row->falling[i];
        /* what is not held is computed again where it is needed again */
        if (f->e == a)
            return f->always && (f->term || r->plan.looped) ? f : NULL;
    }
    return NULL;
}

/* Adds such a term as the two factors that it is a product of. */
static bool accumulate_falling(struct row_fold *f, const struct row_reduce *d, int32_t pred,
                               int32_t acc)
{
    struct cg *g = f->r->g;
    struct cg_val p, s;
    const struct row_falling *t = row_falling_term(f->r, d);
    if (!t)
        return false;
    const struct lang_expr *a = behind(g, d->e->args[0], true);
    cg_falling_parts(g, cg_expr(g, a->args[0]), t->finite, &p, &s);
    CG_ASSIGN_IF(g, pred, acc, "fma.rn.f32", p.op, s.op, ptx_r(acc));
    return true;
}

struct cg_val row_fold_largest(struct row_fold *f, uint32_t i)
{
    enum dtype t = row_term_type(f->reduce[i]);
    struct cg_val v = cg_value(t, f->value[i][0]);
    for (uint32_t k = 1; k < f->ways; k++)
        v = cg_minmax(f->r->g, true, v, cg_value(t, f->value[i][k]));
    return cg_freeze(f->r->g, v);
}

void row_fold_scale(struct row_fold *f, uint32_t i, struct cg_val x)
{
    for (uint32_t k = 0; k < f->ways; k++)
        accumulate(f->r->g, -1, "mul.rn", f->value[i][k], x);
}

static void move_if(struct cg *g, int32_t pred, int32_t reg, struct cg_val v)
{
    char m[16];
    snprintf(m, sizeof m, "mov.%s", v.type == DT_BOOL ? "pred" : cg_bits_suffix(v.type));
    CG_ASSIGN_IF(g, pred, reg, m, cg_op(g, v));
}

/* The first of equals stays; NaN compares false and is never taken. Held rows count lanes, which
 * take no register. */
static void take_best(struct row_fold *f, uint32_t i, uint32_t way, int32_t pred, struct cg_val v)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    struct cg_val best = cg_value(v.type, f->value[i][way]);
    enum lang_op op = f->reduce[i]->e->reduce == RED_ARGMAX ? OP_GT : OP_LT;
    struct cg_val better = cg_binary(g, op, v, best);
    if (pred >= 0)
        better = cg_binary(g, OP_LAND, better, cg_value(DT_BOOL, pred));
    struct cg_val at = cg_int(r->ct, r->vec * r->plan.vector + r->lane);
    if (r->plan.looped)
        at = cg_binary(g, OP_ADD, row_first(r, r->vec), cg_int(r->ct, r->lane));
    int32_t p = cg_reg(g, better);
    move_if(g, p, f->value[i][way], v);
    move_if(g, p, f->at[i][way], at);
}

void row_fold_lane(struct row_fold *f, int32_t pred)
{
    struct cg *g = f->r->g;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct lang_expr *e = f->reduce[i]->e;
        uint32_t way = f->r->lane % f->ways;
        int32_t acc = f->value[i][way];
        bool floating = dtype_is_float(row_term_type(f->reduce[i]));
        size_t bound = row_bind(f->r, f->reduce[i]->env);
        cg_at(g, e->span);
        if (f->pairs[i]) {
            take_pair(f, i, pred);
            g->bindings.n = bound;
            continue;
        }
        if (!accumulate_product(g, e, pred, acc) &&
            !accumulate_falling(f, f->reduce[i], pred, acc)) {
            struct cg_val v = cg_expr(g, e->args[0]);
            switch (e->reduce) {
            case RED_SUM: accumulate(g, pred, floating ? "add.rn" : "add", acc, v); break;
            case RED_PROD: accumulate(g, pred, floating ? "mul.rn" : "mul.lo", acc, v); break;
            case RED_MAX: accumulate(g, pred, "max", acc, v); break;
            case RED_MIN: accumulate(g, pred, "min", acc, v); break;
            case RED_ANY: accumulate(g, pred, "or", acc, v); break;
            case RED_ALL: accumulate(g, pred, "and", acc, v); break;
            case RED_ARGMAX:
            case RED_ARGMIN: take_best(f, i, way, pred, v); break;
            }
        }
        g->bindings.n = bound;
    }
}

/* The column of the thread's best, of the lane's number or of nowhere. */
static struct cg_val place_of(struct row_gen *r, struct cg_val at)
{
    struct cg *g = r->g;
    const enum dtype t = r->ct;
    uint32_t v = r->plan.vector;
    int32_t none = cg_reg(g, cg_binary(g, OP_EQ, at, cg_int(t, NOWHERE)));
    if (!r->plan.looped) {
        struct cg_val vec = cg_binary(g, OP_DIV, at, cg_int(t, v));
        struct cg_val lane = cg_binary(g, OP_AND, at, cg_int(t, v - 1));
        vec = cg_binary(g, OP_ADD, r->thread, cg_binary(g, OP_MUL, vec, r->stride));
        at = cg_binary(g, OP_ADD, cg_binary(g, OP_MUL, vec, cg_int(t, v)), lane);
    }
    return cg_select(g, none, cg_int(t, 0), at);
}

struct row_part row_own_part(struct row_fold *f, uint32_t i)
{
    struct row_part p[ROW_WAYS];
    struct cg *g = f->r->g;
    const struct row_reduce *d = f->reduce[i];
    if (f->pairs[i]) {
        enum dtype t = inspect_strip(d->e->args[0])->type;
        struct cg_val half[2];
        best_of_pairs(g, -1, d, t, f->value[i][0], f->value[i][1]);
        cg_unpack(g, t, f->value[i][0], 2, half);
        for (int k = 0; k < 2; k++)
            p[k].v = cg_convert(g, half[k], DT_F32);
        return row_merge_all(g, d, p, 2);
    }
    for (uint32_t k = 0; k < f->ways; k++) {
        p[k].v = cg_value(row_term_type(d), f->value[i][k]);
        if (row_is_arg(d))
            p[k].at = place_of(f->r, cg_value(f->r->ct, f->at[i][k]));
    }
    return row_merge_all(g, d, p, f->ways);
}
