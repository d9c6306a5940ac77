/* tests/data/bodies/rms_norm.yaml in CUDA C, with CUDA's rsqrtf (2 ulp) */
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

static __device__ float4 load4(const float *p)
{
    return *reinterpret_cast<const float4 *>(p);
}

extern "C" __global__ void __launch_bounds__(256)
    rms_norm(const float *__restrict__ x, const float *__restrict__ gain, float *__restrict__ y,
             float eps, u32 cols)
{
    size_t base = (size_t)blockIdx.x * cols;
    float squares = 0;
ROLLED
    for (u32 c = threadIdx.x * 4; c < cols; c += 1024) {
        float4 v = load4(x + base + c);
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    float scale = rsqrtf(block_sum(squares) / (float)cols + eps);
ROLLED
    for (u32 c = threadIdx.x * 4; c < cols; c += 1024) {
        float4 v = load4(x + base + c), g = load4(gain + c);
        *reinterpret_cast<float4 *>(y + base + c) = make_float4(
            v.x * scale * g.x, v.y * scale * g.y, v.z * scale * g.z, v.w * scale * g.w);
    }
}
