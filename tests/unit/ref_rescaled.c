/* Softmax and its product with values as a kernel forms them that goes through a row once, against
 * what the reference allows it: its maximum grows, and what it has added up is scaled by that. */
#include <config.h>

#include "ref_case.h"

static const struct tolerance ANALYSED = {.ulp = -1};

enum { ROWS = 4, COLUMNS = 4, MOST = 65536, TILE = 64 };
static float x[ROWS * MOST], v[MOST * COLUMNS], o[ROWS * COLUMNS], total[ROWS], lse[ROWS];

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Where the kernel errs; tile -1: nowhere. */
struct mistake {
    int tile;
    float scaling; /* of what was added up so far: o's alone */
    float factor;  /* of the row's largest exponential */
};
static const struct mistake none = {-1, 1, 1};

/* As far from e^y as 0.9 units in the last place may be, on either side; but 1 is e^0. */
static float exponential(float y, uint64_t *seed)
{
    double e = exp((double)y);
    int k;
    frexp(e, &k);
    double unit = ldexp(1, (k < -125 ? -125 : k) - 24);
    return y != 0 && isfinite(e) ? (float)(e + (next_random(seed) < 0 ? -0.39 : 0.39) * unit)
                                 : (float)e;
}

static float f16(float y)
{
    return (float)dtype_round(DT_F16, (double)y);
}

/* Are products added up by tensor cores? */
static bool tensor;

static double cut(double y, double unit)
{
    return trunc(y / unit) * unit;
}

/* As f16 has it. */
static int exponent(float y)
{
    return ilogb(y) < -14 ? -14 : ilogb(y);
}

/* sum + the n products of p and a column of values, cut off as lib/ref/ref.h says of Ampere. */
static float multiply(float sum, const float *p, const float *column, int n)
{
    int top = sum == 0 ? -1000 : ilogb(sum);
    for (int j = 0; j < n; j++)
        if (p[j] != 0 && column[j * COLUMNS] != 0 &&
            exponent(p[j]) + exponent(column[j * COLUMNS]) > top)
            top = exponent(p[j]) + exponent(column[j * COLUMNS]);
    const double unit = ldexp(1, top - 24);
    double all = cut(sum, unit);
    for (int j = 0; j < n; j++)
        all += cut((double)p[j] * (double)column[j * COLUMNS], unit);
    return all == 0 ? 0 : (float)cut(all, ldexp(1, ilogb(all) - 23));
}

/* In one order, or in steps of 8 on top of what is there. */
static void add_products(float *sum, const float *p, const float *column, int n)
{
    float part = 0;
    for (int j = 0; j < n && tensor; j += 8)
        *sum = multiply(*sum, p + j, column + j * COLUMNS, n - j < 8 ? n - j : 8);
    for (int j = 0; j < n && !tensor; j++)
        part += p[j] * column[j * COLUMNS];
    *sum += part;
}

struct row {
    float largest; /* of all columns */
    float top, total, sum[COLUMNS];
};

static void rescale(struct row *w, float top, float wrong, uint64_t *seed)
{
    float by = w->top == -INFINITY ? 0 : exponential(w->top - top, seed);
    w->top = top;
    w->total *= by;
    for (int c = 0; c < COLUMNS; c++)
        w->sum[c] *= by * wrong;
}

/* Columns from .. to of row i, of which those from `end` on have no exponential. */
static void add_tile(struct row *w, int i, int n, int from, int to, int end,
                     const struct mistake *m, int tile, uint64_t *seed)
{
    float top = w->top, part = 0;
    for (int j = from; j < to; j++)
        top = fmaxf(top, x[i * n + j]);
    if (top > w->top)
        rescale(w, top, m->tile == tile ? m->scaling : 1, seed);
    float p[TILE] = {0};
    to = to < end ? to : end;
    for (int j = from; j < to; j++) {
        p[j - from] = x[i * n + j] == -INFINITY ? 0 : exponential(x[i * n + j] - top, seed);
        p[j - from] *= x[i * n + j] == w->largest ? m->factor : 1;
        part += p[j - from];
        p[j - from] = f16(p[j - from]);
    }
    w->total += part;
    for (int c = 0; c < COLUMNS; c++)
        add_products(&w->sum[c], p, &v[from * COLUMNS + c], to - from);
}

/* What the maximum was rounded by is taken off at last by tensor cores' kernel, but for a rounding
 * that e^0 has, too. */
static void take_off(struct row *w)
{
    const float by = tensor ? 0x1.fffffep-1f : 1;
    w->total *= by;
    for (int c = 0; c < COLUMNS; c++)
        w->sum[c] *= by;
}

static void attend(int n, int width, int end, struct mistake m)
{
    uint64_t seed = 11;
    for (int i = 0; i < ROWS; i++) {
        struct row w = {.top = -INFINITY, .largest = -INFINITY};
        for (int j = 0; j < n; j++)
            w.largest = fmaxf(w.largest, x[i * n + j]);
        for (int tile = 0; tile * width < n; tile++) {
            const int to = (tile + 1) * width;
            add_tile(&w, i, n, tile * width, to < n ? to : n, end, &m, tile, &seed);
        }
        take_off(&w);
        if (w.top == -INFINITY)
            w.total = NAN; /* exp(-inf + inf) */
        total[i] = w.total;
        lse[i] = w.top + logf(w.total);
        for (int c = 0; c < COLUMNS; c++)
            o[i * COLUMNS + c] = w.sum[c] / w.total;
    }
}

/* ---- the spec -------------------------------------------------------------------------------- */

static struct ref_case softmax(const char *p, const char *sum)
{
    char text[1024];
    snprintf(text, sizeof text,
             "kernel: k\n"
             "params:\n"
             "  x: in f32[m, n]\n"
             "  v: in f32[n, e]\n"
             "  o: out f32[m, e]\n"
             "  lse: out f32[m]\n"
             "  t: out f32[m]\n"
             "compute: |\n"
             "  top[i] = max[j](x[i, j])\n"
             "  p[i, j] = %s\n"
             "  total[i] = sum[j](p[i, j])\n"
             "  o[i, c] = %s\n"
             "  lse[i] = top[i] + log(total[i])\n"
             "  t[i] = total[i]\n",
             p, sum);
    struct ref_case c = case_of(text);
    case_dim(&c, "m", ROWS);
    case_dim(&c, "e", COLUMNS);
    case_buffer(&c, "x", x);
    case_buffer(&c, "v", v);
    return c;
}

static const char *const plain = "exp(x[i, j] - top[i])",
                         *const but_last = "j + 1 < n ? exp(x[i, j] - top[i]) : 0.0",
                         *const after = "sum[j](f16(p[i, j]) * v[j, c]) / total[i]",
                         *const before = "sum[j](f16(p[i, j] / total[i]) * v[j, c])";

/* The worst of the outputs. */
static struct compare_result check(struct ref_case *c, int n, int width)
{
    const float *const got[] = {o, lse, total};
    struct compare_result worst = {.wrong = 0}, r;
    uint64_t wrong = 0;
    case_dim(c, "n", (uint64_t)n);
    c->opt.sums = (struct spec_sums){.depth = (uint64_t)(width + 4 * ((n + width - 1) / width)),
                                     .truncation = tensor ? 6 * (((uint64_t)n + 3) / 4) : 0};
    case_run(c);
    case_out(c, 0);
    for (size_t k = 0; k < 3; k++) {
        compare_output(c->ref, k, got[k], &ANALYSED, false, &r);
        if (r.max_bound >= worst.max_bound)
            worst = r;
        wrong += r.wrong + r.unbounded; /* the bounds must say something */
    }
    worst.wrong = wrong;
    return worst;
}

/* ---- the numbers ----------------------------------------------------------------------------- */

enum kind {
    NORMAL,
    WIDE,    /* differences of hundreds */
    GROWING, /* a larger maximum in every tile */
    SLOWLY,  /* by one part in two hundred of what was there */
    FALLING,
    SPIKE,  /* one that is far above all, near the end */
    MASKED, /* the first half and every third */
    EQUAL,
    WHOLE, /* whole numbers, whose differences are exact, and fractions between them */
    TINY,  /* the last, which is not added up, is far above all */
    STRAY, /* and all differences from it are exact, but not from the maximum before it */
    KINDS
};

static float score(enum kind kind, int j, int n, uint64_t *seed)
{
    const float r = (float)(next_random(seed) * 3);
    switch (kind) {
    case NORMAL: return r;
    case WIDE: return r * 100;
    case GROWING: return (float)j * 0.3f + r * 0.01f;
    case SLOWLY: return (float)j * (0.005f / 16) + r * 1e-6f;
    case FALLING: return (float)(n - j) * 0.1f;
    case SPIKE: return j == n - n / 4 - 1 ? 60 : r;
    case MASKED: return j < n / 2 || j % 3 == 0 ? -INFINITY : r;
    case EQUAL: return 0.7f;
    case WHOLE: return j % 5 == 0 ? (float)(j / 16) : (float)(j / 16) - 40 + r * 1e-3f;
    case STRAY: return j == n - 1 ? 80 : j ? 0 : 0x3cp-24f;
    default: return j == n - 1 ? 93 : r;
    }
}

static void fill(enum kind kind, int n, bool positive)
{
    uint64_t seed = 5;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < n; j++)
            x[i * n + j] = score(kind, j, n, &seed);
    for (int j = 0; j < n * COLUMNS; j++) {
        v[j] = f16((float)next_random(&seed));
        v[j] = positive ? 1 + fabsf(v[j]) : v[j];
    }
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void streamed(const char *name, const char *p, const char *sum, int width, int longest)
{
    struct ref_case c = softmax(p, sum);
    double most = 0;
    bool all = true;
    for (int kind = 0; kind < KINDS; kind++)
        for (int n = 1; n <= longest; n = n < 20 ? n + 3 : n * 4 + 1) {
            const bool last = p == plain; /* is added up */
            /* a total of 0 is bounded by nothing */
            if (last ? kind >= TINY : n < 2 || kind == WIDE)
                continue;
            for (int sign = 0; sign < 2; sign++) {
                fill((enum kind)kind, n, sign);
                attend(n, width, last ? n : n - 1, none);
                struct compare_result r = check(&c, n, width);
                if (r.wrong)
                    printf("# %s: kind %d, n %d, sign %d: %llu wrong, %g of the bound\n", name,
                           kind, n, sign, (unsigned long long)r.wrong, r.max_bound);
                all = all && !r.wrong;
                most = fmax(most, r.max_bound);
            }
        }
    ok(all && most > 0.1, "%s, tiles of %d%s: within the bound (%.2f of it at most)", name, width,
       tensor ? " by tensor cores" : "", most);
    case_end(&c);
}

static void equal_scores(void)
{
    struct ref_case c = softmax(plain, before);
    fill(EQUAL, MOST, true);
    attend(MOST, 64, MOST, none);
    struct compare_result r = check(&c, MOST, 64);
    ok(!r.wrong, "65536 equal scores, whose parts of the total are subnormal in f16 (%.2f)",
       r.max_bound);
    fill(EQUAL, MOST - 4321, true);
    attend(MOST - 4321, 64, MOST - 4321, none);
    r = check(&c, MOST - 4321, 64);
    ok(!r.wrong && r.max_bound > 0.1, "as many as f16 must round (%.2f)", r.max_bound);
    case_end(&c);
}

/* One part in two hundred. */
static void mistaken(const char *name, const char *sum)
{
    struct ref_case c = softmax(plain, sum);
    fill(SLOWLY, 1024, true);
    attend(1024, 16, 1024, (struct mistake){40, 1 / 0.995f, 1});
    ok(check(&c, 1024, 16).wrong == (uint64_t)ROWS * COLUMNS, "%s: a forgotten rescaling fails",
       name);
    attend(1024, 16, 1024, none);
    ok(!check(&c, 1024, 16).wrong, "%s: none does not", name);
    fill(SPIKE, 1024, true);
    attend(1024, 16, 1024, (struct mistake){-1, 1, 1.005f});
    ok(check(&c, 1024, 16).wrong > 0, "%s: a wrong exponential fails", name);
    case_end(&c);
}

/* Of values near the end of the range, a sum may overflow before the maximum is known. */
static void overflowing(int m, int n)
{
    struct ref_case c = softmax(plain, "sum[j](p[i, j] * v[j, c]) / total[i]");
    case_dim(&c, "m", (uint64_t)m);
    case_dim(&c, "n", (uint64_t)n);
    case_dim(&c, "e", (uint64_t)m);
    for (int k = 0; k < m * n; k++)
        x[k] = k % n == n - 1 ? 60 : 0;
    for (int k = 0; k < m * n; k++)
        v[k] = (k / m) % n < 2 ? 3e38f : 1;
    case_run(&c);
    const struct ref_output *got = case_out(&c, 0);
    ok(got->e[0] == INFINITY && got->e[got->n - 1] == INFINITY,
       "%d x %d: what may overflow before the maximum is known is unknown", m, n);
    for (int k = 0; k < m * n; k++)
        v[k] /= 4;
    case_run(&c);
    got = case_out(&c, 0);
    ok(isfinite(got->e[0]) && isfinite(got->e[got->n - 1]), "what can't is bounded");
    case_end(&c);
}

/* So may what is rounded to fewer bits, here or in an intermediate. */
static void overflowing_factor(const char *name, const char *sum)
{
    enum { N = 8 };
    struct ref_case c = softmax(plain, sum);
    case_dim(&c, "n", N);
    for (int k = 0; k < ROWS * N; k++)
        x[k] = k % N == N - 1 ? 60 : 0;
    for (int k = 0; k < N * COLUMNS; k++)
        v[k] = k / COLUMNS < 2 ? 1e5f : 1;
    case_run(&c);
    const struct ref_output *got = case_out(&c, 0);
    ok(got->e[0] == INFINITY && got->e[got->n - 1] == INFINITY,
       "%s: what f16 may have no room for before the maximum is known is unknown", name);
    for (int k = 0; k < N * COLUMNS; k++)
        v[k] = fminf(v[k], 6e4f);
    case_run(&c);
    got = case_out(&c, 0);
    ok(isfinite(got->e[0]) && isfinite(got->e[got->n - 1]), "%s: what it has is bounded", name);
    case_end(&c);
}

int main(void)
{
    const int widths[] = {1, 16, TILE};
    for (int k = 0; k < 3; k++) {
        tensor = false;
        streamed("softmax, then divided", plain, after, widths[k], 400);
        streamed("divided, then rounded", plain, before, widths[k], 400);
        streamed("a tiny total", but_last, after, widths[k], 400);
        tensor = true;
        streamed("softmax, then divided", plain, after, widths[k], 400);
        streamed("a tiny total", but_last, after, widths[k], 400);
    }
    tensor = false;
    overflowing(4, 8);
    overflowing(64, 64);
    overflowing_factor("a factor", "sum[j](f16(p[i, j] * v[j, 0]) * v[j, c]) / total[i]");
    overflowing_factor("an intermediate", "sum[j](w[i, j] * v[j, c]) / total[i]\n"
                                          "  w[i, j] = f16(2 * v[j, 0] * p[i, j] / 2)");
    equal_scores();
    mistaken("then divided", after);
    mistaken("then rounded", before);
    return tap_done();
}
