// settings: O3.80 G.75
// Dynamic shared memory beside static, cut into arrays of several types; as much as the launch says.
extern __shared__ double pool[];

extern "C" __global__ void dynamic(const int *x, int *y, double *z, int n)
{
    __shared__ short first[64];
    double *d = pool;
    int *i = (int *)&d[n];
    unsigned char *c = (unsigned char *)&i[n];
    int t = threadIdx.x;
    first[t] = x[t];
    if (t < n) {
        d[t] = x[t] * 0.5;
        i[t] = x[t] * 3;
        c[t] = x[t];
    }
    __syncthreads();
    if (t < n) {
        z[t] = d[n - 1 - t] + first[63 - t];
        y[t] = i[(t + 1) % n] + c[(t + 2) % n];
    }
}
