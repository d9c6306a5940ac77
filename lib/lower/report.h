/* What kaio-emit --explain says of a module: in words, and in parts for a summary and for
 * programs. */
#ifndef KAIO_LOWER_REPORT_H
#define KAIO_LOWER_REPORT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Why something better was not taken. */
struct lower_lack {
    const char *what, *why; /* what: a strategy, or an instruction */
};

/* An entry, as the strategy that made it tells of it. */
struct lower_entry {
    const char *name;
    const char *how, *more; /* in a few words, and the rest of the line; NULL: nothing */
    const char *when;       /* the sizes that it is for; NULL: all */
    const char *multiplies; /* the instructions of tensor cores that it has; NULL: none */
    double ns;              /* how long it takes by the model; 0: not known */
};

struct lower_launch {
    struct lower_entry entry;                /* .when: of the launch */
    const char *grid[3], *block[3], *shared; /* texts of the launch; shared: bytes */
    uint32_t step; /* of those of one step the first is launched whose condition holds */
};

/* Equations that one strategy computes, in one step. */
struct lower_part {
    const char *entry, *strategy;
    bool scheduled; /* the schedule names it */
    uint32_t step;
    VEC(struct lower_lack) lacks;
};

struct lower_type {
    const char *name, *chosen;
};

/* A buffer that no user sees, between launches. */
struct lower_temp {
    const char *name, *bytes; /* bytes: a text of the launch */
};

struct lower_derived {
    const char *name, *of; /* a dimension, and what says it */
};

struct lower_kernel {
    const char *name;
    VEC(struct lower_type) types;
    VEC(const char *) open; /* dimensions that are not fixed */
    VEC(struct lower_derived) derived;
    VEC(struct lower_part) parts;
    VEC(struct lower_temp) temps;
    VEC(struct lower_launch) launches;
    /* while it is compiled: */
    VEC(struct lower_lack) lacks; /* of the part that is next */
    VEC(struct lower_entry) entries;
};

/* The strings are the arena's that the module was compiled in. */
struct lower_report {
    struct buf text; /* all that was found, in words, in the order in which it was */
    VEC(struct lower_kernel *) kernels;
};

#endif
