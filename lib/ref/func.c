#include <config.h>

#include "data/philox.h"
#include "ref/program.h"

/* How the argument's error reaches the result. */
enum shape {
    MONOTONE, /* the ends of the interval bound it */
    SLOPE,    /* the greatest slope over the interval does */
};

struct func {
    enum lang_builtin fn;
    double (*f)(double);
    long double (*fl)(
        long double); /* for f64, so that the reference's own error is small beside an ulp of f64 */
    enum shape shape;
    bool pole_at_zero;
    double (*slope)(double lo, double hi);
};

static const long double SQRT_HALF = 0.70710678118654752440084436210485L;
static const long double PI = 3.14159265358979323846264338327950L;
static const long double GELU_C = 0.79788456080286535587989211986876L; /* sqrt(2/pi) */

#define BOTH(name, expr)                       \
    static double name(double a)               \
    {                                          \
        long double x = (long double)a;        \
        return (double)(expr);                 \
    }                                          \
    static long double name##_l(long double x) \
    {                                          \
        return (expr);                         \
    }

BOTH(fn_rsqrt, 1 / sqrtl(x))
BOTH(fn_rcp, 1 / x)
BOTH(fn_sigmoid, 1 / (1 + expl(-x)))
BOTH(fn_silu, x == -INFINITY ? 0.0L : x / (1 + expl(-x)))
/* x Phi(x); erfc keeps its relative accuracy far to the left, where 1 + erf would cancel */
BOTH(fn_gelu, x == -INFINITY ? 0.0L : 0.5L * x * erfcl(-x * SQRT_HALF))
/* 0.5 x (1 + tanh(u)) = x sigmoid(2u) */
BOTH(fn_gelu_tanh,
     x == -INFINITY ? 0.0L : x / (1 + expl(-2 * GELU_C * (x + 0.044715L * x * x * x))))

static const long double SELU_SCALE = 1.0507009873554804934193349852946L;
static const long double SELU_BELOW = 1.7580993408473768599402175208123L; /* times alpha */

BOTH(fn_softplus, fmaxl(x, 0) + log1pl(expl(-fabsl(x))))
BOTH(fn_logsigmoid, x < 0 ? x - log1pl(expl(-fabsl(x))) : -log1pl(expl(-fabsl(x))))
BOTH(fn_relu6, x<0 ? 0 : x> 6 ? 6 : x)
BOTH(fn_hardsigmoid, fn_relu6_l(x + 3) / 6)
BOTH(fn_hardswish, x < -3 ? -0.0L : x * fn_hardsigmoid_l(x))
BOTH(fn_softsign, isinf(x) ? copysignl(1, x) : x / (1 + fabsl(x)))
BOTH(fn_selu, x > 0 ? SELU_SCALE * x : SELU_BELOW * expm1l(x))
BOTH(fn_mish, x == -INFINITY ? -0.0L : x * tanhl(fn_softplus_l(x)))

/* sin(pi (x + turn / 2)); where it is 0, +0 */
static long double circle(long double x, int turn)
{
    if (!isfinite(x))
        return NAN;
    long double b = fmodl(fabsl(x), 2), n = rintl(2 * b), r = PI * (b - n / 2);
    int q = (int)n + turn;
    long double v = q & 1 ? cosl(r) : sinl(r);
    return (q & 2 ? -v : v) + 0.0L;
}
BOTH(fn_sinpi, copysignl(1, x) * circle(x, 0))
BOTH(fn_cospi, circle(x, 1))

static double slope_1(double lo, double hi)
{
    (void)lo;
    (void)hi;
    return 1;
}
static double slope_pi(double lo, double hi)
{
    (void)lo;
    (void)hi;
    return 3.1415927;
}
static double slope_tan(double lo, double hi)
{
    if (floor(lo / M_PI + 0.5) != floor(hi / M_PI + 0.5))
        return INFINITY;
    double t = fmax(fabs(tan(lo)), fabs(tan(hi)));
    return 1 + t * t;
}
static double slope_cosh(double lo, double hi)
{
    return sinh(fmax(fabs(lo), fabs(hi)));
}
/* |silu'(x)| <= s(x) (1 + |x|) and never above 1.1; the same shape bounds both gelus with s(1.7
 * x). */
static double slope_silu(double lo, double hi)
{
    return fmin(1.1, fn_sigmoid(hi) * (1 + fmax(fabs(lo), fabs(hi))));
}
static double slope_gelu(double lo, double hi)
{
    /* Phi(x) + |x| phi(x) <= (1 + |x|) exp(-x^2/2) for x < 0; the tanh form's tail is a little
     * heavier */
    double x = fmin(hi, 0);
    return fmin(1.13, (2 + fabs(lo) + fabs(lo * lo)) * exp(-0.45 * x * x));
}

/* |mish'(x)| <= tanh(softplus(x)) + |x| sigmoid(x), and never above 1.1 */
static double slope_mish(double lo, double hi)
{
    return fmin(1.1, exp(hi) * (1 + fmax(fabs(lo), fabs(hi))));
}
static double slope_hardswish(double lo, double hi)
{
    return hi < -3 ? 0 : lo > 3 ? 1 : 1.5;
}

static const struct func funcs[] = {
    {FN_EXP, exp, expl, MONOTONE, false, NULL},
    {FN_EXP2, exp2, exp2l, MONOTONE, false, NULL},
    {FN_EXP10, exp10, exp10l, MONOTONE, false, NULL},
    {FN_EXPM1, expm1, expm1l, MONOTONE, false, NULL},
    {FN_LOG, log, logl, MONOTONE, false, NULL},
    {FN_LOG2, log2, log2l, MONOTONE, false, NULL},
    {FN_LOG10, log10, log10l, MONOTONE, false, NULL},
    {FN_LOG1P, log1p, log1pl, MONOTONE, false, NULL},
    {FN_SIN, sin, sinl, SLOPE, false, slope_1},
    {FN_COS, cos, cosl, SLOPE, false, slope_1},
    {FN_TAN, tan, tanl, SLOPE, false, slope_tan},
    {FN_SINPI, fn_sinpi, fn_sinpi_l, SLOPE, false, slope_pi},
    {FN_COSPI, fn_cospi, fn_cospi_l, SLOPE, false, slope_pi},
    {FN_TANH, tanh, tanhl, MONOTONE, false, NULL},
    {FN_SINH, sinh, sinhl, MONOTONE, false, NULL},
    {FN_COSH, cosh, coshl, SLOPE, false, slope_cosh},
    {FN_ASIN, asin, asinl, MONOTONE, false, NULL},
    {FN_ACOS, acos, acosl, MONOTONE, false, NULL},
    {FN_ATAN, atan, atanl, MONOTONE, false, NULL},
    {FN_ASINH, asinh, asinhl, MONOTONE, false, NULL},
    {FN_ACOSH, acosh, acoshl, MONOTONE, false, NULL},
    {FN_ATANH, atanh, atanhl, MONOTONE, false, NULL},
    {FN_RSQRT, fn_rsqrt, fn_rsqrt_l, MONOTONE, false, NULL},
    {FN_CBRT, cbrt, cbrtl, MONOTONE, false, NULL},
    {FN_RCP, fn_rcp, fn_rcp_l, MONOTONE, true, NULL},
    {FN_ERF, erf, erfl, MONOTONE, false, NULL},
    {FN_ERFC, erfc, erfcl, MONOTONE, false, NULL},
    {FN_SIGMOID, fn_sigmoid, fn_sigmoid_l, MONOTONE, false, NULL},
    {FN_SILU, fn_silu, fn_silu_l, SLOPE, false, slope_silu},
    {FN_GELU, fn_gelu, fn_gelu_l, SLOPE, false, slope_gelu},
    {FN_GELU_TANH, fn_gelu_tanh, fn_gelu_tanh_l, SLOPE, false, slope_gelu},
    {FN_SOFTPLUS, fn_softplus, fn_softplus_l, MONOTONE, false, NULL},
    {FN_LOGSIGMOID, fn_logsigmoid, fn_logsigmoid_l, MONOTONE, false, NULL},
    {FN_MISH, fn_mish, fn_mish_l, SLOPE, false, slope_mish},
    {FN_RELU6, fn_relu6, fn_relu6_l, MONOTONE, false, NULL},
    {FN_HARDSIGMOID, fn_hardsigmoid, fn_hardsigmoid_l, MONOTONE, false, NULL},
    {FN_HARDSWISH, fn_hardswish, fn_hardswish_l, SLOPE, false, slope_hardswish},
    {FN_SOFTSIGN, fn_softsign, fn_softsign_l, MONOTONE, false, NULL},
    {FN_SELU, fn_selu, fn_selu_l, MONOTONE, false, NULL},
};

const struct func *ref_func_find(enum lang_builtin fn)
{
    for (size_t k = 0; k < sizeof funcs / sizeof *funcs; k++)
        if (funcs[k].fn == fn)
            return &funcs[k];
    return NULL;
}

static double apply(const struct node *n, double x)
{
    return n->round.f32 ? n->func->f(x) : (double)n->func->fl((long double)x);
}

/* What the argument's error e does to f(x) = y; infinity when it can't be bounded. */
static double propagate(const struct node *n, double x, double e, double y)
{
    if (n->func->pole_at_zero && fabs(x) <= e)
        return INFINITY;
    if (!isfinite(x) || !isfinite(y))
        return INFINITY;
    if (n->func->shape == SLOPE)
        return n->func->slope(x - e, x + e) * e;
    double lo = apply(n, x - e), hi = apply(n, x + e);
    if (!isfinite(lo) || !isfinite(hi))
        return INFINITY;
    return fmax(fabs(y - lo), fabs(hi - y));
}

/* The distance between the numbers of the type about v. */
static double ulp(const struct node *n, double v)
{
    double unit = n->round.f32 ? 0x1p-23 : 0x1p-52;
    int exponent;
    frexp(v, &exponent);
    double u = ldexp(unit, exponent - 1);
    return u > 2 * n->round.tiny ? u : 2 * n->round.tiny;
}

/* The result y with the argument's part p of its error: adds the function's own, and the
 * reference's. */
static void finish(const struct node *n, double y, double p, double *v, double *e)
{
    *v = y;
    *e = p;
    if (!isfinite(y))
        return;
    double own = n->round.f32 ? 0x1p-51 * fabs(y) : 0x1p-53 * fabs(y);
    *e = p + n->ulp * ulp(n, fabs(y) + p) + own;
    if (n->half && n->src->to_f16)
        *e += 0x1.47p-30; /* 0.02 of f16's smallest number */
    ref_range(&n->round, v, e);
}

/* Finishes the hardware's approximation, which flushes subnormals. */
static void finish_fast(const struct node *n, const struct fast_error *fast, double x, double y,
                        double p, double *v, double *e)
{
    double a = fabs(x);
    *v = y;
    *e = p;
    if (!isfinite(x) && !isnan(x))
        *e = INFINITY; /* what the emitter makes of it may be NaN: 0 times infinity */
    if (!isfinite(y) || !isfinite(x))
        return;
    if (n->src->fn == FN_SIN || n->src->fn == FN_COS)
        p += a <= 2 * M_PI ? 0 : a <= 100 * M_PI ? 0x1.4p-15 : INFINITY;
    *e = p + fast->rel * (fabs(y) + p) + fast->abs + fast->absx * a + 0x1p-126;
    ref_range(&n->round, v, e);
}

/* Of 0 and of the infinities every accurate function gives its exact value where that is
 * representable: e^0 = 1, e^-inf = 0. So the sum of a row of such values is exact, and nothing may
 * be missing from it. */
static bool is_special(const struct node *n, double x, double y)
{
    return !n->half && (x == 0 || isinf(x)) && (n->round.f32 ? (double)(float)y == y : isfinite(y));
}

void eval_func1(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    const struct fast_error *fast = n->src->fast ? ref_fast_error(n->src->fn) : NULL;
    for (int l = 0; l < LANES; l++) {
        if (!mask[l])
            continue;
        double x = a->v[l], ex = a->e[l], y = apply(n, x), p = 0;
        bool known = ex == 0 && (isnan(x) || (!fast && is_special(n, x, y)));
        if (known || ex == INFINITY) {
            o->v[l] = y;
            o->e[l] = ex;
            continue;
        }
        if (fast && isfinite(x))
            ex += fast->arg * fabs(x) + 0x1p-126;
        if (ex > 0 && !(isnan(y) && isnan(apply(n, x - ex)) && isnan(apply(n, x + ex))))
            p = propagate(n, x, ex, y);
        if (fast)
            finish_fast(n, fast, x, y, p, &o->v[l], &o->e[l]);
        else
            finish(n, y, p, &o->v[l], &o->e[l]);
    }
}

/* ---- random numbers -------------------------------------------------------------------------- */

void eval_random(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *arg[3] = {NULL};
    for (uint32_t k = 0; k < n->nargs; k++)
        arg[k] = node_arg(f, n, k, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        uint32_t w[4];
        bool known = true;
        if (!mask[l])
            continue;
        for (uint32_t k = 0; k < n->nargs; k++)
            known = known && arg[k]->e[l] == 0;
        philox_words((uint64_t)arg[0]->i[l], (uint64_t)arg[1]->i[l],
                     arg[2] ? (uint64_t)arg[2]->i[l] : 0, w);
        o->e[l] = 0;
        if (n->src->fn == FN_NORMAL)
            finish(n, philox_normal(w[0], w[1]), 0, &o->v[l], &o->e[l]);
        else if (n->src->fn == FN_UNIFORM)
            o->v[l] = (double)philox_uniform(w[0]);
        else
            o->i[l] = w[n->lane];
        if (!known)
            o->e[l] = INFINITY;
    }
}

/* ---- two arguments --------------------------------------------------------------------------- */

static long double leaky(const struct node *n, long double x, long double y)
{
    return x < 0 ? y * (n->src->fn == FN_ELU ? expm1l(x) : x) : x;
}

static double apply2(const struct node *n, double x, double y)
{
    bool wide = !n->round.f32;
    switch ((int)n->src->fn) {
    case FN_POW: return wide ? (double)powl((long double)x, (long double)y) : pow(x, y);
    case FN_HYPOT: return wide ? (double)hypotl((long double)x, (long double)y) : hypot(x, y);
    case FN_COPYSIGN: return copysign(x, y);
    case FN_ATAN2: return wide ? (double)atan2l((long double)x, (long double)y) : atan2(x, y);
    case FN_LEAKY_RELU:
    case FN_ELU: return (double)leaky(n, (long double)x, (long double)y);
    default: return fmod(x, y);
    }
}

/* Are the extremes over the box of the arguments at its corners? */
static bool corners_bound(const struct node *n, double x, double ex, double y, double ey)
{
    if (n->src->fn == FN_POW)
        return x - ex > 0;
    if (n->src->fn ==
        FN_ATAN2) /* off the cut along the negative second argument, and off the origin */
        return y - ey > 0 || fabs(x) > ex;
    /* fmod: linear while the quotient's whole part stays the same */
    double q = trunc(x / y);
    return fabs(y) > ey && fabs(x) > ex && trunc((fabs(x) + ex) / (fabs(y) - ey)) == fabs(q) &&
           trunc((fabs(x) - ex) / (fabs(y) + ey)) == fabs(q);
}

static double propagate2(const struct node *n, double x, double ex, double y, double ey, double r)
{
    if (n->src->fn == FN_HYPOT) /* no slope is above 1 */
        return ex + ey;
    if (n->src->fn == FN_COPYSIGN)
        return ey == 0 || fabs(y) > ey ? ex : INFINITY;
    if (n->src->fn == FN_ELU || n->src->fn == FN_LEAKY_RELU) {
        const double left = fmin(x, 0) - ex; /* of elu no further than -1 */
        const double far = n->src->fn == FN_ELU ? fmin(1, -left) : -left;
        const double slope = fmax(1, fabs(y) + ey);
        if (isinf(far) && ex == 0 && fabs(y) > ey) /* -inf stays infinite by any such slope */
            return 0;
        return (ex > 0 ? slope * ex : 0) + (far > 0 && ey > 0 ? far * ey : 0);
    }
    if (!corners_bound(n, x, ex, y, ey))
        return n->src->fn == FN_FMOD && isfinite(r) ? 2 * (fabs(y) + ey) : INFINITY;
    double spread = 0;
    for (int k = 0; k < 4; k++) {
        double c = apply2(n, k & 1 ? x + ex : x - ex, k & 2 ? y + ey : y - ey);
        if (!isfinite(c) || !isfinite(r))
            return INFINITY;
        spread = fmax(spread, fabs(c - r));
    }
    return spread;
}

void eval_func2(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask), *b = node_arg(f, n, 1, mask);
    struct vec *o = node_out(f, n);
    for (int l = 0; l < LANES; l++) {
        if (!mask[l])
            continue;
        double x = a->v[l], ex = a->e[l], y = b->v[l], ey = b->e[l];
        double r = apply2(n, x, y), p = 0;
        if (n->src->fast && n->src->fn == FN_POW) {
            /* exp2(y log2(x)): the logarithm's error is absolute near 1, and the product rounds */
            p = fabs(r) * (fabs(y) * (1 + fabs(log2(x))) * 0x1p-21 + 0x1p-21) + 0x1p-126;
        }
        if (ex > 0 || ey > 0)
            p += propagate2(n, x, ex, y, ey, r);
        bool exact = n->src->fn == FN_FMOD || n->src->fn == FN_COPYSIGN;
        if (exact && p == 0) { /* by nature */
            o->v[l] = r;
            o->e[l] = 0;
            continue;
        }
        finish(n, r, p, &o->v[l], &o->e[l]);
    }
}
