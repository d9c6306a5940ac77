#include <config.h>

#include "base/arena.h"
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
    test_vec();
    test_no_memory();
    return tap_done();
}
