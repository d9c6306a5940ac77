/* Private to lib/program: a call while its kernel is found out. */
#ifndef KAIO_PROGRAM_CALL_H
#define KAIO_PROGRAM_CALL_H

#include "program/program_int.h"

/* What is known of the kernel's parameter: the buffer or number that it gets. */
struct actual {
    const struct lang_argument *arg; /* as it is written; NULL: a result, or nothing */
    const struct lang_view *view;    /* of a buffer, also of a result; NULL: not known yet */
    struct variable *var;            /* of the view; NULL: a result that has no buffer yet */
    struct shape shape;              /* of the view, when there is a var */
    struct lang_expr *value;         /* a number */
};

struct bound { /* a dimension of the kernel */
    const struct lang_symbol *dim;
    struct lang_expr *value; /* over the program's; NULL: not known yet */
    const char *from;        /* whose extent it was */
};

struct call {
    struct builder *b;
    const struct lang_call_step *text;
    struct span at;
    struct use use;
    define_list defines;
    struct spec *spec;
    struct actual *actual; /* by the spec's parameters */
    struct bound *bound;   /* by its dimensions, then the derived ones */
    size_t nbound;
};

static inline bool call_is_buffer(const struct spec_param *p)
{
    return p->sym->kind == SYM_BUFFER;
}

/* The parameter of that name; their number: there is none. */
size_t call_find_param(const struct spec *s, const char *name);
/* The dimension; NULL: there is none. */
struct bound *call_find_bound(struct call *c, const char *name);

/* ---- dimensions (call_dims.c) */

/* Finds what the arguments say of them, and that they agree. False with an error. */
bool call_bind_dims(struct call *c);
/* Adds those that are known numbers to the defines; true when there are none to add. */
bool call_fix_dims(struct call *c);
/* The value of a name of the kernel, over the program's names, for expr_replace(); ctx: the call.
 */
struct lang_expr *call_known(void *ctx, const struct lang_symbol *sym);
/* Has every dimension in it a value? */
bool call_is_known(struct call *c, const struct lang_expr *e);

#endif
