/* What an equation reads, and how each read moves when an index does. Private to lib/lower.
 *
 * Subscripts are seen as affine forms over axes: the equation's own indices first (axis i is
 * index[i]), then the indices of reductions in the order in which they are met. Intermediates whose
 * equations are expanded where they are read are looked through; what an earlier stage stored is a
 * read like a buffer's.
 */
#ifndef KAIO_LOWER_ACCESS_H
#define KAIO_LOWER_ACCESS_H

#include "lower/cg/cg.h"

enum { ACCESS_AXES = 24, ACCESS_RANK = 8 };

struct access_form {
    int64_t constant;
    int64_t coef[ACCESS_AXES];
    uint32_t other; /* axes on which it depends in any other way, one bit each */
    bool symbolic;  /* and something that no axis changes is added: a dimension, a scalar, data */
};

struct access {
    const struct lang_expr *e; /* an E_INDEX, or the bare name of something of rank 0 */
    const struct lang_symbol *sym;
    uint32_t n;
    struct access_form sub[ACCESS_RANK];
    bool guarded;   /* evaluated only where a condition holds: in an arm of ?:, right of && or || */
    uint32_t loops; /* axes of the reductions around it, one bit each */
};

struct access_axes {
    uint32_t n, nout; /* all; the equation's own */
    const struct lang_symbol *sym[ACCESS_AXES];
};

/* Calls visit for every read; false as soon as it returns false, or when there are too many axes or
 * reads. */
typedef bool access_visit(void *ctx, const struct access *a, const struct access_axes *axes);
bool access_walk(struct cg *g, const struct lang_equation *eq, access_visit *visit, void *ctx);

/* Is subscript i just that axis? */
bool access_is_axis(const struct access *a, uint32_t i, uint32_t axis);
/* The axes that the form depends on, one bit each. */
uint32_t access_mask(const struct access_form *f);

#endif
