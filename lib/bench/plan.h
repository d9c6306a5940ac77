/* What a benchmark would do, without a device: the problems, and how their kernels are launched. */
#ifndef KAIO_BENCH_PLAN_H
#define KAIO_BENCH_PLAN_H

#include "bench/bench.h"

/* The code of one contender at one point; of a library, that of the kernel. */
struct bench_plan {
    const struct bench_rival *who;
    const struct bench_point *point;
    struct code *code;
    const struct code_source *kernel; /* of what is benchmarked */
    const char *ptx;                  /* the file with it; NULL: none */
};

/* Appends it to out: a line of text and one for each launch, or a line of JSON with every launch
 * and its arguments. */
void bench_plan_text(const struct bench_plan *p, struct buf *out);
void bench_plan_json(const struct bench_plan *p, struct buf *out);

#endif
