// Counters in another block's shared memory: atomics must be used by all.
// arch: 90
// run: --grid 2 --block 32 --cluster 2 --arg 'in u32[64]=@randint:0:4' --arg 'inout u32[4]=@zeros'
// find: race: add
#include "races.h"
extern "C" __global__ void __cluster_dims__(2) kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned n[4];
    unsigned t = threadIdx.x, v = x[blockIdx.x * 32 + t] % 4;
    if (t < 4)
        n[t] = 0;
    CLUSTER_SYNC();
#ifdef BROKEN
    if (cluster_rank() == 0)
        n[v] += 1; // @add
    else
        remote_add(&n[v], 0, 1);
#else
    remote_add(&n[v], 0, 1);
#endif
    CLUSTER_SYNC();
    if (cluster_rank() == 0 && t < 4)
        y[t] = n[t];
}
