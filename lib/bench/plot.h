/* Rows as a picture: rate over a swept dimension, a line for each contender, as SVG. */
#ifndef KAIO_BENCH_PLOT_H
#define KAIO_BENCH_PLOT_H

#include "bench/bench.h"

struct plot_point {
    double x, y, low, high; /* y by the median, low and high by the worst and the best */
};
struct plot_line {
    const char *name;
    VEC(struct plot_point) v;
};
struct plot {
    const char *title, *subtitle; /* subtitle: the device, once there is a row */
    const char *x;                /* the name along the axis; NULL: there is none */
    const char *unit;             /* "TB/s", "GFLOP/s", "TFLOP/s" */
    double scale;                 /* of what is counted, to it */
    bool operations;              /* are counted, not bytes */
    VEC(const char *) names;      /* whose values tell lines apart, beside the contender */
    VEC(struct plot_line) lines;
};

/* The axis is the first name that the sweep gives several numbers, else the first that differs
 * between the points; the unit is the one that limits: bytes where there are fewer than 20
 * operations for each. */
struct plot plot_begin(struct arena *a, const struct bench *b, const struct sweep *sweep,
                       const struct sweep_points *points, const struct spec *spec);
void plot_add(struct arena *a, struct plot *p, const struct bench_row *row);
/* A whole SVG file, which needs nothing else. */
void plot_print(const struct plot *p, struct buf *out);

#endif
