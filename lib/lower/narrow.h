/* Reductions over a whole dimension of which a condition takes the elements up to an index, or from
 * it on, by prefixes. Private to lib/lower.
 *
 *     sum[k < n](k <= i ? x[k] : 0)        sum[k in 0..i + 1](x[k])
 *
 * Only where nothing else in the terms depends on the index: others are rows of a triangle, of
 * which each has terms of its own. The prefix stands for the reduction from then on (cg_view). */
#ifndef KAIO_LOWER_NARROW_H
#define KAIO_LOWER_NARROW_H

#include "lower/cg/cg.h"

/* All in the spec's equations. */
void narrow_reductions(struct cg *g);

#endif
