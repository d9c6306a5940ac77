// settings: O3.80 O0.75 O3.90a
// Locks: lanes of one warp that take the same lock in turn, a lock of tickets, and one that warps' leaders take.
extern "C" __global__ void by_lanes(int *lock, volatile int *sum, int rounds)
{
    for (int k = 0; k < rounds; k++) {
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                __threadfence();
                *sum = *sum + threadIdx.x + k;
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
        }
    }
}

extern "C" __global__ void by_tickets(unsigned *next, volatile unsigned *serving, unsigned *order, int *sum)
{
    unsigned mine = atomicAdd(next, 1);
    while (*serving != mine)
        ;
    __threadfence();
    order[mine] = mine * mine;
    *sum += threadIdx.x;
    __threadfence();
    *serving = mine + 1;
}

extern "C" __global__ void by_leaders(int *lock, int *sums)
{
    __shared__ int mine[64];
    mine[threadIdx.x] = threadIdx.x * 3 + blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        int old;
        do
            asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(lock) : "memory");
        while (old != 0);
    }
    __syncthreads();
    sums[threadIdx.x] += mine[63 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("st.release.gpu.global.u32 [%0], 0;" ::"l"(lock) : "memory");
}
