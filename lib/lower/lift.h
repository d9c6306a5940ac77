/* Reductions under conditions, made such that they may be computed whatever the conditions say.
 * Private to lib/lower.
 *
 *     s[h, i, j] = j <= i ? sum[c](q[h, i, c] * k[h / 4, j, c]) : -inf
 *
 * A strategy computes a sum for all elements and selects afterwards. It may do so where each read
 * of the sum is in range for all elements. The subscripts i, j and c run over just their
 * dimensions. The subscript h / 4 does not depend on i and j, of which the condition is made, and
 * the condition holds for i = j = 0: so the kernel reads k[h / 4, ...] for each h in any case, and
 * a specification that does so out of range is wrong.
 *
 * A read of which this is not known becomes pad(..., 0): where the condition holds it has the same
 * value, and elsewhere nobody sees it. The copy of the reduction stands for it from then on
 * (cg_view).
 */
#ifndef KAIO_LOWER_LIFT_H
#define KAIO_LOWER_LIFT_H

#include "lower/cg/cg.h"

void lift_reductions(struct cg *g);

#endif
