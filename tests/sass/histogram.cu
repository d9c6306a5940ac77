/* specs/reduce/histogram.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    histogram(const unsigned char *__restrict__ x, u32 *__restrict__ counts, u32 n)
{
    __shared__ u32 bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
ROLLED
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[x[i]], 1u);
    __syncthreads();
    u32 mine = bins[threadIdx.x];
    if (mine != 0)
        atomicAdd(&counts[threadIdx.x], mine);
}
