/* Numbers made for the ways in which sums of tensor cores can differ: cancellation, terms of very
 * different size, ties, subnormals, overflow, zeros of either sign beside large factors, Inf and
 * NaN. */
#ifndef KAIO_TESTS_NUMBERS_H
#define KAIO_TESTS_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct number {
    const char *name;
    unsigned bits, mantissa, exponent; /* exponent 0: an integer */
};
static const struct number numbers[] = {
    {"f16", 16, 10, 5}, {"bf16", 16, 7, 8}, {"tf32", 32, 23, 8}, {"e4m3", 8, 3, 4},
    {"e5m2", 8, 2, 5},  {"f32", 32, 23, 8}, {"f64", 64, 52, 11}, {"s8", 8, 0, 0},
    {"u8", 8, 0, 0},    {"s4", 4, 0, 0},    {"u4", 4, 0, 0},     {"b1", 1, 0, 0},
    {"s32", 32, 0, 0},
};

static const struct number *number(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strlen(numbers[i].name) == len && memcmp(numbers[i].name, name, len) == 0)
            return &numbers[i];
    abort();
}

static uint64_t state;
static uint64_t rnd(void) /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
static int between(int lo, int hi)
{
    return lo + (int)(rnd() % (unsigned)(hi - lo + 1));
}
static bool one_in(unsigned n)
{
    return rnd() % n == 0;
}

static int bias_of(const struct number *t)
{
    return (1 << (t->exponent - 1)) - 1;
}
static uint64_t sign_of(const struct number *t)
{
    return (uint64_t)1 << (t->bits - 1);
}
/* 1.f 2^e, or nearest to that what there is. */
static uint64_t make(const struct number *t, bool minus, int e, uint64_t f)
{
    const int bias = bias_of(t), most = t->mantissa == 3 ? 8 : bias;
    f &= ((uint64_t)1 << t->mantissa) - 1;
    if (t->mantissa == 3 && e >= most && f == 7)
        f = 6;
    e = e > most ? most : e;
    uint64_t v = (uint64_t)(e + bias) << t->mantissa | f;
    if (e < 1 - bias) {
        const int down = 1 - bias - e;
        v = down > (int)t->mantissa ? 0 : (f | (uint64_t)1 << t->mantissa) >> down;
    }
    return v | (minus ? sign_of(t) : 0);
}
static uint64_t some(const struct number *t, int lo, int hi)
{
    const uint64_t f =
        rnd(); /* one after the other: arguments come in an order of the compiler's */
    const int e = between(lo, hi);
    return make(t, one_in(2), e, f);
}
static uint64_t zero(const struct number *t)
{
    return one_in(2) ? sign_of(t) : 0;
}
static bool is_special(const struct number *t, uint64_t v)
{
    const uint64_t top = ((uint64_t)1 << t->exponent) - 1;
    return t->mantissa == 3 ? (v & 0x7f) == 0x7f : (v >> t->mantissa & top) == top;
}
/* Any bits; finite: no Inf or NaN. */
static uint64_t bits(const struct number *t, bool finite)
{
    uint64_t v;
    do
        v = rnd() & (sign_of(t) | (sign_of(t) - 1));
    while (finite && is_special(t, v));
    return v;
}
static uint64_t special(const struct number *t)
{
    const uint64_t inf = (((uint64_t)1 << t->exponent) - 1) << t->mantissa;
    if (t->mantissa == 3)
        return 0x7f | (rnd() & 0x80);
    const uint64_t sign = one_in(2) ? sign_of(t) : 0;
    return inf | sign | (one_in(2) ? (uint64_t)1 << rnd() % t->mantissa : 0);
}

enum kind {
    EVEN,     /* of about the same size */
    BITS,     /* any finite bits */
    CANCEL,   /* products in pairs that cancel, and small ones */
    SPREAD,   /* of any size */
    STEPS,    /* two products and C: all distances between their exponents */
    TINY,     /* subnormals and what is near */
    ZEROS,    /* most are zeros, of either sign, beside large factors */
    HUGE,     /* overflow */
    TIES,     /* half a unit of the result more, or less */
    SPECIALS, /* a few Inf and NaN */
    RAW,      /* any bits */
    KINDS
};
static const char *const kind_text[] = {"even",  "bits", "cancel", "spread",   "steps", "tiny",
                                        "zeros", "huge", "ties",   "specials", "raw"};

/* A number of the type among those of this kind; sum: of C. */
static uint64_t element(const struct number *t, enum kind kind, bool sum)
{
    const int bias = bias_of(t), wide = bias < 40 ? bias : 40;
    uint64_t f;
    int e;
    switch (kind) {
    case EVEN: return some(t, -3, 3);
    case BITS: return bits(t, true);
    case CANCEL: return one_in(8) ? some(t, -12, -8) : some(t, -2, 2);
    case SPREAD: return some(t, -wide, wide);
    case STEPS: return sum && one_in(2) ? some(t, -wide, wide) : zero(t);
    case TINY:
        return sum || one_in(2) ? some(t, -bias - (int)t->mantissa, -bias + 4) : some(t, -2, 2);
    case ZEROS: return one_in(3) ? some(t, sum ? -wide : wide / 2, wide) : zero(t);
    case HUGE: return one_in(2) ? some(t, bias - 2, bias) : some(t, bias / 2 - 2, bias / 2 + 2);
    case TIES:
        f = sum || !one_in(2) ? rnd() : 0;
        e = sum ? t->mantissa == 10 ? 10 : 24 : between(-2, 1);
        return make(t, one_in(2), e, f);
    case SPECIALS: return one_in(96) ? special(t) : one_in(8) ? zero(t) : some(t, -3, 3);
    default: return bits(t, false);
    }
}

static uint64_t integer(const struct number *t, enum kind kind)
{
    const uint64_t all = sign_of(t) | (sign_of(t) - 1);
    if (kind == EVEN || t->bits == 1)
        return rnd() & all;
    const uint64_t end = one_in(2) ? sign_of(t) : sign_of(t) - 1, off = rnd() % 99999;
    if (t->bits == 32)
        return (one_in(2) ? end + off : end - off) & all;
    return one_in(3) ? rnd() & all : one_in(2) ? sign_of(t) : kind == HUGE ? all : sign_of(t) - 1;
}

__attribute__((unused)) static uint64_t any(const struct number *t, enum kind kind, bool sum)
{
    return t->exponent ? element(t, kind, sum) : integer(t, kind);
}

#endif
