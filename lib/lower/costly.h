/* Which intermediates of a stage are worth storing: those that reduce and that are read again and
 * again, and not what a strategy computes as it goes. Private to lib/lower.
 */
#ifndef KAIO_LOWER_COSTLY_H
#define KAIO_LOWER_COSTLY_H

#include "lower/outline.h"

enum { MOST_COSTLY = 64 }; /* of which it is found out what is streamed */

bool costly_has(const equation_list *l, const struct lang_equation *eq);
/* The costly equations that e reads and that nothing has stored yet, deepest first. within: of a
 * reduction, or of what is made for each of its terms. */
void costly_find(struct cg *g, const struct lang_expr *e, const struct lang_equation *by,
                 bool within, equation_list *seen, equation_list *out);
/* Those that the stage needs, its reductions outlined. */
equation_list costly_of(struct cg *g, const struct lower_stage *all);
/* Which of them are better left to what a strategy streams, of the stage or of later ones? */
void costly_find_streamed(struct cg *g, const struct lower_stage *all, const equation_list *costly,
                          bool *streamed);
/* Does a strategy stream through some of what the stage needs, the rest being stored? */
bool costly_may_stream(struct cg *g, const struct lower_stage *all);
/* Is each of the stage's equations streamed, but not all of them in one pass? */
bool costly_stream_apart(struct cg *g, const struct lower_stage *all);

#endif
