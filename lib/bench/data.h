/* Inputs that a benchmark runs on, and whether what came out is right. */
#ifndef KAIO_BENCH_DATA_H
#define KAIO_BENCH_DATA_H

#include "bench/code.h"
#include "ref/compare.h"
#include "ref/fill.h"

/* Elements of a buffer are made up to this many, a prime, and then repeat: to make every element of
 * gigabytes would take longer than to time them. No row length that a power of two is in divides
 * it, so rows differ. */
enum { DATA_PERIOD = 4194301 };

struct data_options {
    uint64_t seed;
    uint64_t
        sample; /* elements of each output that are checked; fewer where an element takes long */
    unsigned threads;
    const volatile int *interrupted;
};

/* A reference of the code's outputs. */
struct data {
    struct code *code;
    enum fill_kind fill;
    struct ref *ref;
    bool inputs_vary;
};

/* Fills the inputs of the code's run, normally distributed where they are floats (uniformly where
 * that makes many results NaN), integers that are subscripts within their extents; then evaluates
 * the reference. False with errors: among them that the spec does not say what it computes. */
bool data_make(struct code *code, const struct bench_point *p, const struct data_options *o,
               struct data *out, struct diags *d);
/* Fills the inputs only. */
void data_fill(struct code *code, enum fill_kind kind, uint64_t seed, unsigned halve);
void data_free(struct data *data);

struct data_check {
    bool right;
    const char *why;      /* not right: "y: 3 of 256 wrong, the first at 0, 17: 1.5 instead of 2" */
    const char *mistrust; /* right, but that says little: why; NULL: nothing to say */
    uint64_t compared;
    double max_bound; /* the largest error as a part of what is allowed */
};
/* Compares what the outputs of a run of the same spec at the same point hold (param[i].result) with
 * the reference. */
struct data_check data_compare(const struct data *data, struct run *run);

#endif
