#include <config.h>

#include "base/buf.h"

#include <stdio.h>

struct buf buf_in(struct arena *a)
{
    return (struct buf){.arena = a};
}

static void reserve(struct buf *b, size_t n)
{
    if (b->cap - b->len > n)
        return;
    size_t cap = b->cap ? b->cap * 2 : 256;
    while (cap - b->len <= n)
        cap *= 2;
    b->text = arena_grow(b->arena, b->text, b->cap, cap);
    b->cap = cap;
}

void buf_reserve(struct buf *b, size_t n)
{
    if (b->cap - b->len > n)
        return;
    b->text = arena_grow(b->arena, b->text, b->cap, b->len + n + 1);
    b->cap = b->len + n + 1;
    b->text[b->len] = 0;
}

void buf_add(struct buf *b, const char *s, size_t n)
{
    if (n == 0)
        return;
    reserve(b, n);
    memcpy(b->text + b->len, s, n);
    b->len += n;
    b->text[b->len] = 0;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    enum { FEW = 64 };
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    reserve(b, FEW);
    const size_t room = b->cap - b->len;
    int n = vsnprintf(b->text + b->len, room, fmt, again);
    va_end(again);
    if (n > 0 && (size_t)n >= room) {
        reserve(b, (size_t)n);
        vsnprintf(b->text + b->len, (size_t)n + 1, fmt, ap);
    }
    b->len += n > 0 ? (size_t)n : 0;
    b->text[b->len] = 0;
    va_end(ap);
}

void buf_shell_word(struct buf *b, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@+,%";
    if (word[0] && strspn(word, plain) == strlen(word)) {
        buf_puts(b, word);
        return;
    }
    buf_putc(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *word);
    buf_putc(b, '\'');
}

const char *buf_text(const struct buf *b)
{
    return b->text ? b->text : "";
}
