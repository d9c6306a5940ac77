// settings: O3.75 O0.80 G.90a
// Kernels whose arguments are structs by value: a view of a matrix, a template with functors, members of all sizes, an array.
template <typename T> struct view {
    T *data;
    int rows, cols, stride;
    __device__ T &operator()(int r, int c) const { return data[r * stride + c]; }
};

struct affine {
    float scale, shift;
    __device__ float operator()(float v) const { return v * scale + shift; }
};

struct clamp {
    float low, high;
    __device__ float operator()(float v) const { return fminf(fmaxf(v, low), high); }
};

template <typename F, typename G> struct both {
    F f;
    G g;
    __device__ float operator()(float v) const { return g(f(v)); }
};

template <typename T, typename F> static __device__ void map(view<const T> x, view<T> y, F f)
{
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < y.rows && c < y.cols)
        y(r, c) = f(x(r, c));
}

extern "C" __global__ void apply(view<const float> x, view<float> y, both<affine, clamp> f) { map(x, y, f); }

struct mixed {
    signed char a;
    short b;
    double c;
    unsigned char d;
    float e[4];
    long long f;
    bool g;
};

extern "C" __global__ void members(mixed m, double *y, int pick)
{
    int t = threadIdx.x;
    y[t] = m.a + m.b * 2 + m.c + m.d * 3 + m.e[(t + pick) % 4] + m.f + (m.g ? 1000 : 0);
}
