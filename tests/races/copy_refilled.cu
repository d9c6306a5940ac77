// A stage is filled again while slower threads still read it.
// run: --grid 1 --block 64 --arg 'in u32[256]=@arange' --arg 'inout u32[64]=@zeros'
// find: copy-without-barrier|copy-in-flight: get
#include "races.h"
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned a[64];
    unsigned t = threadIdx.x, s = 0;
    for (int k = 0; k < 4; k++) {
        __pipeline_memcpy_async(&a[t], &x[64 * k + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        s += a[63 - t]; // @get
#ifndef BROKEN
        __syncthreads();
#endif
    }
    y[t] = s;
}
