// settings: O3.80 O0.75 line.90a
// A loop in strides of the whole grid, by single elements and by vectors of four.
extern "C" __global__ void saxpy(float a, const float *__restrict__ x, float *__restrict__ y, long n)
{
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void saxpy4(float a, const float4 *__restrict__ x, float4 *__restrict__ y, long n)
{
    long step = (long)gridDim.x * blockDim.x;
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float4 v = x[i], w = y[i];
        w.x = fmaf(a, v.x, w.x);
        w.y = fmaf(a, v.y, w.y);
        w.z = fmaf(a, v.z, w.z);
        w.w = fmaf(a, v.w, w.w);
        y[i] = w;
    }
}
