// The bug shows only where an input is negative, and this input has none: what is not executed is not judged.
// run: --grid 1 --block 64 --arg 'in i32[64]=@arange' --arg 'inout i32[64]=@zeros'
// missed: race: the racy way is not taken
#include "races.h"
extern "C" __global__ void kernel(const int *x, int *y)
{
    __shared__ int tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
#ifdef BROKEN
    if (!__syncthreads_or(0) && x[t] < 0)
#else
    __syncthreads();
    if (x[t] < 0)
#endif
        tile[63 - t] = 0;
    y[t] = tile[t];
}
