// settings: O3.80 O0.90a
// Pairs of f16 and bf16: arithmetic, comparisons, conversions, and dot products that hop over a warp.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void f16(const half2 *x, const half2 *y, half2 *z, unsigned *flags, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    half2 a = x[i], b = y[i], c = __hfma2(a, b, __float2half2_rn(0.5f));
    c = __hadd2(c, __hmul2(a, __float2half2_rn(2)));
    c = __hsub2(c, __hmin2(a, b));
    c = __hadd2(c, __hmax2(__habs2(a), b));
    z[i] = __hneg2(__lowhigh2highlow(c));
    flags[i] = __hbgt2(a, b) | __hbeq2(a, a) << 1 | __hisnan(__low2half(c)) << 2 | (__hlt(__high2half(a), __high2half(b)) ? 8 : 0);
}

extern "C" __global__ void bf16(const __nv_bfloat162 *x, const __nv_bfloat162 *y, float2 *z, int *whole, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_bfloat162 c = __hfma2(x[i], y[i], __floats2bfloat162_rn(3, -3));
    z[i] = __bfloat1622float2(__hadd2(c, __hmul2(x[i], x[i])));
    whole[i] = __bfloat162int_rz(__low2bfloat16(x[i])) + __half2int_rn(__float2half(z[i].x)) + (int)__half2ushort_rz(__ushort2half_rn(i));
}

extern "C" __global__ void dot(const half2 *x, const half2 *y, float *sum, int n)
{
    half2 s = __float2half2_rn(0);
    for (int i = threadIdx.x; i < n; i += 32)
        s = __hfma2(x[i], y[i], s);
    for (int d = 16; d > 0; d /= 2)
        s = __hadd2(s, __shfl_xor_sync(~0u, s, d));
    if (threadIdx.x == 0)
        *sum = __low2float(s) + __high2float(s);
}
