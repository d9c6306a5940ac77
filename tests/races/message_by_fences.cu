// A fence belongs between the data and the flag.
// run: --grid 2 --block 32 --arg 'inout u32[2]=@zeros' --arg 'inout u32[1]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(unsigned *box, unsigned *y)
{
    volatile unsigned *flag = box + 1;
    if (threadIdx.x)
        return;
    if (blockIdx.x == 0) {
#ifdef BROKEN
        __threadfence();
        box[0] = 42; // @put
#else
        box[0] = 42;
        __threadfence();
#endif
        *flag = 1;
    } else {
        while (!*flag)
            ;
        __threadfence();
        y[0] = box[0]; // @get
    }
}
