// settings: O3.75 O0.90a
// Clocks that must not go back, time that passes, and special registers.
extern "C" __global__ void clocks(unsigned *ok, unsigned *ids)
{
    long long a = clock64();
    unsigned low = clock();
    unsigned long long ns, later;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    unsigned sum = threadIdx.x;
    for (int k = 0; k < 100; k++)
        sum = sum * 1664525 + 1013904223;
    long long b = clock64();
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
    while (later < ns);
    __nanosleep(100);
    unsigned lane, warp, lt, ge, grid, nwarp;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    asm("mov.u32 %0, %%nctaid.y;" : "=r"(grid));
    asm("mov.u32 %0, %%nwarpid;" : "=r"(nwarp));
    int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    ok[i] = (b > a) + 2 * ((unsigned)b - low > 0) + 4 * (later >= ns) + 8 * (warp < nwarp) + (sum & 0xffff0000);
    ids[i] = lane + 100 * grid + (lt ^ ge) + gridDim.x * 10;
}
