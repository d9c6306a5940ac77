// settings: O3.75 O0.80
// Steps of k-means: each point to the nearest centre, sums by atomics in shared memory, new centres from them.
enum { K = 5 };

extern "C" __global__ void assign(const int2 *point, const int2 *centre, int *label, int *sums, int n)
{
    __shared__ int part[K][3];
    __shared__ int2 c[K];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < K)
        c[threadIdx.x] = centre[threadIdx.x];
    if (threadIdx.x < 3 * K)
        part[threadIdx.x / 3][threadIdx.x % 3] = 0;
    __syncthreads();
    if (i < n) {
        int best = 0, least = INT_MAX;
        int2 p = point[i];
        for (int k = 0; k < K; k++) {
            int dx = p.x - c[k].x, dy = p.y - c[k].y, d = dx * dx + dy * dy;
            if (d < least) {
                least = d;
                best = k;
            }
        }
        label[i] = best;
        atomicAdd(&part[best][0], p.x);
        atomicAdd(&part[best][1], p.y);
        atomicAdd(&part[best][2], 1);
    }
    __syncthreads();
    if (threadIdx.x < 3 * K)
        atomicAdd(&sums[threadIdx.x], part[threadIdx.x / 3][threadIdx.x % 3]);
}

extern "C" __global__ void move(int2 *centre, int *sums)
{
    int k = threadIdx.x;
    if (sums[3 * k + 2] > 0)
        centre[k] = make_int2(sums[3 * k] / sums[3 * k + 2], sums[3 * k + 1] / sums[3 * k + 2]);
    for (int i = 0; i < 3; i++)
        sums[3 * k + i] = 0;
}
