/* The references of exhaustive.c, a block at a time, compiled so that the C library's vector
 * functions are used: within 4 ulp of f64, 2^-27 ulp of f32. */
#include <config.h>

#include <math.h>

#define BLOCK(name, expr)                                                         \
    void reference_##name(const float *restrict in, double *restrict out, int n); \
    void reference_##name(const float *restrict in, double *restrict out, int n)  \
    {                                                                             \
        for (int i = 0; i < n; i++) {                                             \
            double x = in[i];                                                     \
            out[i] = expr;                                                        \
        }                                                                         \
    }

BLOCK(exp, exp(x))
BLOCK(exp2, exp2(x))
BLOCK(exp10, exp10(x))
BLOCK(expm1, expm1(x))
BLOCK(log, log(x))
BLOCK(log2, log2(x))
BLOCK(log10, log10(x))
BLOCK(log1p, log1p(x))
BLOCK(sin, sin(x))
BLOCK(cos, cos(x))
BLOCK(tan, tan(x))
BLOCK(sinh, sinh(x))
BLOCK(cosh, cosh(x))
BLOCK(sinpi, sin(M_PI *remainder(x, 2)))
BLOCK(cospi, cos(M_PI *remainder(x, 2)))
BLOCK(tanh, tanh(x))
BLOCK(asin, asin(x))
BLOCK(acos, acos(x))
BLOCK(atan, atan(x))
BLOCK(asinh, asinh(x))
BLOCK(acosh, acosh(x))
BLOCK(atanh, atanh(x))
BLOCK(rsqrt, 1 / sqrt(x))
BLOCK(cbrt, cbrt(x))
BLOCK(erf, erf(x))
BLOCK(erfc, erfc(x))
BLOCK(sigmoid, 1 / (1 + exp(-x)))
BLOCK(silu, x / (1 + exp(-x)))
BLOCK(gelu, 0.5 * x * erfc(-x * M_SQRT1_2))
BLOCK(softplus, fmax(x, 0) + log1p(exp(-fabs(x))))
BLOCK(logsigmoid, fmin(x, 0) - log1p(exp(-fabs(x))))
BLOCK(mish, x *tanh(fmax(x, 0) + log1p(exp(-fabs(x)))))
BLOCK(relu6, fmin(fmax(x, 0), 6))
BLOCK(hardsigmoid, fmin(fmax(x + 3, 0), 6) / 6)
BLOCK(hardswish, x *(fmin(fmax(x + 3, 0), 6) / 6))
BLOCK(softsign, x / (1 + fabs(x)))
BLOCK(selu, x > 0 ? 1.0507009873554805 * x : 1.7580993408473769 * expm1(x))
BLOCK(gelu_tanh, x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x))))
