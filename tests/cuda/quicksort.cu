// settings: O3.75 G.90a O0.80
// Functions that call themselves: quicksort, Ackermann's function, and Towers of Hanoi with a visitor.
static __device__ __noinline__ void quicksort(int *x, int n)
{
    if (n < 2)
        return;
    int pivot = x[n / 2], i = 0, j = n - 1;
    for (;;) {
        while (x[i] < pivot)
            i++;
        while (x[j] > pivot)
            j--;
        if (i >= j)
            break;
        int t = x[i];
        x[i++] = x[j];
        x[j--] = t;
    }
    quicksort(x, i);
    quicksort(x + i, n - i);
}

extern "C" __global__ void sort(int *x, int n) { quicksort(x + (blockIdx.x * blockDim.x + threadIdx.x) * n, n); }

static __device__ int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

struct towers {
    int peg[3], moves;
};

static __device__ __noinline__ towers hanoi(towers t, int discs, int from, int to)
{
    if (discs == 0)
        return t;
    int over = 3 - from - to;
    t = hanoi(t, discs - 1, from, over);
    t.peg[from] ^= 1 << discs;
    t.peg[to] |= 1 << discs;
    t.moves++;
    return hanoi(t, discs - 1, over, to);
}

extern "C" __global__ void recurse(int *a, int *moves, int *pegs)
{
    int t = threadIdx.x;
    a[t] = ackermann(t % 3, t / 3);
    towers h = {{(2 << t % 6) - 2, 0, 0}, 0};
    h = hanoi(h, t % 6, 0, 2);
    moves[t] = h.moves;
    pegs[t] = h.peg[2];
}
