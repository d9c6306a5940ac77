/* tests/data/bodies/blur.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    blur(const float *__restrict__ x, float *__restrict__ y, u32 rows, u32 cols)
{
    __shared__ float tile[10][34];
    const float weight[3] = {0.25f, 0.5f, 0.25f};
    u32 tx = threadIdx.x;
    u32 ty = threadIdx.y;
ROLLED
    for (u32 k = ty * 32 + tx; k < 10 * 34; k += 256) {
        u32 r = blockIdx.y * 8 + k / 34 - 1;
        u32 c = blockIdx.x * 32 + k % 34 - 1;
        tile[k / 34][k % 34] = r < rows && c < cols ? x[(size_t)r * cols + c] : 0.0f;
    }
    __syncthreads();
    u32 row = blockIdx.y * 8 + ty;
    u32 col = blockIdx.x * 32 + tx;
    if (row >= rows || col >= cols)
        return;
    float acc = 0;
#pragma unroll
    for (u32 i = 0; i < 3; i++)
#pragma unroll
        for (u32 j = 0; j < 3; j++)
            acc += weight[i] * weight[j] * tile[ty + i][tx + j];
    y[(size_t)row * cols + col] = acc;
}
