// settings: O3.80 O0.75 O3.90a
// Warps with roles: producers and consumers meet at named barriers, two of them for each of two buffers.
static __device__ void sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
static __device__ void arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// barriers 1 and 2: a buffer is full; 3 and 4: it is empty
extern "C" __global__ void named(const int *x, int *y, int tiles)
{
    __shared__ int buffer[2][64];
    int t = threadIdx.x % 64;
    if (threadIdx.x < 64) {
        for (int k = 0; k < tiles; k++) {
            if (k >= 2)
                sync(3 + k % 2, 192);
            buffer[k % 2][t] = x[(blockIdx.x * tiles + k) * 64 + t];
            arrive(1 + k % 2, 192);
        }
    } else {
        int part = threadIdx.x / 64 - 1, sum = 0;
        for (int k = 0; k < tiles; k++) {
            sync(1 + k % 2, 192);
            sum = sum * 5 + buffer[k % 2][part ? 63 - t : t ^ 1];
            if (k + 2 < tiles)
                arrive(3 + k % 2, 192);
        }
        y[(blockIdx.x * 2 + part) * 64 + t] = sum;
    }
}
