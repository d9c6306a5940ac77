/* YAML 1.1 text -> a tree of nodes that know their bytes in the source. The only user of libyaml.
 *
 * Input is untrusted: UTF-8 and control characters are checked first (libyaml reports them at 1:1),
 * nesting, size and the number of nodes, aliases expanded, are bounded, duplicate keys and aliases
 * that contain themselves are errors.
 */
#ifndef KAIO_SPEC_YAML_H
#define KAIO_SPEC_YAML_H

#include "base/diag.h"

enum {
    YAML_MAX_BYTES = 16 << 20,
    YAML_MAX_DEPTH = 100,
    YAML_MAX_NODES = 250000,
};

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

enum yaml_quoting {
    YAML_PLAIN,
    YAML_QUOTED,  /* '...' or "..." */
    YAML_LITERAL, /* | */
    YAML_FOLDED,  /* > */
};

struct yaml_pair {
    struct yaml_value *key; /* a scalar */
    struct yaml_value *value;
};

struct yaml_value {
    enum yaml_kind kind;
    struct span span; /* the node as written; a collection's first token */
    enum yaml_quoting style;
    const char *text; /* scalars: the value, NUL-terminated, without NULs inside */
    size_t len;
    /* Scalars: where the value's own bytes are, quotes and block header left out. False when they
     * are not there as such, because of escapes. */
    struct span raw;
    bool is_raw;
    struct yaml_value **item; /* lists */
    bool is_flow;             /* lists written [a, b]: */
    struct span all;          /* from the opening bracket to the closing one */
    struct yaml_pair *pair;   /* maps, in the order written */
    size_t n;                 /* of item or pair */
    size_t weight;            /* nodes in it, aliases expanded */
};

struct yaml_stream {
    VEC(struct yaml_value *) docs; /* NULL for an empty document */
};

/* Every document of the source. NULL with errors in d. */
struct yaml_stream *yaml_read(struct arena *a, const struct source *src, struct diags *d);

/* The value of a key of a map, or NULL. */
struct yaml_value *yaml_get(const struct yaml_value *map, const char *key);

#endif
