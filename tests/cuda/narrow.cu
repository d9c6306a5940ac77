// settings: O3.90a O0.90a
// Floats of 8 bits and pairs of halves in memory: conversions with saturation, and atomics on them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void eight_bits(const float *x, unsigned char *a, unsigned char *b, float *back)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_fp8_e4m3 p(x[t]);
    __nv_fp8_e5m2 q(x[t] * 8);
    a[t] = p.__x;
    b[t] = q.__x;
    back[t] = float(p) + float(q);
}

extern "C" __global__ void pairs(const float2 *x, unsigned short *y, float2 *z)
{
    int t = threadIdx.x;
    y[t] = __nv_cvt_float2_to_fp8x2(x[t], __NV_SATFINITE, __NV_E4M3);
    __half2 h = __half2(__nv_cvt_fp8x2_to_halfraw2(y[t], __NV_E4M3));
    z[t] = __half22float2(h);
}

extern "C" __global__ void sums(const float2 *x, __half2 *h, __nv_bfloat162 *b, __half *one)
{
    float2 v = x[threadIdx.x];
    atomicAdd(h, __float22half2_rn(v));
    atomicAdd(b, __floats2bfloat162_rn(truncf(v.x / 8), truncf(v.y / 8)));
    atomicAdd(one, __float2half(truncf(v.x / 4)));
}
