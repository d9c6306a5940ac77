// Clusters do not know of each other: what one leaves in global memory is not for the next.
// arch: 90
// run: --grid 4 --block 32 --cluster 2 --arg 'inout u32[128]=@zeros' --arg 'inout u32[128]=@zeros'
// find: race: put get
#include "races.h"
extern "C" __global__ void __cluster_dims__(2) kernel(unsigned *x, unsigned *y)
{
    unsigned i = blockIdx.x * 32 + threadIdx.x;
    x[i] = i; // @put
    CLUSTER_SYNC();
#ifdef BROKEN
    y[i] = x[127 - i]; // @get
#else
    y[i] = x[i ^ 63];
#endif
}
