/* A launch contract for PTX that comes without one (from nvcc, Triton ...), made from options. */
#ifndef KAIO_RUN_MADE_H
#define KAIO_RUN_MADE_H

#include "run/args.h"

struct made_options {
    const char *entry;
    const char *grid,
        *block; /* up to three expressions separated by commas: "ceil_div(n, 256), 1" */
    const char *cluster, *shared; /* NULL: none */
    /* "DECL=VALUE", in the order of the entry's parameters: "in f32[1024]=x.npy", "u32=1024"; a
     * scalar's value may be an expression of dimensions: "u32=n"; a struct by value has its members
     * in braces: "struct{in f32[8]=x.npy, u32=8}" */
    const char *const *arg;
    size_t narg;
};

/* The contract, and the values of its parameters as arguments for run_bind_args(): *value has
 * *nvalue elements. Parameters are called arg1, arg2, ..., members arg1_1, arg1_2, ...: NULL with
 * errors in d. */
struct contract *made_contract(struct arena *a, const struct made_options *o,
                               struct run_arg **value, size_t *nvalue, struct diags *d);

/* The entries of a module with their parameters, as notes, and how to launch one. */
void made_explain(const struct ptx_module *m, struct diags *d);

#endif
