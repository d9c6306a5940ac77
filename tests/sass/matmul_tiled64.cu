/* specs/matmul/tiled64.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    matmul_tiled64(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                   u32 m, u32 k, u32 n)
{
    __shared__ float at[16][65];
    __shared__ float bt[16][64];
    u32 tx = threadIdx.x;
    u32 ty = threadIdx.y;
    u32 t = ty * 16 + tx;
    u32 row0 = blockIdx.y * 64;
    u32 col0 = blockIdx.x * 64;
    float acc[4][4] = {};
ROLLED
    for (u32 k0 = 0; k0 < k; k0 += 16) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 ar = t / 16 + i * 16;
            u32 ak = t % 16;
            at[ak][ar] =
                row0 + ar < m && k0 + ak < k ? a[(size_t)(row0 + ar) * k + k0 + ak] : 0.0f;
            u32 bk = t / 64 + i * 4;
            u32 bc = t % 64;
            bt[bk][bc] =
                k0 + bk < k && col0 + bc < n ? b[(size_t)(k0 + bk) * n + col0 + bc] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (u32 l = 0; l < 16; l++) {
            float u[4], v[4];
            for (u32 i = 0; i < 4; i++) {
                u[i] = at[l][ty + i * 16];
                v[i] = bt[l][tx + i * 16];
            }
            for (u32 i = 0; i < 4; i++)
                for (u32 j = 0; j < 4; j++)
                    acc[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++)
            if (row0 + ty + i * 16 < m && col0 + tx + j * 16 < n)
                c[(size_t)(row0 + ty + i * 16) * n + col0 + tx + j * 16] = acc[i][j];
}
