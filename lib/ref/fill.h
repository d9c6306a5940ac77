/* Input data for checking a kernel against its spec.
 *
 *   exact    small whole numbers, so small that sums of their products over the largest dimension
 *            are representable in f32: where the spec only adds and multiplies, equality is
 *            demanded
 *   normal   the standard normal distribution
 *   uniform  [0, 1); integers over their whole type
 *   edge     one element in four (less where sums would be nothing but NaN) is special: zeros of
 *            both signs, subnormals, the smallest normal, one, the largest, infinities, NaN; the
 *            others have magnitudes from 2^-12 to 2^8, all equally likely (integers: the ends of
 *            the type, 0, 1, -1)
 *   extreme  whole rows of one kind (a row: what a reduction of the spec takes together): constant,
 *            all but constant, zeros of both signs, -infinity, NaN, one NaN or infinity among
 *            numbers, subnormals, the largest numbers of one sign or of both, rising, falling, one
 *            spike, half of it -infinity, 0 and -infinity (exponentials of which are counted
 *            exactly), far from zero; and normal ones between them
 *
 * Integers that the reference uses as subscripts stay inside what they subscript, shift counts
 * below the width, divisors away from zero. The same (seed, name, index) gives the same element on
 * every machine.
 */
#ifndef KAIO_REF_FILL_H
#define KAIO_REF_FILL_H

#include "data/buffer.h"
#include "ref/ref.h"

enum fill_kind { FILL_EXACT, FILL_NORMAL, FILL_UNIFORM, FILL_EDGE, FILL_EXTREME, FILL_KINDS };
extern const char *const fill_names[]; /* NULL at the end */

/* What the oracle does with one parameter. */
struct fill_use {
    bool subscript;  /* its elements select elements: 0 <= value < extent */
    uint64_t extent; /* the smallest of what they select from */
    bool padded;     /* only through pad(): one in eight may lie outside */
    bool divisor, shift;
    uint32_t
        reduced; /* bit d: a reduction runs along its dimension d, perhaps through intermediates */
};

/* Can the spec's outputs be exact? They can if it has nothing but + - *, min, max, abs, conditions,
 * conversions and reductions. */
bool fill_can_be_exact(const struct spec *s);
/* What the spec does with parameter `param`; in->buffers is not looked at. */
struct fill_use fill_use_of(const struct ref_input *in, const struct spec_param *param);
/* The largest dimension if the spec reduces over anything, else 1: how many terms a sum may
 * have. */
uint64_t fill_terms(const struct ref_input *in);
/* Fills b (shaped, with memory). terms: fill_terms(). */
void fill_buffer(enum fill_kind kind, uint64_t seed, const char *name, const struct fill_use *use,
                 uint64_t terms, struct buffer *b);
/* Is so much of the reference NaN that inputs of another kind would show more? Logarithms and roots
 * want positive numbers. */
bool fill_makes_nan(const struct ref *r);

#endif
