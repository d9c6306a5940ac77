// What printf() and assert() become: nvcc -arch=sm_80 --ptx -o system.ptx system.cu
#include <cassert>
#include <cstdio>

extern "C" __global__ void talk(unsigned *x)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 37 == 3)
        x[i] = printf("%u: %5.2f|%-8s|%08x|%lld|%c|%e|%p|%%|%+d|%.3s|%*d|%hhu\n", i, i / 4.0, "abc", i * 77777u, (long long)i << 40,
                      'A' + (int)(i % 26), i * 1e-3f, (void *)16, (int)i, "longer", 6, -(int)i, (unsigned char)i);
    if (i == 5)
        printf("no more\n");
}

extern "C" __global__ void check(unsigned *x)
{
    assert(x[threadIdx.x] < 50 && "too large");
}

extern "C" __global__ void wild(unsigned *x)
{
    printf((const char *)x + (1 << 20));
}

extern "C" __global__ void much(unsigned *x)
{
    for (unsigned i = 0; i < x[0]; i++)
        printf("%1000s", "");
}
