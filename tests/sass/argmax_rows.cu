/* tests/data/bodies/argmax.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    argmax_rows(const float *__restrict__ x, u32 *__restrict__ where, u32 cols)
{
    __shared__ float value[256];
    __shared__ u32 place[256];
    u32 t = threadIdx.x;
    float best = -__int_as_float(0x7f800000);
    u32 at = 0;
    const float *row = x + (size_t)blockIdx.x * cols;
ROLLED
    for (u32 c = t; c < cols; c += 256)
        if (row[c] > best) {
            best = row[c];
            at = c;
        }
    value[t] = best;
    place[t] = at;
    for (u32 d = 128; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) {
            float v = value[t + d];
            u32 p = place[t + d];
            if (v > value[t] || (v == value[t] && p < place[t])) {
                value[t] = v;
                place[t] = p;
            }
        }
    }
    if (t == 0)
        where[blockIdx.x] = place[0];
}
