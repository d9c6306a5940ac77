/* Ordinary kernels, as a compiler writes them: kernels.ptx is nvcc 13.0 -arch=sm_80 --ptx of this file. */
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
extern "C" __global__ void matmul(int n, const float *a, const float *b, float *c)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) {
        float s = 0;
        for (int k = 0; k < n; k++)
            s += a[i * n + k] * b[k * n + j];
        c[i * n + j] = s;
    }
}
extern "C" __global__ void collatz(int n, unsigned *len)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned long long v = i + 1;
        unsigned c = 0;
        while (v != 1) {
            v = v & 1 ? 3 * v + 1 : v >> 1;
            c++;
        }
        len[i] = c;
    }
}
extern "C" __global__ void mandelbrot(int w, int h, unsigned *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < w * h) {
        double cx = -2.0 + 3.0 * (i % w) / w, cy = -1.5 + 3.0 * (i / w) / h, x = 0, y = 0;
        unsigned k = 0;
        while (k < 500 && x * x + y * y < 4) {
            double t = x * x - y * y + cx;
            y = 2 * x * y + cy;
            x = t;
            k++;
        }
        out[i] = k;
    }
}
/* shared memory, a barrier, shuffles, a vote, local memory */
extern "C" __global__ void block_sum(int n, const float *x, float *s)
{
    __shared__ float part[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0;
    for (int d = 16; d; d /= 2)
        v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int d = 16; d; d /= 2)
            v += __shfl_xor_sync(~0u, v, d);
        if (threadIdx.x == 0)
            s[blockIdx.x] = v;
    }
}
extern "C" __global__ void digits(int n, const unsigned *x, unsigned *most)
{
    unsigned count[10];
    for (int d = 0; d < 10; d++)
        count[d] = 0;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    for (unsigned v = x[i]; v; v /= 10)
        count[v % 10]++;
    unsigned best = 0;
    for (unsigned d = 1; d < 10; d++)
        if (count[d] > count[best])
            best = d;
    most[i] = best;
}
/* lanes of one warp that wait for each other: each adds in its turn */
extern "C" __global__ void turns(volatile unsigned *turn, unsigned *sum)
{
    while (*turn != threadIdx.x)
        ;
    *sum = *sum * 3 + threadIdx.x;
    *turn = threadIdx.x + 1;
}
extern "C" __global__ void lock(int *held, unsigned *sum)
{
    while (atomicCAS(held, 0, 1))
        ;
    *(volatile unsigned *)sum = *(volatile unsigned *)sum + 1;
    __threadfence();
    atomicExch(held, 0);
}
/* a block waits for the next one */
extern "C" __global__ void blocks_wait(volatile unsigned *flag, unsigned *out)
{
    if (blockIdx.x + 1 < gridDim.x)
        while (!flag[blockIdx.x + 1])
            ;
    out[blockIdx.x] = blockIdx.x;
    flag[blockIdx.x] = 1;
}
