/* Reductions over a row: by thread, by warp, between the warps of a block, and between the blocks of a cluster.
 *
 * A thread keeps several accumulators, so that one need not wait for another. What they come to is folded over the lanes
 * of a warp by pairs that differ in one bit; then each warp leaves its result in shared memory, and after one barrier
 * every warp folds all of them for itself. In a cluster the first warp does, leaves the block's result in the memory of
 * every block, and after a barrier of the cluster every warp folds those. The reductions of a level share the
 * barriers, and each level has shared memory of its own, so that no more are needed. The order is fixed.
 */
#include <config.h>

#include "lower/row.h"
#include "lower/sync.h"

#include <stdio.h>
#include <stdlib.h>

/* FEW: as many results as every thread reads for itself, which takes less time than shuffles do */
enum { LANES = 32, FEW = 8 };

/* A thread's share of a reduction, or what shares were folded to. */
struct row_part {
    struct cg_val v;
    struct cg_val at; /* argmax and argmin: the column */
};

static bool is_arg(const struct row_reduce *d)
{
    return d->e->reduce == RED_ARGMAX || d->e->reduce == RED_ARGMIN;
}

static enum dtype type_of(const struct row_reduce *d)
{
    return d->e->args[0]->type;
}

/* ---- a thread's own ------------------------------------------------------------------------------- */

/* argmax: no column yet; the identity's is 0 in the end, which is what comes of a row without a number in it. */
enum { NOWHERE = -1 };

/* The read of 16-bit floats along the row, in words of two, whose largest or smallest is wanted; or NULL. */
static const struct lang_expr *pair_of(const struct row_gen *r, const struct row_reduce *d)
{
    const struct lang_expr *e = inspect_strip(d->e->args[0]);
    bool best = d->e->reduce == RED_MAX || d->e->reduce == RED_MIN;
    if (!best || r->g->target->sm < 80 || r->plan.vector < 2 || type_of(d) != DT_F32 ||
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
            f.value[f.n][k] = cg_new_mutable(g, pair ? DT_U32 : type_of(d));
            cg_move(g, f.value[f.n][k],
                    pair ? pair_identity(pair, d->e->reduce)
                         : cg_reduce_identity(g, d->e->reduce, type_of(d)));
            if (is_arg(d)) {
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
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(ptx_r(acc), ptx_r(acc), ptx_r(word)));
    cg_assigned(g, acc);
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
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(ptx_r(acc), ptx_r(acc), cg_op(g, v)));
    cg_assigned(g, acc);
}

/* x y + acc in one rounding, where the term is a product: as elsewhere (lower.h). */
static bool accumulate_product(struct cg *g, const struct lang_expr *e, int32_t pred, int32_t acc)
{
    const struct lang_expr *a = e->args[0];
    if (e->reduce != RED_SUM || !g->contract_fma || (e->type != DT_F32 && e->type != DT_F64) ||
        a->kind != E_BINARY || a->op != OP_MUL || a->type != e->type)
        return false;
    struct cg_val x = cg_expr(g, a->args[0]), y = cg_expr(g, a->args[1]);
    ptx_emit(&g->b, pred, false, e->type == DT_F32 ? "fma.rn.f32" : "fma.rn.f64",
             PTX_ARGS(ptx_r(acc), x.op, y.op, ptx_r(acc)));
    cg_assigned(g, acc);
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

/* What such a term is a product of is added. */
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
    ptx_emit(&g->b, pred, false, "fma.rn.f32", PTX_ARGS(ptx_r(acc), p.op, s.op, ptx_r(acc)));
    cg_assigned(g, acc);
    return true;
}

struct cg_val row_fold_largest(struct row_fold *f, uint32_t i)
{
    enum dtype t = type_of(f->reduce[i]);
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
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(ptx_r(reg), cg_op(g, v)));
    cg_assigned(g, reg);
}

/* The first of equals stays; NaN compares false and is never taken. Held rows count lanes, which take no register. */
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
        bool floating = dtype_is_float(type_of(f->reduce[i]));
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

/* ---- pairs ---------------------------------------------------------------------------------------- */

static struct row_part merge_best(struct cg *g, const struct row_reduce *d, struct row_part x,
                                  struct row_part y)
{
    enum lang_op op = d->e->reduce == RED_ARGMAX ? OP_GT : OP_LT;
    struct cg_val better = cg_binary(g, op, y.v, x.v);
    struct cg_val same = cg_binary(g, OP_EQ, y.v, x.v);
    struct cg_val before = cg_binary(g, OP_LT, y.at, x.at);
    int32_t take = cg_reg(g, cg_binary(g, OP_LOR, better, cg_binary(g, OP_LAND, same, before)));
    return (struct row_part){cg_select(g, take, y.v, x.v), cg_select(g, take, y.at, x.at)};
}

static struct row_part merge(struct cg *g, const struct row_reduce *d, struct row_part x,
                             struct row_part y)
{
    switch (d->e->reduce) {
    case RED_SUM: return (struct row_part){.v = cg_binary(g, OP_ADD, x.v, y.v)};
    case RED_PROD: return (struct row_part){.v = cg_binary(g, OP_MUL, x.v, y.v)};
    case RED_MAX:
    case RED_MIN: return (struct row_part){.v = cg_minmax(g, d->e->reduce == RED_MAX, x.v, y.v)};
    case RED_ANY: return (struct row_part){.v = cg_binary(g, OP_LOR, x.v, y.v)};
    case RED_ALL: return (struct row_part){.v = cg_binary(g, OP_LAND, x.v, y.v)};
    case RED_ARGMAX:
    case RED_ARGMIN: return merge_best(g, d, x, y);
    }
    abort();
}

static struct row_part merge_all(struct cg *g, const struct row_reduce *d, struct row_part *p,
                                 uint32_t n)
{
    for (; n > 1; n = (n + 1) / 2)
        for (uint32_t i = 0; i < n / 2; i++) {
            p[i] = merge(g, d, p[2 * i], p[2 * i + 1]);
            if (i == n / 2 - 1 && n % 2)
                p[i + 1] = p[n - 1];
        }
    return p[0];
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

static struct row_part own_part(struct row_fold *f, uint32_t i)
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
        return merge_all(g, d, p, 2);
    }
    for (uint32_t k = 0; k < f->ways; k++) {
        p[k].v = cg_value(type_of(d), f->value[i][k]);
        if (is_arg(d))
            p[k].at = place_of(f->r, cg_value(f->r->ct, f->at[i][k]));
    }
    return merge_all(g, d, p, f->ways);
}

/* ---- a warp --------------------------------------------------------------------------------------- */

static struct cg_val other_lane(struct cg *g, struct cg_val v, uint32_t distance)
{
    return shuffle(g, SHUFFLE_XOR, v, ptx_imm(distance), ptx_imm(LANES - 1), ptx_imm(UINT32_MAX),
                   NULL);
}

static struct row_part butterfly(struct cg *g, const struct row_reduce *d, struct row_part p,
                                 uint32_t lanes)
{
    for (uint32_t s = lanes / 2; s; s /= 2) {
        struct row_part other = {.v = other_lane(g, p.v, s)};
        if (is_arg(d))
            other.at = other_lane(g, p.at, s);
        p = merge(g, d, p, other);
    }
    return p;
}

static enum fold_kind fold_of(enum lang_reduce how)
{
    switch (how) {
    case RED_MAX: return FOLD_MAX;
    case RED_MIN: return FOLD_MIN;
    case RED_ANY: return FOLD_OR;
    case RED_ALL: return FOLD_AND;
    default: return FOLD_SUM;
    }
}

static struct row_part fold_warp(struct row_gen *r, const struct row_reduce *d, struct row_part p,
                                 uint32_t lanes)
{
    struct cg *g = r->g;
    enum dtype t = type_of(d);
    bool whole = g->target->sm >= 80 && lanes == LANES && !is_arg(d) && d->e->reduce != RED_PROD;
    struct lanes all = {.all = true, .mask = ptx_imm(UINT32_MAX)};
    if (whole && t == DT_BOOL) {
        struct cg_val word = cg_convert(g, p.v, DT_U32);
        word = cg_value(DT_U32, cg_reg(g, word));
        word = warp_fold(g, fold_of(d->e->reduce), word, &all);
        p.v = cg_binary(g, OP_NE, word, cg_int(DT_U32, 0));
        return p;
    }
    if (whole && (t == DT_I32 || t == DT_U32)) {
        p.v = warp_fold(g, fold_of(d->e->reduce), p.v, &all);
        return p;
    }
    return butterfly(g, d, p, lanes);
}

/* ---- between warps -------------------------------------------------------------------------------- */

/* Where a reduction's results lie, one for each warp: the values, then the columns of argmax. */
struct area {
    uint32_t at, where; /* bytes from the start of the exchange's */
    uint32_t size;      /* of a value */
};

struct exchange {
    struct row_fold *f;
    struct area area[ROW_REDUCES];
    uint32_t slots; /* of an area */
    const struct ptx_var *var;
};

static uint32_t slot_bytes(enum dtype t)
{
    return dtype_bits(t) == 64 ? 8 : 4;
}

static struct exchange lay_out(struct row_fold *f, const char *name, uint32_t slots)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    struct exchange x = {.f = f, .slots = slots};
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        struct area *a = &x.area[i];
        a->size = slot_bytes(type_of(f->reduce[i]));
        a->at = bytes;
        bytes += (a->size * slots + 15) / 16 * 16;
        a->where = bytes;
        if (is_arg(f->reduce[i]))
            bytes += (slot_bytes(r->ct) * slots + 15) / 16 * 16;
    }
    size_t from = g->func->items.n;
    x.var = ptx_array_new(&g->b, PTX_SHARED, arena_printf(g->a, "$%s%u", name, f->level), PTX_B64,
                          16, bytes / 8);
    cg_to_prologue(g, from, 3000000 + f->level);
    return x;
}

static struct ptx_operand in_memory(struct cg *g, struct cg_val *v)
{
    if (v->type == DT_BOOL)
        *v = cg_convert(g, *v, DT_U32);
    return ptx_r(cg_reg(g, *v));
}

static void put(struct cg *g, const char *space, int32_t pred, int32_t base, uint32_t at,
                struct cg_val v)
{
    char m[40];
    struct ptx_operand reg = in_memory(g, &v);
    snprintf(m, sizeof m, "st.%s.%s", space, cg_bits_suffix(v.type));
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(ptx_mem(base, at), reg));
}

static int32_t base_of(struct exchange *x)
{
    return CG(x->f->r->g, PTX_B32, "mov.u32", ptx_sym(x->var));
}

/* Stores results in slot `slot`, of the areas that begin at base, where pred holds. */
static void leave(struct exchange *x, const char *space, int32_t pred, struct cg_val base,
                  struct cg_val slot, const struct row_part *part)
{
    struct cg *g = x->f->r->g;
    for (uint32_t i = 0; i < x->f->n; i++) {
        const struct area *a = &x->area[i];
        struct cg_val to = cg_binary(g, OP_MUL, slot, cg_int(DT_U32, a->size));
        put(g, space, pred, cg_reg(g, cg_binary(g, OP_ADD, base, to)), a->at, part[i].v);
        if (!is_arg(x->f->reduce[i]))
            continue;
        to = cg_binary(g, OP_MUL, slot, cg_int(DT_U32, slot_bytes(x->f->r->ct)));
        put(g, space, pred, cg_reg(g, cg_binary(g, OP_ADD, base, to)), a->where, part[i].at);
    }
}

static struct cg_val from_memory(struct cg *g, enum dtype t, int32_t reg)
{
    if (t == DT_BOOL)
        return cg_binary(g, OP_NE, cg_value(DT_U32, reg), cg_int(DT_U32, 0));
    return cg_value(t, reg);
}

static enum dtype memory_type(enum dtype t)
{
    return t == DT_BOOL ? DT_U32 : t;
}

/* n of them one after the other, up to 16 bytes at a time. */
static void get_all(struct cg *g, enum dtype t, int32_t base, uint32_t at, uint32_t n,
                    struct cg_val *v)
{
    enum dtype mt = memory_type(t);
    uint32_t size = slot_bytes(mt);
    for (uint32_t i = 0; i < n;) {
        struct ptx_operand reg[4];
        uint32_t k = dtype_bits(mt) < 32 ? 1 : 16 / size;
        char m[32];
        while (k > n - i)
            k /= 2;
        for (uint32_t j = 0; j < k; j++)
            reg[j] = ptx_r(cg_new(g, mt));
        snprintf(m, sizeof m, "ld.shared%s.%s",
                 k == 4   ? ".v4"
                 : k == 2 ? ".v2"
                          : "",
                 cg_bits_suffix(mt));
        PTX(&g->b, m, k == 1 ? reg[0] : ptx_vec(&g->b, k, reg),
            ptx_mem(base, (int64_t)at + (int64_t)i * size));
        for (uint32_t j = 0; j < k; j++)
            v[i + j] = from_memory(g, t, reg[j].reg);
        i += k;
    }
}

/* That of slot n (u32), where pred holds; -1: always. */
static struct cg_val get_one(struct cg *g, enum dtype t, int32_t base, uint32_t at, struct cg_val n,
                             int32_t pred, struct cg_val otherwise)
{
    enum dtype mt = memory_type(t);
    char m[32];
    int32_t reg = cg_new_mutable(g, mt);
    if (pred >= 0)
        cg_move(g, reg, cg_convert(g, otherwise, mt));
    struct cg_val from = cg_binary(g, OP_MUL, n, cg_int(DT_U32, slot_bytes(mt)));
    from = cg_binary(g, OP_ADD, cg_value(DT_U32, base), from);
    snprintf(m, sizeof m, "ld.shared.%s", cg_bits_suffix(mt));
    ptx_emit(&g->b, pred, false, m, PTX_ARGS(ptx_r(reg), ptx_mem(cg_reg(g, from), at)));
    cg_assigned(g, reg);
    return from_memory(g, t, reg);
}

static struct row_part get_few(struct exchange *x, uint32_t i, int32_t base, uint32_t n)
{
    struct cg *g = x->f->r->g;
    const struct row_reduce *d = x->f->reduce[i];
    struct row_part p[FEW];
    struct cg_val v[FEW];
    get_all(g, type_of(d), base, x->area[i].at, n, v);
    for (uint32_t k = 0; k < n; k++)
        p[k].v = v[k];
    if (is_arg(d)) {
        get_all(g, x->f->r->ct, base, x->area[i].where, n, v);
        for (uint32_t k = 0; k < n; k++)
            p[k].at = v[k];
    }
    return merge_all(g, d, p, n);
}

static struct row_part get_lanes(struct exchange *x, uint32_t i, int32_t base, struct cg_val first,
                                 struct cg_val count, uint32_t most)
{
    struct row_gen *r = x->f->r;
    struct cg *g = r->g;
    const struct row_reduce *d = x->f->reduce[i];
    uint32_t span = 1;
    while (span < most && span < LANES)
        span *= 2;
    struct row_part sum = {0};
    for (uint32_t from = 0; from < most; from += span) {
        struct cg_val lane = cg_special(g, SP_LANEID);
        int32_t pred = -1;
        lane = cg_binary(g, OP_AND, lane, cg_int(DT_U32, span - 1));
        lane = cg_binary(g, OP_ADD, lane, cg_int(DT_U32, from));
        int64_t known;
        if (!cg_is_const(count, &known) || from + span > known)
            pred = cg_reg(g, cg_binary(g, OP_LT, lane, count));
        struct cg_val slot = cg_binary(g, OP_ADD, lane, first);
        struct row_part p = {.v = get_one(g, type_of(d), base, x->area[i].at, slot, pred,
                                          cg_reduce_identity(g, d->e->reduce, type_of(d)))};
        if (is_arg(d))
            p.at = get_one(g, r->ct, base, x->area[i].where, slot, pred, cg_int(r->ct, 0));
        sum = from ? merge(g, d, sum, p) : p;
    }
    return butterfly(g, d, sum, span);
}

/* Folds the results of n slots from `first` on; n 0: of as many as the block has warps. */
static void fold_slots(struct exchange *x, struct cg_val first, uint32_t n, struct row_part *part)
{
    struct cg *g = x->f->r->g;
    int64_t at;
    int32_t base = base_of(x);
    struct cg_val count = cg_int(DT_U32, n);
    if (!n)
        count = cg_binary(g, OP_SHR, cg_special(g, SP_NTID_X), cg_int(DT_U32, 5));
    for (uint32_t i = 0; i < x->f->n; i++)
        part[i] = n && n <= FEW && cg_is_const(first, &at)
                      ? get_few(x, i, base, n)
                      : get_lanes(x, i, base, first, count, n ? n : LANES);
}

/* Between the blocks of a cluster: the first warp leaves what the block's warps have left in the memory of every block.
 * Its arrival releases that; what the others did, they did before the barrier that it was behind. */
static void exchange_blocks(struct row_fold *f, struct exchange *x, struct row_part *part)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    const uint32_t blocks = r->plan.cluster, warps = r->plan.threads / LANES;
    struct exchange y = lay_out(f, "cluster", blocks);
    struct cg_val zero = cg_int(DT_U32, 0), lane = cg_special(g, SP_LANEID);
    struct cg_val base = cg_value(DT_U32, base_of(&y));
    struct cg_val others = cg_binary(g, OP_NE, cg_special(g, SP_WARPID), zero);
    int32_t rank = CG(g, PTX_B32, "mov.u32", ptx_special(PTX_SR_CLUSTER_CTARANK));
    int32_t pred = cg_reg(g, cg_binary(g, OP_LT, lane, cg_int(DT_U32, blocks)));
    /* lanes without a block of their own do not store */
    struct cg_val to = cg_minmax(g, false, lane, cg_int(DT_U32, blocks - 1));
    base = cg_value(DT_U32, CG(g, PTX_B32, "mapa.shared::cluster.u32", base.op, to.op));
    uint32_t rest = cg_label(g, "others"), all = cg_label(g, "arrived");
    cg_jump_if(g, cg_reg(g, others), true, rest);
    size_t mark = cg_scope_open(g);
    fold_slots(x, zero, warps, part);
    leave(&y, "shared::cluster", pred, base, cg_value(DT_U32, rank), part);
    PTX0(&g->b, "barrier.cluster.arrive.release.aligned");
    cg_jump(g, all);
    cg_scope_close(g, mark);
    cg_place(g, rest);
    PTX0(&g->b, "barrier.cluster.arrive.relaxed.aligned");
    cg_place(g, all);
    PTX0(&g->b, "barrier.cluster.wait.acquire.aligned");
    fold_slots(&y, zero, blocks, part);
}

static void exchange(struct row_fold *f, struct row_part *part)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    const struct row_plan *p = &r->plan;
    uint32_t warps = p->threads / LANES;
    struct cg_val zero = cg_int(DT_U32, 0), first = zero, warp = cg_special(g, SP_WARPID);
    struct exchange x = lay_out(f, "level", warps ? warps * p->rows : LANES);
    struct cg_val is_first = cg_binary(g, OP_EQ, cg_special(g, SP_LANEID), zero);
    leave(&x, "shared", cg_reg(g, is_first), cg_value(DT_U32, base_of(&x)), warp, part);
    if (p->cluster > 1 && f->level == 0) /* the other blocks run, as they have arrived once */
        PTX0(&g->b, "barrier.cluster.wait.acquire.aligned");
    PTX(&g->b, "bar.sync", ptx_imm(0));
    if (p->cluster > 1) {
        exchange_blocks(f, &x, part);
        return;
    }
    if (p->rows > 1) { /* the warps of a row are neighbours */
        struct cg_val n = cg_int(DT_U32, warps);
        first = cg_binary(g, OP_MUL, cg_binary(g, OP_DIV, warp, n), n);
    }
    fold_slots(&x, first, warps, part);
}

void row_fold_end(struct row_fold *f)
{
    struct row_gen *r = f->r;
    struct cg *g = r->g;
    struct row_part part[ROW_REDUCES];
    uint32_t lanes = r->plan.threads && r->plan.threads < LANES ? r->plan.threads : LANES;
    bool alone = r->plan.threads && r->plan.threads <= LANES && r->plan.cluster == 1;
    for (uint32_t i = 0; i < f->n; i++)
        part[i] = fold_warp(r, f->reduce[i], own_part(f, i), lanes);
    if (!alone)
        exchange(f, part);
    for (uint32_t i = 0; i < f->n; i++) {
        struct row_reduce *d = f->reduce[i];
        struct cg_val v = part[i].v;
        if (is_arg(d))
            v = cg_index(g, cg_value(r->ct, cg_reg(g, part[i].at)));
        if (v.op.kind == PTX_O_REG)
            cg_set_depth(g, v.op.reg, 0); /* the same in every thread of the row */
        d->value = cg_convert(g, v, d->e->type);
        d->is_done = true;
    }
}
