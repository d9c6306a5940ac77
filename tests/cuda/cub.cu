// settings: O3.80 O3.75 O0.90a
// CUB's primitives for warps and blocks: scan, reduction, radix sort, run lengths by discontinuities, exchange, histogram.
#include <cub/cub.cuh>

enum { N = 64, EACH = 4 };

extern "C" __global__ void block(const int *x, int *sums, unsigned *sorted, int *heads, int *most)
{
    typedef cub::BlockLoad<int, N, EACH, cub::BLOCK_LOAD_TRANSPOSE> load;
    typedef cub::BlockStore<int, N, EACH, cub::BLOCK_STORE_WARP_TRANSPOSE> store;
    typedef cub::BlockScan<int, N> scan;
    typedef cub::BlockRadixSort<unsigned, N, EACH> sort;
    typedef cub::BlockReduce<int, N> reduce;
    typedef cub::BlockDiscontinuity<unsigned, N> flags;
    __shared__ union {
        load::TempStorage load;
        store::TempStorage store;
        scan::TempStorage scan;
        sort::TempStorage sort;
        reduce::TempStorage reduce;
        flags::TempStorage flags;
    } s;
    int at = blockIdx.x * N * EACH, v[EACH], sum[EACH], total, head[EACH];
    unsigned key[EACH];
    load(s.load).Load(x + at, v);
    __syncthreads();
    scan(s.scan).InclusiveSum(v, sum, total);
    __syncthreads();
    store(s.store).Store(sums + at, sum);
    __syncthreads();
    int top = reduce(s.reduce).Reduce(v, cuda::maximum<>());
    if (threadIdx.x == 0)
        most[blockIdx.x] = top + total;
    for (int k = 0; k < EACH; k++)
        key[k] = v[k] & 255;
    __syncthreads();
    sort(s.sort).Sort(key, 0, 8);
    __syncthreads();
    flags(s.flags).FlagHeads(head, key, cuda::std::not_equal_to<>());
    for (int k = 0; k < EACH; k++) {
        sorted[at + threadIdx.x * EACH + k] = key[k];
        heads[at + threadIdx.x * EACH + k] = head[k];
    }
}

extern "C" __global__ void warp(const int *x, int *y)
{
    typedef cub::WarpScan<int> scan;
    typedef cub::WarpReduce<int, 8> reduce;
    __shared__ scan::TempStorage a[2];
    __shared__ reduce::TempStorage b[8];
    int i = threadIdx.x, v = x[i], ex;
    scan(a[i / 32]).ExclusiveScan(v, ex, -1000000, cuda::maximum<>());
    y[i] = ex + reduce(b[i / 8]).Sum(v) * (i % 8 == 0);
}
