/* Element types and their conversions, bit-exact.
 *
 * A new type is a row of dtype.def. A switch over types has no default, so that the compiler names
 * each one that the type has to be added to.
 *
 * Packed 4-bit types hold two elements to a byte, the even index in the low nibble. e4m3 is the
 * finite-only "fn" variant (no infinity, NaN = 0x7f/0xff, largest 448), e5m2 is IEEE-like (largest
 * finite 57344). Storing rounds to nearest, ties to even; fp8 stores saturate to the largest finite
 * value and NaN becomes 0x7f, as cvt.rn.satfinite does (PTX ISA, cvt).
 */
#ifndef KAIO_DATA_DTYPE_H
#define KAIO_DATA_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
#define X(NAME, ...) DT_##NAME,
#include "data/dtype.def"
#undef X
    DT_COUNT,
    DT_VOID = DT_COUNT, /* no type: a statement-like call, an expression with an error */
    DT_LAST_FLOAT = DT_E5M2,
};

enum dtype_class { DTC_F, DTC_I, DTC_U, DTC_B };

const char *dtype_name(enum dtype t);
enum dtype_class dtype_class(enum dtype t);
unsigned dtype_bits(enum dtype t);
/* Both the short names and the aliases. False when there is no such type. */
bool dtype_parse(const char *s, size_t len, enum dtype *t);
const char *dtype_npy(enum dtype t);  /* the descr written to npy files */
const char *const *dtype_names(void); /* the short names, NULL at the end: for diag_nearest */

static inline bool dtype_is_float(enum dtype t)
{
    return t <= DT_LAST_FLOAT;
}
static inline bool dtype_is_int(enum dtype t)
{
    return t != DT_BOOL && t > DT_LAST_FLOAT && t < DT_COUNT;
}
/* A type to store only: arithmetic is done in a wider one. */
static inline bool dtype_is_fp8(enum dtype t)
{
    return t == DT_E4M3 || t == DT_E5M2;
}
/* Bytes that n elements take; n is even for packed types. */
size_t dtype_bytes(enum dtype t, size_t n);

/* Floats: significand bits with the hidden one (24 for f32) and the unit roundoff 2^-p. */
unsigned dtype_precision(enum dtype t);
double dtype_roundoff(enum dtype t);
double dtype_max(enum dtype t);      /* largest finite value (float or integer) as a double */
double dtype_min(enum dtype t);      /* most negative value */
double dtype_smallest(enum dtype t); /* smallest positive value, subnormals included (floats) */
int64_t dtype_imin(enum dtype t);    /* integers */
uint64_t dtype_imax(enum dtype t);

/* Rounding a double to the type's grid and back, to nearest even; fp8 saturates, the others
 * overflow to infinity. */
double dtype_round(enum dtype t, double v);

/* Element i of an array at p, little-endian. Floats and integers to and from double; integers wider
 * than 53 bits lose precision, so integer code uses the _int forms (two's complement in 64 bits,
 * stored modulo 2^bits). dtype_set on an integer type truncates towards zero and saturates, NaN
 * gives 0. */
double dtype_get(enum dtype t, const void *p, size_t i);
void dtype_set(enum dtype t, void *p, size_t i, double v);
int64_t dtype_get_int(enum dtype t, const void *p, size_t i);
void dtype_set_int(enum dtype t, void *p, size_t i, int64_t v);
/* Elements i .. i + n - 1 at once, as dtype_get and dtype_set do one by one. */
void dtype_load(enum dtype t, const void *p, size_t i, size_t n, double *out);
void dtype_store(enum dtype t, void *p, size_t i, size_t n, const double *v);

/* The bit-level conversions, for the simulator too. All round to nearest even. */
double half_to_double(uint16_t h);
float half_to_float(uint16_t h);
uint16_t half_from_double(double v); /* rounds once, from the exact double */
uint16_t half_from_float(float v);
float bf16_to_float(uint16_t b);
uint16_t bf16_from_float(float v);
uint16_t bf16_from_double(double v); /* rounds once */
/* A value of f32 that has 10 bits of mantissa, as what the tensor cores multiply; halves are
 * rounded away from zero. */
double tf32_from_double(double v);
double tf32_even_from_double(double v); /* the same, halves to even */
double tf32_cut_from_double(double v);  /* the same towards zero */
float e4m3_to_float(uint8_t b);
uint8_t e4m3_from_double(double v);
float e5m2_to_float(uint8_t b);
uint8_t e5m2_from_double(double v);

#endif
