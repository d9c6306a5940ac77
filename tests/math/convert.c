/* lib/lower/mathlib/convert.k against lib/data/dtype.c, which was written from the formats'
 * definitions. */
#include <config.h>

#include "math/prelude.h"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "lower/mathlib/convert.k"
#include "math/prelude_end.h"

#include "data/dtype.h"
#include "unit/tap.h"

static u32 half_of_f32(f32 x)
{
    return half_from_float(x);
}
static u32 bf16_of_f32(f32 x)
{
    return bf16_from_float(x);
}
static u32 e4m3_of_f32(f32 x)
{
    return e4m3_from_double((double)x);
}
static u32 e5m2_of_f32(f32 x)
{
    return e5m2_from_double((double)x);
}
static u32 half_of_f64(f64 x)
{
    return half_from_double(x);
}
static u32 bf16_of_f64(f64 x)
{
    return bf16_from_double(x);
}
static u32 e4m3_of_f64(f64 x)
{
    return e4m3_from_double(x);
}
static u32 e5m2_of_f64(f64 x)
{
    return e5m2_from_double(x);
}
static f32 half_to(u32 b)
{
    return half_to_float((uint16_t)b);
}
static f32 bf16_to(u32 b)
{
    return bf16_to_float((uint16_t)b);
}
static f32 e4m3_to(u32 b)
{
    return e4m3_to_float((uint8_t)b);
}
static f32 e5m2_to(u32 b)
{
    return e5m2_to_float((uint8_t)b);
}

static const struct narrow {
    const char *name;
    unsigned bits;
    u32 nan;
    u32 (*from_f32)(f32);
    u32 (*want_f32)(f32);
    u32 (*from_f64)(f64);
    u32 (*want_f64)(f64);
    f32 (*to)(u32);
    f32 (*want_to)(u32);
} types[] = {
    {"f16", 16, 0x7fff, f16_from_f32, half_of_f32, f16_from_f64, half_of_f64, f32_from_f16,
     half_to},
    {"bf16", 16, 0x7fff, bf16_from_f32, bf16_of_f32, bf16_from_f64, bf16_of_f64, f32_from_bf16,
     bf16_to},
    {"e4m3", 8, 0x7f, e4m3_from_f32, e4m3_of_f32, e4m3_from_f64, e4m3_of_f64, f32_from_e4m3,
     e4m3_to},
    {"e5m2", 8, 0x7f, e5m2_from_f32, e5m2_of_f32, e5m2_from_f64, e5m2_of_f64, f32_from_e5m2,
     e5m2_to},
};

/* Which NaN a conversion makes is PTX's to say, not dtype.c's. */
static bool wrong(const struct narrow *t, bool nan, u32 got, u32 want)
{
    return nan ? got != t->nan : got != want;
}

static bool wrong_f32(const struct narrow *t, f32 x)
{
    return wrong(t, isnan(x), t->from_f32(x), t->want_f32(x));
}

static bool wrong_f64(const struct narrow *t, f64 x)
{
    return wrong(t, isnan(x), t->from_f64(x), t->want_f64(x));
}

/* Around each value of the type, and around each middle between two: the places where rounding
 * turns. */
static void around(const struct narrow *t, unsigned *bad32, unsigned *bad64)
{
    for (u32 b = 0; b < (u32)1 << t->bits; b++) {
        f64 v = (f64)t->want_to(b);
        f64 next = (f64)t->want_to((b + 1) & (((u32)1 << t->bits) - 1));
        if (!isfinite(v))
            continue;
        f64 points[2] = {v, isfinite(next) ? v + (next - v) / 2 : 1.5 * v};
        for (int i = 0; i < 2; i++) {
            f32 p = (f32)points[i];
            *bad32 += wrong_f32(t, p) + wrong_f32(t, nextafterf(p, INFINITY)) +
                      wrong_f32(t, nextafterf(p, -INFINITY));
            *bad64 += wrong_f64(t, points[i]) + wrong_f64(t, nextafter(points[i], INFINITY)) +
                      wrong_f64(t, nextafter(points[i], -INFINITY));
        }
    }
}

static void check(const struct narrow *t, uint32_t step)
{
    unsigned bad = 0;
    for (uint64_t i = 0; i < (uint64_t)1 << 32; i += step)
        bad += wrong_f32(t, as_f32((u32)i));
    eq_int(bad, 0, "%s from a sample of f32", t->name);

    bad = 0;
    uint64_t seed = 1;
    for (int i = 0; i < 300000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bad += wrong_f64(t, as_f64(seed ^ seed >> 29));
        /* exponents near the narrow types' */
        bad +=
            wrong_f64(t, as_f64((seed & 0x803fffffffffffff) + ((1023 - 40 + (seed >> 57)) << 52)));
    }
    eq_int(bad, 0, "%s from a sample of f64", t->name);

    unsigned bad32 = 0, bad64 = 0;
    around(t, &bad32, &bad64);
    eq_int(bad32, 0, "%s from f32 around values and middles", t->name);
    eq_int(bad64, 0, "%s from f64 around values and middles", t->name);

    bad = 0;
    for (u32 b = 0; b < (u32)1 << t->bits; b++) {
        f32 got = t->to(b), want = t->want_to(b);
        bad += isnan(want) ? !isnan(got) : as_u32(got) != as_u32(want);
    }
    eq_int(bad, 0, "%s to f32, every value", t->name);
}

int main(int argc, char **argv)
{
    uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 3001;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        check(&types[i], step);
    return tap_done();
}
