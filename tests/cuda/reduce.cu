// settings: O3.75 O0.80 fast.90a
// Sums: a tree in shared memory, shuffles, and cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void by_tree(const int *x, int *sum, int n)
{
    __shared__ int part[256];
    int v = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        v += x[i];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sum[blockIdx.x] = part[0];
}

static __device__ int warp_sum(int v)
{
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffff, v, d);
    return v;
}

extern "C" __global__ void by_shuffle(const int *x, int *sum, int n)
{
    __shared__ int part[8];
    int v = 0, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        v += x[i];
    v = warp_sum(v);
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = warp_sum(lane < 8 ? part[lane] : 0);
        if (lane == 0)
            sum[blockIdx.x] = v;
    }
}

extern "C" __global__ void by_groups(const int *x, int *sum, int *most, int n)
{
    __shared__ int part[8], tops[8];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int v = 0, top = INT_MIN;
    for (int i = blockIdx.x * 256 + block.thread_rank(); i < n; i += gridDim.x * 256) {
        v += x[i];
        top = max(top, x[i]);
    }
    v = cg::reduce(warp, v, cg::plus<int>());
    top = cg::reduce(warp, top, cg::greater<int>());
    if (warp.thread_rank() == 0) {
        part[warp.meta_group_rank()] = v;
        tops[warp.meta_group_rank()] = top;
    }
    block.sync();
    if (block.thread_rank() < 8) {
        cg::coalesced_group few = cg::coalesced_threads();
        cg::thread_block_tile<8> eight = cg::tiled_partition<8>(block);
        v = cg::reduce(eight, part[eight.thread_rank()], cg::plus<int>());
        top = cg::reduce(few, tops[few.thread_rank()], cg::greater<int>());
        if (eight.thread_rank() == 0) {
            sum[blockIdx.x] = v;
            most[blockIdx.x] = top;
        }
    }
}
