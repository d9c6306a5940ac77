/* The words of the kernel language that the .k files of lib/lower use, as C: including those files
 * after this one makes C functions with the same bits as the emitted code. min, max and the
 * float-to-integer casts are PTX's where C leaves them open.
 */
#ifndef KAIO_TESTS_MATH_PRELUDE_H
#define KAIO_TESTS_MATH_PRELUDE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float f32;
typedef double f64;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

#define K_FN static inline __attribute__((unused, always_inline))

K_FN u32 as_u32(f32 x)
{
    u32 r;
    memcpy(&r, &x, sizeof r);
    return r;
}
K_FN f32 as_f32(u32 x)
{
    f32 r;
    memcpy(&r, &x, sizeof r);
    return r;
}
K_FN u64 as_u64(f64 x)
{
    u64 r;
    memcpy(&r, &x, sizeof r);
    return r;
}
K_FN f64 as_f64(u64 x)
{
    f64 r;
    memcpy(&r, &x, sizeof r);
    return r;
}

/* rsqrt.approx.f32, as the simulator has it */
K_FN f32 fast_rsqrt(f32 x)
{
    return (f32)(1 / sqrt((f64)x));
}

/* min.f32 and max.f32: a NaN loses against a number, -0 is below +0 */
K_FN f32 k_minf(f32 a, f32 b)
{
    return a < b || b != b ? a : b < a || a != a ? b : as_f32(as_u32(a) | as_u32(b));
}
K_FN f32 k_maxf(f32 a, f32 b)
{
    return a > b || b != b ? a : b > a || a != a ? b : as_f32(as_u32(a) & as_u32(b));
}
K_FN f64 k_mind(f64 a, f64 b)
{
    return a < b || b != b ? a : b < a || a != a ? b : as_f64(as_u64(a) | as_u64(b));
}
K_FN f64 k_maxd(f64 a, f64 b)
{
    return a > b || b != b ? a : b > a || a != a ? b : as_f64(as_u64(a) & as_u64(b));
}
K_FN i32 k_mini(i32 a, i32 b)
{
    return a < b ? a : b;
}
K_FN i32 k_maxi(i32 a, i32 b)
{
    return a > b ? a : b;
}
K_FN u32 k_minu(u32 a, u32 b)
{
    return a < b ? a : b;
}
K_FN u32 k_maxu(u32 a, u32 b)
{
    return a > b ? a : b;
}
K_FN u32 k_mulhi32(u32 a, u32 b)
{
    return (u32)(((u64)a * b) >> 32);
}
__extension__ typedef unsigned __int128 k_u128;
K_FN u64 k_mulhi64(u64 a, u64 b)
{
    return (u64)(((k_u128)a * b) >> 64);
}
K_FN u32 k_clz32(u32 a)
{
    return a == 0 ? 32 : (u32)__builtin_clz(a);
}
K_FN u32 k_clz64(u64 a)
{
    return a == 0 ? 64 : (u32)__builtin_clzll(a);
}

#define fma(a, b, c) _Generic((a), f32 : fmaf, f64 : fma)(a, b, c)
#define abs(a)       _Generic((a), f32 : fabsf, f64 : fabs)(a)
#define rint(a)      _Generic((a), f32 : rintf, f64 : rint)(a)
#define floor(a)     _Generic((a), f32 : floorf, f64 : floor)(a)
#define ceil(a)      _Generic((a), f32 : ceilf, f64 : ceil)(a)
#define trunc(a)     _Generic((a), f32 : truncf, f64 : trunc)(a)
#define sqrt(a)      _Generic((a), f32 : sqrtf, f64 : sqrt)(a)
#define min(a, b)    _Generic((a), f32 : k_minf, f64 : k_mind, i32 : k_mini, u32 : k_minu)(a, b)
#define max(a, b)    _Generic((a), f32 : k_maxf, f64 : k_maxd, i32 : k_maxi, u32 : k_maxu)(a, b)
#define mulhi(a, b)  _Generic((a), u32 : k_mulhi32, u64 : k_mulhi64)(a, b)
#define clz(a)       _Generic((a), u32 : k_clz32, u64 : k_clz64)(a)

#endif
