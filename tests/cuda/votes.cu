// settings: O3.80 O0.75 O3.90a
// What lanes tell each other: votes, matches, reductions, shuffles of all kinds, and atomics that lanes of one key share.
extern "C" __global__ void votes(const int *x, unsigned *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, v = x[i];
    unsigned *to = y + 10 * i, half = lane < 16 ? 0xffffu : 0xffff0000u;
    to[0] = __ballot_sync(~0u, v & 1);
    to[1] = __any_sync(half, v > 90) | __all_sync(half, v > 5) << 1;
    to[2] = __match_any_sync(~0u, v % 5);
    int all;
    to[3] = __match_all_sync(half, v / 64, &all) + all;
    to[4] = __shfl_up_sync(~0u, v, 3, 8) + __shfl_down_sync(~0u, v, 5) * 1000;
    to[5] = __shfl_xor_sync(~0u, v, 9) + __shfl_sync(~0u, v, lane * 7, 16) * 1000;
    unsigned long long wide = __shfl_sync(~0u, (unsigned long long)v << 33 | i, 31 - lane);
    to[6] = wide >> 32 ^ (unsigned)wide;
    if (v & 1)
        to[7] = __popc(__activemask() & ((1u << lane) - 1));
    else
        to[7] = __ballot_sync(__activemask(), v & 2);
    __syncwarp();
    to[8] = __syncthreads_count(v > 50) + 1000 * __syncthreads_or(v == 17) + 5000 * __syncthreads_and(v >= 0);
    to[9] = __fns(to[0], lane, 1) + (__brev(v) ^ __clz(v) ^ __ffs(v));
}

extern "C" __global__ void __launch_bounds__(128) reductions(const int *x, unsigned *y)
{
#if __CUDA_ARCH__ >= 800
    int i = threadIdx.x, lane = i % 32, v = x[i];
    unsigned odd = __ballot_sync(~0u, lane & 1), mine = lane & 1 ? odd : ~odd;
    y[4 * i] = __reduce_add_sync(mine, v);
    y[4 * i + 1] = __reduce_max_sync(~0u, v - 50);
    y[4 * i + 2] = __reduce_min_sync(mine, (unsigned)v);
    y[4 * i + 3] = __reduce_xor_sync(~0u, v) + __reduce_or_sync(mine, v) * 256;
#else
    int i = threadIdx.x, lane = i % 32, add = 0, top = INT_MIN, least = INT_MAX, ex = 0, o = 0;
    for (int k = 0; k < 32; k++) {
        int v = x[i - lane + k];
        ex ^= v;
        top = max(top, v - 50);
        if ((k ^ lane) & 1)
            continue;
        add += v;
        o |= v;
        least = min(least, v);
    }
    y[4 * i] = add;
    y[4 * i + 1] = top;
    y[4 * i + 2] = least;
    y[4 * i + 3] = ex + o * 256;
#endif
}

extern "C" __global__ void shared_atomics(const int *x, unsigned *count, unsigned *rank)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, key = x[i] % 7;
    unsigned same = __match_any_sync(~0u, key), leader = __ffs(same) - 1, at = 0;
    if (lane == leader)
        at = atomicAdd(&count[key], __popc(same));
    at = __shfl_sync(same, at, leader) + __popc(same & ((1u << lane) - 1));
    atomicXor(&rank[key], at * at + 1);
}
