// settings: O3.80 O0.75 fast.90a
// Rows that a block or a warp reduces: softmax with a running maximum, layer norm after Welford, and log of a sum.
#include <math_constants.h>

static __device__ float warp_max(float v)
{
    for (int d = 16; d > 0; d /= 2)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}

static __device__ float warp_sum(float v)
{
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

// a warp for each row; maximum and sum in one pass
extern "C" __global__ void softmax(const float *x, float *y, float *lse, int rows, int cols)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    x += row * cols;
    float most = -CUDART_INF_F, sum = 0;
    for (int i = threadIdx.x; i < cols; i += 32) {
        float v = x[i], now = fmaxf(most, v);
        sum = sum * expf(most - now) + expf(v - now);
        most = now;
    }
    float top = warp_max(most);
    sum = warp_sum(sum * expf(most - top));
    for (int i = threadIdx.x; i < cols; i += 32)
        y[row * cols + i] = expf(x[i] - top) / sum;
    if (threadIdx.x == 0)
        lse[row] = top + logf(sum);
}

struct moments {
    float n, mean, m2;
};

static __device__ moments join(moments a, moments b)
{
    float n = a.n + b.n, d = b.mean - a.mean;
    moments r = {n, n > 0 ? a.mean + d * b.n / n : 0, n > 0 ? a.m2 + b.m2 + d * d * a.n * b.n / n : 0};
    return r;
}

// a block for each row
extern "C" __global__ void layer_norm(const float *x, const float *weight, const float *bias, float *y, int cols, float eps)
{
    __shared__ moments part[4];
    x += blockIdx.x * cols;
    moments m = {0, 0, 0};
    for (int i = threadIdx.x; i < cols; i += 128) {
        moments one = {1, x[i], 0};
        m = join(m, one);
    }
    for (int d = 16; d > 0; d /= 2) {
        moments other = {__shfl_xor_sync(~0u, m.n, d), __shfl_xor_sync(~0u, m.mean, d), __shfl_xor_sync(~0u, m.m2, d)};
        m = join(m, other);
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    __syncthreads();
    m = join(join(part[0], part[1]), join(part[2], part[3]));
    float r = rsqrtf(m.m2 / cols + eps);
    for (int i = threadIdx.x; i < cols; i += 128)
        y[blockIdx.x * cols + i] = (x[i] - m.mean) * r * weight[i] + bias[i];
}
