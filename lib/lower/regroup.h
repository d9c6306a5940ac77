/* Axes on which groups lie side by side, as two axes: that of the groups and that within one.
 * Private to lib/lower.
 *
 *     mean[b, g < 8] = sum[k < c / 8, p](x[b, g * (c / 8) + k, p]) / (c / 8 * pixels)
 *     y[b, j, p]     = x[b, j, p] - mean[b, j / (c / 8)]
 *
 * is how people write a group norm whose channels are one axis, and y[b, j] = sum[d < q](x[b, j / f
 * * q + d] * w[j, d]) a product in groups. Read as x[b, g, k, p], of the same memory, both are what
 * strategies know: a reduction over whole axes, and a batch of products. That is done where an
 * index is divided by what its axis is known to be a multiple of, and groups of that kind are
 * reduced; all equations are copied then, and buffers get symbols with more dimensions (a cg_home).
 */
#ifndef KAIO_LOWER_REGROUP_H
#define KAIO_LOWER_REGROUP_H

#include "lower/cg/cg.h"

/* Gives g->spec other equations where that helps. */
void regroup_axes(struct cg *g);

#endif
