/* Private to lib/ref: an evaluation, and its parts that threads share. */
#ifndef KAIO_REF_EVAL_H
#define KAIO_REF_EVAL_H

#include "ref/storage.h"

#include <pthread.h>
#include <stdatomic.h>

enum { REF_THREADS = 256 };

struct ref {
    struct program p;
    struct frame main; /* the calling thread's */
    VEC(struct ref_output) out;
    VEC(struct equation *) out_eq;
    struct ref_storage storage; /* dense tensors and sampled results */
    bool on_demand;
    unsigned threads;
    uint64_t memory;
    uint64_t operations;
    const volatile int *interrupted;
    struct diags *d;
};

/* Elements of an equation that are cut into chunks. */
struct job {
    struct ref *r;
    struct equation *eq;
    const uint64_t *where;             /* the elements; NULL: all */
    uint64_t n;                        /* elements, or places of a pointwise recurrence */
    uint64_t step, steps;              /* one step of a recurrence; steps = 0: not a recurrence */
    struct ref_output *out;            /* on demand: results go here */
    atomic_uint_fast64_t next, failed; /* chunk numbers; failed: the lowest that did */
    pthread_mutex_t lock;
    struct span fail_span;
    char fail[sizeof((struct frame *)0)->fail];
    uint64_t operations;
};

/* The calling thread works too, so that a machine that gives no more threads only takes longer. */
bool ref_run_job(struct ref *r, struct job *j);
/* A frame for r's program; false when there is no memory. */
bool ref_frame_begin(struct frame *f, struct ref *r);
/* Lanes 0 .. n - 1 are at these elements of eq; those behind them are at the first. */
void ref_set_indices(struct frame *f, const struct equation *eq, const uint64_t *flat, int n);

/* evaluate.c: all of an equation that is evaluated of its tensor. */
bool ref_run_dense(struct ref *r, struct equation *eq);
/* n different elements of count at random, ascending; the first and the last are always among
 * them. NULL: no memory. */
uint64_t *ref_sample(struct ref *r, uint64_t count, uint64_t n, uint64_t seed, uint64_t *taken);

/* rows.c: everything, by rows of groups of equations; sample: about so many elements of each
 * output. */
struct plan;
bool ref_evaluate_rows(struct ref *r, const struct plan *plan, uint64_t sample, uint64_t seed);

#endif
