/* What a rival that is a library of matrix products is asked for (rival.h has the rivals). */
#ifndef KAIO_BENCH_BLAS_H
#define KAIO_BENCH_BLAS_H

#include "bench/product.h"
#include "bench/rival.h"

/* An operand as it is put into device memory: the spec's own bytes, or converted, or with k made
 * the last subscript. */
struct blas_operand {
    const struct lang_symbol *sym;
    enum dtype type;
    bool turned;     /* [batch][row][k], whatever the spec's layout is */
    uint64_t offset; /* elements before the first */
    uint64_t batch_stride, row_stride, k_stride;
    uint64_t batch, rows, k;
    uint64_t elements; /* in memory */
};
struct blas_request {
    struct blas_product product;
    struct blas_operand a, b;
};
struct blas_requests {
    VEC(struct blas_request) v;
    const char *note; /* rival.note */
    const char *why;  /* there is none */
};

/* ops: one of the library's rivals. The note says what the spec has besides. Memory is a's. */
struct blas_requests blas_requests_of(struct arena *a, const struct rival_ops *ops,
                                      const struct spec *s, const struct bench_point *p);
/* The rest of a spec, with its products as inputs product0, product1, ... of the library's result
 * types: equations for one kernel more, NAME_rest. NULL with an error: the spec has nothing
 * else. */
const struct source *blas_rest_of(struct arena *a, const struct code_source *src,
                                  const struct bench_point *p, struct diags *d);
/* "f32", "tf32" ... */
const char *blas_math_name(enum blas_math math);
/* "cublasGemmEx: m 128, n 64, k 32, a f16[m][k] ld 32, ...": appends a line for each. */
void blas_requests_text(const struct rival_ops *ops, const struct blas_requests *r,
                        struct buf *out);

#endif
