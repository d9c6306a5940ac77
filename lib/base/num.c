#include <config.h>

#include "base/num.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_TEXT = 320 }; /* no number worth reading is longer */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* digits * 10^scale as digits are read; the fraction's digits lower the scale. */
struct decimal {
    uint64_t digits;
    int scale;
    bool overflow;
};

static void add_digit(struct decimal *d, int digit, int base)
{
    if (__builtin_mul_overflow(d->digits, (uint64_t)base, &d->digits) ||
        __builtin_add_overflow(d->digits, (uint64_t)digit, &d->digits))
        d->overflow = true;
}

static bool multiply(struct decimal *d, uint64_t factor)
{
    if (__builtin_mul_overflow(d->digits, factor, &d->digits))
        d->overflow = true;
    return true;
}

/* The suffixes; false for anything else. */
static bool apply_suffix(struct decimal *d, const char *s, size_t len)
{
    static const char letters[] = "KMGT";
    if (len == 0)
        return true;
    const char *l = s[0] == 'k' ? letters : strchr(letters, s[0]);
    if (!l || !*l || len > 2 || (len == 2 && (s[0] == 'k' || s[1] != 'i')))
        return false;
    int power = (int)(l - letters) + 1;
    if (len == 2)
        return multiply(d, UINT64_C(1) << (10 * power));
    d->scale += 3 * power;
    return true;
}

/* Folds the scale into the digits. NUM_SYNTAX when a fraction remains: 1.5, 1e-3. */
static enum num_status settle(struct decimal *d)
{
    for (; d->scale < 0 && d->digits != 0; d->scale++) {
        if (d->digits % 10)
            return NUM_SYNTAX;
        d->digits /= 10;
    }
    for (; d->scale > 0 && d->digits != 0 && !d->overflow; d->scale--)
        multiply(d, 10);
    return d->overflow ? NUM_RANGE : NUM_OK;
}

/* "e6", "E-3" at *s: adds it to the scale, and moves *s past it. */
static bool take_exponent(struct decimal *d, const char **s, const char *end)
{
    const char *p = *s + 1;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '+' || *p == '-'))
        p++;
    if (p == end || digit_of(*p) > 9)
        return false;
    int e = 0;
    for (; p < end && digit_of(*p) <= 9; p++)
        e = e < 1000 ? e * 10 + digit_of(*p) : e;
    d->scale += negative ? -e : e;
    *s = p;
    return true;
}

static enum num_status magnitude(const char *s, const char *end, uint64_t *out)
{
    struct decimal d = {0};
    const char *p = s;
    bool any = false;
    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        for (p += 2; p < end; p++) {
            if (digit_of(*p) > 15)
                return NUM_SYNTAX;
            add_digit(&d, digit_of(*p), 16);
        }
        *out = d.digits;
        return d.overflow ? NUM_RANGE : NUM_OK;
    }
    for (; p < end && digit_of(*p) <= 9; p++, any = true)
        add_digit(&d, digit_of(*p), 10);
    if (p < end && *p == '.')
        for (p++; p < end && digit_of(*p) <= 9; p++, any = true) {
            add_digit(&d, digit_of(*p), 10);
            d.scale--;
        }
    if (!any)
        return NUM_SYNTAX;
    if (p < end && (*p == 'e' || *p == 'E') && !take_exponent(&d, &p, end))
        return NUM_SYNTAX;
    if (!apply_suffix(&d, p, (size_t)(end - p)))
        return NUM_SYNTAX;
    enum num_status status = settle(&d);
    *out = d.digits;
    return status;
}

enum num_status num_uint(const char *s, size_t len, uint64_t max, uint64_t *out)
{
    uint64_t v;
    bool negative = len > 0 && s[0] == '-';
    size_t sign = len > 0 && (s[0] == '-' || s[0] == '+') ? 1 : 0;
    enum num_status status = magnitude(s + sign, s + len, &v);
    if (status != NUM_OK)
        return status;
    if (v > max || (negative && v != 0))
        return NUM_RANGE;
    *out = v;
    return NUM_OK;
}

enum num_status num_int(const char *s, size_t len, int64_t min, int64_t max, int64_t *out)
{
    uint64_t v;
    bool negative = len > 0 && s[0] == '-';
    size_t sign = len > 0 && (s[0] == '-' || s[0] == '+') ? 1 : 0;
    enum num_status status = magnitude(s + sign, s + len, &v);
    if (status != NUM_OK)
        return status;
    if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return NUM_RANGE;
    int64_t value = negative ? (int64_t)(0 - v) : (int64_t)v;
    if (value < min || value > max)
        return NUM_RANGE;
    *out = value;
    return NUM_OK;
}

/* strtod() in the C locale, whatever the program's locale is. */
static double c_strtod(const char *s, char **end)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return strtod(s, end);
    double v = strtod_l(s, end, c);
    freelocale(c);
    return v;
}

enum num_status num_double(const char *s, size_t len, double *out)
{
    char text[NUM_TEXT], *end;
    if (len == 0 || len >= sizeof text)
        return NUM_SYNTAX;
    /* strtod() would skip space and take "nan(...)" */
    if (!memchr("+-.0123456789infINF", s[0], 19) || memchr(s, '(', len) || memchr(s, '\0', len))
        return NUM_SYNTAX;
    memcpy(text, s, len);
    text[len] = '\0';
    double v = c_strtod(text, &end);
    if (end != text + len)
        return NUM_SYNTAX;
    if (isinf(v) && !strpbrk(text, "iI"))
        return NUM_RANGE;
    *out = v;
    return NUM_OK;
}

/* 10, not 1e+01: precision for an exponent of at most 8 is enough to write the number without
 * one. */
static int precision_for(double v, int digits)
{
    int before = 1;
    for (double m = fabs(v); m >= 9.5 && before < 9; m /= 10)
        before++;
    return digits > before || fabs(v) >= 1e9 ? digits : before;
}

const char *num_print_digits(double v, int digits, char out[32])
{
    if (isnan(v) || isinf(v))
        return strcpy(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    snprintf(out, 32, "%.*g", precision_for(v, digits), v);
    /* a locale's decimal separator */
    for (char *p = out; *p; p++)
        if (!strchr("+-.e0123456789", *p))
            *p = '.';
    return out;
}

const char *num_print(double v, char out[32])
{
    for (int digits = 1; digits <= 17; digits++) {
        double back = 0;
        num_print_digits(v, digits, out);
        if (isnan(v) || (num_double(out, strlen(out), &back) == NUM_OK && back == v))
            break;
    }
    return out;
}
