// settings: O3.90a G.75
// Prefix sums of a block: inclusive after Hillis and Steele, exclusive after Blelloch, with padding against bank conflicts.
extern "C" __global__ void hillis_steele(const int *x, int *y)
{
    __shared__ int line[2][256];
    int t = threadIdx.x, from = 0;
    line[0][t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int v = line[from][t];
        if (t >= d)
            v += line[from][t - d];
        line[1 - from][t] = v;
        from = 1 - from;
        __syncthreads();
    }
    y[blockIdx.x * 256 + t] = line[from][t];
}

#define PAD(i) ((i) + (i) / 32)

extern "C" __global__ void blelloch(const int *x, int *y)
{
    __shared__ int tree[PAD(512)];
    int t = threadIdx.x, at = blockIdx.x * 512;
    tree[PAD(t)] = x[at + t];
    tree[PAD(t + 256)] = x[at + t + 256];
    int stride = 1;
    for (int active = 256; active > 0; active /= 2, stride *= 2) {
        __syncthreads();
        if (t < active)
            tree[PAD(stride * (2 * t + 2) - 1)] += tree[PAD(stride * (2 * t + 1) - 1)];
    }
    if (t == 0)
        tree[PAD(511)] = 0;
    for (int active = 1; active <= 256; active *= 2) {
        stride /= 2;
        __syncthreads();
        if (t < active) {
            int left = PAD(stride * (2 * t + 1) - 1), right = PAD(stride * (2 * t + 2) - 1);
            int v = tree[left];
            tree[left] = tree[right];
            tree[right] += v;
        }
    }
    __syncthreads();
    y[at + t] = tree[PAD(t)];
    y[at + t + 256] = tree[PAD(t + 256)];
}
