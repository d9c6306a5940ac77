/* The golden file: what an H100 gave, packed. A line of an instruction's name stands before its
 * forms. A form's line is the rest of its name, 18 bits of a hash for each kind of tuples in three
 * letters, and where the form is the first of its row in isa.def also some results in full, which
 * another hash is no help to explain. Of approximations every fourth result is there instead, on
 * lines that begin with blanks. */
#ifndef KAIO_TESTS_OPCODES_GOLDEN_H
#define KAIO_TESTS_OPCODES_GOLDEN_H

#include "opcodes.h"

#include <stdio.h>

enum { OPC_LETTERS = 3, OPC_DIGEST = OPC_LETTERS * OPC_KINDS, OPC_APPROX_STEP = 4 };

/* What stands behind the name of the form number i. */
const char *opc_golden_text(struct arena *a, const struct opc_forms *forms, size_t i,
                            const uint64_t *got);
/* Writes the line of form number i, its instruction's name before the first. */
void opc_golden_write(FILE *to, const struct opc_forms *forms, size_t i, const char *text);

struct opc_golden {
    const char **text;  /* of each form, behind the name; NULL: none */
    unsigned strangers; /* lines of no form */
    unsigned
        missing; /* forms that the file says it has not: its first line, "missing N"; 0: none */
};
struct opc_golden opc_golden_read(struct opc_forms *forms, const char *text);

#endif
