// settings: O3.80 O0.80 O3.90a
// Copies that overlap with work: cuda::pipeline of one thread and of a block, cuda::barrier with arrival and wait apart,
// and cp.async by the intrinsics.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

enum { N = 64 };

extern "C" __global__ void by_pipeline(const int *x, int *y, int tiles)
{
    __shared__ int buffer[2][N];
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    x += blockIdx.x * tiles * N;
    int sum = 0;
    for (int fetch = 0, t = 0; t < tiles; t++) {
        for (; fetch < tiles && fetch < t + 2; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&buffer[fetch % 2][threadIdx.x], &x[fetch * N + threadIdx.x], cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        }
        if (t + 1 < tiles)
            cuda::pipeline_consumer_wait_prior<1>(pipe);
        else
            cuda::pipeline_consumer_wait_prior<0>(pipe);
        __syncthreads();
        sum += (t + 1) * buffer[t % 2][N - 1 - threadIdx.x];
        pipe.consumer_release();
        __syncthreads();
    }
    y[blockIdx.x * N + threadIdx.x] = sum;
}

extern "C" __global__ void by_barrier(const int *x, int *y, int rounds)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
    __shared__ int word[32];
    if (threadIdx.x == 0) {
        init(&full, 64);
        init(&empty, 64);
    }
    __syncthreads();
    int lane = threadIdx.x % 32, sum = 0;
    if (threadIdx.x < 32) {
        for (int k = 0; k < rounds; k++) {
            if (k)
                empty.arrive_and_wait();
            word[lane] = x[(blockIdx.x * rounds + k) * 32 + lane];
            (void)full.arrive();
        }
    } else {
        for (int k = 0; k < rounds; k++) {
            full.arrive_and_wait();
            sum = sum * 3 + word[31 - lane];
            if (k + 1 < rounds)
                (void)empty.arrive();
        }
        y[blockIdx.x * 32 + lane] = sum;
    }
}

extern "C" __global__ void by_intrinsics(const int4 *x, int4 *y, int n)
{
    __shared__ int4 s[3][N];
    int at = blockIdx.x * 3 * N + threadIdx.x;
    for (int k = 0; k < 3; k++) {
        bool in = at + k * N < n;
        __pipeline_memcpy_async(&s[k][threadIdx.x], &x[in ? at + k * N : 0], 16, in ? 0 : 16);
        __pipeline_commit();
    }
    for (int k = 0; k < 3; k++) {
        if (k == 0)
            __pipeline_wait_prior(2);
        else if (k == 1)
            __pipeline_wait_prior(1);
        else
            __pipeline_wait_prior(0);
        int4 v = s[k][threadIdx.x];
        if (at + k * N < n)
            y[at + k * N] = make_int4(v.w, v.z, v.y, v.x);
    }
}
