/* What a reduction gathers. Private to lib/ref. */
#ifndef KAIO_REF_ACC_H
#define KAIO_REF_ACC_H

#include "ref/program.h"

/* By lane. */
struct acc {
    double s[LANES], c[LANES];      /* sum and its compensation; the product; the best value */
    double m[LANES];                /* sum of magnitudes, errors included; product of magnitudes */
    double up[LANES];               /* sum of the positive terms */
    double es[LANES];               /* sum of the terms' errors; the error of the best */
    double quantum[LANES];          /* every term is a multiple of it; 0: not known to be exact */
    double sure[LANES], top[LANES]; /* extremes: the greatest lower and upper bound seen; of a
                                       product's partial ones */
    bool any[LANES];                /* argmax: a number was seen */
    int64_t i[LANES];               /* integers */
    int64_t best[LANES], lo[LANES], hi[LANES]; /* argmax: the index, and the candidates' range */
    uint8_t met[LANES];                        /* products: MET_ */
    uint64_t n[LANES], terms[LANES];
    double bare[LANES]; /* large terms without what may be taken out of the sum */
    double far[LANES];  /* of sums by tensor cores: struct ref_sum */
};

void ref_acc_start(const struct reduce *r, struct acc *a);

struct ref_range {
    int64_t lo[LANES], hi[LANES], min, max;
    int lanes;
};
/* The loop's range in every lane. A bound that is not exact makes the lane's result unknown. */
void ref_loop_range(struct frame *f, const struct loop *loop, const uint8_t *mask, struct acc *a,
                    struct ref_range *g);

/* Takes the terms lo to hi - 1 of the innermost loop into lane l: the lanes run along the loop. Not
 * of an equation with more indices than REF_ALONG. */
enum { REF_ALONG = 32 };
void ref_acc_along(struct frame *f, const struct reduce *r, struct acc *a, int l, uint8_t state,
                   int64_t lo, int64_t hi);

/* so_far.c: does the lanes of a reduction whose terms go on from others'; rest: the others. False:
 * there are none. */
bool ref_so_far(struct frame *f, const struct reduce *r, struct acc *a, const uint8_t *mask,
                uint8_t *rest);

#endif
