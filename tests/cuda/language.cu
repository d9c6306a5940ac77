// settings: O3.75 O0.80 G.90a
// What C++ makes the compiler write: pointers among initialisers, strings, labels in
// assembly, unions, references to members, arguments that vary in number, 128-bit integers, tables of tables.
#include <stdarg.h>

struct node {
    int value;
    const node *left, *right;
    const char *name;
};

__device__ const node leaves[3] = {{3, nullptr, nullptr, "three"}, {5, nullptr, nullptr, "five"}, {7, nullptr, nullptr, "seven"}};
__device__ const node inner = {11, &leaves[0], &leaves[2], "eleven"};
__constant__ node root = {13, &inner, &leaves[1], "thirteen"};
__device__ int counters[2][3] = {{1, 2, 3}, {4}};
__device__ int *const rows[2] = {counters[1], counters[0]};

static __device__ int length(const char *s)
{
    int n = 0;
    while (s[n])
        n++;
    return n;
}

static __device__ __noinline__ int walk(const node *n) { return n ? n->value * length(n->name) + walk(n->left) - walk(n->right) : 1; }

extern "C" __global__ void tree(int *y) { y[threadIdx.x] = walk(threadIdx.x & 1 ? &root : &inner) + rows[threadIdx.x & 1][threadIdx.x % 3]; }

static __device__ __noinline__ int sum_of(int n, ...)
{
    va_list list;
    int sum = 0;
    va_start(list, n);
    for (int i = 0; i < n; i++)
        sum += i & 1 ? (int)va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return sum;
}

extern "C" __global__ void various(const int *x, int *y)
{
    int t = threadIdx.x, v = x[t], r;
    asm("{\n\t.reg .pred p;\n\tsetp.gt.s32 p, %1, 0;\n\t@p bra positive;\n\tneg.s32 %0, %1;\n\tbra done;\npositive:\n\tshl.b32 %0, %1, 1;\ndone:\n\t}"
        : "=r"(r)
        : "r"(v));
    union {
        float f;
        unsigned u;
        unsigned short h[2];
    } u;
    u.f = v;
    u.h[0] ^= 0x1234;
    int node::*member = &node::value;
    __int128 wide = (__int128)v * 0x123456789abcdefll * v;
    y[4 * t] = r + sum_of(4, v, 2.0 * v, 3, 4.5);
    y[4 * t + 1] = u.u;
    y[4 * t + 2] = root.*member + (int)(wide >> 64) + (int)wide;
    auto twice = [&](auto f) { return f(f(v)); };
    y[4 * t + 3] = v & 1 ? twice([=](int a) { return a * 3 + t; }) : v / 3;
}
