// One lane of those with the same key adds for all; leaders of several warps meet at the same counter.
// run: --grid 2 --block 128 --arg 'in u32[256]=@randint:0:8' --arg 'inout u32[8]=@zeros'
// find: race: add
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *count)
{
    unsigned key = x[blockIdx.x * 128 + threadIdx.x] % 8;
    unsigned same = __match_any_sync(~0u, key);
    if (threadIdx.x % 32 == __ffs(same) - 1)
#ifdef BROKEN
        count[key] += __popc(same); // @add
#else
        atomicAdd(&count[key], __popc(same));
#endif
}
