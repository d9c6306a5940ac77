/* specs/matmul/tiled16.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    matmul_tiled16(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                   u32 m, u32 k, u32 n)
{
    __shared__ float at[16][16];
    __shared__ float bt[16][16];
    u32 tx = threadIdx.x;
    u32 ty = threadIdx.y;
    u32 row = blockIdx.y * 16 + ty;
    u32 col = blockIdx.x * 16 + tx;
    float acc = 0;
ROLLED
    for (u32 k0 = 0; k0 < k; k0 += 16) {
        at[ty][tx] = row < m && k0 + tx < k ? a[(size_t)row * k + k0 + tx] : 0.0f;
        bt[ty][tx] = k0 + ty < k && col < n ? b[(size_t)(k0 + ty) * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < 16; i++)
            acc += at[ty][i] * bt[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[(size_t)row * n + col] = acc;
}
