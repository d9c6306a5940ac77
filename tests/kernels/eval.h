/* Executes a checked body: thread by thread, in plain C, straight from the syntax tree: what the
 * emitted PTX should have done. Slow and simple. Nothing of lib/lower or lib/sim is used.
 *
 * Threads of a block are coroutines that stop where they meet (a barrier, a shuffle), so a kernel
 * whose result does not depend on the order of its threads gives the same bytes here as on a
 * device.
 */
#ifndef KAIO_TESTS_KERNELS_EVAL_H
#define KAIO_TESTS_KERNELS_EVAL_H

#include "data/buffer.h"
#include "kernels/scalar.h"
#include "spec/spec.h"

struct eval_param {
    union scalar value;   /* a scalar's */
    struct buffer buffer; /* a buffer's shape and contents, which the kernel reads and changes */
};

struct eval_input {
    const struct spec *spec;
    const struct eval_param *param; /* in the spec's order, as are the dimensions */
    const int64_t *dim;
};

/* Runs the whole grid. NULL, or what the kernel did that it must not (or what this evaluator does
 * not know), as text. */
const char *eval_kernel(struct arena *a, const struct eval_input *in);

#endif
