// Tickets and turns with cuda::atomic_ref.
// run: --grid 4 --block 32 --arg 'inout u32[2]=@zeros' --arg 'inout u32[1]=@zeros'
// find: race: guarded
#include "races.h"
#include <cuda/atomic>
#ifdef BROKEN
#define ACQUIRE cuda::memory_order_relaxed
#else
#define ACQUIRE cuda::memory_order_acquire
#endif
extern "C" __global__ void kernel(unsigned *lock, unsigned *sum)
{
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> next(lock[0]), turn(lock[1]);
    if (threadIdx.x)
        return;
    unsigned mine = next.fetch_add(1, cuda::memory_order_relaxed);
    while (turn.load(ACQUIRE) != mine)
        ;
    sum[0] += blockIdx.x; // @guarded
    turn.store(mine + 1, cuda::memory_order_release);
}
