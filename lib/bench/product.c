#include <config.h>

#include "bench/product.h"

#include <inttypes.h>

enum { MOST_INDICES = 8 };

/* A read of an input by plain names: along which index it has which stride. */
struct view {
    const struct lang_symbol *sym;
    enum dtype type;
    bool tf32;
    unsigned factor; /* of the term, which it stands in */
    uint64_t offset;
    unsigned n;
    const struct lang_symbol *index[MOST_INDICES];
    uint64_t stride[MOST_INDICES];
};

struct finder {
    struct arena *a;
    const struct spec *s;
    const struct bench_point *p;
    const struct lang_equation *eq;
    struct products *out;
    VEC(struct view) reads; /* of the sum that is looked at */
    unsigned others;        /* things in it that no product has */
    unsigned factors;       /* so far */
};

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct finder *x = ctx;
    const struct bench_value *v = bench_find(x->p, sym->name);
    if (sym->kind == SYM_DIM && sym->has_value) {
        *f = (double)(*i = (int64_t)sym->value);
        return true;
    }
    if (!v || (sym->kind != SYM_DIM && sym->kind != SYM_SCALAR))
        return false;
    *i = v->i;
    *f = v->f;
    return true;
}

static bool value_of(struct finder *x, const struct lang_expr *e, uint64_t *out)
{
    int64_t v;
    if (!lang_eval_int(e, lookup, x, &v, diags_new(x->a)) || v < 0)
        return false;
    *out = (uint64_t)v;
    return true;
}

/* How many values an index has; 0: not known, or it does not begin with 0. */
static uint64_t extent_of(struct finder *x, const struct lang_symbol *index)
{
    uint64_t n = 0, low = 0;
    if (!index->dims || (index->low && (!value_of(x, index->low, &low) || low != 0)) ||
        !value_of(x, index->dims[0], &n))
        return 0;
    return n;
}

static const struct lang_expr *without_casts(const struct lang_expr *e)
{
    while (e->kind == E_CAST)
        e = e->args[0];
    return e;
}

/* ---- operands ---- */

static bool add_subscript(struct finder *x, struct view *v, const struct lang_expr *e,
                          uint64_t stride)
{
    uint64_t at;
    e = without_casts(e);
    if (e->kind != E_NAME || e->sym->kind != SYM_INDEX) {
        if (!value_of(x, e, &at))
            return false;
        v->offset += at * stride;
        return true;
    }
    for (unsigned i = 0; i < v->n; i++)
        if (v->index[i] == e->sym)
            return false; /* a diagonal */
    if (v->n == MOST_INDICES)
        return false;
    v->index[v->n] = e->sym;
    v->stride[v->n++] = stride;
    return true;
}

static bool view_of(struct finder *x, const struct lang_expr *e, struct view *v)
{
    uint64_t stride = 1;
    if (e->kind != E_INDEX || e->sym->kind != SYM_BUFFER || e->sym->mode == MODE_OUT || e->pad ||
        e->nargs != e->sym->rank)
        return false;
    v->sym = e->sym;
    for (uint32_t i = e->nargs; i > 0; i--) {
        uint64_t extent;
        if (!add_subscript(x, v, e->args[i - 1], stride) ||
            !value_of(x, e->sym->dims[i - 1], &extent))
            return false;
        stride *= extent;
    }
    return true;
}

static bool is_narrow(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16 || dtype_is_fp8(t) || t == DT_I8;
}

static bool is_tf32(const struct lang_expr *e)
{
    return e->kind == E_CALL && !e->func &&
           (e->fn == FN_TF32 || e->fn == FN_TF32_RN || e->fn == FN_TF32_RZ);
}

static bool is_product(const struct lang_expr *e)
{
    return e->kind == E_BINARY && (e->op == OP_MUL || e->op == OP_DIV);
}

/* All reads in a term. as: the type that a cast around it gives, the outermost one; DT_VOID: its
 * own. outer: e is a factor of the term, or several. */
static void collect(struct finder *x, const struct lang_expr *e, enum dtype as, bool tf32,
                    bool outer)
{
    struct view v = {.tf32 = tf32, .factor = x->factors};
    if (view_of(x, e, &v)) {
        v.type = as == DT_VOID ? e->sym->type : as;
        *VEC_PUSH(x->a, &x->reads) = v;
        return;
    }
    if (e->kind == E_CAST && !e->is_implicit && as == DT_VOID && is_narrow(e->type))
        as = e->type;
    bool plain = e->kind == E_CAST || is_tf32(e) || (e->kind == E_BINARY && e->op == OP_MUL);
    x->others += !plain;
    outer = outer && (is_product(e) || e->kind == E_CAST || e->kind == E_UNARY);
    for (uint32_t i = 0; i < e->nargs && e->kind != E_REDUCE; i++) {
        x->factors += outer && i > 0;
        collect(x, e->args[i], as, tf32 || is_tf32(e), outer);
    }
}

static int find_index(const struct view *v, const struct lang_symbol *index)
{
    for (unsigned i = 0; i < v->n; i++)
        if (v->index[i] == index)
            return (int)i;
    return -1;
}

static bool in_result(const struct finder *x, const struct lang_symbol *index)
{
    for (uint32_t i = 0; i < x->eq->nindex; i++)
        if (x->eq->index[i] == index)
            return true;
    return false;
}

/* Indices of the result that v has and w has not (shared: that both have), as one: they lie one
 * behind the other in v. without: an index that is left away; or NULL. False: they do not. */
struct group {
    uint64_t extent, stride, other; /* other: the stride in w, of shared ones */
};
static bool merge(struct finder *x, const struct view *v, const struct view *w, bool shared,
                  const struct lang_symbol *without, struct group *g)
{
    *g = (struct group){.extent = 1};
    /* from the last one on, as they lie */
    for (unsigned i = 0; i < v->n; i++) {
        int at = find_index(w, v->index[i]);
        uint64_t n = extent_of(x, v->index[i]), other = at >= 0 && shared ? w->stride[at] : 0;
        if (!in_result(x, v->index[i]) || (at >= 0) != shared || v->index[i] == without)
            continue;
        if (n == 0)
            return false;
        if (n == 1)
            continue;
        if (g->extent == 1) {
            g->stride = v->stride[i];
            g->other = other;
        } else if (v->stride[i] != g->stride * g->extent || other != g->other * g->extent) {
            return false;
        }
        g->extent *= n;
    }
    return true;
}

/* v's own indices as one; or but for the slowest, which becomes the batch if there is none: w is
 * the same for all of it. */
static bool merge_own(struct finder *x, const struct view *v, const struct view *w,
                      struct group *own, struct group *batch)
{
    const struct lang_symbol *slowest = NULL;
    if (merge(x, v, w, false, NULL, own))
        return true;
    for (unsigned i = 0; i < v->n; i++)
        if (in_result(x, v->index[i]) && find_index(w, v->index[i]) < 0) {
            slowest = v->index[i];
            batch->stride = v->stride[i];
        }
    if (batch->extent != 1 || !slowest || !merge(x, v, w, false, slowest, own))
        return false;
    batch->extent = extent_of(x, slowest);
    batch->other = 0;
    return batch->extent > 0;
}

/* ---- types ---- */

static bool is_int_type(enum dtype t)
{
    return t == DT_I8 || t == DT_I4 || t == DT_U4;
}

static bool is_small_float(enum dtype t)
{
    return dtype_is_fp8(t);
}

/* What a library multiplies the two in; false: nothing. */
static bool settle_types(struct finder *x, struct product *p)
{
    enum dtype *a = &p->a.type, *b = &p->b.type, both;
    const bool is_16[] = {*a == DT_F16 || *a == DT_BF16, *b == DT_F16 || *b == DT_BF16};
    if (is_small_float(*a) && is_small_float(*b))
        return true;
    if (*a == DT_F64 || *b == DT_F64)
        both = DT_F64;
    else if (*a == DT_F32 || *b == DT_F32)
        both = DT_F32;
    else if (is_16[0] && is_16[1])
        both = *a == *b ? *a : DT_F32;
    else if (is_16[0] || is_16[1])
        both = is_16[0] ? *a : *b;
    else if (is_int_type(*a) && is_int_type(*b))
        both = DT_I8;
    else {
        x->out->why = arena_printf(x->a, "libraries have no products of %s and %s", dtype_name(*a),
                                   dtype_name(*b));
        return false;
    }
    *a = *b = both;
    return true;
}

/* The result's: as the spec stores it, where a library can. */
static enum dtype result_type(const struct product *p, enum dtype stored)
{
    enum dtype t = p->a.type;
    if (t == DT_F64 || t == DT_F32)
        return t;
    if (t == DT_I8)
        return DT_I32;
    if (is_small_float(t))
        return stored == DT_F32 || stored == DT_BF16 ? stored : DT_F16;
    return stored == DT_F32 ? DT_F32 : t;
}

/* Of what an equation defines: an intermediate would be stored as the first result is. */
static enum dtype stored_type(const struct finder *x)
{
    const struct lang_symbol *sym = x->eq->sym;
    for (size_t i = 0; i < x->s->params.n && sym->kind == SYM_TENSOR; i++) {
        const struct lang_symbol *out = x->s->params.v[i].sym;
        if (out->kind == SYM_BUFFER && out->mode != MODE_IN)
            sym = out;
    }
    return sym->type;
}

/* ---- products ---- */

static struct product_operand operand(const struct view *v, const struct group *rows,
                                      uint64_t batch_stride, int k)
{
    return (struct product_operand){.sym = v->sym,
                                    .type = v->type,
                                    .offset = v->offset,
                                    .batch_stride = batch_stride,
                                    .row_stride = rows->stride,
                                    .k_stride = v->stride[k]};
}

/* A matrix with neither its rows nor its columns side by side is none that a library takes. */
static bool is_dense(const struct product_operand *o, uint64_t rows, uint64_t k)
{
    return o->k_stride == 1 || o->row_stride == 1 || rows == 1 || k == 1;
}

static bool pair(struct finder *x, const struct view *v, const struct view *w,
                 const struct lang_expr *sum)
{
    const struct lang_symbol *k = sum->index[0];
    struct group rows, cols, batch;
    struct product p = {.tf32 = v->tf32 && w->tf32, .k = extent_of(x, k), .eq = x->eq, .sum = sum};
    int kv = find_index(v, k), kw = find_index(w, k);
    if (p.k == 0 || !merge(x, v, w, true, NULL, &batch) || !merge_own(x, v, w, &rows, &batch))
        return false;
    struct group of_w = {batch.extent, batch.other, batch.stride};
    if (!merge_own(x, w, v, &cols, &of_w))
        return false;
    batch = (struct group){of_w.extent, of_w.other, of_w.stride};
    p.batch = batch.extent;
    p.m = rows.extent;
    p.n = cols.extent;
    p.a = operand(v, &rows, batch.stride, kv);
    p.b = operand(w, &cols, batch.other, kw);
    if (!is_dense(&p.a, p.m, p.k) || !is_dense(&p.b, p.n, p.k) || !settle_types(x, &p))
        return false;
    p.result = result_type(&p, stored_type(x));
    *VEC_PUSH(x->a, &x->out->v) = p;
    return true;
}

/* Whose index the result's last one is, has the columns. */
static bool has_columns(const struct finder *x, const struct view *v, const struct view *w)
{
    for (uint32_t i = x->eq->nindex; i > 0; i--) {
        bool in_v = find_index(v, x->eq->index[i - 1]) >= 0;
        bool in_w = find_index(w, x->eq->index[i - 1]) >= 0;
        if (in_v != in_w)
            return in_v;
    }
    return false;
}

static bool has_own_index(const struct finder *x, const struct view *v, const struct view *w)
{
    for (unsigned i = 0; i < v->n; i++)
        if (in_result(x, v->index[i]) && find_index(w, v->index[i]) < 0)
            return true;
    return false;
}

/* Are they read in two factors, neither of which has an index that is the other's own? */
static bool are_factors(const struct finder *x, const struct view *v, const struct view *w)
{
    if (v->factor == w->factor)
        return false;
    for (size_t i = 0; i < x->reads.n; i++) {
        const struct view *u = &x->reads.v[i];
        const struct view *beside = u->factor == v->factor ? v : u->factor == w->factor ? w : NULL;
        const struct view *other = beside == v ? w : v;
        for (unsigned k = 0; beside && k < u->n; k++)
            if (in_result(x, u->index[k]) && find_index(beside, u->index[k]) < 0 &&
                find_index(other, u->index[k]) >= 0)
                return false;
    }
    return true;
}

/* The first two reads along k that make a product, each with an index of its own (both) or one of
 * them. */
static bool find_pair(struct finder *x, const struct lang_expr *e, bool both)
{
    const struct lang_symbol *k = e->index[0];
    for (size_t i = 0; i < x->reads.n; i++)
        for (size_t j = i + 1; j < x->reads.n; j++) {
            const struct view *v = &x->reads.v[i], *w = &x->reads.v[j];
            const unsigned own = has_own_index(x, v, w) + has_own_index(x, w, v);
            if (find_index(v, k) < 0 || find_index(w, k) < 0 || !are_factors(x, v, w) ||
                own < (both ? 2 : 1))
                continue;
            bool turned = has_columns(x, v, w);
            if (pair(x, turned ? w : v, turned ? v : w, e))
                return true;
        }
    return false;
}

/* Of a matrix with a scale along k, too, it is the other matrix that it is multiplied with. */
static bool sum_product(struct finder *x, const struct lang_expr *e)
{
    x->reads.n = 0;
    x->others = x->factors = 0;
    collect(x, e->args[0], DT_VOID, false, true);
    return find_pair(x, e, true) || find_pair(x, e, false);
}

static void walk(struct finder *x, const struct lang_expr *e)
{
    if (e->kind == E_REDUCE && e->reduce == RED_SUM && e->nindex == 1 && sum_product(x, e))
        return;
    for (uint32_t i = 0; i < e->nargs; i++)
        walk(x, e->args[i]);
}

struct products products_find(struct arena *a, const struct spec *s, const struct bench_point *p)
{
    struct products out = {0};
    const struct lang_equations *q = spec_oracle(s);
    struct finder x = {.a = a, .s = s, .p = p, .out = &out};
    for (size_t i = 0; q && i < q->n; i++) {
        x.eq = q->v[i];
        walk(&x, x.eq->rhs);
    }
    if (out.v.n == 0 && !out.why)
        out.why = "the spec has no sum[k](a * b) of two inputs with k among their subscripts";
    out.plain = out.v.n == 1 && q->n == 1 && without_casts(q->v[0]->rhs)->kind == E_REDUCE &&
                x.others == 0 && x.reads.n == 2;
    if (out.v.n)
        out.why = NULL;
    return out;
}

double products_operations(const struct products *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->v.n; i++) {
        const struct product *q = &p->v.v[i];
        sum += 2 * (double)q->batch * (double)q->m * (double)q->n * (double)q->k;
    }
    return sum;
}
