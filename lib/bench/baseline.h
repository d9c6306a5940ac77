/* What an earlier run measured: the JSON lines of kaio-bench, to compare with. */
#ifndef KAIO_BENCH_BASELINE_H
#define KAIO_BENCH_BASELINE_H

#include "bench/bench.h"

struct baseline_row {
    const char *id;     /* report_id() */
    const char *kernel; /* the first word of id */
    const char *device;
    double median; /* seconds of the kernel itself */
    bool met;      /* measured again by this run */
};
struct baseline {
    VEC(struct baseline_row) v;
};

/* Reads the rows that have a time; of several with one id the last counts. False with errors in d:
 * a line is not such a row, or there is none. */
bool baseline_read(struct arena *a, const struct source *text, struct baseline *out,
                   struct diags *d);
/* NULL if absent. */
struct baseline_row *baseline_find(struct baseline *b, const char *id);

#endif
