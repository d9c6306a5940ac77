// A sum by halves that lacks a barrier, in a function that is inlined; its launches have several blocks.
// nvcc -arch=sm_80 -lineinfo --ptx reduce.cu
__device__ __forceinline__ float block_sum(float v)
{
    __shared__ float part[64];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int half = 32; half; half >>= 1)
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    return part[0];
}

extern "C" __global__ void reduce(const float *x, float *sum)
{
    float s = block_sum(x[blockIdx.x * 64 + threadIdx.x]);
    if (threadIdx.x == 0)
        *sum += s;
}
