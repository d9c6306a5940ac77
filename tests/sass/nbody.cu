/* specs/physics/nbody.yaml in CUDA C */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(256)
    nbody(const float *__restrict__ body, float *__restrict__ acceleration, float eps, u32 n)
{
    __shared__ float4 tile[256];
    const float4 *all = reinterpret_cast<const float4 *>(body);
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = i < n ? all[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
ROLLED
    for (u32 j0 = 0; j0 < n; j0 += 256) {
        u32 j = j0 + threadIdx.x;
        tile[threadIdx.x] = j < n ? all[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 8
        for (u32 k = 0; k < 256; k++) {
            float4 other = tile[k];
            float dx = other.x - me.x;
            float dy = other.y - me.y;
            float dz = other.z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + eps);
            float pull = other.w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        __syncthreads();
    }
    if (i < n)
        reinterpret_cast<float4 *>(acceleration)[i] = make_float4(ax, ay, az, 0);
}
