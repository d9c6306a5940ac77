// Kernels that do not come to their end, each in its own way.
// nvcc -arch=sm_80 -lineinfo --ptx stops.cu; nvcc -arch=sm_80 -G -O0 --ptx stops.cu -o stops_G.ptx
#include <cassert>

extern "C" __global__ void endless(unsigned *x)
{
    unsigned v = x[threadIdx.x];
    while (v != 1)
        v = v % 2 ? 3 * v + 1 : v / 2 + 7; // does not end
    x[threadIdx.x] = v;
}

extern "C" __global__ void spins(volatile unsigned *x)
{
    while (x[0] == 0) // nobody sets it
        ;
    x[threadIdx.x] = 1;
}

extern "C" __global__ void deadlock(unsigned *x)
{
    if (threadIdx.x < 32) {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        x[threadIdx.x] = 1;
    } else {
        asm volatile("barrier.sync 2, 64;" ::: "memory"); // the other's number
        x[threadIdx.x] = 2;
    }
}

extern "C" __global__ void wild(unsigned *x, unsigned long long at)
{
    unsigned *p = (unsigned *)at;
    if (threadIdx.x == 5)
        p[threadIdx.x] = x[threadIdx.x]; // points nowhere
}

__device__ __noinline__ unsigned deep(unsigned n, unsigned *x)
{
    unsigned a[32];
    for (unsigned i = 0; i < 32; i++)
        a[i] = x[(n + i) % 64];
    unsigned below = deep(n + 1, x); // never returns
    return a[below % 32] + below;
}

extern "C" __global__ void recursion(unsigned *x)
{
    x[threadIdx.x] = deep(threadIdx.x, x);
}

__device__ __noinline__ void refuse(unsigned v)
{
    if (v > 40)
        __trap();
}

extern "C" __global__ void traps(unsigned *x)
{
    refuse(threadIdx.x);
    x[threadIdx.x] = 1;
}

extern "C" __global__ void asserts(unsigned *x)
{
    assert(threadIdx.x < 40);
    x[threadIdx.x] = 1;
}

extern "C" __global__ void counts(unsigned long long *x)
{
    if (threadIdx.x == 0)
        atomicAdd(x, 1ull);
}
