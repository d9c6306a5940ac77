// settings: O3.75 O0.80
// Where a word occurs in a text: as a shared dynamic array, with the table of Horspool's shifts; and edit distances.
extern __shared__ unsigned char shared[];

extern "C" __global__ void find(const unsigned char *text, const unsigned char *word, unsigned char *found, int n, int m)
{
    unsigned char *w = shared, *t = shared + 16;
    if (threadIdx.x < m)
        w[threadIdx.x] = word[threadIdx.x];
    int at = blockIdx.x * blockDim.x;
    for (int i = threadIdx.x; i < blockDim.x + m - 1; i += blockDim.x)
        t[i] = at + i < n ? text[at + i] : 255;
    __syncthreads();
    int k = 0;
    while (k < m && t[threadIdx.x + k] == w[k])
        k++;
    if (at + threadIdx.x < n)
        found[at + threadIdx.x] = k == m;
}

// one thread per stretch of text, with a table of shifts of its own block
extern "C" __global__ void horspool(const unsigned char *text, const unsigned char *word, int *count, int n, int m, int stretch)
{
    __shared__ int shift[4];
    if (threadIdx.x < 4) {
        int s = m;
        for (int k = 0; k < m - 1; k++)
            if (word[k] == threadIdx.x)
                s = m - 1 - k;
        shift[threadIdx.x] = s;
    }
    __syncthreads();
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * stretch, seen = 0;
    for (int i = first; i < first + stretch && i + m <= n;) {
        int k = m - 1;
        while (k >= 0 && text[i + k] == word[k])
            k--;
        seen += k < 0;
        i += shift[text[i + m - 1]];
    }
    if (seen)
        atomicAdd(count, seen);
}

// Levenshtein's distance by diagonals, between one pair of words a block
extern "C" __global__ void distance(const unsigned char *a, const unsigned char *b, int *d, int n)
{
    int *line = (int *)shared, t = threadIdx.x, *old = line, *mid = line + n + 1, *now = line + 2 * (n + 1);
    a += blockIdx.x * n;
    b += blockIdx.x * n;
    for (int k = 0; k <= 2 * n; k++) {
        int j = k - t;
        if (t <= n && j >= 0 && j <= n) {
            int v = t == 0 ? j : t;
            if (t && j)
                v = min(min(mid[t] + 1, mid[t - 1] + 1), old[t - 1] + (a[t - 1] != b[j - 1]));
            now[t] = v;
        }
        __syncthreads();
        int *swap = old;
        old = mid;
        mid = now;
        now = swap;
    }
    if (t == n)
        d[blockIdx.x] = mid[n];
}
