// settings: O3.80 G.75 O0.90a
// A transpose through a padded tile, for several types of element.
template <typename T> static __device__ void transpose(const T *x, T *y, int rows, int cols)
{
    __shared__ T tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (c < cols && r + k < rows)
            tile[threadIdx.y + k][threadIdx.x] = x[(r + k) * cols + c];
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x;
    r = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (c < rows && r + k < cols)
            y[(r + k) * rows + c] = tile[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void transpose_f32(const float *x, float *y, int rows, int cols)
{
    transpose(x, y, rows, cols);
}

extern "C" __global__ void transpose_u8(const unsigned char *x, unsigned char *y, int rows, int cols)
{
    transpose(x, y, rows, cols);
}

extern "C" __global__ void transpose_f64(const double *x, double *y, int rows, int cols)
{
    transpose(x, y, rows, cols);
}
