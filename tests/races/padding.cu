// Rows padded to 33 words: the padding is copied and never used, which is no use of what nobody wrote.
// run: --grid 1 --block 32 --arg 'in u32[1024]=@arange' --arg 'inout u32[1056]=@zeros'
// find: uninitialised: get
#include "races.h"
extern "C" __global__ void kernel(const unsigned *x, unsigned *y)
{
    __shared__ unsigned tile[32][33];
    unsigned t = threadIdx.x, sum = 0;
    for (int k = 0; k < 32; k++)
        tile[k][t] = x[32 * k + t];
    __syncthreads();
    for (int k = 0; k < 33; k++) {
        unsigned v = tile[t][k]; // @get
#ifdef BROKEN
        sum += v;
#else
        sum += k < 32 ? v : 0;
#endif
    }
    y[t] = sum;
}
