/* Sums as tensor cores form them, against what the reference allows them. */
#include <config.h>

#include "ref_case.h"

static const struct tolerance ANALYSED = {.ulp = -1};

/* Element e of what a GPU's mma.sync computes. */
struct unit {
    const char *name;
    int step;     /* products that are added at once */
    int fraction; /* bits that alignment leaves */
};
static const struct unit turing = {"Turing", 4, 24}, ampere = {"Ampere", 8, 24},
                         hopper = {"Hopper", 16, 25};

static double cut(double v, double unit)
{
    return trunc(v / unit) * unit;
}

/* As f16 has it. */
static int exponent(float v)
{
    return ilogb(v) < -14 ? -14 : ilogb(v);
}

/* c + the n products of f16, cut off as lib/ref/ref.h says. */
static double step(const struct unit *u, const float *a, const float *b, int n, double c)
{
    int top = c == 0 ? -1000 : ilogb(c);
    for (int i = 0; i < n; i++)
        if (a[i] != 0 && b[i] != 0 && exponent(a[i]) + exponent(b[i]) > top)
            top = exponent(a[i]) + exponent(b[i]);
    double unit = ldexp(1, top - u->fraction), sum = cut(c, unit);
    for (int i = 0; i < n; i++)
        sum += cut((double)a[i] * (double)b[i], unit);
    return sum == 0 ? 0 : cut(sum, ldexp(1, ilogb(sum) - 23));
}

static float dot(const struct unit *u, const float *a, const float *b, int n)
{
    double c = 0;
    for (int i = 0; i < n; i += u->step)
        c = step(u, a + i, b + i, n - i < u->step ? n - i : u->step, c);
    return (float)c;
}

enum { ROWS = 64, MOST = 4096 };
static float a[ROWS * MOST], b[ROWS * MOST], got[ROWS];

static struct ref_case dots(const char *product)
{
    char text[512];
    snprintf(text, sizeof text,
             "kernel: k\n"
             "params:\n"
             "  a: in f32[m, n]\n"
             "  b: in f32[m, n]\n"
             "  s: out f32[m]\n"
             "compute: |\n"
             "  s[i] = sum[l](%s)\n",
             product);
    struct ref_case c = case_of(text);
    case_dim(&c, "m", ROWS);
    case_buffer(&c, "a", a);
    case_buffer(&c, "b", b);
    return c;
}

static struct compare_result check(struct ref_case *c, int n)
{
    struct compare_result r;
    case_dim(c, "n", (uint64_t)n);
    case_run(c);
    case_out(c, 0);
    compare_output(c->ref, 0, got, &ANALYSED, true, &r);
    return r;
}

/* Eleven bits, as f16 and tf32 have them. */
static float narrow(double v)
{
    return (float)rint(v * 0x1p10) * 0x1p-10f;
}

static const char *const of_f16 = "f16(a[i, l]) * f16(b[i, l])", *const of_f32 =
                                                                     "a[i, l] * b[i, l]";

/* kind 0: both signs; 1: positive; 2: one, then products just too small to be added to it; 3: one
 * subnormal factor whose exponent is far above its own, and products that are small beside that; 4:
 * factors of which many are subnormal. */
static void fill(int kind, int n)
{
    uint64_t seed = 3;
    for (int i = 0; i < ROWS * n; i++) {
        a[i] = narrow(next_random(&seed));
        b[i] = narrow(next_random(&seed));
        if (kind == 1) {
            a[i] = fabsf(a[i]);
            b[i] = fabsf(b[i]);
        } else if (kind == 2) {
            a[i] = b[i] = i % n ? 2047 * 0x1p-23f : 1;
        } else if (kind == 3) {
            a[i] = i % n ? 2047 * 0x1p-23f : 0x1p-24f;
            b[i] = i % n ? 2047 * 0x1p-24f : 1;
        } else if (kind == 4) {
            a[i] = (float)rint(a[i] * 0x1p10) * 0x1p-24f;
            b[i] = (float)ldexp(b[i], -(int)(i % 5));
        }
    }
}

static void truncated(const struct unit *u)
{
    struct ref_case c = dots(of_f16);
    double most = 0;
    bool all = true;
    for (int kind = 0; kind < 5; kind++)
        for (int n = 1; n <= MOST; n = n < 20 ? n + 1 : n * 3 + 1) {
            fill(kind, n);
            for (int i = 0; i < ROWS; i++)
                got[i] = dot(u, a + i * n, b + i * n, n);
            c.opt.sums = (struct spec_sums){1, 6 * (((uint64_t)n + 3) / 4), 0};
            struct compare_result r = check(&c, n);
            all = all && r.status != COMPARE_FAIL && r.max_bound <= 1;
            most = fmax(most, r.max_bound);
        }
    ok(all && most > 0.2, "%s: no more than 6 units for four products (%.2f of them at most)",
       u->name, most);
    fill(1, 300);
    for (int i = 0; i < ROWS; i++)
        got[i] = dot(u, a + i * 300, b + i * 300, 299);
    c.opt.sums.truncation = 450;
    ok(check(&c, 300).wrong > ROWS / 2, "%s: a missing term fails", u->name);
    case_end(&c);
}

/* What is cut off shows where a kernel says that it adds with f32 instructions. */
static void not_told(void)
{
    struct ref_case c = dots(of_f16);
    fill(2, 1000);
    for (int i = 0; i < ROWS; i++)
        got[i] = dot(&ampere, a + i * 1000, b + i * 1000, 1000);
    c.opt.sums = (struct spec_sums){1, 0, 0};
    eq_int(check(&c, 1000).status, COMPARE_FAIL, "a kernel that does not tell fails");
    case_end(&c);
}

/* Small whole numbers lose nothing, so that equality is demanded; a sum that needs the 25th bit
 * may. */
static void exact(void)
{
    struct ref_case c = dots(of_f16);
    uint64_t seed = 9;
    for (int i = 0; i < ROWS * 200; i++) {
        a[i] = (float)rint(16 * next_random(&seed));
        b[i] = (float)rint(16 * next_random(&seed));
    }
    for (int i = 0; i < ROWS; i++)
        got[i] = dot(&ampere, a + i * 200, b + i * 200, 200);
    c.opt.sums = (struct spec_sums){1, 300, 0};
    struct compare_result r = check(&c, 200);
    ok(r.status == COMPARE_PASS && r.exact == ROWS, "small whole numbers: equality is demanded");
    a[0] = b[0] = 4096;
    a[1] = b[1] = 1;
    for (int i = 2; i < 200; i++)
        a[i] = 0;
    r = check(&c, 200);
    ok(r.exact == ROWS - 1, "2^24 + 1: it is not");
    case_end(&c);
}

/* a - the nearest with eleven bits */
static float part(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    u = (u + 0x1000) & ~0x1fffu;
    memcpy(&x, &u, 4);
    return x;
}

static void in_parts(void)
{
    struct ref_case c = dots(of_f32);
    uint64_t seed = 21;
    const int lengths[] = {1, 2, 5};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        int n = lengths[k];
        for (int i = 0; i < ROWS * n; i++) {
            a[i] = (float)next_random(&seed);
            b[i] = (float)next_random(&seed);
        }
        for (int i = 0; i < ROWS; i++) {
            double s = 0;
            for (int l = i * n; l < (i + 1) * n; l++) {
                float a1 = part(a[l]), a2 = part(a[l] - a1), b1 = part(b[l]), b2 = part(b[l] - b1);
                s += (double)a1 * (double)b1 + (double)a1 * (double)b2 + (double)a2 * (double)b1;
            }
            got[i] = (float)s;
        }
        c.opt.sums = (struct spec_sums){1, 18 * (((uint64_t)n + 3) / 4), 12};
        struct compare_result r = check(&c, n);
        ok(r.status == COMPARE_PASS && r.max_bound > 0.01, "three products of tf32, %d terms: %.2f",
           n, r.max_bound);
        c.opt.sums = (struct spec_sums){0};
        if (n == 1)
            eq_int(check(&c, n).status, COMPARE_FAIL, "... which are no product of f32");
    }
    /* what has 22 bits is exact all the same */
    for (int i = 0; i < ROWS; i++) {
        a[i] = (float)(i + 1);
        b[i] = 2049;
        got[i] = a[i] * b[i];
    }
    c.opt.sums = (struct spec_sums){1, 18, 12};
    struct compare_result r = check(&c, 1);
    ok(r.status == COMPARE_PASS && r.exact == ROWS, "products of 22 bits are exact");
    c.opt.sums = (struct spec_sums){1, 18, 13};
    eq_int(check(&c, 1).exact, 0, "... but not where an odd number says so");
    /* a1 b2 by bf16: of 511 that makes 512, and b2 is 1 */
    for (int i = 0; i < ROWS; i++) {
        a[i] = 511;
        b[i] = (float)(4096 + 4 * i + 1);
        got[i] = a[i] * (b[i] - 1) + 512;
    }
    c.opt.sums = (struct spec_sums){1, 18, 48};
    eq_int(check(&c, 1).status, COMPARE_FAIL, "... which are never of 512 for 511");
    c.opt.sums = (struct spec_sums){1, 18, 88};
    eq_int(check(&c, 1).status, COMPARE_PASS, "... but where a factor has 8 bits");
    for (int i = 0; i < ROWS; i++) {
        a[i] = 127;
        b[i] = (float)(4095 - 2 * i);
        got[i] = a[i] * b[i];
    }
    r = check(&c, 1);
    ok(r.status == COMPARE_PASS && r.exact == ROWS, "... and then those of 19 bits are exact");
    case_end(&c);
}

int main(void)
{
    truncated(&turing);
    truncated(&ampere);
    truncated(&hopper);
    not_told();
    exact();
    in_parts();
    return tap_done();
}
