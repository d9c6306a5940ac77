// settings: O3.80 O0.75 fast.90a
// A Fourier transform of 512 complex numbers by one block: radix 2, bits reversed on the way in; and the inverse.
#include <math_constants.h>

static __device__ void transform(const float2 *x, float2 *y, float sign)
{
    __shared__ float2 s[512];
    int t = threadIdx.x;
    for (int i = t; i < 512; i += 256)
        s[__brev(i) >> 23] = x[blockIdx.x * 512 + i];
    __syncthreads();
    for (int half = 1; half < 512; half *= 2) {
        int k = t & (half - 1), i = 2 * t - k;
        float re, im;
        sincospif(sign * k / half, &im, &re);
        float2 a = s[i], b = s[i + half];
        float2 w = make_float2(b.x * re - b.y * im, b.x * im + b.y * re);
        s[i] = make_float2(a.x + w.x, a.y + w.y);
        s[i + half] = make_float2(a.x - w.x, a.y - w.y);
        __syncthreads();
    }
    for (int i = t; i < 512; i += 256)
        y[blockIdx.x * 512 + i] = s[i];
}

extern "C" __global__ void forward(const float2 *x, float2 *y) { transform(x, y, -1); }

extern "C" __global__ void inverse(const float2 *x, float2 *y) { transform(x, y, 1); }
