/* Operands. Nothing here depends on the machine or the compiler: integers only, and a generator of
 * our own, started from a form's name, of which no expression draws twice in an order that C leaves
 * open. */
#include <config.h>

#include "opcodes.h"

#include <string.h>

/* ---- random numbers -------------------------------------------------------------------------- */

struct chance {
    uint64_t state;
};

static uint64_t draw(struct chance *c) /* splitmix64 */
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static unsigned below(struct chance *c, unsigned n)
{
    return (unsigned)(draw(c) % n);
}

static int between(struct chance *c, int lo, int hi)
{
    return lo + (int)below(c, (unsigned)(hi - lo + 1));
}

static uint64_t ones(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* ---- formats --------------------------------------------------------------------------------- */

struct format {
    unsigned bits, mantissa; /* mantissa 0: an integer */
    unsigned lanes;          /* two to a word */
};

static struct format format_of(enum ptx_mod t)
{
    switch (t) {
    case PTX_F16: return (struct format){16, 10, 1};
    case PTX_F16X2: return (struct format){16, 10, 2};
    case PTX_BF16: return (struct format){16, 7, 1};
    case PTX_BF16X2: return (struct format){16, 7, 2};
    case PTX_TF32:
    case PTX_F32: return (struct format){32, 23, 1};
    case PTX_F64: return (struct format){64, 52, 1};
    case PTX_E4M3X2: return (struct format){8, 3, 2};
    case PTX_E5M2X2: return (struct format){8, 2, 2};
    case PTX_U16X2:
    case PTX_S16X2: return (struct format){16, 0, 2};
    default: return (struct format){ptx_type_bits(t), 0, 1};
    }
}

static int bias_of(const struct format *f)
{
    return (1 << (f->bits - f->mantissa - 2)) - 1;
}

/* 1.m times 2^e, or the subnormal, zero or infinity that is nearest to it. */
static uint64_t make(const struct format *f, unsigned sign, int e, uint64_t m)
{
    const int bias = bias_of(f);
    uint64_t v;
    m &= ones(f->mantissa);
    if (e > bias)
        v = (uint64_t)(2 * bias + 1) << f->mantissa;
    else if (e >= 1 - bias)
        v = (uint64_t)(e + bias) << f->mantissa | m;
    else if (1 - bias - e > (int)f->mantissa)
        v = 0;
    else
        v = (m | (uint64_t)1 << f->mantissa) >> (1 - bias - e);
    return v | (uint64_t)sign << (f->bits - 1);
}

static int exponent_of(const struct format *f, uint64_t v)
{
    return (int)(v >> f->mantissa & ones(f->bits - f->mantissa - 1)) - bias_of(f);
}

/* Of either sign. */
static uint64_t make_either(struct chance *c, const struct format *f, int e, uint64_t m)
{
    return make(f, below(c, 2), e, m);
}

/* ---- special values -------------------------------------------------------------------------- */

static uint64_t special_float(const struct format *f, unsigned i)
{
    const uint64_t sign = (uint64_t)1 << (f->bits - 1), m = ones(f->mantissa),
                   inf = sign - ((uint64_t)1 << f->mantissa), quiet = (m + 1) >> 1,
                   one = (uint64_t)bias_of(f) << f->mantissa, two = one + m + 1;
    const uint64_t v[] = {0,
                          sign,
                          one,
                          inf,
                          inf | quiet, /* each with each of three */
                          inf | sign,
                          1,
                          inf - 1,
                          one | sign,
                          inf | 1,
                          m + 1, /* of two */
                          inf | quiet | sign,
                          m,
                          (inf - 1) | sign,
                          one - 1,
                          one + 1,
                          two,
                          one - m - 1,
                          one - m - 2,
                          one + quiet,
                          two + (quiet >> 1),
                          1 | sign,
                          (m + 1) | sign,
                          m | sign,
                          two + quiet,
                          inf | m,
                          inf | m | sign,
                          inf | (quiet - 1),
                          inf | quiet | 5 | sign,
                          inf | 1 | sign,
                          two + 1,
                          two - 1,
                          (one + quiet) | sign,
                          (one - m - 1) | sign,
                          (one - m - 2) | sign,
                          quiet,
                          quiet | sign,
                          quiet + 1,
                          2 * m + 2,
                          inf - 2,
                          inf - 1 - quiet};
    return v[i % (sizeof v / sizeof *v)] & (sign | (sign - 1));
}

static uint64_t special_int(unsigned bits, unsigned i)
{
    const uint64_t top = (uint64_t)1 << (bits - 1), all = ones(bits), low = ones(bits / 2);
    const uint64_t v[] = {0,
                          1,
                          all,
                          top,
                          top - 1,
                          2,
                          all - 1,
                          low,
                          low + 1,
                          0x55 * (all / 0xff),
                          top + 1,
                          top - 2,
                          3,
                          7,
                          10,
                          100,
                          0xaa * (all / 0xff),
                          low - 1,
                          ~low,
                          low >> 1,
                          5,
                          (low >> 1) + 1,
                          0x80 * (all / 0xff),
                          0x7f * (all / 0xff),
                          0x0f,
                          0xff,
                          all - 2,
                          all - 9,
                          top >> 1,
                          all / 3,
                          all / 5,
                          all / 7};
    return v[i % (sizeof v / sizeof *v)] & all;
}

static uint64_t special(const struct format *f, unsigned i)
{
    return f->mantissa ? special_float(f, i) : special_int(f->bits, i);
}

/* Of the i-th tuple of n values the k-th: all combinations of the first few. */
static unsigned digit(unsigned i, unsigned n, unsigned k, struct chance *c)
{
    const unsigned base = n == 1 ? OPC_BLOCK : n == 2 ? 11 : n == 3 ? 5 : 3;
    unsigned all = 1, v = i;
    for (unsigned j = 0; j < n && j < 4; j++)
        all *= base;
    if (n > 4 || i >= all)
        return below(c, 41);
    while (k--)
        v /= base;
    return v % base;
}

/* ---- values that go together ----------------------------------------------------------------- */

/* A neighbour, a few steps away. */
static uint64_t near(struct chance *c, const struct format *f, uint64_t v)
{
    return (v + (uint64_t)(int64_t)between(c, -3, 3)) & ones(f->bits);
}

/* Around what does not fit: integers of every size and their halves, midpoints of narrower formats,
 * the ends of the range. */
static uint64_t lone_float(struct chance *c, const struct format *f)
{
    const int m = (int)f->mantissa, bias = bias_of(f);
    const unsigned s = below(c, 2);
    uint64_t r = draw(c);
    switch (below(c, 6)) {
    case 0: { /* an integer, a half, a quarter */
        const int e = between(c, -2, m + 2);
        return make(f, s, e,
                    r & (e < 1 ? ~ones(m > 2 ? (unsigned)m - 2 : 0)
                               : ~ones((unsigned)(m > e + 1 ? m - e - 1 : 0))));
    }
    case 1: { /* next to a power of two */
        const uint64_t full = below(c, 2) ? 0 : ~(uint64_t)0;
        const int e = between(c, -2, 65);
        return near(c, f, make(f, s, e, full));
    }
    case 2: { /* just at, or next to, the middle of a narrower format */
        const unsigned cut = (unsigned)between(c, 1, m);
        r = (r & ~ones(cut)) | (uint64_t)1 << (cut - 1);
        r += (uint64_t)below(c, 3) - 1;
        const int e = between(c, -16, 16);
        return near(c, f, make(f, s, e, r));
    }
    case 3: return make(f, s, between(c, -bias - m, 4 - bias), r);
    case 4: { /* where narrower formats end */
        const int ends[] = {-150, -149, -133, -126, -27, -25, -24, -18, -15,
                            -14,  -10,  -7,   -6,   8,   15,  16,  127, 128};
        int e = ends[below(c, sizeof ends / sizeof *ends)];
        if (below(c, 2))
            r = ~(uint64_t)0 << below(c, (unsigned)m + 1);
        if (e < -bias - m || e > bias)
            e = between(c, -1, 1);
        return near(c, f, make(f, s, e, r));
    }
    default: return make(f, s, between(c, bias - 3, bias), r);
    }
}

/* b for an a: to cancel, to be lost in rounding, to overflow or vanish in a product or a
 * quotient. */
static uint64_t partner(struct chance *c, const struct format *f, uint64_t a)
{
    const int e = exponent_of(f, a), bias = bias_of(f), m = (int)f->mantissa;
    const uint64_t sign = (uint64_t)1 << (f->bits - 1), r = draw(c);
    const unsigned s = below(c, 2);
    switch (below(c, 8)) {
    case 0: return near(c, f, a ^ sign);
    case 1: return near(c, f, a);
    case 2: return make(f, s, e - m + between(c, -3, 3), r);
    case 3: return make(f, s, e - m - 1, below(c, 2) ? 0 : below(c, 3));
    case 4: return make(f, s, bias - e + between(c, -2, 2), r);
    case 5: return make(f, s, -bias - e + between(c, -m - 1, 2), r);
    case 6: return make(f, s, e + bias + between(c, -2, m + 1), r);
    default: return lone_float(c, f);
    }
}

/* c for a product: to cancel it, to tie with it, to be lost in it. */
static uint64_t addend(struct chance *c, const struct format *f, uint64_t a, uint64_t b)
{
    const int e = exponent_of(f, a) + exponent_of(f, b), m = (int)f->mantissa;
    const unsigned s = (unsigned)((a ^ b) >> (f->bits - 1) & 1);
    const uint64_t r = draw(c);
    switch (below(c, 5)) {
    case 0: return make(f, s ^ 1, e + between(c, 0, 1), r);
    case 1: return make_either(c, f, e + m + between(c, -1, 2), r);
    case 2: return make_either(c, f, e - m + between(c, -2, 2), r);
    case 3: return make(f, s ^ 1, e, (a + b) & ones(f->mantissa));
    default: return lone_float(c, f);
    }
}

static uint64_t edge_int(struct chance *c, const struct format *f, unsigned k,
                         const uint64_t *before)
{
    const uint64_t all = ones(f->bits), r = draw(c), few = below(c, 4);
    const uint64_t a = k ? before[k - 1] : 0;
    switch (below(c, k ? 9 : 4)) {
    case 0: return few & all;
    case 1: return (0 - few) & all;
    case 2: return (((uint64_t)1 << below(c, f->bits)) + few - 1) & all;
    case 3: return special_int(f->bits, below(c, 32));
    case 4: return a;
    case 5: return (a + few - 1) & all;
    case 6: return (0 - a + few) & all;
    case 7: return a ? (all / a + few - 1) & all : r & all;
    default: return (a ^ (uint64_t)1 << below(c, f->bits)) & all;
    }
}

static uint64_t edge(struct chance *c, const struct format *f, unsigned k, const uint64_t *before)
{
    if (!f->mantissa)
        return edge_int(c, f, k, before);
    if (k == 0 || below(c, 12) == 0) {
        if (below(c, 3))
            return lone_float(c, f);
        const uint64_t r = draw(c);
        return make_either(c, f, between(c, -8, 8), r);
    }
    return k == 1 ? partner(c, f, before[0]) : addend(c, f, before[0], before[1]);
}

/* Operands whose product or quotient, a little below the smallest normal number, rounds to it; of a
 * conversion from f64 to f32 the same. Is that flushed to zero? */
static uint64_t tiny(struct chance *c, const struct format *f, unsigned k, const uint64_t *before,
                     enum ptx_op op)
{
    const int bias = bias_of(f), near_one = between(c, -1, 1), e = between(c, -8, -1);
    const uint64_t r = draw(c), full = ~(uint64_t)0 << (below(c, 2) ? below(c, 6) : 0);
    const unsigned s = below(c, 2);
    if (op == PTX_OP_CVT_F32_F64)
        return make(f, s, -127 + (near_one > 0), ~(r & ones(below(c, 40))));
    if (k == 0)
        return make(f, s, e, full);
    if (k == 2)
        return below(c, 3) ? (uint64_t)s << (f->bits - 1) : make(f, s, 1 - bias, r & 3);
    const int a = exponent_of(f, before[0]);
    return make(f, s, op == PTX_OP_DIV_F32 ? a + bias : -bias - a, near_one ? 0 : r & 3);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The NaN of 16 bits that fma.oob takes for what is not there, or one like it. */
static uint64_t out_of_bounds(struct chance *c)
{
    const uint64_t v = 0x7ff7 ^ (uint64_t)below(c, 2) << 15;
    return below(c, 3) ? v : v ^ (uint64_t)1 << below(c, 16);
}

/* One number for the k-th of n values; before: the others in the same half. */
static uint64_t number(struct chance *c, enum opc_kind kind, const struct format *f, unsigned i,
                       unsigned n, unsigned k, const uint64_t *before, const struct opc_form *form)
{
    const uint64_t r = draw(c);
    if (form->chosen && form->inst.op == PTX_OP_FMA_OOB)
        return below(c, 3) ? special(f, below(c, 41)) : out_of_bounds(c);
    if (form->chosen)
        return tiny(c, f, k, before, form->inst.op);
    if (form->inst.op == PTX_OP_FMA_OOB && below(c, 4) == 0) /* all kinds of NaN */
        return special(f, below(c, 41));
    if (form->approx && kind >= OPC_RAW && below(c, 2)) { /* where ex2, sin and lg2 are curved */
        if (kind == OPC_RAW)
            return make_either(c, f, between(c, -13, 7), r);
        const uint64_t m = below(c, 2) ? r >> 8 : ~(r >> 8);
        return make(f, 0, between(c, -1, 0), m);
    }
    switch (kind) {
    case OPC_SPECIAL: return special(f, digit(i, n, k, c));
    case OPC_ORDINARY:
        if (f->mantissa)
            return make_either(c, f, between(c, -4, 4), r);
        return r >> below(c, 64) & ones(f->bits);
    case OPC_EDGE: return edge(c, f, k, before);
    default: return r & ones(f->bits);
    }
}

static uint64_t shift(struct chance *c, enum opc_kind kind)
{
    static const uint32_t v[] = {0,   1,   31,  32,  33,  63,  64,         65,         127,
                                 128, 255, 256, 257, 288, 320, 0x80000000, UINT32_MAX, 0x10020};
    switch (kind) {
    case OPC_SPECIAL: return v[below(c, sizeof v / sizeof *v)];
    case OPC_RAW: return draw(c) & UINT32_MAX;
    case OPC_EDGE: return below(c, 260);
    default: return below(c, 34);
    }
}

static uint64_t segment(struct chance *c)
{
    /* (32 - width) << 8 | the last lane's number, or 0 for up */
    const uint64_t width = 1u << below(c, 6);
    return (32 - width) << 8 | (below(c, 3) ? 0x1f : below(c, 32));
}

/* The at-th word of a tuple, whose words before it are there. */
static uint64_t other(struct chance *c, enum opc_kind kind, const struct opc_source *s, unsigned i,
                      const uint64_t *tuple, unsigned at)
{
    const unsigned warp = i / 32 % 4;
    const uint64_t r = draw(c), mask = ones(ptx_type_bits(s->type));
    const unsigned small = below(c, 3);
    switch (s->role) {
    case OPC_SHIFT: return shift(c, kind);
    case OPC_PRED: return r & 1;
    case OPC_VOTE: return warp == 0 ? 1 : warp == 1 ? 0 : warp == 2 ? r & 1 : i % 32 != 7;
    case OPC_LANE: return kind == OPC_RAW ? r & UINT32_MAX : below(c, 32);
    case OPC_SEGMENT: return segment(c);
    case OPC_FROM: return below(c, 32);
    case OPC_STEP: return (uint32_t)between(c, -6, 6);
    case OPC_FEW:
        return (warp % 2 ? UINT64_C(0x123456789abcdef) + kind
                         : UINT64_C(0xfedcba9876543210) + small * UINT64_C(0x10000000001)) &
               mask;
    default: return r & 1 ? tuple[at > 1 ? at - 2 : 0] : draw(c) & mask;
    }
}

static void fill(struct chance *c, enum opc_kind kind, const struct opc_form *form, unsigned i,
                 uint64_t *tuple)
{
    unsigned n = 0, k = 0;
    uint64_t before[2][OPC_SOURCES];
    for (unsigned j = 0; j < form->nsrc; j++)
        n += form->src[j].role == OPC_VALUE;
    for (unsigned j = 0; j < form->nsrc; j++) {
        const struct opc_source *s = &form->src[j];
        if (s->role != OPC_VALUE) {
            tuple[j] = other(c, kind, s, i, tuple, j);
            continue;
        }
        const struct format f = format_of(s->type);
        tuple[j] = 0;
        for (unsigned half = 0; half < f.lanes; half++) {
            /* the upper half takes the combinations in another order */
            const unsigned at = half ? (i * 37 + 11) % OPC_BLOCK : i;
            before[half][k] = number(c, kind, &f, at, n, k, before[half], form);
            tuple[j] |= before[half][k] << half * f.bits;
        }
        if (f.lanes == 1)
            before[1][k] = before[0][k];
        k++;
    }
}

void opc_tuples(const struct opc_form *f, uint64_t *words)
{
    struct chance c = {0};
    for (const char *p = f->name; *p; p++)
        c.state = (c.state ^ (unsigned char)*p) * 1099511628211u;
    memset(words, 0, OPC_TUPLES * opc_stride(f->nsrc) * sizeof *words);
    for (unsigned i = 0; i < OPC_TUPLES; i++)
        fill(&c, (enum opc_kind)(i / OPC_BLOCK), f, i % OPC_BLOCK, words + i * opc_stride(f->nsrc));
}
