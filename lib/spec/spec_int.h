/* Private to lib/spec: what the readers of a spec's parts share. */
#ifndef KAIO_SPEC_SPEC_INT_H
#define KAIO_SPEC_SPEC_INT_H

#include "spec/spec.h"
#include "spec/yaml.h"

struct spec_reader {
    struct arena *a;
    struct diags *d;
    const struct spec_define *defines;
    size_t ndefine;
    bool *define_used;
    const char *only; /* the kernel that is wanted; NULL: all */
    struct spec *spec;
};

typedef VEC(struct span) span_list;

/* The bytes of a scalar that holds text of the language; false with an error when it can't be read
 * in place. key: for the message. */
bool text_span(const struct yaml_value *v, const char *key, struct span *out, struct diags *d);
/* One text or a list of texts, each an expression of its own. */
bool text_list(struct arena *a, const struct yaml_value *v, const char *key, span_list *out,
               struct diags *d);
/* [a, f(b, c), {d: e}] between its brackets -> "a", "f(b, c)", "{d: e}". */
void text_split(struct arena *a, struct span text, span_list *out);
struct span text_trim(struct span s);
/* Takes the word off the end of a text, and the blanks in front of it; false: it does not end
 * so. */
bool text_take_end(struct span *s, const char *word);
/* The same at the front; it stands alone there. */
bool text_take_word(struct span *s, const char *word);
/* Takes the "= 0" off the end of "u32[1] = 0". */
bool text_take_zero(struct span *s);

/* A name that the user may choose: a C identifier, no word of the language. what: "a parameter" and
 * the like. */
bool check_identifier(const struct yaml_value *key, const char *what, struct diags *d);
/* Such a name that the texts of the spec say: none that means something else there. */
bool check_symbol_name(const struct yaml_value *key, const struct lang_types *types,
                       const char *what, struct diags *d);

bool read_types(struct spec_reader *r, const struct yaml_value *v);
/* An error: `given` is none of the type's choices. */
bool type_refused(struct spec_reader *r, struct span at, const struct spec_type *t,
                  const char *given);
/* dims: of the derived dimensions; NULL: there are none. */
bool read_params(struct spec_reader *r, const struct yaml_value *v, const struct yaml_value *dims);
/* temps: after the parameters. */
bool read_body_temps(struct spec_reader *r, const struct yaml_value *v);
bool read_requires(struct spec_reader *r, const struct yaml_value *v);
/* A condition or number of the launch, parsed and checked; want: its type, DT_VOID for any integer.
 * NULL after an error. */
struct lang_expr *read_launch_expr(struct spec_reader *r, struct span text, enum dtype want,
                                   bool grid);
bool read_cases(struct spec_reader *r, const struct yaml_value *v);
bool read_schedule(struct spec_reader *r, const struct yaml_value *v);
/* Of a program, whose parameters and temps have been read; use and functions may be NULL. */
bool read_program_parts(struct spec_reader *r, const struct yaml_value *use,
                        const struct yaml_value *functions, const struct yaml_value *steps);
/* grid: and block:, up to three expressions. */
bool read_extents(struct spec_reader *r, const struct yaml_value *v, const char *key,
                  struct lang_expr **out, uint32_t *n);

/* Declares the parameters in a scope: declarations, dimensions, defaults. For specs and
 * contracts. */
struct param_reader {
    struct arena *a;
    struct diags *d;
    struct lang_scope *scope;
    const struct lang_types *types; /* NULL: none */
    bool states;                    /* it is a program's: "state f32[n]" may be */
    VEC(struct spec_param) params;
    VEC(struct lang_symbol *) dims, derived;
};
/* Dimensions that others say, "oh: h - r + 1" on each line of a map called key, before the
 * parameters; params_read() checks them with the rest. */
bool params_derive(struct param_reader *p, const struct yaml_value *v, const char *key);
bool params_read(struct param_reader *p, const struct yaml_value *v);
/* The dimensions in e that are not known yet, and those of its derived dimensions. */
bool params_collect_dims(struct param_reader *p, const struct lang_expr *e, bool scalars);
/* Once all parameters are known. */
bool params_check_derived(struct param_reader *p);
/* Gives those derived dimensions their values that follow from fixed ones. */
bool params_settle_derived(struct arena *a, struct lang_symbol *const *derived, size_t n,
                           struct diags *d);
/* What a constant dimension of a buffer must be. */
bool params_check_constant_dim(struct diags *d, const struct lang_symbol *sym, uint32_t k);

#endif
