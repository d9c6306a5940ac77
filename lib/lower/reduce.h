/* Reductions over any indices, by as many blocks as the machine takes. Private to lib/lower. */
#ifndef KAIO_LOWER_REDUCE_H
#define KAIO_LOWER_REDUCE_H

#include "lower/cg.h"

/* For a strategy that has launches of its own for some sizes: the stage by reduce, for all sizes, under names made of
 * `part`, as further variants of the same step. Only what reduce_fits() takes. */
bool reduce_lower_rest(struct cg *g, const struct lower_stage *s, const struct lower_plan *plan,
                       const char *part);

#endif
