/* Matrix products on tensor cores, as written by hand in CUDA: matrix.ptx is what
 *     nvcc -arch=sm_80 --ptx
 * (13.0) makes of this. tests/unit/sim_matrix.c says what must come out. Sizes are multiples of the tile, 64 x 64.
 */
#include <cuda_pipeline.h>
#include <stdint.h>

enum { TILE = 64, STAGES = 3 };

__device__ static uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static void load4(uint32_t r[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p)));
}

__device__ static void load4t(uint32_t r[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p)));
}

__device__ static void mma(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ static void mma(int d[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ static void mma_tf32(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* c[m,n] = a[m,k] b[k,n] in f16 with sums in f32, 4 warps, each 32 x 32; rows of the tiles are padded by 16 bytes. The
 * blocks of a row of C follow each other. */
extern "C" __global__ void matmul_f16(float *c, const uint16_t *a, const uint16_t *b, int n, int k)
{
    enum { DEPTH = 32, APAD = DEPTH + 8, BPAD = TILE + 8 };
    __shared__ __align__(16) uint16_t as[STAGES][TILE][APAD];
    __shared__ __align__(16) uint16_t bs[STAGES][DEPTH][BPAD];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    const int wr = warp / 2 * 32, wc = warp % 2 * 32, steps = k / DEPTH;
    float sum[2][4][4] = {};

    auto fetch = [&](int step) {
        const int stage = step % STAGES;
        for (int i = tid; i < TILE * DEPTH / 8; i += 128) {
            const int r = i / (DEPTH / 8), q = i % (DEPTH / 8) * 8;
            __pipeline_memcpy_async(&as[stage][r][q], &a[(row0 + r) * k + step * DEPTH + q], 16);
        }
        for (int i = tid; i < DEPTH * TILE / 8; i += 128) {
            const int r = i / (TILE / 8), q = i % (TILE / 8) * 8;
            __pipeline_memcpy_async(&bs[stage][r][q], &b[(step * DEPTH + r) * n + col0 + q], 16);
        }
    };
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps)
            fetch(s);
        __pipeline_commit();
    }
    for (int s = 0; s < steps; s++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        if (s + STAGES - 1 < steps)
            fetch(s + STAGES - 1);
        __pipeline_commit();
        const int stage = s % STAGES;
        for (int kk = 0; kk < DEPTH; kk += 16) {
            uint32_t af[2][4], bf[2][4];
            for (int i = 0; i < 2; i++)
                load4(af[i], &as[stage][wr + 16 * i + lane % 16][kk + lane / 16 * 8]);
            for (int j = 0; j < 2; j++)
                load4t(bf[j], &bs[stage][kk + lane % 16][wc + 16 * j + lane / 16 * 8]);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    mma(sum[i][j], af[i], bf[j / 2][j % 2 * 2], bf[j / 2][j % 2 * 2 + 1]);
        }
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++)
                c[(row0 + wr + 16 * i + lane / 4 + e / 2 * 8) * n + col0 + wc + 8 * j +
                  lane % 4 * 2 + e % 2] = sum[i][j][e];
}

/* c[m,n] = a[m,k] bt[n,k]: the elements of 4 bytes (tf32) or of one (s8) by ldmatrix, too */
template <typename T, typename S, int STEP> __device__ void nt(S *c, const T *a, const T *bt, int n, int k)
{
    enum { DEPTH = 64 / sizeof(T), PER = 16 / sizeof(T), PAD = DEPTH + PER };
    __shared__ __align__(16) T as[2][TILE][PAD];
    __shared__ __align__(16) T bs[2][TILE][PAD];
    const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    const int wr = warp / 2 * 32, wc = warp % 2 * 32, steps = k / DEPTH;
    S sum[2][4][4] = {};

    auto fetch = [&](int step) {
        for (int i = tid; i < TILE * 4; i += 128) {
            const int r = i / 4, q = i % 4 * PER;
            __pipeline_memcpy_async(&as[step % 2][r][q], &a[(row0 + r) * k + step * DEPTH + q], 16);
            __pipeline_memcpy_async(&bs[step % 2][r][q], &bt[(col0 + r) * k + step * DEPTH + q], 16);
        }
        __pipeline_commit();
    };
    fetch(0);
    for (int s = 0; s < steps; s++) {
        if (s + 1 < steps)
            fetch(s + 1);
        if (s + 1 < steps)
            __pipeline_wait_prior(1);
        else
            __pipeline_wait_prior(0);
        __syncthreads();
        for (int kk = 0; kk < DEPTH; kk += STEP) {
            uint32_t af[2][4], bf[2][4];
            for (int i = 0; i < 2; i++)
                load4(af[i], &as[s % 2][wr + 16 * i + lane % 16][kk + lane / 16 * PER]);
            for (int j = 0; j < 2; j++)
                load4(bf[j], &bs[s % 2][wc + 16 * j + lane / 16 * 8 + lane % 8][kk + lane / 8 % 2 * PER]);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    if constexpr (sizeof(T) == 4)
                        mma_tf32(sum[i][j], af[i], bf[j / 2][j % 2 * 2], bf[j / 2][j % 2 * 2 + 1]);
                    else
                        mma(sum[i][j], af[i], bf[j / 2][j % 2 * 2], bf[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++)
                c[(row0 + wr + 16 * i + lane / 4 + e / 2 * 8) * n + col0 + wc + 8 * j +
                  lane % 4 * 2 + e % 2] = sum[i][j][e];
}

extern "C" __global__ void matmul_tf32(float *c, const float *a, const float *bt, int n, int k)
{
    nt<float, float, 8>(c, a, bt, n, k);
}

extern "C" __global__ void matmul_s8(int *c, const int8_t *a, const int8_t *bt, int n, int k)
{
    nt<int8_t, int, 32>(c, a, bt, n, k);
}
