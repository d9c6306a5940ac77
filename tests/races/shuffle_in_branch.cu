// Half of the warp shuffles with the mask of all; the others are elsewhere and never come.
// run: --grid 1 --block 32 --arg 'in u32[32]=@arange' --arg 'inout u32[32]=@zeros'
// find: deadlock: shuffle
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    unsigned v = x[threadIdx.x];
#ifdef BROKEN
    if (threadIdx.x < 16)
        v += __shfl_xor_sync(~0u, v, 1); // @shuffle
    else
        __syncwarp();
#else
    unsigned w = __shfl_xor_sync(~0u, v, 1);
    if (threadIdx.x < 16)
        v += w;
    else
        __syncwarp(0xffff0000u);
#endif
    y[threadIdx.x] = v;
}
