#include <config.h>

#include "verify.h"

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
