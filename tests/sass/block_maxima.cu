/* specs/reduce/block_max.yaml in CUDA C */
typedef unsigned u32;

static __device__ float maximum_of_warp(float v)
{
    for (u32 d = 16; d > 0; d /= 2)
        v = fmaxf(v, __shfl_down_sync(0xffffffff, v, d));
    return v;
}

extern "C" __global__ void __launch_bounds__(128)
    block_maxima(const float *__restrict__ x, float *__restrict__ maxima, u32 n)
{
    __shared__ float part[4];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = maximum_of_warp(i < n ? x[i] : -__int_as_float(0x7f800000));
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = maximum_of_warp(lane < 4 ? part[lane] : -__int_as_float(0x7f800000));
        if (lane == 0)
            maxima[blockIdx.x] = v;
    }
}
