/* lib/lower/mathlib/f64.k against the C library's long double functions (64 bits of significand on
 * x86-64, so their own error of an ulp or so is 2^-10 ulp of f64).
 *
 *     math_f64                     a sample of each function; the bounds of math.def as TAP
 *     math_f64 COUNT [NAME...]     COUNT arguments of each, the table of errors
 */
#include <config.h>

#include "math/wide.h"
#pragma GCC diagnostic ignored "-Wconversion"
#include "lower/mathlib/f64.k"
#include "lower/mathlib/more_f64.k"
#include "math/prelude_end.h"

#include <float.h>

#include "unit/tap.h"

#if LDBL_MANT_DIG >= 64 && defined __SIZEOF_FLOAT128__

/* ---- references. Arguments that are products go in two parts where their rounding would be
 * magnified. */

__extension__ typedef __float128 quad;

static long double ref_rsqrt(long double x)
{
    return 1 / sqrtl(x);
}
static long double ref_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}
static long double ref_silu(long double x)
{
    return isinf(x) && x < 0 ? -0.0L : x / (1 + expl(-x));
}
static long double ref_gelu(long double x)
{
    if (isinf(x))
        return x < 0 ? -0.0L : x;
    const quad r = 0.7071067811865475244008443621048490392848Q;
    quad a = -(quad)x * r;
    long double h = (long double)a, l = (long double)(a - (quad)h);
    return 0.5L * x * (erfcl(h) - 2 / sqrtl(M_PIl) * expl(-h * h) * l);
}
static long double ref_gelu_tanh(long double x)
{
    if (fabsl(x) > 1000)
        return x < 0 ? -0.0L : x;
    quad c = 2 * 0.797884560802865355879892119868763737Q;
    quad u = -c * ((quad)x + 0.044715Q * (quad)x * (quad)x * (quad)x);
    long double h = (long double)u, l = (long double)(u - (quad)h);
    return x / (1 + expl(h) * (1 + l));
}
static long double ref_softplus(long double x)
{
    return fmaxl(x, 0) + log1pl(expl(-fabsl(x)));
}
static long double ref_logsigmoid(long double x)
{
    return x < 0 ? x - log1pl(expl(-fabsl(x))) : -log1pl(expl(-fabsl(x)));
}
static long double ref_mish(long double x)
{
    return isinf(x) && x < 0 ? -0.0L : x * tanhl(ref_softplus(x));
}
static long double ref_relu6(long double x)
{
    return x < 0 ? 0 : x > 6 ? 6 : x;
}
static long double ref_hardsigmoid(long double x)
{
    return ref_relu6(x + 3) / 6;
}
static long double ref_hardswish(long double x)
{
    return x < -3 ? -0.0L : x * ref_hardsigmoid(x);
}
static long double ref_softsign(long double x)
{
    return isinf(x) ? copysignl(1, x) : x / (1 + fabsl(x));
}
static long double ref_selu(long double x)
{
    return x > 0 ? 1.0507009873554804934193349852946L * x
                 : 1.7580993408473768599402175208123L * expm1l(x);
}
static long double ref_leaky_relu(long double x, long double slope)
{
    return x < 0 ? x * slope : x;
}
static long double ref_elu(long double x, long double alpha)
{
    return x < 0 ? alpha * expm1l(x) : x;
}
/* sin(pi (x + turn / 2)); where it is 0, +0 */
static long double circle(long double x, int turn)
{
    long double b = fmodl(fabsl(x), 2), n = rintl(2 * b), r = M_PIl * (b - n / 2);
    int q = isfinite(x) ? (int)n + turn : 0;
    long double v = q & 1 ? cosl(r) : sinl(r);
    return (q & 2 ? -v : v) + 0.0L;
}
static long double ref_sinpi(long double x)
{
    return copysignl(1, x) * circle(x, 0);
}
static long double ref_cospi(long double x)
{
    return circle(x, 1);
}

#define ref_exp   expl
#define ref_exp10 exp10l
#define ref_asinh asinhl
#define ref_acosh acoshl
#define ref_atanh atanhl
#define ref_hypot hypotl
#define ref_exp2  exp2l
#define ref_expm1 expm1l
#define ref_log   logl
#define ref_log2  log2l
#define ref_log10 log10l
#define ref_log1p log1pl
#define ref_sin   sinl
#define ref_cos   cosl
#define ref_tan   tanl
#define ref_tanh  tanhl
#define ref_sinh  sinhl
#define ref_cosh  coshl
#define ref_asin  asinl
#define ref_acos  acosl
#define ref_atan  atanl
#define ref_atan2 atan2l
#define ref_pow   powl
#define ref_fmod  fmodl
#define ref_cbrt  cbrtl
#define ref_erf   erfl
#define ref_erfc  erfcl

struct fn {
    const char *name;
    f64 (*got)(f64);
    long double (*want)(long double);
    f64 (*got2)(f64, f64);
    long double (*want2)(long double, long double);
    double bound;
};

#define ROW_1(name, bound) {#name, name##_f64, ref_##name, NULL, NULL, bound},
#define ROW_2(name, bound) {#name, NULL, NULL, name##_f64, ref_##name, bound},

static const struct fn functions[] = {
#define MATH(name, nargs, ulp_f32, ulp_f64, doc) ROW_##nargs(name, ulp_f64)
#include "lang/math.def"
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

/* |got - want| in units of want's last place in f64; 1e30 where they differ in kind or in a zero's
 * sign. Beyond f64's range infinity is taken to be 2^1024. */
static double error_ulp(f64 got, long double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e30;
    if (!signbit(want) != !signbit(got) && (want == 0 || got == 0) && fabsl(want) < 0x1p-1074L)
        return 1e30;
    long double g = isinf(got) ? copysignl(0x1p1024L, (long double)got) : (long double)got;
    long double w = fabsl(want) > 0x1p1024L ? copysignl(0x1p1024L, want) : want;
    if (g == w)
        return 0;
    int e = w == 0 ? -1022 : ilogbl(w);
    e = e < -1022 ? -1022 : e > 1023 ? 1023 : e;
    return (double)scalbnl(fabsl(g - w), 52 - e);
}

/* ---- arguments */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static const f64 specials[] = {0.0,
                               1.0,
                               2.0,
                               3.0,
                               0.5,
                               1.5,
                               INFINITY,
                               NAN,
                               0x1p-1074,
                               0x1p-1022,
                               0x1.fffffffffffffp1023,
                               0x1p53,
                               0x1.fffffffffffffp52,
                               0x1p60,
                               1e-20,
                               3.14159,
                               0x1.fffffffffffffp-1,
                               0x1.0000000000001p0};
enum { NSPECIALS = sizeof specials / sizeof *specials };

static f64 special(uint64_t r)
{
    f64 x = specials[r / 2 % NSPECIALS];
    return r & 1 ? -x : x;
}

/* uniform in -1..1 */
static f64 uniform(uint64_t *state)
{
    return (f64)(int64_t)next_random(state) * 0x1p-63;
}

/* Where the functions are hard or change their method: everywhere, within their domains, near 1,
 * near 0, near multiples of pi/2. */
static f64 argument(uint64_t *state)
{
    uint64_t r = next_random(state);
    switch (next_random(state) % 10) {
    case 0: return as_f64(r);
    case 1: /* exponents -32..31 */
        return as_f64((r & 0x800fffffffffffff) | (991 + (r >> 52 & 63)) << 52);
    case 2: return uniform(state) * 760;
    case 3: return uniform(state) * 40;
    case 4:
    case 5: return uniform(state) * 8;
    case 6: return uniform(state) * 1.2;
    case 7: return 1 + uniform(state) * as_f64((1023 - r % 52) << 52);
    case 8: return as_f64(as_u64(M_PI_2 * (f64)(r >> (r & 63))) + next_random(state) % 5 - 2);
    default: return special(r);
    }
}

static void draw(uint64_t *state, f64 *x, f64 *y)
{
    *x = argument(state);
    *y = argument(state);
    switch (next_random(state) % 4) {
    case 0: break;
    case 1: /* powers in range */
        *x = fabs(*x);
        *y = uniform(state) * 1075 / fabs(log2(*x));
        break;
    case 2: *y = *x * (1 + uniform(state) / 2); break;
    case 3: *x = fabs(*x); break;
    }
}

static double sample(const struct fn *fn, uint64_t count, f64 *wx, f64 *wy)
{
    double worst = 0;
    uint64_t state = 1;
    for (uint64_t i = 0; i < count; i++) {
        f64 x, y = 0;
        double e;
        if (fn->got) {
            x = i < 2 * NSPECIALS ? special(i) : argument(&state);
            e = error_ulp(fn->got(x), fn->want((long double)x));
        } else {
            draw(&state, &x, &y);
            if (i < 4 * NSPECIALS * NSPECIALS) {
                x = special(i);
                y = special(i / (2 * NSPECIALS));
            }
            e = error_ulp(fn->got2(x, y), fn->want2((long double)x, (long double)y));
        }
        if (e > worst) {
            worst = e;
            *wx = x;
            *wy = y;
        }
    }
    return worst;
}

static void describe(const struct fn *fn, f64 x, f64 y, double e)
{
    printf("# %-10s %8.4f ulp at %.17g (%a)", fn->name, e, x, x);
    if (fn->got)
        printf(": got %a, want %.20Lg\n", fn->got(x), fn->want((long double)x));
    else
        printf(", %.17g (%a): got %a, want %.20Lg\n", y, y, fn->got2(x, y),
               fn->want2((long double)x, (long double)y));
    fflush(stdout);
}

static bool named(const struct fn *fn, char **names)
{
    for (char **n = names; *n; n++)
        if (strcmp(*n, fn->name) == 0)
            return true;
    return !*names;
}

int main(int argc, char **argv)
{
    if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2")) {
        puts("1..0 # SKIP this processor has no fma instruction");
        return 0;
    }
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 50000;
    for (int i = 0; i < NFUNCTIONS; i++) {
        const struct fn *fn = &functions[i];
        if (argc > 1 && !named(fn, argv + 2))
            continue;
        f64 x = 0, y = 0;
        double e = sample(fn, count, &x, &y);
        if (argc > 1 || !ok(e <= fn->bound, "%s_f64 within %g ulp", fn->name, fn->bound))
            describe(fn, x, y, e);
    }
    return argc > 1 ? 0 : tap_done();
}

#else

int main(void)
{
    puts("1..0 # SKIP long double is not wider than double here");
    return 0;
}

#endif

#include "math/wide_end.h"
