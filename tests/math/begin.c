/* What lib/lower/mathlib/f32.k makes of the hardware's approximations is the exact result rounded,
 * whichever of those that the PTX manual allows it begins with: all of them, for every x of the two
 * binades (of 1/x: one) that the others are multiples of.
 */
#include <config.h>

#include "math/wide.h"
#include "lower/mathlib/convert.k"
#include "lower/mathlib/f32.k"
#include "math/prelude_end.h"

#include "unit/tap.h"

enum { NEAR = 4 }; /* floats on either side of the exact result, more than the manual allows */

/* Is r within 2^-22.9 of y = 1 / sqrt(x)? */
static bool is_root(f32 r, long double y)
{
    return fabsl((long double)r - y) <= y * 0x1.13p-23L;
}

/* Is r within one unit in the last place of y = 1 / x, x in [1, 2)? */
static bool is_reciprocal(f32 r, long double y)
{
    return fabsl((long double)r - y) <= (y < 1 ? 0x1p-24L : 0x1p-23L);
}

static long double root(long double x)
{
    return 1 / sqrtl(x);
}

static long double reciprocal(long double x)
{
    return 1 / x;
}

static void check(const char *name, u32 first, u32 end, f32 (*got)(f32, f32),
                  long double (*want)(long double), bool (*is_allowed)(f32, long double))
{
    unsigned wrong = 0, tried = 0;
    for (u32 i = first; i < end; i++) {
        const f32 x = as_f32(i);
        const long double y =
            want((long double)x); /* whose own error is 2^-39 of a float's last place */
        const f32 rounded = (f32)y;
        for (int d = -NEAR; d <= NEAR; d++) {
            const f32 r = as_f32(as_u32(rounded) + (u32)d);
            if (!is_allowed(r, y))
                continue;
            tried++;
            if (got(x, r) != rounded && !wrong++)
                tap_note("of %a, from %a: %a, not %a", (double)x, (double)r, (double)got(x, r),
                         (double)rounded);
        }
    }
    eq_int(wrong, 0, "%s from %u approximations", name, tried);
}

int main(void)
{
    if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2")) {
        puts("1..0 # SKIP this processor has no fma instruction");
        return 0;
    }
    check("rsqrt", 0x3f800000u, 0x40800000u, rsqrt_round_f32, root, is_root);
    check("1/x", 0x3f800000u, 0x40000000u, rcp_round_f32, reciprocal, is_reciprocal);
    return tap_done();
}

#include "math/wide_end.h"
