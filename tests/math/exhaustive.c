/* Every f32 argument of the functions with one: prints the largest error of each in ulp.
 *
 *     exhaustive [NAME...]
 *
 * Arguments whose exact result is 0, infinite or NaN are left to math_f32, and so are those so far
 * out that a function has become 0, infinite, constant or x. Not a test: a minute or so a function;
 * math.def's figures come from it. Build it with 'make tests/math/exhaustive'.
 */
#include <config.h>

#pragma GCC target("avx2,fma")

#include "math/prelude.h"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "lower/mathlib/f32.k"
#include "lower/mathlib/half.k"
#include "lower/mathlib/more_f32.k"
#include "math/prelude_end.h"

#include <stdio.h>

enum { N = 4096 };

struct fn {
    const char *name;
    void (*got)(const f32 *, f32 *, int);
    void (*want)(const float *, double *, int);
};

#define BLOCKS(name, type)                                                            \
    void reference_##name(const float *in, double *out, int n);                       \
    static void got_##name##_##type(const f32 *restrict in, f32 *restrict out, int n) \
    {                                                                                 \
        for (int i = 0; i < n; i++)                                                   \
            out[i] = name##_##type(in[i]);                                            \
    }
#define BLOCKS_1(name) BLOCKS(name, f32)
#define BLOCKS_2(name)
#define ROW_1(name) {#name, got_##name##_f32, reference_##name},
#define ROW_2(name)

#define MATH(name, nargs, ulp_f32, ulp_f64, doc) BLOCKS_##nargs(name)
#define HALF(name, ulp)                          BLOCKS(name, half)
#include "lang/math.def"

static const struct fn functions[] = {
#define MATH(name, nargs, ulp_f32, ulp_f64, doc) ROW_##nargs(name)
#define HALF(name, ulp)                          {#name "_half", got_##name##_half, reference_##name},
#include "lang/math.def"
};

/* |g - w| in ulps of w; 0 where w is outside the smallest and largest numbers */
static inline double error_ulp(f32 g, double w)
{
    double a = fabs(w);
    double e = fabs((double)g - w);
    u64 exponent = as_u64(a < 0x1p-126 ? 0x1p-126 : a) & 0x7ff0000000000000u;
    double scale = as_f64(0x7fe0000000000000u - exponent + ((u64)23 << 52));
    /* a NaN got is an error, a NaN wanted is not looked at */
    double r = e * scale >= 0 ? e * scale : 1e30;
    return a >= 0x1p-149 && a < 0x1.ffffffp127 ? r : 0;
}

/* Where there is something to look at, given a block's first argument; blocks do not straddle a
 * power of 2. */
static bool interesting(const char *name, f32 x)
{
    static const char *const within_1[] = {"asin", "acos"};
    static const char *const within_256[] = {
        "exp",     "exp2", "exp10", "expm1",     "sinh",     "cosh",       "tanh", "erf", "erfc",
        "sigmoid", "silu", "gelu",  "gelu_tanh", "softplus", "logsigmoid", "mish", "selu"};
    for (size_t i = 0; i < sizeof within_1 / sizeof *within_1; i++)
        if (strcmp(name, within_1[i]) == 0)
            return fabsf(x) < 1;
    for (size_t i = 0; i < sizeof within_256 / sizeof *within_256; i++)
        if (strncmp(name, within_256[i], strlen(within_256[i])) == 0)
            return fabsf(x) < 256;
    if (strncmp(name, "log", 3) == 0 && strcmp(name, "log1p") != 0)
        return x >= 0;
    return isfinite(x);
}

int main(int argc, char **argv)
{
    static f32 x[N], g[N];
    static double w[N];
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        const struct fn *fn = &functions[f];
        bool wanted = argc == 1;
        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], fn->name) == 0;
        if (!wanted)
            continue;
        double worst = 0;
        f32 at = 0;
        for (u64 base = 0; base < (u64)1 << 32; base += N) {
            if (!interesting(fn->name, as_f32((u32)base)))
                continue;
            for (int i = 0; i < N; i++)
                x[i] = as_f32((u32)base + (u32)i);
            fn->got(x, g, N);
            fn->want(x, w, N);
            double block = 0;
            for (int i = 0; i < N; i++) {
                double e = error_ulp(g[i], w[i]);
                block = e > block ? e : block;
            }
            if (block <= worst)
                continue;
            worst = block;
            for (int i = 0; i < N; i++)
                if (error_ulp(g[i], w[i]) == block) /* the same computation, the same bits */
                    at = x[i];
        }
        printf("%-10s %8.4f ulp at %.9g (%a)\n", fn->name, worst, (double)at, (double)at);
        fflush(stdout);
    }
}
