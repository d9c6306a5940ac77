/* Global memory by both ways: a row is doubled into y by plain stores, fetched from there by a bulk copy, stored into z by
 * another, and read from there by plain loads.
 */
#include "hopper.cuh"

extern "C" __global__ void __launch_bounds__(128) write_back(const uint32_t *x, uint32_t *y, uint32_t *z, uint32_t *w)
{
    __shared__ alignas(128) uint32_t row[128];
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, full = shared_address(&bar), i = blockIdx.x * 128 + t, v;
    if (t == 0) {
        MBAR_INIT("init", full, 1);
        FENCE_INIT();
    }
    asm volatile("st.global.b32 [%0], %1;" AT("double")::"l"(y + i), "r"(2 * x[i]) : "memory");
    asm volatile("fence.proxy.async.global;" AT("fence_global")::: "memory");
    asm volatile("bar.sync 0;" AT("doubled")::: "memory");
    if (t == 0) {
        EXPECT("expect", full, 512);
        BULK_LOAD("load", shared_address(row), y + i, 512, full);
        WAIT("full_wait", full, 0);
        BULK_STORE("store", z + i, shared_address(row), 512);
        BULK_COMMIT("commit");
        BULK_WAIT("wait", 0);
    }
    asm volatile("bar.sync 0;" AT("stored")::: "memory");
    asm volatile("ld.global.b32 %0, [%1];" AT("read") : "=r"(v) : "l"(z + (i ^ 1)) : "memory");
    w[i] = v;
}
