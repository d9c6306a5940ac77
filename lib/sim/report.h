/* How reports name things: instructions, source lines, threads, places in memory. Private to
 * lib/sim. Texts are in the launch's arena.
 */
#ifndef KAIO_SIM_REPORT_H
#define KAIO_SIM_REPORT_H

#include "base/finding.h"
#include "sim/sim.h"

/* "s_sum in block_reduce": what the source calls _ZZ12block_reducePKfPfiE5s_sum; text itself where
 * that is no such name. */
const char *sim_plain_name(struct arena *a, const char *text);

/* The instruction of a record, or for a label the one behind it. */
struct span sim_span_of(const struct sim_launch *l, uint32_t op);
/* "(3,0,1)": the i-th of n. */
const char *sim_dim_text(struct arena *a, const struct device_dim *n, uint64_t i);
/* "block (0,0,0), thread (5,0,0)" */
const char *sim_thread_text(const struct sim_launch *l, uint64_t block, uint32_t thread);
/* A note of where in the source the instruction comes from, if a .loc says so. */
void sim_note_source(struct sim_launch *l, uint32_t op, struct diags *d);
/* Once, under checks: how reports come to name lines of the source, where the PTX has none. */
void sim_note_no_lines(struct sim_launch *l, struct diags *d);
/* "element [2, 7] of 'tile' (shared f32[32][33])", "element 1024 of 'y' (f32[n], 1024 elements)".
 * space: enum sim_space. var: the variable that the address should be in, NULL: the one that it is
 * in. */
const char *sim_place_text(const struct sim_launch *l, unsigned space, uint64_t address,
                           const struct ptx_var *var);

/* Describes a place: its space ("global", "shared", "local"), where in that it is, and the name of
 * the buffer or variable; NULL: none. var as above. */
struct sim_where {
    const char *space, *buffer;
    uint64_t address;
};
struct sim_where sim_place_of(const struct sim_launch *l, unsigned space, uint64_t address,
                              const struct ptx_var *var);
/* Finds where in the source a record comes from (finding_side.source), in a. */
const struct finding_place *sim_sources(const struct sim_launch *l, struct arena *a, uint32_t op,
                                        size_t *n);

/* Explains the diagnostic at index i of d: a fault. */
void sim_explain_fault(const struct sim_launch *l, const struct sim_fault *f, struct diags *d,
                       size_t i);
/* A finding of the sanitizer in parts, in a. */
struct check_finding;
struct finding sim_finding_of(const struct sim_launch *l, const struct check_finding *f,
                              struct arena *a);
/* The stack of a kernel with routines, which is its last local variable, when the access is behind
 * it; or NULL. */
const struct sim_symbol *sim_over_stack(const struct sim_launch *l, const struct sim_fault *f);

/* Is it an access to memory that was released or freed? */
bool sim_after_free(const struct sim_launch *l, const struct sim_fault *f);

/* The shared or local variable at an offset; NULL: none. */
const struct sim_symbol *sim_var_at(const struct sim_launch *l, unsigned space, uint64_t off);
/* Adds the launch's arrays in dynamic shared memory to the variables that reports name. */
void sim_name_arrays(struct arena *a, struct sim_code *code, const struct device_launch *what);

#endif
