/* The formats of print(): what is printed is what printf() prints, and what is wrong is said. */
#include <config.h>

#include "data/message.h"
#include "tap.h"

#include <stdlib.h>

static const char *print(struct arena *a, const char *format, enum dtype t, const void *value)
{
    struct buf b = buf_in(a);
    uint32_t words[2] = {0};
    memcpy(words, value, dtype_bits(t) / 8);
    message_print(format, &t, words, &b);
    return buf_text(&b);
}

/* One argument in many formats. */
static void test_printf(void)
{
    static const char *const flags[] = {"", "-", "+", " ", "#", "0", "-+", "+0", "# ", "0-+ #"};
    static const char *const sizes[] = {"", "1", "12", ".0", ".3", "9.4", "40.20", "."};
    struct arena *a = arena_new();
    size_t wrong = 0, tried = 0;
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (const char *c = "dixXouc"
                                 "fFeEgGaA";
                 *c; c++) {
                static const double doubles[] = {0,      -0.0,     1.5,      -2.25e10,
                                                 1e-300, INFINITY, -INFINITY};
                static const int64_t ints[] = {0, 1, -1, INT64_MAX, INT64_MIN, 65};
                const bool is_float = strchr("fFeEgGaA", *c) != NULL;
                for (size_t k = 0; k < 6; k++) {
                    const enum dtype t = is_float    ? DT_F64
                                         : *c == 'u' ? DT_U64
                                         : *c == 'c' ? DT_U32
                                                     : DT_I64;
                    const uint32_t small = 65 + (uint32_t)k;
                    const char *format = arena_printf(a, "<%%%s%s%c>", flags[f], sizes[s], *c);
                    const char *wide = arena_printf(a, "<%%%s%s%s%c>", flags[f], sizes[s],
                                                    is_float || *c == 'c' ? "" : "ll", *c);
                    const char *want = is_float    ? arena_printf(a, wide, doubles[k])
                                       : *c == 'c' ? arena_printf(a, wide, (int)small)
                                                   : arena_printf(a, wide, (long long)ints[k]);
                    const char *got = print(a, format, t,
                                            is_float    ? (const void *)&doubles[k]
                                            : *c == 'c' ? (const void *)&small
                                                        : (const void *)&ints[k]);
                    tried++;
                    if (strcmp(got, want) != 0 && !wrong++)
                        tap_note("%s: got %s, want %s", format, got, want);
                }
            }
    ok(wrong == 0 && tried == 10 * 8 * 15 * 6, "%zu conversions print what printf() prints", tried);
    arena_free(a);
}

static void test_types(void)
{
    struct arena *a = arena_new();
    const uint32_t big = 4000000000u;
    const int32_t minus = -1;
    const float third = 1 / 3.0f, nan = -NAN;
    eq_str(print(a, "%d", DT_U32, &big), "4000000000", "%%d of a u32 is the number it is");
    eq_str(print(a, "%x", DT_I32, &minus), "ffffffff", "%%x of an i32 shows 32 bits");
    eq_str(print(a, "%llx %%", DT_I32, &minus), "ffffffff %", "length modifiers mean nothing");
    eq_str(print(a, "%.9g", DT_F32, &third), "0.333333343", "an f32 is exact as a double");
    eq_str(print(a, "%f", DT_F32, &nan), "nan", "a NaN has no sign");
    eq_str(print(a, "100%% %u%%\n", DT_U32, &big), "100% 4000000000%\n", "percent signs");
    eq_int(message_type(DT_I8), DT_I32, "i8 travels as i32");
    eq_int(message_type(DT_U16), DT_U32, "u16 as u32");
    eq_int(message_type(DT_BOOL), DT_U32, "bool as u32");
    eq_int(message_type(DT_BF16), DT_F32, "bf16 as f32");
    eq_int(message_type(DT_VOID), DT_VOID, "and nothing as nothing");
    arena_free(a);
}

static void bad(const char *format, const char *why)
{
    struct message_conversion c;
    size_t at = 0;
    ok(message_next(format, &at, &c) == MESSAGE_BAD && strstr(c.why, why), "%s: %s", format, why);
}

static void test_bad(void)
{
    struct message_conversion c;
    size_t at = 0;
    bad("%s", "no strings");
    bad("%5.3p", "no pointers");
    bad("%n", "stores");
    bad("%*d", "not '*'");
    bad("%hd", "would cut");
    bad("%", "cut off");
    bad("%-", "cut off");
    bad("%y", "no such conversion");
    bad("%1000d", "at most 999");
    bad("%.99999999999999999999d", "at most 999");
    ok(message_next("100%% a", &at, &c) == MESSAGE_END && at == 7, "none");
    at = 0;
    ok(message_next("a%%%00000005.00003lld", &at, &c) == MESSAGE_CONVERSION && c.off == 3 &&
           at == 21 && c.width == 5 && c.precision == 3 && strcmp(c.flags, "0") == 0,
       "flags are taken once, zeros in numbers dropped");
    ok(message_misfit('d', DT_F32) && message_misfit('g', DT_I32) && message_misfit('u', DT_I32) &&
           message_misfit('c', DT_U64),
       "conversions and types that do not fit");
    ok(!message_misfit('d', DT_U64) && !message_misfit('u', DT_BOOL) &&
           !message_misfit('x', DT_I8) && !message_misfit('e', DT_F16),
       "and some that do");
}

int main(void)
{
    test_printf();
    test_types();
    test_bad();
    return tap_done();
}
