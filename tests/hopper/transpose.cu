/* A tile by tensor copy, stored as its transpose; by cuda::ptx of CCCL. The copy is issued before its bytes are
 * expected, which is as good. Rows and columns outside of x arrive as zeros. */
#include <cuda/ptx>
#include "hopper.cuh"

namespace ptx = cuda::ptx;

extern "C" __global__ void __launch_bounds__(128)
    transpose(MAP x, float *y, uint32_t rows, uint32_t cols)
{
    __shared__ alignas(128) float tile[16][32];
    __shared__ uint64_t full;
    uint32_t t = threadIdx.x, row = blockIdx.y * 16, col = blockIdx.x * 32;
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (t == 0) {
        int32_t at[2] = {(int32_t)col, (int32_t)row};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &x, at, &full);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    }
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
    for (uint32_t i = t; i < 512; i += 128)
        if (row + i % 16 < rows && col + i / 16 < cols)
            y[(col + i / 16) * rows + row + i % 16] = tile[i % 16][i / 16];
}
