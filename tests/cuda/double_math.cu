// settings: O3.80 O0.75 G.90a
// Functions of libdevice in double precision, which must be near those of the host.
#include <math.h>

template <typename F> static __device__ void each(const double *x, double *y, int n, F f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = f(x[i]);
}

#define FUNCTION(name, expression)                                        \
    extern "C" __global__ void name(const double *x, double *y, int n)   \
    {                                                                     \
        each(x, y, n, [](double v) { return expression; });               \
    }

FUNCTION(d_sin, sin(20 * v))
FUNCTION(d_exp, exp(10 * v - 5))
FUNCTION(d_log, log(v + 0.001))
FUNCTION(d_pow, pow(v + 0.5, 3.7))
FUNCTION(d_erf, erf(3 * v - 1.5))
FUNCTION(d_gamma, tgamma(4 * v + 0.25))
FUNCTION(d_atan2, atan2(v - 0.5, 0.3))
FUNCTION(d_cbrt, cbrt(v) + sqrt(v) + rsqrt(v + 1) + hypot(v, 2.0))
FUNCTION(d_tanh, tanh(2 * v - 1) + log1p(v) + expm1(v))
FUNCTION(d_fmod, fmod(100 * v, 0.7) + floor(10 * v) + rint(10 * v) + ldexp(v, 5))
