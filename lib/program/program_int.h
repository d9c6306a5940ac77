/* Private to lib/program: what its parts share while a program is built. */
#ifndef KAIO_PROGRAM_PROGRAM_INT_H
#define KAIO_PROGRAM_PROGRAM_INT_H

#include "program/program.h"

/* A name that steps may say: a parameter or a temp. */
struct variable {
    const char *name;        /* as the program says it */
    const char *unique;      /* as the contract does, temps without their $ */
    struct lang_symbol *sym; /* its type and extents, which are over the program's dimensions */
    struct span span;        /* where it is declared, or first given a value */
};

/* A block's names; those of the blocks around are seen, too. */
struct block {
    struct block *up;
    VEC(struct variable *) vars;
    struct lang_scope scope; /* of integer expressions: dimensions, scalars, indices of loops */
};

enum { PROGRAM_RANK = 8 };
/* A type and extents, of an argument or a result. */
struct shape {
    enum dtype type;
    uint32_t rank;
    struct lang_expr *dim[PROGRAM_RANK];
};

/* A kernel's file, or its text, as it was read with some defines. */
struct reading {
    const struct source *src;
    const char *key; /* the kernel's name and the defines, as text */
    struct spec *spec;
};

struct builder {
    struct arena *a;
    struct diags *d;
    const struct spec *spec; /* the program */
    const struct spec_file *file;
    const struct program_options *opt;
    struct program *out;
    struct block *block;
    VEC(const struct source *) sources; /* files, as they were asked for */
    VEC(struct reading *) readings;
    VEC(const char *) names; /* of kernels and temps, which are taken */
    bool too_much;           /* said once */
};

/* ---- expressions (shape.c): checked, over the program's dimensions, scalars and loop indices */

/* Parses and checks text as an integer expression of the current block; at: what a message is
 * about. NULL with an error. */
struct lang_expr *expr_of_text(struct builder *b, const char *text, struct span at);
/* e as a new tree with each name replaced by what of() gives, NULL to leave it; then checked. */
typedef struct lang_expr *expr_of_name(void *ctx, const struct lang_symbol *sym);
struct lang_expr *expr_replace(struct builder *b, const struct lang_expr *e, expr_of_name *of,
                               void *ctx, struct span at);
/* Checks an expression of the steps where it stands: an integer. */
bool expr_check(struct builder *b, struct lang_expr *e);
/* The index of a loop that it names; NULL: it names none. */
const struct lang_symbol *expr_loop(const struct builder *b, const struct lang_expr *e);
/* Are they the same for all sizes; are they surely not? */
bool expr_equal(struct builder *b, const struct lang_expr *x, const struct lang_expr *y);
bool expr_differ(const struct lang_expr *x, const struct lang_expr *y);
/* "f32[n, 2 * k]" */
const char *shape_text(struct builder *b, const struct shape *s);
struct shape shape_of_symbol(const struct lang_symbol *sym);
/* What a view has, after its expressions are checked. False with an error. */
bool shape_of_view(struct builder *b, const struct lang_view *v, const struct variable *var,
                   struct shape *out);

/* ---- names (names.c) */

struct variable *find_variable(const struct builder *b, const char *name);
/* The same with an error that says what there is. */
struct variable *need_variable(struct builder *b, const char *name, struct span at);
/* A new temp of the current block. */
struct variable *add_temp(struct builder *b, const char *name, struct span at,
                          const struct shape *s);
/* The name, or the name with a number behind it, that nothing has yet; it is taken then. */
const char *take_name(struct builder *b, const char *name);

/* ---- kernels (kernels.c) */

/* The kernel that a call names, read with the use's defines. NULL with an error. */
struct use {
    const struct spec_use *decl; /* NULL: a kernel of the same file */
    const struct source *src;
    const char *kernel; /* its name in there */
    const char *name;   /* what the program calls it */
};
bool find_use(struct builder *b, const char *name, struct span at, struct use *out);
typedef VEC(struct spec_define) define_list;
struct spec *read_kernel(struct builder *b, const struct use *use, const define_list *defines,
                         struct span at);
/* Makes what was read one of the program's kernels, with a name that no other has. */
struct spec *make_kernel(struct builder *b, const struct use *use, struct spec *spec,
                         struct span at);
/* The same of one that was made of equations, and has its name. */
void add_kernel(struct builder *b, struct spec *spec, struct span at);

/* ---- steps (calls.c, group.c, build.c): each appends what it becomes to out */

typedef VEC(struct lang_step *) step_list;

bool build_call(struct builder *b, const struct lang_call_step *call, struct span at,
                step_list *out);
/* The call of a loop's condition; its answer goes to a temp that is made for it. */
bool build_asked_call(struct builder *b, const struct lang_call_step *call, struct span at,
                      struct lang_call_step *out);
/* v[0 .. n) are equations; rest: what follows in the block, for which names must live on. */
bool build_group(struct builder *b, struct lang_step *const *v, uint32_t n,
                 struct lang_step *const *rest, uint32_t nrest, step_list *out);
/* A condition as a kernel; at: its text. */
bool build_asked(struct builder *b, struct lang_expr *cond, struct span at,
                 struct lang_call_step *out);

/* The step for a call, with the line of at. */
struct lang_step *call_step(struct builder *b, const struct lang_call_step *call, struct span at);

#endif
