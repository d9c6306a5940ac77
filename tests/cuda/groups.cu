// settings: O3.80 O0.90a
// Cooperative groups: tiles of several warps, which have memory of the system's; labeled and binary partitions; scans.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void wide_tiles(const int *x, int *sums, int *turned)
{
    __shared__ cg::block_tile_memory<256> memory;
    cg::thread_block block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    int i = blockIdx.x * 256 + block.thread_rank(), v = x[i];
    int sum = cg::reduce(tile, v, cg::plus<int>());
    if (tile.thread_rank() == 0)
        sums[i / 64] = sum;
    turned[i] = tile.shfl(v, 37);
}

extern "C" __global__ void partitions(const int *x, int *odd, int *labels, int *prefix)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = blockIdx.x * 128 + threadIdx.x, v = x[i];
    auto half = cg::binary_partition(warp, v & 1);
    odd[i] = half.size() * 100 + half.thread_rank();
    auto same = cg::labeled_partition(warp, v & 3);
    labels[i] = cg::reduce(same, v, cg::plus<int>());
    prefix[i] = cg::exclusive_scan(warp, v, cg::plus<int>());
}
