#include <config.h>

#include "data/dtype.h"
#include "tap.h"

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return isnan(f) ? 0x7fffffff : u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint64_t fnv(uint64_t h, uint32_t w)
{
    return (h ^ w) * UINT64_C(0x100000001b3);
}
#define FNV UINT64_C(0xcbf29ce484222325)

/* The four narrow formats behind one signature. */
struct narrow {
    const char *name;
    enum dtype type;
    unsigned bits, mant;
    int bias;
    uint32_t nan_from;         /* magnitudes from here on are not finite */
    uint32_t nan, over;        /* codes of NaN, and of what is too large */
    uint64_t sum_to, sum_from; /* made by tests/data/dtype_sums.py from numpy and ml_dtypes */
};
static const struct narrow formats[] = {
    {"half", DT_F16, 16, 10, 15, 0x7c00, 0x7fff, 0x7c00, 0xd7627f0627e7a325, 0xf075605aad59091f},
    {"bf16", DT_BF16, 16, 7, 127, 0x7f80, 0x7fff, 0x7f80, 0x6d161b4c63da2325, 0x0e63054bf04b03ed},
    {"e4m3", DT_E4M3, 8, 3, 7, 0x7f, 0x7f, 0x7e, 0x4954232ba6969d25, 0x0fbf9b0bb2e3837c},
    {"e5m2", DT_E5M2, 8, 2, 15, 0x7c, 0x7f, 0x7b, 0x7a29b7ae2da2a125, 0xb8e2976fffcb7e19},
};

static float widen(enum dtype t, uint32_t code)
{
    switch (t) {
    case DT_F16: return half_to_float((uint16_t)code);
    case DT_BF16: return bf16_to_float((uint16_t)code);
    case DT_E4M3: return e4m3_to_float((uint8_t)code);
    default: return e5m2_to_float((uint8_t)code);
    }
}

static uint32_t from_double(enum dtype t, double v)
{
    switch (t) {
    case DT_F16: return half_from_double(v);
    case DT_BF16: return bf16_from_double(v);
    case DT_E4M3: return e4m3_from_double(v);
    default: return e5m2_from_double(v);
    }
}

/* By way of the float routine where there is one. */
static uint32_t from_float(enum dtype t, float v)
{
    return t == DT_F16    ? half_from_float(v)
           : t == DT_BF16 ? bf16_from_float(v)
                          : from_double(t, (double)v);
}

/* The value of a finite magnitude by the format's definition. */
static double by_definition(const struct narrow *f, uint32_t mag)
{
    uint32_t e = mag >> f->mant, m = mag & ((1u << f->mant) - 1);
    return e ? ldexp((double)(m + (1u << f->mant)), (int)e - f->bias - (int)f->mant)
             : ldexp((double)m, 1 - f->bias - (int)f->mant);
}

static void test_every_code(const struct narrow *f)
{
    uint32_t n = 1u << f->bits, sign = n / 2;
    int wrong_value = 0, wrong_back = 0;
    uint64_t sum = FNV;
    for (uint32_t c = 0; c < n; c++) {
        uint32_t mag = c & (sign - 1);
        float v = widen(f->type, c);
        sum = fnv(sum, bits_of(v));
        if (mag < f->nan_from) {
            double want = by_definition(f, mag);
            wrong_value += !tap_same_dbl((double)v, c & sign ? -want : want);
            wrong_back += from_float(f->type, v) != c || from_double(f->type, (double)v) != c;
        }
    }
    eq_int(wrong_value, 0, "%s: every code has its value", f->name);
    eq_int(wrong_back, 0, "%s: every value goes back to its code", f->name);
    ok(sum == f->sum_to, "%s: all codes widen as numpy widens them", f->name);
}

/* Between any two neighbours: a little below half way, half way (to the even code), a little above.
 */
static void test_every_boundary(const struct narrow *f)
{
    uint32_t sign = 1u << (f->bits - 1), max = f->nan_from - 1;
    int wrong_double = 0, wrong_float = 0;
    for (uint32_t c = 0; c <= max; c++) {
        double lo = by_definition(f, c);
        double hi = c < max ? by_definition(f, c + 1) : lo + (lo - by_definition(f, c - 1));
        double mid = (lo + hi) / 2;
        uint32_t up = c < max ? c + 1 : f->over, tie = c % 2 == 0 ? c : up;
        for (uint32_t s = 0; s <= sign; s += sign) {
            double m = s ? -mid : mid;
            wrong_double += from_double(f->type, m) != (s | tie);
            wrong_double += from_double(f->type, nextafter(m, 0)) != (s | c);
            wrong_double += from_double(f->type, m * (1 + 0x1p-52)) != (s | up);
            if (mid < 0x1p-149 || mid > 0x1.fffffep127)
                continue;
            wrong_float += from_float(f->type, (float)m) != (s | tie);
            wrong_float += from_float(f->type, nextafterf((float)m, 0)) != (s | c);
            wrong_float += from_float(f->type, nextafterf((float)m, s ? -INFINITY : INFINITY)) !=
                           (s | up);
        }
    }
    eq_int(wrong_double, 0, "%s: doubles round to nearest even at every boundary", f->name);
    eq_int(wrong_float, 0, "%s: floats round to nearest even at every boundary", f->name);
}

static void test_samples(const struct narrow *f)
{
    uint64_t sum = FNV;
    int differ = 0;
    for (uint64_t i = 0; i < 1 << 19; i++) {
        float v = float_of((uint32_t)(i * 2654435761u));
        uint32_t c = from_float(f->type, v);
        differ += c != from_double(f->type, (double)v);
        sum = fnv(sum, c);
    }
    ok(sum == f->sum_from, "%s: half a million floats narrow as numpy narrows them", f->name);
    eq_int(differ, 0, "%s: float and double narrow alike", f->name);
}

static void test_extremes(const struct narrow *f)
{
    uint32_t sign = 1u << (f->bits - 1);
    eq_int(from_double(f->type, (double)NAN), f->nan, "%s: NaN has one code", f->name);
    eq_int(from_float(f->type, -NAN), f->nan, "%s: so has NaN of the other sign", f->name);
    eq_int(from_double(f->type, (double)INFINITY), f->over, "%s: infinity", f->name);
    eq_int(from_double(f->type, (double)-INFINITY), sign | f->over, "%s: minus infinity", f->name);
    eq_int(from_double(f->type, 1e308), f->over, "%s: the largest doubles", f->name);
    eq_int(from_double(f->type, -1e-320), sign, "%s: the smallest doubles keep their sign",
           f->name);
    eq_dbl(dtype_max(f->type), by_definition(f, f->nan_from - 1), "%s: largest value", f->name);
    eq_dbl(dtype_smallest(f->type), by_definition(f, 1), "%s: smallest value", f->name);
    eq_int(dtype_precision(f->type), f->mant + 1, "%s: precision", f->name);
    eq_dbl(dtype_roundoff(f->type), ldexp(1, -(int)f->mant - 1), "%s: unit roundoff", f->name);
}

static void test_once(void)
{
    /* just above the tie in double, exactly the tie in float */
    eq_int(bf16_from_double(1 + 0x1p-8 + 0x1p-40), 0x3f81, "bf16 rounds once from double");
    eq_int(half_from_double(1 + 0x1p-11 + 0x1p-40), 0x3c01, "f16 rounds once from double");
    eq_int(e4m3_from_double(1 + 0x1p-4 + 0x1p-40), 0x39, "e4m3 rounds once from double");
    unsigned char b[8];
    dtype_set_int(DT_BF16, b, 0, ((int64_t)0x101 << 54) + 1);
    eq_dbl(dtype_get(DT_BF16, b, 0), 0x102p54, "bf16 rounds once from a 64-bit integer");
    dtype_set_int(DT_F32, b, 0, -((int64_t)0x1000001 << 38) - 1);
    eq_dbl(dtype_get(DT_F32, b, 0), -0x1000002p38, "f32 rounds once from a 64-bit integer");
}

static void test_ints(void)
{
    unsigned char b[64];
    for (int t = DT_I64; t < DT_COUNT; t++) {
        const char *name = dtype_name((enum dtype)t);
        memset(b, 0, sizeof b);
        int64_t lo = dtype_imin((enum dtype)t);
        uint64_t hi = dtype_imax((enum dtype)t);
        dtype_set((enum dtype)t, b, 3, 1e30);
        dtype_set((enum dtype)t, b, 2, -1e30);
        ok((uint64_t)dtype_get_int((enum dtype)t, b, 3) == (t == DT_BOOL ? 1 : hi),
           "%s saturates above", name);
        eq_int(dtype_get_int((enum dtype)t, b, 2), t == DT_BOOL ? 1 : lo, "%s saturates below",
               name);
        dtype_set((enum dtype)t, b, 2, 1.99);
        eq_int(dtype_get_int((enum dtype)t, b, 2), 1, "%s truncates", name);
        ok((uint64_t)dtype_get_int((enum dtype)t, b, 3) == (t == DT_BOOL ? 1 : hi),
           "%s: the neighbour is kept", name);
        if (t == DT_BOOL)
            continue;
        dtype_set((enum dtype)t, b, 2, (double)NAN);
        eq_int(dtype_get_int((enum dtype)t, b, 2), 0, "%s: NaN gives 0", name);
        dtype_set_int((enum dtype)t, b, 1, (int64_t)(hi + 1));
        eq_int(dtype_get_int((enum dtype)t, b, 1), lo, "%s wraps", name);
    }
    dtype_set(DT_I32, b, 0, -1.99);
    eq_int(dtype_get_int(DT_I32, b, 0), -1, "i32 truncates towards zero");
    dtype_set_int(DT_U64, b, 0, -1);
    eq_dbl(dtype_get(DT_U64, b, 0), 0x1p64, "u64 to double");
    dtype_set_int(DT_I4, b, 0, -3);
    dtype_set_int(DT_I4, b, 1, 5);
    eq_int(b[0], 0x5d, "the even element is in the low nibble");
    eq_dbl(dtype_get(DT_I4, b, 0), -3, "i4 is signed");
    eq_dbl(dtype_get(DT_U4, b, 0), 13, "u4 is not");
    eq_int(dtype_bytes(DT_U4, 10), 5, "ten 4-bit elements take five bytes");
    eq_int(dtype_bytes(DT_F64, 3), 24, "three f64 take 24");
    eq_dbl(dtype_round(DT_I8, 2.5), 2, "rounding to an integer type is to nearest even");
    eq_dbl(dtype_round(DT_F16, 1e6), (double)INFINITY, "f16 overflows to infinity");
    eq_dbl(dtype_round(DT_E4M3, 1e6), 448, "fp8 saturates");
    eq_dbl(dtype_round(DT_F64, 0.1), 0.1, "f64 is kept");
}

/* Many at once are as one by one, whatever the type, the start and the number. */
static void test_bulk(void)
{
    static const double values[] = {0, -1, 2.5, 3, -7.9, 1e9, -1e30, 0.1, 6, 448, 5, -0.0};
    enum { N = sizeof values / sizeof *values };
    for (int t = 0; t < DT_COUNT; t++) {
        unsigned char one[N * 8] = {0}, many[N * 8] = {0};
        double back[N];
        for (size_t i = 3; i < N; i++)
            dtype_set((enum dtype)t, one, i, values[i]);
        dtype_store((enum dtype)t, many, 3, N - 3, values + 3);
        dtype_load((enum dtype)t, many, 3, N - 3, back);
        int wrong = memcmp(one, many, sizeof one) != 0;
        for (size_t i = 3; i < N; i++)
            wrong += !tap_same_dbl(back[i - 3], dtype_get((enum dtype)t, one, i));
        eq_int(wrong, 0, "%s: in bulk as one by one", dtype_name((enum dtype)t));
    }
}

static void test_names(void)
{
    static const struct {
        const char *name;
        enum dtype t;
    } names[] = {
        {"f32", DT_F32}, {"float", DT_F32},   {"double", DT_F64},   {"half", DT_F16},
        {"int", DT_I32}, {"int32_t", DT_I32}, {"unsigned", DT_U32}, {"bool", DT_BOOL},
        {"u4", DT_U4},   {"e4m3", DT_E4M3},
    };
    enum dtype t = DT_VOID;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ok(dtype_parse(names[i].name, strlen(names[i].name), &t) && t == names[i].t,
           "'%s' is a type", names[i].name);
    ok(!dtype_parse("f33", 3, &t) && !dtype_parse("", 0, &t) && !dtype_parse("f3", 2, &t) &&
           !dtype_parse("int int32_t", 11, &t),
       "other words are not");
    ok(dtype_parse("f16x2", 3, &t) && t == DT_F16, "the length counts");
    int n = 0;
    while (dtype_names()[n])
        n++;
    eq_int(n, DT_COUNT, "the list of names is complete");
    eq_str(dtype_name(DT_VOID), "void", "no type has a name too");
}

int main(void)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        test_every_code(&formats[i]);
        test_every_boundary(&formats[i]);
        test_samples(&formats[i]);
        test_extremes(&formats[i]);
    }
    test_once();
    test_ints();
    test_bulk();
    test_names();
    return tap_done();
}
