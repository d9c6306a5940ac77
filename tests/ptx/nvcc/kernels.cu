// Kernels for the PTX parser's corpus: small, and between them most of what nvcc writes for ordinary code.
// The .ptx files beside this one were made by make.sh.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdio.h>
#ifdef TENSOR
#include <mma.h>
#endif
#ifdef HOPPER
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#endif

#ifdef SAXPY
extern "C" __global__ void saxpy(int n, float alpha, const float *__restrict__ x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = alpha * x[i] + y[i];
}
#endif

#ifdef REDUCE
extern "C" __global__ void __launch_bounds__(256, 2) reduce(const float *x, float *y, unsigned *count, int n)
{
    __shared__ float part[32];
    float v = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        v += x[i];
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < 8 ? part[threadIdx.x] : 0;
        for (int o = 4; o; o >>= 1)
            v += __shfl_down_sync(~0u, v, o);
        if (threadIdx.x == 0) {
            atomicAdd(y, v);
            __threadfence();
            atomicInc(count, 1000);
        }
    }
}
#endif

#ifdef CALLS
__device__ __noinline__ float f(float x, int k) { return x * k + 1; }
__device__ __noinline__ float g(float x, int k) { return x - k; }
typedef float (*fun)(float, int);
__device__ fun table[2] = {f, g};
struct box {
    int a[5];
    double d;
};
extern "C" __global__ void calls(float *x, int k, struct box b)
{
    x[threadIdx.x] = f(x[threadIdx.x], k);
    x[threadIdx.x + 32] = table[k & 1](x[1], b.a[k]);
    printf("%d %f\n", k, b.d);
}
#endif

#ifdef HALVES
extern "C" __global__ void halves(__half2 *x, __nv_bfloat162 *y, __nv_fp8x2_e4m3 *z, float2 *o)
{
    int i = threadIdx.x;
    x[i] = __hfma2_relu(x[i], x[i + 1], __hmax2(x[i + 2], x[i + 3]));
    y[i] = __hfma2(y[i], y[i + 1], y[i + 2]);
    o[i] = __half22float2(x[i]);
    o[i].x += __bfloat162float(y[i].x);
    z[i] = __nv_fp8x2_e4m3(o[i]);
    o[i + 32].x = h2exp2(x[i]).x;
}
#endif

#ifdef INTEGERS
extern "C" __global__ void integers(const unsigned *a, const long long *b, unsigned *o, long long *q)
{
    int i = threadIdx.x;
    unsigned x = a[i], y = a[i + 32];
    o[i] = x / y + x % 7 + __popc(x) + __clz(y) + __brev(x) + __ffs(y) + __byte_perm(x, y, 0x5410);
    o[i + 32] = __funnelshift_l(x, y, x & 31) + __dp4a((int)x, (int)y, 3) + __umulhi(x, y) + __usad(x, y, 1);
    q[i] = b[i] / b[i + 1] + b[i] * x - (b[i] >> (x & 63)) + __mul64hi(b[i], b[i + 2]);
    o[i + 64] = __vabsdiffu4(x, y) + min(x, 9u) + max((int)x, -3) + __ballot_sync(~0u, x > y) +
                __match_any_sync(~0u, x) + __reduce_add_sync(~0u, x);
    unsigned char c = (unsigned char)(x >> 3);
    short s = (short)y;
    o[i + 96] = c * s + (x == y) + abs((int)y);
}
#endif

#ifdef DOUBLES
extern "C" __global__ void doubles(double *d, float *f)
{
    int i = threadIdx.x;
    d[i] = exp(d[i]) + sqrt(d[i + 1]) / d[i + 2] + rsqrt(d[i + 3]);
    f[i] = sinf(f[i]) + __expf(f[i + 1]) + logf(f[i + 2]) + rintf(f[i + 3]) + (float)(int)f[i + 4] +
           __fdiv_rn(f[i + 5], f[i + 6]) + __frcp_rz(f[i + 7]) + tanhf(f[i + 8]);
}
#endif

#ifdef CONTROL
__constant__ int weights[16] = {1, 2, 3};
extern "C" __global__ void control(const int *x, int *y, int n)
{
    int local[8], v = x[threadIdx.x], steps = 0;
    for (int i = 0; i < 8; i++)
        local[i] = v ^ i;
    while (v != 1 && steps < n) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        steps++;
    }
    switch (x[0]) {
    case 0: steps *= 3; break;
    case 1: steps += weights[v & 15]; break;
    case 2: steps ^= 5; break;
    case 5: return;
    default: steps = -steps;
    }
    y[threadIdx.x] = steps + local[x[1] & 7];
}
#endif

#ifdef TENSOR
#include <cuda_pipeline.h>
extern "C" __global__ void tensor(const half *a, const half *b, float *c, const signed char *p, const signed char *q,
                                  int *r)
{
    using namespace nvcuda;
    __shared__ __align__(16) half tile[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    __pipeline_memcpy_async(&tile[threadIdx.x * 8], &a[threadIdx.x * 8], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, tile, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fp;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fq;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fr;
    wmma::load_matrix_sync(fp, p, 16);
    wmma::load_matrix_sync(fq, q, 16);
    wmma::load_matrix_sync(fr, r, 16, wmma::mem_row_major);
    wmma::mma_sync(fr, fp, fq, fr);
    wmma::store_matrix_sync(r, fr, 16, wmma::mem_row_major);
    unsigned m[4], at = (unsigned)__cvta_generic_to_shared(tile);
    float d[4] = {0, 0, 0, 0};
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]), "r"(m[0]), "r"(m[1]));
    c[threadIdx.x] += d[0] + d[3];
}
#endif

#ifdef HOPPER
extern "C" __global__ void __cluster_dims__(2, 1, 1) hopper(const float *x, float *y)
{
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(128) float tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    namespace cg = cooperative_groups;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, x + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof tile), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    tile[threadIdx.x] *= 2;
    cluster.sync();
    float *other = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
    y[blockIdx.x * 256 + threadIdx.x] = other[threadIdx.x];
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    cluster.sync();
    if (threadIdx.x == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, y, tile, sizeof tile);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
    }
}
#endif
