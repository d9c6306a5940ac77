/* specs/layout/transpose_tiled.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    transpose_tiled(const float *__restrict__ x, float *__restrict__ y, u32 rows, u32 cols)
{
    __shared__ float tile[32][33];
    u32 c = blockIdx.x * 32 + threadIdx.x;
    u32 r = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (u32 k = 0; k < 32; k += 8)
        if (r + k < rows && c < cols)
            tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(r + k) * cols + c];
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x;
    r = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (u32 k = 0; k < 32; k += 8)
        if (r + k < cols && c < rows)
            y[(size_t)(r + k) * rows + c] = tile[threadIdx.x][threadIdx.y + k];
}
