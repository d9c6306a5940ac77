// Each block reads its neighbours' edges: not from where they write.
// run: --grid 4 --block 64 --arg 'inout u32[256]=@arange' --arg 'inout u32[256]=@zeros'
// find: race: get put
#include "races.h"
extern "C" __global__ void kernel(unsigned *x, unsigned *y)
{
    unsigned i = blockIdx.x * 64 + threadIdx.x;
    unsigned v = x[i] + x[(i + 1) % 256]; // @get
    __syncthreads();
#ifdef BROKEN
    x[i] = v; // @put
    y[i] = 0;
#else
    y[i] = v;
#endif
}
