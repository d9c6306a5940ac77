/* What the headers of CUDA C++ make of their own: cuda::pipeline with copies by all threads and with a warp that produces,
 * cooperative_groups::memcpy_async, a barrier that half of its threads leave, st.async between the blocks of a cluster.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init

/* y[b, i] = sum over k of (k + 1) x[b, k, i] */
extern "C" __global__ void __launch_bounds__(256) staged(const int *x, int *y, int rounds)
{
    constexpr int stages = 2, n = 256;
    __shared__ alignas(16) int tile[stages][n];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int round = 0, next = 0; round < rounds; round++) {
        for (; next < rounds && next < round + stages; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[next % stages], x + (blockIdx.x * rounds + next) * n,
                               cuda::aligned_size_t<16>(sizeof *tile), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += tile[round % stages][threadIdx.x] * (round + 1);
        pipe.consumer_release();
    }
    y[blockIdx.x * n + threadIdx.x] = sum;
}

/* The same, by a warp that copies and eight that add up. */
extern "C" __global__ void __launch_bounds__(288) roles(const int *x, int *y, int rounds)
{
    constexpr int stages = 3, n = 256;
    __shared__ alignas(16) int tile[stages][n];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    const auto role = block.thread_rank() < 32 ? cuda::pipeline_role::producer
                                               : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    if (role == cuda::pipeline_role::producer) {
        for (int round = 0; round < rounds; round++) {
            pipe.producer_acquire();
            for (int i = threadIdx.x; i < n / 4; i += 32)
                cuda::memcpy_async((int4 *)tile[round % stages] + i,
                                   (const int4 *)(x + (blockIdx.x * rounds + round) * n) + i,
                                   cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
    } else {
        int sum = 0;
        for (int round = 0; round < rounds; round++) {
            pipe.consumer_wait();
            sum += tile[round % stages][threadIdx.x - 32] * (round + 1);
            pipe.consumer_release();
        }
        y[blockIdx.x * n + threadIdx.x - 32] = sum;
    }
}

/* y[b, i] = x[b, i] + x[b, 64 + i] + 5: the threads of the second half leave the barrier. */
extern "C" __global__ void __launch_bounds__(128) dropped(const int *x, int *y)
{
    __shared__ alignas(16) int tile[128];
    __shared__ barrier bar;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    cg::memcpy_async(block, tile, x + blockIdx.x * 128, cuda::aligned_size_t<16>(sizeof tile));
    cg::wait(block);
    if (threadIdx.x >= 64) {
        tile[threadIdx.x] += 5;
        bar.arrive_and_drop();
        return;
    }
    auto token = bar.arrive();
    while (!bar.try_wait_for(std::move(token), cuda::std::chrono::nanoseconds(1000)))
        ;
    tile[threadIdx.x] += tile[threadIdx.x + 64];
    bar.arrive_and_wait();
    bar.wait_parity(true);
    y[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];
}

/* y[b, i] = 3 x[b ^ 1, i] */
extern "C" __global__ void __launch_bounds__(64) __cluster_dims__(2) exchange(const int *x, int *y)
{
    __shared__ alignas(16) int received[64];
    __shared__ uint64_t bar;
    auto cluster = cg::this_cluster();
    const unsigned other = cluster.block_rank() ^ 1;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar,
                                       sizeof received);
    }
    cluster.sync();
    ptx::st_async(cluster.map_shared_rank(received, other) + threadIdx.x,
                  3 * x[blockIdx.x * 64 + threadIdx.x], cluster.map_shared_rank(&bar, other));
    while (!ptx::mbarrier_try_wait_parity(&bar, 0))
        ;
    y[blockIdx.x * 64 + threadIdx.x] = received[threadIdx.x];
    cluster.sync();
}
