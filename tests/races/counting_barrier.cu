// __syncthreads_or() orders as a barrier does; a vote of the warp does not.
// run: --grid 1 --block 128 --arg 'in u32[128]=@arange' --arg 'inout u32[128]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[128];
    tile[threadIdx.x] = x[threadIdx.x]; // @put
#ifdef BROKEN
    int any = __any_sync(~0u, x[threadIdx.x] > 100);
#else
    int any = __syncthreads_or(x[threadIdx.x] > 100);
#endif
    y[threadIdx.x] = any + tile[127 - threadIdx.x]; // @get
}
