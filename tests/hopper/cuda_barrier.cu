/* cuda::barrier and the bulk copies of the CUDA Programming Guide, not optimised: every thread arrives, one of them with the
 * bytes; the tile is doubled in place and stored from there.
 */
#include <cuda/barrier>
#include <cuda/ptx>

using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace ptx = cuda::ptx;

extern "C" __global__ void __launch_bounds__(64) cuda_barrier(const int *x, int *y, unsigned rounds)
{
    __shared__ alignas(16) int tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    for (unsigned round = 0; round < rounds; round++) {
        unsigned at = (round * gridDim.x + blockIdx.x) * 256;
        barrier::arrival_token token;
        if (threadIdx.x == 0) {
            cuda::memcpy_async(tile, x + at, cuda::aligned_size_t<16>(sizeof tile), bar);
            token = cuda::device::barrier_arrive_tx(bar, 1, 0);
        } else {
            token = bar.arrive();
        }
        bar.wait(std::move(token));
        for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
            tile[i] *= 2;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + at, tile, sizeof tile);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        (&bar)->~barrier();
}
