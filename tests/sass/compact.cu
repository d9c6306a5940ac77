/* specs/scan/compact.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    compact(const float *__restrict__ x, float limit, float *__restrict__ kept,
            u32 *__restrict__ count, u32 n)
{
    __shared__ u32 votes[8];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    bool keep = i < n && v > limit;
    u32 vote = __ballot_sync(0xffffffff, keep);
    if (lane == 0)
        votes[warp] = __popc(vote);
    __syncthreads();
    u32 before = 0, total = 0;
    for (u32 w = 0; w < 8; w++) {
        u32 kept_there = votes[w];
        if (w < warp)
            before += kept_there;
        total += kept_there;
    }
    if (keep)
        kept[blockIdx.x * 256 + before + __popc(vote & below)] = v;
    if (i < n && threadIdx.x >= total)
        kept[i] = 0.0f;
    if (threadIdx.x == 0)
        count[blockIdx.x] = total;
}
