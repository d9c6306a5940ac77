// A buffer that a bulk store reads may be written again when the store has been waited for.
// arch: 90
// run: --grid 1 --block 64 --arg 'in u32[64]=@arange' --arg 'inout u32[128]=@zeros'
// find: copy-in-flight: put
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ alignas(128) unsigned a[64];
    unsigned t = threadIdx.x;
    for (int k = 0; k < 2; k++) {
        a[t] = x[t] + k; // @put
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (t == 0) {
            bulk_store(y + 64 * k, a, 256);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#ifdef BROKEN
            if (k)
#endif
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        }
        __syncthreads();
    }
}
