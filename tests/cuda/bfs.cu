// settings: O3.75 O0.80 O3.90a
// Breadth-first search: the queue of the vertices of a level makes that of the next, in global and in shared memory.
extern "C" __global__ void setup(const unsigned *random, int *edges, int *level, int *queue, int *size, int n, int degree)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        for (int k = 0; k < degree; k++)
            edges[i * degree + k] = random[i * degree + k] % n;
        level[i] = i ? -1 : 0;
    }
    if (i == 0) {
        queue[0] = 0;
        size[0] = 1;
    }
}

extern "C" __global__ void step(const int *edges, int *level, const int *queue, const int *size, int *next, int *next_size, int degree,
                                int depth)
{
    for (int q = blockIdx.x * blockDim.x + threadIdx.x; q < *size; q += gridDim.x * blockDim.x) {
        int v = queue[q];
        for (int k = 0; k < degree; k++) {
            int to = edges[v * degree + k];
            if (atomicCAS(&level[to], -1, depth) == -1)
                next[atomicAdd(next_size, 1)] = to;
        }
    }
}

// the whole search by one block, whose queue is in shared memory
extern "C" __global__ void search(const int *edges, int *level, int n, int degree)
{
    __shared__ int queue[2][256], size[2];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        level[i] = i ? -1 : 0;
    if (threadIdx.x == 0) {
        queue[0][0] = 0;
        size[0] = 1;
    }
    for (int depth = 1;; depth++) {
        int from = ~depth & 1;
        if (threadIdx.x == 0)
            size[1 - from] = 0;
        __syncthreads();
        if (size[from] == 0)
            break;
        for (int q = threadIdx.x; q < size[from] * degree; q += blockDim.x) {
            int to = edges[queue[from][q / degree] * degree + q % degree];
            if (atomicCAS(&level[to], -1, depth) == -1)
                queue[1 - from][atomicAdd(&size[1 - from], 1)] = to;
        }
        __syncthreads();
    }
}
