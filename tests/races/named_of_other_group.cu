// Two groups of warps with a tile and a barrier each; one reads the other's tile behind its own barrier.
// run: --grid 1 --block 128 --arg 'in u32[128]=@arange' --arg 'inout u32[128]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[2][64];
    unsigned g = threadIdx.x / 64, t = threadIdx.x % 64;
    tile[g][t] = x[threadIdx.x]; // @put
    BAR_SYNC(1 + g, 64);
#ifdef BROKEN
    g = 1 - g;
#endif
    y[threadIdx.x] = tile[g][63 - t]; // @get
}
