// cuda::barrier: what arrives and does not wait may not read.
// run: --grid 1 --block 64 --arg 'in u32[64]=@arange' --arg 'inout u32[64]=@zeros'
// find: race: put get
#include "races.h"
#include <cuda/barrier>
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(barrier) char store[sizeof(barrier)];
    __shared__ unsigned a[64];
    barrier *b = (barrier *)store;
    unsigned t = threadIdx.x;
    if (t == 0)
        init(b, 64);
    __syncthreads();
    a[t] = x[t]; // @put
#ifdef BROKEN
    (void)b->arrive();
#else
    b->arrive_and_wait();
#endif
    y[t] = a[63 - t]; // @get
}
