/* Reductions without a name that are worth an intermediate of their own. Private to lib/lower.
 *
 *     y[i, j] = x[i, j] / sum[c](x[i, c])       depends on i alone: an intermediate[i]
 *     y[i, j] = sum[k](max[l](a[i, l, k]) * b[k, j])        on i and k: an intermediate[i, k]
 *     s = sum[i](log(sum[c](exp(x[i, c]))))                 is inside of another: an
 *                                                           intermediate[i]
 *
 * Where one is, the read of it stands for the reduction from then on (cg_view).
 */
#ifndef KAIO_LOWER_OUTLINE_H
#define KAIO_LOWER_OUTLINE_H

#include "lower/strategy.h"

typedef VEC(const struct lang_equation *) equation_list;

/* Outlines eq's reductions that depend on fewer indices than are around them, and those inside of
 * others, and adds their equations to the list. It leaves those of few terms that each of many
 * results would be read for. */
void outline_reductions(struct cg *g, const struct lang_equation *eq, equation_list *out);
/* Outlines the next of eq's reductions that are inside of no other, from number *from on, even if
 * it depends on all indices. The list is then its equation. False: there is no other. */
bool outline_next(struct cg *g, const struct lang_equation *eq, uint32_t *from, equation_list *out);
/* Takes it back, and goes on to the next. */
void outline_undo(struct cg *g, uint32_t *from);

#endif
