// settings: O3.80 O0.75 G.90a
// Points in a quarter of a circle, counted with random numbers of its own: xorshift128 and Philox 2x32.
static __device__ unsigned xorshift(uint4 &s)
{
    unsigned t = s.x ^ s.x << 11;
    s.x = s.y;
    s.y = s.z;
    s.z = s.w;
    s.w ^= s.w >> 19 ^ t ^ t >> 8;
    return s.w;
}

extern "C" __global__ void by_xorshift(unsigned *hits, int points)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, in = 0;
    uint4 s = {i + 1, 362436069, 521288629, 88675123};
    for (int k = 0; k < points; k++) {
        unsigned long long x = xorshift(s) >> 1, y = xorshift(s) >> 1;
        in += x * x + y * y < 1ull << 62;
    }
    for (int d = 16; d > 0; d /= 2)
        in += __shfl_xor_sync(~0u, in, d);
    if (threadIdx.x % 32 == 0)
        hits[i / 32] = in;
}

static __device__ uint2 philox(uint2 counter, unsigned key)
{
    for (int round = 0; round < 10; round++) {
        unsigned hi = __umulhi(0xD256D193u, counter.x), lo = 0xD256D193u * counter.x;
        counter = make_uint2(hi ^ key ^ counter.y, lo);
        key += 0x9E3779B9u;
    }
    return counter;
}

extern "C" __global__ void by_philox(unsigned *hits, unsigned *words, int points, unsigned seed)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, in = 0;
    for (int k = 0; k < points; k++) {
        uint2 r = philox(make_uint2(k, i), seed);
        float x = r.x * 0x1p-32f, y = r.y * 0x1p-32f;
        if (k == 0)
            words[i] = r.x;
        in += fmaf(x, x, y * y) < 1;
    }
    atomicAdd(hits, in);
}
