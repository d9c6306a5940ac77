#include <config.h>

#include "data/message.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct message_header) == 32, "kernels address it");

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Digits of a width or a precision; false when there are too many. */
static bool number(const char *s, size_t *i)
{
    unsigned v = 0;
    while (s[*i] >= '0' && s[*i] <= '9') {
        v = v * 10 + (unsigned)(s[(*i)++] - '0');
        if (v > MESSAGE_MAX_WIDTH)
            return false;
    }
    return true;
}

static const char *why_unknown(const char *s, char c)
{
    if (c == '*')
        return "a width or precision is a number here, not '*'";
    if (c == 's')
        return "there are no strings to print: write the text in the format";
    if (c == 'p')
        return "there are no pointers to print; print the index";
    if (c == 'n')
        return "%n stores through a pointer, and there are none";
    if (c == 'h')
        return "'h' would cut the value; write %d and convert the argument, as in i16(x)";
    if (*s == '\0')
        return "the conversion is cut off; write %% for a percent sign";
    return "no such conversion; there are %d %u %x %o %c %f %e %g %a, and %% for a percent sign";
}

enum message_item message_next(const char *format, size_t *at, struct message_conversion *c)
{
    size_t i = *at;
    while (format[i] && (format[i] != '%' || format[i + 1] == '%'))
        i += format[i] == '%' ? 2 : 1;
    *at = i;
    *c = (struct message_conversion){.off = i};
    if (!format[i])
        return MESSAGE_END;
    i++;
    while (one_of(format[i], "-+ #0"))
        i++;
    bool small = number(format, &i);
    if (small && format[i] == '.') {
        i++;
        small = number(format, &i);
    }
    for (int k = 0; k < 2 && one_of(format[i], "lz"); k++)
        i++;
    c->letter = format[i];
    if (!small)
        c->why = "a width or precision is at most 999";
    else if (!one_of(c->letter, "diuxXocfFeEgGaA"))
        c->why = why_unknown(format + i, format[i]);
    i += format[i] != '\0';
    c->len = i - c->off;
    *at = i;
    return c->why ? MESSAGE_BAD : MESSAGE_CONVERSION;
}

const char *message_misfit(char letter, enum dtype t)
{
    const bool is_float = dtype_is_float(t);
    if (one_of(letter, "fFeEgGaA"))
        return is_float ? NULL : "prints a float; write %d, or f32(...) around the argument";
    if (is_float)
        return "prints an integer; write %g, or i32(...) around the argument";
    if (letter == 'u' && dtype_class(t) == DTC_I)
        return "prints an unsigned integer; write %d";
    if (letter == 'c' && dtype_bits(t) == 64)
        return "prints a character; write u8(...) around the argument";
    return NULL;
}

enum dtype message_type(enum dtype t)
{
    if (t >= DT_COUNT)
        return DT_VOID;
    if (dtype_is_float(t))
        return t == DT_F64 ? DT_F64 : DT_F32;
    if (dtype_bits(t) == 64)
        return t;
    return dtype_class(t) == DTC_I ? DT_I32 : DT_U32;
}

unsigned message_words(enum dtype travels)
{
    return dtype_bits(travels) / 32;
}

unsigned message_args_words(size_t n, const enum dtype *travels)
{
    unsigned words = 0;
    for (size_t i = 0; i < n; i++)
        words += message_words(travels[i]);
    return words;
}

/* One conversion, with the length modifier that the argument as passed to printf() has. */
static void print_one(const char *format, const struct message_conversion *c, enum dtype t,
                      const uint32_t *words, struct buf *out)
{
    char spec[32] = "";
    size_t n = 0;
    uint64_t bits = message_words(t) == 2 ? words[0] | (uint64_t)words[1] << 32 : words[0];
    for (size_t i = 0; i + 1 < c->len; i++)
        if (!one_of(format[c->off + i], "lz") && n < sizeof spec - 4)
            spec[n++] = format[c->off + i];
    if (dtype_is_float(t)) {
        double v = dtype_get(t, &bits, 0);
        spec[n] = c->letter;
        buf_printf(out, spec, isnan(v) ? (double)NAN : v); /* a NaN's sign means nothing */
    } else if (c->letter == 'c') {
        spec[n] = 'c';
        buf_printf(out, spec, (int)(bits & 0xff));
    } else {
        bool decimal = one_of(c->letter, "diu");
        memcpy(spec + n, "ll", 2);
        spec[n + 2] = !decimal ? c->letter : dtype_class(t) == DTC_I ? 'd' : 'u';
        /* hexadecimal and octal show the value's own bits */
        long long v = dtype_class(t) == DTC_I && decimal ? (long long)dtype_get_int(t, &bits, 0)
                                                         : (long long)bits;
        buf_printf(out, spec, v);
    }
}

void message_print(const char *format, const enum dtype *travels, const uint32_t *words,
                   struct buf *out)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
    size_t at = 0, from = 0;
    struct message_conversion c;
    for (;;) {
        enum message_item what = message_next(format, &at, &c);
        for (size_t i = from; i < c.off; i++) {
            buf_putc(out, format[i]);
            i += format[i] == '%'; /* the second of two */
        }
        if (what != MESSAGE_CONVERSION)
            break;
        print_one(format, &c, *travels, words, out);
        words += message_words(*travels++);
        from = at;
    }
    if (plain != (locale_t)0) {
        uselocale(before);
        freelocale(plain);
    }
}
