// Threads may write neighbouring bytes; to change one by way of its word is to write the others.
// run: --grid 1 --block 64 --arg 'inout u8[64]=@zeros'
// find: race: put
#include "races.h"
extern "C" __global__ void kernel(unsigned char *y)
{
    unsigned t = threadIdx.x;
#ifdef BROKEN
    unsigned *w = (unsigned *)y + t / 4;
    *w |= t << 8 * (t % 4); // @put
#else
    y[t] = t;
#endif
}
