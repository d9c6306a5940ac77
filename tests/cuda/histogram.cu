// settings: O3.75 G.90a
// Counts of bytes: each warp's own in shared memory, added to the block's and then to the whole.
extern "C" __global__ void histogram(const unsigned *x, unsigned *count, int words)
{
    __shared__ unsigned bins[4][256];
    unsigned *mine = bins[threadIdx.x / 32];
    for (int i = threadIdx.x; i < 4 * 256; i += 128)
        bins[0][i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 128 + threadIdx.x; i < words; i += gridDim.x * 128) {
        unsigned v = x[i];
        atomicAdd(&mine[v & 255], 1);
        atomicAdd(&mine[v >> 8 & 255], 1);
        atomicAdd(&mine[v >> 16 & 255], 1);
        atomicAdd(&mine[v >> 24], 1);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += 128) {
        unsigned sum = 0;
        for (int w = 0; w < 4; w++)
            sum += bins[w][b];
        if (sum)
            atomicAdd(&count[b], sum);
    }
}
