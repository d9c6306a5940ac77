/* Sums of which a stride leaves out most terms, as in transposed convolutions, without these terms.
 * Private to lib/lower.
 *
 *     y[i] = sum[u]((i + p - u) % s == 0 ? x[(i + p - u) / s] * k[u] : 0)
 *
 * Of each u that meets i only the rest by s counts: with u = s * v + c and i + p = s * j + c the
 * condition holds for each v, and x is read at j - v. So there are s phases, each a sum over every
 * s-th u, and its own equation:
 *
 *     z_c[j] = sum[v < (n + s - 1 - c) / s](pad(x[j - v], 0) * k[s * v + c])
 *     y[i] = (i + p) % s == 0 ? z_0[(i + p) / s] : (i + p) % s == 1 ? z_1[(i + p) / s] : ...
 *
 * A gap t between the elements of a window, (i + p - t * u) % s == 0, without a divisor in common
 * with s, makes c = (i + p) / t modulo s of it. x is then read at j - t * v - t * c / s. Where they
 * have one, g, y is 0 where it does not divide i + p, and else there are s / g phases.
 *
 * What reads all z stands for the sum from then on (cg_view).
 */
#ifndef KAIO_LOWER_PHASES_H
#define KAIO_LOWER_PHASES_H

#include "lower/outline.h"

/* A sum and the equations of its phases. */
struct phases_sum {
    const struct lang_expr *sum;
    equation_list z;
};
typedef VEC(struct phases_sum) phases_list;

/* Finds such sums, of what no condition guards. */
void phases_split(struct cg *g, phases_list *list);
/* The sum stands for itself again. */
void phases_undo(struct cg *g, const struct phases_sum *s);

#endif
