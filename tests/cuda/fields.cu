// settings: O3.80 O0.75 G.90a
// Fields of bits and bytes beside each other, which are put into words that nothing has written before.
struct fields {
    unsigned a : 3, b : 7;
    int c : 12;
    unsigned d : 10;
    short e, f;
    unsigned char bytes[3], last;
    long long wide : 40;
    long long rest : 24;
};

static __device__ __noinline__ fields make(int v)
{
    fields x;
    x.a = v;
    x.b = v >> 3;
    x.c = -v;
    x.d = v * 5;
    x.e = v * 3;
    x.f = -v;
    for (int i = 0; i < 3; i++)
        x.bytes[i] = v + i;
    x.last = x.bytes[v % 3 < 0 ? 0 : v % 3];
    x.wide = (long long)v * 1000003;
    x.rest = v;
    return x;
}

extern "C" __global__ void fields_of(const int *v, long long *y)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    fields x = make(v[t]), *p = &x;
    p->b++;
    p->c -= 2;
    y[t] = p->a + 10 * p->b + 100 * p->c + 1000 * p->d + p->e + p->f * 7 + p->bytes[1] + p->last + p->wide + p->rest * 11;
}
