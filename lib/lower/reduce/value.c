/* Results in the making: what they start from, how an element is taken in, how the parts of a
 * result that threads of a block have meet. The order is fixed, and commutes where a shuffle
 * exchanges both ways, so that all threads have the same bits. argmax and argmin keep the index
 * beside the value: of equals the lower index, so that any order gives the first; NaN compares
 * false and is never taken. */
#include <config.h>

#include "lower/reduce/reduce.h"

#include "base/internal.h"
#include "lower/cg/sync.h"

#include <stdio.h>

/* While elements are taken. */
static enum dtype taking_type(const struct reduce_result *q)
{
    return q->term ? DT_F64 : q->e->args[0]->type;
}

enum dtype reduce_type(const struct reduce_result *q)
{
    enum dtype t = taking_type(q);
    return t == DT_BOOL ? DT_U32 : t;
}

bool reduce_is_arg(const struct lang_expr *e)
{
    return e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN;
}

bool reduce_is_pair(const struct reduce_result *q)
{
    return q->term || reduce_is_arg(q->e);
}

enum dtype reduce_where_type(const struct reduce *r, const struct reduce_result *q)
{
    if (q->term)
        return DT_F64;
    const struct reduce_axis *a = &r->f->axis[r->f->nkept];
    return !a->low && r->f->loop[a->loop].is_narrow ? DT_U32 : DT_I64;
}

static struct cg_val lowest_where(struct reduce *r, const struct reduce_result *q)
{
    if (q->term)
        return cg_float(r->g, DT_F64, 0);
    const struct lang_expr *low = r->f->axis[r->f->nkept].low;
    return low ? cg_index(r->g, cg_expr(r->g, low)) : cg_int(reduce_where_type(r, q), 0);
}

struct reduce_value reduce_identity(struct reduce *r, const struct reduce_result *q)
{
    struct reduce_value x = {.v = cg_reduce_identity(r->g, q->e->reduce, taking_type(q))};
    if (reduce_is_pair(q))
        x.where = lowest_where(r, q);
    if (x.v.type == DT_BOOL)
        x.v.type = DT_U32;
    return x;
}

/* ---- two parts ------------------------------------------------------------------------------- */

struct reduce_value reduce_meet(struct cg *g, const struct reduce_result *q, struct reduce_value x,
                                struct reduce_value y)
{
    const struct lang_expr *e = q->e;
    if (q->term)
        return (struct reduce_value){.v = cg_binary(g, OP_ADD, x.v, y.v),
                                     .where = cg_binary(g, OP_ADD, x.where, y.where)};
    if (!reduce_is_arg(e))
        return (struct reduce_value){.v = cg_reduce_meet(g, e->reduce, x.v, y.v)};
    struct cg_val better = cg_binary(g, e->reduce == RED_ARGMAX ? OP_GT : OP_LT, y.v, x.v);
    struct cg_val same = cg_binary(g, OP_EQ, y.v, x.v);
    struct cg_val first = cg_binary(g, OP_LT, y.where, x.where);
    better = cg_binary(g, OP_LOR, better, cg_binary(g, OP_LAND, same, first));
    int32_t p = cg_reg(g, better);
    return (struct reduce_value){.v = cg_select(g, p, y.v, x.v),
                                 .where = cg_select(g, p, y.where, x.where)};
}

/* ---- one element ----------------------------------------------------------------------------- */

/* acc = acc OP v in one instruction. */
static void accumulate(struct cg *g, int32_t acc, const char *name, struct cg_val v)
{
    char m[32];
    cg_dotted(m, name, cg_suffix(v.type));
    CG_ASSIGN(g, acc, m, ptx_r(acc), cg_op(g, v));
}

/* acc = p ? v : acc in one instruction. */
static void choose(struct cg *g, int32_t acc, struct cg_val v, int32_t p)
{
    char m[32];
    cg_dotted(m, "selp", cg_bits_suffix(v.type));
    CG_ASSIGN(g, acc, m, cg_op(g, v), ptx_r(acc), ptx_r(p));
}

static void take_best(struct reduce *r, const struct reduce_result *q, int32_t best, int32_t where,
                      struct cg_val v)
{
    struct cg *g = r->g;
    const struct lang_expr *e = q->e;
    enum dtype wt = reduce_where_type(r, q);
    struct cg_val here = r->axis[r->f->nkept];
    if (wt == DT_U32)
        here = cg_convert(g, here, DT_U32);
    struct cg_val old = cg_value(v.type, best);
    int32_t better = cg_reg(g, cg_binary(g, e->reduce == RED_ARGMAX ? OP_GT : OP_LT, v, old));
    choose(g, best, v, better);
    choose(g, where, cg_value(wt, cg_reg(g, here)), better);
}

/* acc + x * y as one fma, by the rule of lower.h. */
static bool take_product(struct cg *g, const struct lang_expr *e, int32_t acc)
{
    const struct lang_expr *a = e->args[0];
    if (e->reduce != RED_SUM || a->kind != E_BINARY || a->op != OP_MUL ||
        (a->type != DT_F32 && a->type != DT_F64) || a->type != e->type)
        return false;
    struct cg_val x = cg_expr(g, a->args[0]), y = cg_expr(g, a->args[1]);
    CG_ASSIGN(g, acc, e->type == DT_F32 ? "fma.rn.f32" : "fma.rn.f64", x.op, y.op, ptx_r(acc));
    return true;
}

/* The difference to k and its square. */
static void take_difference(struct reduce *r, uint32_t result, uint32_t slot)
{
    struct cg *g = r->g;
    uint32_t k = r->p->width > 1 ? r->lane : 0;
    struct cg_val x = cg_convert(g, cg_expr(g, r->f->result[result].term), DT_F64);
    struct cg_val d = cg_binary(g, OP_SUB, x, cg_value(DT_F64, r->one_term[result][k]));
    int32_t square = r->slot[result][slot];
    accumulate(g, r->slot_where[result][slot], "add.rn", d);
    CG_ASSIGN(g, square, "fma.rn.f64", cg_op(g, d), cg_op(g, d), ptx_r(square));
}

void reduce_take(struct reduce *r, uint32_t result, uint32_t slot)
{
    struct cg *g = r->g;
    const struct reduce_result *q = &r->f->result[result];
    const struct lang_expr *e = q->e;
    int32_t acc = r->slot[result][slot];
    if (q->term) {
        take_difference(r, result, slot);
        return;
    }
    if (take_product(g, e, acc))
        return;
    struct cg_val v = cg_expr(g, e->args[0]);
    bool is_float = dtype_is_float(v.type);
    switch (e->reduce) {
    case RED_SUM: accumulate(g, acc, is_float ? "add.rn" : "add", v); break;
    case RED_PROD: accumulate(g, acc, is_float ? "mul.rn" : "mul.lo", v); break;
    case RED_MAX: accumulate(g, acc, "max", v); break;
    case RED_MIN: accumulate(g, acc, "min", v); break;
    case RED_ANY: accumulate(g, acc, "or", v); break;
    case RED_ALL: accumulate(g, acc, "and", v); break;
    case RED_ARGMAX:
    case RED_ARGMIN: take_best(r, q, acc, r->slot_where[result][slot], v); break;
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

void reduce_open_slots(struct reduce *r)
{
    struct cg *g = r->g;
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        const struct reduce_result *q = &r->f->result[i];
        enum dtype t = taking_type(q);
        for (uint32_t k = 0; k < r->p->slots; k++) {
            r->slot[i][k] = cg_new_mutable(g, t);
            cg_move(g, r->slot[i][k], cg_reduce_identity(g, q->e->reduce, t));
            if (!reduce_is_pair(q))
                continue;
            r->slot_where[i][k] = cg_new_mutable(g, reduce_where_type(r, q));
            cg_move(g, r->slot_where[i][k], lowest_where(r, q));
        }
    }
}

struct reduce_value reduce_get(const struct reduce *r, uint32_t result, uint32_t slot)
{
    const struct reduce_result *q = &r->f->result[result];
    struct reduce_value x = {.v = cg_value(reduce_type(q), r->slot[result][slot])};
    if (reduce_is_pair(q))
        x.where = cg_value(reduce_where_type(r, q), r->slot_where[result][slot]);
    return x;
}

void reduce_set(struct reduce *r, uint32_t result, uint32_t slot, struct reduce_value x)
{
    cg_move(r->g, r->slot[result][slot], x.v);
    if (reduce_is_pair(&r->f->result[result]))
        cg_move(r->g, r->slot_where[result][slot], x.where);
}

/* While elements are taken a bool is a predicate. */
static struct reduce_value taken(struct reduce *r, uint32_t result, uint32_t slot)
{
    if (taking_type(&r->f->result[result]) != DT_BOOL)
        return reduce_get(r, result, slot);
    struct cg_val p = cg_value(DT_BOOL, r->slot[result][slot]);
    return (struct reduce_value){.v = cg_convert(r->g, p, DT_U32)};
}

void reduce_settle_slots(struct reduce *r)
{
    struct cg *g = r->g;
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        const struct reduce_result *q = &r->f->result[i];
        struct reduce_value x[REDUCE_LANES];
        if (r->p->slots == r->p->width && taking_type(q) != DT_BOOL)
            continue; /* they stay where they are */
        for (uint32_t k = 0; k < r->p->slots; k++)
            x[k] = taken(r, i, k);
        for (uint32_t n = r->p->slots; n > r->p->width; n /= 2)
            for (uint32_t k = 0; k < n / 2; k++)
                x[k] = reduce_meet(g, q, x[2 * k], x[2 * k + 1]);
        for (uint32_t k = 0; k < r->p->width; k++) {
            r->slot[i][k] = cg_new_mutable(g, reduce_type(q));
            if (reduce_is_pair(q))
                r->slot_where[i][k] = cg_new_mutable(g, reduce_where_type(r, q));
            reduce_set(r, i, k, x[k]);
        }
    }
}

/* ---- the block ------------------------------------------------------------------------------- */

struct result_values {
    struct reduce_value v[REDUCE_LANES];
};

/* What threads exchange: the values of result i and the indices, arrays of their own in shared
 * memory. */
struct part {
    uint32_t result;
    bool is_where;
    enum dtype type;
    int64_t offset;
};

static uint32_t rows_of(const struct reduce_plan *p)
{
    return p->tx <= 32 ? p->block / 32 : p->ty;
}

/* Of tiles: is it one of those that are made now? */
static bool is_now(const struct reduce *r, uint32_t result)
{
    return r->f->result[result].level == r->level;
}

static uint32_t find_parts(struct reduce *r, struct part *part, int64_t *bytes)
{
    uint32_t n = 0;
    int64_t each = (int64_t)rows_of(r->p) * r->p->tx * r->p->width;
    if (r->p->is_open) /* a place for each thread */
        each = (int64_t)r->p->block * r->p->width;
    *bytes = 0;
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        const struct reduce_result *q = &r->f->result[i];
        for (int where = 0; where <= reduce_is_pair(q) && is_now(r, i); where++) {
            enum dtype t = where ? reduce_where_type(r, q) : reduce_type(q);
            part[n++] = (struct part){i, where, t, *bytes};
            *bytes += (each * (dtype_bits(t) / 8) + 15) / 16 * 16;
        }
    }
    return n;
}

static struct cg_val *member(struct reduce_value *x, bool where)
{
    return where ? &x->where : &x->v;
}

/* The rows of one warp, or nothing where a row is a warp or more. */
static void fold_warp(struct reduce *r, struct result_values *x)
{
    struct cg *g = r->g;
    for (uint32_t s = 16; s >= r->p->tx; s /= 2)
        for (uint32_t i = 0; i < r->f->nresult; i++)
            for (uint32_t k = 0; k < r->p->width && is_now(r, i); k++) {
                struct reduce_value y = {0};
                const struct reduce_result *q = &r->f->result[i];
                for (int where = 0; where <= reduce_is_pair(q); where++)
                    *member(&y, where) = shuffle(g, SHUFFLE_XOR, *member(&x[i].v[k], where),
                                                 ptx_imm(s), ptx_imm(31), ptx_imm(UINT32_MAX),
                                                 NULL);
                x[i].v[k] = reduce_meet(g, q, x[i].v[k], y);
            }
}

/* The address in shared memory of the thread's column in row `row`. */
static int32_t slot_address(struct reduce *r, const struct part *p, struct cg_val row)
{
    struct cg *g = r->g;
    unsigned bytes = dtype_bits(p->type) / 8;
    struct cg_val base = cg_value(DT_U32, CG(g, PTX_B32, "mov.u32", ptx_sym(r->shared)));
    struct cg_val at = cg_binary(g, OP_MUL, row, cg_int(DT_U32, r->p->tx));
    at = cg_binary(g, OP_ADD, at, r->tx);
    at = cg_binary(g, OP_MUL, at, cg_int(DT_U32, r->p->width * bytes));
    return cg_reg(g, cg_binary(g, OP_ADD, base, at));
}

static void store_row(struct reduce *r, const struct part *part, uint32_t n,
                      struct result_values *x)
{
    struct cg *g = r->g;
    struct cg_val row = r->p->tx <= 32 ? cg_special(g, SP_WARPID) : r->ty;
    uint32_t skip = cg_label(g, "stored");
    size_t mark = cg_scope_open(g);
    if (r->p->tx < 32) {
        struct cg_val lane = cg_special(g, SP_LANEID);
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, lane, cg_int(DT_U32, r->p->tx))), true, skip);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct cg_val v[REDUCE_LANES];
        struct cg_place_of at = {
            .space = CG_SHARED, .base = slot_address(r, &part[i], row), .offset = part[i].offset};
        for (uint32_t k = 0; k < r->p->width; k++)
            v[k] = *member(&x[part[i].result].v[k], part[i].is_where);
        cg_store_words(g, part[i].type, at, r->p->width, v);
    }
    cg_scope_close(g, mark);
    cg_place(g, skip);
}

/* Loads one row of a part, or, where a thread has one result, several rows that lie side by side: n
 * values. */
static void load_rows(struct reduce *r, const struct part *p, int32_t base, uint32_t row,
                      uint32_t n, struct result_values *x)
{
    struct cg_val v[REDUCE_LANES];
    uint32_t width = r->p->width, bytes = dtype_bits(p->type) / 8;
    struct cg_place_of at = {.space = CG_SHARED, .base = base};
    at.offset = p->offset + (int64_t)row * r->p->tx * width * bytes;
    cg_load_words(r->g, p->type, false, at, n, v);
    for (uint32_t k = 0; k < n; k++)
        *member(width == 1 ? &x[k].v[0] : &x[0].v[k], p->is_where) = v[k];
}

/* In pairs of neighbours. */
static void fold_few_rows(struct reduce *r, const struct part *part, uint32_t n)
{
    struct cg *g = r->g;
    uint32_t rows = rows_of(r->p), width = r->p->width;
    struct result_values *x = ARENA_ARRAY(g->a, rows, struct result_values);
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        for (uint32_t m = 0; m < n; m++) {
            if (part[m].result != i)
                continue;
            int32_t base = slot_address(r, &part[m], cg_int(DT_U32, 0));
            uint32_t step = r->p->tx * width == 1 ? 16 / (dtype_bits(part[m].type) / 8) : 1;
            while (rows % step)
                step /= 2;
            for (uint32_t row = 0; row < rows; row += step)
                load_rows(r, &part[m], base, row, step > 1 ? step : width, &x[row]);
        }
        for (uint32_t k = 0; k < width && is_now(r, i); k++) {
            for (uint32_t left = rows; left > 1; left = (left + 1) / 2)
                for (uint32_t row = 0; row < left; row += 2)
                    x[row / 2].v[k] = row + 1 < left ? reduce_meet(g, &r->f->result[i], x[row].v[k],
                                                                   x[row + 1].v[k])
                                                     : x[row].v[k];
            reduce_set(r, i, k, x[0].v[k]);
        }
    }
}

/* One after the other: so many values that the code would be long. */
static void fold_many_rows(struct reduce *r, const struct part *part, uint32_t n)
{
    struct cg *g = r->g;
    uint32_t width = r->p->width, head = cg_label(g, "row");
    struct result_values x[REDUCE_RESULTS];
    int32_t base[2 * REDUCE_RESULTS], left = cg_new_mutable(g, DT_U32);
    cg_move(g, left, cg_int(DT_U32, rows_of(r->p) - 1));
    for (uint32_t m = 0; m < n; m++) {
        base[m] = cg_new_mutable(g, DT_U32);
        cg_move(g, base[m], cg_value(DT_U32, slot_address(r, &part[m], cg_int(DT_U32, 0))));
        load_rows(r, &part[m], base[m], 0, width, &x[part[m].result]);
    }
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < width && is_now(r, i); k++)
            reduce_set(r, i, k, x[i].v[k]);
    cg_place(g, head);
    cg_loop_head(g);
    size_t mark = cg_scope_open(g);
    for (uint32_t m = 0; m < n; m++) {
        uint32_t bytes = r->p->tx * width * dtype_bits(part[m].type) / 8;
        cg_move(g, base[m], cg_binary(g, OP_ADD, cg_value(DT_U32, base[m]), cg_int(DT_U32, bytes)));
        load_rows(r, &part[m], base[m], 0, width, &x[part[m].result]);
    }
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < width && is_now(r, i); k++)
            reduce_set(r, i, k, reduce_meet(g, &r->f->result[i], reduce_get(r, i, k), x[i].v[k]));
    cg_move(g, left, cg_binary(g, OP_SUB, cg_value(DT_U32, left), cg_int(DT_U32, 1)));
    struct cg_val more = cg_binary(g, OP_NE, cg_value(DT_U32, left), cg_int(DT_U32, 0));
    cg_jump_if(g, cg_reg(g, more), true, head);
    cg_scope_close(g, mark);
}

/* The threads of row 0 fold what all rows have left. */
static void fold_rows(struct reduce *r, const struct part *part, uint32_t n)
{
    enum { MANY = 32 };
    if (r->p->tx > 1 && rows_of(r->p) * r->p->width * n > MANY)
        fold_many_rows(r, part, n);
    else
        fold_few_rows(r, part, n);
}

/* ---- open tiles ------------------------------------------------------------------------------ */

static struct cg_place_of place_of_thread(struct reduce *r, const struct part *p,
                                          struct cg_val thread)
{
    struct cg *g = r->g;
    const unsigned bytes = r->p->width * dtype_bits(p->type) / 8;
    struct cg_val base = cg_value(DT_U32, CG(g, PTX_B32, "mov.u32", ptx_sym(r->shared)));
    struct cg_val at = cg_binary(g, OP_MUL, thread, cg_int(DT_U32, bytes));
    return (struct cg_place_of){
        .space = CG_SHARED, .base = cg_reg(g, cg_binary(g, OP_ADD, base, at)), .offset = p->offset};
}

static void leave_values(struct reduce *r, const struct part *part, uint32_t n)
{
    struct cg *g = r->g;
    const struct cg_val tid = cg_special(g, SP_TID_X);
    for (uint32_t i = 0; i < n; i++) {
        struct cg_val v[REDUCE_LANES];
        for (uint32_t k = 0; k < r->p->width; k++) {
            struct reduce_value x = reduce_get(r, part[i].result, k);
            v[k] = *member(&x, part[i].is_where);
        }
        cg_store_words(g, part[i].type, place_of_thread(r, &part[i], tid), r->p->width, v);
    }
}

/* What a thread left becomes this one's, alone or met with it. */
static void take_values(struct reduce *r, const struct part *part, uint32_t n, struct cg_val thread,
                        bool meets)
{
    struct cg *g = r->g;
    struct result_values x[REDUCE_RESULTS];
    for (uint32_t i = 0; i < n; i++) {
        struct cg_val v[REDUCE_LANES];
        cg_load_words(g, part[i].type, false, place_of_thread(r, &part[i], thread), r->p->width, v);
        for (uint32_t k = 0; k < r->p->width; k++)
            *member(&x[part[i].result].v[k], part[i].is_where) = v[k];
    }
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < r->p->width && is_now(r, i); k++)
            reduce_set(r, i, k,
                       meets ? reduce_meet(g, &r->f->result[i], reduce_get(r, i, k), x[i].v[k])
                             : x[i].v[k]);
}

/* Rows below `half` take what is `half` rows on, while there are several. */
static void halve_rows(struct reduce *r, const struct part *part, uint32_t n)
{
    struct cg *g = r->g;
    const int32_t half = cg_new_mutable(g, DT_U32), left = cg_new_mutable(g, DT_U32);
    const struct cg_val rows = reduce_open_rows(r), one = cg_int(DT_U32, 1);
    const int32_t last = cg_reg(g, cg_binary(g, OP_SUB, rows, one));
    const int32_t bit = CG(g, PTX_B32, "bfind.u32", ptx_r(last));
    const uint32_t head = cg_label(g, "half"), others = cg_label(g, "met");
    cg_move(g, half, cg_binary(g, OP_SHL, one, cg_value(DT_U32, bit)));
    cg_move(g, left, rows);
    cg_place(g, head);
    cg_loop_head(g);
    const size_t mark = cg_scope_open(g);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    const struct cg_val h = cg_value(DT_U32, half);
    const struct cg_val from = cg_binary(g, OP_ADD, r->ty, h);
    const struct cg_val takes = cg_binary(g, OP_LT, r->ty, h);
    const struct cg_val is_there = cg_binary(g, OP_LT, from, cg_value(DT_U32, left));
    const size_t inner = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LAND, takes, is_there)), false, others);
    const struct cg_val apart = cg_binary(g, OP_MUL, h, reduce_open_across(r));
    take_values(r, part, n, cg_binary(g, OP_ADD, cg_special(g, SP_TID_X), apart), true);
    leave_values(r, part, n);
    cg_scope_close(g, inner);
    cg_place(g, others);
    cg_move(g, left, h);
    cg_move(g, half, cg_binary(g, OP_SHR, h, one));
    const struct cg_val more = cg_binary(g, OP_NE, cg_value(DT_U32, half), cg_int(DT_U32, 0));
    cg_jump_if(g, cg_reg(g, more), true, head);
    cg_scope_close(g, mark);
}

/* Threads know the results of their columns. */
static void fold_open(struct reduce *r, const struct part *part, uint32_t n, int64_t bytes)
{
    struct cg *g = r->g;
    const struct cg_val tid = cg_special(g, SP_TID_X), one = cg_int(DT_U32, 1);
    const uint32_t alone = cg_label(g, "alone");
    if (!r->shared)
        r->shared = ptx_array_new(&g->b, PTX_SHARED, "$reduce", PTX_B64, 16, (uint64_t)bytes / 8);
    else if (r->shared->count < (uint64_t)bytes / 8)
        r->shared->count = (uint64_t)bytes / 8;
    const size_t mark = cg_scope_open(g);
    if (!r->p->down.is_known)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_EQ, reduce_open_rows(r), one)), true, alone);
    if (r->level) /* others may still read what was left for the level before */
        PTX(&g->b, "bar.sync", ptx_imm(0));
    leave_values(r, part, n);
    halve_rows(r, part, n);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    const struct cg_val before = cg_binary(g, OP_MUL, r->ty, reduce_open_across(r));
    take_values(r, part, n, cg_binary(g, OP_SUB, tid, before), false);
    cg_scope_close(g, mark);
    cg_place(g, alone);
}

/* ---- all ------------------------------------------------------------------------------------- */

void reduce_block(struct reduce *r)
{
    struct cg *g = r->g;
    struct part part[2 * REDUCE_RESULTS];
    struct result_values x[REDUCE_RESULTS];
    int64_t bytes;
    uint32_t n = find_parts(r, part, &bytes);
    if (r->p->is_open) {
        if (!reduce_is_one(r->p->down))
            fold_open(r, part, n, bytes);
        return;
    }
    if (r->p->ty == 1)
        return; /* each thread has all of its results */
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < r->p->width && is_now(r, i); k++)
            x[i].v[k] = reduce_get(r, i, k);
    fold_warp(r, x);
    if (rows_of(r->p) == 1) {
        for (uint32_t i = 0; i < r->f->nresult; i++)
            for (uint32_t k = 0; k < r->p->width && is_now(r, i); k++)
                reduce_set(r, i, k, x[i].v[k]);
        return;
    }
    const char *name = r->level ? arena_printf(g->a, "$reduce%u", (unsigned)r->level) : "$reduce";
    if (!r->shared)
        r->shared = ptx_array_new(&g->b, PTX_SHARED, name, PTX_B64, 16, (uint64_t)bytes / 8);
    store_row(r, part, n, x);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    if (r->f->is_tile) {
        fold_rows(r, part, n);
        return;
    }
    uint32_t folded = cg_label(g, "folded");
    size_t mark = cg_scope_open(g);
    struct cg_val tid = cg_special(g, SP_TID_X);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, tid, cg_int(DT_U32, r->p->tx))), true, folded);
    fold_rows(r, part, n);
    cg_scope_close(g, mark);
    cg_place(g, folded);
}
