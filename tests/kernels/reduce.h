/* Makes a failing kernel smaller: takes statements away and replaces expressions by their parts for
 * as long as it fails in the same way. */
#ifndef KAIO_TESTS_KERNELS_REDUCE_H
#define KAIO_TESTS_KERNELS_REDUCE_H

#include "base/arena.h"

/* Does this text still fail as the first one did? */
typedef bool reduce_test(void *ctx, const char *text);

/* The smallest text found with at most `most` tests. */
const char *reduce_kernel(struct arena *a, const char *text, reduce_test *fails, void *ctx,
                          unsigned most);

#endif
