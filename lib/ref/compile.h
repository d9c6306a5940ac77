/* Private to lib/ref: what compile.c and inline.c share. */
#ifndef KAIO_REF_COMPILE_H
#define KAIO_REF_COMPILE_H

#include "ref/program.h"

/* What a local variable of a function of functions: stands for, at a place in its text. */
struct local_value {
    const struct lang_symbol *sym;
    struct node *node;
};

/* The expression tree of one equation becomes nodes. Index variables get their slots first, in a
 * row, so that a reduction can save and restore them together. */
struct compiler {
    struct program *p;
    struct diags *d;
    struct equation *eq;
    VEC(const struct lang_symbol *) index; /* symbols, in the order of their slots */
    VEC(struct local_value) locals;        /* the last one of a symbol counts */
    uint32_t around;                       /* indices that have a value here */
};

/* NULL after an error. */
struct node *ref_compile_expr(struct compiler *c, const struct lang_expr *e);
struct node *ref_node_new(struct compiler *c, const struct lang_expr *e, node_eval *eval,
                          uint32_t nargs);
/* inline.c: a call of a function of functions:, and a local variable in one. */
struct node *ref_inline_call(struct compiler *c, const struct lang_expr *e);
struct node *ref_inline_local(struct compiler *c, const struct lang_expr *e);
/* rescale.c: whether the sum's terms have exponentials of differences from a maximum as factors;
 * those are widened by what it may do to them that the maximum is not known yet. */
bool ref_rescale(struct compiler *c, struct reduce *r);
/* The same of a quotient that is stored in 16 bits or fewer. */
void ref_rescale_stored(struct compiler *c, struct node *n);

#endif
