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

/* The number at *i, 0 where there are no digits; -1 when it is too large. */
static int number(const char *s, size_t *i)
{
    int v = 0;
    for (; s[*i] >= '0' && s[*i] <= '9'; ++*i)
        v = v < 0 || v * 10 > MESSAGE_MAX_WIDTH ? -1 : v * 10 + (s[*i] - '0');
    return v > MESSAGE_MAX_WIDTH ? -1 : v;
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
    *c = (struct message_conversion){.off = i, .width = -1, .precision = -1};
    if (!format[i])
        return MESSAGE_END;
    for (i++; one_of(format[i], "-+ #0"); i++)
        if (!strchr(c->flags, format[i]))
            c->flags[strlen(c->flags)] = format[i];
    bool small = true;
    if (format[i] >= '1' && format[i] <= '9')
        small = (c->width = number(format, &i)) >= 0;
    if (format[i] == '.') {
        i++;
        small = (c->precision = number(format, &i)) >= 0 && small;
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
static void print_one(const struct message_conversion *c, enum dtype t, const uint32_t *words,
                      struct buf *out)
{
    const bool is_float = dtype_is_float(t), decimal = one_of(c->letter, "diu");
    const uint64_t bits = message_words(t) == 2 ? words[0] | (uint64_t)words[1] << 32
                                                : (uint64_t)words[0];
    char width[16] = "", precision[16] = "", spec[48];
    if (c->width >= 0)
        snprintf(width, sizeof width, "%d", c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof precision, ".%d", c->precision);
    char letter = !decimal || is_float ? c->letter : dtype_class(t) == DTC_I ? 'd' : 'u';
    snprintf(spec, sizeof spec, "%%%s%s%s%s%c", c->flags, width, precision,
             is_float || letter == 'c' ? "" : "ll", letter);
    if (is_float) {
        double v = dtype_get(t, &bits, 0);
        buf_printf(out, spec, isnan(v) ? (double)NAN : v); /* a NaN's sign means nothing */
    } else if (letter == 'c') {
        buf_printf(out, spec, (int)(bits & 0xff));
    } else if (letter == 'd') {
        buf_printf(out, spec, (long long)dtype_get_int(t, &bits, 0));
    } else { /* hexadecimal and octal show the value's own bits */
        buf_printf(out, spec, (unsigned long long)bits);
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
        print_one(&c, *travels, words, out);
        words += message_words(*travels++);
        from = at;
    }
    if (plain != (locale_t)0) {
        uselocale(before);
        freelocale(plain);
    }
}
