// Global memory needs the same barriers as shared memory.
// run: --grid 2 --block 64 --arg 'inout u32[128]=@zeros' --arg 'inout u32[128]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(unsigned *x, unsigned *y)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    x[i] = i; // @put
#ifndef BROKEN
    __syncthreads();
#endif
    y[i] = x[i ^ 33]; // @get
}
