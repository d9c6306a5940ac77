// Lanes swap by shared memory, each warp in a part of its own.
// run: --grid 1 --block 64 --arg 'in u32[64]=@arange' --arg 'inout u32[64]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[64];
    tile[threadIdx.x] = x[threadIdx.x]; // @put
#ifndef BROKEN
    __syncwarp();
#endif
    y[threadIdx.x] = tile[threadIdx.x ^ 3]; // @get
}
