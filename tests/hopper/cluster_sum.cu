/* Sums over a cluster of four blocks, in three ways: by st.async, which completes the receiver's transaction; by plain
 * stores to the receiver and an arrival behind them; by red.async.
 */
#include "hopper.cuh"

enum { BLOCKS = 4, WARPS = 4 };

__device__ static uint32_t sum_of_warp(uint32_t v)
{
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}

__device__ static uint32_t begin(uint32_t bar, uint32_t count)
{
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (rank == 0 && threadIdx.x == 0) {
        MBAR_INIT("init", bar, count);
        FENCE_INIT();
    }
    return rank;
}

__device__ static uint32_t in_first(uint32_t address)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" AT("mapa") : "=r"(there) : "r"(address));
    return there;
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(32 * WARPS)
    by_store(const uint32_t *x, uint32_t *y)
{
    __shared__ uint32_t parts[BLOCKS * WARPS];
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, full = shared_address(&bar), rank = begin(full, 1);
    CLUSTER_SYNC("begin");
    uint32_t v = sum_of_warp(x[blockIdx.x * blockDim.x + t]);
    if (t % 32 == 0)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" AT("send")::"r"(
                         in_first(shared_address(&parts[rank * WARPS + t / 32]))),
                     "r"(v), "r"(in_first(full))
                     : "memory");
    if (rank != 0)
        return;
    if (t == 0)
        EXPECT("expect", full, BLOCKS * WARPS * 4);
    if (t < 32) {
        WAIT("full_wait", full, 0);
        v = 0;
        if (t < BLOCKS * WARPS)
            asm volatile("ld.shared.u32 %0, [%1];" AT("read") : "=r"(v) : "r"(shared_address(&parts[t])) : "memory");
        v = sum_of_warp(v);
        if (t == 0)
            y[blockIdx.x / BLOCKS] = v;
    }
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(32 * WARPS)
    by_arrival(const uint32_t *x, uint32_t *y)
{
    __shared__ uint32_t parts[BLOCKS * WARPS];
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, full = shared_address(&bar), rank = begin(full, BLOCKS * WARPS);
    CLUSTER_SYNC("begin");
    uint32_t v = sum_of_warp(x[blockIdx.x * blockDim.x + t]);
    if (t % 32 == 0) {
        asm volatile("st.shared::cluster.u32 [%0], %1;" AT("send")::"r"(
                         in_first(shared_address(&parts[rank * WARPS + t / 32]))),
                     "r"(v)
                     : "memory");
        ARRIVE_AT("arrive", full, 0);
    }
    if (rank == 0 && t < 32) {
        WAIT_CLUSTER("full_wait", full, 0);
        v = 0;
        if (t < BLOCKS * WARPS)
            asm volatile("ld.shared.u32 %0, [%1];" AT("read") : "=r"(v) : "r"(shared_address(&parts[t])) : "memory");
        v = sum_of_warp(v);
        if (t == 0)
            y[blockIdx.x / BLOCKS] = v;
    }
}

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(32 * WARPS)
    by_reduction(const uint32_t *x, uint32_t *y)
{
    __shared__ uint32_t sum;
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, full = shared_address(&bar), rank = begin(full, 1);
    if (rank == 0 && t == 0) {
        asm volatile("st.shared.u32 [%0], 0;" AT("zero")::"r"(shared_address(&sum)) : "memory");
        EXPECT("expect", full, BLOCKS * WARPS * 4);
    }
    CLUSTER_SYNC("begin");
    uint32_t v = sum_of_warp(x[blockIdx.x * blockDim.x + t]);
    if (t % 32 == 0)
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" AT(
                         "send")::"r"(in_first(shared_address(&sum))),
                     "r"(v), "r"(in_first(full))
                     : "memory");
    if (rank == 0 && t == 64) {
        WAIT("full_wait", full, 0);
        asm volatile("ld.shared.u32 %0, [%1];" AT("read") : "=r"(v) : "r"(shared_address(&sum)) : "memory");
        y[blockIdx.x / BLOCKS] = v;
    }
}
