#include <config.h>

#include "ref/compare.h"
#include "ref/parallel.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

double compare_ulp(enum dtype t, double v)
{
    double tiny = dtype_smallest(t);
    v = fabs(v);
    if (!isfinite(v) || v == 0)
        return tiny;
    int exponent;
    frexp(v, &exponent);
    double u = ldexp(1, exponent - (int)dtype_precision(t));
    return u > tiny ? u : tiny;
}

void ref_allowed(enum dtype t, double v, double e, double *lo, double *hi, bool *any)
{
    *any = e == INFINITY;
    *lo = *hi = dtype_round(t, v);
    if (e == 0 || *any || isnan(v))
        return;
    *lo = dtype_round(t, v - e);
    *hi = dtype_round(t, v + e);
}

void compare_position(const struct compare_result *res, uint64_t flat, char *out, size_t size)
{
    uint64_t index[64];
    uint32_t rank = res->rank < 64 ? res->rank : 64;
    for (uint32_t d = rank; d-- > 0;) {
        index[d] = res->shape[d] ? flat % res->shape[d] : 0;
        flat = res->shape[d] ? flat / res->shape[d] : 0;
    }
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t d = 0; d < rank && len < size; d++) {
        int w =
            snprintf(out + len, size - len, "%s%llu", d ? ", " : "", (unsigned long long)index[d]);
        len += w > 0 ? (size_t)w : 0;
    }
}

/* ---- the picture ----------------------------------------------------------------------------- */

static uint64_t cell(uint64_t n, uint64_t cells)
{
    uint64_t size = 1;
    while ((n + size - 1) / size > cells)
        size *= 2;
    return size;
}

static void map_start(struct compare_result *res)
{
    uint64_t cols = res->rank ? res->shape[res->rank - 1] : 1;
    uint64_t rows = cols ? res->count / cols : 0;
    if (res->rank == 1) { /* a vector is shown in lines */
        cols = res->count < 4096
                   ? 64
                   : cell(res->count, COMPARE_MAP_ROWS * COMPARE_MAP_COLS) * COMPARE_MAP_COLS;
        rows = (res->count + cols - 1) / cols;
    }
    res->cell_rows = cell(rows ? rows : 1, COMPARE_MAP_ROWS);
    res->cell_cols = cell(cols ? cols : 1, COMPARE_MAP_COLS);
    res->map_rows = rows ? (uint32_t)((rows - 1) / res->cell_rows + 1) : 0;
    res->map_cols = cols ? (uint32_t)((cols - 1) / res->cell_cols + 1) : 0;
}

static void map_mark(struct compare_result *res, uint64_t flat)
{
    uint64_t cols = res->rank ? res->shape[res->rank - 1] : 1;
    if (res->rank == 1)
        cols = res->cell_cols * COMPARE_MAP_COLS;
    uint64_t row = flat / cols / res->cell_rows, col = flat % cols / res->cell_cols;
    if (row < COMPARE_MAP_ROWS && col < COMPARE_MAP_COLS)
        res->map[row][col]++;
}

/* ---- the stretches --------------------------------------------------------------------------- */

static uint64_t divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* a covers b, too. */
static void stretch_join(struct compare_stretch *a, const struct compare_stretch *b)
{
    uint64_t apart = a->first > b->first ? a->first - b->first : b->first - a->first;
    a->step = divisor(divisor(a->step, b->step), apart);
    a->first = a->first < b->first ? a->first : b->first;
    a->last = a->last > b->last ? a->last : b->last;
}

static void stretch_mark(struct compare_result *res, uint64_t flat, bool is_first)
{
    for (uint32_t d = res->rank; d-- > 0;) {
        uint64_t x = res->shape[d] ? flat % res->shape[d] : 0;
        flat = res->shape[d] ? flat / res->shape[d] : 0;
        if (d >= COMPARE_RANK)
            continue;
        if (is_first)
            res->stretch[d] = (struct compare_stretch){x, x, 0};
        else
            stretch_join(&res->stretch[d], &(struct compare_stretch){x, x, 0});
    }
}

/* ---- one element ----------------------------------------------------------------------------- */

/* An output with its reference. */
struct comparison {
    struct ref *r;
    size_t output;
    const struct ref_output *o;
    const void *got;
    const struct tolerance *tol;
    struct part *part;    /* one per chunk */
    pthread_mutex_t lock; /* ref_accepts_index() is for one thread at a time */
};

/* What the statistics need beside the counts. */
struct tally {
    struct compare_result *res;
    const struct tolerance *tol;
    double sum_error, sum_want;
    uint64_t finite;
    double least, most; /* of the reference's finite values */
    double sum_bound;
    bool constant, zero, seen;
    double first;
    int64_t first_int;
    struct comparison *in; /* of an output with its reference; NULL: of two arrays */
};

static void note_miss(struct compare_result *res, const struct compare_miss *m)
{
    stretch_mark(res, m->flat, res->wrong == 0);
    res->wrong++;
    map_mark(res, m->flat);
    if (res->nmiss < COMPARE_MISSES)
        res->miss[res->nmiss++] = *m;
}

static bool within_tolerance(const struct tally *t, enum dtype type, double got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    double d = fabs(got - want);
    return d <= t->tol->atol + t->tol->rtol * fabs(want) ||
           (t->tol->ulp >= 0 && dtype_is_float(type) && d <= t->tol->ulp * compare_ulp(type, want));
}

static bool same_value(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void spread_float(struct tally *t, double want)
{
    if (!t->seen)
        t->first = want;
    t->constant &= same_value(want, t->first);
    t->zero &= want == 0;
    t->seen = true;
    if (!isfinite(want))
        return;
    t->least = fmin(t->least, want);
    t->most = fmax(t->most, want);
}

/* How much of e it takes to come from v to what is stored as got. */
static double fraction_of(const struct tally *t, double got, double v, double e, bool pass)
{
    bool rounds = !t->in || t->in->o->rounds;
    double half = rounds ? compare_ulp(t->res->type, (got + v) / 2) / 2 : 0;
    double need = fmax(fabs(got - v) - half, 0);
    double part = e > 0 && isfinite(need / e) ? need / e : 0;
    if (pass)
        return fmin(part, 1);
    return part > 0 ? fmax(part, 1) : INFINITY;
}

/* v, e: the reference; accepted within lo..hi. */
static void float_element(struct tally *t, uint64_t flat, double got, uint64_t bits, double v,
                          double e)
{
    struct compare_result *res = t->res;
    double lo, hi;
    bool any;
    ref_allowed(res->type, v, e, &lo, &hi, &any);
    double want = dtype_round(res->type, v);
    spread_float(t, want);
    res->compared++;
    res->unbounded += any;
    if (any && !t->tol->given)
        return;
    res->exact += lo == hi || isnan(want);
    /* errors are measured from the unrounded reference, but where the type saturates */
    double from = fabs(v) <= dtype_max(res->type) ? v : want;
    double d = isnan(got) || isnan(v) || (isinf(got) && isinf(v)) ? 0 : fabs(got - from);
    if (isfinite(got) && isfinite(from)) {
        t->sum_error += d * d;
        t->sum_want += from * from;
        t->finite++;
        t->sum_bound += isfinite(hi - lo) ? (hi - lo) / 2 : 0;
        res->max_abs = fmax(res->max_abs, d);
        res->max_ulp = fmax(res->max_ulp, d / compare_ulp(res->type, from));
    }
    bool pass = t->tol->given ? within_tolerance(t, res->type, got, want)
                : isnan(want) ? isnan(got) != 0
                              : got >= lo && got <= hi;
    double fraction = fraction_of(t, got, from, e, pass);
    if (fraction > res->max_bound) {
        res->max_bound = fraction;
        res->worst = flat;
    }
    if (!pass)
        note_miss(res,
                  &(struct compare_miss){
                      .flat = flat, .got = got, .want = want, .lo = lo, .hi = hi, .bits = bits});
}

static double int_value(enum dtype t, int64_t v)
{
    return t == DT_U64 ? (double)(uint64_t)v : (double)v;
}

/* argmax: whether the element there may be the largest; else whether the value is near enough. */
static bool accepts(struct comparison *c, uint64_t flat, int64_t got, bool near)
{
    if (!ref_has_index(c->r, c->output))
        return near;
    pthread_mutex_lock(&c->lock);
    bool ok = ref_accepts_index(c->r, c->output, flat, got);
    pthread_mutex_unlock(&c->lock);
    return ok;
}

static void int_element(struct tally *t, uint64_t flat, int64_t got, uint64_t bits, int64_t want,
                        double e)
{
    struct compare_result *res = t->res;
    double x = int_value(res->type, got), y = int_value(res->type, want);
    if (!t->seen)
        t->first_int = want;
    t->constant &= want == t->first_int;
    t->zero &= want == 0;
    t->seen = true;
    res->compared++;
    res->unbounded += e == INFINITY;
    if (e == INFINITY && !t->tol->given)
        return;
    res->exact += e == 0;
    t->least = fmin(t->least, y);
    t->most = fmax(t->most, y);
    double d = got == want ? 0 : fmax(fabs(x - y), 1);
    t->sum_error += d * d;
    t->sum_want += y * y;
    t->sum_bound += e;
    t->finite++;
    res->max_abs = fmax(res->max_abs, d);
    res->max_ulp = fmax(res->max_ulp, d);
    bool pass = got == want || (t->tol->given    ? within_tolerance(t, res->type, x, y)
                                : e > 0 && t->in ? accepts(t->in, flat, got, d <= e)
                                                 : d <= e);
    double fraction = d == 0 ? 0 : e > 0 ? d / e : pass ? 0 : INFINITY;
    if (fraction > res->max_bound) {
        res->max_bound = fraction;
        res->worst = flat;
    }
    if (!pass)
        note_miss(res, &(struct compare_miss){
                           .flat = flat, .is_int = true, .igot = got, .iwant = want, .bits = bits});
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static void start(struct compare_result *res, enum dtype t, uint32_t rank, const uint64_t *shape,
                  uint64_t count)
{
    memset(res, 0, sizeof *res);
    res->type = t;
    res->rank = rank;
    res->shape = shape;
    res->count = count;
    map_start(res);
}

/* Do the bounds say nothing, since they are wider than the values are apart? An intermediate may be
 * much the same everywhere, as the sum of a softmax is: there they are wider than its magnitude,
 * too. */
static bool is_wide(const struct tally *t, bool is_output)
{
    const struct compare_result *res = t->res;
    const double bound = t->finite > 1 ? t->sum_bound / (double)t->finite : 0;
    return res->compared > 1 && !t->tol->given && bound > 0 && bound >= t->most - t->least &&
           (is_output || bound >= res->rms_want);
}

static void verdict(struct tally *t, bool inputs_vary, bool is_output)
{
    struct compare_result *res = t->res;
    double n = t->finite ? (double)t->finite : 1;
    res->rms_error = sqrt(t->sum_error / n);
    res->rms_want = sqrt(t->sum_want / n);
    if (res->wrong) {
        res->status = COMPARE_FAIL;
        return;
    }
    res->status = COMPARE_MISTRUST;
    if (!res->compared)
        res->why = "nothing to compare: the output is empty";
    else if ((res->is_wide = res->unbounded * 2 > res->compared))
        res->why = "the reference allows any value for most elements";
    else if (inputs_vary && res->compared > 1 && t->zero)
        res->why = "the reference is all zero, although the inputs are not constant";
    else if (inputs_vary && res->compared > 1 && t->constant)
        res->why = "the reference is constant, although the inputs are not";
    else if ((res->is_wide = is_wide(t, is_output)))
        res->why = "the bound is wider than the spread of the values";
    else
        res->status = COMPARE_PASS;
}

static uint64_t raw_bits(enum dtype t, const void *p, uint64_t k)
{
    uint64_t b = 0;
    unsigned size = dtype_bits(t) / 8;
    if (dtype_bits(t) < 8)
        return (uint64_t)dtype_get_int(t, p, (size_t)k) & 15;
    memcpy(&b, (const char *)p + k * size, size);
    return b;
}

static struct tally tally_of(struct compare_result *res, const struct tolerance *tol)
{
    return (struct tally){.res = res,
                          .tol = tol,
                          .constant = true,
                          .zero = true,
                          .least = INFINITY,
                          .most = -INFINITY};
}

/* One chunk's results, and all that they are made from. */
struct part {
    struct tally t;
    struct compare_result res;
};

static void compare_chunk(void *ctx, uint64_t chunk, uint64_t begin, uint64_t end)
{
    struct comparison *c = ctx;
    const struct ref_output *o = c->o;
    struct part *p = &c->part[chunk];
    start(&p->res, o->type, o->rank, o->shape, o->count);
    p->t = tally_of(&p->res, c->tol);
    p->t.in = c;
    for (uint64_t k = begin; k < end; k++) {
        uint64_t flat = o->where ? o->where[k] : k;
        uint64_t bits = raw_bits(o->type, c->got, flat);
        if (o->v)
            float_element(&p->t, flat, dtype_get(o->type, c->got, (size_t)flat), bits, o->v[k],
                          o->e[k]);
        else
            int_element(&p->t, flat, dtype_get_int(o->type, c->got, (size_t)flat), bits, o->i[k],
                        o->e[k]);
    }
}

/* Adds b, which comes after a. */
static void merge(struct tally *a, const struct tally *b)
{
    struct compare_result *x = a->res;
    const struct compare_result *y = b->res;
    a->constant =
        a->constant && b->constant &&
        (!a->seen || !b->seen || (a->first_int == b->first_int && same_value(a->first, b->first)));
    if (!a->seen) {
        a->first = b->first;
        a->first_int = b->first_int;
    }
    a->zero &= b->zero;
    a->seen |= b->seen;
    a->sum_error += b->sum_error;
    a->sum_want += b->sum_want;
    a->sum_bound += b->sum_bound;
    a->finite += b->finite;
    a->least = fmin(a->least, b->least);
    a->most = fmax(a->most, b->most);
    x->compared += y->compared;
    for (uint32_t d = 0; y->wrong && d < COMPARE_RANK; d++) {
        if (x->wrong)
            stretch_join(&x->stretch[d], &y->stretch[d]);
        else
            x->stretch[d] = y->stretch[d];
    }
    x->wrong += y->wrong;
    x->unbounded += y->unbounded;
    x->exact += y->exact;
    x->max_abs = fmax(x->max_abs, y->max_abs);
    x->max_ulp = fmax(x->max_ulp, y->max_ulp);
    if (y->max_bound > x->max_bound) {
        x->max_bound = y->max_bound;
        x->worst = y->worst;
    }
    for (size_t k = 0; k < y->nmiss && x->nmiss < COMPARE_MISSES; k++)
        x->miss[x->nmiss++] = y->miss[k];
    for (int i = 0; y->wrong && i < COMPARE_MAP_ROWS; i++)
        for (int j = 0; j < COMPARE_MAP_COLS; j++)
            x->map[i][j] += y->map[i][j];
}

void compare_output(struct ref *r, size_t output, const void *got, const struct tolerance *tol,
                    bool inputs_vary, struct compare_result *res)
{
    const struct ref_output *o = ref_output(r, output);
    uint64_t chunk = (uint64_t)1 << 18, parts = (o->n + chunk - 1) / chunk;
    struct comparison c = {.r = r,
                           .output = output,
                           .o = o,
                           .got = got,
                           .tol = tol,
                           .lock = PTHREAD_MUTEX_INITIALIZER};
    c.part = calloc(parts ? (size_t)parts : 1, sizeof *c.part);
    start(res, o->type, o->rank, o->shape, o->count);
    if (!c.part) {
        res->status = COMPARE_MISTRUST;
        res->why = "not enough memory to compare";
        return;
    }
    ref_parallel(0, o->n, chunk, compare_chunk, &c);
    struct tally all = tally_of(res, tol);
    for (uint64_t k = 0; k < parts; k++)
        merge(&all, &c.part[k].t);
    free(c.part);
    pthread_mutex_destroy(&c.lock);
    res->rows = o->rows;
    verdict(&all, inputs_vary, o->param != NULL);
}

void compare_arrays(enum dtype type, uint32_t rank, const uint64_t *shape, const void *want,
                    const void *got, const struct tolerance *tol, struct compare_result *res)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; d++)
        count *= shape[d];
    start(res, type, rank, shape, count);
    struct tally t = tally_of(res, tol);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t a = raw_bits(type, want, k), b = raw_bits(type, got, k);
        uint64_t wrong = res->wrong;
        if (dtype_is_float(type))
            float_element(&t, k, dtype_get(type, got, (size_t)k), b,
                          dtype_get(type, want, (size_t)k), 0);
        else
            int_element(&t, k, dtype_get_int(type, got, (size_t)k), b,
                        dtype_get_int(type, want, (size_t)k), 0);
        /* bit for bit: zeros of different sign differ, NaNs of different payload too */
        if (!tol->given && a != b && res->wrong == wrong) {
            double w = dtype_is_float(type) ? dtype_get(type, want, (size_t)k) : 0;
            double g = dtype_is_float(type) ? dtype_get(type, got, (size_t)k) : 0;
            note_miss(res, &(struct compare_miss){
                               .flat = k, .got = g, .want = w, .lo = w, .hi = w, .bits = b});
        }
    }
    verdict(&t, false, true);
}
