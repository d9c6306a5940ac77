/* specs/graph/bfs_step.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(128)
    bfs_step(const u32 *__restrict__ first, const u32 *__restrict__ to,
             const bool *__restrict__ frontier, int *level, u32 *found, int depth, u32 n, u32 edges)
{
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || !frontier[v])
        return;
    u32 end = min(first[v + 1], edges);
ROLLED
    for (u32 e = first[v]; e < end; e++) {
        u32 w = to[e];
        int old;
        asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];"
                     : "=r"(old)
                     : "l"(__cvta_generic_to_global(level + w))
                     : "memory");
        if (old < 0 && atomicCAS(&level[w], old, depth) == old)
            atomicAdd(found, 1u);
    }
}
