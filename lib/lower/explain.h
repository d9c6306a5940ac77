/* What --explain says of a spec's equations before a strategy is chosen: what each is, and what it
 * costs. Private to lib/lower. */
#ifndef KAIO_LOWER_EXPLAIN_H
#define KAIO_LOWER_EXPLAIN_H

#include "lower/cg/cg.h"

/* All elements' bytes: "4 * rows * cols". */
void explain_bytes(const struct lang_symbol *t, struct buf *out);
/* Each equation with its form and its operations, then the bytes that must move at least. Nothing
 * without --explain. */
void explain_equations(struct cg *g);

/* ---- report.c: the same in parts (report.h) ---- */

void report_kernel(struct cg *g);  /* begins one */
void report_attempt(struct cg *g); /* forgets what strategies lacked before */
/* Between them a strategy makes code for a part of the equations. */
void report_part(struct cg *g, const char *entry, const char *strategy, bool scheduled);
void report_part_end(struct cg *g);
/* What the contract launches, and the buffers between launches; in words, too. */
void report_launches(struct cg *g);

#endif
