// settings: O3.90a O0.80 O3.75
// Atomics of every kind and width on global and shared memory, system and block scope, cuda::atomic.
#include <cuda/atomic>

extern "C" __global__ void integers(const int *x, int *i32, unsigned *u32, unsigned long long *u64, long long *s64)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, v = x[t];
    atomicAdd(&i32[0], v);
    atomicSub(&i32[1], v);
    atomicMin(&i32[2], v);
    atomicMax(&i32[3], v);
    atomicOr((unsigned *)&i32[4], 1u << (t & 31));
    atomicAnd((unsigned *)&i32[5], ~(1u << (v & 31)));
    atomicXor((unsigned *)&i32[6], v);
    atomicInc(&u32[0], 9);
    atomicDec(&u32[1], 9);
    atomicMin(&u32[2], (unsigned)v);
    atomicMax(&u32[3], (unsigned)v);
    atomicAdd(&u64[0], (unsigned long long)v << 20);
    atomicMax(&u64[1], (unsigned long long)v * v);
    atomicOr(&u64[2], 1ull << (v & 63));
    atomicMin(&s64[0], (long long)v << 33);
    atomicMax(&s64[1], (long long)v << 33);
    atomicAdd_system(&i32[7], 1);
    atomicAdd_block(&i32[8 + blockIdx.x], v);
}

extern "C" __global__ void floats(const int *x, float *f, double *d)
{
    __shared__ float sum;
    __shared__ double wide;
    if (threadIdx.x == 0)
        sum = wide = 0;
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&sum, (float)x[t]);
    atomicAdd(&wide, x[t] * 0.5);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&f[0], sum);
        atomicAdd(&d[0], wide);
    }
    // a maximum of floats by compare-and-swap
    int old = __float_as_int(*(volatile float *)&f[1]), seen;
    while (x[t] > __int_as_float(old)) {
        seen = atomicCAS((int *)&f[1], old, __float_as_int((float)x[t]));
        if (seen == old)
            break;
        old = seen;
    }
}

extern "C" __global__ void library(const int *x, int *y)
{
    __shared__ cuda::atomic<int, cuda::thread_scope_block> count;
    __shared__ int values[64];
    cuda::atomic_ref<int, cuda::thread_scope_device> sum(y[0]), most(y[1]);
    if (threadIdx.x == 0)
        count.store(0, cuda::memory_order_relaxed);
    __syncthreads();
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (v & 1)
        values[count.fetch_add(1)] = v;
    __syncthreads();
    int n = count.load(cuda::memory_order_acquire);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum.fetch_add(values[i], cuda::memory_order_relaxed);
    most.fetch_max(v);
    if (threadIdx.x == 0)
        cuda::atomic_ref<int, cuda::thread_scope_system>(y[2]).fetch_add(n, cuda::memory_order_acq_rel);
}
