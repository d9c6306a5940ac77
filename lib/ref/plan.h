/* Which equations are evaluated together, rows of them after rows, so that what lies between them
 * is never held as a whole.
 *
 *     s[h, i, j] = sum[c](q[h, i, c] * k[h, j, c])
 *     p[h, i, j] = exp(s[h, i, j] - max[l](s[h, i, l]))
 *     o[h, i, c] = sum[j](p[h, i, j] * v[h, j, c])
 *
 * Here p is read at o's own h and i alone, and s at p's: h and i are the dimensions that the three
 * share. A row of the group, one h with one i, takes n elements of s and of p and gives all of o's
 * for it. What is read elsewhere is whole: it is evaluated before, in a group of its own. */
#ifndef KAIO_REF_PLAN_H
#define KAIO_REF_PLAN_H

#include "ref/program.h"

struct plan_member {
    size_t equation;       /* of the oracle */
    uint8_t dim[MAX_RANK]; /* by dimension of the group: which of its own that is */
};

struct plan_group {
    VEC(struct plan_member) member; /* each comes after what it reads */
    uint32_t rank;                  /* dimensions that all members share */
    uint64_t extent[MAX_RANK];
};

struct plan_equation {
    const struct lang_equation *src;
    bool needed; /* and nothing stands for it */
    bool wanted, whole;
    uint64_t count, shape[MAX_RANK];
};

struct plan {
    uint64_t
        slab; /* bytes of intermediates up to which nothing is gained by holding less of them */
    size_t n; /* equations of the oracle */
    struct plan_equation *eq;
    VEC(struct plan_group *) group; /* each comes after those that make what it reads */
};

/* sampled: for a few rows of the outputs, and not for all of them. NULL: rows are no help. */
struct plan *plan_new(struct arena *a, const struct ref_input *in, bool sampled, uint64_t slab);
uint64_t plan_rows(const struct plan_group *g);
/* So many rows of the group stand for `sample` elements of each output. */
uint64_t plan_sampled_rows(const struct plan *p, const struct plan_group *g, uint64_t sample);
/* The bytes that one row of what is not whole takes. */
double plan_row_bytes(const struct plan *p, const struct plan_group *g);

#endif
