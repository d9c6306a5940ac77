// settings: O3.80 O0.75 G.90a
// Division of integers of 8 to 128 bits, by what is known and what is not; products of 128 bits; powers and roots.
typedef unsigned long long u64;
typedef long long s64;

extern "C" __global__ void divide(const s64 *a, const s64 *b, s64 *q, s64 *r, u64 *uq, u64 *ur, s64 *known, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    q[i] = a[i] / b[i];
    r[i] = a[i] % b[i];
    uq[i] = (u64)a[i] / (u64)b[i];
    ur[i] = (u64)a[i] % (u64)b[i];
    known[i] = a[i] / 1000003 + a[i] % 97 + (u64)a[i] / 10 + (int)a[i] / 7 + (unsigned)a[i] % 641 + (short)a[i] / (short)3;
}

extern "C" __global__ void narrow(const int *a, const int *b, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int d = b[i] ? b[i] : 1;
    signed char c = d ? d : 1;
    short s = d;
    y[i] = a[i] / d + a[i] % d + (unsigned)a[i] / (unsigned)d + (unsigned)a[i] % (unsigned)d + (c ? (signed char)a[i] / c : 5) +
           (s ? (short)a[i] % s : 6);
}

// a^b modulo m, of 64 bits; and high halves of products
extern "C" __global__ void power(const s64 *a, const s64 *b, u64 *y, u64 *high, s64 *shigh, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const u64 m = 0xffffffff00000001;
    u64 base = (u64)a[i] % m, v = 1;
    for (unsigned e = (unsigned)b[i] & 1023; e; e >>= 1) {
        if (e & 1)
            v = (unsigned __int128)v * base % m;
        base = (unsigned __int128)base * base % m;
    }
    y[i] = v;
    high[i] = __umul64hi(a[i], b[i]);
    shigh[i] = __mul64hi(a[i], b[i]);
}
