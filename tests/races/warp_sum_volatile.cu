// The sum of a warp as it was written before sm_70: volatile keeps the compiler from reordering, not the lanes.
// run: --grid 1 --block 32 --arg 'in u32[32]=@arange' --arg 'inout u32[1]=@zeros'
// missed: race: accesses that are volatile are relaxed, which is no data race; and the lanes run together
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned part[64];
    volatile unsigned *p = part;
    unsigned t = threadIdx.x;
    p[t] = x[t];
    p[t + 32] = 0;
    __syncwarp();
    for (int d = 16; d; d >>= 1) {
        unsigned v = p[t + d];
#ifndef BROKEN
        __syncwarp();
#endif
        p[t] += v;
#ifndef BROKEN
        __syncwarp();
#endif
    }
    if (t == 0)
        y[0] = p[0];
}
