// settings: O3.75 O0.80
// A sparse matrix times a vector: rows of any length by a warp each, and the same matrix by coordinates with f32 atomics.
extern "C" __global__ void lengths(const unsigned *random, int *start, int rows)
{
    // one warp: a prefix sum of lengths, which are up to 7 but for a long row
    int carry = 0;
    for (int at = 0; at < rows; at += 32) {
        int r = at + threadIdx.x, v = r < rows ? (r == 5 ? 70 : random[r] % 8) : 0;
        for (int d = 1; d < 32; d *= 2) {
            int before = __shfl_up_sync(~0u, v, d);
            v += threadIdx.x >= d ? before : 0;
        }
        if (r < rows)
            start[r + 1] = carry + v;
        carry += __shfl_sync(~0u, v, 31);
    }
    if (threadIdx.x == 0)
        start[0] = 0;
}

extern "C" __global__ void by_rows(const int *start, const unsigned *random, const float *x, float *y, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = start[row] + lane; i < start[row + 1]; i += 32)
        sum += (float)(random[i] >> 28) * x[(random[i] >> 4) % rows];
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0)
        y[row] = sum;
}

extern "C" __global__ void by_coordinates(const int *start, const unsigned *random, const float *x, float *y, int rows)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < start[rows]; i += gridDim.x * blockDim.x) {
        int lo = 0, hi = rows;
        while (hi - lo > 1) {
            int mid = (lo + hi) / 2;
            if (start[mid] <= i)
                lo = mid;
            else
                hi = mid;
        }
        atomicAdd(&y[lo], (float)(random[i] >> 28) * x[(random[i] >> 4) % rows]);
    }
}
