/* How tensor cores add up (matrix.h), for the files that execute mma and wgmma. Private to lib/sim;
 * included by files that are compiled once per build.
 *
 * Operands are unpacked into tiles of 16 rows and 8 columns, where eight numbers are one row of C
 * or B: first the even columns, then the odd ones, as two registers of a group of four lanes hold
 * them.
 */
#ifndef KAIO_SIM_SUMS_H
#define KAIO_SIM_SUMS_H

#include "sim/exec.h"
#include "sim/half.h"
#include "sim/matrix.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { ROWS = 16, COLS = 8, DEPTH = 64 };

typedef s32 v8 __attribute__((vector_size(32), may_alias));
typedef u32 v8u __attribute__((vector_size(32), may_alias));
typedef f32 v8f __attribute__((vector_size(32), may_alias));
typedef s32 v4 __attribute__((vector_size(16), may_alias));
typedef f32 v4f __attribute__((vector_size(16), may_alias));
typedef s64 v4l __attribute__((vector_size(32), may_alias));
typedef f64 v4d __attribute__((vector_size(32), may_alias));

#ifdef __AVX2__
#define MAX8(a, b) ((v8)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define MIN8(a, b) ((v8)_mm256_min_epi32((__m256i)(a), (__m256i)(b)))
#define ABS8(a)    ((v8)_mm256_abs_epi32((__m256i)(a)))
#define ANY(a)     (!_mm256_testz_si256((__m256i)(a), (__m256i)(a)))
#else
#define PICK8(m, a, b) (((m) & (a)) | (~(m) & (b)))
#define MAX8(a, b)     PICK8((a) > (b), a, b)
#define MIN8(a, b)     PICK8((a) < (b), a, b)
#define ABS8(a)        (((a) ^ ((a) >> 31)) - ((a) >> 31))
#define ANY(a)         (((v4l)(a))[0] | ((v4l)(a))[1] | ((v4l)(a))[2] | ((v4l)(a))[3])
#endif
#define SHR8(a, n) ((v8)((v8u)(a) >> (v8u)(n)))

/* The place of column n among eight. */
static inline unsigned column(unsigned n)
{
    return (n >> 1) + 4 * (n & 1);
}

/* ---- C and D --------------------------------------------------------------------------------- */

/* The registers of m->m rows and eight columns. */
static inline void load_c(const struct sim_warp *w, const struct sim_mma *m, const u32 *slot,
                          v8 c[ROWS])
{
    for (unsigned r = 0; r < m->m; r++) {
        const unsigned half = r / 8, at = r % 8 * 4;
        u32 *const to = (u32 *)&c[r];
        if (!m->half) {
            memcpy(to, SLOT(u32, slot[2 * half]) + at, 16);
            memcpy(to + 4, SLOT(u32, slot[2 * half + 1]) + at, 16);
            continue;
        }
        const slot_u32 *const pair = SLOT(u32, slot[half]) + at;
        for (unsigned t = 0; t < 4; t++) {
            to[t] = pair[t] & 0xffff;
            to[t + 4] = pair[t] >> 16;
        }
    }
}

static inline void store_d(struct sim_warp *w, const struct sim_mma *m, const u32 *slot,
                           const v8 d[ROWS])
{
    for (unsigned r = 0; r < m->m; r++) {
        const unsigned half = r / 8, at = r % 8 * 4;
        const u32 *const from = (const u32 *)&d[r];
        if (!m->half) {
            memcpy(SLOT(u32, slot[2 * half]) + at, from, 16);
            memcpy(SLOT(u32, slot[2 * half + 1]) + at, from + 4, 16);
            continue;
        }
        slot_u32 *const pair = SLOT(u32, slot[half]) + at;
        for (unsigned t = 0; t < 4; t++)
            pair[t] = from[t] | from[t + 4] << 16;
    }
}

/* ---- A and B --------------------------------------------------------------------------------- */

/* The elements' bits, signed integers extended. */
struct raw {
    v8u b[DEPTH];
    u32 a[ROWS][DEPTH];
};

/* 16 bytes as elements; how many. */
static inline unsigned spread(const unsigned char *p, unsigned type, u32 x[32])
{
    switch ((enum sim_element)type) {
    case SIM_E_F16:
    case SIM_E_BF16:
        for (unsigned i = 0; i < 8; i++)
            x[i] = (u32)(p[2 * i] | p[2 * i + 1] << 8);
        return 8;
    case SIM_E_S8:
        for (unsigned i = 0; i < 16; i++)
            x[i] = (u32)(int8_t)p[i];
        return 16;
    case SIM_E_U4:
        for (unsigned i = 0; i < 32; i++)
            x[i] = p[i / 2] >> (i % 2 * 4) & 15;
        return 32;
    case SIM_E_S4:
        for (unsigned i = 0; i < 32; i++)
            x[i] = (u32)((p[i / 2] >> (i % 2 * 4) & 15) ^ 8) - 8;
        return 32;
    case SIM_E_TF32: memcpy(x, p, 16); return 4;
    default:
        for (unsigned i = 0; i < 16; i++)
            x[i] = p[i];
        return 16;
    }
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Numbers sig 2^(exp - 10), |sig| < 2048, and val = sig 2^exp. A zero's exp is below all others. */
struct floats {
    v8 b_sig[DEPTH], b_exp[DEPTH];
    v8f b_val[DEPTH];
    s32 a_sig[ROWS][DEPTH], a_exp[ROWS][DEPTH];
    f32 a_val[ROWS][DEPTH];
};
enum { ZERO_EXP = -4096 };

/* What is so of some of many numbers. */
enum seen {
    SEEN_SPECIAL = 1, /* Inf or NaN */
    SEEN_FAR = 2,     /* too large or too small for products of val */
};

/* 8 n numbers of so many bits of mantissa and exponent, behind low bits that are dropped; those
 * that are masked out are 0.
 */
static inline u32 decode(const v8u *x, v8 *sig, v8 *exp, v8f *val, unsigned n, const v8 *mask,
                         unsigned low, unsigned mbits, unsigned ebits)
{
    const s32 top = (1 << ebits) - 1, bias = top >> 1, hidden = 1 << mbits, low_bits = hidden - 1,
              most = 50;
    v8 special = {0}, far = {0};
    for (unsigned i = 0; i < n; i++) {
        const v8 v = (v8)(x[i] >> low) & *mask, e = (v8)((v8u)v >> mbits) & top;
        const v8 tiny = e == 0, f = v & low_bits;
        const v8 mag = (f | (~tiny & hidden)) << (10 - mbits);
        const v8 sign = -((v8)((v8u)v >> (mbits + ebits)) & 1), power = e - tiny - bias;
        const v8 zero = mag == 0;
        sig[i] = (mag ^ sign) - sign;
        exp[i] = (zero & ZERO_EXP) | (~zero & power);
        val[i] = __builtin_convertvector(sig[i], v8f) * (v8f)((power + 127) << 23);
        special |= e == top;
        far |= ~zero & ((power > most) | (power < -most));
    }
    return (ANY(special) ? SEEN_SPECIAL : 0) | (ANY(far) ? SEEN_FAR : 0);
}

/* e4m3 is f16 with fewer bits but for its top exponent and its subnormals. */
static inline u32 e4m3_to_f16(u32 x)
{
    const u32 sign = (x & 0x80) << 8, mag = x & 0x7f;
    if (mag == 0x7f)
        return sign | 0x7fff;
    if (mag >= 8)
        return sign | ((mag << 7) + (8 << 10));
    const u32 up = mag ? (u32)__builtin_clz(mag) - 28 : 0; /* to 1.xxx */
    return mag ? sign | (9 - up) << 10 | (mag << up & 7) << 7 : sign;
}

static inline u32 decode_any(const v8u *x, v8 *sig, v8 *exp, v8f *val, unsigned n, const v8 *mask,
                             unsigned type, bool as_f16)
{
    v8u half[DEPTH];
    v8 nan = {0};
    switch ((enum sim_element)type) {
    case SIM_E_F16: return decode(x, sig, exp, val, n, mask, 0, 10, 5);
    case SIM_E_BF16: return decode(x, sig, exp, val, n, mask, 0, 7, 8);
    case SIM_E_TF32: return decode(x, sig, exp, val, n, mask, 13, 10, 8);
    case SIM_E_E5M2: return decode(x, sig, exp, val, n, mask, 0, 2, 5);
    default: break;
    }
    for (unsigned i = 0; i < n; i++)
        nan |= ((v8)x[i] & *mask & 0x7f) == 0x7f;
    for (unsigned i = 0; i < n && as_f16; i++)
        for (unsigned k = 0; k < 8; k++)
            ((u32 *)&half[i])[k] = e4m3_to_f16(((const u32 *)&x[i])[k]);
    if (as_f16)
        decode(half, sig, exp, val, n, mask, 0, 10, 5);
    else /* its top exponent is one like others */
        decode(x, sig, exp, val, n, mask, 0, 3, 4);
    return ANY(nan) ? SEEN_SPECIAL : 0;
}

/* Eight columns of a row: the terms cut off (matrix.h), sum 2^(exp - bits) of which is exact in 64
 * bits, but not always in 32. */
struct sums {
    v8 part[3];
    v8 exp;
};

/* (macros where a function would return a vector) */
#define CUT(mag, sign, by) ((SHR8(mag, MIN8(by, most)) ^ (sign)) - (sign))

/* The term of C, and its exponent as the largest so far. */
static inline void start_c(const struct sim_mma *m, const v8 *old, v8 *sig, v8 *sign, v8 *exp)
{
    const v8 c = *old;
    const unsigned mbits = m->half ? 10 : 23, ebits = m->half ? 5 : 8;
    const s32 hidden = 1 << mbits, e_top = (1 << ebits) - 1, bias = e_top >> 1;
    const v8 fraction = c & (hidden - 1), e = (v8)((v8u)c >> mbits) & e_top, tiny = e == 0;
    *sig = (fraction | (~tiny & hidden)) << (23 - mbits);
    *sign = -((v8)((v8u)c >> (mbits + ebits)) & 1);
    const v8 zero = *sig == 0;
    *exp = (zero & ZERO_EXP) | (~zero & (e - tiny - bias));
}

/* Products of vals are exact in f32, and so is what is left of them when they are scaled and cut
 * off; those of which nothing is left may become anything below 1. */
static inline void sum_near(const struct floats *f, unsigned r, unsigned k0, unsigned k1,
                            unsigned bits, struct sums *s)
{
    const v8 least = {-126, -126, -126, -126, -126, -126, -126, -126},
             most = {127, 127, 127, 127, 127, 127, 127, 127};
    const v8 up = (s32)bits - 20 - s->exp;
    const v8f scale = (v8f)((MIN8(MAX8(up, least), most) + 127) << 23);
    const f32 *const a = f->a_val[r];
    v8 even = {0}, odd = {0};
    for (unsigned k = k0; k < k1; k += 2) { /* K is even */
        even += __builtin_convertvector(f->b_val[k] * a[k] * scale, v8);
        odd += __builtin_convertvector(f->b_val[k + 1] * a[k + 1] * scale, v8);
    }
    s->part[0] = even;
    s->part[1] = odd;
}

static inline void sum_far(const struct floats *f, unsigned r, unsigned k0, unsigned k1,
                           unsigned bits, struct sums *s)
{
    const unsigned up = bits > 20 ? bits - 20 : 0, down = bits < 20 ? 20 - bits : 0;
    const v8 most = {31, 31, 31, 31, 31, 31, 31, 31};
    const s32 *const a = f->a_sig[r], *const a_exp = f->a_exp[r];
    v8 part[2] = {{0}, {0}};
    for (unsigned k = k0; k < k1; k++) {
        const v8 p = f->b_sig[k] * a[k], by = s->exp - (f->b_exp[k] + a_exp[k]) + (s32)down;
        const v8 sign = p >> 31;
        part[k & 1] += CUT(ABS8(p) << up, sign, by);
    }
    s->part[0] = part[0];
    s->part[1] = part[1];
}

static inline void sum_row(const struct sim_mma *m, const struct floats *f, u32 seen, unsigned r,
                           unsigned k0, unsigned k1, const v8 *old, struct sums *s)
{
    const unsigned bits = m->bits, up = bits > 23 ? bits - 23 : 0, down = bits < 23 ? 23 - bits : 0;
    const s32 *const a_exp = f->a_exp[r];
    v8 c_sig, c_sign, c_exp, top;
    start_c(m, old, &c_sig, &c_sign, &c_exp);
    top = c_exp;
    for (unsigned k = k0; k < k1; k++) {
        const v8 x = f->b_exp[k] + a_exp[k];
        top = MAX8(top, x);
    }
    s->exp = top;
    const v8 most = {31, 31, 31, 31, 31, 31, 31, 31}, by = top - c_exp + (s32)down;
    s->part[2] = CUT(c_sig << up, c_sign, by);
    if (seen & SEEN_FAR)
        sum_far(f, r, k0, k1, bits, s);
    else
        sum_near(f, r, k0, k1, bits, s);
}

/* Toward zero, with so many bits of mantissa; what is too large becomes Inf, what is too small
 * +0. */
static inline u32 round_f32(f64 x, unsigned mbits)
{
    const u64 u = bits64(x);
    const u32 sign = (u32)(u >> 63) << 31;
    const s32 e = (s32)(u >> 52 & 0x7ff) - 1023;
    if (e > 127)
        return sign | 0x7f800000;
    u32 r;
    if (e >= -126)
        r = (u32)((u >> 29 & 0x7fffff) | (u64)(e + 127) << 23);
    else
        r = e < -149 ? 0 : (u32)(((u & 0xfffffffffffff) | (u64)1 << 52) >> (-126 - e + 29));
    r &= ~((1u << (23 - mbits)) - 1);
    return r ? sign | r : 0;
}

/* Four of the sums. */
static inline void four_sums(const struct sums *s, unsigned i, unsigned bits, v4d *to)
{
    v4 x[4];
    for (unsigned k = 0; k < 3; k++)
        memcpy(&x[k], (const s32 *)&s->part[k] + i, sizeof x[k]);
    const v8 least = {-900, -900, -900, -900, -900, -900, -900, -900}, exp = MAX8(s->exp, least);
    memcpy(&x[3], (const s32 *)&exp + i, sizeof x[3]);
    const v4d sum = __builtin_convertvector(x[0], v4d) + __builtin_convertvector(x[1], v4d) +
                    __builtin_convertvector(x[2], v4d);
    const v4l scale = (__builtin_convertvector(x[3], v4l) + (1023 - (s64)bits)) << 52;
    *to = sum * (v4d)scale;
}

/* Rounds the sums to elements of D. f32 that are normal come out of a conversion of what is left
 * when low bits are cut off. */
static inline void finish(const struct sim_mma *m, const struct sums *s, v8 *d)
{
    const u64 low = ((u64)1 << (52 - m->out_bits)) - 1;
    const s64 tiny = (s64)(1023 - 126) << 52, sign = INT64_MIN;
    for (unsigned i = 0; i < COLS; i += 4) {
        v4d x;
        four_sums(s, i, m->bits, &x);
        const v4l u = (v4l)x & (s64)~low, mag = u & ~sign;
        const v4l odd = (mag < tiny) & (mag > 0);
        const v4f f = __builtin_convertvector((v4d)u, v4f);
        u32 *const to = (u32 *)d + i;
        if (!m->half && !ANY(odd)) {
            memcpy(to, &f, sizeof f);
            continue;
        }
        for (unsigned k = 0; k < 4; k++) {
            const u32 r = m->half ? narrow_f16(x[k], SIM_RN) : round_f32(x[k], m->out_bits);
            to[k] = m->half && r == 0x8000 ? 0 : r;
        }
    }
}

/* ---- Inf and NaN ----------------------------------------------------------------------------- */

static inline f64 value(u32 x, unsigned type)
{
    switch ((enum sim_element)type) {
    case SIM_E_F16: return (f64)up_f16(x);
    case SIM_E_BF16: return (f64)up_bf16(x);
    case SIM_E_TF32: return (f64)from32(x & 0xffffe000);
    case SIM_E_E5M2: return (f64)up_f16(x << 8);
    default: return (f64)up_f16(e4m3_to_f16(x));
    }
}

/* The bits that Inf and NaN have, and no other number. */
static inline s32 special_bits(unsigned type)
{
    switch ((enum sim_element)type) {
    case SIM_E_F16: return 0x7c00;
    case SIM_E_BF16: return 0x7f80;
    case SIM_E_TF32: return 0x7f800000;
    case SIM_E_E5M2: return 0x7c;
    default: return 0x7f;
    }
}

/* The columns whose sums an Inf or a NaN goes into, in one row and for one step of K. */
static inline void find_specials(const struct sim_mma *m, const struct raw *raw, unsigned r,
                                 unsigned k0, unsigned k1, const v8 *c, v8 *is)
{
    const s32 a = special_bits(m->a_type), b = special_bits(m->b_type),
              inf = m->half ? 0x7c00 : 0x7f800000;
    v8 found = (*c & inf) == inf;
    for (unsigned k = k0; k < k1; k++)
        found |= (((v8)raw->b[k] & b) == b) | -((raw->a[r][k] & (u32)a) == (u32)a);
    *is = found;
}

/* Replaces what an Inf or a NaN of A, B or C goes into, in one row and for one step of K: such sums
 * need no rounding. */
static void set_specials(const struct sim_mma *m, const struct raw *raw, unsigned r, unsigned k0,
                         unsigned k1, const v8 *c, v8 *d)
{
    v8 is;
    find_specials(m, raw, r, k0, k1, c, &is);
    for (unsigned i = 0; i < COLS; i++) {
        if (!is[i])
            continue;
        f64 sum = m->half ? (f64)up_f16((u32)(*c)[i]) : (f64)from32((u32)(*c)[i]);
        for (unsigned k = k0; k < k1; k++)
            sum += value(raw->a[r][k], m->a_type) * value(raw->b[k][i], m->b_type);
        const u32 nan = m->half ? 0x7fff : 0x7fffffff, inf = m->half ? 0x7c00 : 0x7f800000;
        const u32 sign = sum < 0 ? (m->half ? 0x8000 : 0x80000000) : 0;
        (*d)[i] = (s32)(isnan(sum) ? nan : sign | inf);
    }
}

static inline bool all_finite(const struct sim_mma *m, const v8 *c)
{
    const s32 inf = m->half ? 0x7c00 : 0x7f800000;
    const v8 special = (*c & inf) == inf;
    return !ANY(special);
}

/* enum seen, of all of A, of eight columns of B */
static inline u32 decode_a(const struct sim_mma *m, const struct raw *raw, struct floats *f)
{
    const v8 all = {-1, -1, -1, -1, -1, -1, -1, -1}, four = {-1, -1, -1, -1};
    u32 seen = 0;
    for (unsigned r = 0; r < m->m; r++)
        seen |= decode_any((const v8u *)raw->a[r], (v8 *)f->a_sig[r], (v8 *)f->a_exp[r],
                           (v8f *)f->a_val[r], (m->k + 7u) / 8, m->k < 8 ? &four : &all, m->a_type,
                           m->as_f16);
    return seen;
}

static inline u32 decode_b(const struct sim_mma *m, const struct raw *raw, struct floats *f)
{
    const v8 all = {-1, -1, -1, -1, -1, -1, -1, -1};
    return decode_any(raw->b, f->b_sig, f->b_exp, f->b_val, m->k, &all, m->b_type, m->as_f16);
}

/* D = A B + C for the first m->m rows; seen: enum seen, of A and B. */
static inline void sum_all(const struct sim_mma *m, const struct raw *raw, const struct floats *f,
                           u32 seen, const v8 c[ROWS], v8 d[ROWS])
{
    for (unsigned r = 0; r < m->m; r++) {
        struct sums s;
        d[r] = c[r];
        for (unsigned k = 0; k < m->k; k += m->step) {
            const unsigned end = k + m->step < m->k ? k + m->step : m->k;
            const v8 old = d[r];
            sum_row(m, f, seen, r, k, end, &old, &s);
            finish(m, &s, &d[r]);
            if (seen & SEEN_SPECIAL || !all_finite(m, &old))
                set_specials(m, raw, r, k, end, &old, &d[r]);
        }
    }
}

/* ---- integers -------------------------------------------------------------------------------- */

static inline void add_c(const struct sim_mma *m, const v8 *products, const v8 *old, v8 *to)
{
    const v8 sum = *products, c = *old;
    const v8 d = (v8)((v8u)sum + (v8u)c), over = (sum ^ d) & (c ^ d); /* sign bit: it wrapped */
    const v8 wrapped = m->saturate ? over >> 31 : (v8){0},
             limit = (v8)((v8u)(c >> 31) ^ 0x7fffffffu);
    *to = (wrapped & limit) | (~wrapped & d);
}

#endif
