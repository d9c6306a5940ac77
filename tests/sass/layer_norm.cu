/* tests/data/bodies/layer_norm.yaml in CUDA C, with CUDA's rsqrtf (2 ulp) */
typedef unsigned u32;

static __device__ float block_sum(float v)
{
    __shared__ float part[8];
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffff, v, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; w++)
        v += part[w];
    __syncthreads();
    return v;
}

extern "C" __global__ void __launch_bounds__(256)
    layer_norm(const float *__restrict__ x, const float *__restrict__ gain,
               const float *__restrict__ bias, float *__restrict__ y, float eps, u32 cols)
{
    const float *row = x + (size_t)blockIdx.x * cols;
    float total = 0;
ROLLED
    for (u32 c = threadIdx.x; c < cols; c += blockDim.x)
        total += row[c];
    float mean = block_sum(total) / (float)cols;
    float squares = 0;
ROLLED
    for (u32 c = threadIdx.x; c < cols; c += blockDim.x) {
        float d = row[c] - mean;
        squares += d * d;
    }
    float scale = rsqrtf(block_sum(squares) / (float)cols + eps);
ROLLED
    for (u32 c = threadIdx.x; c < cols; c += blockDim.x)
        y[(size_t)blockIdx.x * cols + c] = (row[c] - mean) * scale * gain[c] + bias[c];
}
