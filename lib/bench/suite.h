/* The built-in suites: kernels with the problems that they are commonly judged by. */
#ifndef KAIO_BENCH_SUITE_H
#define KAIO_BENCH_SUITE_H

#include "bench/sweep.h"

struct suite_kernel {
    const char *type; /* what --types calls it; kernels of one stand together */
    const char *name; /* of the kernel in the spec */
    const char *text; /* the spec */
};
struct suite {
    const char *name, *doc;
    const struct suite_kernel *kernel;
    size_t nkernel;
    const char *const *problem; /* "m=16 n=4096 k=4096": values of all dimensions, in the spec's
                                   order; NULL: the problems are each kernel's own cases */
    size_t nproblem;
};

const struct suite *suites(size_t *n);
const struct suite *suite_find(const char *name); /* NULL if absent */
/* Is kernel i the first of its type? */
bool suite_begins_type(const struct suite *s, size_t i);
/* Every problem of the suite. Memory is a's. */
void suite_points(struct arena *a, const struct suite *s, struct sweep_points *out);

#endif
