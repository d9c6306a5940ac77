// settings: O3.80 O0.75 G.90a
// Systems of equations: Cholesky's factors of a small matrix by a block, elimination with pivots by a warp, and tridiagonal
// systems by cyclic reduction.
extern "C" __global__ void cholesky(const double *a, double *l)
{
    __shared__ double m[16][17];
    int i = threadIdx.y, j = threadIdx.x;
    const double *r = a + blockIdx.x * 256;
    double sum = i == j ? 16 : 0;
    for (int k = 0; k < 16; k++)
        sum += r[i * 16 + k] * r[j * 16 + k];
    m[i][j] = sum;
    for (int k = 0; k < 16; k++) {
        __syncthreads();
        if (i == k && j == k)
            m[k][k] = sqrt(m[k][k]);
        __syncthreads();
        if (j == k && i > k)
            m[i][k] /= m[k][k];
        __syncthreads();
        if (j > k && i >= j)
            m[i][j] -= m[i][k] * m[j][k];
    }
    __syncthreads();
    l[blockIdx.x * 256 + i * 16 + j] = j <= i ? m[i][j] : 0;
}

// a lane has a column of the matrix and right side; what is pivoted is found by the warp
extern "C" __global__ void eliminate(const double *a, const double *b, double *x)
{
    const int n = 12;
    __shared__ double m[12][14];
    int lane = threadIdx.x;
    for (int i = 0; i < n; i++)
        if (lane <= n)
            m[i][lane] = lane < n ? a[(blockIdx.x * n + i) * n + lane] : b[blockIdx.x * n + i];
    __syncwarp();
    for (int k = 0; k < n; k++) {
        double best = lane >= k && lane < n ? fabs(m[lane][k]) : -1;
        int row = lane;
        for (int d = 16; d > 0; d /= 2) {
            double other = __shfl_xor_sync(~0u, best, d);
            int from = __shfl_xor_sync(~0u, row, d);
            if (other > best || (other == best && from < row)) {
                best = other;
                row = from;
            }
        }
        __syncwarp();
        if (row != k && lane <= n) {
            double t = m[k][lane];
            m[k][lane] = m[row][lane];
            m[row][lane] = t;
        }
        __syncwarp();
        for (int i = 0; i < n; i++) {
            double f = m[i][k] / m[k][k];
            __syncwarp();
            if (i != k && lane > k && lane <= n)
                m[i][lane] -= f * m[k][lane];
            __syncwarp();
        }
    }
    if (lane < n)
        x[blockIdx.x * n + lane] = m[lane][n] / m[lane][lane];
}

extern "C" __global__ void tridiagonal(const float *lower, const float *upper, const float *right, float *x)
{
    __shared__ float a[128], b[128], c[128], d[128];
    int i = threadIdx.x, at = blockIdx.x * 128;
    a[i] = i ? lower[at + i] : 0;
    b[i] = 4;
    c[i] = i < 127 ? upper[at + i] : 0;
    d[i] = right[at + i];
    for (int step = 1; step < 128; step *= 2) {
        __syncthreads();
        int p = i - step, q = i + step;
        float lo = p >= 0 ? a[i] / b[p] : 0, hi = q < 128 ? c[i] / b[q] : 0;
        float na = p >= 0 ? -a[p] * lo : 0, nc = q < 128 ? -c[q] * hi : 0;
        float nb = b[i] - (p >= 0 ? c[p] * lo : 0) - (q < 128 ? a[q] * hi : 0);
        float nd = d[i] - (p >= 0 ? d[p] * lo : 0) - (q < 128 ? d[q] * hi : 0);
        __syncthreads();
        a[i] = na;
        b[i] = nb;
        c[i] = nc;
        d[i] = nd;
    }
    x[at + i] = d[i] / b[i];
}
