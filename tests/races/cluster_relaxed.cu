// An arrival at the cluster's barrier that is relaxed publishes nothing.
// arch: 90
// run: --grid 4 --block 32 --cluster 2 --arg 'in u32[128]=@arange' --arg 'inout u32[128]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void __cluster_dims__(2) kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned a[32];
    unsigned t = threadIdx.x, i = blockIdx.x * 32 + t;
    a[t] = x[i]; // @put
#ifdef BROKEN
    asm volatile("barrier.cluster.arrive.relaxed;\n\tbarrier.cluster.wait;" ::: "memory");
#else
    CLUSTER_SYNC();
#endif
    y[i] = remote_load(&a[31 - t], cluster_rank() ^ 1); // @get
    CLUSTER_SYNC();
}
