/* Random equations: specs with a compute: that is valid and stays inside of its buffers for the
 * sizes of its one case. */
#ifndef KAIO_TESTS_EQUATIONS_GENERATE_H
#define KAIO_TESTS_EQUATIONS_GENERATE_H

#include "base/arena.h"
#include "kernels/random.h"
#include "ptx/ptx.h"

struct generated {
    const char *text; /* the spec; its case binds every dimension and scalar */
    const char *zero; /* a dimension that is 0, for which the case says 1; NULL: none */
    bool scheduled;   /* it has a schedule:, which may not fit */
};

/* A spec whose kernel is `name`, for that target. The same for the same target, seed and number. */
struct generated generate_equations(struct arena *a, const char *name,
                                    const struct ptx_target *target, uint64_t seed,
                                    uint64_t number);

/* An extent of this value, which is not 0, as an expression: of `name` and perhaps of FILTER, which
 * is 3. *of: name's value. */
#define GENERATE_FILTER "f"
const char *generate_extent(struct arena *a, struct random *r, const char *name, int64_t value,
                            int64_t *of);

/* contract.c: the same of contractions. */
struct generated generate_contraction(struct arena *a, const char *name,
                                      const struct ptx_target *target, uint64_t seed,
                                      uint64_t number);

#endif
