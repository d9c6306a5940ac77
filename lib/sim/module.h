/* What must hold before an entry runs, and where module-level variables lie. Private to lib/sim. */
#ifndef KAIO_SIM_MODULE_H
#define KAIO_SIM_MODULE_H

#include "sim/sim.h"

/* Allocates and initialises the module's .global and .const variables. */
enum device_status sim_place_symbols(const struct ptx_module *m, struct sim_memory *mem,
                                     struct sim_symbols *symbols, struct diags *d);

/* The entry, when it exists and the geometry and the arguments fit it; NULL with errors in d. */
const struct ptx_func *sim_check_launch(const struct ptx_module *m,
                                        const struct device_launch *what, struct diags *d);
/* Blocks of a cluster in each direction; 1,1,1 without clusters. */
struct device_dim sim_cluster_of(const struct ptx_func *f, const struct device_launch *what);
/* How many blocks an H100 would run at a time, 0 not being an answer. */
uint32_t sim_resident(const struct sim_launch *l);
/* Static and dynamic shared memory against the target's limit; *bytes is their sum. */
bool sim_check_shared(const struct ptx_module *m, const struct sim_code *code,
                      const struct device_launch *what, uint64_t *bytes, struct diags *d);

/* Functions that are no entries have numbers, and addresses made of them: what a call through a
 * register goes by. */
uint32_t sim_functions(const struct ptx_module *m); /* how many there are */
uint32_t sim_function_number(const struct ptx_module *m, const struct ptx_func *f);
/* 0: there is none of that name. */
uint64_t sim_function_address(const struct ptx_module *m, const char *name, size_t len);

struct sim_params {
    unsigned char *block;
    uint64_t *offset; /* of each parameter */
    uint64_t bytes;
};
/* The arguments laid out as the entry declares them. */
struct sim_params sim_pack_params(struct arena *a, const struct ptx_func *f,
                                  const struct device_launch *what);

#endif
