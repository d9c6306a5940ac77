// An atomic whose scope is the block is enough for the block's own memory.
// run: --grid 4 --block 64 --arg 'inout u32[4]=@zeros'
// find: race: add
#include "races.h"
extern "C" __global__ void kernel(unsigned *n)
{
    __shared__ unsigned mine;
    if (threadIdx.x == 0)
        mine = 0;
    __syncthreads();
#ifdef BROKEN
    mine = mine + 1; // @add
#else
    atomicAdd_block(&mine, 1);
#endif
    __syncthreads();
    if (threadIdx.x == 0)
        n[blockIdx.x] = mine;
}
