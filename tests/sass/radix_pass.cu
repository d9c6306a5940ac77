/* specs/sort/radix_pass.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    radix_pass(const u32 *__restrict__ keys, u32 *__restrict__ placed, u32 shift, u32 n)
{
    __shared__ u32 start[256];
    __shared__ u32 totals[8];
    __shared__ u32 share[8][256];
    u32 t = threadIdx.x, lane = t % 32, warp = t / 32, below_mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below_mask));
    const u32 *row = keys + (size_t)blockIdx.x * n;
    u32 *to = placed + (size_t)blockIdx.x * n;

    start[t] = 0;
    __syncthreads();
ROLLED
    for (u32 i = t; i < n; i += 256)
        atomicAdd(&start[(row[i] >> shift) & 255], 1u);
    __syncthreads();

    u32 mine = start[t];
    u32 upto = mine;
    for (u32 d = 1; d < 32; d *= 2) {
        u32 below = __shfl_up_sync(0xffffffff, upto, d);
        if (lane >= d)
            upto += below;
    }
    if (lane == 31)
        totals[warp] = upto;
    __syncthreads();
ROLLED
    for (u32 w = 0; w < warp; w++)
        upto += totals[w];
    start[t] = upto - mine;

ROLLED
    for (u32 first = 0; first < n; first += 256) {
        u32 i = first + t;
        u32 key = i < n ? row[i] : 0;
        u32 digit = i < n ? (key >> shift) & 255 : 256;
        for (u32 w = 0; w < 8; w++)
            share[w][t] = 0;
        __syncthreads();
        u32 peers = __match_any_sync(0xffffffff, digit);
        u32 rank = __popc(peers & below_mask);
        if (i < n && rank == 0)
            share[warp][digit] = __popc(peers);
        __syncthreads();
        u32 place = start[t];
        for (u32 w = 0; w < 8; w++) {
            u32 count = share[w][t];
            share[w][t] = place;
            place += count;
        }
        start[t] = place;
        __syncthreads();
        if (i < n)
            to[share[warp][digit] + rank] = key;
        __syncthreads();
    }
}
