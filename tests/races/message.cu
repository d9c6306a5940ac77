// One block hands a word to another with a flag: the flag must be released.
// run: --grid 2 --block 32 --arg 'inout u32[2]=@zeros' --arg 'inout u32[1]=@zeros'
// find: race: put get
#include "races.h"
#include <cuda/atomic>
#ifdef BROKEN
#define RELEASE cuda::memory_order_relaxed
#else
#define RELEASE cuda::memory_order_release
#endif
extern "C" __global__ void kernel(unsigned *box, unsigned *y)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(box[1]);
    if (threadIdx.x)
        return;
    if (blockIdx.x == 0) {
        box[0] = 42; // @put
        flag.store(1, RELEASE);
    } else {
        while (!flag.load(cuda::memory_order_acquire))
            ;
        y[0] = box[0]; // @get
    }
}
