// Two warps fill a buffer that two others read, round after round, with a named barrier each way.
// run: --grid 2 --block 128 --arg 'in u32[512]=@arange' --arg 'inout u32[128]=@zeros'
// find: barrier-again: full
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[64];
    unsigned t = threadIdx.x % 64, sum = 0;
    for (int k = 0; k < 4; k++) {
        if (threadIdx.x < 64) {
#ifndef BROKEN // the producers run ahead
            if (k)
                BAR_SYNC(2, 128);
#endif
            tile[t] = x[(k * 128 + blockIdx.x * 64 + t) % 512];
            BAR_ARRIVE(1, 128); // @full
        } else {
            BAR_SYNC(1, 128);
            sum += tile[63 - t];
#ifndef BROKEN
            if (k < 3)
                BAR_ARRIVE(2, 128);
#endif
        }
    }
    if (threadIdx.x >= 64)
        y[blockIdx.x * 64 + t] = sum;
}
