/* A spec file: YAML -> struct spec, checked as far as it can be without a target.
 *
 * The YAML reader keeps every node's span in the file; the strings in it (declarations, equations,
 * bodies, grid expressions) are parsed by lang from those very bytes, so diagnostics always point
 * into the file. Unknown and duplicate keys, wrong node kinds, aliases that contain themselves,
 * nesting deeper than 100 and input over 16 MiB are errors; alias expansion is bounded.
 */
#ifndef KAIO_SPEC_SPEC_H
#define KAIO_SPEC_SPEC_H

#include "lang/lang.h"

enum spec_math { MATH_DEFAULT, MATH_STRICT, MATH_FAST };

struct spec_param {
    struct lang_symbol *sym; /* SYM_BUFFER or SYM_SCALAR; sym->id is the index in spec.params */
    struct span span;        /* the declaration's text */
    bool is_state;           /* of a program: an inout that keeps what one launch leaves for the
                              * next, zeros at first */
    const char *decl;        /* the declaration as written: "in f32[n]" */
    struct lang_expr *value; /* a scalar's default, checked; NULL: must be given */
};

/* A buffer that a body has for itself: whoever launches the kernel makes it, and nobody else sees
 * it. */
struct spec_temp {
    struct lang_symbol *sym; /* SYM_BUFFER, inout; sym->id is the index in spec.temps */
    bool is_zero;            /* zero before every launch; else undefined */
};

/* types: a name for one of several types; what the text says with it is as if the chosen one had
 * been written. */
struct spec_type {
    const char *name;
    struct span span;
    VEC(enum dtype) choices; /* the first is chosen where no define says otherwise */
    enum dtype chosen;
};

/* A named value bound by a case: a dimension, a scalar, a type, or what an input is filled with. */
struct spec_binding {
    const char *name;
    struct span span;
    const char *made; /* an input's generator (data/generate.h); NULL: it is no input */
    enum dtype type;  /* DT_VOID: it is a number, or an input */
    bool is_int;
    int64_t i;
    double f; /* also set when is_int */
};
struct spec_case {
    const char *name;
    struct span span;
    VEC(struct spec_binding) bind;
};

/* schedule: keys are kept as text here; the strategies in lower/ know which they accept. */
struct spec_option {
    const char *key, *value;
    struct span key_span, value_span;
};

/* What a kernel's sums may lose; lib/ref/ref.h has the rules that need it. */
struct spec_sums {
    uint64_t depth; /* no term goes through more roundings on its way into its sum; 0: any order */
    /* sums of products by tensor cores lose up to this times 2^-24 of their largest partial sum
     * beside it */
    uint64_t truncation;
    /* and their products up to this times 2^-24 each, unless it is even and they are short:
     * lib/ref/ref.h (f32 in parts of tf32 or f16) */
    uint64_t products;
    /* f32 factors that are exponentials of differences from a maximum lack what is below 2^-weights
     * beside f16: lib/ref/ref.h; 0: they do not */
    uint64_t weights;
};

/* use: a kernel that a program calls by this name. */
struct spec_use {
    const char *name;
    struct span span;
    const char *path; /* of the file, as written; NULL: a kernel of this file */
    struct span path_span;
    const char *kernel; /* which of its kernels; NULL: the file has one */
    VEC(struct spec_define) defines;
    const char *schedule; /* "{tile: [64, 64]}"; NULL: the kernel's own */
    struct span schedule_span;
};

/* What a program has beside parameters and temps: kaio-program(5), program/program.h. */
struct spec_program {
    VEC(struct spec_use) uses;
    struct lang_steps steps;
    struct span steps_span;
    struct span functions; /* the text of functions:; src NULL: there is none */
};

struct spec {
    const struct source *src;
    const char *name; /* the kernel */
    struct span name_span;
    const char *doc; /* "" if none */
    VEC(struct spec_type) types;
    struct lang_types names; /* the types as lang sees them */
    VEC(struct spec_param) params;
    VEC(struct lang_symbol *) dims; /* in the order of first appearance; sym->id is the index */
    /* what dims: derives from them: none is given, a launch computes them; sym->id goes on */
    VEC(struct lang_symbol *) derived;
    VEC(struct lang_expr *) require;
    VEC(struct spec_case) cases;
    VEC(struct spec_option) schedule;
    enum spec_math math;
    struct lang_scope params_scope; /* parameters and dimensions as body: sees them */
    struct spec_program *program;   /* it is a program and computes nothing itself; or NULL */
    bool has_compute;
    struct lang_equations compute;        /* has_compute */
    struct lang_stmt *body;               /* NULL when has_compute */
    VEC(struct spec_temp) temps;          /* body or program: its own buffers */
    struct lang_scope temps_scope;        /* they, for the body and its functions */
    struct lang_expr *grid[3], *block[3]; /* body: grid[0] and block[0] not NULL */
    struct lang_expr *shared;     /* body: bytes for its shared array without a size, or NULL */
    struct lang_expr *depth;      /* body: roundings between a term of a sum and the sum, or NULL */
    struct lang_expr *cluster[3]; /* body: blocks; ncluster 0: no clusters */
    uint32_t ngrid, nblock, ncluster;
    bool whole_rows; /* body: block[0] is a multiple of 32, by its form or by a requirement */
    bool has_reference;
    bool rounded_calls[FN_COUNT];    /* builtins with a call that is rounded to 16 bits at once */
    struct lang_equations reference; /* compute again for a compute: spec without reference: */
};

struct spec_define { /* -D name=value */
    const char *name;
    uint64_t value;
    enum dtype type; /* DT_VOID: it is a number */
};

/* "cols=4096", "T=f32". Returns NULL, or what is wrong with it. */
const char *spec_parse_define(struct arena *a, const char *text, struct spec_define *out);
const char *spec_define_text(struct arena *a, const struct spec_define *def);

/* All the kernels and programs of a stream. `defines` fix dimensions and choose types at emission;
 * one that no kernel of the file has is an error. Returns NULL with errors in d. Empty input is an
 * error. */
struct spec_file {
    VEC(struct spec *) specs;
};
struct spec_file *spec_read(struct arena *a, const struct source *src,
                            const struct spec_define *defines, size_t ndefine, struct diags *d);
struct spec *spec_find(struct spec_file *f, const char *name); /* NULL if absent */

/* One kernel of a stream, read without the others; name NULL: the only one that it has. Defines
 * that it has no use for are none of its business. NULL with errors in d. */
struct spec *spec_read_one(struct arena *a, const struct source *src, const char *name,
                           const struct spec_define *defines, size_t ndefine, struct diags *d);

/* The same for who judges each kernel by itself: one that is wrong leaves the others as they are.
 * NULL with errors in d where that can't be said of a kernel: it is no YAML, it is empty, a define
 * belongs to no kernel. */
struct spec_part {
    const char *name;  /* NULL: the document has none that can be read */
    struct spec *spec; /* NULL with errors in d */
    struct diags *d;
};
struct spec_parts {
    VEC(struct spec_part) v;
};
struct spec_parts *spec_read_parts(struct arena *a, const struct source *src,
                                   const struct spec_define *defines, size_t ndefine,
                                   struct diags *d);

/* What an input may be filled with, as a generator's text: "@randint:0:10" as it stands, and for
 * "0..9", whole numbers from the first to the last, the same. NULL with an error in d, at `at`: it
 * is neither. */
const char *spec_input_text(struct arena *a, const char *name, const char *text, struct span at,
                            struct diags *d);

/* "h and r": what says the derived dimension's value. */
const char *spec_derived_from(struct arena *a, const struct lang_symbol *derived);

const struct spec_type *spec_find_type(const struct spec *s, const char *name); /* NULL if absent */
const char *spec_type_text(struct arena *a, const struct spec_type *t);         /* "f16, f32" */
bool spec_type_allows(const struct spec_type *t, enum dtype type);
/* The case's binding of a type that one of the defines chooses otherwise; NULL if there is none. */
const struct spec_binding *spec_case_conflict(const struct spec_case *c,
                                              const struct spec_define *defines, size_t ndefine);
/* Does the case bind no type otherwise than it was chosen when s was read? */
bool spec_case_fits(const struct spec *s, const struct spec_case *c);
/* The kernel that s was read as, read again with the types that the case binds; `defines` as for
 * spec_read. NULL with errors in d: among them that a define and the case choose different types.
 * What was warned of before is not repeated. */
struct spec *spec_read_case(struct arena *a, const struct spec *s, const struct spec_case *c,
                            const struct spec_define *defines, size_t ndefine, struct diags *d);

/* The first condition that sizes fixed by defines rule out, so that no launch is allowed; NULL:
 * none. And what is to be said of it: "the kernel requires n % 8 == 0, but n is 9". */
const struct lang_expr *spec_ruled_out(const struct spec *s);
const char *spec_ruled_out_text(struct arena *a, const struct lang_expr *require);

/* Puts another schedule in the place of the spec's: text is what would follow "schedule:",
 * "{strategy: naive}". False with errors in d: it is no such map, or the spec has a body. */
bool spec_set_schedule(struct arena *a, struct spec *s, const struct source *text, struct diags *d);

/* The equations that say what the kernel computes: reference: if there is one, else compute:; NULL
 * for a body: without a reference:. */
const struct lang_equations *spec_oracle(const struct spec *s);

#endif
