// Blocks count together, with an atomic whose scope is one block.
// run: --grid 4 --block 64 --arg 'inout u32[1]=@zeros'
// find: race-scope: add
#include "races.h"
extern "C" __global__ void kernel(unsigned *n)
{
#ifdef BROKEN
    atomicAdd_block(n, 1); // @add
#else
    atomicAdd(n, 1);
#endif
}
