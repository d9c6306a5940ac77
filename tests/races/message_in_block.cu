// The scope of the flag is the block, and the reader is in another.
// run: --grid 2 --block 32 --arg 'inout u32[2]=@zeros' --arg 'inout u32[1]=@zeros'
// find: race|race-scope: flag
#include "races.h"
#include <cuda/atomic>
#ifdef BROKEN
#define SCOPE cuda::thread_scope_block
#else
#define SCOPE cuda::thread_scope_device
#endif
extern "C" __global__ void kernel(unsigned *box, unsigned *y)
{
    cuda::atomic_ref<unsigned, SCOPE> flag(box[1]);
    if (threadIdx.x)
        return;
    if (blockIdx.x == 0) {
        box[0] = 42;
        flag.store(1, cuda::memory_order_release); // @flag
    } else {
        while (!flag.load(cuda::memory_order_acquire)) // @flag
            ;
        y[0] = box[0];
    }
}
