/* tests/data/bodies/softmax.yaml in CUDA C, with CUDA's expf (2 ulp) */
typedef unsigned u32;

template <bool is_max> static __device__ float block_reduce(float v)
{
    __shared__ float part[8];
    for (int d = 16; d > 0; d /= 2) {
        float other = __shfl_xor_sync(0xffffffff, v, d);
        v = is_max ? fmaxf(v, other) : v + other;
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; w++)
        v = is_max ? fmaxf(v, part[w]) : v + part[w];
    __syncthreads();
    return v;
}

extern "C" __global__ void __launch_bounds__(256)
    softmax(const float *__restrict__ x, float *__restrict__ y, u32 cols)
{
    u32 r = blockIdx.x;
    const float *row = x + (size_t)r * cols;
    float top = -__int_as_float(0x7f800000);
ROLLED
    for (u32 c = threadIdx.x; c < cols; c += blockDim.x)
        top = fmaxf(top, row[c]);
    top = block_reduce<true>(top);
    float total = 0;
ROLLED
    for (u32 c = threadIdx.x; c < cols; c += blockDim.x)
        total += expf(row[c] - top);
    float scale = 1.0f / block_reduce<false>(total);
ROLLED
    for (u32 c = threadIdx.x; c < cols; c += blockDim.x)
        y[(size_t)r * cols + c] = expf(row[c] - top) * scale;
}
