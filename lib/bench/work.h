/* What a problem amounts to: bytes moved, operations, from the spec's own words. */
#ifndef KAIO_BENCH_WORK_H
#define KAIO_BENCH_WORK_H

#include "bench/sweep.h"

/* The bytes of all buffers of a kernel at a point, each counted once; UINT64_MAX where that is more
 * than 2^58 or a dimension has no value. The types are those that s was read with. */
uint64_t work_footprint(const struct spec *s, const struct bench_point *p);
/* Sets value `at` of the point, a dimension, to the largest for which the buffers take no more than
 * `bytes` and the spec's requirements hold. False with an error when there is none. */
bool work_choose(struct arena *a, const struct spec *s, struct bench_point *p, size_t at,
                 uint64_t bytes, struct diags *d);
/* Floating-point operations that the spec's mathematics has at a point: + - * / and calls count one
 * (fma two), each term of a reduction one more. 0: not known, or none. */
double work_operations(const struct spec *s, const struct bench_point *p);
/* Terms of all reductions that one element of an output depends on, the most of any output: how
 * long its reference takes. */
double work_terms(const struct spec *s, const struct bench_point *p);

#endif
