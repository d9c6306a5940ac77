// settings: O3.80 O0.75
// A pass of a radix sort by 4 bits: counts per block, their prefix sums, and a stable scatter whose ranks come from ballots.
enum { THREADS = 128, DIGITS = 16 };

extern "C" __global__ void count(const unsigned *keys, unsigned *counts, int shift)
{
    __shared__ unsigned bins[DIGITS];
    if (threadIdx.x < DIGITS)
        bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[keys[blockIdx.x * THREADS + threadIdx.x] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x < DIGITS)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void prefix(unsigned *counts, int n)
{
    unsigned carry = 0;
    for (int base = 0; base < n; base += 32) {
        unsigned own = base + threadIdx.x < n ? counts[base + threadIdx.x] : 0, v = own;
        for (int d = 1; d < 32; d *= 2) {
            unsigned below = __shfl_up_sync(~0u, v, d);
            v += threadIdx.x >= d ? below : 0;
        }
        if (base + threadIdx.x < n)
            counts[base + threadIdx.x] = carry + v - own;
        carry += __shfl_sync(~0u, v, 31);
    }
}

extern "C" __global__ void scatter(const unsigned *keys, const unsigned *values, const unsigned *starts, unsigned *out,
                                   unsigned *moved, int shift)
{
    __shared__ unsigned counts[THREADS / 32][DIGITS];
    unsigned i = blockIdx.x * THREADS + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned key = keys[i], digit = key >> shift & 15, same = ~0u;
    for (int b = 0; b < 4; b++) {
        unsigned ones = __ballot_sync(~0u, digit >> b & 1);
        same &= digit >> b & 1 ? ones : ~ones;
    }
    unsigned rank = __popc(same & ((1u << lane) - 1));
    if (lane < DIGITS)
        counts[warp][lane] = 0;
    __syncwarp();
    if (rank == 0)
        counts[warp][digit] = __popc(same);
    __syncthreads();
    unsigned to = starts[digit * gridDim.x + blockIdx.x] + rank;
    for (unsigned w = 0; w < warp; w++)
        to += counts[w][digit];
    out[to] = key;
    moved[to] = values[i];
}
