/* Kernels whose threads wait for each other and call functions: threads.ptx is what
 *     nvcc -arch=sm_90 --ptx
 * (13.0) makes of this. Each works on x; tests/unit/sim_threads.c says what must come out.
 */
struct pair {
    unsigned sum, product;
};

__device__ __noinline__ pair both(pair p, unsigned k)
{
    p.sum += k;
    for (unsigned i = 0; i < (k & 3); i++)
        p.product = p.product * 3 + k;
    return p;
}

__device__ __noinline__ void bump(unsigned *where, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        where[i] += i;
}

/* x[i] = what the functions make of i, for odd i only */
extern "C" __global__ void functions(unsigned *x)
{
    const unsigned i = threadIdx.x;
    unsigned local[8];
    for (unsigned k = 0; k < 8; k++)
        local[k] = i * k;
    bump(local, i & 7);
    pair p = {local[i & 7], 1};
    if (i & 1)
        p = both(p, i);
    x[i] = p.sum * 1000 + p.product % 1000;
}

/* odd values of x go, in their order, to x[1024..]; one lane of those that are here takes room for all */
extern "C" __global__ void aggregate(unsigned *x)
{
    const unsigned v = x[threadIdx.x], lane = threadIdx.x & 31;
    if (v & 1) {
        const unsigned m = __activemask();
        const int leader = __ffs(m) - 1;
        unsigned base;
        if (lane == leader)
            base = atomicAdd(&x[2048], __popc(m));
        base = __shfl_sync(m, base, leader);
        x[1024 + base + __popc(m & ((1u << lane) - 1))] = v;
    }
}

__device__ unsigned arrived;

/* the last block to finish adds what the others left */
extern "C" __global__ void last_block(unsigned *x)
{
    __shared__ bool last;
    x[1024 + blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        unsigned s = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            s += ((volatile unsigned *)x)[1024 + i];
        x[threadIdx.x] = s;
    }
}

__device__ int lock;

/* threads of all blocks add under a lock */
extern "C" __global__ void locked(unsigned *x)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence();
            *(volatile unsigned *)x = *(volatile unsigned *)x + threadIdx.x;
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
    }
}

/* a block reads its neighbour's shared memory, and all add to the first one's */
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster(unsigned *x)
{
    __shared__ unsigned cell;
    const unsigned rank = __clusterRelativeBlockRank();
    if (threadIdx.x == 0)
        cell = blockIdx.x * 100;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    const unsigned v = *(unsigned *)__cluster_map_shared_rank(&cell, (rank + 1) % 4);
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    atomicAdd((unsigned *)__cluster_map_shared_rank(&cell, 0), 1);
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    x[blockIdx.x * blockDim.x + threadIdx.x] = v * 1000 + cell;
}
