/* Questions about the syntax tree, which generate nothing. Private to lib/lower. */
#ifndef KAIO_LOWER_INSPECT_H
#define KAIO_LOWER_INSPECT_H

#include "lang/lang.h"

struct cg;

/* A reduction that stands under a condition without which it may read what does not exist; NULL:
 * none. */
const struct lang_expr *inspect_guarded_reduction(const struct cg *g, const struct lang_expr *e,
                                                  bool guarded);
/* Is subscript i of the read e known to be in range? */
bool inspect_in_range(const struct lang_expr *e, uint32_t i);

/* Does a read in it select elements that a condition around it may forbid? */
bool inspect_may_stray(const struct lang_expr *e);
bool inspect_reads_itself(const struct lang_expr *e); /* whatever its arguments do */
bool inspect_reads(
    const struct lang_expr *e); /* memory, or work that only one side of ?: should do */
/* Made of dimensions, integer parameters and numbers alone, so that it is known at launch. */
bool inspect_at_launch(const struct lang_expr *e);
/* A constant or a variable: nothing is gained by not evaluating it. */
bool inspect_is_leaf(const struct lang_expr *e);
/* a reduction, looking through intermediates */
bool inspect_reduces(const struct cg *g, const struct lang_expr *e);
/* The first reduction in e itself; NULL: there is none. */
const struct lang_expr *inspect_reduction(const struct cg *g, const struct lang_expr *e);
bool inspect_mentions(const struct lang_expr *e, uint32_t n, struct lang_symbol *const *index);
bool inspect_same_expr(const struct lang_expr *x, const struct lang_expr *y);
/* Has x the value of y in an equation, if their arguments and pads have? An index has that of the
 * same symbol. */
bool inspect_same_node(const struct lang_expr *x, const struct lang_expr *y);
bool inspect_same_shape(const struct lang_symbol *x, const struct lang_symbol *y);
/* Finds the locals that are assigned where control flow joins again: inside an if or a loop that
 * does not contain their declaration too. Any other local just stands for its latest value. */
void inspect_body(struct cg *g, const struct lang_stmt *s);
void inspect_function(struct cg *g, const struct lang_func *f); /* once for each function */
/* The local, shared variable or buffer that an assignment to e changes. */
const struct lang_symbol *inspect_root(const struct lang_expr *e);
bool inspect_needs_register(const struct cg *g, const struct lang_symbol *sym);
const struct lang_expr *inspect_strip(const struct lang_expr *e); /* without implicit casts */
bool inspect_is_index(const struct lang_expr *e, const struct lang_symbol *index);
/* An expression that is the index by itself. */
struct lang_expr *inspect_index_name(struct cg *g, struct lang_symbol *index, struct span s);
bool inspect_rounds_to_tf32(const struct lang_expr *e); /* Is it a call of tf32() or its like? */
/* Are e's subscripts the equation's first indices, in their order? */
bool inspect_is_in_place(const struct lang_expr *e, const struct lang_equation *eq);

#endif
