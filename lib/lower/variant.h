/* Entries of a stage of which the launch takes the first that its sizes allow. Private to
 * lib/lower. */
#ifndef KAIO_LOWER_VARIANT_H
#define KAIO_LOWER_VARIANT_H

#include "lower/strategy.h"

enum { VARIANT_RANK = 8 }; /* dimensions of outputs, at most */

struct variant_set {
    const struct lower_stage *s;
    uint32_t n;
    bool done;        /* the last one is for all sizes */
    bool has_windows; /* map/window.c made some */
    size_t items;     /* of the module, before the entry that has begun */
};
/* What must hold for a variant: all of these; none: any sizes do. */
struct variant_condition {
    struct arena *a;
    VEC(struct lang_expr *) all; /* different ones */
    bool never;
};

struct variant_condition variant_condition(struct cg *g);
void variant_require(struct variant_condition *c, struct lang_expr *e);
void variant_require_multiple(struct cg *g, struct variant_condition *c, const struct lang_expr *e,
                              uint32_t of);
/* The extent is not 0. */
void variant_require_some(struct cg *g, struct variant_condition *c, struct lang_expr *dim);
/* The condition, and as a text; NULL: it is for any sizes. */
struct lang_expr *variant_when(const struct variant_condition *c);
const char *variant_when_text(const struct variant_condition *c);
/* Begins an entry of `block` threads, KERNEL or KERNEL_part; it is dropped again or ended with its
 * launch. */
void variant_begin(struct cg *g, struct variant_set *all, const char *part, uint32_t block);
void variant_drop(struct cg *g, struct variant_set *all);
void variant_end(struct cg *g, struct variant_set *all, const struct variant_condition *c,
                 struct lang_expr *grid, uint32_t block);

#endif
