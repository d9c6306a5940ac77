// Sixteen lanes each with a mask of their own: they know of each other, not of the other half.
// run: --grid 1 --block 32 --arg 'in u32[32]=@arange' --arg 'inout u32[32]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[32];
    unsigned t = threadIdx.x, mask = t < 16 ? 0xffffu : 0xffff0000u;
    tile[t] = x[t]; // @put
    __syncwarp(mask);
#ifdef BROKEN
    y[t] = tile[31 - t]; // @get
#else
    y[t] = tile[t ^ 15];
#endif
}
