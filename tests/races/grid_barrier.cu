// A barrier of all blocks by a counter; the threads of a block must meet before one of them counts.
// run: --grid 4 --block 64 --arg 'inout u32[257]=@zeros' --arg 'inout u32[256]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(unsigned *x, unsigned *y)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    x[i] = i; // @put
#ifndef BROKEN
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&x[256], 1);
        while (*(volatile unsigned *)&x[256] < 4)
            ;
        __threadfence();
    }
    __syncthreads();
    y[i] = x[255 - i]; // @get
}
