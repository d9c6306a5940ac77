// settings: O3.90a O0.90a
// Blocks of a cluster that use each other's shared memory: a histogram in pieces, a halo, and sums over the cluster.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4) histogram(const unsigned *x, unsigned *count, int n)
{
    __shared__ unsigned bins[64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), all = cluster.num_threads(), me = cluster.thread_rank();
    if (threadIdx.x < 64)
        bins[threadIdx.x] = 0;
    cluster.sync();
    for (int i = me; i < n; i += all)
        atomicAdd(cluster.map_shared_rank(&bins[x[i] & 63], x[i] >> 6 & 3), 1);
    cluster.sync();
    if (threadIdx.x < 64)
        count[rank * 64 + threadIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void __cluster_dims__(2, 2) halo(const int *x, int *y)
{
    __shared__ int mine[64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    mine[threadIdx.x] = x[rank * 64 + threadIdx.x];
    cluster.barrier_arrive();
    int before = threadIdx.x ? 0 : 1;
    cluster.barrier_wait();
    const int *left = cluster.map_shared_rank(mine, (rank + 3) % 4), *right = cluster.map_shared_rank(mine, (rank + 1) % 4);
    __syncthreads();
    y[rank * 64 + threadIdx.x] = (before ? left[63] : mine[threadIdx.x - 1]) + 10 * mine[threadIdx.x] +
                                 100 * (threadIdx.x == 63 ? right[0] : mine[threadIdx.x + 1]) +
                                 cluster.dim_blocks().x * 10000 + cluster.block_index().y * 100000;
    cluster.sync();
}
