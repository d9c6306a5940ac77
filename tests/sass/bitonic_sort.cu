/* specs/sort/bitonic.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(512)
    bitonic_sort(const u32 *__restrict__ keys, u32 *__restrict__ sorted, u32 n)
{
    __shared__ u32 tile[1024];
    u32 t = threadIdx.x;
    u32 base = blockIdx.x * 1024;
ROLLED
    for (u32 k = t; k < 1024; k += 512)
        tile[k] = base + k < n ? keys[base + k] : 0xffffffff;
ROLLED
    for (u32 size = 2; size <= 1024; size *= 2)
ROLLED
        for (u32 d = size / 2; d > 0; d /= 2) {
            __syncthreads();
            u32 low = 2 * t - (t & (d - 1));
            u32 high = low + d;
            u32 a = tile[low];
            u32 b = tile[high];
            bool up = (low & size) == 0;
            if ((a > b) == up) {
                tile[low] = b;
                tile[high] = a;
            }
        }
    __syncthreads();
ROLLED
    for (u32 k = t; k < 1024; k += 512)
        if (base + k < n)
            sorted[base + k] = tile[k];
}
