// settings: O3.75 G.80 fast.90a
// Each thread adds one element.
extern "C" __global__ void vector_add(const float *x, const float *y, float *z, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        z[i] = x[i] + y[i];
}
