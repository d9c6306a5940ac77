// settings: O3.75 O0.80 fast.90a
// A separable filter from constant memory, rows and then columns; and one whose taps a template unrolls.
__constant__ float taps[9] = {1, -2, 3, 5, 7, 5, 3, -2, 1};
__constant__ int2 offsets[5] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
__device__ const short weights[5] = {4, -1, -1, -1, -1};

extern "C" __global__ void by_rows(const float *x, float *y, int rows, int cols)
{
    __shared__ float line[128 + 8];
    int r = blockIdx.y, c = blockIdx.x * 128 + threadIdx.x;
    for (int i = threadIdx.x; i < 136; i += 128) {
        int at = (int)blockIdx.x * 128 + i - 4;
        line[i] = x[r * cols + min(max(at, 0), cols - 1)];
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 9; k++)
        sum += taps[k] * line[threadIdx.x + k];
    if (c < cols)
        y[r * cols + c] = sum;
}

template <int RADIUS> static __device__ float column(const float *x, int r, int c, int rows, int cols)
{
    float sum = 0;
#pragma unroll
    for (int k = -RADIUS; k <= RADIUS; k++)
        sum += taps[k + 4] * x[min(max(r + k, 0), rows - 1) * cols + c];
    return sum;
}

extern "C" __global__ void by_columns(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.y, c = blockIdx.x * 128 + threadIdx.x;
    if (c < cols)
        y[r * cols + c] = r & 1 ? column<4>(x, r, c, rows, cols) : column<2>(x, r, c, rows, cols);
}

extern "C" __global__ void laplace(const int *x, int *y, int rows, int cols)
{
    int r = blockIdx.y, c = blockIdx.x * 128 + threadIdx.x, sum = 0;
    if (c >= cols)
        return;
    for (int k = 0; k < 5; k++) {
        int i = (r + offsets[k].y + rows) % rows, j = (c + offsets[k].x + cols) % cols;
        sum += weights[k] * x[i * cols + j];
    }
    y[r * cols + c] = sum;
}
