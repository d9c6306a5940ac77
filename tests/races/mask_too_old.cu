// A mask taken before lanes left the loop.
// run: --grid 1 --block 32 --arg 'in u32[32]=@arange' --arg 'inout u32[32]=@zeros'
// find: deadlock: vote
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    unsigned v = x[threadIdx.x], n = 0, mask = __ballot_sync(~0u, v < 24);
    while (v < 24) {
        n += __popc(__ballot_sync(mask, v & 1)); // @vote
        v += 1 + threadIdx.x % 3;
#ifndef BROKEN
        mask = __ballot_sync(mask, v < 24);
#endif
    }
    __syncwarp();
    y[threadIdx.x] = n;
}
