// cp.async.bulk into two stages by turns, with an mbarrier for full and one for empty: others call the correct one a hazard.
// arch: 90
// run: --grid 1 --block 64 --arg 'in u32[512]=@arange' --arg 'inout u32[64]=@zeros'
// find: async-race|race|copy-in-flight: get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ alignas(128) unsigned a[2][64];
    __shared__ uint64_t full[2], empty[2];
    unsigned t = threadIdx.x, s = 0;
    if (t == 0) {
        for (int i = 0; i < 2; i++)
            mbarrier_init(&full[i], 1), mbarrier_init(&empty[i], 64);
        FENCE_INIT();
    }
    __syncthreads();
    for (int k = 0; k < 8; k++) {
        int i = k % 2, round = k / 2;
        if (t == 0) {
#ifndef BROKEN
            if (round)
                mbarrier_wait(&empty[i], (round - 1) & 1);
#endif
            mbarrier_expect(&full[i], 256);
            bulk_load(a[i], x + 64 * k, 256, &full[i]);
        }
        mbarrier_wait(&full[i], round & 1);
        s += a[i][63 - t]; // @get
        mbarrier_arrive(&empty[i]);
    }
    y[t] = s;
}
