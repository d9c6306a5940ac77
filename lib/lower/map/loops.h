/* Loops over windows, of all lanes at once (loops.c). Private to map/window.c. */
#ifndef KAIO_LOWER_MAP_LOOPS_H
#define KAIO_LOWER_MAP_LOOPS_H

#include "lower/map/map.h"

/* After map_begin_reading(): reductions of many terms are loops, with the indices `inner`
 * innermost.
 */
void map_begin_loops(struct cg *g, struct map_reader *m, const struct map_windows *w,
                     const struct lang_symbol *const *inner, uint32_t ninner);

#endif
