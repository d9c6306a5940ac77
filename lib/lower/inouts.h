/* Which stages read a buffer that is updated in place, and where. Private to lib/lower. */
#ifndef KAIO_LOWER_INOUTS_H
#define KAIO_LOWER_INOUTS_H

#include "lower/strategy.h"

/* Does the stage read the inout? *other is a read of an element that it does not write in the same
 * thread; NULL: there is none. */
bool inouts_read(struct cg *g, const struct lower_stage *s, const struct lang_symbol *buffer,
                 const struct lang_expr **other);

#endif
