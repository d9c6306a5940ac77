/* The names of a module while it is parsed: variables and functions of the module, parameters and
 * registers of a function, names of a { } block, the inner hiding the outer. Private to lib/ptx. */
#ifndef KAIO_PTX_SCOPE_H
#define KAIO_PTX_SCOPE_H

#include "ptx/ptx.h"

enum ptx_symbol_kind {
    PTX_S_REG,   /* index: the register */
    PTX_S_RANGE, /* %r<n>: index is that of %r0 */
    PTX_S_VAR,
    PTX_S_LABEL, /* index: the label */
    PTX_S_FUNC,
};

struct ptx_symbol {
    enum ptx_symbol_kind kind;
    const char *name;
    size_t len;
    uint32_t index, count; /* count: of a range */
    struct ptx_var *var;
    struct ptx_func *func;
    struct span span;
    /* the table's own */
    uint32_t hash, depth;
    struct ptx_symbol *next;
};

struct ptx_scopes {
    struct arena *arena;
    uint32_t depth;
    struct ptx_symbol **bucket;
    size_t nbucket;
    VEC(struct ptx_symbol *) stack; /* in the order declared */
};

void ptx_scopes_init(struct ptx_scopes *s, struct arena *a);
void ptx_scope_enter(struct ptx_scopes *s);
void ptx_scope_leave(struct ptx_scopes *s);
/* A new name in the innermost scope. Returns NULL when the scope already has it (see
 * ptx_scope_own). */
struct ptx_symbol *ptx_scope_add(struct ptx_scopes *s, const char *name, size_t len,
                                 enum ptx_symbol_kind kind);
/* The innermost scope's own symbol of exactly that name, or NULL. */
struct ptx_symbol *ptx_scope_own(const struct ptx_scopes *s, const char *name, size_t len);
/* What the name means here; of a range, *index is the register's. NULL when it means nothing. */
struct ptx_symbol *ptx_scope_find(const struct ptx_scopes *s, const char *name, size_t len,
                                  uint32_t *index);

#endif
