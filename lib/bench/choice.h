/* The fastest of several ways in which a library does the same. */
#ifndef KAIO_BENCH_CHOICE_H
#define KAIO_BENCH_CHOICE_H

#include "bench/rival.h"

struct choice {
    struct rival *v;
    /* Queues one execution of a way on a set; DEVICE_REFUSED: the library does not take what it has
     * offered. */
    enum device_status (*run)(void *ctx, unsigned way, unsigned set, struct diags *d);
    void *ctx;
};

/* Times all of n; *best is 0 where there is but one. DEVICE_REFUSED: all are refused. */
enum device_status choice_fastest(const struct choice *c, unsigned n, unsigned *best,
                                  struct diags *d);

#endif
