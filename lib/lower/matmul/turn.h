/* What turning a sum's factors is made of (matmul/turn.c). Private to lib/lower/matmul. */
#ifndef KAIO_LOWER_TURN_H
#define KAIO_LOWER_TURN_H

#include "lower/matmul/matmul.h"

enum { TURN_PIECE = 16 }; /* bytes */

/* A sum's factor: an element of a buffer, and what is done to it. */
struct turn_factor {
    const struct lang_expr *e; /* the read, or the rounding of it that the temp's elements have */
    const struct lang_expr *read;
    struct lang_expr *to; /* what stands for e */
};

/* A sum of products of two factors. x is a window, or steps over elements; d is the range along
 * which x has one element beside the other in each of them. v is the range of a window's row, if
 * that comes to lie beside d: j, of the result, and v are what one subscript of x is made of. */
struct turning {
    struct cg *g;
    struct lower_turned *out;
    const struct lang_equation *eq;
    const struct lang_expr *sum; /* of eq */
    struct turn_factor factor[2], *x, *w;
    uint32_t n;
    uint32_t at;                  /* d among the subscripts of x, */
    uint32_t along;               /* and among the sum's ranges */
    struct lang_symbol *d, *wide; /* wide: it has a whole number of pieces */
    enum matmul_turns how;
    struct lang_symbol *v, *j; /* NULL: none is */
    uint32_t row, taps;        /* j and v's subscript, and v among the sum's ranges */
    int64_t channels, terms;   /* d's extent, and the product of d's and v's */
    bool any_rows;             /* there was such a sum */
};

/* ---- matmul/turn.c --------------------------------------------------------------------------- */

/* The number of the sum's range that the subscript is by itself; nindex: none. */
uint32_t turn_which(const struct turning *t, const struct lang_expr *sub);
struct lang_expr *turn_zero(struct cg *g, enum dtype type, struct span s);
/* The factor with another read in it. */
struct lang_expr *turn_with_read(struct cg *g, const struct turn_factor *f, struct lang_expr *read);

/* ---- matmul/turn_rows.c ---------------------------------------------------------------------- */

/* Has d so few elements that a piece is more, and does a row of each window have several pixels?
 * Then sets t's members for rows; else v is NULL. */
bool turn_has_rows(struct turning *t, const struct turn_factor *f);
/* e with d as `wide`, or a row's d and v as its parts, and with j as another. */
struct lang_expr *turn_of_wide(const struct turning *t, struct lang_expr *e,
                               struct lang_symbol *wide, struct lang_symbol *j);
/* The temp's element: that of the buffer, and 0 behind a row's last term. */
struct lang_expr *turn_element(struct turning *t, const struct turn_factor *f,
                               struct lang_expr *from, struct lang_symbol *wide);
/* A row of pixels with their channels, which lie side by side: its last two dimensions are one,
 * from (j's part) * channels on. False: they lie otherwise. */
bool turn_flatten(struct turning *t, struct lang_expr *from, struct lang_symbol *wide,
                  struct lang_symbol *j);

#endif
