#include <config.h>

#include "kernels/scalar.h"

#include <math.h>

static bool is_signed(enum dtype t)
{
    return dtype_class(t) == DTC_I;
}

static unsigned width(enum dtype t)
{
    return dtype_bits(t);
}

/* ---- making values --------------------------------------------------------------------------- */

union scalar scalar_int(enum dtype t, uint64_t v)
{
    unsigned bits = width(t);
    if (t == DT_BOOL)
        return (union scalar){.u = v != 0};
    if (bits < 64) {
        v &= (UINT64_C(1) << bits) - 1;
        if (is_signed(t) && v >> (bits - 1))
            v |= UINT64_MAX << bits;
    }
    return (union scalar){.u = v};
}

union scalar scalar_float(enum dtype t, double v)
{
    if (t == DT_F64)
        return (union scalar){.f = v};
    if (t == DT_F32)
        return (union scalar){.f = (double)(float)v};
    return (union scalar){.f = dtype_round(t, v)};
}

union scalar scalar_load(enum dtype t, const void *p, size_t index)
{
    if (dtype_is_float(t))
        return (union scalar){.f = dtype_get(t, p, index)};
    return scalar_int(t, (uint64_t)dtype_get_int(t, p, index));
}

void scalar_store(enum dtype t, void *p, size_t index, union scalar v)
{
    if (dtype_is_float(t))
        dtype_set(t, p, index, v.f);
    else
        dtype_set_int(t, p, index, v.i);
}

/* ---- conversions ----------------------------------------------------------------------------- */

bool scalar_is_true(enum dtype t, union scalar v)
{
    return dtype_is_float(t) ? v.f != 0 : v.u != 0; /* NaN is not 0 */
}

/* Rounds once: what does not fit a double's 53 bits is cut, and the last bit tells that something
 * was there ("round to odd"), which the second rounding, to far fewer bits, then respects. */
static union scalar float_of_int(enum dtype from, enum dtype to, union scalar v)
{
    bool negative = is_signed(from) && v.i < 0;
    uint64_t m = negative ? 0 - v.u : v.u;
    if (to == DT_F64)
        return (union scalar){.f = is_signed(from) ? (double)v.i : (double)v.u};
    int shift = 0;
    for (; m >> 53; shift++)
        m = m >> 1 | (m & 1);
    double d = ldexp((double)m, shift);
    return scalar_float(to, negative ? -d : d);
}

static union scalar int_of_float(enum dtype to, double v)
{
    unsigned bits = width(to);
    if (isnan(v))
        return (union scalar){.u = 0};
    v = trunc(v);
    double limit = ldexp(1, (int)bits - (is_signed(to) ? 1 : 0)); /* the first that is too large */
    if (v >= limit)
        return (union scalar){.u = dtype_imax(to)};
    if (!is_signed(to))
        return (union scalar){.u = v <= 0 ? 0 : (uint64_t)v};
    return (union scalar){.i = v < -limit ? dtype_imin(to) : (int64_t)v};
}

union scalar scalar_convert(enum dtype from, enum dtype to, union scalar v)
{
    bool ff = dtype_is_float(from), tf = dtype_is_float(to);
    if (from == to)
        return v;
    if (to == DT_BOOL)
        return (union scalar){.u = scalar_is_true(from, v)};
    if (ff)
        return tf ? scalar_float(to, v.f) : int_of_float(to, v.f);
    return tf ? float_of_int(from, to, v) : scalar_int(to, v.u);
}

/* ---- operators ------------------------------------------------------------------------------- */

static union scalar truth(bool v)
{
    return (union scalar){.u = v};
}

static union scalar float_binary(enum lang_op op, enum dtype t, double x, double y)
{
    float a = (float)x, b = (float)y;
    bool narrow = t != DT_F64;
    switch (op) {
    case OP_ADD: return (union scalar){.f = narrow ? (double)(a + b) : x + y};
    case OP_SUB: return (union scalar){.f = narrow ? (double)(a - b) : x - y};
    case OP_MUL: return (union scalar){.f = narrow ? (double)(a * b) : x * y};
    case OP_DIV: return (union scalar){.f = narrow ? (double)(a / b) : x / y};
    case OP_LT: return truth(x < y);
    case OP_GT: return truth(x > y);
    case OP_LE: return truth(x <= y);
    case OP_GE: return truth(x >= y);
    case OP_EQ: return truth(x == y);
    default: return truth(x != y);
    }
}

static union scalar divide(enum lang_op op, enum dtype t, union scalar x, union scalar y)
{
    bool quotient = op == OP_DIV;
    if (y.u == 0) /* whatever the hardware makes of it */
        return scalar_int(t, UINT64_MAX);
    if (is_signed(t) && y.i == -1) /* the least number wraps */
        return scalar_int(t, quotient ? 0 - x.u : 0);
    if (is_signed(t))
        return scalar_int(t, (uint64_t)(quotient ? x.i / y.i : x.i % y.i));
    return scalar_int(t, quotient ? x.u / y.u : x.u % y.u);
}

/* A count of the width or more, or a negative one, shifts everything out. */
static union scalar shift(enum lang_op op, enum dtype t, enum dtype count, union scalar x,
                          union scalar n)
{
    unsigned bits = width(t);
    if (width(count) <= 32)
        n.u = (uint32_t)n.u;
    if (n.u >= bits)
        return (union scalar){.i = op == OP_SHR && is_signed(t) && x.i < 0 ? -1 : 0};
    if (op == OP_SHL)
        return scalar_int(t, x.u << n.u);
    return is_signed(t) ? (union scalar){.i = x.i >> n.u} : (union scalar){.u = x.u >> n.u};
}

static union scalar int_compare(enum lang_op op, enum dtype t, union scalar x, union scalar y)
{
    bool less = is_signed(t) ? x.i < y.i : x.u < y.u, equal = x.u == y.u;
    switch (op) {
    case OP_LT: return truth(less);
    case OP_GT: return truth(!less && !equal);
    case OP_LE: return truth(less || equal);
    case OP_GE: return truth(!less);
    case OP_EQ: return truth(equal);
    default: return truth(!equal);
    }
}

union scalar scalar_binary(enum lang_op op, enum dtype t, enum dtype count, union scalar x,
                           union scalar y)
{
    if (dtype_is_float(t))
        return float_binary(op, t, x.f, y.f);
    switch (op) {
    case OP_ADD: return scalar_int(t, x.u + y.u);
    case OP_SUB: return scalar_int(t, x.u - y.u);
    case OP_MUL: return scalar_int(t, x.u * y.u);
    case OP_DIV:
    case OP_MOD: return divide(op, t, x, y);
    case OP_SHL:
    case OP_SHR: return shift(op, t, count, x, y);
    case OP_AND: return (union scalar){.u = x.u & y.u};
    case OP_XOR: return (union scalar){.u = x.u ^ y.u};
    case OP_OR: return (union scalar){.u = x.u | y.u};
    default: return int_compare(op, t, x, y);
    }
}

union scalar scalar_unary(enum lang_op op, enum dtype t, union scalar x)
{
    switch (op) {
    case OP_NOT: return truth(!scalar_is_true(t, x));
    case OP_BITNOT: return scalar_int(t, ~x.u);
    case OP_NEG: return dtype_is_float(t) ? (union scalar){.f = -x.f} : scalar_int(t, 0 - x.u);
    default: return x;
    }
}

union scalar scalar_fma(enum dtype t, union scalar x, union scalar y, union scalar z)
{
    if (t == DT_F64)
        return (union scalar){.f = fma(x.f, y.f, z.f)};
    return (union scalar){.f = (double)fmaf((float)x.f, (float)y.f, (float)z.f)};
}

/* ---- builtins -------------------------------------------------------------------------------- */

static union scalar extreme(enum dtype t, bool most, union scalar x, union scalar y)
{
    bool less;
    if (!dtype_is_float(t)) {
        less = is_signed(t) ? x.i < y.i : x.u < y.u;
    } else {
        if (isnan(x.f))
            return y;
        if (isnan(y.f))
            return x;
        less = x.f == y.f ? signbit(x.f) && !signbit(y.f) : x.f < y.f;
    }
    return less == most ? y : x;
}

union scalar scalar_min(enum dtype t, union scalar x, union scalar y)
{
    return extreme(t, false, x, y);
}

union scalar scalar_max(enum dtype t, union scalar x, union scalar y)
{
    return extreme(t, true, x, y);
}

/* Away from zero by the fraction, which is exact. */
static double round_away(double v)
{
    double t = trunc(v);
    return fabs(v - t) >= 0.5 ? t + copysign(1, v) : t;
}

static union scalar rounded(enum lang_builtin fn, double v)
{
    switch (fn) {
    case FN_FLOOR: return (union scalar){.f = floor(v)};
    case FN_CEIL: return (union scalar){.f = ceil(v)};
    case FN_TRUNC: return (union scalar){.f = trunc(v)};
    case FN_RINT: return (union scalar){.f = rint(v)};
    default: return (union scalar){.f = round_away(v)};
    }
}

static union scalar ceil_div(enum dtype t, union scalar x, union scalar y)
{
    union scalar q = divide(OP_DIV, t, x, y), r = divide(OP_MOD, t, x, y);
    bool up = r.u != 0 && (!is_signed(t) || (r.i < 0) == (y.i < 0));
    return scalar_int(t, q.u + up);
}

static union scalar reverse(enum dtype t, uint64_t v)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < width(t); i++)
        r |= (v >> i & 1) << (width(t) - 1 - i);
    return scalar_int(t, r);
}

/* Bits outside of x are copies of its sign if it is signed, else 0; start and length count modulo
 * 256. */
static union scalar extract(enum dtype t, union scalar x, uint64_t start, uint64_t length)
{
    unsigned bits = width(t), from = start & 255, n = length & 255;
    unsigned last = from + n - 1 < bits - 1 ? from + n - 1 : bits - 1;
    bool sign = is_signed(t) && n && x.u >> last & 1;
    uint64_t r = 0;
    for (unsigned i = 0; i < bits; i++) {
        bool inside = i < n && from + i < bits;
        r |= (uint64_t)(inside ? x.u >> (from + i) & 1 : sign) << i;
    }
    return scalar_int(t, r);
}

static union scalar insert(enum dtype t, union scalar x, union scalar into, uint64_t start,
                           uint64_t length)
{
    unsigned bits = width(t), from = start & 255, n = length & 255;
    uint64_t r = into.u;
    for (unsigned i = 0; i < n && from + i < bits; i++)
        r = (r & ~(UINT64_C(1) << (from + i))) | (x.u >> i & 1) << (from + i);
    return scalar_int(t, r);
}

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

static union scalar mul_high(enum dtype t, union scalar x, union scalar y)
{
    uint64_t r = is_signed(t) ? (uint64_t)(((wide)x.i * y.i) >> width(t))
                              : (uint64_t)(((uwide)x.u * y.u) >> width(t));
    return scalar_int(t, r);
}

static union scalar dot4(enum dtype t, const enum dtype *type, const union scalar *x)
{
    uint64_t sum = x[2].u;
    for (unsigned i = 0; i < 4; i++) {
        union scalar a = scalar_int(is_signed(type[0]) ? DT_I8 : DT_U8, x[0].u >> 8 * i);
        union scalar b = scalar_int(is_signed(type[1]) ? DT_I8 : DT_U8, x[1].u >> 8 * i);
        sum += a.u * b.u;
    }
    return scalar_int(t, sum);
}

static union scalar bit_cast(enum dtype from, enum dtype to, union scalar v)
{
    unsigned char bytes[8] = {0};
    scalar_store(from, bytes, 0, v);
    return scalar_load(to, bytes, 0);
}

static unsigned leading_zeros(enum dtype t, uint64_t v)
{
    unsigned n = 0;
    while (n < width(t) && !(v >> (width(t) - 1 - n) & 1))
        n++;
    return n;
}

static bool bits_call(enum lang_builtin fn, enum dtype t, const enum dtype *type,
                      const union scalar *x, union scalar *r)
{
    uint64_t low = width(type[0]) == 64 ? x[0].u : (uint32_t)x[0].u;
    switch (fn) {
    case FN_POPC: r->u = (uint64_t)__builtin_popcountll(low); return true;
    case FN_CLZ: r->u = leading_zeros(type[0], low); return true;
    case FN_BREV: *r = reverse(t, x[0].u); return true;
    case FN_BFE: *r = extract(t, x[0], x[1].u, x[2].u); return true;
    case FN_BFI: *r = insert(t, x[0], x[1], x[2].u, x[3].u); return true;
    case FN_MULHI: *r = mul_high(t, x[0], x[1]); return true;
    case FN_DP4A: *r = dot4(t, type, x); return true;
    case FN_CEIL_DIV: *r = ceil_div(t, x[0], x[1]); return true;
    case FN_AS_U32:
    case FN_AS_I32:
    case FN_AS_F32:
    case FN_AS_U64:
    case FN_AS_I64:
    case FN_AS_F64:
    case FN_AS_U16:
    case FN_AS_F16:
    case FN_AS_BF16: *r = bit_cast(type[0], t, x[0]); return true;
    default: return false;
    }
}

bool scalar_call(enum lang_builtin fn, enum dtype t, const enum dtype *type, const union scalar *x,
                 union scalar *r)
{
    union scalar zero = {0}, one = {.f = 1}; /* 0 and 0.0 have the same bits */
    switch (fn) {
    case FN_ABS:
        *r = dtype_is_float(t) ? (union scalar){.f = fabs(x[0].f)}
             : x[0].i < 0      ? scalar_int(t, 0 - x[0].u)
                               : x[0];
        return true;
    case FN_MIN: *r = scalar_min(t, x[0], x[1]); return true;
    case FN_MAX: *r = scalar_max(t, x[0], x[1]); return true;
    case FN_CLAMP: *r = scalar_min(t, scalar_max(t, x[0], x[1]), x[2]); return true;
    case FN_RELU: *r = scalar_max(t, x[0], zero); return true;
    case FN_FLOOR:
    case FN_CEIL:
    case FN_TRUNC:
    case FN_ROUND:
    case FN_RINT: *r = rounded(fn, x[0].f); return true;
    case FN_TF32: r->f = tf32_from_double(x[0].f); return true;
    case FN_TF32_RN: r->f = tf32_even_from_double(x[0].f); return true;
    case FN_TF32_RZ: r->f = tf32_cut_from_double(x[0].f); return true;
    case FN_SQRT: /* the double root of a float, rounded, is the float's root */
        *r = scalar_float(t, sqrt(x[0].f));
        return true;
    case FN_COPYSIGN: r->f = copysign(x[0].f, x[1].f); return true;
    case FN_RCP: *r = float_binary(OP_DIV, t, one.f, x[0].f); return true;
    case FN_FMA: *r = scalar_fma(t, x[0], x[1], x[2]); return true;
    case FN_ISNAN: *r = truth(isnan(x[0].f)); return true;
    case FN_ISINF: *r = truth(isinf(x[0].f)); return true;
    default: return bits_call(fn, t, type, x, r) || library_call(lang_builtin_name(fn), t, x, r);
    }
}

/* ---- random numbers -------------------------------------------------------------------------- */

void scalar_philox(uint64_t seed, uint64_t counter, uint64_t stream, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                     (uint32_t)(stream >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xd2511f53) * c[0], p1 = UINT64_C(0xcd9e8d57) * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
        memcpy(c, next, sizeof c);
        k0 += 0x9e3779b9; /* the golden ratio */
        k1 += 0xbb67ae85; /* sqrt(3) - 1 */
    }
    memcpy(out, c, sizeof c);
}
