/* The warp matrix functions of CUDA: wmma.ptx is what
 *     nvcc -arch=sm_80 --ptx
 * (13.0) makes of this. One warp computes d = a b + c for one shape; tests/unit/sim_matrix.c says what must come out.
 */
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

template <int M, int N, int K, typename T, typename S, typename L, typename R>
__device__ void product(S *d, const void *a, const void *b, const S *c, int lda, int ldb, int ldc,
                        wmma::layout_t out)
{
    wmma::fragment<wmma::matrix_a, M, N, K, T, L> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, R> fb;
    wmma::fragment<wmma::accumulator, M, N, K, S> fc;
    using E = typename wmma::fragment<wmma::matrix_a, M, N, K, T, L>::storage_element_type;
    wmma::load_matrix_sync(fa, (const E *)a, lda);
    wmma::load_matrix_sync(fb, (const E *)b, ldb);
    wmma::load_matrix_sync(fc, c, ldc, out);
    for (int i = 0; i < fc.num_elements; i++)
        fc.x[i] = fc.x[i] + fc.x[i];
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, ldc, out);
}

/* layouts: 1 a is col_major, 2 b is, 4 c and d are */
template <int M, int N, int K, typename T, typename S>
__device__ void any(S *d, const void *a, const void *b, const S *c, int layouts)
{
    const int lda = (layouts & 1 ? M : K) + 8, ldb = (layouts & 2 ? K : N) + 8,
              ldc = (layouts & 4 ? M : N) + 8;
    const wmma::layout_t out = layouts & 4 ? wmma::mem_col_major : wmma::mem_row_major;
    using row = wmma::row_major;
    using col = wmma::col_major;
    switch (layouts & 3) {
    case 0: product<M, N, K, T, S, row, row>(d, a, b, c, lda, ldb, ldc, out); break;
    case 1: product<M, N, K, T, S, col, row>(d, a, b, c, lda, ldb, ldc, out); break;
    case 2: product<M, N, K, T, S, row, col>(d, a, b, c, lda, ldb, ldc, out); break;
    default: product<M, N, K, T, S, col, col>(d, a, b, c, lda, ldb, ldc, out); break;
    }
}

#define KERNEL(name, M, N, K, T, S)                                                                \
    extern "C" __global__ void name(S *d, const void *a, const void *b, const S *c, int layouts)   \
    {                                                                                              \
        any<M, N, K, T, S>(d, a, b, c, layouts);                                                   \
    }

KERNEL(f16_square, 16, 16, 16, half, float)
KERNEL(f16_tall, 32, 8, 16, half, float)
KERNEL(f16_wide, 8, 32, 16, half, float)
KERNEL(f16_half, 16, 16, 16, half, half)
KERNEL(bf16_square, 16, 16, 16, __nv_bfloat16, float)
KERNEL(bf16_wide, 8, 32, 16, __nv_bfloat16, float)
KERNEL(tf32_square, 16, 16, 8, wmma::precision::tf32, float)
KERNEL(s8_square, 16, 16, 16, signed char, int)
KERNEL(u8_tall, 32, 8, 16, unsigned char, int)
KERNEL(s8_wide, 8, 32, 16, signed char, int)
KERNEL(f64_square, 8, 8, 4, double, double)
