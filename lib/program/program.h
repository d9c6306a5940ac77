/* Programs: many kernels and loops as one launch (kaio-program(5)).
 *
 *     struct spec_file *file = spec_read(...);             a spec with ->program
 *     struct program *p = program_build(a, spec, file, &options, d);
 *     lower_specs(a, p->kernels.v, p->kernels.n, ...);     a module of its kernels
 *     contract_write(p->contract, &header);                and its contract, behind theirs
 *
 * Building a program reads the kernels that it uses, finds for each call the types and dimensions
 * that the arguments have, and makes a kernel of each run of equations between calls and loops.
 * What comes out are kernels, each a spec with its own reference, and steps that are calls of them.
 */
#ifndef KAIO_PROGRAM_PROGRAM_H
#define KAIO_PROGRAM_PROGRAM_H

#include "spec/contract.h"
#include "spec/spec.h"

struct program_options {
    const char *const *path; /* folders where kernels are looked for, after the program's own */
    size_t npath;
    /* Whether a kernel that was made of equations can be compiled: those that can't are cut in two.
     * NULL: nobody knows. What is wrong with it is not asked. */
    bool (*compiles)(void *ctx, struct spec *s);
    void *ctx;
};

/* The folders for path: those of `first`, then those of $KAIO_PATH, separated by colons, then the
 * installed specs. */
const char *const *program_path(struct arena *a, const char *const *first, size_t nfirst,
                                size_t *n);

/* A kernel of the program, for all calls of the same types and known dimensions. */
struct program_kernel {
    struct spec *spec; /* its name is unique among them */
    struct span span;  /* the first call, or the first of its equations */
    const char *use;   /* what the program calls it; NULL: made of equations */
};

struct program {
    const struct spec *spec;
    VEC(struct program_kernel) kernels;
    struct contract *contract; /* its steps as they are written, not read */
};

/* file: where s was read, whose kernels it may call; target: for the contract. NULL with errors in
 * d. */
struct program *program_build(struct arena *a, const struct spec *s, const struct spec_file *file,
                              const struct program_options *opt, const char *target,
                              struct diags *d);

#endif
