/* Damages a kernel: what a user's mistakes make of it, which must be refused or compiled, never
 * crash. */
#ifndef KAIO_TESTS_KERNELS_MUTATE_H
#define KAIO_TESTS_KERNELS_MUTATE_H

#include "base/arena.h"
#include "kernels/random.h"

/* The text of a spec with some words of its functions and body dropped, doubled, exchanged or
 * replaced by others. */
const char *mutate_kernel(struct arena *a, const char *text, struct random *r);

#endif
