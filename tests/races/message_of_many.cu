// All threads of a block write, one releases: a barrier must come before that.
// run: --grid 2 --block 64 --arg 'inout u32[65]=@zeros' --arg 'inout u32[64]=@zeros'
// find: race: put get
#include "races.h"
#include <cuda/atomic>
extern "C" __global__ void kernel(unsigned *box, unsigned *y)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> flag(box[64]);
    if (blockIdx.x == 0) {
        box[threadIdx.x] = threadIdx.x; // @put
#ifndef BROKEN
        __syncthreads();
#endif
        if (threadIdx.x == 0)
            flag.store(1, cuda::memory_order_release);
    } else {
        if (threadIdx.x == 0)
            while (!flag.load(cuda::memory_order_acquire))
                ;
        __syncthreads();
        y[threadIdx.x] = box[threadIdx.x]; // @get
    }
}
