// settings: O3.80 G.75
// Connected components: roots are hooked onto smaller ones by compare-and-swap, paths are halved on the way.
static __device__ int find(int *parent, int v)
{
    volatile int *p = parent;
    for (int up = p[v]; up != v; up = p[v]) {
        int over = p[up];
        if (over != up)
            atomicCAS(&parent[v], up, over);
        v = over;
    }
    return v;
}

extern "C" __global__ void start(int *parent, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        parent[i] = i;
}

extern "C" __global__ void unite(const int2 *edge, int *parent, int edges)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= edges)
        return;
    int a = edge[i].x, b = edge[i].y;
    for (;;) {
        a = find(parent, a);
        b = find(parent, b);
        if (a == b)
            break;
        if (a < b) {
            int t = a;
            a = b;
            b = t;
        }
        if (atomicCAS(&parent[a], a, b) == a)
            break;
    }
}

extern "C" __global__ void label(int *parent, int *root, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        root[i] = find(parent, i);
}
