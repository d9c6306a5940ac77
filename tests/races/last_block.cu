// The last block to come adds up what the others left: their fences must come before they count.
// run: --grid 4 --block 32 --arg 'inout u32[5]=@zeros' --arg 'inout u32[1]=@zeros'
// find: race: part sum
#include "races.h"
extern "C" __global__ void kernel(unsigned *part, unsigned *y)
{
    if (threadIdx.x)
        return;
    part[blockIdx.x] = blockIdx.x + 1; // @part
#ifndef BROKEN
    __threadfence();
#endif
    if (atomicAdd(&part[4], 1) == 3) {
#ifndef BROKEN
        __threadfence();
#endif
        unsigned s = 0;
        for (int i = 0; i < 4; i++)
            s += ((volatile unsigned *)part)[i]; // @sum
        y[0] = s;
    }
}
