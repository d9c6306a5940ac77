/* c = a b^T, all f16, by clusters of two blocks that stay: the blocks of a cluster have tiles one above the other, and
 * either loads half of the b that both need, into both. Tiles of 128 x 64 x 64, a ring of four stages; the result goes through
 * stmatrix and a tensor store, which runs on under the next tile.
 */
#include "hopper.cuh"

enum { BM = 128, BN = 64, BK = 64, STAGES = 4, A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES };

extern __shared__ __align__(1024) unsigned char memory[]; /* STAGES * STAGE, BM * BN * 2 */

__device__ static void multiply(float d[32], uint64_t a, uint64_t b, int sum)
{
    asm volatile("{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %34, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST_32
                 ", %32, %33, sum, 1, 1, 0, 0;" AT("wgmma") "\n\t}"
                 : REGS_32(FLOATS, d) : "l"(a), "l"(b), "r"(sum) : "memory");
}

__device__ static uint32_t pack(float x, float y)
{
    __half2 h = __floats2half2_rn(x, y);
    return *(uint32_t *)&h;
}

/* The group's 64 x 64 into its buffer, rows of 128 bytes, swizzled: the lanes give the addresses of the rows of four 8 x 8
 * matrices, two of them below each other, two beside those. */
__device__ static void write_tile(uint32_t out, const float d[32], uint32_t t)
{
    uint32_t lane = t % 32, row = t / 32 * 16 + lane % 16;
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
        uint32_t chunk = 2 * j + lane / 16;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" AT("write")::"r"(
                         out + row * 128 + (chunk ^ row % 8) * 16),
                     "r"(pack(d[8 * j], d[8 * j + 1])), "r"(pack(d[8 * j + 2], d[8 * j + 3])),
                     "r"(pack(d[8 * j + 4], d[8 * j + 5])), "r"(pack(d[8 * j + 6], d[8 * j + 7]))
                     : "memory");
    }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    wgmma_cluster(MAP a, MAP b, MAP c, uint32_t tiles_m, uint32_t tiles_n, uint32_t k)
{
    __shared__ uint64_t bars[2 * STAGES];
    uint32_t t = threadIdx.x % 128, group = threadIdx.x / 128, steps = k / BK, stage = 0, phase = 0, rank;
    uint32_t full = shared_address(bars), empty = full + 8 * STAGES, base = shared_address(memory);
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
#pragma unroll
        for (uint32_t i = 0; i < STAGES; i++) {
            MBAR_INIT("init_full", full + 8 * i, 1);
            MBAR_INIT("init_empty", empty + 8 * i, 4);
        }
        FENCE_INIT();
    }
    CLUSTER_SYNC("begin");
    if (group == 0) {
        REGISTERS_LESS(24);
        if (t == 0)
#pragma unroll 1
            for (uint32_t tile = blockIdx.x / 2; tile < tiles_m / 2 * tiles_n; tile += gridDim.x / 2) {
                uint32_t row = (tile / tiles_n * 2 + rank) * BM, col = tile % tiles_n * BN;
#pragma unroll 1
                for (uint32_t step = 0; step < steps; step++) {
                    uint32_t at = base + stage * STAGE, bar = full + 8 * stage;
                    WAIT_CLUSTER("empty_wait", empty + 8 * stage, phase ^ 1);
                    EXPECT("expect", bar, STAGE);
                    TMA_LOAD("load_a", at, &a, step * BK, row, bar);
                    TMA_MULTICAST("load_b", at + A_BYTES + rank * (B_BYTES / 2), &b, step * BK, col + rank * (BN / 2), bar,
                                  3);
                    if (++stage == STAGES)
                        stage = 0, phase ^= 1;
                }
            }
    } else {
        REGISTERS_MORE(240);
        group--;
        float d[32];
        uint32_t out = base + STAGES * STAGE + group * (BM * BN);
#pragma unroll 1
        for (uint32_t tile = blockIdx.x / 2; tile < tiles_m / 2 * tiles_n; tile += gridDim.x / 2) {
            uint32_t row = (tile / tiles_n * 2 + rank) * BM, col = tile % tiles_n * BN;
#pragma unroll 1
            for (uint32_t step = 0; step < steps; step++) {
                uint32_t at = base + stage * STAGE;
                WAIT("full_wait", full + 8 * stage, phase);
                uint64_t da = descriptor(at + group * (A_BYTES / 2), 16, 1024, 128),
                         db = descriptor(at + A_BYTES, 16, 1024, 128);
                WGMMA_FENCE();
#pragma unroll
                for (int i = 0; i < BK / 16; i++)
                    multiply(d, da + 2 * i, db + 2 * i, step > 0 || i > 0);
                WGMMA_COMMIT();
                WGMMA_WAIT("wait_0", 0);
                /* one thread for the warpgroup, in each of the blocks */
                if (t < 64 && t % 32 == 0)
                    ARRIVE_AT("release", empty + 8 * stage, t / 32);
                if (++stage == STAGES)
                    stage = 0, phase ^= 1;
            }
            if (t == 0)
                BULK_WAIT_READ("wait_read", 0);
            NAMED_SYNC("buffer_free", group + 1, 128);
            write_tile(out, d, t);
            FENCE_ASYNC("fence_store");
            NAMED_SYNC("buffer_full", group + 1, 128);
            if (t == 0) {
                TMA_STORE("store", &c, col, row + group * 64, out);
                BULK_COMMIT("commit");
            }
        }
        if (t == 0)
            BULK_WAIT("last_wait", 0);
    }
    CLUSTER_SYNC("end");
}
