/* schedule: a strategy and its parameters, checked. Private to lib/lower. */
#ifndef KAIO_LOWER_SCHEDULE_H
#define KAIO_LOWER_SCHEDULE_H

#include "lower/candidates.h"
#include "lower/strategy.h"

/* One row per way of turning equations into code, the most special first. */
struct strategy {
    const char *name;
    strategy_fits *fits;
    strategy_lower *lower;
    const char *keys[12]; /* of schedule:, besides strategy; NULL at the end */
    /* fits() sees to it that no element of an inout is read by one thread after another wrote it; else only
     * stages that read just the elements they write are given to it */
    bool minds_inouts;
    strategy_candidates *candidates; /* NULL: the strategy has no choices */
};
extern const struct strategy strategies[];
extern const size_t nstrategies;

/* The strategy that the schedule names; *good is false after an error. NULL: it names none. */
const struct strategy *schedule_named(struct cg *g, bool *good);
/* The first but naive that fits the stage; NULL: none. Says to --explain what the others lack. */
const struct strategy *schedule_first(struct cg *g, const struct lower_stage *s);
/* Does the strategy fit the stage? why: what the stage lacks, when it does not. */
bool schedule_fits_one(struct cg *g, const struct strategy *st, const struct lower_stage *s,
                       struct buf *why);
/* Does any but naive fit? */
bool schedule_fits(struct cg *g, const struct lower_stage *s);
/* Has the strategy all that the schedule says? */
bool schedule_takes(const struct cg *g, const struct strategy *s);
const struct spec_option *schedule_option(const struct cg *g, const char *key); /* or NULL */
/* Reads what the schedule says to this strategy; false after an error. */
bool schedule_read(struct cg *g, const struct strategy *s, struct lower_plan *plan);

#endif
