/* Checked specs -> one PTX module with its launch contract.
 *
 *   spec -> stages, each by a strategy (strategies.def)
 *        -> instructions through cg/cg.h -> passes over them (pass/pass.h) -> ptx_module
 *
 * The same input gives the same bytes: nothing depends on addresses, time or the machine. Every
 * float operation is written with its rounding, and the emitter alone decides where a product and a
 * sum become one fma. It does so for a*b + c, c + a*b, a*b - c and c - a*b of one type, where the
 * product is written right there (not behind a cast or a name); of two products it takes the left
 * one. The product that is the term of a sum is added by one fma, whatever math: says. math: strict
 * contracts nothing else, and takes no variant of a function for results that are
 * rounded to 16 bits at once. math: fast also allows approximations.
 *
 * The words that lib/lower uses for its own things:
 *
 *   stage      1. the equations that one strategy computes together (struct lower_stage);
 *              2. in products of matrices: the part of shared memory that holds one tile of each
 *              operand while it is multiplied. Several are filled and read in turn.
 *   strategy   a way of turning a stage into code (strategy.h, strategies.def)
 *   form       what analysing a stage found, before any code: it proves that the strategy fits
 *   plan       the sizes chosen for a form: tiles, warps, stages of shared memory, splits
 *   shape      1. a tensor's dimensions; 2. struct mma_shape, wgmma_shape: all that follows from a
 *              form, a plan and a target, computed before any code and constant from then on
 *   variant    one of a stage's entries; the launch takes the first whose condition its sizes meet
 *   candidate  a schedule worth trying, which a tuner may ask for
 *   outline    to give a reduction without a name an intermediate of its own (outline.h)
 *   lift       to take a reduction out of the condition that guards it (lift.h)
 *   view       the expression that stands for another since it was outlined or lifted (cg_view)
 *   home       where later stages find an equation's result: a temporary buffer, or the output
 *              itself (struct cg_home)
 *   hoist      to compute once, before the ways part, what several ways compute alike
 *              (pass/hoist.c)
 *   tile       a rectangle that a block computes, or loads to shared memory, at once
 *   slab       the registers of one operand's tile, in the code of mma/ and simt/
 *   patch      the rows and columns of a tile whose sums are in shared memory at once, on their way
 *              to the epilogue; a block's or a warp's own
 *   box        16 rows of 128 bytes of a warp's patch (wgmma/box.h); to TMA, what one copy moves
 *   piece      what one access of one thread moves: 16 bytes at most
 *   part       1. one of the two numbers of fewer bits that stand for an f32 (tf32x3); 2. a
 *              thread's or block's portion of work that several do. "A warp's" tile or part: its
 *              rows and columns of the block's tile
 *   split      the number of blocks that divide a tile's sums along k among them
 *   share      one such block's range of k; blocks "share" an operand when one copy serves them all
 *   turned     transposed on its way, or computed transposed; "by turns" means one after another
 *   ring       the stages of shared memory with their barriers (wgmma/ring.h)
 *   producer   a warpgroup that fills the ring's stages
 *   consumer   a warpgroup that multiplies what they hold; takers: consumers that compute one tile
 *              together, all of them unless they take tiles by turns (pingpong: one of two)
 *   prologue   what is computed of buffers' elements to make an operand's
 *   epilogue   what is computed of the sums before they are stored
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

/* One module for all the specs: entries in the order of the specs, the header their contracts, the
 * version the lowest that has what is used, validated. NULL with errors in d: an impossible
 * schedule, something that the target lacks. The module's strings may point into the specs'
 * sources. */
struct ptx_module *lower_specs(struct arena *a, struct spec *const *specs, size_t n,
                               const struct ptx_target *target, const struct lower_options *opt,
                               struct diags *d);

/* The multiprocessors of the machine that code for the target is judged by. */
unsigned lower_multiprocessors(const struct ptx_target *target);

/* ---- schedules worth trying, for tuners ---- */

struct lower_candidate {
    const char *strategy, *text; /* text: as spec_set_schedule() takes it */
};
struct lower_candidates {
    VEC(struct lower_candidate) v;
};
/* What the strategies have to offer for a spec, read with the dimensions that are known: those that
 * fit it and the target, and others, which lower_specs() refuses; several may give the same code.
 * None of a body. The choice that is made without a schedule is not among them. */
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
    /* For one thread, if each instruction is executed once, and ten times for each loop around
     * it. */
    double flops, global_bytes;
    VEC(struct lower_access) access; /* loads, stores and atomics, as they come */
    VEC(struct lower_mix) mix;       /* most frequent first, ties by name */
};
/* One per entry, in order. */
struct lower_stat *lower_stats(struct arena *a, const struct ptx_module *m, size_t *n);

#endif
