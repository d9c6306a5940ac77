// Rows of 33 that begin every 32: the last element of one is the first of the next.
// run: --grid 4 --block 33 --arg 'inout u32[133]=@zeros'
// find: race: put
#include "races.h"
#ifdef BROKEN
#define PITCH 32
#else
#define PITCH 33
#endif
extern "C" __global__ void kernel(unsigned *y)
{
    y[blockIdx.x * PITCH + threadIdx.x] = 100 * blockIdx.x + threadIdx.x; // @put
}
