/* Benchmarks of kernels: a row for each problem of a sweep. The parts: sweep.h (which problems),
 * work.h (what they amount to), code.h (their code), data.h (inputs and checks), rival.h (what is
 * compared), measure.h (the clock), report.h (rows as text), plan.h (what would be done).
 * kaio-bench(1) says what it all means.
 */
#ifndef KAIO_BENCH_BENCH_H
#define KAIO_BENCH_BENCH_H

#include "bench/measure.h"

/* A kernel is compared with this rival, which somebody asked for. */
struct bench_rival {
    const struct rival_ops *ops;
    const char *name;
    struct code_source source; /* of kernels */
    bool same_spec;
};

enum { BENCH_RIVALS_MOST = 16 };

struct bench {
    const struct bench_device *dev;
    struct bench_rival kernel; /* what is benchmarked */
    struct bench_rival rival[BENCH_RIVALS_MOST];
    size_t nrival;
    struct data_options data;
    struct measure_options burst;
    double sustained;    /* seconds of work before a second measurement; 0: none */
    const char *command; /* that repeats a row, but for the problem's values */
    const char *path;    /* the spec, as given */
};

enum bench_mode { BENCH_BURST, BENCH_SUSTAINED };

/* One measurement of one problem. */
struct bench_row {
    const struct bench *bench;
    const struct bench_point *point;
    enum bench_mode mode;
    struct measured *result; /* of the kernel, then of the rivals */
    size_t nresult;
    struct conditions conditions;
    uint64_t bytes;
    double operations;     /* 0: not known */
    enum fill_kind fill;   /* of the inputs */
    const char *error;     /* the kernel has no time: why; NULL: it has */
    bool wrong;            /* the kernel or a rival has results that are not what the spec says */
    bool device_failed;    /* and may not be usable any more */
    const struct diags *d; /* what was said meanwhile */
};

/* Counts the operations that a row's rate is made of. Matrix products have two for each term, in
 * whatever type, and so has attention for scores that are not masked; work.h counts anything else.
 * buffers has the contents of integer inputs by parameter id, since masks depend on them, or is
 * NULL. */
double bench_operations(struct arena *a, const struct spec *s, const struct bench_point *p,
                        const void *const *buffers);

/* A fresh execution on fresh outputs of the first set, compared with the reference. */
enum rival_status bench_check(struct rival *v, struct diags *d);

/* Measures a problem; calls done() for each row, which it must be done with when it returns. None
 * is made when interrupted. */
void bench_problem(const struct bench *b, const struct bench_point *p,
                   void (*done)(void *ctx, const struct bench_row *row), void *ctx);

/* "naive.yaml", "copy", "cublas", "schedule:{strategy: naive}": reads what a rival is made of.
 * False with errors in d. */
bool bench_add_rival(struct arena *a, struct bench *b, const char *text, struct diags *d);

#endif
