// A bulk store reads shared memory by another proxy: writes need a fence before it, by each thread.
// arch: 90
// run: --grid 1 --block 64 --arg 'in u32[64]=@arange' --arg 'inout u32[64]=@zeros'
// find: proxy-fence: put
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ alignas(128) unsigned a[64];
    unsigned t = threadIdx.x;
    a[t] = x[t] + 1; // @put
#ifndef BROKEN
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (t == 0) {
        bulk_store(y, a, 256);
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
    }
}
