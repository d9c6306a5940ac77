/* Outputs of which an axis counts the channels of all groups, as in grouped convolutions, with the
 * group as an axis of its own. Private to lib/lower.
 *
 *     y[b, o, i] = sum[d, u](x[b, o / f * c + d, i + u] * k[o, d, u])       o < g * f
 *     y[b, e, q, i] = sum[d, u](x[b, e, d, i + u] * k[e, q, d, u])          e < g, q < f
 *
 * The buffers get symbols with more dimensions that stand for the same memory. Then matmul has a
 * product for each group. Whether f divides the dimension must be known: of g * f, or of numbers.
 */
#ifndef KAIO_LOWER_GROUPS_H
#define KAIO_LOWER_GROUPS_H

#include "lower/cg/cg.h"

/* Puts other equations into the place of n of one shape, if they are such and nothing else reads
 * what they define. */
void groups_split(struct cg *g, const struct lang_equation **eq, uint32_t n);

#endif
