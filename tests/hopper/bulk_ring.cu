/* y = 2 x + 1 through a ring of three stages: a warp that loads by bulk copies, two warps that compute, and bulk stores from
 * two buffers. The tiles go round robin over the blocks; the last may be short.
 */
#include "hopper.cuh"

enum { TILE = 256, STAGES = 3, CONSUMERS = 64 };

__device__ static uint32_t length(uint32_t tile, uint32_t n)
{
    return min(n - tile * TILE, (uint32_t)TILE);
}

extern "C" __global__ void __launch_bounds__(32 + CONSUMERS) bulk_ring(const float *x, float *y, uint32_t n)
{
    __shared__ alignas(128) float in[STAGES][TILE];
    __shared__ alignas(128) float out[2][TILE];
    __shared__ uint64_t bars[2 * STAGES];
    uint32_t t = threadIdx.x, full = shared_address(bars), empty = full + 8 * STAGES;
    uint32_t tiles = (n + TILE - 1) / TILE, stage = 0, phase = 0;
    if (t == 0) {
#pragma unroll
        for (uint32_t i = 0; i < STAGES; i++) {
            MBAR_INIT("init_full", full + 8 * i, 1);
            MBAR_INIT("init_empty", empty + 8 * i, CONSUMERS / 32);
        }
        FENCE_INIT();
    }
    asm volatile("bar.sync 0;" AT("after_init") ::: "memory");
    if (t < 32) {
        if (t == 0)
#pragma unroll 1
            for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                uint32_t bytes = length(tile, n) * 4;
                WAIT("empty_wait", empty + 8 * stage, phase ^ 1);
                EXPECT("expect", full + 8 * stage, bytes);
                BULK_LOAD("load", shared_address(in[stage]), x + tile * TILE, bytes, full + 8 * stage);
                if (++stage == STAGES)
                    stage = 0, phase ^= 1;
            }
        return;
    }
    t -= 32;
    uint32_t buffer = 0;
#pragma unroll 1
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x, buffer ^= 1) {
        uint32_t count = length(tile, n);
        WAIT("full_wait", full + 8 * stage, phase);
        float v[TILE / CONSUMERS];
#pragma unroll
        for (uint32_t i = 0; i < TILE / CONSUMERS; i++)
            asm volatile("ld.shared.f32 %0, [%1];" AT("read")
                         : "=f"(v[i]) : "r"(shared_address(&in[stage][t + i * CONSUMERS])) : "memory");
        __syncwarp();
        if (t % 32 == 0)
            ARRIVE("release", empty + 8 * stage);
        if (++stage == STAGES)
            stage = 0, phase ^= 1;
        if (t == 0)
            BULK_WAIT_READ("wait_read", 1);
        NAMED_SYNC("buffer_free", 1, CONSUMERS);
#pragma unroll
        for (uint32_t i = 0; i < TILE / CONSUMERS; i++)
            asm volatile("st.shared.f32 [%0], %1;" AT("write")::"r"(
                             shared_address(&out[buffer][t + i * CONSUMERS])), "f"(2 * v[i] + 1) : "memory");
        FENCE_ASYNC("fence_store");
        NAMED_SYNC("buffer_full", 1, CONSUMERS);
        if (t == 0) {
            BULK_STORE("store", y + tile * TILE, shared_address(out[buffer]), count * 4);
            BULK_COMMIT("commit");
        }
    }
    if (t == 0)
        BULK_WAIT_READ("last_wait", 0);
}
