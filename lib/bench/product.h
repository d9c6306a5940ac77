/* The matrix products in a spec's mathematics: what a library of such products would be asked for
 * in its place.
 *
 * A product is sum[k](a * b), where a and b each hold a read of an input that is subscripted by
 * plain names (and constants), k among them; what else is around the reads, or around the sum, is
 * left away. The other indices of a are its rows, those of b its columns, those of both the batch.
 */
#ifndef KAIO_BENCH_PRODUCT_H
#define KAIO_BENCH_PRODUCT_H

#include "bench/sweep.h"
#include "run/blas.h"

/* One of the two, as it lies in its buffer; strides in elements. */
struct product_operand {
    const struct lang_symbol *sym; /* the parameter */
    enum dtype type;               /* that it is multiplied in: the spec's f16(x[i,k]) */
    uint64_t offset;               /* of its first element */
    uint64_t batch_stride, row_stride, k_stride; /* row: of m in a, of n in b */
};
struct product {
    struct product_operand a, b;
    uint64_t batch, m, n, k;
    enum dtype result;
    const struct lang_equation *eq; /* where it is ... */
    const struct lang_expr *sum;    /* ... and what */
    bool tf32;                      /* both are written as tf32(), tf32_rn() or tf32_rz() */
};
struct products {
    VEC(struct product) v;
    bool plain;      /* the spec is the one product, and says nothing else */
    const char *why; /* there are none: what is missing, or in the way */
};

/* Of a spec at a point; the point's types are those that s was read with. Memory is a's. */
struct products products_find(struct arena *a, const struct spec *s, const struct bench_point *p);

/* Multiplications and additions, of all of them. */
double products_operations(const struct products *p);

#endif
