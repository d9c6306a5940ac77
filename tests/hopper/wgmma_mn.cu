/* c = a^T b in f16, both operands with k as their rows: 64 x 128 by one warpgroup, 64 of k at a time, one buffer that is
 * loaded anew when all threads are done with it.
 */
#include "hopper.cuh"

enum { BK = 64, A_BYTES = BK * 64 * 2, B_BYTES = BK * 128 * 2 };

extern __shared__ __align__(1024) unsigned char memory[]; /* A_BYTES + B_BYTES */

extern "C" __global__ void __launch_bounds__(128) wgmma_mn(MAP a, MAP b, float *c, uint32_t k)
{
    __shared__ uint64_t bar;
    uint32_t t = threadIdx.x, full = shared_address(&bar), base = shared_address(memory);
    if (t == 0) {
        MBAR_INIT("init", full, 1);
        FENCE_INIT();
    }
    __syncthreads();
    float d[2][32];
#pragma unroll
    for (uint32_t i = 0; i < 32; i++)
        d[0][i] = d[1][i] = 0;
#pragma unroll 1
    for (uint32_t step = 0; step < k / BK; step++) {
        if (t == 0) {
            EXPECT("expect", full, A_BYTES + B_BYTES);
            TMA_LOAD("load_a", base, &a, 0, step * BK, full);
            TMA_LOAD("load_b0", base + A_BYTES, &b, 0, step * BK, full);
            TMA_LOAD("load_b1", base + A_BYTES + B_BYTES / 2, &b, 64, step * BK, full);
        }
        WAIT("full_wait", full, step & 1);
        /* a row of 128 bytes holds 64 columns of one k; 8 rows are 1024 bytes */
        uint64_t da = descriptor(base, 8192, 1024, 128), db = descriptor(base + A_BYTES, B_BYTES / 2, 1024, 128);
        KEEP_32(FLOATS, d[0]);
        KEEP_32(FLOATS, d[1]);
        WGMMA_FENCE();
#pragma unroll
        for (uint32_t i = 0; i < BK / 16; i++)
            asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                         "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                         "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                         "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                         "%64, %65, 1, 1, 1, 1, 1;" AT("wgmma")
                         : REGS_32(FLOATS, d[0]), REGS_32(FLOATS, d[1])
                         : "l"(da + i * 128), "l"(db + i * 128)
                         : "memory");
        WGMMA_COMMIT();
        WGMMA_WAIT("wait_0", 0);
        asm volatile("bar.sync 0;" AT("done")::: "memory");
    }
#pragma unroll
    for (uint32_t i = 0; i < 64; i += 2) {
        uint32_t y = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8, x = i / 4 * 8 + t % 4 * 2;
        *(float2 *)&c[y * 128 + x] = make_float2(d[i / 32][i % 32], d[i / 32][i % 32 + 1]);
    }
}
