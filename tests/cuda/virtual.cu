// settings: O3.80 O0.75 G.80
// Virtual functions, pointers to functions in a table and as a kernel's choice, and placement in memory of one's own.
struct shape {
    __device__ virtual int area() const = 0;
    __device__ virtual int edges() const { return 0; }
    __device__ virtual ~shape() {}
};

struct square : shape {
    int side;
    __device__ square(int side) : side(side) {}
    __device__ int area() const override { return side * side; }
    __device__ int edges() const override { return 4; }
};

struct triangle : shape {
    int base, height;
    __device__ triangle(int base, int height) : base(base), height(height) {}
    __device__ int area() const override { return base * height / 2; }
    __device__ int edges() const override { return 3; }
};

struct disc : shape {
    int radius;
    __device__ disc(int radius) : radius(radius) {}
    __device__ int area() const override { return radius * radius * 355 / 113; }
};

static __device__ __noinline__ int measure(const shape &s) { return s.area() * 10 + s.edges(); }

extern "C" __global__ void areas(const int *x, int *y)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, v = x[t];
    square s(v);
    triangle d(v, v + 1);
    disc c(v);
    const shape *all[3] = {&s, &d, &c};
    y[t] = measure(*all[t % 3]);
}

typedef int (*operation)(int, int);
static __device__ int add(int a, int b) { return a + b; }
static __device__ int multiply(int a, int b) { return a * b; }
static __device__ int larger(int a, int b) { return a > b ? a : b; }
static __device__ int apart(int a, int b) { return abs(a - b); }
__device__ operation operations[4] = {add, multiply, larger, apart};

template <typename F> static __device__ int fold(const int *x, int n, F f)
{
    int v = x[0];
    for (int i = 1; i < n; i++)
        v = f(v, x[i]);
    return v;
}

extern "C" __global__ void folds(const int *x, int *y, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, most = 3 + t % 5;
    operation f = operations[t % 4];
    y[t] = fold(x + t % 32 * n, n, f) + fold(x + t % 32 * n, n, [=](int a, int b) { return min(a + b, most); });
}
