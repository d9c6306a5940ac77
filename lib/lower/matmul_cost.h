/* What plans of a contraction cost. Private to matmul_plan.c and matmul_cost.c. */
#ifndef KAIO_LOWER_MATMUL_COST_H
#define KAIO_LOWER_MATMUL_COST_H

#include "lower/matmul.h"

double ceil_of(double x); /* the next integer */
struct matmul_size {
    double m, n, k, batch;
};

/* Nanoseconds. shared: bytes of shared memory that the plan takes. */
double matmul_cost(const struct cg *g, const struct matmul_form *f, const struct matmul_plan *p,
                   const struct matmul_size *s, uint32_t shared);
/* Of the machine that code for the target is judged by. */
unsigned matmul_multiprocessors(const struct cg *g);

#endif
