// The fences of a lock between blocks must be for the device, not for the block.
// run: --grid 4 --block 32 --arg 'inout u32[1]=@zeros' --arg 'inout u32[1]=@zeros'
// find: race: guarded
#include "races.h"
#ifdef BROKEN
#define FENCE __threadfence_block
#else
#define FENCE __threadfence
#endif
extern "C" __global__ void kernel(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x)
        return;
    while (atomicCAS(lock, 0, 1))
        ;
    FENCE();
    sum[0] += blockIdx.x; // @guarded
    FENCE();
    atomicExch(lock, 0);
}
