/* The bounds: right results pass whatever the order of evaluation, wrong ones do not, and nothing
 * passes silently. */
#include <config.h>

#include "ref_case.h"

static const struct tolerance ANALYSED = {.ulp = -1};

static struct compare_result check(struct ref_case *c, size_t output, const void *got)
{
    struct compare_result r;
    case_out(c, output);
    compare_output(c->ref, output, got, &ANALYSED, true, &r);
    return r;
}

static int status(struct ref_case *c, size_t output, const void *got)
{
    return (int)check(c, output, got).status;
}

/* Sums in float: forward, backward, by halves, fused. */
static float forward(const float *x, const float *y, int n)
{
    volatile float s = 0;
    for (int i = 0; i < n; i++) {
        volatile float p = x[i] * y[i];
        s = s + p;
    }
    return s;
}
static float backward(const float *x, const float *y, int n)
{
    volatile float s = 0;
    while (n-- > 0)
        s = fmaf(x[n], y[n], s);
    return s;
}
static float halves(const float *x, const float *y, int n)
{
    if (n == 1)
        return x[0] * y[0];
    volatile float a = halves(x, y, n / 2), b = halves(x + n / 2, y + n / 2, n - n / 2);
    return a + b;
}

static void dot_products(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: in f32[n]\n"
                                "  s: out f32[]\n"
                                "compute: |\n"
                                "  s = sum[i](x[i] * y[i])\n");
    enum { N = 1000 };
    static float x[N], y[N];
    uint64_t seed = 11;
    for (int i = 0; i < N; i++) {
        x[i] = (float)next_random(&seed);
        y[i] = (float)next_random(&seed);
    }
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    case_buffer(&c, "y", y);
    float f = forward(x, y, N), b = backward(x, y, N), h = halves(x, y, N);
    ok(f != b || b != h, "the orders differ in their last bits");
    eq_int(status(&c, 0, &f), COMPARE_PASS, "term after term passes");
    eq_int(status(&c, 0, &b), COMPARE_PASS, "backwards, fused, passes");
    eq_int(status(&c, 0, &h), COMPARE_PASS, "by halves passes");
    float off = (float)(case_out(&c, 0)->v[0] + 3 * case_out(&c, 0)->e[0]);
    eq_int(status(&c, 0, &off), COMPARE_FAIL, "three bounds away fails");
    float missing = forward(x, y, N - 1);
    eq_int(status(&c, 0, &missing), COMPARE_FAIL, "a missing term fails");
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 9 - 4);
        y[i] = (float)(i % 7 - 3) * 0.25f;
    }
    case_run(&c);
    f = forward(x, y, N);
    eq_dbl(case_out(&c, 0)->e[0], 0, "small multiples of 1/4: equality is demanded");
    eq_int(status(&c, 0, &f), COMPARE_PASS, "... and met");
    f = nextafterf(f, 1000);
    eq_int(status(&c, 0, &f), COMPARE_FAIL, "... the next float fails");
    case_end(&c);
}

/* A kernel that says how deep its sums are is held to it; in any order a sum may lose more. */
static void depths(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  s: out f32[]\n"
                                "compute: |\n"
                                "  s = sum[i](x[i])\n");
    enum { N = 4096 };
    static float x[N], one[N];
    uint64_t seed = 5;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(1 + next_random(&seed));
        one[i] = 1;
    }
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    const double u = 0x1p-24;
    double any = case_out(&c, 0)->e[0], sum = case_out(&c, 0)->v[0];
    ok(any > 4095 * u * sum && any < 4097 * u * sum,
       "4096 positive terms: 4095 roundings of the sum");
    c.opt.sums.depth = 12;
    case_run(&c);
    double tree = case_out(&c, 0)->e[0];
    ok(tree > 12 * u * sum && tree < 12.1 * u * sum, "a tree of depth 12: 12 roundings");
    float h = halves(x, one, N);
    eq_int(status(&c, 0, &h), COMPARE_PASS, "by halves is a tree of depth 12");
    float less = h - x[7];
    eq_int(status(&c, 0, &less), COMPARE_FAIL, "a missing term fails");
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? -x[i] : x[i];
    c.opt.sums.depth = 0;
    case_run(&c);
    ok(case_out(&c, 0)->e[0] < 0.6 * any,
       "terms of both signs: no partial sum is larger than one side");
    for (int i = 2; i < N; i++)
        x[i] = 0;
    case_run(&c);
    ok(case_out(&c, 0)->e[0] < 4 * u, "zeros round nothing");
    c.opt.sums.depth = 1000000;
    case_run(&c);
    ok(case_out(&c, 0)->e[0] < 4 * u, "more depth than there are terms changes nothing");
    case_end(&c);
}

/* A sum that overflows does so to its own sign, unless what is of the other sign may overflow
 * before. */
static void overflows(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[r, n]\n"
                                "  s: out f32[r]\n"
                                "compute: |\n"
                                "  s[i] = sum[j](x[i, j])\n");
    enum { N = 6 };
    float x[4][N] = {{3e38f, 3e38f, -1e38f, -1e38f, 1, 0},
                     {3e38f, 3e38f, 3e38f, 3e38f, -3e38f, -3e38f},
                     {3e38f, 3e38f, -3e38f, -1e38f, 0, 0},
                     {-3e38f, -2e38f, 1e38f, 0, 0, 0}};
    case_dim(&c, "r", 4);
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    const struct ref_output *o = case_out(&c, 0);
    ok(o->v[0] == INFINITY && o->e[0] == 0, "more than the largest is infinite");
    ok(o->e[1] == INFINITY, "... but not where both signs may overflow");
    ok(o->e[2] == INFINITY, "a sum within the range may overflow on its way");
    ok(o->v[3] == -INFINITY && o->e[3] == 0, "less than the least is -infinity");
    case_end(&c);
}

/* The conversion of 0 or 1 minus something to an unsigned type may wrap. */
static void unknown_integers(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: out u32[n]\n"
                                "  z: out i32[n]\n"
                                "compute: |\n"
                                "  y[i] = i32(tanh(x[i])) * u32(2)\n"
                                "  z[i] = i32(tanh(x[i])) * 0\n");
    const float x[] = {9};
    case_dim(&c, "n", 1);
    case_buffer(&c, "x", x);
    const struct ref_output *y = case_out(&c, 0), *z = case_out(&c, 1);
    ok(y->i[0] == 2 || y->e[0] >= 2, "tanh(9) is 1 or less, and so twice as an integer 2 or 0");
    ok(z->i[0] == 0 && z->e[0] == 0, "0 times either is 0");
    case_end(&c);
}

/* Just below the middle of two values of the stored type, by less than the error: it may be stored
 * as either, and another equation may see the one that is farther away. */
static void neighbours(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  w: in f32[n]\n"
                                "  y: out f16[n]\n"
                                "  z: out f64[n]\n"
                                "compute: |\n"
                                "  y[i] = x[i] * w[i]\n"
                                "  z[i] = y[i]\n");
    enum { N = 200 };
    const float middle = 1 + 0x3p-11f, above = 1 + 0x4p-11f;
    float x[N], w[N];
    int near = 0, right = 0;
    for (int i = 0; i < N; i++) {
        x[i] = 1 + (float)i / 256;
        w[i] = middle / x[i];
    }
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    case_buffer(&c, "w", w);
    const struct ref_output *o = case_out(&c, 1);
    for (int i = 0; i < N; i++) {
        double lo, hi;
        bool any;
        volatile float p = x[i] * w[i];
        const double z = dtype_round(DT_F16, p);
        ref_allowed(DT_F64, o->v[i], o->e[i], &lo, &hi, &any);
        near += p == middle && (double)x[i] * w[i] < middle;
        right += !any && lo <= z && z <= hi && hi < above + 0x1p-11f;
    }
    ok(near > 20 && right == N, "z is one of the values that y may have been stored as");
    case_end(&c);
}

/* What another equation sees of an output may be the stored value or the one before: for a type
 * that saturates these are infinitely far apart. */
static void saturations(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: out e4m3[]\n"
                                "  z: out f32[]\n"
                                "compute: |\n"
                                "  y = max[i](x[i])\n"
                                "  z = 8 / y\n");
    const float x[] = {NAN, -INFINITY};
    case_dim(&c, "n", 2);
    case_buffer(&c, "x", x);
    double lo, hi;
    bool any;
    const struct ref_output *z = case_out(&c, 1);
    ref_allowed(DT_F32, z->v[0], z->e[0], &lo, &hi, &any);
    ok(any || (lo <= 8 / -448.0 && hi >= 0), "8 / y is 8 / -448 or 8 / -inf");
    const struct ref_output *y = case_out(&c, 0);
    ref_allowed(DT_E4M3, y->v[0], y->e[0], &lo, &hi, &any);
    ok(!any && lo == -448 && hi == -448, "and y itself is -448");
    case_end(&c);
}

/* A product that underflows on its way makes NaN of an infinity, or does not, by the order. */
static void products(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[r, n]\n"
                                "  p: out f32[r]\n"
                                "compute: |\n"
                                "  p[i] = prod[j](x[i, j])\n");
    enum { N = 4 };
    float x[5][N] = {{1e-30f, 1e-30f, INFINITY, -1},
                     {0, 2, INFINITY, 1},
                     {2, NAN, 1, 1},
                     {3, INFINITY, -1, 2},
                     {1.5f, 2, -4, 0.5f}};
    case_dim(&c, "r", 5);
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    const struct ref_output *o = case_out(&c, 0);
    ok(o->e[0] == INFINITY, "what underflows before it meets an infinity is unknown");
    ok(isnan(o->v[1]) && o->e[1] == 0, "zero times infinity is NaN for certain");
    ok(isnan(o->v[2]) && o->e[2] == 0, "and so is a product with a NaN");
    ok(o->v[3] == -INFINITY && o->e[3] == 0, "an infinity alone is one");
    ok(o->v[4] == -6 && o->e[4] == 0, "small numbers are exact");
    case_end(&c);
}

/* x / total may be x * (1 / total); x / y of two inputs may not. */
static void reciprocals(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: in f32[n]\n"
                                "  a: out f32[n]\n"
                                "  b: out f32[n]\n"
                                "  s: out f32[n]\n"
                                "compute: |\n"
                                "  m = max[i](y[i])\n"
                                "  a[i] = x[i] / m\n"
                                "  b[i] = x[i] / y[i]\n"
                                "  s[i] = f32(x[i] / m)\n");
    enum { N = 1000 };
    static float x[N], y[N], divided[N], multiplied[N];
    const float top = 41;
    volatile float r = 1 / top;
    int differ = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i + 1);
        y[i] = top;
        divided[i] = x[i] / top;
        multiplied[i] = x[i] * r;
        differ += divided[i] != multiplied[i];
    }
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    case_buffer(&c, "y", y);
    ok(differ > 10, "quotients and products with the reciprocal differ (%d of %d)", differ, N);
    eq_int(status(&c, 0, divided), COMPARE_PASS, "a computed divisor: a quotient passes");
    eq_int(status(&c, 0, multiplied), COMPARE_PASS, "... and a product with the reciprocal");
    eq_int(status(&c, 1, divided), COMPARE_PASS, "an input as divisor: a quotient passes");
    eq_int(status(&c, 1, multiplied), COMPARE_FAIL, "... a product with the reciprocal does not");
    eq_int(status(&c, 2, multiplied), COMPARE_FAIL,
           "... nor where the quotient is a rounding point");
    for (int i = 0; i < N; i++) {
        y[i] = 64;
        multiplied[i] = divided[i] = x[i] / 64;
    }
    case_run(&c);
    eq_int(status(&c, 0, divided), COMPARE_PASS, "a power of two loses nothing");
    divided[5] = nextafterf(divided[5], 9);
    eq_int(status(&c, 0, divided), COMPARE_FAIL, "... so the next float fails");
    case_end(&c);
}

static void functions(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  a: out f32[n]\n"
                                "  b: out f32[n]\n"
                                "  h: out f16[n]\n"
                                "compute: |\n"
                                "  a[i] = exp(x[i])\n"
                                "  b[i] = tanh(x[i] * 0.7) + 1\n"
                                "  h[i] = x[i] * 0.1\n");
    enum { N = 500 };
    static float x[N], a[N], b[N];
    static uint16_t h[N], down[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i - 250) * 0.031f;
        a[i] = expf(x[i]);
        volatile float p = x[i] * 0.7f;
        b[i] = tanhf(p) + 1;
        volatile float t = x[i] * 0.1f;
        h[i] = half_from_float(t);
        down[i] = h[i];
        if (fabsf(half_to_float(down[i])) > fabsf(t)) /* towards zero */
            down[i]--;
    }
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    eq_int(status(&c, 0, a), COMPARE_PASS, "expf passes");
    eq_int(status(&c, 1, b), COMPARE_PASS, "tanhf(x * 0.7) + 1 passes");
    eq_int(status(&c, 2, h), COMPARE_PASS, "a store to f16 that rounds to nearest passes");
    eq_int(status(&c, 2, down), COMPARE_FAIL, "one that rounds towards zero fails");
    a[300] *= 1 + 12 * 0x1p-23f;
    struct compare_result r = check(&c, 0, a);
    ok(r.status == COMPARE_FAIL && r.wrong == 1 && r.nmiss == 1 && r.miss[0].flat == 300,
       "12 ulp off fails, once");
    ok(r.max_ulp > 10 && r.max_ulp < 16 && r.worst == 300, "... and its error is measured (%g ulp)",
       r.max_ulp);
    case_end(&c);
}

/* sigmoid's variant for 16-bit results is not exact at 0. */
static void rough_functions(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: out f32[n]\n"
                                "  h: out f16[n]\n"
                                "compute: |\n"
                                "  y[i] = sigmoid(x[i])\n"
                                "  h[i] = sigmoid(x[i])\n");
    static const float x[3] = {0, -INFINITY, INFINITY};
    case_dim(&c, "n", 3);
    case_buffer(&c, "x", x);
    const struct ref_output *y = case_out(&c, 0), *h = case_out(&c, 1);
    ok(y->e[0] == 0 && y->e[1] == 0 && y->e[2] == 0, "f32 functions are exact of 0 and infinities");
    ok(h->v[0] == 0.5 && h->e[0] > 10 * 0x1p-24 && h->e[0] < 0x1p-16,
       "... but not where a half's worth of digits is enough");
    case_end(&c);
}

static void undecided(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: out f32[n]\n"
                                "  z: out i32[n]\n"
                                "compute: |\n"
                                "  y[i] = x[i] * x[i] > 2 ? 1 : -1\n"
                                "  z[i] = i32(floor(x[i] / 0.1))\n");
    float root = (float)sqrt(2.0), x[4] = {1, root, 0.3f, 2};
    case_dim(&c, "n", 4);
    case_buffer(&c, "x", x);
    float up[4] = {-1, 1, -1, 1}, down[4] = {-1, -1, -1, 1}, wrong[4] = {1, 1, -1, 1};
    double rr = (double)root * (double)root;
    tap_note("sqrtf(2)^2 - 2 = %g", rr - 2);
    eq_int(status(&c, 0, up), COMPARE_PASS, "an undecided comparison may go up");
    eq_int(status(&c, 0, down), COMPARE_PASS, "... or down");
    eq_int(status(&c, 0, wrong), COMPARE_FAIL, "a decided one may not");
    int32_t whole[4] = {9, 14, 2, 19};
    const struct ref_output *o = case_out(&c, 1);
    ok(o->i[2] == 2 || o->i[2] == 3, "floor(0.3 / 0.1) is 2 or 3");
    whole[0] = 10;
    eq_int(status(&c, 1, whole), COMPARE_PASS, "a whole number that rounding may reach passes");
    whole[1] = 13;
    eq_int(status(&c, 1, whole), COMPARE_FAIL, "another fails");
    case_end(&c);
}

static void nearly_equal_extremes(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[r, n]\n"
                                "  a: out i64[r]\n"
                                "compute: |\n"
                                "  a[i] = argmax[j](x[i, j] * 0.3)\n");
    float one = nextafterf(0.9f, 2), x[2][5] = {{0, 0.9f, 0.5f, one, 0}, {3, 2, 1, 0, 0}};
    case_dim(&c, "r", 2);
    case_dim(&c, "n", 5);
    case_buffer(&c, "x", x);
    int64_t a[2] = {3, 0};
    eq_int(status(&c, 0, a), COMPARE_PASS, "argmax: the largest passes");
    a[0] = 1;
    eq_int(status(&c, 0, a), COMPARE_PASS, "... one that rounding makes equal passes");
    a[0] = 2;
    eq_int(status(&c, 0, a), COMPARE_FAIL, "... what lies between them in index does not");
    a[0] = 7;
    eq_int(status(&c, 0, a), COMPARE_FAIL, "... nor an index outside");
    case_end(&c);
}

static void perhaps_nothing_is_extreme(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[r, n]\n"
                                "  a: out i64[r]\n"
                                "compute: |\n"
                                "  a[i] = argmin[j](x[i, j] * 2.0 - x[i, j])\n");
    /* 3e38: a number, or infinite on its way */
    float x[4][4] = {{NAN, NAN, 3e38f, NAN}, {NAN, 3e38f, NAN, 7}, {0, 1}, {2, 1}};
    case_dim(&c, "r", 4);
    case_dim(&c, "n", 4);
    case_buffer(&c, "x", x);
    int64_t a[4] = {2, 3, 0, 2};
    eq_int(status(&c, 0, a), COMPARE_PASS, "argmin: what may be a number passes");
    a[0] = 0;
    eq_int(status(&c, 0, a), COMPARE_PASS, "... and so does the first, since it may be none");
    a[0] = 1;
    eq_int(status(&c, 0, a), COMPARE_FAIL, "... a NaN does not");
    a[0] = 2;
    a[1] = 0;
    eq_int(status(&c, 0, a), COMPARE_FAIL, "... nor the first where there is a number");
    case_end(&c);
}

static void special_values(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: out f32[n]\n"
                                "  w: out f32[n]\n"
                                "compute: |\n"
                                "  y[i] = x[i] * 2.0 - x[i]\n"
                                "  w[i] = x[i] * abs(x[i])\n");
    float x[6] = {1, NAN, INFINITY, 3e38f, -3, 0}, y[6] = {1, NAN, NAN, INFINITY, -3, 0};
    float w[6] = {1, NAN, INFINITY, INFINITY, -9, 0};
    case_dim(&c, "n", 6);
    case_buffer(&c, "x", x);
    eq_int(status(&c, 0, y), COMPARE_PASS, "NaN, inf - inf, and a product that overflows match");
    y[3] = 3e38f;
    eq_int(status(&c, 0, y), COMPARE_PASS, "in an fma it does not overflow");
    eq_int(status(&c, 1, w), COMPARE_PASS, "a product alone overflows");
    y[1] = 1;
    eq_int(status(&c, 0, y), COMPARE_FAIL, "a number for a NaN fails");
    y[1] = NAN;
    y[0] = NAN;
    eq_int(status(&c, 0, y), COMPARE_FAIL, "a NaN for a number fails");
    y[0] = INFINITY;
    eq_int(status(&c, 0, y), COMPARE_FAIL, "an infinity for a number fails");
    w[3] = 3.4028235e38f;
    eq_int(status(&c, 1, w), COMPARE_FAIL, "a number for an infinity fails");
    w[3] = -INFINITY;
    eq_int(status(&c, 1, w), COMPARE_FAIL, "the wrong infinity fails");
    case_end(&c);
}

static void mistrust(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  z: out f32[n]\n"
                                "  k: out f32[n]\n"
                                "  s: out f32[n]\n"
                                "compute: |\n"
                                "  z[i] = x[i] * 0\n"
                                "  k[i] = x[i] * 0 + 7\n"
                                "  s[i] = (x[i] + 1e9) - 1e9\n");
    float x[4] = {1, 2, 3, 4}, zero[4] = {0}, seven[4] = {7, 7, 7, 7};
    case_dim(&c, "n", 4);
    case_buffer(&c, "x", x);
    struct compare_result r = check(&c, 0, zero);
    ok(r.status == COMPARE_MISTRUST && strstr(r.why, "all zero"), "an all-zero reference: %s",
       r.why);
    r = check(&c, 1, seven);
    ok(r.status == COMPARE_MISTRUST && strstr(r.why, "constant"), "a constant reference: %s",
       r.why);
    r = check(&c, 2, zero);
    ok(r.status == COMPARE_MISTRUST && strstr(r.why, "bound"), "a bound that swamps it: %s", r.why);
    compare_output(c.ref, 1, seven, &ANALYSED, false, &r);
    eq_int(r.status, COMPARE_PASS, "constant inputs may give a constant");
    case_dim(&c, "n", 0);
    case_run(&c);
    r = check(&c, 0, zero);
    ok(r.status == COMPARE_MISTRUST && strstr(r.why, "empty"), "an empty output: %s", r.why);
    case_end(&c);
}

static void arrays(void)
{
    float a[8] = {0, 1, 2, NAN, 4, 5, 6, 7}, b[8];
    uint64_t shape[2] = {2, 4};
    struct compare_result r;
    memcpy(b, a, sizeof a);
    compare_arrays(DT_F32, 2, shape, a, b, &ANALYSED, &r);
    eq_int(r.status, COMPARE_PASS, "equal arrays");
    b[0] = -0.0f;
    compare_arrays(DT_F32, 2, shape, a, b, &ANALYSED, &r);
    eq_int(r.status, COMPARE_FAIL, "bit for bit, zeros of different sign differ");
    b[0] = 0;
    b[6] = nextafterf(6, 7);
    compare_arrays(DT_F32, 2, shape, a, b, &ANALYSED, &r);
    ok(r.status == COMPARE_FAIL && r.wrong == 1 && r.miss[0].flat == 6, "one ulp differs");
    char at[40];
    compare_position(&r, r.miss[0].flat, at, sizeof at);
    eq_str(at, "1, 2", "... at its index");
    compare_arrays(DT_F32, 2, shape, a, b, &(struct tolerance){.given = true, .ulp = 1}, &r);
    eq_int(r.status, COMPARE_PASS, "within one ulp");
    compare_arrays(DT_F32, 2, shape, a, b,
                   &(struct tolerance){.given = true, .ulp = -1, .rtol = 1e-8}, &r);
    eq_int(r.status, COMPARE_FAIL, "not within a tighter tolerance");
    b[3] = 3;
    compare_arrays(DT_F32, 2, shape, a, b,
                   &(struct tolerance){.given = true, .ulp = 5, .rtol = 1, .atol = 100}, &r);
    eq_int(r.status, COMPARE_FAIL, "no tolerance lets a number pass for a NaN");
}

/* The picture of where it went wrong. */
static void map(void)
{
    enum { ROWS = 64, COLS = 256 };
    static int32_t a[ROWS * COLS], b[ROWS * COLS];
    uint64_t shape[2] = {ROWS, COLS};
    struct compare_result r;
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] = b[i] = i;
    for (int i = 16; i < 32; i++)
        for (int j = 128; j < 144; j++)
            b[i * COLS + j] = -1;
    compare_arrays(DT_I32, 2, shape, a, b, &ANALYSED, &r);
    uint64_t inside = 0, all = 0;
    for (uint32_t i = 0; i < r.map_rows; i++)
        for (uint32_t j = 0; j < r.map_cols; j++) {
            all += r.map[i][j];
            if (i * r.cell_rows >= 16 && i * r.cell_rows < 32 && j * r.cell_cols >= 128 &&
                j * r.cell_cols < 144)
                inside += r.map[i][j];
        }
    ok(r.cell_rows == 4 && r.cell_cols == 4 && r.map_rows == 16 && r.map_cols == 64,
       "cells are powers of two");
    ok(all == 256 && inside == 256, "a wrong tile shows as one");
}

int main(void)
{
    dot_products();
    depths();
    overflows();
    saturations();
    neighbours();
    unknown_integers();
    products();
    reciprocals();
    functions();
    rough_functions();
    undecided();
    nearly_equal_extremes();
    perhaps_nothing_is_extreme();
    special_values();
    mistrust();
    arrays();
    map();
    return tap_done();
}
