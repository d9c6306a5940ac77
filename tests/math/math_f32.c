/* lib/lower/math_f32.k against the C library's double functions, whose own error (below 2^-28 ulp of
 * f32) does not show.
 *
 *     math_f32                     a sample of each function; the bounds of math.def as TAP
 *     math_f32 STEP [NAME...]      every STEP-th input (1: all 2^32), the table of errors
 */
#include <config.h>

#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#pragma GCC target("avx2,fma")
#elif defined __x86_64__ && defined __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#endif

#include "math/prelude.h"
/* the language has no prototypes */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-equal"
#include "lower/math_f32.k"
#include "math/prelude_end.h"

#include "unit/tap.h"

struct fn {
    const char *name;
    f32 (*got)(f32);
    double (*want)(double);
    double bound;
};

static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double ref_silu(double x)
{
    return isinf(x) && x < 0 ? -0.0 : x / (1 + exp(-x));
}
static double ref_gelu(double x)
{
    return isinf(x) && x < 0 ? -0.0 : 0.5 * x * erfc(-x * M_SQRT1_2);
}
static double ref_gelu_tanh(double x)
{
    if (isinf(x))
        return x < 0 ? -0.0 : x;
    return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
#define ref_exp   exp
#define ref_exp2  exp2
#define ref_expm1 expm1
#define ref_log   log
#define ref_log2  log2
#define ref_log10 log10
#define ref_log1p log1p
#define ref_sin   sin
#define ref_cos   cos
#define ref_tan   tan
#define ref_tanh  tanh
#define ref_sinh  sinh
#define ref_cosh  cosh
#define ref_asin  asin
#define ref_acos  acos
#define ref_atan  atan
#define ref_cbrt  cbrt
#define ref_erf   erf
#define ref_erfc  erfc

static const struct fn functions[] = {
#define MATH1(name, ulp_f32, ulp_f64, doc) {#name, name##_f32, ref_##name, ulp_f32},
#define MATH2(name, ulp_f32, ulp_f64, doc)
#include "lower/math.def"
#undef MATH1
#undef MATH2
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

/* |got - want| in units of want's last place in f32; 1e30 where they differ in kind or in a zero's
 * sign. Beyond f32's range infinity is taken to be 2^128. */
static double error_ulp(f32 got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e30;
    if (signbit(want) != signbit((double)got) && (want == 0 || got == 0) && fabs(want) < 0x1p-149)
        return 1e30;
    double g = isinf(got) ? copysign(0x1p128, got) : (double)got;
    double w = fabs(want) > 0x1p128 ? copysign(0x1p128, want) : want;
    if (g == w)
        return 0;
    uint64_t b = as_u64(w) >> 52 & 0x7ff;
    if (b < 1023 - 126)
        b = 1023 - 126;
    if (b > 1023 + 127)
        b = 1023 + 127;
    return fabs(g - w) * as_f64((2 * 1023 + 23 - b) << 52);
}

/* The largest error over first, first + step, ... below 2^32, and where. */
static double sweep(const struct fn *fn, uint32_t first, uint32_t step, uint32_t *where)
{
    double worst = 0;
    for (uint64_t i = first; i < (uint64_t)1 << 32; i += step) {
        f32 x = as_f32((u32)i);
        double e = error_ulp(fn->got(x), fn->want((double)x));
        if (e > worst) {
            worst = e;
            *where = (uint32_t)i;
        }
    }
    return worst;
}

static void table(uint32_t step, char **names)
{
    for (int i = 0; i < NFUNCTIONS; i++) {
        bool wanted = *names == NULL;
        for (char **n = names; *n; n++)
            wanted |= strcmp(*n, functions[i].name) == 0;
        if (!wanted)
            continue;
        uint32_t at = 0;
        double e = sweep(&functions[i], 0, step, &at);
        f32 x = as_f32(at);
        printf("%-10s %12.4f ulp at %.9g (%a, %08x): got %.9g, want %.12g\n", functions[i].name, e,
               (double)x, (double)x, at, (double)functions[i].got(x), functions[i].want((double)x));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2")) {
        puts("1..0 # SKIP this processor has no fma instruction");
        return 0;
    }
    if (argc > 1) {
        table((uint32_t)strtoul(argv[1], NULL, 0), argv + 2);
        return 0;
    }
    for (int i = 0; i < NFUNCTIONS; i++) {
        uint32_t at = 0;
        double e = sweep(&functions[i], 12345, 8191, &at);
        if (!ok(e <= functions[i].bound, "%s_f32 within %g ulp", functions[i].name,
                functions[i].bound))
            tap_note("%g ulp at %a: got %a, want %a", e, (double)as_f32(at),
                     (double)functions[i].got(as_f32(at)), functions[i].want((double)as_f32(at)));
    }
    return tap_done();
}
