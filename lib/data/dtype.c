#include <config.h>

#include "data/dtype.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "element bytes are little-endian");

struct row {
    const char *name;
    unsigned bits;
    enum dtype_class cls;
    const char *npy;
    const char *alias;  /* separated by spaces */
    unsigned precision; /* these three of floats */
    double max;
    double smallest;
};

static const struct row rows[DT_COUNT] = {
#define X(NAME, name, bits, cls, npy, alias, precision, max, smallest) \
    [DT_##NAME] = {name, bits, DTC_##cls, npy, alias, precision, max, smallest},
#include "data/dtype.def"
#undef X
};

#define X(NAME, name, bits, cls, ...)                                    \
    _Static_assert((DTC_##cls == DTC_F) == (DT_##NAME <= DT_LAST_FLOAT), \
                   "floats come first, up to DT_LAST_FLOAT");
#include "data/dtype.def"
#undef X

/* A binary floating format narrower than double. */
struct format {
    unsigned mant; /* stored significand bits */
    int bias;
    uint32_t max;  /* code of the largest finite value */
    uint32_t inf;  /* what overflows become: infinity, or the largest finite value (fp8) */
    uint32_t nan;  /* what NaN becomes */
    uint32_t sign; /* the sign bit */
};

/* PTX's canonical NaN has every bit but the sign set (PTX ISA, cvt and half precision
 * instructions). */
static const struct format fmt_half = {10, 15, 0x7bff, 0x7c00, 0x7fff, 0x8000};
static const struct format fmt_bf16 = {7, 127, 0x7f7f, 0x7f80, 0x7fff, 0x8000};
static const struct format fmt_e4m3 = {3, 7, 0x7e, 0x7e, 0x7f, 0x80};
static const struct format fmt_e5m2 = {2, 15, 0x7b, 0x7b, 0x7f, 0x80};

static uint64_t double_bits(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static double bits_double(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static uint32_t float_bits(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static float bits_float(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* v / 2^shift to nearest, ties to even; shift >= 1. */
static uint64_t shift_round(uint64_t v, unsigned shift)
{
    if (shift > 63)
        return 0; /* v < 2^53, so less than half a unit */
    uint64_t half = (uint64_t)1 << (shift - 1), rest = v & (2 * half - 1), q = v >> shift;
    return q + (rest > half || (rest == half && (q & 1)));
}

/* The code of v in f, rounded once. A carry out of the significand moves to the next exponent by
 * itself, from the subnormals to the normals too, because codes are ordered as magnitudes are. */
static uint32_t encode(const struct format *f, double v)
{
    uint64_t u = double_bits(v), mant = u & ((UINT64_C(1) << 52) - 1);
    int exp = (int)(u >> 52 & 0x7ff);
    uint32_t sign = u >> 63 ? f->sign : 0, code;
    if (exp == 0x7ff)
        return mant ? f->nan : sign | f->inf;
    if (exp == 0)
        return sign; /* subnormal doubles are far below every format's smallest half */
    mant |= UINT64_C(1) << 52;
    int e = exp - 1023 + f->bias; /* the exponent field, if v is normal in f */
    if (e >= 1)
        code = (uint32_t)(((uint64_t)(e - 1) << f->mant) + shift_round(mant, 52 - f->mant));
    else
        code = (uint32_t)shift_round(mant, 52 - f->mant + (unsigned)(1 - e));
    if (code > f->max)
        code = f->inf;
    return sign | code;
}

static double decode(const struct format *f, uint32_t code)
{
    uint32_t mag = code & (f->sign - 1);
    double v;
    if (mag > f->max)
        v = mag == f->inf ? INFINITY : NAN;
    else if (mag >> f->mant)
        v = bits_double(((uint64_t)mag << (52 - f->mant)) + ((uint64_t)(1023 - f->bias) << 52));
    else
        v = (double)mag * bits_double((uint64_t)(1024 - f->bias - (int)f->mant) << 52);
    return code & f->sign ? -v : v;
}

float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = h & 0x7fff;
    if (mag >= 0x7c00) /* the payload is kept */
        return bits_float(sign | 0x7f800000 | (mag & 0x3ff) << 13);
    if (mag >= 0x400)
        return bits_float(sign | ((mag << 13) + ((127 - 15) << 23)));
    return bits_float(sign | float_bits((float)mag * 0x1p-24f));
}

double half_to_double(uint16_t h)
{
    return (double)half_to_float(h);
}

uint16_t half_from_double(double v)
{
    return (uint16_t)encode(&fmt_half, v);
}

uint16_t half_from_float(float v)
{
    uint32_t u = float_bits(v), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
    if (mag > 0x7f800000)
        return 0x7fff;
    if (mag >= 0x477ff000) /* 65520: half way from the largest half to 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (mag <
        0x38800000) /* below 2^-14: adding 0.5 leaves the subnormal in the low bits, rounded */
        return (uint16_t)(sign | (float_bits(bits_float(mag) + 0.5f) - 0x3f000000));
    mag -= (127 - 15) << 23;
    return (uint16_t)(sign | (mag + 0xfff + (mag >> 13 & 1)) >> 13);
}

float bf16_to_float(uint16_t b)
{
    return bits_float((uint32_t)b << 16);
}

uint16_t bf16_from_float(float v)
{
    uint32_t u = float_bits(v);
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

uint16_t bf16_from_double(double v)
{
    return (uint16_t)encode(&fmt_bf16, v);
}

static double to_tf32(double v, double (*integral)(double))
{
    int e;
    if (!isfinite(v))
        return v;
    frexp(v, &e);
    const int unit = e - 11 > -136 ? e - 11 : -136; /* the exponent of the last bit */
    const double r = ldexp(integral(ldexp(v, -unit)), unit);
    return fabs(r) >= 0x1p128 ? copysign(INFINITY, v) : r;
}

double tf32_from_double(double v)
{
    return to_tf32(v, round);
}

double tf32_even_from_double(double v)
{
    return to_tf32(v, rint);
}

double tf32_cut_from_double(double v)
{
    return to_tf32(v, trunc);
}

float e4m3_to_float(uint8_t b)
{
    return (float)decode(&fmt_e4m3, b);
}

uint8_t e4m3_from_double(double v)
{
    return (uint8_t)encode(&fmt_e4m3, v);
}

float e5m2_to_float(uint8_t b)
{
    /* e5m2 is the upper byte of a half, infinities and NaN included */
    return half_to_float((uint16_t)(b << 8));
}

uint8_t e5m2_from_double(double v)
{
    return (uint8_t)encode(&fmt_e5m2, v);
}

const char *dtype_name(enum dtype t)
{
    return t < DT_COUNT ? rows[t].name : "void";
}

enum dtype_class dtype_class(enum dtype t)
{
    return rows[t].cls;
}

unsigned dtype_bits(enum dtype t)
{
    return rows[t].bits;
}

const char *dtype_npy(enum dtype t)
{
    return rows[t].npy;
}

static bool same(const char *word, size_t n, const char *s, size_t len)
{
    return n == len && memcmp(word, s, len) == 0;
}

bool dtype_parse(const char *s, size_t len, enum dtype *t)
{
    for (int i = 0; i < DT_COUNT; i++) {
        bool found = same(rows[i].name, strlen(rows[i].name), s, len);
        for (const char *w = rows[i].alias; !found && *w;) {
            size_t n = strcspn(w, " ");
            found = same(w, n, s, len);
            w += n + strspn(w + n, " ");
        }
        if (found) {
            *t = (enum dtype)i;
            return true;
        }
    }
    return false;
}

const char *const *dtype_names(void)
{
    static const char *const names[] = {
#define X(NAME, name, ...) name,
#include "data/dtype.def"
#undef X
        NULL,
    };
    return names;
}

size_t dtype_bytes(enum dtype t, size_t n)
{
    return rows[t].bits == 4 ? n / 2 + n % 2 : n * (rows[t].bits / 8);
}

unsigned dtype_precision(enum dtype t)
{
    return t < DT_COUNT ? rows[t].precision : 0;
}

double dtype_roundoff(enum dtype t)
{
    return dtype_is_float(t) ? ldexp(1, -(int)dtype_precision(t)) : 0;
}

double dtype_max(enum dtype t)
{
    return dtype_is_float(t) ? rows[t].max : (double)dtype_imax(t);
}

double dtype_min(enum dtype t)
{
    return dtype_is_float(t) ? -dtype_max(t) : (double)dtype_imin(t);
}

double dtype_smallest(enum dtype t)
{
    return t < DT_COUNT ? rows[t].smallest : 1;
}

int64_t dtype_imin(enum dtype t)
{
    return rows[t].cls == DTC_I ? (int64_t)(UINT64_MAX << (rows[t].bits - 1)) : 0;
}

uint64_t dtype_imax(enum dtype t)
{
    switch (rows[t].cls) {
    case DTC_I: return UINT64_MAX >> (65 - rows[t].bits);
    case DTC_U: return UINT64_MAX >> (64 - rows[t].bits);
    case DTC_B: return 1;
    case DTC_F: break;
    }
    return 0;
}

/* v truncated towards zero and clamped to the type's range, as 64 bits of two's complement. */
static int64_t to_int(enum dtype t, double v)
{
    if (isnan(v))
        return 0;
    if (v <= dtype_min(t))
        return dtype_imin(t);
    /* for 64-bit types the double is one above the largest value */
    if (v >= dtype_max(t))
        return (int64_t)dtype_imax(t);
    return rows[t].cls == DTC_I ? (int64_t)v : (int64_t)(uint64_t)v;
}

/* v as a double that a narrower format rounds as it would round v: bits that do not fit are kept as
 * one sticky bit (rounding to odd), so that nothing is rounded twice. */
static double sticky_double(int64_t v)
{
    uint64_t m = v < 0 ? -(uint64_t)v : (uint64_t)v;
    if (m >> 53)
        m = (m & ~(uint64_t)0xfff) | (uint64_t)((m & 0xfff) != 0) << 11;
    return v < 0 ? -(double)m : (double)m;
}

static double int_value(enum dtype t, int64_t v)
{
    return t == DT_U64 ? (double)(uint64_t)v : (double)v;
}

double dtype_round(enum dtype t, double v)
{
    unsigned char b[8];
    if (t == DT_F64)
        return v;
    dtype_set(t, b, 0, dtype_is_int(t) ? rint(v) : v);
    return dtype_get(t, b, 0);
}

int64_t dtype_get_int(enum dtype t, const void *p, size_t i)
{
    const unsigned char *b = p;
    unsigned bits = rows[t].bits;
    uint64_t u = 0;
    if (dtype_is_float(t))
        return to_int(DT_I64, dtype_get(t, p, i));
    if (bits == 4)
        u = b[i / 2] >> (i % 2 * 4) & 15;
    else
        memcpy(&u, b + i * (bits / 8), bits / 8);
    if (rows[t].cls == DTC_I && bits < 64 && u >> (bits - 1) & 1)
        u |= UINT64_MAX << bits;
    return rows[t].cls == DTC_B ? u != 0 : (int64_t)u;
}

void dtype_set_int(enum dtype t, void *p, size_t i, int64_t v)
{
    unsigned char *b = p;
    unsigned bits = rows[t].bits;
    if (dtype_is_float(t)) {
        dtype_set(t, p, i, t == DT_F64 ? (double)v : sticky_double(v));
    } else if (bits == 4) {
        unsigned shift = i % 2 * 4;
        b[i / 2] = (unsigned char)((b[i / 2] & ~(15u << shift)) | ((unsigned)v & 15) << shift);
    } else {
        uint64_t u = rows[t].cls == DTC_B ? v != 0 : (uint64_t)v;
        memcpy(b + i * (bits / 8), &u, bits / 8);
    }
}

double dtype_get(enum dtype t, const void *p, size_t i)
{
    const unsigned char *b = p;
    uint16_t h;
    float f;
    double v;
    switch (t) {
    case DT_F64: memcpy(&v, b + i * 8, 8); return v;
    case DT_F32: memcpy(&f, b + i * 4, 4); return (double)f;
    case DT_F16: memcpy(&h, b + i * 2, 2); return half_to_double(h);
    case DT_BF16: memcpy(&h, b + i * 2, 2); return (double)bf16_to_float(h);
    case DT_E4M3: return (double)e4m3_to_float(b[i]);
    case DT_E5M2: return (double)e5m2_to_float(b[i]);
    case DT_I64:
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
    case DT_I4:
    case DT_U4: return int_value(t, dtype_get_int(t, p, i));
    case DT_COUNT: break;
    }
    return 0;
}

void dtype_set(enum dtype t, void *p, size_t i, double v)
{
    unsigned char *b = p;
    uint16_t h;
    float f;
    switch (t) {
    case DT_F64: memcpy(b + i * 8, &v, 8); break;
    case DT_F32:
        f = (float)v;
        memcpy(b + i * 4, &f, 4);
        break;
    case DT_F16:
        h = half_from_double(v);
        memcpy(b + i * 2, &h, 2);
        break;
    case DT_BF16:
        h = bf16_from_double(v);
        memcpy(b + i * 2, &h, 2);
        break;
    case DT_E4M3: b[i] = e4m3_from_double(v); break;
    case DT_E5M2: b[i] = e5m2_from_double(v); break;
    case DT_BOOL: b[i] = v != 0; break;
    case DT_I64:
    case DT_I32:
    case DT_I16:
    case DT_I8:
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_I4:
    case DT_U4: dtype_set_int(t, p, i, to_int(t, v)); break;
    case DT_COUNT: break;
    }
}

void dtype_load(enum dtype t, const void *p, size_t i, size_t n, double *out)
{
    const unsigned char *b = p;
    if (t == DT_F64 && n)
        memcpy(out, b + i * 8, n * 8);
    else if (t == DT_F32)
        for (size_t k = 0; k < n; k++)
            out[k] = dtype_get(DT_F32, b, i + k);
    else if (t == DT_F16)
        for (size_t k = 0; k < n; k++)
            out[k] = dtype_get(DT_F16, b, i + k);
    else
        for (size_t k = 0; k < n; k++)
            out[k] = dtype_get(t, b, i + k);
}

void dtype_store(enum dtype t, void *p, size_t i, size_t n, const double *v)
{
    unsigned char *b = p;
    if (t == DT_F64 && n)
        memcpy(b + i * 8, v, n * 8);
    else if (t == DT_F32)
        for (size_t k = 0; k < n; k++)
            dtype_set(DT_F32, b, i + k, v[k]);
    else if (t == DT_F16)
        for (size_t k = 0; k < n; k++)
            dtype_set(DT_F16, b, i + k, v[k]);
    else
        for (size_t k = 0; k < n; k++)
            dtype_set(t, b, i + k, v[k]);
}
