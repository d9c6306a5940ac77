/* The math library, compiled as C, as a filter for tests/cli/math.bats.
 *
 *     apply list                        the functions, one a line: NAME NARGS
 *     apply halves                      those with a variant NAME_half, one a line: NAME
 *     apply inputs TYPE SEED            numbers to try, raw on standard output
 *     apply NAME TYPE X [Y]             NAME of the numbers in the files, raw on standard output
 *     apply f16 f32 X                   the numbers in the file rounded to f16, and so with bf16
 *     apply same TYPE A B               exits 1 unless the files hold the same bits, NaN being like
 *                                       NaN
 */
#include <config.h>

#include "math/functions.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 16 };

struct numbers {
    size_t n;
    union {
        f32 f[MOST];
        f64 d[MOST];
        u32 w[MOST];
        u64 q[MOST];
    };
};

static struct numbers x, y;

static int fail(const char *what)
{
    fprintf(stderr, "apply: %s\n", what);
    return 2;
}

static bool read_numbers(struct numbers *v, const char *path, size_t size)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    v->n = fread(v->f, size, MOST, in);
    return fclose(in) == 0 && v->n > 0;
}

static int write_numbers(const struct numbers *v, size_t size)
{
    return fwrite(v->f, size, v->n, stdout) == v->n && fflush(stdout) == 0 ? 0 : 2;
}

static u64 next_random(u64 *state)
{
    u64 z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A third of all bit patterns, a third of moderate numbers, special values. */
static int inputs(bool wide, u64 seed)
{
    static const f64 special[] = {0,     1,      2,        0.5,      1.5,  3,       INFINITY, NAN,
                                  1e-40, 3.4e38, 0x1p-149, 0x1p-126, 104,  0x1p-74, 0x1p24,   709.8,
                                  1e308, 1e-310, 0.75,     0.95,     88.7, 110,     M_PI_2,   1e10};
    x.n = 20000;
    for (size_t i = 0; i < x.n; i++) {
        u64 r = next_random(&seed);
        f64 v = special[r / 64 % (sizeof special / sizeof *special)];
        if (r % 7 < 3)
            v = (f64)(i64)next_random(&seed) * 0x1p-63 * (r & 8 ? 20 : r & 16 ? 1.25 : 800);
        v = r & 32 ? -v : v;
        if (wide)
            x.q[i] = r % 7 < 5 ? as_u64(v) : next_random(&seed);
        else
            x.w[i] = r % 7 < 5 ? as_u32((f32)v) : (u32)next_random(&seed);
    }
    return write_numbers(&x, wide ? 8 : 4);
}

static int same(bool wide)
{
    size_t bad = 0;
    for (size_t i = 0; i < x.n && x.n == y.n; i++) {
        bool equal = wide ? x.q[i] == y.q[i] || (isnan(x.d[i]) && isnan(y.d[i]))
                          : x.w[i] == y.w[i] || (isnan(x.f[i]) && isnan(y.f[i]));
        if (!equal && bad++ < 5)
            fprintf(stderr, "number %zu: %a and %a\n", i, wide ? x.d[i] : (f64)x.f[i],
                    wide ? y.d[i] : (f64)y.f[i]);
    }
    if (x.n != y.n)
        fprintf(stderr, "%zu and %zu numbers\n", x.n, y.n);
    return bad || x.n != y.n;
}

static int narrow(bool bf16)
{
    static uint16_t bits[MOST];
    for (size_t i = 0; i < x.n; i++)
        bits[i] = (uint16_t)(bf16 ? bf16_from_f32(x.f[i]) : f16_from_f32(x.f[i]));
    return fwrite(bits, 2, x.n, stdout) == x.n && fflush(stdout) == 0 ? 0 : 2;
}

static int apply(const char *name, bool wide, bool two)
{
    for (int f = 0; f < NFUNCTIONS; f++) {
        if (strcmp(functions[f].name, name) != 0 || two != (functions[f].f2 != NULL) ||
            (wide && !functions[f].d1 && !functions[f].d2))
            continue;
        for (size_t i = 0; i < x.n; i++) {
            if (two && wide)
                x.d[i] = functions[f].d2(x.d[i], y.d[i]);
            else if (two)
                x.f[i] = functions[f].f2(x.f[i], y.f[i]);
            else if (wide)
                x.d[i] = functions[f].d1(x.d[i]);
            else
                x.f[i] = functions[f].f1(x.f[i]);
        }
        return write_numbers(&x, wide ? 8 : 4);
    }
    return fail("no such function");
}

static int list(bool halves)
{
    for (int f = 0; f < NFUNCTIONS; f++) {
        const char *end = strstr(functions[f].name, "_half");
        if (halves && end)
            printf("%.*s\n", (int)(end - functions[f].name), functions[f].name);
        else if (!halves && !end)
            printf("%s %d\n", functions[f].name, functions[f].f2 ? 2 : 1);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "list") == 0 || strcmp(argv[1], "halves") == 0))
        return list(argv[1][0] == 'h');
    if (argc < 4)
        return fail("arguments are missing");
    bool wide = strcmp(argv[2], "f64") == 0, two = argc > 4;
    if (strcmp(argv[1], "inputs") == 0)
        return inputs(wide, strtoull(argv[3], NULL, 0));
    if (!read_numbers(&x, argv[3], wide ? 8 : 4) ||
        (two && !read_numbers(&y, argv[4], wide ? 8 : 4)))
        return fail("no numbers to read");
    if (strcmp(argv[1], "f16") == 0 || strcmp(argv[1], "bf16") == 0)
        return narrow(argv[1][0] == 'b');
    return strcmp(argv[1], "same") == 0 ? same(wide) : apply(argv[1], wide, two);
}
