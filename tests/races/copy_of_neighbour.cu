// A thread waits for its own copies only: a barrier is needed for those of others.
// run: --grid 1 --block 64 --arg 'in u32[64]=@arange' --arg 'inout u32[64]=@zeros'
// find: copy-without-barrier|copy-in-flight: get
#include "races.h"
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned a[64];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&a[t], &x[t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
#ifndef BROKEN
    __syncthreads();
#endif
    y[t] = a[63 - t]; // @get
}
