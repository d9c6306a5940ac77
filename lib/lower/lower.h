/* Checked specs -> one PTX module with its launch contract.
 *
 *   spec -> stages, each by a strategy (matmul, reduce, row, map, naive) -> instructions through cg.h -> ptx_module
 *
 * The same input gives the same bytes: nothing depends on addresses, time or the machine. Every float
 * operation is written with its rounding, and the emitter alone decides where a product and a sum become one fma:
 * a*b + c, c + a*b, a*b - c and c - a*b of one type, the product written right there (not behind a cast or a
 * name); of two products the left one. math: strict contracts nothing and
 * takes no variant of a function for results rounded to 16 bits at once, math: fast also allows approximations.
 */
#ifndef KAIO_LOWER_LOWER_H
#define KAIO_LOWER_LOWER_H

#include "lower/report.h"
#include "ptx/ptx.h"
#include "spec/spec.h"

/* Which instructions .loc gives a line of the spec, by which tools name it. */
enum lower_lines {
    LOWER_LINES_BODY, /* those of bodies */
    LOWER_LINES_ALL,  /* those of equations, too, and the calls of functions */
    LOWER_LINES_NONE,
};

struct lower_options {
    enum lower_lines lines;
    bool advises;  /* warns of what is slow and could be written otherwise */
    bool annotate; /* each group of instructions carries its source line as a comment */
    struct lower_report *report; /* the strategies, why, and the launches; NULL: not wanted */
};

/* One module for all the specs: entries in the order of the specs, the header their contracts, the version the
 * lowest that has what is used, validated. NULL with errors in d: an impossible schedule, something
 * that the target lacks. The module's strings may point into the specs' sources. */
struct ptx_module *lower_specs(struct arena *a, struct spec *const *specs, size_t n,
                               const struct ptx_target *target, const struct lower_options *opt,
                               struct diags *d);

/* Of the machine that code for the target is judged by. */
unsigned lower_multiprocessors(const struct ptx_target *target);

/* ---- schedules worth trying, for tuners ---- */

struct lower_candidate {
    const char *strategy, *text; /* text: as spec_set_schedule() takes it */
};
struct lower_candidates {
    VEC(struct lower_candidate) v;
};
/* What the strategies have to offer for a spec, read with the dimensions that are known: those that fit it and the target, and
 * others, which lower_specs() refuses; several may give the same code. None of a body. The choice that is made without
 * a schedule is not among them. */
struct lower_candidates lower_candidates(struct arena *a, const struct spec *s,
                                         const struct ptx_target *target);

/* ---- what a schedule may say ---- */

struct lower_option {
    const char *key, *values, *help; /* values: "a number from 1 to 16"; help: a phrase */
};
struct lower_strategy {
    const char *name, *takes; /* takes: which equations, a phrase */
    const struct lower_option *options;
    size_t noption;
};
/* In the order in which they are tried. */
const struct lower_strategy *lower_strategies(struct arena *a, size_t *n);

/* ---- counts, for --stats ---- */

enum lower_kind {
    LOWER_FLOAT,
    LOWER_INTEGER,
    LOWER_LOGIC, /* bits and shifts */
    LOWER_CONVERT,
    LOWER_COMPARE, /* and select */
    LOWER_MOVE,
    LOWER_MEMORY,
    LOWER_ATOMIC,
    LOWER_WARP,    /* shuffles, votes */
    LOWER_BARRIER, /* and fences */
    LOWER_TENSOR,
    LOWER_CONTROL,
    LOWER_KINDS,
};
const char *lower_kind_name(enum lower_kind k);

struct lower_mix {
    const char *name; /* "ld.global", "add", ... */
    size_t count;
};
struct lower_access {
    const char *name, *space; /* "ld", "global" */
    unsigned bytes;           /* of one thread */
    size_t count;
};
struct lower_stat {
    const char *entry;
    size_t instructions, kind[LOWER_KINDS];
    size_t branches, conditional, loops, barriers;
    uint64_t shared_bytes, local_bytes, const_bytes; /* dynamic shared memory is not counted */
    size_t pred, b16, b32, b64, f32, f64;            /* virtual registers by class */
    /* Of one thread, each instruction taken to be executed once, and ten times for each loop around it. */
    double flops, global_bytes;
    VEC(struct lower_access) access; /* loads, stores and atomics, as they come */
    VEC(struct lower_mix) mix;       /* most frequent first, ties by name */
};
/* One per entry, in order. */
struct lower_stat *lower_stats(struct arena *a, const struct ptx_module *m, size_t *n);

#endif
