/* Which words of the language a set of kernels uses: so that nothing is silently never
 * generated. */
#ifndef KAIO_TESTS_KERNELS_COVERAGE_H
#define KAIO_TESTS_KERNELS_COVERAGE_H

#include "spec/spec.h"

enum { COVER_OPS = OP_LOR + 1, COVER_EXPRS = E_STRING + 1, COVER_STMTS = S_CASE + 1 };

struct coverage {
    uint64_t expr[COVER_EXPRS], stmt[COVER_STMTS];
    uint64_t op[COVER_OPS][DT_COUNT + 1];   /* by the type of the operands */
    uint64_t compound[COVER_OPS][DT_COUNT]; /* by the type of the left side */
    uint64_t builtin[FN_COUNT]
                    [DT_COUNT + 1];        /* by the type of the first argument; DT_COUNT: none */
    uint64_t cast[DT_COUNT + 1][DT_COUNT]; /* from, to */
    uint64_t special[SP_COUNT];
    uint64_t local[DT_COUNT], buffer[DT_COUNT], functions;
    uint64_t vector[DT_COUNT]; /* declared variables and elements */
    uint64_t arrays, tables, shared, unrolled;
};

/* Adds a kernel. May be called by several processes at once on shared memory. */
void coverage_add(struct coverage *c, const struct spec *s);
/* A table for people. */
void coverage_print(const struct coverage *c, struct buf *out);
/* What should occur and does not: a list of words, one a line; "" when nothing is missing. */
void coverage_missing(const struct coverage *c, struct buf *out);

#endif
