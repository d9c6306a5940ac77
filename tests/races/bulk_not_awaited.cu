// One thread waits for the phase, and the others read what came.
// arch: 90
// run: --grid 1 --block 64 --arg 'in u32[64]=@arange' --arg 'inout u32[64]=@zeros'
// find: copy-in-flight: get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ alignas(128) unsigned a[64];
    __shared__ uint64_t full;
    unsigned t = threadIdx.x;
    if (t == 0) {
        mbarrier_init(&full, 1);
        FENCE_INIT();
        mbarrier_expect(&full, 256);
        bulk_load(a, x, 256, &full);
        mbarrier_wait(&full, 0);
    }
#ifndef BROKEN
    __syncthreads();
#endif
    y[t] = a[63 - t]; // @get
}
