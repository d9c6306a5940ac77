/* Numbers from text that users wrote. The whole text must be the number; the locale plays no part.
 */
#ifndef KAIO_BASE_NUM_H
#define KAIO_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum num_status {
    NUM_OK,
    NUM_SYNTAX, /* not such a number */
    NUM_RANGE,  /* one, but outside the type or bounds */
};

/* Integers: decimal or 0x hexadecimal with an optional sign; decimals may carry one of the suffixes
 * k K M G T (powers of 1000) and Ki Mi Gi Ti (powers of 1024), a fraction ("1.5Ki") or an exponent
 * ("1e6") as long as the value is whole. Bounds are inclusive. *out is written only on NUM_OK. */
enum num_status num_int(const char *s, size_t len, int64_t min, int64_t max, int64_t *out);
enum num_status num_uint(const char *s, size_t len, uint64_t max, uint64_t *out);

/* What strtod() reads in the C locale, hexadecimal floats, "inf" and "nan" included, without
 * leading space. A finite text that overflows is NUM_RANGE; one that underflows gives the nearest
 * double. */
enum num_status num_double(const char *s, size_t len, double *out);

/* The shortest decimal text that num_double() reads back as v, into out (32 bytes): "0.1", "10",
 * "1e-05", "inf", "nan". */
const char *num_print(double v, char out[32]);
/* The same rounded to a number of significant digits; whole numbers below 1e9 are written in
 * full. */
const char *num_print_digits(double v, int digits, char out[32]);

#endif
