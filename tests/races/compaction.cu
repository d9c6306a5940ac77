// Lanes find their places by a vote, warps by a counter in shared memory.
// run: --grid 1 --block 128 --arg 'in u32[128]=@randint:0:9' --arg 'inout u32[128]=@zeros'
// find: race: take
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned n;
    unsigned v = x[threadIdx.x], lane = threadIdx.x % 32, at = 0;
    if (threadIdx.x == 0)
        n = 0;
    __syncthreads();
    unsigned mine = __ballot_sync(~0u, v > 4);
    if (lane == 0)
#ifdef BROKEN
        at = n, n = at + __popc(mine); // @take
#else
        at = atomicAdd(&n, __popc(mine));
#endif
    at = __shfl_sync(~0u, at, 0);
    if (v > 4)
        y[at + __popc(mine & ((1u << lane) - 1))] = v;
}
