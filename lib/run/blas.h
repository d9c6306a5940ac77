/* Matrix products by the vendor's library (cuBLAS), queued like everything of struct device_queue:
 * what kernels are compared with. Found at run time; a machine need not have it. */
#ifndef KAIO_RUN_BLAS_H
#define KAIO_RUN_BLAS_H

#include "data/dtype.h"
#include "run/device.h"

/* A matrix of elements, dense in its rows. */
struct blas_matrix {
    enum dtype type;
    bool swapped;    /* a is stored as [k][m], not [m][k]; b as [n][k], not [k][n]; c never */
    uint64_t ld;     /* elements from one row as stored to the next */
    uint64_t stride; /* elements from one product of the batch to the next; 0: the same one */
};

/* What sums are made of. */
enum blas_math {
    BLAS_F32,
    BLAS_TF32, /* operands of f32, rounded to tf32 */
    BLAS_F64,
    BLAS_I32,
};

/* c[x][i][j] = sum over l of a[x][i][l] * b[x][l][j], for batch values of x, m of i, n of j, k of
 * l. */
struct blas_product {
    uint64_t batch, m, n, k;
    enum blas_math math;
    struct blas_matrix a, b, c;
};

enum { BLAS_CHOICES_MOST = 32, BLAS_WORKSPACE = 32 << 20 };

struct blas_plan; /* a product made ready */

struct device_blas {
    /* DEVICE_ABSENT: no library; DEVICE_REFUSED: it does not take such a product. choices: 1 for
     * what the library takes by itself (cublasGemmEx; of fp8, which that has not, the first choice
     * of cublasLt); more for that many of cublasLt's choices, the one it thinks best first. */
    enum device_status (*plan)(struct device *dev, const struct blas_product *p, unsigned choices,
                               struct blas_plan **plan, struct diags *d);
    /* How many there are; 1 at least. */
    unsigned (*choices)(const struct blas_plan *plan);
    /* "algorithm 66, tile 20, 4 stages": what a choice is; "" where the library does not say. */
    const char *(*describe)(struct device *dev, const struct blas_plan *plan, unsigned choice);
    /* Queues it, or records it. */
    enum device_status (*multiply)(struct device *dev, struct blas_plan *plan, unsigned choice,
                                   uint64_t a, uint64_t b, uint64_t c, struct diags *d);
    void (*discard)(struct device *dev, struct blas_plan *plan);
    /* "cuBLAS 13.0.2"; after a plan was made. */
    const char *(*version)(struct device *dev);
};

#endif
