// settings: O3.75 O0.90a
// What a kernel prints, in all formats, and assertions that hold.
#include <assert.h>
#include <stdio.h>

extern "C" __global__ void says(const int *x, int n)
{
    int i = threadIdx.x;
    assert(blockDim.x == n);
    assert(x[i] < 1000 && "the input is small");
    printf("thread %d of block %u: %i %5d|%-5d|%05d %x %#o %c\n", i, blockIdx.x, x[i], x[i], x[i], x[i], x[i] & 255, i, 'a' + i);
    if (i == 1)
        printf("%lld %llu %f %.3e %g %s %%\n", -5000000000ll, 18446744073709551615ull, 1.5, 12345.678, 0.1f, "text");
    if (x[i] < -100000)
        printf("never\n");
}
