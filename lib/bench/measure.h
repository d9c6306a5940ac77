/* The clock: executions of rivals in interleaved rounds.
 *
 * Every round gives each rival one sample: events around so many executions in a row that they fill
 * the time of a round, behind a few that are not counted, divided by their number. Each round has
 * an order of its own, and rounds are short beside the 20 to 100 ms in which a clock follows the
 * load where power is what limits it: so what one contender does to the clock meets all of them
 * alike. Executions under LONG are recorded as a graph and replayed, longer ones queued one by one.
 */
#ifndef KAIO_BENCH_MEASURE_H
#define KAIO_BENCH_MEASURE_H

#include "bench/rival.h"

struct measure_options {
    unsigned runs; /* rounds */
    unsigned
        least; /* so many suffice where executions are longer than a round; 0: as many as ever */
    double round_seconds; /* of each rival in each round */
    double warm_seconds; /* of work before the first round, at least; it goes on until the times are
                            steady; 0: none */
    const volatile int *interrupted;
};

struct measured {
    struct rival *rival;
    enum rival_status status;
    const char *why;            /* not RIVAL_OK */
    double *sample;             /* seconds of an execution, in the order of the rounds */
    unsigned n;                 /* samples */
    double worst, median, best; /* of them */
    /* Its time over the first one's, in the same round: the median of all rounds. On an H100 whose
     * clock its power limit sets, the median's standard error over 50 rounds is a tenth of that of
     * the quotient of the two medians (by resampling). */
    double ratio;
    struct device_graph *graph; /* NULL: queued one by one */
    unsigned per_graph;         /* executions in it; 1 without */
    unsigned lead;              /* executions queued before those that are timed */
    uint64_t per_round;         /* executions that a sample is made of */
    double expected;            /* seconds that they take */
    unsigned next_set;          /* that the next execution works on */
};

/* What the sensors said while the first rival worked, in ten rounds or, if there are fewer, in
 * each. */
struct conditions {
    const char *missing; /* NULL, or why there are none */
    unsigned readings;
    double sm_mhz, memory_mhz, watts; /* means */
    double min_sm_mhz;
    unsigned max_sm_mhz, celsius; /* celsius: the last */
    double limit_watts;
    uint64_t throttle; /* of any reading */
    char driver[80];
    double warm_seconds; /* of work before the first round */
    bool steady;         /* the times had settled when the first round began */
};

/* Roughly how long an execution takes: a few of them, which nothing interleaves. False with an
 * error in d. */
bool measure_pilot(struct measured *m, double *seconds, struct diags *d);
/* Finds how many executions make a round and records graphs; for each rival whose status is
 * RIVAL_OK. */
void measure_begin(struct arena *a, struct measured *m, size_t n, const struct measure_options *o,
                   struct diags *d);
/* Warms up and takes the samples of all rivals whose status is RIVAL_OK. False when interrupted, or
 * with an error in d when the device failed. */
bool measure_rounds(struct arena *a, struct measured *m, size_t n, const struct measure_options *o,
                    struct conditions *c, struct diags *d);
void measure_end(struct measured *m, size_t n);

#endif
