/* Private to equations: what compute: says before names are resolved. */
#ifndef KAIO_LANG_EQUATIONS_INT_H
#define KAIO_LANG_EQUATIONS_INT_H

#include "lang/lang_int.h"

struct reference { /* a name on the right that an equation of the same text defines */
    size_t to;
    bool same_step; /* the last subscript is the last index itself */
    bool earlier;   /* ... is  t - k, k a positive literal */
    const struct lang_expr *at;
};

struct equation_syntax {
    struct lang_equation *eq;
    const char *name;
    struct span name_span;
    VEC(struct reference) refs;
    unsigned order, low, component; /* Tarjan's numbers; 0: not yet visited */
    bool on_stack, failed;
};

struct equation_text {
    VEC(struct equation_syntax) v;
};

/* Parses "name[i, j < n] = e" lines; false when nothing of it can be used. */
bool parse_equations(struct arena *a, struct span text, const struct lang_types *types,
                     struct equation_text *out, struct diags *d);

/* Finds each equation's references, numbers the strongly connected components, and lists the
 * equations in an order in which each comes after all that it reads. */
bool order_equations(struct arena *a, struct equation_text *t, const struct lang_options *opt,
                     size_t *order, struct diags *d);

/* How far index k of an intermediate runs, which its right side does not say, by how it is read.
 * False with an error. */
bool range_by_uses(struct checker *c, const struct equation_text *text,
                   const struct lang_equation *eq, uint32_t k);

#endif
