// settings: O3.75 G.90a O0.80
// How soon points leave: the lanes of a warp go round a loop different numbers of times.
extern "C" __global__ void mandelbrot(unsigned char *out, int w, int h, int most)
{
    int px = blockIdx.x * 16 + threadIdx.x, py = blockIdx.y * 8 + threadIdx.y;
    if (px >= w || py >= h)
        return;
    // fixed point, so that nothing is rounded
    int cx = (px * 3 << 13) / w - (2 << 13), cy = (py * 2 << 13) / h - (1 << 13), n = 0;
    long long x = 0, y = 0;
    while (n < most) {
        long long xx = x * x >> 13, yy = y * y >> 13;
        if (xx + yy > 4 << 13)
            break;
        y = (2 * x * y >> 13) + cy;
        x = xx - yy + cx;
        n++;
    }
    out[py * w + px] = n == most ? 0 : n;
}
