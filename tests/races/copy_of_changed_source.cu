// What an asynchronous copy reads must stay until it has been waited for.
// run: --grid 1 --block 32 --arg 'inout u32[32]=@arange' --arg 'inout u32[32]=@zeros'
// find: copy-source-changed: change
#include "races.h"
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(unsigned *x, unsigned *y)
{
    __shared__ unsigned a[32];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&a[t], &x[t], 4);
    __pipeline_commit();
#ifdef BROKEN
    x[t] = 7; // @change
    __pipeline_wait_prior(0);
#else
    __pipeline_wait_prior(0);
    x[t] = 7;
#endif
    y[t] = a[t];
}
