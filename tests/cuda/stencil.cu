// settings: O3.80 G.75 fast.90a
// Stencils with a halo in shared memory: five points in the plane, seven in space, the planes of which go by in registers.
extern "C" __global__ void stencil2d(const float *x, float *y, int rows, int cols)
{
    __shared__ float tile[18][34];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 18 * 34; i += 512) {
        int tr = (int)blockIdx.y * 16 + i / 34 - 1, tc = (int)blockIdx.x * 32 + i % 34 - 1;
        tile[i / 34][i % 34] = tr >= 0 && tr < rows && tc >= 0 && tc < cols ? x[tr * cols + tc] : 0;
    }
    __syncthreads();
    if (r < rows && c < cols) {
        int i = threadIdx.y + 1, j = threadIdx.x + 1;
        y[r * cols + c] = 0.5f * tile[i][j] + 0.125f * (tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1]);
    }
}

extern "C" __global__ void stencil3d(const float *x, float *y, int depth, int rows, int cols)
{
    __shared__ float plane[10][18];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    int tc = threadIdx.x + 1, tr = threadIdx.y + 1, size = rows * cols;
    bool in = c < cols && r < rows;
    const float *at = x + r * cols + c;
    float below = 0, here = in ? at[0] : 0, above;
    for (int z = 0; z < depth; z++) {
        above = in && z + 1 < depth ? at[(z + 1) * size] : 0;
        __syncthreads();
        plane[tr][tc] = here;
        if (threadIdx.x == 0)
            plane[tr][0] = c > 0 && r < rows ? at[z * size - 1] : 0;
        if (threadIdx.x == 15)
            plane[tr][17] = c + 1 < cols && r < rows ? at[z * size + 1] : 0;
        if (threadIdx.y == 0)
            plane[0][tc] = r > 0 && c < cols ? at[z * size - cols] : 0;
        if (threadIdx.y == 7)
            plane[9][tc] = r + 1 < rows && c < cols ? at[z * size + cols] : 0;
        __syncthreads();
        if (in)
            y[z * size + r * cols + c] =
                below + above + plane[tr - 1][tc] + plane[tr + 1][tc] + plane[tr][tc - 1] + plane[tr][tc + 1] - 6 * here;
        below = here;
        here = above;
    }
}
