/* specs/random/monte_carlo_pi.yaml in CUDA C, with Philox4x32-10 as one writes it */
typedef unsigned u32;
typedef unsigned long long u64;

static __device__ uint4 philox(u64 seed, u64 counter)
{
    uint4 c = make_uint4((u32)counter, (u32)(counter >> 32), 0, 0);
    uint2 k = make_uint2((u32)seed, (u32)(seed >> 32));
#pragma unroll
    for (int i = 0; i < 10; i++) {
        u64 p = (u64)0xd2511f53u * c.x, q = (u64)0xcd9e8d57u * c.z;
        c = make_uint4((u32)(q >> 32) ^ c.y ^ k.x, (u32)q, (u32)(p >> 32) ^ c.w ^ k.y, (u32)p);
        k.x += 0x9e3779b9u;
        k.y += 0xbb67ae85u;
    }
    return c;
}

static __device__ u32 block_sum(u32 v)
{
    __shared__ u32 part[8];
    v = __reduce_add_sync(0xffffffff, v);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; w++)
        v += part[w];
    __syncthreads();
    return v;
}

extern "C" __global__ void __launch_bounds__(256)
    monte_carlo_pi(u32 *__restrict__ hits, u32 points, u64 seed)
{
    u32 count = 0;
ROLLED
    for (u32 k = 0; k < points; k++) {
        u64 point = (u64)(blockIdx.x * blockDim.x + threadIdx.x) * points + k;
        uint4 w = philox(seed, point);
        u32 x = w.x >> 16, y = w.y >> 16;
        if ((u64)x * x + (u64)y * y < 0x100000000)
            count++;
    }
    u32 total = block_sum(count);
    if (threadIdx.x == 0)
        hits[blockIdx.x] = total;
}
