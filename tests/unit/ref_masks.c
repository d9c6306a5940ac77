/* What the equations of attention say of NaN, infinities, masks and empty ranges, as IEEE 754 has
 * it: by whole intermediates, by rows, and for one element at a time. */
#include <config.h>

#include "ref_case.h"

enum { M = 5, N = 70, E = 3 };
static float x[M * N], v[N * E];
static int32_t lo[M], hi[M];

#define HEAD                \
    "kernel: k\n"           \
    "params:\n"             \
    "  x: in f32[m, n]\n"   \
    "  v: in f32[n, e]\n"   \
    "  lo: in i32[m]\n"     \
    "  hi: in i32[m]\n"     \
    "  top: out f32[m]\n"   \
    "  total: out f32[m]\n" \
    "  o: out f32[m, e]\n"  \
    "  lse: out f32[m]\n"   \
    "compute: |\n"
enum { TOP, TOTAL, O, LSE };

static const char *const
    plain = HEAD "  top[i] = max[j](x[i, j])\n"
                 "  p[i, j] = exp(x[i, j] - top[i])\n"
                 "  total[i] = sum[j](p[i, j])\n"
                 "  o[i, c] = sum[j](f16(p[i, j]) * v[j, c]) / total[i]\n"
                 "  lse[i] = top[i] + log(total[i])\n",
    *const masked = HEAD "  top[i] = max[j](lo[i] <= j && j < hi[i] ? x[i, j] : -inf)\n"
                         "  p[i, j] = lo[i] <= j && j < hi[i] ? exp(x[i, j] - top[i]) : 0.0\n"
                         "  total[i] = sum[j](p[i, j])\n"
                         "  o[i, c] = sum[j](f16(p[i, j]) * v[j, c]) / total[i]\n"
                         "  lse[i] = top[i] + log(total[i])\n",
    *const guarded = HEAD
    "  top[i] = max[j](lo[i] <= j && j < hi[i] ? x[i, j] : -inf)\n"
    "  p[i, j] = exp(x[i, j] - top[i])\n"
    "  total[i] = sum[j](lo[i] <= j && j < hi[i] ? p[i, j] : 0.0)\n"
    "  o[i, c] = total[i] == 0.0 ? 0.0 :\n"
    "    sum[j](lo[i] <= j && j < hi[i] ? f16(p[i, j]) * v[j, c] : 0.0) / total[i]\n"
    "  lse[i] = top[i] + log(total[i])\n",
    *const ranged = HEAD "  top[i] = max[j in lo[i]..hi[i]](x[i, j])\n"
                         "  p[i, j] = exp(x[i, j] - top[i])\n"
                         "  total[i] = sum[j in lo[i]..hi[i]](p[i, j])\n"
                         "  o[i, c] = sum[j in lo[i]..hi[i]](f16(p[i, j]) * v[j, c]) / total[i]\n"
                         "  lse[i] = top[i] + log(total[i])\n";

static struct ref_case attention(const char *text)
{
    struct ref_case c = case_of(text);
    case_dim(&c, "m", M);
    case_dim(&c, "n", N);
    case_dim(&c, "e", E);
    case_buffer(&c, "x", x);
    case_buffer(&c, "v", v);
    case_buffer(&c, "lo", lo);
    case_buffer(&c, "hi", hi);
    return c;
}

/* Ordinary numbers, all of whose columns count. */
static void fill(void)
{
    uint64_t seed = 9;
    for (int k = 0; k < M * N; k++)
        x[k] = (float)next_random(&seed);
    for (int k = 0; k < N * E; k++)
        v[k] = rintf((float)next_random(&seed) * 256) / 256;
    for (int i = 0; i < M; i++) {
        lo[i] = 0;
        hi[i] = N;
    }
}

static bool is(double got, double want)
{
    return got == want || (isnan(got) && isnan(want));
}

/* Is element k of an output certainly this, however it is evaluated? An infinite bound is written
 * as an infinite e. */
static bool says(const char *text, size_t output, uint64_t k, double want, double e)
{
    bool all = true;
    for (int way = 0; way < 3; way++) {
        struct ref_case c = attention(text);
        c.opt.slab = way == 1;
        c.opt.memory = way == 2;
        const struct ref_output *o = case_out(&c, output);
        if (e == INFINITY)
            all = all && o->e[k] == INFINITY;
        else
            all = all && is(o->v[k], want) && (o->e[k] == 0 || !isfinite(want));
        case_end(&c);
    }
    return all;
}

static bool is_number(const char *text, size_t output, uint64_t k)
{
    struct ref_case c = attention(text);
    const struct ref_output *o = case_out(&c, output);
    const bool good = isfinite(o->v[k]) && o->e[k] < 0.01;
    case_end(&c);
    return good;
}

/* Is it this, but for what the weight of the maximum may be rounded by where a kernel rescales
 * rarely?
 */
static bool says_nearly(const char *text, size_t output, uint64_t k, double want)
{
    struct ref_case c = attention(text);
    const struct ref_output *o = case_out(&c, output);
    const bool good = o->v[k] == want && o->e[k] <= 0x1.01p-11 * fabs(want);
    case_end(&c);
    return good;
}

static void scores(void)
{
    fill();
    x[1 * N + 7] = NAN;
    ok(is_number(plain, TOP, 1), "a maximum passes over a NaN");
    ok(says(plain, TOTAL, 1, NAN, 0) && says(plain, O, 1 * E, NAN, 0) &&
           says(plain, O, 1 * E + 2, NAN, 0) && says(plain, LSE, 1, NAN, 0),
       "but its row is NaN");
    ok(is_number(plain, TOTAL, 0) && is_number(plain, O, 2 * E), "and no other");
    for (int j = 0; j < N; j++)
        x[2 * N + j] = NAN;
    ok(says(plain, TOP, 2, -INFINITY, 0) && says(plain, LSE, 2, NAN, 0),
       "the maximum of NaN alone is -inf");
    for (int j = 0; j < N; j++)
        x[3 * N + j] = -INFINITY;
    ok(says(plain, TOP, 3, -INFINITY, 0) && says(plain, TOTAL, 3, NAN, 0) &&
           says(plain, O, 3 * E + 1, NAN, 0) && says(plain, LSE, 3, NAN, 0),
       "a row that is -inf everywhere: -inf + inf");
    x[3 * N + 40] = 2;
    ok(says(plain, TOTAL, 3, 1, 0) && says_nearly(plain, O, 3 * E + 1, (double)v[40 * E + 1]) &&
           is_number(plain, LSE, 3),
       "everywhere but in one place: what is there");
    x[4 * N + 3] = INFINITY;
    ok(says(plain, TOP, 4, INFINITY, 0) && says(plain, O, 4 * E, NAN, 0) &&
           says(plain, LSE, 4, NAN, 0),
       "inf - inf");
}

static void values(void)
{
    fill();
    hi[1] = 20;
    v[30 * E + 1] = NAN;
    ok(says(masked, O, 1 * E + 1, NAN, 0), "0 x NaN behind a mask on the exponentials");
    ok(is_number(masked, O, 1 * E) && is_number(masked, O, 1 * E + 2), "in its column alone");
    ok(is_number(guarded, O, 1 * E + 1) && is_number(ranged, O, 1 * E + 1),
       "behind a mask on the terms, and outside of the range, nothing");
    ok(says(guarded, O, 2 * E + 1, NAN, 0) && says(ranged, O, 2 * E + 1, NAN, 0),
       "where no mask is, NaN");
    fill();
    hi[1] = 20;
    v[30 * E] = INFINITY;
    ok(says(masked, O, 1 * E, NAN, 0), "0 x inf behind a mask");
    ok(says(masked, O, 2 * E, INFINITY, 0), "and where none is, inf");
    x[2 * N + 30] = -60;
    ok(says(plain, O, 2 * E, NAN, INFINITY),
       "whether what f16 rounds to 0 times inf is NaN depends on when the maximum was known");
}

static void ranges(void)
{
    fill();
    lo[1] = hi[1] = 4;
    lo[2] = 9;
    hi[2] = 2;
    bool all = true;
    for (uint64_t i = 1; i < 3; i++)
        all = all && says(ranged, TOP, i, -INFINITY, 0) && says(ranged, TOTAL, i, 0, 0) &&
              says(ranged, O, i * E, NAN, 0) && says(ranged, LSE, i, -INFINITY, 0);
    ok(all, "an empty range: the maximum is -inf, the sum 0, 0 / 0, and log(0) is -inf");
    all = true;
    for (uint64_t i = 1; i < 3; i++)
        all = all && says(guarded, O, i * E, 0, 0) && says(guarded, LSE, i, -INFINITY, 0);
    ok(all, "the equations may say that it is 0");
    all = true;
    for (uint64_t i = 1; i < 3; i++)
        all = all && says(masked, TOTAL, i, 0, 0) && says(masked, O, i * E, NAN, 0) &&
              says(masked, LSE, i, -INFINITY, 0);
    ok(all, "all masked: as an empty range");
    ok(is_number(ranged, O, 3 * E) && is_number(guarded, LSE, 4), "other rows are numbers");
}

int main(void)
{
    scores();
    values();
    ranges();
    return tap_done();
}
