// All threads may set a flag to the same value; to different ones they may not.
// run: --grid 2 --block 64 --arg 'in u32[128]=@arange' --arg 'inout u32[1]=@zeros'
// find: race: set
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *found)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    if (x[i] % 7 == 3)
#ifdef BROKEN
        *found = i; // @set
#else
        *found = 1;
#endif
}
