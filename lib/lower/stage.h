/* A spec's equations, cut into stages that one strategy each computes. Private to lib/lower.
 *
 * All of them as one stage is tried first. Otherwise outputs that can be computed together are, in
 * an order in which an inout that is read at other elements is read before it is written; and where
 * only the naive strategy would fit, an intermediate that is costly (it reduces) and not read
 * element by element is stored by a stage of its own, so that it is computed once and not once for
 * every element that depends on it.
 */
#ifndef KAIO_LOWER_STAGE_H
#define KAIO_LOWER_STAGE_H

#include "lower/cg/cg.h"

/* Code and launches for g->spec's equations; false after an error. */
bool stages_lower(struct cg *g);
/* Equations as a stage, which outlives what strategies make of it. */
struct lower_stage *stage_of(struct cg *g, const struct lang_equation *const *eq, uint32_t n,
                             const char *entry);

#endif
