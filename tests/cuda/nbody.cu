// settings: O3.75 G.80 fast.90a
// Accelerations of bodies that attract each other, through tiles of positions in shared memory.
extern "C" __global__ void nbody(const float4 *body, float4 *acc, int n)
{
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = body[min(i, n - 1)], sum = {0, 0, 0, 0};
    for (int at = 0; at < n; at += 64) {
        if (at + threadIdx.x < n)
            tile[threadIdx.x] = body[at + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 64 && at + k < n; k++) {
            float4 b = tile[k];
            float dx = b.x - me.x, dy = b.y - me.y, dz = b.z - me.z;
            float d2 = dx * dx + dy * dy + dz * dz + 0.01f, r = rsqrtf(d2);
            float s = b.w * r * r * r;
            sum.x += dx * s;
            sum.y += dy * s;
            sum.z += dz * s;
        }
        __syncthreads();
    }
    if (i < n)
        acc[i] = sum;
}
