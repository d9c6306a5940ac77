/* c = a b^T by one warpgroup, in tf32 and in s8. The tf32 tiles come by tensor copies with a swizzle of 64 bytes; the s8
 * tiles are laid out by the threads: 8 rows of 16 bytes next to each other are 128 bytes, without a swizzle.
 */
#include "hopper.cuh"

extern __shared__ __align__(1024) unsigned char memory[];

/* a: 64 x 64, b: 32 x 64, in boxes of 16 columns */
extern "C" __global__ void __launch_bounds__(128) wgmma_tf32(MAP a, MAP b, float *c)
{
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, full = shared_address(&bar), base = shared_address(memory);
    if (t == 0) {
        MBAR_INIT("init", full, 1);
        FENCE_INIT();
    }
    __syncthreads();
    if (t == 0) {
        EXPECT("expect", full, 4 * (64 + 32) * 64);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            TMA_LOAD("load_a", base + i * 4096, &a, i * 16, 0, full);
            TMA_LOAD("load_b", base + 16384 + i * 2048, &b, i * 16, 0, full);
        }
    }
    WAIT("full_wait", full, 0);
    float d[16];
#pragma unroll
    for (uint32_t i = 0; i < 16; i++)
        d[i] = 0;
    KEEP_16(FLOATS, d);
    WGMMA_FENCE();
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t da = descriptor(base + i / 2 * 4096, 16, 512, 64) + i % 2 * 2,
                 db = descriptor(base + 16384 + i / 2 * 2048, 16, 512, 64) + i % 2 * 2;
        asm volatile("wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 " LIST_16 ", %16, %17, 1, 1, 1;" AT("wgmma")
                     : REGS_16(FLOATS, d) : "l"(da), "l"(db) : "memory");
    }
    WGMMA_COMMIT();
    WGMMA_WAIT("wait_0", 0);
#pragma unroll
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t y = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8, x = i / 4 * 8 + t % 4 * 2 + i % 2;
        c[y * 32 + x] = d[i];
    }
}

/* a: 64 x 128, b: 32 x 128 */
extern "C" __global__ void __launch_bounds__(128) wgmma_s8(const uint4 *a, const uint4 *b, int32_t *c)
{
    uint32_t t = threadIdx.x, base = shared_address(memory);
    for (uint32_t i = t; i < (64 + 32) * 8; i += 128) {
        uint32_t row = i / 8, chunk = i % 8, rows = row < 64 ? 64 : 32, at = row < 64 ? base : base + 8192;
        uint4 v = row < 64 ? a[i] : b[i - 64 * 8];
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" AT("fill")::"r"(at + chunk * rows * 16 + row % 64 * 16),
                     "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                     : "memory");
    }
    FENCE_ASYNC("fence_fill");
    asm volatile("bar.sync 0;" AT("filled")::: "memory");
    uint64_t da = descriptor(base, 64 * 16, 128, 0), db = descriptor(base + 8192, 32 * 16, 128, 0);
    int32_t d[16];
#pragma unroll
    for (uint32_t i = 0; i < 16; i++)
        d[i] = 0;
    KEEP_16(INTS, d);
    WGMMA_FENCE();
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        asm volatile("wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 " LIST_16 ", %16, %17, 1;" AT("wgmma")
                     : REGS_16(INTS, d) : "l"(da + i * 128), "l"(db + i * 64) : "memory");
    WGMMA_COMMIT();
    WGMMA_WAIT("wait_0", 0);
#pragma unroll
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t y = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8, x = i / 4 * 8 + t % 4 * 2 + i % 2;
        c[y * 32 + x] = d[i];
    }
}
