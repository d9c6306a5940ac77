#include <config.h>

#include "verify.h"

#include "base/num.h"

void print_word(const char *word, struct buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@+,%";
    if (word[0] && strspn(word, plain) == strlen(word)) {
        buf_puts(out, word);
        return;
    }
    buf_putc(out, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_puts(out, "'\\''");
        else
            buf_putc(out, *word);
    buf_putc(out, '\'');
}

void print_tolerance(const struct tolerance *t, struct buf *out)
{
    char number[32];
    if (!t->given)
        return;
    if (t->rtol > 0 || (t->atol <= 0 && t->ulp < 0))
        buf_printf(out, " --rtol=%s", num_print(t->rtol, number));
    if (t->atol > 0)
        buf_printf(out, " --atol=%s", num_print(t->atol, number));
    if (t->ulp >= 0)
        buf_printf(out, " --ulp=%s", num_print(t->ulp, number));
}
