#include <config.h>

#include "ref/product.h"

#include "ref/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

/* One row of a factor: what its products' exactness and range follow from. */
struct row {
    uint64_t n;       /* elements that are not zero */
    double most, low; /* the largest magnitude; the largest power of two that divides all, infinity:
                         all are 0 */
    double reach, raised; /* the largest ref_reach(); of elements that are raised by it */
    int bits;             /* of the longest significand */
    bool exact, is_known; /* no errors; no infinities nor NaN */
};

struct factor {
    const struct node *node;
    bool uses[MAX_RANK]; /* by the equation's index */
    uint64_t own, rows;  /* rows without and with the indices that both factors have */
    struct row *row;
    double *v, *far; /* [rows][k]; |v| + e. far NULL: all are exact */
    uint32_t *w;     /* integers */
};

struct product {
    const struct equation *eq;
    const struct reduce *r;
    const volatile int *interrupted;
    struct factor f[2];
    uint64_t k, batch;
    uint64_t
        stride[MAX_RANK]; /* of the sums, [batch][own of 0][own of 1], by the equation's index */
    double *v, *e;        /* e NaN: no value */
    int64_t *i;
    atomic_bool failed;
};

enum { MOST_VALUES = 1 << 25 }; /* of a factor */

/* ---- recognition ----------------------------------------------------------------------------- */

/* Notes which of the equation's indices n depends on; false if it depends on others but `slot`, or
 * reduces. */
static bool note_uses(const struct node *n, const struct equation *eq, uint32_t slot, bool *uses)
{
    if (n->reduce)
        return false;
    bool is_index = !n->eval && n->slot >= eq->first_index &&
                    n->slot < eq->first_index + eq->nindex;
    if (is_index && n->slot != slot) {
        bool own = false;
        for (uint32_t d = 0; d < eq->tensor->rank; d++)
            if (eq->index_slot[d] == n->slot)
                own = uses[d] = true;
        if (!own)
            return false;
    }
    for (uint32_t k = 0; k < n->nargs; k++)
        if (!note_uses(n->args[k], eq, slot, uses))
            return false;
    return !n->pad || note_uses(n->pad, eq, slot, uses);
}

static bool is_product(const struct reduce *r)
{
    const struct node *b = r->body;
    if (r->kind != RED_SUM || r->nloop != 1 || r->loop[0].lo || b->rounded)
        return false;
    if (r->is_int)
        return b->eval == eval_ibinary && b->op == OP_MUL && dtype_bits(b->type) == 32;
    return b->eval == eval_fmul && b->round.f32;
}

/* The loop's extent: the same for all elements, or 0. */
static uint64_t extent(struct frame *f, const struct equation *eq, const struct reduce *r)
{
    const struct node *hi = r->loop[0].hi;
    bool uses[MAX_RANK] = {false};
    static const uint8_t one[LANES] = {LANE_ON};
    if (!note_uses(hi, eq, UINT32_MAX, uses))
        return 0;
    for (uint32_t d = 0; d < eq->tensor->rank; d++)
        if (uses[d])
            return 0;
    if (hi->eval)
        hi->eval(f, hi, one);
    const struct vec *v = node_out(f, hi);
    bool failed = f->failed;
    f->failed = false;
    return !failed && v->e[0] == 0 && v->i[0] > 0 ? (uint64_t)v->i[0] : 0;
}

/* Numbers the rows of the factors and of the sums. */
static void number(struct product *p)
{
    const struct tensor *t = p->eq->tensor;
    uint64_t step[2] = {1, 1};
    p->batch = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        bool a = p->f[0].uses[d], b = p->f[1].uses[d];
        if (a == b)
            continue;
        p->stride[d] = step[b];
        step[b] *= t->len[d];
    }
    for (uint32_t d = t->rank; d-- > 0;) {
        if (p->f[0].uses[d] && !p->f[1].uses[d])
            p->stride[d] *= step[1];
        if (p->f[0].uses[d] && p->f[1].uses[d]) {
            p->stride[d] = p->batch * step[0] * step[1];
            p->batch *= t->len[d];
        }
    }
    for (int k = 0; k < 2; k++) {
        p->f[k].own = step[k];
        p->f[k].rows = step[k] * p->batch;
    }
}

/* ---- the factors ----------------------------------------------------------------------------- */

static bool factor_storage(struct product *p, struct factor *f)
{
    size_t n = (size_t)(f->rows * p->k);
    f->row = calloc((size_t)f->rows, sizeof *f->row);
    if (p->r->is_int)
        return f->row && (f->w = malloc(n * sizeof *f->w));
    f->v = malloc(n * sizeof *f->v);
    f->far = malloc(n * sizeof *f->far);
    return f->row && f->v && f->far;
}

/* The indices of row `number` of a factor. */
static void set_row(struct frame *f, const struct product *p, const struct factor *a, uint64_t row)
{
    const struct tensor *t = p->eq->tensor;
    uint64_t own = row % a->own, both = row / a->own;
    for (uint32_t d = t->rank; d-- > 0;) {
        if (!a->uses[d])
            continue;
        uint64_t *rest = p->f[0].uses[d] && p->f[1].uses[d] ? &both : &own;
        for (int l = 0; l < LANES; l++)
            f->slot[p->eq->index_slot[d]].i[l] = (int64_t)(t->lo[d] + *rest % t->len[d]);
        *rest /= t->len[d];
    }
}

/* The largest power of two that divides v (finite, not zero), and the bits from it to the first. */
static double lowest_bit(double v, int *bits)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    int exponent = (int)(u >> 52 & 0x7ff);
    uint64_t m = (u & 0xfffffffffffffu) | (exponent ? 0x10000000000000u : 0);
    *bits = 64 - __builtin_clzll(m) - __builtin_ctzll(m);
    return ldexp(1, __builtin_ctzll(m) + (exponent ? exponent : 1) - 1075);
}

static void note_value(struct row *w, double v, double e)
{
    int bits;
    if (!isfinite(v) || !isfinite(e)) {
        w->is_known = false;
        return;
    }
    w->exact &= e == 0;
    w->n += v != 0 || e != 0;
    w->most = fmax(w->most, fabs(v) + e);
    if (v == 0)
        return;
    double low = lowest_bit(v, &bits);
    w->low = fmin(w->low, low);
    w->bits = bits > w->bits ? bits : w->bits;
}

static void note_reach(const struct frame *f, const struct product *p, const struct factor *a,
                       struct row *w, int lane)
{
    bool raised = false;
    double reach = ref_reach(f, p->r, a->node, lane, &raised);
    w->is_known &= isfinite(reach);
    w->reach = fmax(w->reach, reach);
    if (raised)
        w->raised = fmax(w->raised, reach);
}

/* Elements base .. base + n of a row, from the lanes. */
static void keep(const struct frame *f, const struct product *p, struct factor *a, uint64_t row,
                 uint64_t base, int n, const struct vec *x)
{
    uint64_t at = row * p->k + base;
    struct row *w = &a->row[row];
    for (int l = 0; l < n; l++) {
        if (a->w) {
            a->w[at + (uint64_t)l] = (uint32_t)(uint64_t)x->i[l];
            w->is_known &= x->e[l] == 0;
            continue;
        }
        note_value(w, x->v[l], x->e[l]);
        if (p->r->sums.truncation)
            note_reach(f, p, a, w, l);
        a->v[at + (uint64_t)l] = x->v[l];
        a->far[at + (uint64_t)l] = fabs(x->v[l]) + x->e[l];
    }
}

struct filling {
    struct product *p;
    struct factor *a;
    struct program *program;
};

static void fill_rows(void *ctx, uint64_t chunk, uint64_t begin, uint64_t end)
{
    struct filling *g = ctx;
    struct product *p = g->p;
    struct frame f;
    (void)chunk;
    if (p->failed)
        return;
    if (!ref_frame_open(&f, g->program, false)) {
        p->failed = true;
        return;
    }
    f.eq = (struct equation *)(uintptr_t)p->eq;
    for (uint64_t row = begin; row < end && !f.failed; row++) {
        g->a->row[row] = (struct row){.low = INFINITY, .exact = true, .is_known = true};
        set_row(&f, p, g->a, row);
        for (uint64_t base = 0; base < p->k && !f.failed; base += LANES) {
            uint8_t mask[LANES] = {0};
            int n = p->k - base < LANES ? (int)(p->k - base) : LANES;
            memset(mask, LANE_ON, (size_t)n);
            for (int l = 0; l < LANES; l++)
                f.slot[p->r->loop[0].slot].i[l] = (int64_t)base + l;
            if (g->a->node->eval)
                g->a->node->eval(&f, g->a->node, mask);
            keep(&f, p, g->a, row, base, n, node_out(&f, g->a->node));
        }
        if (p->interrupted && *p->interrupted)
            break;
    }
    if (f.failed || (p->interrupted && *p->interrupted))
        p->failed = true;
    ref_frame_close(&f);
}

static bool fill_factor(struct product *p, struct factor *a, struct program *program,
                        unsigned threads)
{
    struct filling g = {p, a, program};
    uint64_t chunk = 1 + 65536 / p->k;
    if (!factor_storage(p, a))
        return false;
    ref_parallel(threads, a->rows, chunk, fill_rows, &g);
    bool exact = true;
    for (uint64_t k = 0; k < a->rows && !p->failed; k++)
        exact &= a->row[k].exact;
    if (exact) {
        free(a->far);
        a->far = NULL;
    }
    return !p->failed;
}

/* ---- the sums -------------------------------------------------------------------------------- */

enum { TALL = 16, WIDE = 32, LONG = 256 }; /* rows, columns and terms that are kept near */

typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_bits __attribute__((vector_size(16)));
typedef uint32_t four __attribute__((vector_size(16)));

static inline pair load(const double *x)
{
    pair v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline pair magnitude(pair v)
{
    return (pair)((pair_bits)v & (pair_bits){INT64_MAX, INT64_MAX});
}

/* n terms of the sums of two rows times two rows, and of their magnitudes. */
static void two_by_two(const double *a0, const double *a1, const double *b0, const double *b1,
                       uint64_t n, double *s, double *m)
{
    pair sum[4] = {{0}}, size[4] = {{0}};
    uint64_t k = 0;
    for (; k + 2 <= n; k += 2) {
        pair x0 = load(a0 + k), x1 = load(a1 + k), y0 = load(b0 + k), y1 = load(b1 + k);
        pair p[4] = {x0 * y0, x0 * y1, x1 * y0, x1 * y1};
        for (int q = 0; q < 4; q++) {
            sum[q] += p[q];
            size[q] += magnitude(p[q]);
        }
    }
    for (int q = 0; q < 4; q++) {
        const double *x = q < 2 ? a0 : a1, *y = q & 1 ? b1 : b0;
        double last = k < n ? x[k] * y[k] : 0;
        s[q] += sum[q][0] + sum[q][1] + last;
        m[q] += size[q][0] + size[q][1] + fabs(last);
    }
}

static uint32_t dot_words(const uint32_t *a, const uint32_t *b, uint64_t n)
{
    four sum = {0};
    uint64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        four x, y;
        memcpy(&x, a + k, sizeof x);
        memcpy(&y, b + k, sizeof y);
        sum += x * y;
    }
    uint32_t s = sum[0] + sum[1] + sum[2] + sum[3];
    for (; k < n; k++)
        s += a[k] * b[k];
    return s;
}

struct tile {
    double s[TALL][WIDE], m[TALL][WIDE], far[TALL][WIDE];
};

/* The sums of rows times columns of the factors' elements x and y, from a0 and b0 on; m: of their
 * magnitudes. */
static void multiply(const struct product *p, const double *x, const double *y, uint64_t rows,
                     uint64_t columns, double (*s)[WIDE], double (*m)[WIDE])
{
    for (uint64_t base = 0; base < p->k; base += LONG) {
        uint64_t n = p->k - base < LONG ? p->k - base : LONG;
        for (uint64_t i = 0; i < rows; i += 2)
            for (uint64_t j = 0; j < columns; j += 2) {
                uint64_t i1 = i + 1 < rows ? i + 1 : i, j1 = j + 1 < columns ? j + 1 : j;
                double sum[4] = {0}, size[4] = {0};
                two_by_two(x + i * p->k + base, x + i1 * p->k + base, y + j * p->k + base,
                           y + j1 * p->k + base, n, sum, size);
                const uint64_t at[4][2] = {{i, j}, {i, j1}, {i1, j}, {i1, j1}};
                for (int q = 0; q < 4; q++) {
                    if ((q >= 2 && i1 == i) || (q & 1 && j1 == j))
                        continue;
                    s[at[q][0]][at[q][1]] += sum[q];
                    m[at[q][0]][at[q][1]] += size[q];
                }
            }
    }
}

/* One sum's value and bound, from s, the sum of the products, m, of their magnitudes, and far, of
 * the largest that they may have. */
static void finish(const struct product *p, const struct row *a, const struct row *b, double s,
                   double m, double far, double *v, double *e)
{
    const struct reduce *r = p->r;
    const struct rounding *o = &r->body->round;
    double n = (double)(a->n < b->n ? a->n : b->n), low = a->low * b->low;
    bool exact = a->exact && b->exact;
    *v = 0;
    *e = NAN;
    if (!a->is_known || !b->is_known || !(a->most * b->most < o->limit * 0.999) ||
        (r->scaled && far > o->limit * 0x1p-40) ||
        (r->rescaled && n * fmax(a->most, b->most) > o->limit * 0x1p-40))
        return;
    struct ref_sum sum = {.s = s, .n = a->n < b->n ? a->n : b->n, .terms = p->k};
    sum.far = fmax(a->raised * b->reach, a->reach * b->raised);
    /* the factors' errors; far and m are sums of doubles themselves */
    if (!exact)
        sum.es = far - m + ((double)p->k + 4) * 0x1p-52 * far;
    /* the products' roundings to f32 */
    bool fits = a->bits + b->bits <= 24 && low >= 0x1p-149;
    if (!exact || !(fits || n == 0))
        sum.es += o->unit * far + n * o->tiny;
    const bool is_whole = exact && a->bits + b->bits <= 22 && sum.far == 0;
    if (r->sums.products && n > 0 && !(is_whole && ref_has_whole_parts(&r->sums)))
        sum.es += (double)r->sums.products * o->unit * (far + n * sum.far) + n * o->tiny;
    sum.quantum = sum.es == 0 && isfinite(low) ? low : 0;
    sum.m = m + sum.es;
    sum.own = ((double)p->k + 4) * 0x1p-53 * m;
    sum.up = (m + s) / 2 + sum.own;
    ref_sum_result(r, &sum, v, e);
}

static void float_tile(struct product *p, struct tile *t, uint64_t a0, uint64_t rows, uint64_t b0,
                       uint64_t columns)
{
    struct factor *a = &p->f[0], *b = &p->f[1];
    memset(t, 0, sizeof *t);
    multiply(p, a->v + a0 * p->k, b->v + b0 * p->k, rows, columns, t->s, t->m);
    bool errors = a->far || b->far;
    if (errors) {
        double rest[TALL][WIDE] = {{0}};
        multiply(p, (a->far ? a->far : a->v) + a0 * p->k, (b->far ? b->far : b->v) + b0 * p->k,
                 rows, columns, rest, t->far);
    }
    uint64_t batch = b0 / b->own;
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++) {
            uint64_t at = ((batch * a->own) + (a0 + i) % a->own) * b->own + (b0 + j) % b->own;
            finish(p, &a->row[a0 + i], &b->row[b0 + j], t->s[i][j], t->m[i][j],
                   errors ? t->far[i][j] : t->m[i][j], &p->v[at], &p->e[at]);
        }
}

static void word_tile(struct product *p, uint64_t a0, uint64_t rows, uint64_t b0, uint64_t columns)
{
    struct factor *a = &p->f[0], *b = &p->f[1];
    uint64_t batch = b0 / b->own;
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++) {
            uint64_t at = ((batch * a->own) + (a0 + i) % a->own) * b->own + (b0 + j) % b->own;
            uint32_t s = dot_words(a->w + (a0 + i) * p->k, b->w + (b0 + j) * p->k, p->k);
            p->i[at] = ref_wrap(p->r->body->type, (int64_t)s);
            p->e[at] = a->row[a0 + i].is_known && b->row[b0 + j].is_known ? 0 : NAN;
        }
}

/* Rows begin .. end of the first factor, TALL of them at most and of one batch, times all of the
 * second's. */
static void sum_rows(void *ctx, uint64_t chunk, uint64_t begin, uint64_t end)
{
    struct product *p = ctx;
    struct tile *t = malloc(sizeof *t);
    (void)chunk;
    for (uint64_t a0 = begin; t && a0 < end && !p->failed;) {
        uint64_t batch = a0 / p->f[0].own, last = (batch + 1) * p->f[0].own;
        uint64_t rows = (end < last ? end : last) - a0;
        for (uint64_t j = 0; j < p->f[1].own; j += WIDE) {
            uint64_t left = p->f[1].own - j, columns = left < WIDE ? left : WIDE;
            uint64_t b0 = batch * p->f[1].own + j;
            if (p->r->is_int)
                word_tile(p, a0, rows, b0, columns);
            else
                float_tile(p, t, a0, rows, b0, columns);
        }
        a0 += rows;
        if (p->interrupted && *p->interrupted)
            p->failed = true;
    }
    if (!t)
        p->failed = true;
    free(t);
}

static bool sum_storage(struct product *p)
{
    size_t n = (size_t)(p->batch * p->f[0].own * p->f[1].own);
    p->e = malloc(n * sizeof *p->e);
    if (p->r->is_int)
        p->i = malloc(n * sizeof *p->i);
    else
        p->v = malloc(n * sizeof *p->v);
    return p->e && (p->v || p->i);
}

/* ---- together -------------------------------------------------------------------------------- */

/* Are there fewer values of the factors than terms, by far? Of one row of a sample there are about
 * as many, but each is then taken once and not for a term of the general kind. */
static bool pays(const struct product *p)
{
    const struct tensor *t = p->eq->tensor;
    for (int k = 0; k < 2; k++)
        if (p->f[k].rows > MOST_VALUES / p->k)
            return false;
    return p->f[0].rows + p->f[1].rows <= (t->is_part ? t->n * 2 : t->n / 4);
}

struct product *ref_product_new(struct frame *f, struct equation *eq, const struct reduce *r,
                                unsigned threads)
{
    if (!is_product(r))
        return NULL;
    struct product *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->eq = eq;
    p->r = r;
    p->interrupted = f->interrupted;
    bool good = (p->k = extent(f, eq, r)) > 0;
    for (int k = 0; k < 2 && good; k++) {
        p->f[k].node = r->body->args[k];
        good = note_uses(p->f[k].node, eq, r->loop[0].slot, p->f[k].uses);
    }
    if (good)
        number(p);
    good = good && pays(p) && sum_storage(p);
    for (int k = 0; k < 2 && good; k++)
        good = fill_factor(p, &p->f[k], f->p, threads);
    if (good)
        ref_parallel(threads, p->f[0].rows, TALL, sum_rows, p);
    if (!good || p->failed) {
        ref_product_free(p);
        return NULL;
    }
    return p;
}

void ref_product_free(struct product *p)
{
    for (int k = 0; p && k < 2; k++) {
        free(p->f[k].row);
        free(p->f[k].v);
        free(p->f[k].far);
        free(p->f[k].w);
    }
    if (p) {
        free(p->v);
        free(p->e);
        free(p->i);
    }
    free(p);
}

void ref_product_read(const struct product *p, const struct frame *f, const uint8_t *mask,
                      struct vec *o, uint8_t *left)
{
    const struct equation *eq = p->eq;
    for (int l = 0; l < LANES; l++) {
        uint64_t at = 0;
        for (uint32_t d = 0; d < eq->tensor->rank; d++)
            at += ((uint64_t)f->slot[eq->index_slot[d]].i[l] - eq->tensor->lo[d]) * p->stride[d];
        left[l] = LANE_OFF;
        if (!mask[l])
            continue;
        if (isnan(p->e[at])) {
            left[l] = mask[l];
            continue;
        }
        if (p->i)
            o->i[l] = p->i[at];
        else
            o->v[l] = p->v[at];
        o->e[l] = p->e[at];
    }
}

uint64_t ref_product_terms(const struct product *p)
{
    return p->batch * p->f[0].own * p->f[1].own * p->k;
}
