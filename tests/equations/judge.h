/* A spec's one case on the simulator, checked for races and the like, and compared with the
 * reference. */
#ifndef KAIO_TESTS_EQUATIONS_JUDGE_H
#define KAIO_TESTS_EQUATIONS_JUDGE_H

#include "ptx/ptx.h"
#include "ref/fill.h"

enum verdict {
    RIGHT,
    UNKNOWN, /* nothing to compare, or the reference has no value here */
    UNFIT,   /* its schedule: does not fit */
    REFUSED, /* the spec or its PTX is not accepted */
    FAULT,   /* the simulator objects */
    WRONG,   /* an output is outside its bound */
    CRASHED, /* or did not end: set by who watches the process */
    VERDICTS,
};
extern const char *const verdict_names[VERDICTS];

struct trial {
    const char *text; /* the spec */
    const char *zero; /* a dimension that is 0, whatever the case says; NULL: none */
    bool scheduled;   /* which may not fit */
    const struct ptx_target *target;
    uint64_t fixed; /* a bit for each name of the case that is known to the emitter if it is a
                       dimension */
    enum fill_kind fill;
    uint64_t seed; /* of the inputs */
};

/* why: what is wrong, in a line or a few; "" if nothing is. */
enum verdict judge(struct arena *a, const struct trial *t, const char **why);

#endif
