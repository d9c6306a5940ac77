/* How far off approximate instructions are: what is right, and what the PTX manual promises. */
#ifndef KAIO_TESTS_APPROX_H
#define KAIO_TESTS_APPROX_H

#include "opcodes.h"

/* What the manual promises of a form where its operands are ordinary; 0: nothing of that kind. An
 * error within any of them is within the promise. */
struct opc_promise {
    double relative, absolute, ulp;
};
const struct opc_promise *opc_promise(const struct opc_form *f);

/* A result as numbers: of packed formats two. */
struct opc_error {
    double promised; /* of what is promised, how much was used up: more than 1 breaks it */
    double ulp;      /* from the exact value */
    bool special;    /* the exact value is NaN, Inf or zero */
    bool open;       /* nothing is promised for these operands */
};
/* Of half h (0, 1) of the result to that tuple. */
struct opc_error opc_error(const struct opc_form *f, const uint64_t *tuple, uint64_t got,
                           unsigned h);
/* Steps between two results' halves h, as neighbours in their format; NaN equals NaN. */
double opc_apart(const struct opc_form *f, uint64_t a, uint64_t b, unsigned h);
unsigned opc_halves(const struct opc_form *f);

#endif
