/* Two launches of which the second may begin before the first has ended: it waits before it reads what the first wrote. */
#include "hopper.cuh"

extern "C" __global__ void __launch_bounds__(128) first(const float *x, float *y)
{
    uint32_t i = blockIdx.x * 128 + threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;" AT("launch_dependents")::: "memory");
    y[i] = x[i] * 3;
}

extern "C" __global__ void __launch_bounds__(128) second(const float *y, float *z)
{
    uint32_t i = blockIdx.x * 128 + threadIdx.x;
    asm volatile("griddepcontrol.wait;" AT("grid_wait")::: "memory");
    z[gridDim.x * 128 - 1 - i] = y[i] + 1;
}
