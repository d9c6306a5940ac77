/* specs/graphics/mandelbrot_f32.yaml in CUDA C; math: strict is -fmad=false */
typedef unsigned u32;

extern "C" __global__ void __launch_bounds__(128)
    mandelbrot_f32(u32 *__restrict__ counts, float x0, float y0, float step, u32 height, u32 width)
{
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    u32 r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= width || r >= height)
        return;
    float cx = __fadd_rn(x0, __fmul_rn((float)c, step));
    float cy = __fadd_rn(y0, __fmul_rn((float)r, step));
    float zx = 0;
    float zy = 0;
    u32 count = 0;
ROLLED
    for (u32 t = 0; t < 64; ++t) {
        float xx = __fmul_rn(zx, zx);
        float yy = __fmul_rn(zy, zy);
        if (!(__fadd_rn(xx, yy) <= 4.0f))
            break;
        zy = __fadd_rn(__fmul_rn(2.0f, __fmul_rn(zx, zy)), cy);
        zx = __fadd_rn(__fsub_rn(xx, yy), cx);
        ++count;
    }
    counts[(size_t)r * width + c] = count;
}
