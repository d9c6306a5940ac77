// settings: O3.75 fast.90a O0.80
// Functions in single precision, by libdevice and, with --use_fast_math, by approximations; and the intrinsics themselves.
#include <math.h>

extern "C" __global__ void functions(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], *to = y + 12 * i;
    to[0] = sinf(3 * v);
    to[1] = cosf(3 * v);
    to[2] = expf(4 * v - 2);
    to[3] = logf(v + 0.01f);
    to[4] = powf(v + 0.5f, 2.5f);
    to[5] = sinhf(v);
    to[6] = erff(2 * v - 1);
    to[7] = v / (v + 1);
    to[8] = sqrtf(v) + rsqrtf(v + 1);
    to[9] = atanf(5 * v) + asinf(v) + acosf(v);
    to[10] = fmodf(v, 0.3f) + floorf(4 * v) + nearbyintf(4 * v) + truncf(-4 * v);
    to[11] = exp2f(3 * v) + exp10f(v) + log2f(v + 1) + log10f(v + 1) + cbrtf(v);
}

// an approximation of 11 bits, with --use_fast_math
extern "C" __global__ void hyperbolic(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = tanhf(2 * x[i] - 1);
}

extern "C" __global__ void intrinsics(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], *to = y + 8 * i;
    to[0] = __sinf(v) + __cosf(v) + __tanf(v);
    to[1] = __expf(v) + __exp10f(v) + __log2f(v + 1) + __logf(v + 1);
    to[2] = __fdividef(v, v + 2) + __powf(v + 0.5f, 1.5f);
    to[3] = __saturatef(3 * v - 1) + __frcp_rn(v + 1) + __fsqrt_rz(v);
    to[4] = __fmaf_ru(v, v, 1e-10f) - __fmul_rd(v, v);
    to[5] = __fadd_rz(v, 1e-9f) + __fsub_ru(v, 1e-9f) + __fdiv_rd(v, 3.0f);
    to[6] = fminf(v, 0.5f) + fmaxf(v, NAN) + copysignf(v, -1.0f) + fabsf(v - 1);
    to[7] = (float)__float2int_rd(10 * v) + __int_as_float(__float_as_int(v) + 0) + (float)__float2uint_rz(7 * v);
}
