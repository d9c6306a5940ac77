/* PTX with its launch contract: read once, for any number of runs. */
#ifndef KAIO_RUN_LOADED_H
#define KAIO_RUN_LOADED_H

#include "run/made.h"

struct loaded_options {
    const char *path;         /* of the PTX; "-": standard input */
    const char *launch;       /* the file with the contract; NULL: the PTX holds it, or: */
    struct made_options made; /* entry NULL: none is made */
    bool gpu;                 /* whose driver may know more of PTX than we do */
};

struct loaded {
    const struct source *ptx;
    struct ptx_module *module;       /* NULL: we can't read it; the device will tell */
    struct contract_file *contracts; /* one kernel each */
    const char *where;               /* they were read, for messages; NULL: there is one, made */
    const struct run_arg *arg;       /* values that were given with one that was made */
    size_t narg;
};

/* All of it is in the arena. False with errors in d. */
bool loaded_read(struct arena *a, const struct loaded_options *o, struct loaded *p,
                  struct diags *d);
/* The contract of a kernel; name NULL: of the only one. NULL with errors in d. */
const struct contract *loaded_kernel(const struct loaded *p, const char *name, struct diags *d);
/* Whether a launch may leave something behind in the module, which the next one finds: variables in
 * global memory. */
bool loaded_has_state(const struct loaded *p);

#endif
