// A mask that names all who shuffle, and a lane that reads from beyond it.
// run: --grid 1 --block 32 --arg 'in u32[32]=@arange' --arg 'inout u32[32]=@zeros'
// find: shuffle-source: shuffle
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    unsigned v = x[threadIdx.x];
    if (threadIdx.x < 20) {
#ifdef BROKEN
        v += __shfl_down_sync(0xfffffu, v, 1); // @shuffle
#else
        unsigned w = __shfl_down_sync(0xfffffu, v, 1);
        v += threadIdx.x < 19 ? w : 0;
#endif
    }
    y[threadIdx.x] = v;
}
