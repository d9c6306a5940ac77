/* What a stage reads and reduces, seen from a row: the walk that row_analyse() is. Private to the
 * files of it: expressions and the stage, row/walk.c; reads, row/read.c; reductions, row/reduce.c.
 */
#ifndef KAIO_LOWER_ROW_WALK_H
#define KAIO_LOWER_ROW_WALK_H

#include "lower/row/row.h"

struct row_walk {
    struct cg *g;
    struct row *row;
    struct buf *why;
    const struct row_reduce *scope;
    uint32_t deep;                 /* 1 + the level of the deepest reduction met */
    const struct row_guard *guard; /* the innermost of the conditions and pads around; NULL: none */
    bool guarded; /* the reduction is wanted under a condition only, but computed in any case */
    bool outside; /* a condition decides for which elements of an intermediate: it may lack such */
    bool column;  /* a column's index was met */
    bool divided; /* by a sum over the row, with nothing but products and quotients between */
    bool early;   /* in an output that is kept */
    uint32_t steps;
};

/* ---- row/walk.c ------------------------------------------------------------------------------ */

/* The binding of the index that e is; NULL: e is no index. */
const struct row_bound *row_bound_of(const struct row_env *env, const struct lang_expr *e);
/* The equation that e reads, with its indices standing for the subscripts. */
const struct row_env *row_enter(const struct row_walk *w, const struct lang_expr *e,
                                const struct row_env *env);
bool row_is_tensor(const struct lang_expr *e);
bool row_walk_expr(struct row_walk *w, const struct lang_expr *e, const struct row_env *env);

/* ---- row/read.c ------------------------------------------------------------------------------ */

/* Bits of an element along the row. */
void row_note_bits(struct row *row, const struct lang_symbol *t);
bool row_walk_memory(struct row_walk *w, const struct lang_expr *e, const struct row_env *env);
/* An intermediate, or an output that is defined here. */
bool row_walk_defined(struct row_walk *w, const struct lang_expr *e, const struct row_env *env);

/* ---- row/reduce.c ---------------------------------------------------------------------------- */

bool row_walk_reduce(struct row_walk *w, const struct lang_expr *e, const struct row_env *env);
/* The reduction that e is, or reads; NULL: none that was met. */
struct row_reduce *row_reduction_of(const struct row_walk *w, const struct lang_expr *e,
                                    const struct row_env *env);
/* A call of exp: of x - max(x)? */
void row_note_falling(struct row_walk *w, const struct lang_expr *e, const struct row_env *env);

#endif
