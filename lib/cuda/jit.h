/* What the driver's compiler says of a module that it took: warnings of lost speed. Private to
 * lib/cuda.
 *
 * The driver keeps what it compiled (~/.nv/ComputeCache), and of what it finds there it says
 * nothing. So its verdict on modules that use wgmma or setmaxnreg, which it may serialise or
 * ignore, is kept beside: in the cache (base/cache.h), jit/HASH, for one text, compute capability
 * and driver.
 */
#ifndef KAIO_CUDA_JIT_H
#define KAIO_CUDA_JIT_H

#include "base/diag.h"

struct cu_jit {
    const struct source *ptx;
    unsigned sm;
    int driver;
};

/* Does the module use what may be compiled to something slower without a word in its text of it? */
bool cu_jit_delicate(const struct source *ptx);
/* The lines of the compiler's log (CU_JIT_INFO_LOG, verbose) that tell of lost speed: messages of
 * class C75xx, and spilled registers with the lines that say whose. */
const char *cu_jit_verdict(struct arena *a, const char *log);
/* A verdict as warnings, where in the text it belongs. */
void cu_jit_warn(const struct source *ptx, const char *verdict, struct diags *d);

/* The verdict that was kept, or NULL. */
const char *cu_jit_recall(struct arena *a, const struct cu_jit *j);
/* Where it can't be kept it is not. */
void cu_jit_keep(struct arena *a, const struct cu_jit *j, const char *verdict);

#endif
