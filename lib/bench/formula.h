/* How attention is found in formulas. Private to lib/bench's attention.c, formula.c, score.c and
 * gradient.c. */
#ifndef KAIO_BENCH_FORMULA_H
#define KAIO_BENCH_FORMULA_H

#include "bench/attention.h"

struct finder {
    const struct attention_at *at;
    struct arena *a;
    size_t nodes;
    struct attention *x;
};

/* What names stand for where an intermediate is read. */
struct bound {
    const struct lang_symbol *from;
    const struct lang_expr *to;
    const struct bound *next;
};

/* Two indices that stand for each other. */
struct renamed {
    const struct lang_symbol *x, *y;
    const struct renamed *next;
};

/* The indices of a formula's output, and its sums'. */
struct indices {
    struct attention_roles roles;
    const struct lang_symbol *column, *term; /* of the values, of q k */
    int64_t group;                           /* heads of a head of keys */
    const struct lang_expr *page;            /* the page of a key; NULL: none has been met */
    uint64_t page_size;
};

/* What stands in an exponential: of the product, and of what is added to it. */
struct score {
    const struct lang_expr *dot; /* sum[c](q * k) */
    const struct lang_expr *bias, *slope;
    const struct lang_expr *distance; /* that the slope is multiplied with */
    bool slope_falls;
    double scale, cap;
};

/* ---- formula.c ------------------------------------------------------------------------------- */

/* Without casts. */
const struct lang_expr *formula_bare(const struct lang_expr *e);
/* A copy with intermediates in the places of their names; sums get indices of their own. */
const struct lang_expr *formula_expand(struct finder *f, const struct lang_expr *e,
                                       const struct bound *b);
/* Casts do not count, nor do the names of sums' indices. */
bool formula_same(const struct lang_expr *x, const struct lang_expr *y, const struct renamed *r);
bool formula_same_range(const struct lang_symbol *x, const struct lang_symbol *y);
bool formula_is_binary(const struct lang_expr *e, enum lang_op op);
bool formula_is_reduce(const struct lang_expr *e, enum lang_reduce reduce);
bool formula_is_call(const struct lang_expr *e, enum lang_builtin fn);
bool formula_is_read(const struct lang_expr *e);
bool formula_mentions(const struct lang_expr *e, const struct lang_symbol *sym);
bool formula_has_sum(const struct lang_expr *e);
bool formula_scalar(struct finder *f, const struct lang_expr *e, double *v);
/* Takes off c ? e : 0 and c ? e : -inf, whose conditions become the mask's. */
const struct lang_expr *formula_take_conditions(struct finder *f, const struct lang_expr *e,
                                                struct attention_mask *m);
/* Takes off factors that are numbers. */
const struct lang_expr *formula_take_factor(struct finder *f, const struct lang_expr *e,
                                            double *factor);
/* Says why the library is not asked, unless that has been said. Returns false. */
bool formula_fail(struct finder *f, const char *why);
/* Equation k if it is of an output, else NULL. */
const struct lang_equation *formula_output_equation(const struct lang_equations *all, size_t k);

/* ---- score.c --------------------------------------------------------------------------------- */

bool formula_read_score(struct finder *f, const struct lang_expr *e, struct attention_mask *m,
                        struct score *s);
/* How a buffer lies by an expression that reads it, or by an output's own indices. */
bool formula_view(struct finder *f, struct indices *x, const struct lang_expr *e,
                  enum sdpa_buffer which);
bool formula_view_output(struct finder *f, struct indices *x, const struct lang_equation *q,
                         enum sdpa_buffer which);
/* Which indices are the batch's and the heads'; k: what reads the keys. */
bool formula_find_axes(struct finder *f, const struct lang_equation *q, struct indices *x,
                       const struct lang_expr *k);
/* The two of sum[c](q * k), the one with the key's index second. */
bool formula_operands(const struct lang_expr *dot, const struct lang_symbol *key,
                      const struct lang_expr **q, const struct lang_expr **k);
bool formula_take_score(struct finder *f, struct indices *x, const struct score *s);
/* When all parts are found: sizes, types, and the mask. */
bool formula_settle(struct finder *f, const struct indices *x, const struct attention_mask *mask);

/* ---- gradient.c ------------------------------------------------------------------------------ */

/* Are the outputs dq, dk and dv? Fills what was found. */
bool formula_backward(struct finder *f, const struct lang_equations *all);

#endif
