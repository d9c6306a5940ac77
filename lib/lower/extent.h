/* Extents of tiles and grids, as the launch computes them and as values in the entry. Private to
 * lib/lower. */
#ifndef KAIO_LOWER_EXTENT_H
#define KAIO_LOWER_EXTENT_H

#include "lower/cg/cg.h"

/* A number that is less than 2^32. */
struct extent {
    struct lang_expr *e; /* at launch */
    struct cg_val v;     /* i64, narrow */
};

struct extent extent_constant(struct cg *g, int64_t c);
bool extent_is_constant(struct extent n, int64_t *c);
/* The value of what the launch computes. */
struct cg_val extent_computed(struct cg *g, struct lang_expr *e);
/* Where an index ends, whose range begins at 0; NULL: 1. */
struct extent extent_of(struct cg *g, const struct lang_symbol *index);
/* That divided by `side`, rounded up. */
struct extent extent_divided(struct cg *g, const struct lang_symbol *index, uint32_t side);
struct extent extent_times(struct cg *g, struct extent x, struct extent y);
/* q = n / d and r = n % d, of what is less than 2^31. */
void extent_split(struct cg *g, struct cg_val n, struct extent d, struct cg_val *q,
                  struct cg_val *r);
static inline struct cg_val extent_u32(struct cg *g, struct cg_val v)
{
    return cg_convert(g, v, DT_U32);
}

#endif
