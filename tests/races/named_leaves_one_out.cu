// A barrier of three warps, and a fourth that reads what they wrote.
// run: --grid 1 --block 128 --arg 'in u32[128]=@arange' --arg 'inout u32[128]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[96];
    if (threadIdx.x < 96)
        tile[threadIdx.x] = x[threadIdx.x]; // @put
#ifdef BROKEN
    if (threadIdx.x < 96)
        BAR_SYNC(1, 96);
#else
    BAR_SYNC(1, 128);
#endif
    y[threadIdx.x] = tile[threadIdx.x * 7 % 96]; // @get
}
