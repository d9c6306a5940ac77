/* Tensors made from a formula: the same bytes on every machine.
 *
 *   @zeros @ones @const:V
 *   @arange              0, 1, 2, ... in row-major order; integers wrap, floats round
 *   @uniform[:SEED]      floats in [0, 1): multiples of 2^-p, p the type's precision (at most 32),
 *                        so that rounding cannot reach 1; bool: false or true
 *   @normal[:SEED]       floats: the standard normal distribution, rounded to the type
 *   @randint:LO:HI[:SEED]  whole numbers from LO to HI - 1, of any type that can hold them exactly
 *   @sorted:LO:HI[:SEED]   the same, none less than the one before it
 *   @offsets:TOTAL[:SEED]  where rows begin: the first 0, the last TOTAL, none less than the one
 *                          before it
 *
 * A random element is a function of (seed, stream, index) through Philox4x32-10: one 32-bit word an
 * element (for randint over more than 2^32 numbers, two), so a longer tensor begins with a shorter
 * one's values, and the values of different types are roundings of the same numbers (but for what
 * is sorted, which depends on the number of elements). With a seed the stream is 0; without one the
 * seed is 0 and the
 * stream is made of the name, so that  x=@normal y=@normal  are independent.
 *
 * normal inverts the cumulative distribution: M. Wichura, "Algorithm AS 241: the percentage points
 * of the normal distribution", Applied Statistics 37 (1988), with a logarithm of our own; only IEEE
 * + - * / sqrt are used, so no machine's mathematical library matters. The largest magnitude is
 * 6.34.
 */
#ifndef KAIO_DATA_GENERATE_H
#define KAIO_DATA_GENERATE_H

#include "base/diag.h"
#include "data/buffer.h"

enum generator_kind {
    GEN_ZEROS,
    GEN_ONES,
    GEN_CONST,
    GEN_ARANGE,
    GEN_UNIFORM,
    GEN_NORMAL,
    GEN_RANDINT,
    GEN_SORTED,
    GEN_OFFSETS,
};

struct generator {
    enum generator_kind kind;
    const char *text;  /* as written, for messages */
    const char *value; /* GEN_CONST: the text of V */
    int64_t lo, hi;    /* whole numbers: lo <= element < hi */
    uint64_t seed, stream;
};

/* Reads "@..." of len bytes; name is the tensor's, for the stream and the messages. *used is how
 * many bytes belonged to the generator: what follows a ':' that can't be a seed is left to the
 * caller. */
bool generator_parse(struct arena *a, const char *name, const char *text, size_t len,
                     struct generator *g, size_t *used, struct diags *d);
/* Fills b->data. An error when the type cannot hold the values. */
bool generator_fill(const struct generator *g, const char *name, struct buffer *b, struct diags *d);

/* The standard normal variate that a 32-bit word stands for. */
double normal_from_word(uint32_t word);

#endif
