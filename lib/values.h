/* Between a run (values bound to a contract) and the reference (values by the spec's ids). */
#ifndef KAIO_VALUES_H
#define KAIO_VALUES_H

#include "ref/ref.h"
#include "run/run.h"

/* The run's dimensions, scalars and buffers as the reference wants them; run_shapes() has
 * succeeded. Arrays are the arena's; buffers are not copied. */
struct ref_input values_of(struct arena *a, const struct spec *s, struct run *r);
/* Whether some input buffer has two different elements. */
bool values_vary(const struct run *r);

#endif
