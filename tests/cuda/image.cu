// settings: O3.80 fast.75 G.90a
// Images: a bilateral filter, an integral image by rows and columns, and bytes of red, green and blue to grey.
extern "C" __global__ void bilateral(const float *x, float *y, int w, int h, float near, float like)
{
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (c >= w || r >= h)
        return;
    float here = x[r * w + c], sum = 0, weights = 0;
    for (int i = -2; i <= 2; i++)
        for (int j = -2; j <= 2; j++) {
            float v = x[min(max(r + i, 0), h - 1) * w + min(max(c + j, 0), w - 1)];
            float k = expf(-(i * i + j * j) * near - (v - here) * (v - here) * like);
            sum += k * v;
            weights += k;
        }
    y[r * w + c] = sum / weights;
}

extern "C" __global__ void along_rows(const unsigned char *x, unsigned *y, int w)
{
    unsigned carry = 0;
    for (int at = 0; at < w; at += 32) {
        int c = at + threadIdx.x;
        unsigned v = c < w ? x[blockIdx.x * w + c] : 0;
        for (int d = 1; d < 32; d *= 2) {
            unsigned before = __shfl_up_sync(~0u, v, d);
            v += threadIdx.x >= d ? before : 0;
        }
        if (c < w)
            y[blockIdx.x * w + c] = carry + v;
        carry += __shfl_sync(~0u, v, 31);
    }
}

extern "C" __global__ void along_columns(unsigned *y, int w, int h)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 1; c < w && r < h; r++)
        y[r * w + c] += y[(r - 1) * w + c];
}

extern "C" __global__ void grey(const uchar3 *x, unsigned char *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = (77 * x[i].x + 150 * x[i].y + 29 * x[i].z + 128) >> 8;
}
