/* An mbarrier ends where its memory is used anew: for another mbarrier, then for data. */
#include "hopper.cuh"

extern "C" __global__ void __launch_bounds__(64) lifetime(const uint32_t *x, uint32_t *y)
{
    __shared__ alignas(16) uint32_t in[64];
    __shared__ alignas(8) uint32_t slot[2];
    uint32_t t = threadIdx.x, bar = shared_address(slot);
    if (t == 0) {
        MBAR_INIT("init_all", bar, 64);
        FENCE_INIT();
    }
    __syncthreads();
    asm volatile("st.shared.b32 [%0], %1;" AT("fill")::"r"(shared_address(in + t)), "r"(x[t]) : "memory");
    ARRIVE("arrive", bar);
    WAIT("wait_all", bar, 0);
    uint32_t v = in[63 - t];
    FENCE_ASYNC("fence_load");
    asm volatile("bar.sync 0;" AT("all_waited")::: "memory");
    if (t == 0) {
        MBAR_INVAL("inval_all", bar);
        MBAR_INIT("init_copy", bar, 1);
        FENCE_INIT();
    }
    __syncthreads();
    if (t == 0) {
        EXPECT("expect", bar, 256);
        BULK_LOAD("load", shared_address(in), x + 64, 256, bar);
    }
    WAIT("wait_copy", bar, 0);
    v += in[t];
    asm volatile("bar.sync 0;" AT("copy_waited")::: "memory");
    if (t == 0)
        MBAR_INVAL("inval_copy", bar);
    __syncthreads();
    if (t % 32 == 0)
        asm volatile("st.shared.b32 [%0], %1;" AT("reuse")::"r"(bar + t / 8), "r"(v) : "memory");
    __syncthreads();
    y[t] = v + slot[t / 32];
}
