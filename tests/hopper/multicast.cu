/* A cluster of two blocks, each of which wants every tile: either loads half of it, into both. A stage of the ring is free when
 * the warps of both blocks have read it, for both write there.
 */
#include "hopper.cuh"

enum { ROWS = 16, COLS = 32, STAGES = 2, BYTES = ROWS * COLS * 4, WARPS = 4 };

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32 + 32 * WARPS)
    multicast(MAP x, int32_t *y, uint32_t tiles)
{
    __shared__ alignas(128) int32_t in[STAGES][ROWS][COLS];
    __shared__ uint64_t bars[2 * STAGES];
    uint32_t t = threadIdx.x, rank, stage = 0, phase = 0;
    uint32_t full = shared_address(bars), empty = full + 8 * STAGES;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
#pragma unroll
        for (uint32_t i = 0; i < STAGES; i++) {
            MBAR_INIT("init_full", full + 8 * i, 1);
            MBAR_INIT("init_empty", empty + 8 * i, 2 * WARPS);
        }
        FENCE_INIT();
    }
    CLUSTER_ARRIVE("begin_arrive");
    CLUSTER_WAIT("begin_wait");
    if (t >= 32 * WARPS) {
        if (t == 32 * WARPS)
#pragma unroll 1
            for (uint32_t tile = 0; tile < tiles; tile++) {
                WAIT_CLUSTER("empty_wait", empty + 8 * stage, phase ^ 1);
                EXPECT("expect", full + 8 * stage, BYTES);
                TMA_MULTICAST("load", shared_address(in[stage]) + rank * (BYTES / 2), &x, 0,
                              tile * ROWS + rank * (ROWS / 2), full + 8 * stage, 3);
                if (++stage == STAGES)
                    stage = 0, phase ^= 1;
            }
    } else {
#pragma unroll 1
        for (uint32_t tile = 0; tile < tiles; tile++) {
            WAIT("full_wait", full + 8 * stage, phase);
#pragma unroll
            for (uint32_t i = t; i < ROWS * COLS; i += 32 * WARPS) {
                int32_t v;
                asm volatile("ld.shared.b32 %0, [%1];" AT("read")
                             : "=r"(v) : "r"(shared_address(&in[stage][0][0] + i)) : "memory");
                y[(tile * 2 + rank) * ROWS * COLS + i] = v * (int32_t)(rank + 1);
            }
            __syncwarp();
            if (t % 32 < 2)
                ARRIVE_AT("release", empty + 8 * stage, t % 32);
            if (++stage == STAGES)
                stage = 0, phase ^= 1;
        }
    }
    CLUSTER_ARRIVE("end_arrive");
    CLUSTER_WAIT("end_wait");
}
