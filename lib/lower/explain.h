/* What --explain says of a spec's equations before a strategy is chosen: what each is, and what it costs. Private to
 * lib/lower. */
#ifndef KAIO_LOWER_EXPLAIN_H
#define KAIO_LOWER_EXPLAIN_H

#include "lower/cg/cg.h"

/* Each equation with its form and its operations, then the bytes that must move at least. Nothing without --explain. */
void explain_equations(struct cg *g);

#endif
