/* Schedules worth trying. Private to lib/lower, but for lower_candidates() in lower.h. */
#ifndef KAIO_LOWER_CANDIDATES_H
#define KAIO_LOWER_CANDIDATES_H

#include "lower/lower.h"

/* Adds what a strategy has to offer to out, each "{strategy: NAME, ...}"; those that do not fit are
 * found out later. s: read with the dimensions that are known. */
typedef void strategy_candidates(struct arena *a, const struct spec *s,
                                 const struct ptx_target *target, struct lower_candidates *out);

/* A key of a schedule with the values to try; 0 leaves the key to the strategy. */
struct candidates_axis {
    const char *key;
    unsigned value[8];
    size_t n;
};

/* Every combination, the last axis fastest. */
void candidates_multiply(struct arena *a, const char *strategy, const struct candidates_axis *axis,
                         size_t naxis, struct lower_candidates *out);

#define COUNT(x) (sizeof(x) / sizeof *(x))

#endif
