// settings: O3.80 O0.90a
// Products by mma.sync and ldmatrix written as inline PTX, with two stages of cp.async: bf16 tiles of 64 x 64.
#include <cuda_bf16.h>
#include <stdint.h>

enum { K = 32, ROW = K + 8 };

static __device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

static __device__ void copy16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

static __device__ void load4(uint32_t (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

static __device__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ void load_tile(__nv_bfloat16 (*to)[ROW], const __nv_bfloat16 *from, int k)
{
    for (int i = threadIdx.x; i < 64 * K / 8; i += 128)
        copy16(&to[i / 4][i % 4 * 8], from + i / 4 * k + i % 4 * 8);
}

// c = a b^T; block: 128 threads, a warp has 32 x 32
extern "C" __global__ void matmul_mma(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k)
{
    __shared__ __align__(16) __nv_bfloat16 as[2][64][ROW], bs[2][64][ROW];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2 * 32, col = warp % 2 * 32;
    a += blockIdx.y * 64 * k;
    b += blockIdx.x * 64 * k;
    float sum[2][4][4] = {};
    load_tile(as[0], a, k);
    load_tile(bs[0], b, k);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int at = 0, stage = 0; at < k; at += K, stage ^= 1) {
        if (at + K < k) {
            load_tile(as[stage ^ 1], a + at + K, k);
            load_tile(bs[stage ^ 1], b + at + K, k);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        for (int i = 0; i < K; i += 16) {
            uint32_t fa[2][4], fb[2][4];
            for (int m = 0; m < 2; m++)
                load4(fa[m], &as[stage][row + m * 16 + lane % 16][i + lane / 16 * 8]);
            for (int m = 0; m < 2; m++)
                load4(fb[m], &bs[stage][col + m * 16 + lane / 16 * 8 + lane % 8][i + lane / 8 % 2 * 8]);
            for (int m = 0; m < 2; m++)
                for (int j = 0; j < 4; j++)
                    mma(sum[m][j], fa[m], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }
    for (int m = 0; m < 2; m++)
        for (int j = 0; j < 4; j++)
            for (int h = 0; h < 2; h++) {
                int r = blockIdx.y * 64 + row + m * 16 + h * 8 + lane / 4;
                float2 v = make_float2(sum[m][j][2 * h], sum[m][j][2 * h + 1]);
                *(float2 *)&c[r * n + blockIdx.x * 64 + col + j * 8 + lane % 4 * 2] = v;
            }
}
