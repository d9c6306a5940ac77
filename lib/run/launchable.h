/* PTX with its launch contract: read once, for any number of runs. */
#ifndef KAIO_RUN_LAUNCHABLE_H
#define KAIO_RUN_LAUNCHABLE_H

#include "run/made.h"

struct launchable_options {
    const char *path;         /* of the PTX; "-": standard input */
    const char *launch;       /* the file with the contract; NULL: the PTX holds it, or: */
    struct made_options made; /* entry NULL: none is made */
    bool gpu;                 /* whose driver may know more of PTX than we do */
};

struct launchable {
    const struct source *ptx;
    struct ptx_module *module; /* NULL: we can't read it; the device will tell */
    struct contract_file *contracts;
    const char *where;         /* they were read, for messages; NULL: there is one, made */
    const struct run_arg *arg; /* values that were given with one that was made */
    size_t narg;
};

/* All of it is in the arena. False with errors in d. */
bool launchable_read(struct arena *a, const struct launchable_options *o, struct launchable *p,
                     struct diags *d);
/* The contract of a kernel or program; name NULL: what the file is for. NULL with errors in d. */
const struct contract *launchable_kernel(const struct launchable *p, const char *name,
                                         struct diags *d);
/* Whether a launch may leave something behind in the module, which the next one finds: variables in
 * global memory. */
bool launchable_has_state(const struct launchable *p);

#endif
