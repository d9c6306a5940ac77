/* specs/reduce/block_sum.yaml in CUDA C, the reduction as one writes it by hand */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    block_sums(const float *__restrict__ x, float *__restrict__ sums, u32 n)
{
    __shared__ float part[8];
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffff, v, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    float total = 0;
    for (int w = 0; w < 8; w++)
        total += part[w];
    __syncthreads();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = total;
}
