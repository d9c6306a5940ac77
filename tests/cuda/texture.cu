// settings: O3.80
// Textures and surfaces, which the simulator does not have: it must say so.
extern "C" __global__ void texture(cudaTextureObject_t t, float *y) { y[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0.5f); }

extern "C" __global__ void surface(cudaSurfaceObject_t s, float *y)
{
    surf2Dwrite(y[threadIdx.x], s, threadIdx.x * 4, 0);
}
