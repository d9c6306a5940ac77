/* cuBLAS, found at run time; the declarations are our own, of the few calls in blas.def. Private to
 * lib/cuda. */
#ifndef KAIO_CUDA_BLAS_H
#define KAIO_CUDA_BLAS_H

#include "cuda/api.h"
#include "run/blas.h"

struct lt_algorithm {
    uint64_t opaque[8];
};
/* cublasLtMatmulHeuristicResult_t */
struct lt_choice {
    struct lt_algorithm algorithm;
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};
_Static_assert(sizeof(struct lt_choice) == 96, "as the library's ABI has it");

struct blas_handle_;
struct lt_handle_;
struct lt_desc_;
struct lt_layout_;
struct lt_preference_;

/* Of a device: the libraries that are loaded, and their handles. */
struct blas {
    void *library, *lt_library;
    struct blas_handle_ *handle;
    struct lt_handle_ *lt_handle;
    uint64_t workspace; /* of both */
    char name[32];      /* "cuBLAS 13.0.2" */
#define BLAS(name, symbol, params) int(*name) params;
#define LT(name, symbol, params)   int(*Lt##name) params;
#include "cuda/blas.def"
};

extern const struct device_blas cuda_blas;
void cu_blas_close(struct device *dev);

#endif
