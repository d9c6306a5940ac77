/* Schedules worth trying. Private to lib/lower, but for lower_candidates() in lower.h. */
#ifndef KAIO_LOWER_CANDIDATES_H
#define KAIO_LOWER_CANDIDATES_H

#include "lower/lower.h"

/* Adds what a strategy has to offer to out, each "{strategy: NAME, ...}"; those that do not fit are found out later. s:
 * read with the dimensions that are known. */
typedef void strategy_candidates(struct arena *a, const struct spec *s,
                                 const struct ptx_target *target, struct lower_candidates *out);

strategy_candidates matmul_candidates, row_candidates, reduce_candidates, map_candidates,
    naive_candidates;

#endif
