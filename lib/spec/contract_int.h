/* Private to lib/spec: what the readers of a launch contract's parts share. */
#ifndef KAIO_SPEC_CONTRACT_INT_H
#define KAIO_SPEC_CONTRACT_INT_H

#include "spec/contract.h"
#include "spec/spec_int.h"

struct contract_reader {
    struct arena *a;
    struct diags *d;
    struct contract *c;
};

/* Each is false (NULL) with an error at the value. */

/* names ends with NULL. */
bool contract_only_keys(struct contract_reader *r, const struct yaml_value *map,
                        const char *const *names);
/* *out is left as it is when the key is missing, which is an error if it must be there. */
bool contract_word(struct contract_reader *r, const struct yaml_value *map, const char *key,
                   bool must, const char **out);
struct lang_expr *contract_integer(struct contract_reader *r, struct span text);
/* A temp by its name with the $, anything else of the scope; NULL without an error. */
struct lang_symbol *contract_symbol(const struct contract *c, const char *name);

/* {map: a, box: [64, 128]} as an argument's map. */
bool contract_read_map(struct contract_reader *r, const struct yaml_value *v,
                       struct contract_map **out);
/* The map in braces, what has its default left out. */
void contract_write_map(const struct contract_map *m, struct buf *out);
/* An expression of the language as YAML, in quotes where it needs them. in_map: a comma needs them too. */
void contract_write_expr(const struct lang_expr *e, bool in_map, struct buf *out);

#endif
