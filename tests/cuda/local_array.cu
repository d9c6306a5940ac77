// settings: O3.75 O0.80 G.90a
// Arrays of a thread: permutations by Heap's algorithm, queens on a board, an insertion sort with pointers into it.
extern "C" __global__ void permutations(unsigned *sum, int n)
{
    unsigned char p[8], c[8];
    unsigned total = 0, weight = blockIdx.x * blockDim.x + threadIdx.x + 1;
    for (int i = 0; i < n; i++) {
        p[i] = i + 1;
        c[i] = 0;
    }
    for (int i = 0; i < n;) {
        if (c[i] < i) {
            int k = i & 1 ? c[i] : 0;
            unsigned char t = p[k];
            p[k] = p[i];
            p[i] = t;
            unsigned v = 0;
            for (int k = 0; k < n; k++)
                v = v * weight + p[k];
            total ^= v;
            c[i]++;
            i = 0;
        } else {
            c[i++] = 0;
        }
    }
    sum[weight - 1] = total;
}

extern "C" __global__ void queens(int *count, int n)
{
    int column[12], row = 1, found = 0;
    column[0] = threadIdx.x;
    column[1] = -1;
    while (row > 0) {
        int c = ++column[row], k = 0;
        if (c == n) {
            row--;
            continue;
        }
        while (k < row && column[k] != c && abs(column[k] - c) != row - k)
            k++;
        if (k < row)
            continue;
        if (row == n - 1)
            found++;
        else
            column[++row] = -1;
    }
    count[threadIdx.x] = found;
}

extern "C" __global__ void median(const float *x, float *y, int w, int h)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (c >= w)
        return;
    float v[9], *end = v;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            float f = x[min(max(r + i, 0), h - 1) * w + min(max(c + j, 0), w - 1)], *to = end++;
            for (; to > v && to[-1] > f; to--)
                *to = to[-1];
            *to = f;
        }
    y[r * w + c] = v[4];
}
