// settings: O3.80 O0.90a
// Bitonic sort: steps within a block in shared memory, wider ones in global memory.
static __device__ void order(unsigned &a, unsigned &b, bool up)
{
    if ((a > b) == up) {
        unsigned t = a;
        a = b;
        b = t;
    }
}

extern "C" __global__ void sort_blocks(unsigned *x)
{
    __shared__ unsigned s[512];
    unsigned t = threadIdx.x, at = blockIdx.x * 512;
    s[t] = x[at + t];
    s[t + 256] = x[at + t + 256];
    for (unsigned size = 2; size <= 512; size *= 2)
        for (unsigned d = size / 2; d > 0; d /= 2) {
            __syncthreads();
            unsigned i = 2 * t - (t & (d - 1));
            order(s[i], s[i + d], ((at + i) & size) == 0);
        }
    __syncthreads();
    x[at + t] = s[t];
    x[at + t + 256] = s[t + 256];
}

extern "C" __global__ void step(unsigned *x, unsigned size, unsigned d)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, i = 2 * t - (t & (d - 1));
    order(x[i], x[i + d], (i & size) == 0);
}
