// settings: O3.75 O0.80
// A table with open addressing: keys of 32 bits and counts, and pairs of key and value in one word of 64 bits.
typedef unsigned long long u64;

static __device__ unsigned hash(unsigned k)
{
    k ^= k >> 16;
    k *= 0x85ebca6b;
    k ^= k >> 13;
    k *= 0xc2b2ae35;
    return k ^ k >> 16;
}

extern "C" __global__ void clear(unsigned *keys, unsigned *counts, u64 *pairs, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) {
        keys[i] = ~0u;
        counts[i] = 0;
        pairs[i] = ~0ull;
    }
}

extern "C" __global__ void insert(const unsigned *x, unsigned *keys, unsigned *counts, u64 *pairs, int n, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = x[i], slot = hash(key) & (size - 1);
    for (;; slot = (slot + 1) & (size - 1)) {
        unsigned old = atomicCAS(&keys[slot], ~0u, key);
        if (old == ~0u || old == key)
            break;
    }
    atomicAdd(&counts[slot], 1);
    for (slot = hash(key) & (size - 1);; slot = (slot + 1) & (size - 1)) {
        u64 now = atomicAdd(&pairs[slot], 0);
        while (now == ~0ull || now >> 32 == key) {
            // the least index stays
            u64 want = (u64)key << 32 | min((unsigned)i, now == ~0ull ? ~0u : (unsigned)now);
            u64 seen = atomicCAS(&pairs[slot], now, want);
            if (seen == now)
                return;
            now = seen;
        }
    }
}

extern "C" __global__ void lookup(const unsigned *x, const unsigned *keys, const unsigned *counts, const u64 *pairs, unsigned *count,
                                  unsigned *first, int n, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned slot = hash(x[i]) & (size - 1);
    while (keys[slot] != x[i])
        slot = (slot + 1) & (size - 1);
    count[i] = counts[slot];
    slot = hash(x[i]) & (size - 1);
    while (pairs[slot] >> 32 != x[i])
        slot = (slot + 1) & (size - 1);
    first[i] = (unsigned)pairs[slot];
}
