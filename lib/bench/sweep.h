/* Which problems to time: NAME=VALUES as users write it, and the spec's cases, multiplied out into
 * points.
 *
 *     cols=512,1000,1024          a list
 *     n=256..8192*2  n=1..9+2     a range: multiplied, or added to; the end belongs to it where it
 *                                 is met
 *     m,n,k=256,512               several names that move together
 *     T=f16,f32                   types
 *     alpha=0.5                   scalars
 *
 * Numbers may carry the suffixes of base/num.h (k, Ki, M, Mi ...).
 */
#ifndef KAIO_BENCH_SWEEP_H
#define KAIO_BENCH_SWEEP_H

#include "spec/spec.h"

enum { SWEEP_POINTS_MOST = 10000 };

/* What a name stands for at a point. */
struct bench_value {
    const char *name, *text; /* text: as it is shown and given again */
    enum dtype type;         /* DT_VOID: a number */
    bool whole;
    int64_t i; /* whole */
    double f;  /* also set when whole */
};

struct sweep_axis {
    VEC(const char *) names;
    VEC(struct bench_value) values; /* without names */
};
struct sweep {
    VEC(struct sweep_axis) axes;
    VEC(const char *) cases;
    uint64_t
        bytes; /* of all buffers together, by the first dimension that is free; 0: not asked for */
};

/* Types first, then dimensions, then scalars, each in the spec's order; every dimension has a
 * value. */
struct bench_point {
    const char *case_name; /* NULL: none */
    VEC(struct bench_value) values;
};
struct sweep_points {
    VEC(struct bench_point) v;
};

/* Reads one NAME=VALUES; false with an error in d. */
bool sweep_add(struct arena *a, struct sweep *s, const char *word, struct diags *d);
/* All the points, the last axis fastest: of each case (all of the spec's where neither cases nor
 * axes are given), which an axis overrides, or of the axes alone. s: the kernel as read without
 * dimensions. */
bool sweep_multiply(struct arena *a, const struct sweep *sweep, const struct spec *s,
                    struct sweep_points *out, struct diags *d);

const struct bench_value *bench_find(const struct bench_point *p, const char *name); /* or NULL */
/* "T=f16 rows=32 cols=4096" */
const char *bench_point_text(struct arena *a, const struct bench_point *p);

#endif
