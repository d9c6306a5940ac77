// A lock by compare-and-swap: without fences what it guards is not handed on.
// run: --grid 4 --block 32 --arg 'inout u32[1]=@zeros' --arg 'inout u32[1]=@zeros'
// find: race: guarded
#include "races.h"
extern "C" __global__ void kernel(unsigned *lock, unsigned *sum)
{
    if (threadIdx.x)
        return;
    while (atomicCAS(lock, 0, 1))
        ;
#ifndef BROKEN
    __threadfence();
#endif
    sum[0] += blockIdx.x; // @guarded
#ifndef BROKEN
    __threadfence();
#endif
    atomicExch(lock, 0);
}
