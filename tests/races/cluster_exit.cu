// A block must not exit while another may read its shared memory.
// arch: 90
// run: --grid 4 --block 32 --cluster 2 --arg 'in u32[128]=@arange' --arg 'inout u32[128]=@zeros'
// find: block-exited: get
#include "races.h"
extern "C" __global__ void __cluster_dims__(2) kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned a[32];
    unsigned t = threadIdx.x, i = blockIdx.x * 32 + t;
    a[t] = x[i];
    CLUSTER_SYNC();
    y[i] = remote_load(&a[31 - t], cluster_rank() ^ 1); // @get
#ifndef BROKEN
    CLUSTER_SYNC();
#endif
}
