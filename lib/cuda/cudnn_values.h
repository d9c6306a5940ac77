/* Values of the library's cudnn_graph.h that more than one file here needs: the types of
 * descriptors, of attributes and of elements, and statuses. Private to lib/cuda/cudnn*.c. */
#ifndef KAIO_CUDA_CUDNN_VALUES_H
#define KAIO_CUDA_CUDNN_VALUES_H

enum {
    OPERATIONGRAPH_DESCRIPTOR = 15,
    TENSOR_DESCRIPTOR = 17,
};
enum {
    TYPE_HANDLE = 0,
    TYPE_DATA_TYPE = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_VOID_PTR = 6,
    TYPE_CONVOLUTION_MODE = 7,
    TYPE_HEUR_MODE = 8,
    TYPE_NUMERICAL_NOTE = 11,
    TYPE_POINTWISE_MODE = 14,
    TYPE_BACKEND_DESCRIPTOR = 15,
    TYPE_REDUCTION_OPERATOR = 18,
};
enum { FLOAT = 0, HALF = 2, INT32 = 4, BFLOAT16 = 9, BOOLEAN = 11 };
enum {
    STATUS_NO_SUBLIBRARY = 1008,
    STATUS_REFUSES = 2000, /* parameters, and then what is not supported */
    STATUS_NOT_SUPPORTED = 3000,
    STATUS_INTERNAL = 4000,
    STATUS_NO_HOST_MEMORY = 4003,
};

#endif
