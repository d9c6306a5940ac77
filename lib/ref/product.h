/* Sums of products, the way that matrices are multiplied: each factor is evaluated once for the
 * indices that it depends on, and all sums are then formed in one loop over doubles (or 32-bit
 * integers), the magnitudes that their bounds need beside them.
 *
 * Only for an equation whose values are all wanted. What it gives is what eval_reduce gives; the
 * bounds may be a little larger, because exactness is judged by whole rows of the factors instead
 * of by terms. */
#ifndef KAIO_REF_PRODUCT_H
#define KAIO_REF_PRODUCT_H

#include "ref/program.h"

/* The sum r in eq as a product of matrices, evaluated; f: a frame for what is constant. NULL: it is
 * none, or this would not pay, or a subscript was out of range, which the evaluation of the
 * equation will report. */
struct product *ref_product_new(struct frame *f, struct equation *eq, const struct reduce *r,
                                unsigned threads);
void ref_product_free(struct product *p);
/* The sums of the lanes in mask; left: those that it has no value for (infinities, NaN,
 * overflow). */
void ref_product_read(const struct product *p, const struct frame *f, const uint8_t *mask,
                      struct vec *o, uint8_t *left);
/* Terms added up. */
uint64_t ref_product_terms(const struct product *p);

#endif
