/* Expressions of a launch, built as trees.
 *
 * Grids, conditions, extents of temps and computed arguments are exact integers over dimensions,
 * integer scalars and the device's number of multiprocessors, evaluated when the kernel is launched
 * (lang_eval_int). Whoever makes one builds it of operands, so that no text is glued to text and no
 * bracket is forgotten; it is printed once, when the contract is written. Operands are shared and
 * never changed. Any checked expression at launch is one: a dimension's expression in the spec,
 * say.
 *
 * What is known is folded: constants, dimensions that are fixed, x + 0, x * 1, x / 1 and the like,
 * a choice whose condition is known. Sums, products and conjunctions lean to the left, so that they
 * print without brackets.
 */
#ifndef KAIO_LANG_LAUNCH_H
#define KAIO_LANG_LAUNCH_H

#include "lang/lang.h"

struct lang_expr *lx_int(struct arena *a, int64_t n);
struct lang_expr *lx_bool(struct arena *a, bool b);
struct lang_expr *lx_multiprocessors(struct arena *a); /* in grids alone */
/* e, of somebody who does not let it be changed: a copy of its node. */
struct lang_expr *lx_operand(struct arena *a, const struct lang_expr *e);

struct lang_expr *lx_add(struct arena *a, struct lang_expr *x, struct lang_expr *y);
struct lang_expr *lx_sub(struct arena *a, struct lang_expr *x, struct lang_expr *y);
struct lang_expr *lx_mul(struct arena *a, struct lang_expr *x, struct lang_expr *y);
/* Towards zero, as C divides. */
struct lang_expr *lx_div(struct arena *a, struct lang_expr *x, struct lang_expr *y);
struct lang_expr *lx_ceil_div(struct arena *a, struct lang_expr *x, struct lang_expr *y);
struct lang_expr *lx_min(struct arena *a, struct lang_expr *x, struct lang_expr *y);
struct lang_expr *lx_max(struct arena *a, struct lang_expr *x, struct lang_expr *y);
/* min(max(x, low), high) */
struct lang_expr *lx_clamp(struct arena *a, struct lang_expr *x, struct lang_expr *low,
                           struct lang_expr *high);

/* Conditions: x op y, of integers, where op is OP_LT to OP_NE. */
struct lang_expr *lx_compare(struct arena *a, enum lang_op op, struct lang_expr *x,
                             struct lang_expr *y);
/* x % n == 0 */
struct lang_expr *lx_is_multiple(struct arena *a, struct lang_expr *x, int64_t n);
/* NULL for x or y: no condition, which holds. */
struct lang_expr *lx_and(struct arena *a, struct lang_expr *x, struct lang_expr *y);
/* condition ? x : y */
struct lang_expr *lx_select(struct arena *a, struct lang_expr *condition, struct lang_expr *x,
                            struct lang_expr *y);

/* The operations with a number. */
struct lang_expr *lx_add_int(struct arena *a, struct lang_expr *x, int64_t n);
struct lang_expr *lx_mul_int(struct arena *a, struct lang_expr *x, int64_t n);
struct lang_expr *lx_div_int(struct arena *a, struct lang_expr *x, int64_t n);
struct lang_expr *lx_ceil_div_int(struct arena *a, struct lang_expr *x, int64_t n);
struct lang_expr *lx_at_most(struct arena *a, struct lang_expr *x, int64_t n);  /* x <= n */
struct lang_expr *lx_at_least(struct arena *a, struct lang_expr *x, int64_t n); /* x >= n */

/* e without the conversions that the checker made. */
const struct lang_expr *lx_strip(const struct lang_expr *e);
/* Do they say the same in the same way? */
bool lx_same(const struct lang_expr *x, const struct lang_expr *y);

#endif
