// A fence orders a thread's own accesses, and nobody waits for it.
// run: --grid 1 --block 64 --arg 'inout u32[64]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(unsigned *y)
{
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = threadIdx.x; // @put
#ifdef BROKEN
    __threadfence_block();
#else
    __syncthreads();
#endif
    y[threadIdx.x] = tile[63 - threadIdx.x]; // @get
}
