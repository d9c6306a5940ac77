/* Geometric means of the ratios to rivals, of each kernel in each mode. */
#ifndef KAIO_BENCH_MEANS_H
#define KAIO_BENCH_MEANS_H

#include "bench/bench.h"

struct mean {
    const char *kernel, *rival;
    enum bench_mode mode;
    double logs;
    unsigned n;
};
struct means {
    VEC(struct mean) v; /* as they come */
};

/* Counts the rivals of a row that have a time, if the kernel has one. */
void means_add(struct arena *a, struct means *m, const struct bench_row *row);
/* "matmul_f16 / cublas: 0.62, the geometric mean of 21 rows": a line for each. */
void means_text(const struct means *m, bool modes, struct buf *out);

#endif
