/* The reference's values, against numbers from elsewhere (numpy 1.24 in float64, C's own
 * arithmetic). */
#include <config.h>

#include "ref_case.h"

static void elementwise(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: in f32[n]\n"
                                "  z: out f32[n]\n"
                                "  alpha: f32 = 2\n"
                                "compute: |\n"
                                "  z[i] = alpha * x[i] + y[i]\n");
    float x[5] = {1, -2, 0.5f, 3, 1e30f}, y[5] = {1, 1, 1, 0.1f, 0};
    case_dim(&c, "n", 5);
    case_scalar(&c, "alpha", 2.5);
    case_buffer(&c, "x", x);
    case_buffer(&c, "y", y);
    const struct ref_output *o = case_out(&c, 0);
    eq_int(o->n, 5, "one value for each element");
    eq_dbl(o->v[0], 3.5, "2.5 * 1 + 1");
    eq_dbl(o->v[1], -4, "2.5 * -2 + 1");
    eq_dbl(o->e[2], 0, "a representable result is exact");
    ok(o->e[3] > 0 && o->e[3] < 4 * 0x1p-24 * 7.6, "one that rounds has a small bound (%g)",
       o->e[3]);
    eq_dbl(o->v[3], 2.5 * 3 + (double)0.1f, "the value is not rounded");
    case_end(&c);
}

/* numpy: x = arange(-4, 4, 0.5) float64; row softmax, and logsumexp */
static void softmax(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[r, c]\n"
                                "  y: out f32[r, c]\n"
                                "compute: |\n"
                                "  m[i] = max[j](x[i, j])\n"
                                "  s[i] = sum[j](exp(x[i, j] - m[i]))\n"
                                "  y[i, j] = exp(x[i, j] - m[i]) / s[i]\n");
    float x[2][8];
    for (int i = 0; i < 16; i++)
        x[i / 8][i % 8] = -4 + 0.5f * (float)i;
    case_dim(&c, "r", 2);
    case_dim(&c, "c", 8);
    case_buffer(&c, "x", x);
    static const double want[8] = {0.012103426523097706, 0.019955176756987287, 0.03290052437982574,
                                   0.054243794362206846, 0.0894328975684541,   0.14744992052145606,
                                   0.24310382032676792,  0.4008104395612045};
    const struct ref_output *o = case_out(&c, 0);
    int wrong = 0;
    for (int i = 0; i < 16; i++)
        wrong += fabs(o->v[i] - want[i % 8]) > 1e-12 * want[i % 8];
    eq_int(wrong, 0, "softmax agrees with numpy");
    ok(o->e[7] < 40 * 0x1p-24 * o->v[7], "its bound is a few ulp (%g)", o->e[7] / o->v[7] * 0x1p24);
    case_end(&c);
}

static void integers(void)
{
    struct ref_case c =
        case_of("kernel: k\n"
                "params:\n"
                "  a: in i32[n]\n"
                "  u: in u32[n]\n"
                "  p: out i32[n]\n"
                "  q: out u32[n]\n"
                "  r: out i64[n]\n"
                "  s: out u32[n]\n"
                "compute: |\n"
                "  p[i] = a[i] / 3 - a[i] % 3\n"
                "  q[i] = u[i] * 2654435761u + (u[i] >> 3)\n"
                "  r[i] = sum[k](i64(a[k])) * i64(a[i])\n"
                "  s[i] = popc(u[i]) + clz(u[i]) * 100u + (brev(u[i]) & 7u) * 10000u\n");
    int32_t a[4] = {-7, 7, INT32_MAX, INT32_MIN};
    uint32_t u[4] = {0, 1, 0x80000001u, 0xdeadbeefu};
    case_dim(&c, "n", 4);
    case_buffer(&c, "a", a);
    case_buffer(&c, "u", u);
    int wrong = 0;
    for (size_t k = 0; k < 4; k++)
        for (int i = 0; i < 4; i++) {
            int64_t sum = -1, want[4];
            uint32_t rev = 0;
            for (int b = 0; b < 32; b++)
                rev |= (u[i] >> b & 1) << (31 - b);
            want[0] = a[i] / 3 - a[i] % 3;
            want[1] = (int64_t)(uint32_t)(u[i] * 2654435761u + (u[i] >> 3));
            want[2] = sum * a[i];
            want[3] = __builtin_popcount(u[i]) + (u[i] ? __builtin_clz(u[i]) : 32) * 100 +
                      (int)(rev & 7) * 10000;
            const struct ref_output *o = case_out(&c, k);
            if (o->i[i] != want[k] || o->e[i] != 0) {
                tap_note("output %zu element %d: %lld, not %lld", k, i, (long long)o->i[i],
                         (long long)want[k]);
                wrong++;
            }
        }
    eq_int(wrong, 0, "integer arithmetic is C's, wrapping, and exact");
    case_end(&c);
}

/* f32(a * b) rounds; without the conversion the product keeps its bits. */
static void rounding_points(void)
{
    struct ref_case c =
        case_of("kernel: k\n"
                "params:\n"
                "  x: in f32[n]\n"
                "  y: in f32[n]\n"
                "  z: in f32[n]\n"
                "  a: out f32[n]\n"
                "  b: out f32[n]\n"
                "  d: out f64[n]\n"
                "compute: |\n"
                "  a[i] = f32(f32(x[i] * y[i]) + z[i])\n"
                "  b[i] = f32(fma(x[i], y[i], f32(z[i] / y[i])))\n"
                "  d[i] = f64(f64(f64(x[i]) * f64(0.1)) + f64(sqrt(f64(abs(y[i])))))\n");
    enum { N = 1000 };
    static float x[N], y[N], z[N];
    uint64_t s = 1;
    for (int i = 0; i < N; i++) {
        x[i] = (float)next_random(&s);
        y[i] = (float)next_random(&s);
        z[i] = (float)next_random(&s);
    }
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    case_buffer(&c, "y", y);
    case_buffer(&c, "z", z);
    int wrong = 0;
    const struct ref_output *a = case_out(&c, 0), *b = case_out(&c, 1), *d = case_out(&c, 2);
    for (int i = 0; i < N; i++) {
        volatile float p = x[i] * y[i], q = z[i] / y[i];
        volatile float sum = p + z[i];
        volatile double t = (double)x[i] * 0.1;
        wrong += a->v[i] != (double)sum || a->e[i] != 0;
        wrong += b->v[i] != (double)fmaf(x[i], y[i], q) || b->e[i] != 0;
        wrong += d->v[i] != t + sqrt(fabs((double)y[i])) || d->e[i] != 0;
    }
    eq_int(wrong, 0, "explicit conversions reproduce IEEE arithmetic bit for bit");
    case_end(&c);
}

static void gather_and_pad(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  w: in f32[r]\n"
                                "  ids: in i32[m]\n"
                                "  y: out f32[n]\n"
                                "  g: out f32[m]\n"
                                "compute: |\n"
                                "  y[i] = sum[k](pad(x[i + k - 1], 0) * w[k])\n"
                                "  g[j] = x[ids[j]]\n");
    float x[6] = {1, 2, 3, 4, 5, 6}, w[3] = {1, 10, 100};
    int32_t ids[3] = {5, 0, 3};
    case_dim(&c, "n", 6);
    case_dim(&c, "r", 3);
    case_dim(&c, "m", 3);
    case_buffer(&c, "x", x);
    case_buffer(&c, "w", w);
    case_buffer(&c, "ids", ids);
    const struct ref_output *y = case_out(&c, 0), *g = case_out(&c, 1);
    eq_dbl(y->v[0], 210, "padding on the left");
    eq_dbl(y->v[2], 432, "the middle of a convolution");
    eq_dbl(y->v[5], 65, "padding on the right");
    eq_dbl(g->v[0], 6, "a gather");
    ids[1] = 6;
    ok(case_run(&c) == NULL, "a subscript outside is an error");
    ok(strstr(case_error(&c), "subscript 1 of 'x' is 6, outside 0..6") &&
           strstr(case_error(&c), "'g' at j = 1"),
       "... that names the tensor, the index and the place: %s", case_error(&c));
    case_end(&c);
}

static void conditions_guard(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  y: out f32[ceil_div(n, 4)]\n"
                                "compute: |\n"
                                "  y[b] = sum[t < 4](b*4 + t < n ? x[b*4 + t] : 0)\n");
    float x[7] = {1, 2, 3, 4, 5, 6, 7};
    case_dim(&c, "n", 7);
    case_buffer(&c, "x", x);
    const struct ref_output *y = case_out(&c, 0);
    eq_int(y->count, 2, "the output's shape follows its expression");
    eq_dbl(y->v[0], 10, "the first block");
    eq_dbl(y->v[1], 18, "the guard keeps the last block inside");
    case_end(&c);
}

static void reductions(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[r, c]\n"
                                "  a: out i64[r]\n"
                                "  b: out i64[r]\n"
                                "  p: out f32[r]\n"
                                "  t: out bool[r]\n"
                                "  u: out f32[]\n"
                                "compute: |\n"
                                "  a[i] = argmax[j](x[i, j])\n"
                                "  b[i] = argmin[j](x[i, j])\n"
                                "  p[i] = prod[j](x[i, j])\n"
                                "  t[i] = any[j](x[i, j] > 4)\n"
                                "  u = sum[i, j](x[i, j])\n");
    float x[3][4] = {{1, 3, 2, 3}, {-1, -2, -3, -3}, {5, 4, 0.5f, 1}};
    case_dim(&c, "r", 3);
    case_dim(&c, "c", 4);
    case_buffer(&c, "x", x);
    ok(case_out(&c, 0)->i[0] == 1 && case_out(&c, 0)->i[1] == 0 && case_out(&c, 0)->i[2] == 0,
       "argmax: the first of equals");
    ok(case_out(&c, 1)->i[0] == 0 && case_out(&c, 1)->i[1] == 2 && case_out(&c, 1)->i[2] == 2,
       "argmin: the first of equals");
    ok(case_out(&c, 2)->v[0] == 18 && case_out(&c, 2)->v[1] == 18 && case_out(&c, 2)->v[2] == 10,
       "prod");
    ok(case_out(&c, 3)->i[0] == 0 && case_out(&c, 3)->i[2] == 1, "any");
    eq_dbl(case_out(&c, 4)->v[0], 10.5, "a sum over two indices into a scalar");
    eq_dbl(case_out(&c, 4)->e[0], 0, "... is exact when every partial sum is");
    case_end(&c);
}

static void long_reductions(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[n]\n"
                                "  s: out f32[]\n"
                                "  m: out f32[]\n"
                                "  a: out i64[]\n"
                                "  f: out f32[n]\n"
                                "compute: |\n"
                                "  s = sum[i](x[i])\n"
                                "  m = max[i](x[i])\n"
                                "  a = argmax[i](x[i])\n"
                                "  f[i] = sum[k < i + 1](x[k])\n");
    enum { N = 3000 };
    static float x[N];
    uint64_t seed = 7;
    double sum = 0, part = 0;
    int best = 0, wrong = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(int)(next_random(&seed) * 1000);
        sum += (double)x[i];
        best = x[i] > x[best] ? i : best;
    }
    case_dim(&c, "n", N);
    case_buffer(&c, "x", x);
    eq_dbl(case_out(&c, 0)->v[0], sum, "a sum of 3000 whole numbers");
    eq_dbl(case_out(&c, 0)->e[0], 0, "... is exact");
    eq_dbl(case_out(&c, 1)->v[0], (double)x[best], "its largest");
    eq_int(case_out(&c, 2)->i[0], best, "... and where");
    for (int i = 0; i < N; i++) {
        part += (double)x[i];
        wrong += case_out(&c, 3)->v[i] != part;
    }
    eq_int(wrong, 0, "a range that depends on an outer index");
    case_end(&c);
}

static int collatz(uint32_t x)
{
    int n = 0;
    for (; x != 1; n++)
        x = x % 2 ? 3 * x + 1 : x / 2;
    return n;
}

static void recurrences(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in u32[n]\n"
                                "  y: out u32[n]\n"
                                "grid: 1\n"
                                "block: 1\n"
                                "body: |\n"
                                "  y[0] = x[0];\n"
                                "reference: |\n"
                                "  v[i, t < 200] = t == 0 ? x[i] : v[i, t-1] <= 1u ? v[i, t-1] : "
                                "v[i, t-1] % 2u == 0u ? v[i, t-1] / 2u : 3u * v[i, t-1] + 1u\n"
                                "  y[i] = sum[t < 200](v[i, t] != 1u ? 1u : 0u)\n");
    uint32_t x[150];
    int wrong = 0;
    for (uint32_t i = 0; i < 150; i++)
        x[i] = i + 1;
    case_dim(&c, "n", 150);
    case_buffer(&c, "x", x);
    for (uint32_t i = 0; i < 150; i++)
        wrong += case_out(&c, 0)->i[i] != collatz(i + 1);
    eq_int(wrong, 0, "a recurrence: lengths of Collatz sequences");
    c.opt.sample = 20;
    case_run(&c);
    const struct ref_output *o = case_out(&c, 0);
    for (uint64_t i = 0; i < o->n; i++)
        wrong += o->i[i] != collatz((uint32_t)o->where[i] + 1);
    ok(o->n >= 10 && o->n <= 20 && wrong == 0, "... of a sample too");
    case_end(&c);
}

/* A recurrence that reads its neighbours: Pascal's triangle. */
static void stencil_recurrence(void)
{
    struct ref_case c =
        case_of("kernel: k\n"
                "params:\n"
                "  x: in f64[n]\n"
                "  y: out f64[n, m]\n"
                "grid: 1\n"
                "block: 1\n"
                "body: |\n"
                "  y[0, 0] = x[0];\n"
                "reference: |\n"
                "  y[i, t] = t == 0 ? x[i] : y[i, t-1] + (i > 0 ? y[i-1, t-1] : 0)\n");
    double x[40] = {1};
    case_dim(&c, "n", 40);
    case_dim(&c, "m", 40);
    case_buffer(&c, "x", x);
    eq_dbl(case_out(&c, 0)->v[10 * 40 + 20], 184756, "20 choose 10");
    eq_dbl(case_out(&c, 0)->v[10 * 40 + 39], 635745396, "39 choose 10");
    case_end(&c);
}

static const char *const matmul_spec = "kernel: k\n"
                                       "params:\n"
                                       "  a: in f32[m, k]\n"
                                       "  b: in f32[k, n]\n"
                                       "  c: out f32[m, n]\n"
                                       "compute: |\n"
                                       "  c[i, j] = sum[p](a[i, p] * b[p, j])\n";

/* Matrices are multiplied in another order than a sum's terms are added up one by one. */
static bool same(double v, double e, double w, double f)
{
    return fabs(v - w) <= 1e-5 * e && f >= e * (1 - 1e-6) && f <= e * 1.01;
}

/* The same values whatever the number of threads, and for a sample. */
static void independence(void)
{
    enum { N = 70 };
    static float a[N * N], b[N * N];
    uint64_t seed = 3;
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)next_random(&seed);
        b[i] = (float)next_random(&seed);
    }
    struct ref_case c = case_of(matmul_spec);
    case_dim(&c, "m", N);
    case_dim(&c, "n", N);
    case_dim(&c, "k", N);
    case_buffer(&c, "a", a);
    case_buffer(&c, "b", b);
    static double v[N * N], e[N * N];
    c.opt.threads = 1;
    case_run(&c);
    memcpy(v, case_out(&c, 0)->v, sizeof v);
    memcpy(e, case_out(&c, 0)->e, sizeof e);
    c.opt.threads = 5;
    case_run(&c);
    ok(memcmp(v, case_out(&c, 0)->v, sizeof v) == 0 && memcmp(e, case_out(&c, 0)->e, sizeof e) == 0,
       "five threads give what one gives");
    c.opt.sample = 100;
    case_run(&c);
    const struct ref_output *o = case_out(&c, 0);
    int wrong = 0;
    for (uint64_t i = 0; i < o->n; i++)
        wrong += !same(o->v[i], o->e[i], v[o->where[i]], e[o->where[i]]) ||
                 (i && o->where[i] <= o->where[i - 1]);
    ok(o->n > 50 && o->n <= 100 && wrong == 0, "a sample is a part of the whole");
    c.opt.sample = 0;
    c.opt.memory = 1000;
    case_run(&c);
    o = case_out(&c, 0);
    for (uint64_t i = 0; i < o->n; i++)
        wrong += !same(o->v[i], o->e[i], v[i], e[i]);
    ok(o->n == o->count && wrong == 0, "so is what is evaluated with little memory");
    case_end(&c);
}

/* Of two outputs that are the same, where the second's reductions depend on all indices around
 * them, too. */
static void kept_reductions(void)
{
    enum { M = 3, N = 200 };
    struct ref_case c = case_of(
        "kernel: k\n"
        "params:\n"
        "  x: in f32[m, n]\n"
        "  z: in f32[n]\n"
        "  y: out f32[m, n]\n"
        "compute: |\n"
        "  y[i, j] = exp(x[i, j] - max[l](x[i, l])) / "
        "sum[l](exp(x[i, l] - max[q](x[i, q]))) +\n"
        "            sum[l < n](x[l < m ? l : 0, j] > 0 ? max[q < l % 7 + 1](x[i, q]) : 1)\n");
    struct ref_case d = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[m, n]\n"
                                "  z: in f32[n]\n"
                                "  y: out f32[m, n]\n"
                                "compute: |\n"
                                "  y[i, j] = exp(x[i, j] - max[l](x[i, l])) / "
                                "sum[l](exp(x[i, l] - max[q](x[i, q] + z[l] * z[j]))) +\n"
                                "            sum[l < n](x[l < m ? l : 0, j] > 0 ? max[q < l % 7 + "
                                "1](x[i, q] + z[j] * z[l]) : 1)\n");
    static float x[M * N], z[N];
    uint64_t s = 11;
    for (int k = 0; k < M * N; k++)
        x[k] = (float)next_random(&s);
    for (struct ref_case *k = &c; k; k = k == &c ? &d : NULL) {
        case_dim(k, "m", M);
        case_dim(k, "n", N);
        case_buffer(k, "x", x);
        case_buffer(k, "z", z);
    }
    for (unsigned sample = 0; sample <= 50; sample += 50) {
        c.opt.sample = d.opt.sample = sample;
        case_run(&c);
        case_run(&d);
        const struct ref_output *o = case_out(&c, 0), *p = case_out(&d, 0);
        int wrong = 0;
        for (uint64_t i = 0; i < o->n; i++)
            wrong += !same(o->v[i], o->e[i], p->v[i], p->e[i]);
        ok(wrong == 0, "a reduction that is kept is what it would be%s",
           sample ? ", in a sample" : "");
        ok(ref_operations(c.ref) * 20 < ref_operations(d.ref), "... with far less to do");
    }
    case_end(&c);
    case_end(&d);
}

/* As many values as are kept, and one more. */
static void kept_to_the_last(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[4, n]\n"
                                "  y: out f32[4, n]\n"
                                "compute: |\n"
                                "  y[i, j] = x[i, j] + max[l < 4](x[l, j])\n");
    static float x[4 * (REF_KEPT + 1)];
    uint64_t s = 12, done[2];
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        x[k] = (float)next_random(&s);
    case_buffer(&c, "x", x);
    c.opt.threads = 1;
    for (unsigned more = 0; more < 2; more++) {
        case_dim(&c, "n", REF_KEPT + more);
        case_run(&c);
        done[more] = ref_operations(c.ref);
    }
    ok(done[0] * 5 < done[1] * 3, "so many values are kept, and not one less");
    case_end(&c);
}

/* Of an index at which the reduction is only perhaps taken first, in the last lane, and then is. */
static void kept_perhaps(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in f32[9]\n"
                                "  y: out f32[8, 9]\n"
                                "compute: |\n"
                                "  y[i, j] = j > 0 || x[0] / 3 * 3 > x[0] ? sum[l < 3](x[i + l]) "
                                ": 1\n");
    static const float x[9] = {.7f, .1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f};
    case_buffer(&c, "x", x);
    ok(!case_run(&c), "what perhaps is read is not kept for what is");
    eq_str(case_error(&c),
           "subscript 1 of 'x' is 9, outside 0..9, in the equation of 'y' at i = 7, j = 1",
           "... and it is said where");
    case_end(&c);
}

static void division_by_zero(void)
{
    struct ref_case c = case_of("kernel: k\n"
                                "params:\n"
                                "  x: in i32[n]\n"
                                "  y: out i32[n]\n"
                                "compute: |\n"
                                "  y[i] = 100 / x[i]\n");
    int32_t x[3] = {1, 0, 2};
    case_dim(&c, "n", 3);
    case_buffer(&c, "x", x);
    ok(case_run(&c) == NULL && strstr(case_error(&c), "division of integers by zero"),
       "dividing by zero is an error");
    x[1] = 7;
    ok(case_run(&c) != NULL, "and is not when nothing is divided by zero");
    case_end(&c);
}

int main(void)
{
    elementwise();
    softmax();
    integers();
    rounding_points();
    gather_and_pad();
    conditions_guard();
    reductions();
    long_reductions();
    recurrences();
    stencil_recurrence();
    independence();
    kept_reductions();
    kept_to_the_last();
    kept_perhaps();
    division_by_zero();
    return tap_done();
}
