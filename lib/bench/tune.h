/* The search for the fastest schedule of a kernel at one point. */
#ifndef KAIO_BENCH_TUNE_H
#define KAIO_BENCH_TUNE_H

#include "bench/bench.h"

/* Schedules that give code of their own, the emitter's own choice not among them. */
struct tune_candidate {
    const char *schedule;
    const struct code *code;
};
struct tune_list {
    const struct code *builtin; /* the emitter's own choice */
    VEC(struct tune_candidate) v;
};
/* What lower_candidates() offers and can be emitted; of several with the same code the first.
 * multiprocessors: as code_make() takes them. Memory is a's. False with errors in d: the spec
 * itself cannot be emitted. */
bool tune_list(struct arena *a, const struct code_source *src, const struct bench_point *p,
               unsigned multiprocessors, struct tune_list *out, struct diags *d);

struct tune_options {
    unsigned threads; /* that compile; 0: one for each core. The result does not depend on it. */
    /* What is being done, of how many schedules so many are done; never called while a clock runs.
     * NULL: nobody asks */
    void (*progress)(void *ctx, const char *doing, size_t done, size_t n);
    void *progress_ctx;
};
struct tune_result {
    const char *schedule;            /* the fastest; NULL: the emitter's own choice */
    double seconds, builtin_seconds; /* of an execution: its, and that choice's */
    unsigned tried;                  /* that were timed, the emitter's own among them */
    unsigned refused, wrong; /* by the driver; with results that are not what the spec says */
    const char *error;       /* there is no result: why */
    bool device_failed;
};
/* All candidates are compiled at once, by several threads, and checked; those that the driver's
 * compiler refuses, those for which there is no memory left and those with wrong results are warned
 * of in d and leave. Then a few executions of each tell which are hopeless, and the others meet in
 * interleaved rounds by successive halving: the slower half leaves, and whoever is far behind, the
 * others go on in twice as many. The emitter's own choice is there to the end, and stays unless the
 * fastest of the others beats it by half a percent twice: in the last heat, and in one of the two
 * alone, there in nearly every round. False when there is no result, or it was interrupted. Memory
 * is a's, as are the texts that d points to. */
bool tune_search(struct arena *a, const struct bench *b, const struct bench_point *p,
                 const struct tune_options *o, struct tune_result *out, struct diags *d);

#endif
