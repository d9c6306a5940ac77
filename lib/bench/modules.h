/* Modules that are compiled at a time, by as many threads as there are cores: the driver's compiler
 * takes most of the time of a search. Each is taken once, in any order; what is made of one does
 * not depend on the others, nor on the number of threads.
 */
#ifndef KAIO_BENCH_MODULES_H
#define KAIO_BENCH_MODULES_H

#include "bench/rival.h"

struct modules;

/* Begins with the first of n texts, which outlive their modules. threads: at most; 0: one for each
 * core; 1, or where none can be made: modules_take() compiles. Memory is a's. */
struct modules *modules_begin(struct arena *a, const struct bench_device *dev,
                              const struct source *const *ptx, size_t n, unsigned threads,
                              const volatile int *interrupted);
/* Waits for module i, which is the caller's from then on. What was said of it goes to d. When
 * interrupted it may be DEVICE_REFUSED without a word. */
enum device_status modules_take(struct modules *m, size_t i, struct device_module **out,
                                struct diags *d);
/* Compiles no more, and unloads what was not taken. */
void modules_end(struct modules *m);

#endif
