// cp.async in two groups, and a wait that leaves one pending when both are read.
// run: --grid 1 --block 64 --arg 'in u32[128]=@arange' --arg 'inout u32[64]=@zeros'
// find: copy-in-flight: get
#include "races.h"
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned a[64], b[64];
    unsigned t = threadIdx.x;
    __pipeline_memcpy_async(&a[t], &x[t], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&b[t], &x[64 + t], 4);
    __pipeline_commit();
#ifdef BROKEN
    __pipeline_wait_prior(1);
#else
    __pipeline_wait_prior(0);
#endif
    y[t] = a[t] + b[t]; // @get
}
