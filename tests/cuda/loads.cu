// settings: O3.75 O3.90a O0.80
// Loads and stores with a choice of cache: read-only, streaming, last use, volatile, and vectors of each size.
extern "C" __global__ void hints(const int *__restrict__ x, const int4 *__restrict__ v, int *__restrict__ y, int4 *__restrict__ w, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int sum = __ldg(&x[i]) + __ldcs(&x[(i + 1) % n]) * 3 + __ldcg(&x[(i + 2) % n]) * 5 + __ldca(&x[(i + 3) % n]) * 7 +
              __ldlu(&x[(i + 4) % n]) * 11 + *(volatile const int *)&x[(i + 5) % n] * 13;
    __stcs(&y[i], sum);
    int4 a = __ldg(&v[i]);
    int2 b = __ldcs((const int2 *)&v[(i + 1) % n] + 1);
    __stcg(&w[i], make_int4(a.w, a.z + b.x, a.y, a.x - b.y));
}

extern "C" __global__ void sizes(const unsigned char *x, unsigned char *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const unsigned char *at = x + 16 * i;
    unsigned char *to = y + 16 * i;
    to[0] = __ldg(at + 1);
    *(char2 *)(to + 2) = *(const char2 *)(at + 4);
    to[1] = 77;
    *(ushort2 *)(to + 4) = __ldg((const ushort2 *)(at + 12));
    *(double *)(to + 8) = __ldg((const double *)at);
}
