/* Warnings about equations that are computed slowly and could be written such that they are not.
 * Private to lib/lower. */
#ifndef KAIO_LOWER_ADVICE_H
#define KAIO_LOWER_ADVICE_H

#include "lower/strategy.h"

/* The stage is left to naive, though nobody asked for that. More than 2^16 terms, or a number that
 * is not known, are worth a warning. */
void advise_naive(struct cg *g, const struct lower_stage *s);

#endif
