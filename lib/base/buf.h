/* Growable text in an arena: what printers write into. The text is always NUL-terminated. */
#ifndef KAIO_BASE_BUF_H
#define KAIO_BASE_BUF_H

#include "base/arena.h"

struct buf {
    struct arena *arena;
    char *text; /* NULL until something was written; use buf_text() */
    size_t len, cap;
};

struct buf buf_in(struct arena *a);
/* Room for n more bytes: for who knows about how many will follow. */
void buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const char *s, size_t n);
static inline void buf_putc(struct buf *b, char c)
{
    if (b->cap - b->len < 2) {
        buf_add(b, &c, 1);
    } else {
        b->text[b->len++] = c;
        b->text[b->len] = 0;
    }
}
/* Most texts are words, and go where there is room: they are not measured first. */
static inline void buf_puts(struct buf *b, const char *s)
{
    enum { SHORT = 16 };
    const size_t room = b->cap - b->len, most = room < SHORT ? room : SHORT;
    for (size_t n = 0; n < most; n++)
        if (!(b->text[b->len + n] = s[n])) {
            b->len += n;
            return;
        }
    buf_add(b, s, strlen(s));
}
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A word for the shell, in quotes where it needs them. */
void buf_shell_word(struct buf *b, const char *word);
/* The text so far, never NULL. */
const char *buf_text(const struct buf *b);

#endif
