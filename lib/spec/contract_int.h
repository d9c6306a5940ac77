/* Private to lib/spec: what the readers of a launch contract's parts share. */
#ifndef KAIO_SPEC_CONTRACT_INT_H
#define KAIO_SPEC_CONTRACT_INT_H

#include "spec/contract.h"
#include "spec/spec_int.h"

/* What a name under where: stands for, as it was parsed, of no names any more. */
struct contract_name {
    const char *name;
    struct lang_expr *e;
};

struct contract_reader {
    struct arena *a;
    struct diags *d;
    struct contract *c;
    VEC(struct contract_name) names;
    size_t nodes; /* of all that they were replaced by */
};

/* Each is false (NULL) with an error at the value. */

/* names ends with NULL. */
bool contract_only_keys(struct contract_reader *r, const struct yaml_value *map,
                        const char *const *names);
/* *out is left as it is when the key is missing, which is an error if it must be there. */
bool contract_word(struct contract_reader *r, const struct yaml_value *map, const char *key,
                   bool must, const char **out);
struct lang_expr *contract_integer(struct contract_reader *r, struct span text);
/* Checks a parsed expression; want: its type, DT_VOID for any; grid: it may say
 * 'multiprocessors'. */
bool contract_check(struct contract_reader *r, struct lang_expr *e, enum dtype want, bool grid);
/* A temp by its name with the $, anything else of the scope; NULL without an error. */
struct lang_symbol *contract_symbol(const struct contract *c, const char *name);

/* where: (contract_where.c). */
bool contract_read_where(struct contract_reader *r, const struct yaml_value *map);
/* Puts what they stand for in the place of names in a parsed expression. */
bool contract_expand(struct contract_reader *r, struct lang_expr **e);

/* The text of steps:, with the kernels of the file (contract_steps.c). */
bool contract_read_steps(struct contract_reader *r, const struct yaml_value *v,
                         const struct contract_file *file);

/* {map: a, box: [64, 128]} as an argument's map. */
bool contract_read_map(struct contract_reader *r, const struct yaml_value *v,
                       struct contract_map **out);
/* The names that the writer gives to what a contract says more than once. */
struct contract_names;
struct contract_names *contract_name(struct arena *a, const struct contract *c);
/* where:, or nothing. */
void contract_write_where(struct contract_names *w, struct buf *out);
/* An expression of the contract in the language, with names in it. */
const char *contract_text(struct contract_names *w, const struct lang_expr *e);

/* The map in braces, what has its default left out. */
void contract_write_map(const struct contract_map *m, struct contract_names *w, struct buf *out);
/* An expression's text as YAML, in quotes where it needs them. */
void contract_write_text(const char *text, struct buf *out);
/* An expression of the contract as YAML. in_map: a comma needs quotes, too. */
void contract_write_expr(const struct lang_expr *e, struct contract_names *w, bool in_map,
                         struct buf *out);

#endif
