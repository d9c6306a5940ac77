/* specs/sync/spin_lock.yaml in CUDA C */
#include <cuda/atomic>
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(64)
    spin_lock(const u32 *__restrict__ x, u32 *__restrict__ sums, u32 n)
{
    __shared__ u32 lock, total;
    if (threadIdx.x == 0) {
        lock = 0;
        total = 0;
    }
    __syncthreads();
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        cuda::atomic_ref<u32, cuda::thread_scope_block> guard(lock);
        u32 expected = 0;
        while (!guard.compare_exchange_strong(expected, 1, cuda::memory_order_acquire,
                                              cuda::memory_order_relaxed)) {
            expected = 0;
            __nanosleep(20);
        }
        total += x[i];
        guard.store(0, cuda::memory_order_release);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = total;
}
