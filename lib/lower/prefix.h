/* Reductions over the beginning of a dimension, as rows of a triangle or of a length have them, by
 * all of it and a condition. Private to lib/lower.
 *
 *     max[j in 0..i + 1](x[i, j])        max[j < cols](j < i + 1 ? x[i, j] : -inf)
 *
 * Where one is, the other stands for it from then on (cg_view), until it is taken back.
 */
#ifndef KAIO_LOWER_PREFIX_H
#define KAIO_LOWER_PREFIX_H

#include "lower/strategy.h"

/* All that the stage is made of; false: there are none. */
bool prefix_widen(struct cg *g, const struct lower_stage *s);
/* Takes back what came after g->outlined.n was `mark`. */
void prefix_undo(struct cg *g, size_t mark);

#endif
