/* lib/lower/mathlib/f32.k and half.k against the C library's double functions, whose own error
 * (below 2^-28 ulp of f32) does not show.
 *
 *     math_f32                     a sample of each function; the bounds of math.def as TAP
 *     math_f32 STEP [NAME...]      every STEP-th input (1: all 2^32), the table of errors
 */
#include <config.h>

#include "math/wide.h"
#pragma GCC diagnostic ignored "-Wconversion"
#include "lower/mathlib/convert.k"
#include "lower/mathlib/f32.k"
#include "lower/mathlib/half.k"
#include "lower/mathlib/more_f32.k"
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
static double ref_rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double ref_softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double ref_logsigmoid(double x)
{
    return x < 0 ? x - log1p(exp(-fabs(x))) : -log1p(exp(-fabs(x)));
}
static double ref_mish(double x)
{
    return isinf(x) && x < 0 ? -0.0 : x * tanh(ref_softplus(x));
}
static double ref_relu6(double x)
{
    return x < 0 ? 0 : x > 6 ? 6 : x;
}
static double ref_hardsigmoid(double x)
{
    return ref_relu6(x + 3) / 6;
}
static double ref_hardswish(double x)
{
    return x < -3 ? -0.0 : x * ref_hardsigmoid(x);
}
static double ref_softsign(double x)
{
    return isinf(x) ? copysign(1, x) : x / (1 + fabs(x));
}
static double ref_selu(double x)
{
    return x > 0 ? 1.0507009873554804934193349852946 * x
                 : 1.7580993408473768599402175208123 * expm1(x);
}
static double leaky_relu(double x, double slope)
{
    return x < 0 ? x * slope : x;
}
static double elu(double x, double alpha)
{
    return x < 0 ? alpha * expm1(x) : x;
}
/* sin(pi (x + turn / 2)); where it is 0, +0 */
static double circle(double x, int turn)
{
    double b = fmod(fabs(x), 2), n = rint(2 * b), r = M_PI * (b - n / 2);
    int q = isfinite(x) ? (int)n + turn : 0;
    double v = q & 1 ? cos(r) : sin(r);
    return (q & 2 ? -v : v) + 0.0;
}
static double ref_sinpi(double x)
{
    return copysign(1, x) * circle(x, 0);
}
static double ref_cospi(double x)
{
    return circle(x, 1);
}

#define ref_exp   exp
#define ref_exp10 exp10
#define ref_asinh asinh
#define ref_acosh acosh
#define ref_atanh atanh
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

#define ONE_1(name, bound) {#name "_f32", name##_f32, ref_##name, bound},
#define ONE_2(name, bound)
#define TWO_1(name, bound)
#define TWO_2(name, bound) {#name "_f32", name##_f32, name, bound},

static const struct fn functions[] = {
#define MATH(name, nargs, ulp_f32, ulp_f64, doc) ONE_##nargs(name, ulp_f32)
#include "lang/math.def"
#define HALF(name, ulp) {#name "_half", name##_half, ref_##name, ulp},
#include "lang/math.def"
};
enum { NFUNCTIONS = sizeof functions / sizeof *functions };

struct fn2 {
    const char *name;
    f32 (*got)(f32, f32);
    double (*want)(double, double);
    double bound;
};

static const struct fn2 functions2[] = {
#define MATH(name, nargs, ulp_f32, ulp_f64, doc) TWO_##nargs(name, ulp_f32)
#include "lang/math.def"
};
enum { NFUNCTIONS2 = sizeof functions2 / sizeof *functions2 };

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

/* Pairs: all bits random; both of moderate size; the first near 1 and the second large, where pow
 * is hardest; both from a short list of special values. */
static const f32 specials[] = {
    0.0f,           1.0f,           2.0f,      3.0f,      0.5f,
    1.5f,           INFINITY,       0x1p-149f, 0x1p-126f, 0x1.fffffep127f,
    0x1p24f,        0x1.fffffep23f, 0x1p31f,   1e-20f,    3.14159f,
    0x1.fffffep-1f, 0x1.000002p0f,  NAN};
enum { NSPECIALS = sizeof specials / sizeof *specials };

static f32 special(uint64_t r)
{
    f32 x = specials[r / 2 % NSPECIALS];
    return r & 1 ? -x : x;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void draw(uint64_t *state, f32 *x, f32 *y)
{
    uint64_t r = next_random(state);
    u32 a = (u32)r, b = (u32)(r >> 32);
    switch (next_random(state) % 4) {
    case 0: break;
    case 1: /* exponents -16..15 */
        a = (a & 0x807fffffu) | (111 + (a >> 23 & 31)) << 23;
        b = (b & 0x807fffffu) | (111 + (b >> 23 & 31)) << 23;
        break;
    case 2:
        a = 0x3f800000u + (u32)((int32_t)a >> (8 + b % 22));
        b = (b & 0x807fffffu) | (120 + (b >> 23 & 31)) << 23;
        break;
    case 3:
        *x = special(a);
        *y = special(b);
        return;
    }
    *x = as_f32(a);
    *y = as_f32(b);
}

static double sample(const struct fn2 *fn, uint64_t count, f32 *wx, f32 *wy)
{
    double worst = 0;
    uint64_t state = 1;
    for (uint64_t i = 0; i < count; i++) {
        f32 x, y;
        draw(&state, &x, &y);
        double e = error_ulp(fn->got(x, y), fn->want((double)x, (double)y));
        if (e > worst) {
            worst = e;
            *wx = x;
            *wy = y;
        }
    }
    return worst;
}

static void table2(uint64_t count, char **names)
{
    for (int i = 0; i < NFUNCTIONS2; i++) {
        const struct fn2 *fn = &functions2[i];
        bool wanted = *names == NULL;
        for (char **n = names; *n; n++)
            wanted |= strcmp(*n, fn->name) == 0;
        if (!wanted)
            continue;
        f32 x = 0, y = 0;
        double e = sample(fn, count, &x, &y);
        printf("%-10s %12.4f ulp at %.9g (%a), %.9g (%a): got %.9g, want %.12g\n", fn->name, e,
               (double)x, (double)x, (double)y, (double)y, (double)fn->got(x, y),
               fn->want((double)x, (double)y));
        fflush(stdout);
    }
}

static void check_specials(const struct fn *fn)
{
    unsigned bad = 0;
    for (uint64_t i = 0; i < 2 * NSPECIALS; i++) {
        f32 x = special(i);
        double e = error_ulp(fn->got(x), fn->want((double)x));
        if (e > fn->bound) {
            tap_note("%s(%a) is %a, want %a", fn->name, (double)x, (double)fn->got(x),
                     fn->want((double)x));
            bad++;
        }
    }
    eq_int(bad, 0, "%s of special values", fn->name);
}

/* Over all arguments of f16 or bf16: the largest error of the result rounded to that type, in its
 * ulp. 2^lowest is the type's smallest normal number, and it has `bits` bits after the point. */
static double narrow(const struct fn *fn, bool bf16, int lowest, int bits, uint32_t *where)
{
    double worst = 0, limit = ldexp(2 - ldexp(1, -bits), bf16 ? 127 : 15);
    for (uint32_t i = 0; i < 65536; i++) {
        f32 x = bf16 ? f32_from_bf16(i) : f32_from_f16(i), y = fn->got(x);
        double want = fn->want((double)x), unit, e;
        double got =
            (double)(bf16 ? f32_from_bf16(bf16_from_f32(y)) : f32_from_f16(f16_from_f32(y)));
        int exponent;
        frexp(want, &exponent);
        exponent = exponent - 1 < lowest ? lowest : exponent - 1;
        unit = ldexp(1, exponent - bits);
        if (isnan(want) || fabs(want) >= limit + unit / 2) /* overflows */
            e = isnan(got) == isnan(want) && (isnan(got) || got == copysign(INFINITY, want)) ? 0
                                                                                             : 1e30;
        else
            e = signbit(got) == signbit(want) ? fabs(got - want) / unit : 1e30;
        if (e > worst) {
            worst = e;
            *where = as_u32(x);
        }
    }
    return worst;
}

static void check_narrow(const struct fn *fn)
{
    uint32_t at = 0;
    double e = narrow(fn, false, -14, 10, &at), bound = 0.5 + fn->bound / 8192;
    if (!ok(e <= bound, "%s rounded to f16 within %.3f ulp", fn->name, bound))
        tap_note("%g ulp at %a", e, (double)as_f32(at));
    bound = 0.5 + fn->bound / 65536;
    e = narrow(fn, true, -126, 7, &at);
    if (!ok(e <= bound, "%s rounded to bf16 within %.3f ulp", fn->name, bound))
        tap_note("%g ulp at %a", e, (double)as_f32(at));
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
        uint32_t step = (uint32_t)strtoul(argv[1], NULL, 0);
        table(step, argv + 2);
        table2(((uint64_t)1 << 32) / step, argv + 2);
        return 0;
    }
    for (int i = 0; i < NFUNCTIONS; i++) {
        uint32_t at = 0;
        check_specials(&functions[i]);
        double e = sweep(&functions[i], 12345, 8191, &at);
        if (!ok(e <= functions[i].bound, "%s within %g ulp", functions[i].name, functions[i].bound))
            tap_note("%g ulp at %a: got %a, want %a", e, (double)as_f32(at),
                     (double)functions[i].got(as_f32(at)), functions[i].want((double)as_f32(at)));
    }
    for (int i = 0; i < NFUNCTIONS; i++)
        if (strstr(functions[i].name, "_half"))
            check_narrow(&functions[i]);
    for (int i = 0; i < NFUNCTIONS2; i++) {
        const struct fn2 *fn = &functions2[i];
        f32 x = 0, y = 0;
        double e = sample(fn, 500000, &x, &y);
        if (!ok(e <= fn->bound, "%s within %g ulp", fn->name, fn->bound))
            tap_note("%g ulp at %a, %a: got %a, want %a", e, (double)x, (double)y,
                     (double)fn->got(x, y), fn->want((double)x, (double)y));
    }
    return tap_done();
}

#include "math/wide_end.h"
