// Functions that call themselves, and functions that are called through pointers.
//   nvcc -arch=sm_80 -O3 --ptx -o routines.ptx routines.cu
// and, without optimisation, for sm_75: nvcc -arch=sm_75 -O0 -Xcicc -O0 --ptx -o routines_O0.ptx routines.cu
typedef unsigned u32;

struct pair { u32 a; unsigned long long b; };

// a variable whose address goes down, and results that come back through it
__device__ __noinline__ u32 walk(u32 n, u32 *above)
{
    u32 mine = n;
    if (n > 1) {
        *above += walk(n - 1, &mine);
        if (n % 3 == 0)
            *above += walk(n - 2, above);
    }
    return mine * 7 + *above;
}

__device__ bool odd(u32 n);
__device__ __noinline__ bool even(u32 n) { return n == 0 ? true : odd(n - 1); }
__device__ __noinline__ bool odd(u32 n) { return n == 0 ? false : even(n - 1); }

// structures by value, both ways
__device__ __noinline__ pair sum(pair p, u32 n)
{
    if (n == 0)
        return p;
    pair q = sum(pair{p.a + n, p.b * 3 + p.a}, n - 1);
    return pair{q.a ^ n, q.b + p.b};
}

struct shape {
    u32 k;
    __device__ shape(u32 k) : k(k) {}
    __device__ virtual u32 area(u32 x) const = 0;
    __device__ virtual bool flat() const { return false; }
};
struct square : shape {
    __device__ square(u32 k) : shape(k) {}
    __device__ u32 area(u32 x) const override { return x * x + k; }
};
struct line : shape {
    __device__ line(u32 k) : shape(k) {}
    __device__ u32 area(u32 x) const override { return flat() ? k : x; }
    __device__ bool flat() const override { return true; }
};
// a shape of shapes: what is called through a pointer comes to itself
struct both : shape {
    const shape *one, *two;
    __device__ both(u32 k, const shape *one, const shape *two) : shape(k), one(one), two(two) {}
    __device__ u32 area(u32 x) const override { return one->area(x + 1) * 3 + two->area(x + 2); }
};

typedef u32 (*function)(u32, u32);
__device__ __noinline__ u32 add(u32 a, u32 b) { return a + b; }
__device__ __noinline__ u32 mul(u32 a, u32 b) { return a * b; }
__device__ __noinline__ u32 apply(function f, u32 a, u32 b) { return f(a, b) + 1; }
__device__ function table[3] = {add, mul, 0};
__constant__ function const_table[2] = {mul, add};

extern "C" __global__ void recursive(u32 *x)
{
    const u32 i = threadIdx.x;
    u32 top = 0;
    const u32 w = walk(i % 11, &top);
    const pair p = sum(pair{i, i * 5ull}, i % 7);
    x[i] = w + top * 1000 + (even(i % 5) ? 1000000 : 0) + p.a * 3 + (u32)p.b;
}

extern "C" __global__ void pointers(u32 *x)
{
    const u32 i = threadIdx.x;
    x[i] = table[i & 1](i, 3) + const_table[i % 3 == 0](i, 10) + apply(i & 4 ? add : mul, i, i);
}

extern "C" __global__ void shapes(u32 *x)
{
    const u32 i = threadIdx.x;
    const square s(i);
    const line l(5);
    const both b(1, &s, &l), c(2, &b, i & 1 ? (const shape *)&l : (const shape *)&b);
    const shape *all[4] = {&s, &l, &b, &c};
    x[i] = all[i & 3]->area(i) + (i % 5 == 0 ? all[i >> 2 & 3]->flat() : 0u);
}

extern "C" __global__ void nowhere(u32 *x)
{
    x[threadIdx.x] = table[2](threadIdx.x, 3);
}

extern "C" __global__ void endless(u32 *x)
{
    u32 top = 0;
    x[threadIdx.x] = walk(1000000 + threadIdx.x, &top);
}
