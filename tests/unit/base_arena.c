#include <config.h>

#include "base/arena.h"
#include "base/buf.h"
#include "tap.h"

static void test_alloc(void)
{
    struct arena *a = arena_new();
    bool zeroed = true, aligned = true;
    for (size_t n = 0; n < 5000; n += 37) {
        unsigned char *p = arena_alloc(a, n);
        aligned = aligned && (uintptr_t)p % 16 == 0;
        for (size_t i = 0; i < n; i++)
            zeroed = zeroed && p[i] == 0;
        memset(p, 0xff, n);
    }
    ok(zeroed, "memory is zeroed");
    ok(aligned, "memory is aligned to 16 bytes");
    arena_free(a);
}

/* As many pieces as fill several of the largest chunks. */
static void test_many(bool large)
{
    enum { COUNT = 3000, SIZE = 10000 };
    struct arena *a = arena_new();
    if (large)
        arena_large(a);
    unsigned char *piece[COUNT];
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        piece[i] = arena_alloc(a, SIZE);
        wrong += piece[i][0] != 0 || memcmp(piece[i], piece[i] + 1, SIZE - 1) != 0;
        memset(piece[i], i % 251, SIZE);
    }
    eq_int(wrong, 0, "30 MB of pieces are zeroed");
    for (int i = 0; i < COUNT; i++)
        wrong += piece[i][0] != i % 251 || memcmp(piece[i], piece[i] + 1, SIZE - 1) != 0;
    eq_int(wrong, 0, "and each is by itself");
    arena_free(a);
}

static void test_vec(void)
{
    struct arena *a = arena_new();
    VEC(int) v = {0};
    for (int i = 0; i < 1000; i++) {
        *VEC_PUSH(a, &v) = i;
        arena_alloc(a, 24);
    }
    int wrong = 0;
    for (int i = 0; i < 1000; i++)
        wrong += v.v[i] != i;
    eq_int(v.n, 1000, "a vector counts its elements");
    eq_int(wrong, 0, "a vector keeps its elements while it grows");
    arena_free(a);
}

static void test_reserve(void)
{
    struct arena *a = arena_new();
    VEC(int) v = {0};
    for (int i = 0; i < 9; i++)
        *VEC_PUSH(a, &v) = i;
    VEC_RESERVE(a, &v, 5000);
    const int *first = v.v;
    int wrong = 0;
    for (int i = 9; i < 5000; i++) {
        *VEC_PUSH(a, &v) = i;
        arena_alloc(a, 24);
    }
    for (int i = 0; i < 5000; i++)
        wrong += v.v[i] != i;
    ok(v.v == first, "a vector stays where there is room");
    eq_int(wrong, 0, "and keeps what it had before");
    VEC_RESERVE(a, &v, 10);
    ok(v.v == first && v.cap == 5000, "less room than there is changes nothing");
    arena_free(a);
}

/* Of n letters, "abc..", by a format. */
static const char *letters(struct arena *a, int n)
{
    char text[400];
    for (int i = 0; i < n; i++)
        text[i] = (char)('a' + i % 26);
    text[n] = 0;
    return arena_printf(a, "%s", text);
}

/* Texts of all lengths, each at every fill of the buffer. */
static void test_texts(void)
{
    enum { MOST = 40, ALL = 400 };
    struct arena *a = arena_new();
    int wrong = 0;
    for (int n = 0; n < ALL; n++)
        wrong += strlen(letters(a, n)) != (size_t)n;
    eq_int(wrong, 0, "formatted texts are as long as they are");
    for (int n = 0; n < MOST; n++) {
        struct buf b = buf_in(a), c = buf_in(a), f = buf_in(a);
        for (int i = 0; i < ALL / 4; i++) {
            const char *text = letters(a, n);
            buf_puts(&b, text);
            buf_printf(&f, "%s", text);
            for (; *text; text++)
                buf_putc(&c, *text);
            wrong += b.len != (size_t)n * (size_t)(i + 1) || buf_text(&b)[b.len] != 0;
        }
        wrong += strcmp(buf_text(&b), buf_text(&c)) != 0 || strcmp(buf_text(&b), buf_text(&f)) != 0;
    }
    eq_int(wrong, 0, "a buffer takes words, letters and formats alike");
    arena_free(a);
}

static void test_no_memory(void)
{
    struct arena *a = arena_new();
    volatile bool caught = false;
    if (setjmp(*arena_guard(a)))
        caught = true;
    else
        arena_calloc(a, SIZE_MAX / 2, 4);
    arena_unguard(a);
    ok(caught, "a product that overflows is no memory, and the guard catches it");
    arena_free(a);
}

int main(void)
{
    test_alloc();
    test_many(false);
    test_many(true);
    test_vec();
    test_reserve();
    test_texts();
    test_no_memory();
    return tap_done();
}
