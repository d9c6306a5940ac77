// Two blocks meet at a counter first, which by chance orders what they do next; in another run it would not.
// run: --grid 2 --block 32 --arg 'inout u32[2]=@zeros' --arg 'inout u32[1]=@zeros'
// missed: race: the order of this run hides it
#include "races.h"
#include <cuda/atomic>
extern "C" __global__ void kernel(unsigned *x, unsigned *y)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> n(x[1]);
    if (threadIdx.x)
        return;
    if (blockIdx.x == 0) {
        x[0] = 1;
        n.fetch_add(1, cuda::memory_order_acq_rel);
    } else {
#ifdef BROKEN
        n.fetch_add(1, cuda::memory_order_acq_rel);
#else
        while (n.load(cuda::memory_order_acquire) == 0)
            ;
#endif
        y[0] = x[0];
    }
}
