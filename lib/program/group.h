/* Private to lib/program: equations that become one kernel. */
#ifndef KAIO_PROGRAM_GROUP_H
#define KAIO_PROGRAM_GROUP_H

#include "program/program_int.h"

/* How a group reaches a buffer: by which part of it, "" for all, and how its kernel calls that. */
struct access {
    struct variable *var;
    const char *prefix; /* "t % n, 0": the subscripts that choose the part, as text */
    struct lang_expr **fixed;
    uint32_t nfixed;
    const char *param;  /* its name in the kernel */
    bool read, written; /* what was there before is read; it is assigned */
    /* The intermediate that is its value once it is assigned, where equations below read it; NULL:
     * none does. */
    const char *next;
    const struct lang_equation_step *by; /* written: the equation */
    bool assigned;                       /* while the text is written: it stands above */
};

/* A name that the group defines itself. */
struct local {
    const char *name;
    struct span span;
    bool escapes;         /* steps behind the group say it */
    struct shape shape;   /* escapes */
    struct variable *var; /* escapes: the temp, once the group is settled */
};

struct equation {
    const struct lang_step *step;
    uint32_t nfixed;   /* subscripts on its left that choose a part */
    struct access *to; /* what it assigns; NULL: a local */
};

/* An extent made of dimensions that no shape says alone, as "heads + 2 * kv": a dimension of its
 * own to the kernel, which gets its value from the buffer. */
struct extent {
    struct lang_expr *e;
    const char *text, *name;
};

struct group {
    struct builder *b;
    VEC(struct equation) v;
    VEC(struct access *) access;
    VEC(struct local) locals;
    /* Numbers that the kernel gets: scalars and loop indices, dimensions that no shape says. */
    VEC(const struct lang_symbol *) scalars;
    VEC(struct extent) extents;
    bool asks;  /* its one equation is a condition: 1 or 0 */
    bool plain; /* nothing stands for the next value of a buffer: only good for its types */
};

/* Walks an expression before it is checked, with the indices in scope. */
struct reads {
    struct builder *b;
    VEC(const char *) index;
    /* An E_NAME or E_INDEX that is no index; says how many of its first subscripts are not to be
     * walked. */
    uint32_t (*found)(void *ctx, struct lang_expr *e);
    void *ctx;
};
void find_reads(struct reads *r, struct lang_expr *e);

/* How many of the first subscripts choose an element of the program's: made of dimensions, integer
 * scalars, indices of loops and numbers only. */
uint32_t count_fixed(const struct reads *r, struct lang_expr *const *arg, uint32_t n);
bool is_fixed(const struct reads *r, const struct lang_expr *e);
const char *prefix_text(struct arena *a, struct lang_expr *const *arg, uint32_t n);

/* Does a step, or what is in it, say the name? */
bool step_says(const struct lang_step *s, const char *name);

/* NULL: the group does not reach it. */
struct access *find_access(const struct group *g, const char *name, const char *prefix);

/* ---- what goes in (group.c) */

/* Takes an equation into the group; *done is false when it would mean something else there. False
 * with an error. */
bool group_take(struct group *g, const struct lang_step *step, bool *done);
/* Once it has all its equations, and again when the shapes of its locals are known: a dimension
 * that is an extent of a buffer is one of the kernel's, another a number to it. */
void group_settle_numbers(struct group *g);
/* "f32[n, extent]" of a part of a buffer, as the kernel says it. */
const char *group_shape_text(struct group *g, const struct shape *s);
/* The end of an index's range as the kernel says it, where it is such an extent; else as it is. */
const char *group_range_text(struct group *g, const struct lang_expr *e);
/* An extent as the kernel says it, as the program does. NULL with an error at `at`. */
struct lang_expr *group_extent(struct group *g, const struct lang_expr *e, struct span at);
/* A name, with end behind it, that means nothing yet, neither to the kernel nor to the program. */
const char *group_own_name(struct group *g, const char *name, const char *end);

/* ---- its kernel (group_kernel.c) */

const char *group_name(const struct group *g);
/* Which of the names that it defines these steps say. */
void group_escapes(struct group *g, struct lang_step *const *rest, uint32_t n);
/* What those are. */
bool group_shapes(struct group *g, const char *name);
/* What it assigns has the buffers' types, also where the kernel stores it in the end only. */
bool group_check_stores(struct group *g, const char *name);
/* The spec; sink: as for group_text(). NULL with errors in d, about the program's lines. */
struct spec *group_read(struct group *g, const char *name, bool sink, struct diags *d);
/* Does nothing of it last? Such a group is no kernel, but what is wrong with it is said. */
bool group_is_dead(const struct group *g);
bool group_check(struct group *g);
/* Makes its kernel one of the program's, and its temps. */
bool group_finish(struct group *g, struct lang_call_step *out);

/* ---- its text (group_text.c) */

/* The kernel of the group as a spec's text: its lines are where the equations are in the program's
 * file. sink: with an output of nothing, for a reading that only asks what the locals are. */
const struct source *group_text(struct group *g, const char *name, bool sink);

#endif
