#include <config.h>

#include "base/num.h"
#include "tap.h"

static void good_int(const char *s, int64_t want)
{
    int64_t v = -12345;
    eq_int(num_int(s, strlen(s), INT64_MIN, INT64_MAX, &v), NUM_OK, "'%s' is an integer", s);
    eq_int(v, want, "'%s' is %" PRId64, s, want);
}

static void bad_int(const char *s, enum num_status want)
{
    int64_t v = -12345;
    eq_int(num_int(s, strlen(s), INT64_MIN, INT64_MAX, &v), want, "'%s' is not taken", s);
    eq_int(v, -12345, "'%s' leaves the result alone", s);
}

static void test_integers(void)
{
    good_int("0", 0);
    good_int("-0", 0);
    good_int("+7", 7);
    good_int("007", 7);
    good_int("0x1F", 31);
    good_int("-0xff", -255);
    good_int("4Ki", 4096);
    good_int("1M", 1000000);
    good_int("2k", 2000);
    good_int("3Gi", INT64_C(3) << 30);
    good_int("1Ti", INT64_C(1) << 40);
    good_int("1e6", 1000000);
    good_int("1.5e3", 1500);
    good_int("25e-1M", 2500000);
    good_int("0e99", 0);
    good_int("2.50k", 2500);
    good_int("9223372036854775807", INT64_MAX);
    good_int("-9223372036854775808", INT64_MIN);
}

static void test_bad_integers(void)
{
    static const char *const bad[] = {"",    "-",    "+",   " 1",     "1 ",    "1x",  "0x",
                                      "0xg", "1KiB", "1ki", "Ki",     ".",     "1.5", "e6",
                                      "1e",  "1e+",  "--1", "1e-1",   "1,000", "1m",  "0x1K",
                                      "nan", "inf",  "1_0", "1.0005k"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        bad_int(bad[i], NUM_SYNTAX);
    bad_int("9223372036854775808", NUM_RANGE);
    bad_int("-9223372036854775809", NUM_RANGE);
    bad_int("0x10000000000000000", NUM_RANGE);
    bad_int("99999999999999999999", NUM_RANGE);
    bad_int("16777216Ti", NUM_RANGE);
    bad_int("1e19", NUM_RANGE);
    bad_int("1e999999999999", NUM_RANGE);
}

static void test_bounds(void)
{
    int64_t v = 0;
    uint64_t u = 0;
    eq_int(num_int("5", 1, 5, 5, &v), NUM_OK, "bounds are inclusive");
    eq_int(num_int("4", 1, 5, 9, &v), NUM_RANGE, "below the bound");
    eq_int(num_int("10", 2, 5, 9, &v), NUM_RANGE, "above the bound");
    eq_int(num_int("10", 1, 0, 9, &v), NUM_OK, "only len bytes are read");
    eq_int(num_uint("18446744073709551615", 20, UINT64_MAX, &u), NUM_OK, "the largest u64");
    ok(u == UINT64_MAX, "the largest u64 has its value");
    eq_int(num_uint("18446744073709551616", 20, UINT64_MAX, &u), NUM_RANGE, "one more");
    eq_int(num_uint("-1", 2, UINT64_MAX, &u), NUM_RANGE, "a negative is not unsigned");
    eq_int(num_uint("-0", 2, UINT64_MAX, &u), NUM_OK, "but minus zero is zero");
}

static void good_double(const char *s, double want)
{
    double v = -1;
    eq_int(num_double(s, strlen(s), &v), NUM_OK, "'%s' is a number", s);
    eq_dbl(v, want, "'%s' has its value", s);
}

static void test_doubles(void)
{
    good_double("2.5", 2.5);
    good_double("-0", -0.0);
    good_double("1e-5", 1e-5);
    good_double("0x1.8p1", 3.0);
    good_double(".5", 0.5);
    good_double("inf", (double)INFINITY);
    good_double("-Infinity", -(double)INFINITY);
    good_double("nan", (double)NAN);
    good_double("4.9e-324", 4.9e-324);
    good_double("1e-999", 0.0);
    static const char *const bad[] = {"",       " 1", "1 ", "1.5x", "1,5",
                                      "nan(1)", "0x", "e5", "-",    "1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double v = -1;
        eq_int(num_double(bad[i], strlen(bad[i]), &v), NUM_SYNTAX, "'%s' is no number", bad[i]);
    }
    double v = -1;
    eq_int(num_double("1e999", 5, &v), NUM_RANGE, "1e999 overflows");
    eq_int(num_double("1\0002", 3, &v), NUM_SYNTAX, "a NUL inside is no number");
}

static void test_print(void)
{
    static const double values[] = {0.1,  1.0 / 3,   1e300, 5e-324, 1.7976931348623157e308,
                                    -2.5, 123456789, 0.0,   -0.0};
    char text[32];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double back = 99;
        num_print(values[i], text);
        num_double(text, strlen(text), &back);
        eq_dbl(back, values[i], "%s reads back", text);
    }
    eq_str(num_print(0.1, text), "0.1", "the shortest text");
    eq_str(num_print(0.1 + 0.2, text), "0.30000000000000004", "no shorter than needed");
    eq_str(num_print(10, text), "10", "no exponent where none is needed");
    eq_str(num_print(-123456789, text), "-123456789", "nine digits");
    eq_str(num_print(1e9, text), "1e+09", "large numbers have one");
    eq_str(num_print(99.5, text), "99.5", "a fraction");
    eq_str(num_print(-(double)INFINITY, text), "-inf", "infinity");
    eq_str(num_print((double)NAN, text), "nan", "NaN");
}

int main(void)
{
    test_integers();
    test_bad_integers();
    test_bounds();
    test_doubles();
    test_print();
    return tap_done();
}
