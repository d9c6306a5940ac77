/* specs/graph/spmv.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    spmv(const u32 *__restrict__ first, const u32 *__restrict__ column,
         const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y,
         u32 rows, u32 entries)
{
    u32 r = blockIdx.x * 8 + threadIdx.y;
    float acc = 0;
    if (r < rows) {
        u32 end = min(first[r + 1], entries);
ROLLED
        for (u32 e = first[r] + threadIdx.x; e < end; e += 32)
            acc += value[e] * x[column[e]];
    }
    for (int d = 16; d > 0; d /= 2)
        acc += __shfl_xor_sync(0xffffffff, acc, d);
    if (r < rows && threadIdx.x == 0)
        y[r] = acc;
}
