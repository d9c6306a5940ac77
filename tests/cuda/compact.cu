// settings: O3.75 O0.90a
// What is left of a stream: in order by ballots and a prefix sum of the block, and by one atomic of each warp.
extern "C" __global__ void in_order(const int *x, int *y, int *count, int n)
{
    __shared__ int sums[8], base;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        base = 0;
    for (int at = 0; at < n; at += 256) {
        int i = at + threadIdx.x, v = i < n ? x[i] : 0;
        unsigned keep = __ballot_sync(~0u, v > 0);
        if (lane == 0)
            sums[warp] = __popc(keep);
        __syncthreads();
        int to = base;
        for (int w = 0; w < warp; w++)
            to += sums[w];
        if (v > 0)
            y[to + __popc(keep & ((1u << lane) - 1))] = v;
        __syncthreads();
        if (threadIdx.x == 255)
            base = to + sums[7];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *count = base;
}

// Warps come in any order: only the set is certain.
extern "C" __global__ void aggregated(const int *x, int *y, int *count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || x[i] <= 0)
        return;
    unsigned here = __activemask(), lane = threadIdx.x % 32, leader = __ffs(here) - 1, at = 0;
    if (lane == leader)
        at = atomicAdd(count, __popc(here));
    at = __shfl_sync(here, at, leader);
    y[at + __popc(here & ((1u << lane) - 1))] = x[i];
}

extern "C" __global__ void checksum(const int *y, const int *count, unsigned *sum)
{
    unsigned s = 0;
    for (int i = threadIdx.x; i < *count; i += 32)
        s += y[i] * y[i];
    atomicAdd(sum, s);
}
