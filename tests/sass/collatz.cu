/* specs/integer/collatz.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(128)
    collatz(const u32 *__restrict__ x, u32 *__restrict__ steps, u32 n)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long v = x[i];
    u32 count = 0;
ROLLED
    while (v != 1 && count < 400) {
        if (v % 2 == 0)
            v /= 2;
        else
            v = 3 * v + 1;
        ++count;
    }
    steps[i] = count;
}
