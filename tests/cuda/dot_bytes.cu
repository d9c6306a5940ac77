// settings: O3.75 O0.80
// A product of bytes by dp4a and dp2a, and bytes four at a time by the SIMD intrinsics.
extern "C" __global__ void product(const int *a, const int *b, int *c, int n, int k)
{
    int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 8 + threadIdx.x, sum = 0;
    if (row >= n || col >= n)
        return;
    for (int i = 0; i < k; i++)
        sum = __dp4a(a[row * k + i], b[col * k + i], sum);
    c[row * n + col] = sum;
}

extern "C" __global__ void bytes(const unsigned *a, const unsigned *b, unsigned *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned v = a[i], w = b[i], *to = y + 10 * i;
    to[0] = __vadd4(v, w);
    to[1] = __vsubus4(v, w);
    to[2] = __vmaxs4(v, w);
    to[3] = __vabsdiffu4(v, w);
    to[4] = __vcmpgtu4(v, w);
    to[5] = __vavgu4(v, w);
    to[6] = __vsadu4(v, w);
    to[7] = __vaddss2(v, w);
    to[8] = __dp2a_lo((int)v, (int)w, 5);
    to[9] = __dp2a_hi(v, w, 7u) + __byte_perm(v, w, 0x3715) + __sad(v, w, 1);
}
