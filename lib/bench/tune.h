/* The search for the fastest schedule of a kernel at one point. */
#ifndef KAIO_BENCH_TUNE_H
#define KAIO_BENCH_TUNE_H

#include "bench/bench.h"

/* Schedules that give code of their own, the emitter's own choice not among them. */
struct tune_list {
    VEC(const char *) v;
};
/* What lower_candidates() offers and can be emitted; of several with the same code the first. Memory is a's. False with
 * errors in d: the spec itself cannot be emitted. */
bool tune_list(struct arena *a, const struct code_source *src, const struct bench_point *p,
               struct tune_list *out, struct diags *d);

struct tune_result {
    const char *schedule;            /* the fastest; NULL: the emitter's own choice */
    double seconds, builtin_seconds; /* of an execution: its, and that choice's */
    unsigned tried;                  /* that were timed, the emitter's own among them */
    unsigned refused, wrong; /* by the driver; with results that are not what the spec says */
    const char *error;       /* there is no result: why */
    bool device_failed;
};
/* Successive halving: all candidates take part in short interleaved rounds, the slower half leaves, the others go on in longer
 * ones. Candidates with wrong results are warned of in d and leave first. The emitter's own choice is there to the end, and
 * stays unless another one is faster by half a percent. False when there is no result, or it was interrupted. */
bool tune_search(struct arena *a, const struct bench *b, const struct bench_point *p,
                 struct tune_result *out, struct diags *d);

#endif
