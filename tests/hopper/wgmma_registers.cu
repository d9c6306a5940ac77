/* c = (2 a) b^T with a from registers, loaded and doubled while the product before runs: two sets of registers. b: 64 x k in one
 * go, k at most 128.
 */
#include "hopper.cuh"

extern __shared__ __align__(1024) unsigned char memory[]; /* boxes of 64 x 64 f16 */

__device__ static uint32_t twice(const __half *p)
{
    __half2 h = *(const __half2 *)p;
    h = __hadd2(h, h);
    return *(uint32_t *)&h;
}

/* the registers of rows r and r + 8, columns x and x + 8 */
__device__ static void load(uint32_t v[4], const __half *a, uint32_t k)
{
    v[0] = twice(a);
    v[1] = twice(a + 8 * k);
    v[2] = twice(a + 8);
    v[3] = twice(a + 8 * k + 8);
}

__device__ static void multiply(float d[32], uint32_t a[4], uint64_t b)
{
    KEEP_32(FLOATS, d);
    asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
    WGMMA_FENCE();
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST_32
                 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 0;" AT("wgmma")
                 : REGS_32(FLOATS, d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");
    WGMMA_COMMIT();
}

extern "C" __global__ void __launch_bounds__(128) wgmma_registers(const __half *a, MAP b, float *c, uint32_t k)
{
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, full = shared_address(&bar), base = shared_address(memory);
    if (t == 0) {
        MBAR_INIT("init", full, 1);
        FENCE_INIT();
    }
    __syncthreads();
    if (t == 0) {
        EXPECT("expect", full, k * 128);
        for (uint32_t i = 0; i < k / 64; i++)
            TMA_LOAD("load_b", base + i * 8192, &b, i * 64, 0, full);
    }
    a += (t / 32 * 16 + t % 32 / 4) * k + t % 4 * 2;
    float d[32];
#pragma unroll
    for (uint32_t i = 0; i < 32; i++)
        d[i] = 0;
    uint32_t even[4], odd[4];
    load(even, a, k);
    WAIT("full_wait", full, 0);
#pragma unroll 1
    for (uint32_t i = 0; i < k; i += 32) {
        uint64_t db = descriptor(base + i / 64 * 8192, 16, 1024, 128) + i % 64 / 8;
        multiply(d, even, db);
        load(odd, a + i + 16, k);
        WGMMA_WAIT("wait_even", 0);
        multiply(d, odd, db + 2);
        if (i + 32 < k)
            load(even, a + i + 32, k);
        WGMMA_WAIT("wait_odd", 0);
    }
#pragma unroll
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t y = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8, x = i / 4 * 8 + t % 4 * 2 + i % 2;
        c[y * 64 + x] = d[i];
    }
}
