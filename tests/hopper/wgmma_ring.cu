/* c = a b^T, f16 into f32: a warpgroup that loads by tensor copies and two that multiply, tiles of 128 x 64 x 64 in a ring of
 * three stages, and a tensor store. One product is always in flight: a stage is free when the one after it was begun. m, n and
 * k are whole tiles.
 */
#include "hopper.cuh"

enum { BM = 128, BN = 64, BK = 64, STAGES = 3, A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES };

extern __shared__ __align__(1024) unsigned char memory[]; /* STAGES * STAGE, BM * BN * 4 */

__device__ static void multiply(float d[32], uint64_t a, uint64_t b, int sum)
{
    asm volatile("{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %34, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST_32
                 ", %32, %33, sum, 1, 1, 0, 0;" AT("wgmma") "\n\t}"
                 : REGS_32(FLOATS, d) : "l"(a), "l"(b), "r"(sum) : "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1) wgmma_ring(MAP a, MAP b, MAP c, uint32_t k)
{
    __shared__ uint64_t bars[2 * STAGES];
    uint32_t t = threadIdx.x % 128, group = threadIdx.x / 128, steps = k / BK, stage = 0, phase = 0;
    uint32_t full = shared_address(bars), empty = full + 8 * STAGES, base = shared_address(memory);
    uint32_t row = blockIdx.y * BM, col = blockIdx.x * BN;
    if (threadIdx.x == 0) {
#pragma unroll
        for (uint32_t i = 0; i < STAGES; i++) {
            MBAR_INIT("init_full", full + 8 * i, 1);
            MBAR_INIT("init_empty", empty + 8 * i, 8);
        }
        FENCE_INIT();
    }
    __syncthreads();
    if (group == 0) {
        REGISTERS_LESS(24);
        if (t == 0)
#pragma unroll 1
            for (uint32_t step = 0; step < steps; step++) {
                uint32_t at = base + stage * STAGE, bar = full + 8 * stage;
                WAIT("empty_wait", empty + 8 * stage, phase ^ 1);
                EXPECT("expect", bar, STAGE);
                TMA_LOAD("load_a", at, &a, step * BK, row, bar);
                TMA_LOAD("load_b", at + A_BYTES, &b, step * BK, col, bar);
                if (++stage == STAGES)
                    stage = 0, phase ^= 1;
            }
        return;
    }
    REGISTERS_MORE(240);
    group--;
    float d[32];
    uint32_t before = 0;
#pragma unroll 1
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t at = base + stage * STAGE;
        WAIT("full_wait", full + 8 * stage, phase);
        uint64_t da = descriptor(at + group * (A_BYTES / 2), 16, 1024, 128), db = descriptor(at + A_BYTES, 16, 1024, 128);
        WGMMA_FENCE();
#pragma unroll
        for (int i = 0; i < BK / 16; i++)
            multiply(d, da + 2 * i, db + 2 * i, step > 0 || i > 0);
        WGMMA_COMMIT();
        WGMMA_WAIT("wait_1", 1);
        if (step > 0 && t % 32 == 0)
            ARRIVE("release", empty + 8 * before);
        before = stage;
        if (++stage == STAGES)
            stage = 0, phase ^= 1;
    }
    WGMMA_WAIT("wait_0", 0);
    /* two boxes of 32 columns of the group's 64 rows, of 128 bytes each */
    uint32_t out = base + STAGES * STAGE + group * (BM * BN * 2), r = t / 32 * 16 + t % 32 / 4;
#pragma unroll
    for (uint32_t i = 0; i < 32; i += 2) {
        uint32_t y = r + i % 4 / 2 * 8, x = i / 4 * 8 + t % 4 * 2;
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" AT("write")::"r"(
                         out + x / 32 * 8192 + y * 128 + (x % 32 * 4 ^ y % 8 * 16)),
                     "f"(d[i]), "f"(d[i + 1])
                     : "memory");
    }
    FENCE_ASYNC("fence_store");
    NAMED_SYNC("tile_full", group + 1, 128);
    if (t == 0) {
        TMA_STORE("store_0", &c, col, row + group * 64, out);
        TMA_STORE("store_1", &c, col + 32, row + group * 64, out + 8192);
        BULK_COMMIT("commit");
        BULK_WAIT_READ("wait_read", 0);
    }
}
