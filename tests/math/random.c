/* Random numbers: normal_f32 of lib/lower/mathlib/f32.k against its definition in
 * lib/data/philox.c.
 *
 *     random                 the error over a sample, and the moments, as TAP
 *     random COUNT           the same of COUNT numbers, as a table
 *     random --write COUNT   normal(42, i) for i < COUNT as raw f32, for a comparison with the
 *                            emitted function
 */
#include <config.h>

#include "math/wide.h"
#pragma GCC diagnostic ignored "-Wconversion"
#include "lower/mathlib/convert.k"
#include "lower/mathlib/f32.k"
#include "math/prelude_end.h"

#include "data/philox.h"
#include "unit/tap.h"

static const double BOUND = 3.0; /* in ulp, as lib/ref and kaio-spec(5) say */

struct figures {
    double error, mean, variance, fourth, most;
    u32 a, b; /* where the error is */
};

/* Words as they come, and one in two pushed to where u or the angle is extreme. */
static void words(u64 i, u32 out[4])
{
    philox_words(42, i, 0, out);
    switch (i % 8) {
    case 1: out[0] |= 0xffff0000u; break;
    case 3: out[0] &= 0xffffu >> (i / 8 % 17); break;
    case 5: out[1] = (out[1] & 0xfffu) + (u32)(i / 8 << 28) - 0x800u; break;
    case 7: out[1] = (out[1] & 0xfffu) + (u32)(i / 8 << 28) + 0x20000000u - 0x800u; break;
    default: break;
    }
}

static struct figures measure(u64 count)
{
    struct figures f = {0};
    u64 n = 0;
    for (u64 i = 0; i < count; i++) {
        u32 w[4];
        int exponent;
        words(i, w);
        const f64 want = philox_normal(w[0], w[1]), got = normal_f32(w[0], w[1]);
        frexp(want, &exponent);
        const f64 error = fabs(got - want) / fmax(ldexp(1, exponent - 24), 0x1p-149);
        if (error > f.error) {
            f.error = error;
            f.a = w[0];
            f.b = w[1];
        }
        if (i % 2)
            continue;
        n++;
        f.mean += got;
        f.variance += got * got;
        f.fourth += got * got * got * got;
        f.most = fmax(f.most, fabs(got));
    }
    f.mean /= (f64)n;
    f.variance /= (f64)n;
    f.fourth /= (f64)n;
    return f;
}

static void write_all(u64 count)
{
    for (u64 i = 0; i < count; i++) {
        u32 w[4];
        philox_words(42, i, 0, w);
        const f32 v = normal_f32(w[0], w[1]);
        fwrite(&v, sizeof v, 1, stdout);
    }
}

int main(int argc, char **argv)
{
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        printf("1..0 # SKIP needs AVX2 and FMA\n");
        return 0;
    }
#endif
    if (argc > 2 && strcmp(argv[1], "--write") == 0) {
        write_all(strtoull(argv[2], NULL, 10));
        return 0;
    }
    if (argc > 1) {
        const struct figures f = measure(strtoull(argv[1], NULL, 10));
        printf("error %.3f ulp at %08x %08x, mean %g, variance %g, fourth %g, most %g\n", f.error,
               f.a, f.b, f.mean, f.variance, f.fourth, f.most);
        return 0;
    }
    const u64 count = 2000000;
    const struct figures f = measure(count);
    const f64 sigma = 1 / sqrt((f64)count / 2);
    ok(f.error <= BOUND, "normal: %.2f ulp, at most %.1f", f.error, BOUND);
    ok(f.error > BOUND / 2, "and the bound is not far above");
    ok(fabs(f.mean) < 4 * sigma, "the mean is 0: %g", f.mean);
    ok(fabs(f.variance - 1) < 4 * sqrt(2) * sigma, "the variance is 1: %g", f.variance);
    ok(fabs(f.fourth - 3) < 4 * sqrt(96) * sigma, "the fourth moment is 3: %g", f.fourth);
    ok(philox_normal(0xffffffffu, 0) == 0, "the largest word gives 0");
    ok(philox_normal(0, 0) > 6.7, "the least is far out: %g", philox_normal(0, 0));
    ok(philox_uniform(0xffffffffu) < 1 && philox_uniform(0) == 0, "uniform is in [0, 1)");
    return tap_done();
}

#include "math/wide_end.h"
