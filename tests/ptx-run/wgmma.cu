/* wgmma from CUDA C++: wgmma.ptx is what
 *     nvcc -arch=sm_90a --ptx
 * (13.0) makes of this; tests/unit/sim_wgmma_matmul.c says what must come out.
 *
 * Tiles are brought by ordinary loads and stores, swizzled by hand.
 */
#include <cstdint>
#include <cuda_fp16.h>

extern __shared__ __align__(1024) unsigned char memory[];
enum { BM = 128, BN = 128, BK = 64, THREADS = 256, SPAN = 128 };

__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

__device__ uint64_t descriptor(const void *p, uint32_t leading, uint32_t stride)
{
    const uint64_t at = (uint64_t)__cvta_generic_to_shared(p);
    return at / 16 | (uint64_t)(leading / 16) << 16 | (uint64_t)(stride / 16) << 32 | (uint64_t)1 << 62;
}

/* m64n128k16, A in shared memory */
template <int TA, int TB>
__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b, int adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, %64, %65, p, 1, 1, %67, %68;\n}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "r"(adds), "n"(TA), "n"(TB));
}

/* ... in registers */
__device__ void multiply(float (&d)[64], const uint32_t (&a)[4], uint64_t b, int adds)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                   "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
                   "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                   "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),
                   "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                   "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));
}

/* A tile of `lines` lines of 64 elements, of a matrix whose lines are `pitch` apart, as 64-element columns of it: 16 bytes
 * at a time, each where the swizzle wants it. */
__device__ void fetch(half *to, const half *from, int pitch, int lines)
{
    for (int i = threadIdx.x; i < lines * 8; i += THREADS) {
        const int line = i / 8, chunk = i % 8;
        *(uint4 *)(to + line * 64 + (chunk ^ line % 8) * 8) =
            *(const uint4 *)(from + (size_t)line * pitch + chunk * 8);
    }
}

/* K-major: 128 lines along M or N of 64 along K; else twice 64 lines along K of 64 along M or N. */
template <bool MN>
__device__ void fetch_tile(half *to, const half *from, int pitch, int row, int k)
{
    if (!MN) {
        fetch(to, from + (size_t)row * pitch + k, pitch, 128);
    } else {
        fetch(to, from + (size_t)k * pitch + row, pitch, BK);
        fetch(to + BK * 64, from + (size_t)k * pitch + row + 64, pitch, BK);
    }
}

/* The descriptor of depth 16 s of rows from `row` on. */
template <bool MN> __device__ uint64_t part(const half *tile, int row, int s)
{
    return MN ? descriptor(tile + row / 64 * BK * 64 + s * 16 * 64, BK * SPAN, 8 * SPAN)
              : descriptor(tile + row * 64 + s * 16, 16, 8 * SPAN);
}

/* d[m, n] = a b; a is [m, k] or, with TA, [k, m]; b is [n, k] or, with TB, [k, n]. Two stages, one product in flight while
 * the next tile is fetched. */
template <bool TA, bool TB>
__device__ void matmul(float *out, const half *a, const half *b, int m, int n, int k)
{
    half *const tiles = (half *)memory;
    const int row = blockIdx.y * BM, col = blockIdx.x * BN, group = threadIdx.x / 128 * 64;
    float d[64];
    for (int t = 0; t < k / BK; t++) {
        half *const ta = tiles + t % 2 * (BM + BN) * BK, *const tb = ta + BM * BK;
        fetch_tile<TA>(ta, a, TA ? m : k, row, t * BK);
        fetch_tile<TB>(tb, b, TB ? n : k, col, t * BK);
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        fence();
#pragma unroll
        for (int s = 0; s < BK / 16; s++)
            multiply<TA, TB>(d, part<TA>(ta, group, s), part<TB>(tb, 0, s), t + s);
        commit();
        wait<1>(); /* the one before: its tiles are free when all have come here */
        __syncthreads();
    }
    wait<0>();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 64; i++) {
        const int r = row + warp * 16 + lane / 4 + i / 2 % 2 * 8, c = col + i / 4 * 8 + lane % 4 * 2 + i % 2;
        out[(size_t)r * n + c] = d[i];
    }
}

#define KERNEL(NAME, TA, TB)                                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                    \
        NAME(float *out, const half *a, const half *b, int m, int n, int k)                                  \
    {                                                                                                        \
        matmul<TA, TB>(out, a, b, m, n, k);                                                                  \
    }
KERNEL(matmul_kk, false, false)
KERNEL(matmul_kn, false, true)
KERNEL(matmul_mk, true, false)
KERNEL(matmul_mn, true, true)

/* Two products, the sums of the first being the A of the second: out = f16(a b) v for a [64, 64], b [128, 64], v [128, 128];
 * one warpgroup. */
extern "C" __global__ void __launch_bounds__(128) chain(float *out, const half *a, const half *b, const half *v)
{
    half *const ta = (half *)memory, *const tb = ta + 64 * 64, *const tv = tb + 128 * 64;
    float d[64], e[64];
    for (int i = threadIdx.x; i < 64 * 8; i += 128)
        *(uint4 *)(ta + i / 8 * 64 + (i % 8 ^ i / 8 % 8) * 8) = *(const uint4 *)(a + i * 8);
    for (int i = threadIdx.x; i < 128 * 8; i += 128)
        *(uint4 *)(tb + i / 8 * 64 + (i % 8 ^ i / 8 % 8) * 8) = *(const uint4 *)(b + i * 8);
    for (int i = threadIdx.x; i < 128 * 16; i += 128) {
        const int line = i / 16, chunk = i % 16;
        *(uint4 *)(tv + chunk / 8 * 128 * 64 + line * 64 + (chunk % 8 ^ line % 8) * 8) = *(const uint4 *)(v + i * 8);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    fence();
#pragma unroll
    for (int s = 0; s < 4; s++)
        multiply<0, 0>(d, part<false>(ta, 0, s), part<false>(tb, 0, s), s);
    commit();
    wait<0>();
    uint32_t p[8][4];
#pragma unroll
    for (int s = 0; s < 8; s++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const half2 h = __floats2half2_rn(d[8 * s + 2 * r], d[8 * s + 2 * r + 1]);
            p[s][r] = *(const uint32_t *)&h;
        }
    fence();
#pragma unroll
    for (int s = 0; s < 8; s++)
        multiply(e, p[s], descriptor(tv + s * 16 * 64, 128 * SPAN, 8 * SPAN), s);
    commit();
    wait<0>();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 64; i++)
        out[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * 128 + i / 4 * 8 + lane % 4 * 2 + i % 2] = e[i];
}
