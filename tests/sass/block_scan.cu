/* specs/scan/block_scan.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    block_scan(const float *__restrict__ x, float *__restrict__ y, u32 n)
{
    __shared__ float totals[8];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    for (u32 d = 1; d < 32; d *= 2) {
        float before = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d)
            v += before;
    }
    if (lane == 31)
        totals[warp] = v;
    __syncthreads();
    float base = 0;
ROLLED
    for (u32 w = 0; w < warp; w++)
        base += totals[w];
    if (i < n)
        y[i] = base + v;
}
