// One lane arrives for its warp at an mbarrier; who waits there meets another block, which writes
// where the warp has read. compute-sanitizer 13.0 takes the other 31 lanes' reads for hazards.
// arch: 90
// run: --grid 2 --block 64 --cluster 2 --arg 'in u32[64]=@arange' --arg 'inout u32[64]=@zeros'
// find: race: get put
#include "races.h"
extern "C" __global__ void __cluster_dims__(2) kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned a[32];
    __shared__ alignas(8) uint64_t read;
    unsigned t = threadIdx.x, lane = t % 32;
    if (t == 0) {
        mbarrier_init(&read, 1);
        FENCE_INIT();
    }
    if (t < 32)
        a[t] = x[blockIdx.x * 32 + t];
    __syncthreads();
    CLUSTER_SYNC();
    if (t >= 32) {
        y[blockIdx.x * 32 + lane] = a[lane]; // @get
        __syncwarp();
        if (lane == 0)
            mbarrier_arrive(&read);
        return;
    }
    mbarrier_wait(&read, 0);
#ifndef BROKEN
    CLUSTER_SYNC();
#endif
    remote_store(&a[t], cluster_rank() ^ 1, 7); // @put
    CLUSTER_SYNC();
}
