/* Random kernels: well-typed specs with a body: that end, stay inside of their buffers and whose
 * result does not depend on the order in which threads run. */
#ifndef KAIO_TESTS_KERNELS_GENERATE_H
#define KAIO_TESTS_KERNELS_GENERATE_H

#include "base/arena.h"

/* The text of a spec whose kernel is `name`, for targets from sm (80, 90) on; its one case binds
 * every dimension and scalar. The same text for the same sm, seed and number. */
const char *generate_kernel(struct arena *a, const char *name, unsigned sm, uint64_t seed,
                            uint64_t number);

#endif
