// settings: O3.75 O0.80 fast.90a
// A matrix product by tiles of 16 x 16 in shared memory, and one by tiles of 64 x 64 where each thread sums 4 x 4.
extern "C" __global__ void matmul16(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][16], bs[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int at = 0; at < k; at += 16) {
        as[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[row * k + at + threadIdx.x] : 0;
        bs[threadIdx.y][threadIdx.x] = at + threadIdx.y < k && col < n ? b[(at + threadIdx.y) * n + col] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

extern "C" __global__ void __launch_bounds__(256) matmul64(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[8][64 + 4];
    __shared__ float4 bs[8][16];
    int x = threadIdx.x % 16, y = threadIdx.x / 16, row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int at = 0; at < k; at += 8) {
        for (int i = threadIdx.x; i < 512; i += 256) {
            int r = row0 + i / 8, kk = at + i % 8;
            as[i % 8][i / 8] = r < m && kk < k ? a[r * k + kk] : 0;
            int col = col0 + i % 64, kb = at + i / 64;
            ((float *)bs[i / 64])[i % 64] = col < n && kb < k ? b[kb * n + col] : 0;
        }
        __syncthreads();
        for (int i = 0; i < 8; i++) {
            float4 bv = bs[i][x];
            for (int r = 0; r < 4; r++) {
                float av = as[i][y * 4 + r];
                sum[r][0] += av * bv.x;
                sum[r][1] += av * bv.y;
                sum[r][2] += av * bv.z;
                sum[r][3] += av * bv.w;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        for (int q = 0; q < 4; q++)
            if (row0 + y * 4 + r < m && col0 + x * 4 + q < n)
                c[(row0 + y * 4 + r) * n + col0 + x * 4 + q] = sum[r][q];
}
