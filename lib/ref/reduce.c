#include <config.h>

#include "ref/acc.h"
#include "ref/product.h"

#include <stdlib.h>

enum { MET_NAN = 1, MET_ZERO = 2, MET_INF = 4 };

struct acc *ref_acc_new(uint32_t n)
{
    return calloc(n ? n : 1, sizeof(struct acc));
}

static bool wants_max(enum lang_reduce k)
{
    return k == RED_MAX || k == RED_ARGMAX;
}

void ref_acc_start(const struct reduce *r, struct acc *a)
{
    memset(a, 0, sizeof *a);
    enum dtype t = r->body->type;
    for (int l = 0; l < LANES; l++) {
        a->quantum[l] = INFINITY;
        switch (r->kind) {
        case RED_PROD:
            a->s[l] = a->m[l] = a->top[l] = a->sure[l] = 1;
            a->i[l] = 1;
            break;
        case RED_ALL: a->i[l] = 1; break;
        case RED_MAX:
        case RED_MIN:
        case RED_ARGMAX:
        case RED_ARGMIN:
            a->s[l] = wants_max(r->kind) ? -INFINITY : INFINITY;
            if (r->is_int)
                a->i[l] = wants_max(r->kind) ? dtype_imin(t) : (int64_t)dtype_imax(t);
            a->sure[l] = a->top[l] = -INFINITY;
            break;
        default: break;
        }
    }
}

/* ---- one more term --------------------------------------------------------------------------- */

/* The largest power of two that divides v (v finite, not zero). */
static double lowest_bit(double v)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    int exponent = (int)(u >> 52 & 0x7ff);
    uint64_t m = (u & 0xfffffffffffffu) | (exponent ? 0x10000000000000u : 0);
    return ldexp(1, __builtin_ctzll(m) + (exponent ? exponent : 1) - 1075);
}

/* More than parts of tf32 lose. */
enum { BY_BF16 = 48 };

/* What a product loses in parts of tf32, up to products times u of itself (of reach, where a factor
 * is subnormal): nothing where it has 22 bits, because then one factor has at most 11 and the other
 * at most 22; or where one of the parts' products is of bf16, 19, because then a factor that has a
 * second part has at most 19, of which that has 8, and the other has at most 8. An infinity times
 * parts of both signs is NaN. */
static double parts_loss(const struct reduce *r, double v, double e, double reach)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    const int bits = r->sums.products > BY_BF16 ? 19 : 22;
    const bool is_short = ref_has_whole_parts(&r->sums) &&
                          !(u & (((uint64_t)1 << (53 - bits)) - 1));
    if (!r->sums.products || isnan(v) || (e == 0 && is_short && reach == 0))
        return 0;
    if (isinf(v) || isinf(reach))
        return INFINITY;
    double size = fabs(v) + e;
    return (double)r->sums.products * r->round.unit * (reach > size ? reach : size) + r->round.tiny;
}

/* A term's magnitude without a factor that scales it down. */
static double bare_term(const struct frame *f, const struct reduce *r, const struct vec *v, int l)
{
    const double size = fabs(v->v[l]) + (r->rescaled ? v->e[l] : 0);
    return r->scaled && size > 0 ? size / fmin(ref_scale(f, r, r->body, l), 1) : size;
}

/* Might a sum of such terms overflow, without a factor that scales them down? */
static bool is_huge(const struct frame *f, const struct reduce *r, const struct vec *v, int l)
{
    const double size = r->rescaled ? bare_term(f, r, v, l) : fabs(v->v[l]);
    return r->scaled && isfinite(v->v[l]) && size > r->round.limit * 0x1p-40;
}

/* A term of a sum by tensor cores, in the lane that its body was evaluated in: what it loses
 * itself; notes how far its exponent reaches. */
static double tensor_term(const struct frame *f, const struct reduce *r, struct acc *a, int l,
                          const struct vec *v, int from)
{
    bool raised = false;
    double reach = ref_reach(f, r, r->body, from, &raised);
    if (!raised && isfinite(reach))
        reach = 0;
    a->far[l] = reach > a->far[l] && isfinite(reach) ? reach : a->far[l];
    a->terms[l]++;
    return parts_loss(r, v->v[from], v->e[from], reach);
}

static void sum_term(struct acc *a, int l, double v, double e, double precision)
{
    /* Neumaier: the compensation keeps the sum's own error far below the bound */
    double s = a->s[l] + v;
    a->c[l] += fabs(a->s[l]) >= fabs(v) ? (a->s[l] - s) + v : (v - s) + a->s[l];
    a->s[l] = s;
    a->m[l] += isfinite(v) && isfinite(e) ? fabs(v) + e : 0; /* infinite beyond f64 */
    a->up[l] += v > 0 && isfinite(v) ? v : 0;
    a->es[l] += e;
    a->n[l] += v != 0 || e != 0; /* adding a zero rounds nothing */
    if (a->quantum[l] > 0) {
        if (e != 0 || !isfinite(v))
            a->quantum[l] = 0;
        else if (v != 0)
            a->quantum[l] = fmin(a->quantum[l], lowest_bit(v));
        if (a->m[l] > precision * a->quantum[l])
            a->quantum[l] = 0;
    }
}

static void prod_term(struct acc *a, int l, double v, double e)
{
    double p = a->s[l] * v, far = fabs(v) + e, near = fmax(fabs(v) - e, 0);
    /* exact while the factors are short enough */
    bool narrow = (double)(float)a->s[l] == a->s[l] && (double)(float)v == v;
    if (e != 0 || !narrow)
        a->quantum[l] = 0;
    if (e == 0)
        a->met[l] |= isnan(v) ? MET_NAN : v == 0 ? MET_ZERO : isinf(v) ? MET_INF : 0;
    a->s[l] = p;
    a->m[l] *= far * (1 + 0x1p-52);
    /* what the worst orders come to on their way */
    a->top[l] *= isfinite(far) ? fmax(far, 1) : 1;
    a->sure[l] *= near > 0 ? fmin(near, 1) : 1;
    a->n[l]++;
}

/* The best value lies between the greatest lower and the greatest upper bound (of -v for min). */
static void extreme_term(struct acc *a, int l, bool is_max, double v, double e)
{
    a->n[l]++;
    if (isnan(v) && e == 0) /* as max(): a number beats a NaN */
        return;
    double x = is_max ? v : -v, best = is_max ? a->s[l] : -a->s[l];
    if (x > best)
        a->s[l] = v;
    a->sure[l] = fmax(a->sure[l], x - e);
    a->top[l] = fmax(a->top[l], x + e);
    if (e == INFINITY)
        a->top[l] = INFINITY;
    a->es[l] = fmax(a->es[l], e);
}

/* The first of equals wins; a NaN never does, nor what is no better than nothing (-inf for argmax).
 * Candidates are those whose interval reaches the greatest lower bound; lo and hi are the first and
 * the last of them. */
static void arg_term(struct acc *a, int l, bool is_max, double v, double e, int64_t index)
{
    if (a->n[l]++ == 0)
        a->best[l] = a->lo[l] = a->hi[l] = index;
    if ((isnan(v) || v == (is_max ? -INFINITY : INFINITY)) && e == 0)
        return;
    double x = is_max ? v : -v, best = is_max ? a->s[l] : -a->s[l];
    if (!a->any[l] || x - e > a->top[l]) {
        a->best[l] = a->hi[l] = index;
        if (e < INFINITY) /* else it may be a NaN, or infinite, and nothing the best */
            a->lo[l] = index;
        a->s[l] = v;
        a->es[l] = e;
        a->sure[l] = e < INFINITY ? x - e : -INFINITY;
        a->top[l] = e < INFINITY ? x + e : INFINITY;
        a->any[l] = true;
        return;
    }
    if (x + e < a->sure[l] || (e == 0 && a->es[l] == 0))
        return;
    a->hi[l] = index;
    a->es[l] = fmax(a->es[l], e);
    a->sure[l] = e < INFINITY ? fmax(a->sure[l], x - e) : a->sure[l];
    a->top[l] = e < INFINITY ? fmax(a->top[l], x + e) : INFINITY;
    if (x > best) {
        a->s[l] = v;
        a->best[l] = index;
    }
}

static int64_t int_term(const struct reduce *r, int64_t a, int64_t b)
{
    bool less = r->body->type == DT_U64 ? (uint64_t)a < (uint64_t)b : a < b;
    switch (r->kind) {
    case RED_SUM: return ref_wrap(r->body->type, (int64_t)((uint64_t)a + (uint64_t)b));
    case RED_PROD: return ref_wrap(r->body->type, (int64_t)((uint64_t)a * (uint64_t)b));
    case RED_MAX: return less ? b : a;
    case RED_MIN: return less ? a : b;
    case RED_ANY: return a || b;
    default: return a && b;
    }
}

static void int_acc(const struct reduce *r, struct acc *a, int l, int64_t v, double e,
                    int64_t index)
{
    if (r->kind == RED_ARGMAX || r->kind == RED_ARGMIN) {
        bool less = r->body->type == DT_U64 ? (uint64_t)a->i[l] < (uint64_t)v : a->i[l] < v;
        bool more = r->body->type == DT_U64 ? (uint64_t)a->i[l] > (uint64_t)v : a->i[l] > v;
        if (!a->n[l]++ || (r->kind == RED_ARGMAX ? less : more)) {
            a->i[l] = v;
            a->best[l] = a->lo[l] = a->hi[l] = index;
        }
        if (e > 0)
            a->es[l] = INFINITY;
        return;
    }
    bool decides = (r->kind == RED_ANY || r->kind == RED_ALL) && e == 0 &&
                   (v != 0) == (r->kind == RED_ANY);
    a->i[l] = int_term(r, a->i[l], v);
    if (decides)
        a->m[l] = 1;
    a->es[l] = r->kind == RED_SUM ? a->es[l] + e : fmax(a->es[l], e);
    if (r->kind == RED_PROD && e > 0)
        a->es[l] = INFINITY;
    a->n[l]++;
}

/* Takes lane `from` of the body's value into lane l. */
static void acc_lane(const struct frame *f, const struct reduce *r, struct acc *a, int l,
                     const struct vec *v, int from, int64_t index)
{
    if (r->is_int) {
        int_acc(r, a, l, v->i[from], v->e[from], index);
        return;
    }
    switch (r->kind) {
    case RED_SUM: {
        double e = r->sums.truncation ? tensor_term(f, r, a, l, v, from) : 0;
        sum_term(a, l, v->v[from], v->e[from] + e, ref_precision(r));
        if (is_huge(f, r, v, from))
            a->bare[l] += bare_term(f, r, v, from);
        break;
    }
    case RED_PROD: prod_term(a, l, v->v[from], v->e[from]); break;
    case RED_MAX:
    case RED_MIN: extreme_term(a, l, r->kind == RED_MAX, v->v[from], v->e[from]); break;
    default: arg_term(a, l, r->kind == RED_ARGMAX, v->v[from], v->e[from], index); break;
    }
}

/* All lanes at once for the sum of inexact floats: the loop of a matmul. */
static void sum_lanes(struct acc *restrict a, const struct vec *restrict v,
                      const uint8_t *restrict mask)
{
    for (int l = 0; l < LANES; l++) {
        double x = mask[l] ? v->v[l] : 0, e = mask[l] ? v->e[l] : 0;
        double s = a->s[l] + x, bb = s - a->s[l];
        a->c[l] += (a->s[l] - (s - bb)) + (x - bb);
        a->s[l] = s;
        double magnitude = fabs(x) + e;
        a->m[l] += magnitude < INFINITY ? magnitude : 0;
        a->up[l] += ((x > 0) & (x < INFINITY)) ? x : 0;
        a->es[l] += e;
        a->n[l] += (x != 0) | (e != 0);
    }
}

/* Are exactness or overflow still to be followed term by term? */
static bool any_special(const struct frame *f, const struct reduce *r, const struct acc *a,
                        const struct vec *v, const uint8_t *mask)
{
    bool any = r->sums.truncation > 0;
    for (int l = 0; l < LANES; l++)
        any |= mask[l] && (a->quantum[l] > 0 || is_huge(f, r, v, l));
    return any;
}

static void acc_lanes(const struct frame *f, const struct reduce *r, struct acc *a,
                      const struct vec *v, const uint8_t *mask, int64_t index)
{
    if (!r->is_int && r->kind == RED_SUM && !any_special(f, r, a, v, mask)) {
        sum_lanes(a, v, mask);
        return;
    }
    for (int l = 0; l < LANES; l++)
        if (mask[l])
            acc_lane(f, r, a, l, v, l, index);
}

/* ---- the loops ------------------------------------------------------------------------------- */

static const struct vec *body_value(struct frame *f, const struct reduce *r, const uint8_t *mask)
{
    if (r->body->eval)
        r->body->eval(f, r->body, mask);
    return node_out(f, r->body);
}

/* Few lanes and a long loop: the lanes run along the loop instead, one outer lane after the
 * other. */
void ref_acc_along(struct frame *f, const struct reduce *r, struct acc *a, int l, uint8_t state,
                   int64_t lo, int64_t hi)
{
    const struct loop *loop = &r->loop[r->nloop - 1];
    struct vec saved[REF_ALONG];
    for (uint32_t k = 0; k < r->nindex; k++)
        saved[k] = f->slot[r->first_index + k];
    for (uint32_t k = 0; k < r->nindex; k++)
        for (int j = 0; j < LANES; j++)
            f->slot[r->first_index + k].i[j] = saved[k].i[l];
    struct vec *x = &f->slot[loop->slot];
    for (int64_t base = lo; base < hi && !f->failed; base += LANES) {
        uint8_t mask[LANES];
        for (int j = 0; j < LANES; j++) {
            mask[j] = base + j < hi ? state : LANE_OFF;
            x->i[j] = base + j;
        }
        const struct vec *v = body_value(f, r, mask);
        for (int j = 0; j < LANES && base + j < hi; j++)
            acc_lane(f, r, a, l, v, j, base + j);
        f->operations += LANES;
    }
    for (uint32_t k = 0; k < r->nindex; k++)
        f->slot[r->first_index + k] = saved[k];
}

/* The loop's range in every lane. A bound that is not exact makes the lane's result unknown. */
void ref_loop_range(struct frame *f, const struct loop *loop, const uint8_t *mask, struct acc *a,
                    struct ref_range *g)
{
    const struct vec *lo = NULL, *hi;
    if (loop->lo) {
        if (loop->lo->eval)
            loop->lo->eval(f, loop->lo, mask);
        lo = node_out(f, loop->lo);
    }
    if (loop->hi->eval)
        loop->hi->eval(f, loop->hi, mask);
    hi = node_out(f, loop->hi);
    *g = (struct ref_range){.min = INT64_MAX, .max = INT64_MIN};
    for (int l = 0; l < LANES; l++) {
        if (!mask[l])
            continue;
        g->lo[l] = lo ? lo->i[l] : 0;
        g->hi[l] = hi->i[l];
        if (hi->e[l] > 0 || (lo && lo->e[l] > 0))
            a->es[l] = INFINITY;
        if (g->lo[l] >= g->hi[l])
            continue;
        g->min = g->lo[l] < g->min ? g->lo[l] : g->min;
        g->max = g->hi[l] > g->max ? g->hi[l] : g->max;
        g->lanes++;
    }
}

static void run_loop(struct frame *f, const struct reduce *r, struct acc *a, uint32_t depth,
                     const uint8_t *mask)
{
    const struct loop *loop = &r->loop[depth];
    bool last = depth + 1 == r->nloop;
    struct ref_range g;
    ref_loop_range(f, loop, mask, a, &g);
    if (last && g.lanes && g.lanes <= LANES / 8 && g.max - g.min >= 8) {
        if (r->nindex <= REF_ALONG) {
            for (int l = 0; l < LANES; l++)
                if (mask[l] && g.lo[l] < g.hi[l])
                    ref_acc_along(f, r, a, l, mask[l], g.lo[l], g.hi[l]);
            return;
        }
    }
    struct vec *x = &f->slot[loop->slot];
    for (int64_t k = g.min; k < g.max && !f->failed; k++) {
        uint8_t inner[LANES];
        for (int l = 0; l < LANES; l++) {
            inner[l] = mask[l] && k >= g.lo[l] && k < g.hi[l] ? mask[l] : LANE_OFF;
            x->i[l] = k;
        }
        if (!last) {
            run_loop(f, r, a, depth + 1, inner);
            continue;
        }
        acc_lanes(f, r, a, body_value(f, r, inner), inner, k);
        f->operations += LANES;
        if (f->interrupted && *f->interrupted)
            ref_fail(f, SPAN_NONE, "interrupted");
    }
}

/* ---- the result ------------------------------------------------------------------------------ */

static void sum_result(const struct reduce *r, const struct acc *a, int l, double *v, double *e)
{
    struct ref_sum s = {.s = a->s[l],
                        .c = a->c[l],
                        .m = a->m[l],
                        .up = a->up[l],
                        .es = a->es[l],
                        .quantum = a->quantum[l],
                        .n = a->n[l],
                        .far = a->far[l],
                        .terms = a->terms[l]};
    ref_sum_result(r, &s, v, e);
    if (!isnan(s.s) && a->bare[l] > r->round.limit)
        *e = INFINITY;
}

static void prod_result(const struct reduce *r, const struct acc *a, int l, double *v, double *e)
{
    *v = a->s[l];
    if (isnan(*v)) { /* certain, unless a partial product underflowed before it met an infinity */
        bool certain = a->met[l] & MET_NAN || (a->met[l] & MET_ZERO && a->met[l] & MET_INF);
        *e = certain ? 0 : INFINITY;
        return;
    }
    /* infinite on the way alone, which small factors in another order might prevent */
    const bool passed = isinf(*v) && !(a->met[l] & MET_INF) && a->sure[l] < 1;
    double near = r->round.f32 ? (double)(float)*v : *v;
    double smallest = r->round.f32 ? 0x1p-126 : 0x1p-1022; /* below it digits are lost */
    bool exact = a->quantum[l] > 0 && near == *v;
    double grow = pow(1 + r->round.unit, (double)a->n[l]);
    *e = exact ? 0 : a->m[l] * grow - fabs(*v) + r->round.tiny * (double)a->n[l];
    if (isnan(*e))
        *e = isinf(*v) ? 0 : INFINITY;
    ref_range(&r->round, v, e);
    bool overflows = a->top[l] >= r->round.limit, underflows = a->sure[l] < smallest;
    /* an overflow that the result does not have, or digits lost and then magnified */
    if (passed || (overflows && (isfinite(*v) || underflows)) ||
        (underflows && (a->top[l] > 1 || isinf(*v))))
        *e = INFINITY;
}

static void float_result(const struct reduce *r, const struct acc *a, struct vec *o, int l)
{
    switch (r->kind) {
    case RED_SUM: sum_result(r, a, l, &o->v[l], &o->e[l]); break;
    case RED_PROD: prod_result(r, a, l, &o->v[l], &o->e[l]); break;
    case RED_ARGMAX:
    case RED_ARGMIN:
        o->i[l] = a->best[l];
        o->e[l] = fmax((double)(a->best[l] - a->lo[l]), (double)(a->hi[l] - a->best[l]));
        break;
    default: {
        double s = r->kind == RED_MAX ? a->s[l] : -a->s[l];
        o->v[l] = a->s[l];
        o->e[l] = 0;
        if (a->es[l] == INFINITY || (isinf(s) && a->top[l] != a->sure[l]))
            o->e[l] = INFINITY;
        else if (a->es[l] > 0 && isfinite(s))
            o->e[l] = fmax(a->top[l] - s, s - a->sure[l]);
        break;
    }
    }
}

static void int_result(const struct reduce *r, const struct acc *a, struct vec *o, int l)
{
    bool arg = r->kind == RED_ARGMAX || r->kind == RED_ARGMIN;
    o->i[l] = arg ? a->best[l] : a->i[l];
    o->e[l] = a->es[l];
    if ((r->kind == RED_ANY || r->kind == RED_ALL) && a->m[l] > 0)
        o->e[l] = 0;
}

void ref_reduce(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct reduce *r = n->reduce;
    struct acc *a = &f->acc[r->acc];
    struct vec *o = node_out(f, n);
    uint8_t left[LANES], some[LANES];
    if (r->product) {
        ref_product_read(r->product, f, mask, o, left);
        if (!mask_any(left))
            return;
        mask = left;
    }
    ref_acc_start(r, a);
    if (!r->so_far || ref_so_far(f, r, a, mask, some))
        run_loop(f, r, a, 0, r->so_far ? some : mask);
    if (r->kind == RED_ARGMAX || r->kind == RED_ARGMIN) { /* over nothing: where the range starts */
        struct ref_range g;
        struct acc none = {.n = {0}};
        ref_loop_range(f, &r->loop[0], mask, &none, &g);
        for (int l = 0; l < LANES; l++)
            if (mask[l] && !a->n[l])
                a->best[l] = a->lo[l] = a->hi[l] = g.lo[l];
    }
    for (int l = 0; l < LANES; l++) {
        if (!mask[l])
            continue;
        if (r->is_int)
            int_result(r, a, o, l);
        else
            float_result(r, a, o, l);
    }
}

void eval_reduce(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct reduce *r = n->reduce;
    (r->keeps && !r->product ? ref_reduce_once : ref_reduce)(f, n, mask);
}

bool ref_reduce_accepts(struct frame *f, const struct node *n, int64_t got)
{
    const struct reduce *r = n->reduce;
    uint8_t mask[LANES] = {LANE_ON};
    ref_reduce(f, n, mask);
    const struct acc *a = &f->acc[r->acc];
    if (f->failed || r->is_int)
        return !f->failed && got == a->best[0];
    struct ref_range g;
    struct acc none = {.n = {0}};
    ref_loop_range(f, &r->loop[0], mask, &none, &g);
    if (got < g.lo[0] || got >= g.hi[0])
        return false;
    double sure = a->sure[0];
    bool tie_only = a->es[0] == 0;
    f->slot[r->loop[0].slot].i[0] = got;
    const struct vec *v = body_value(f, r, mask);
    double x = r->kind == RED_ARGMAX ? v->v[0] : -v->v[0];
    if (tie_only && v->e[0] == 0)
        return got == a->best[0];
    if (sure == -INFINITY && got == g.lo[0]) /* perhaps nothing is the best */
        return true;
    return v->e[0] == INFINITY || x + v->e[0] >= sure;
}
