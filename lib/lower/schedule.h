/* schedule: a strategy and its parameters, checked. Private to lib/lower. */
#ifndef KAIO_LOWER_SCHEDULE_H
#define KAIO_LOWER_SCHEDULE_H

#include "lower/cg.h"

/* One row per way of turning equations into code, the most special first. */
struct strategy {
    const char *name;
    bool (*fits)(struct cg *g, struct buf *why); /* why: what it lacks, when it does not */
    bool (*lower)(struct cg *g, const struct lower_plan *plan);
    const char *keys[8]; /* of schedule:, besides strategy; NULL at the end */
};
extern const struct strategy strategies[];
extern const size_t nstrategies;

/* The strategy that the schedule names or the first that fits; NULL after an error. */
const struct strategy *schedule_choose(struct cg *g, struct lower_plan *plan);

#endif
