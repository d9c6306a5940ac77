// Who reads must wait at the barrier; to arrive is not enough.
// run: --grid 1 --block 64 --arg 'in u32[64]=@arange' --arg 'inout u32[64]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[32];
    if (threadIdx.x < 32) {
        tile[threadIdx.x] = x[threadIdx.x]; // @put
        BAR_ARRIVE(3, 64);
    } else {
#ifdef BROKEN
        BAR_ARRIVE(3, 64);
#else
        BAR_SYNC(3, 64);
#endif
        y[threadIdx.x] = tile[threadIdx.x - 32]; // @get
    }
#ifdef BROKEN
    __syncthreads();
#endif
}
