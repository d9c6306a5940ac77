/* The CUDA driver, found at run time. Private to lib/cuda.
 *
 * Neither a toolkit nor its headers are needed to build: the declarations below are our own, of the
 * few calls in api.def.
 */
#ifndef KAIO_CUDA_API_H
#define KAIO_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

typedef int cu_result, cu_device;
typedef struct cu_context_ *cu_context;
typedef struct cu_module_ *cu_module;
typedef struct cu_library_ *cu_library;
typedef struct cu_function_ *cu_function;
typedef struct cu_stream_ *cu_stream;
typedef struct cu_event_ *cu_event;
typedef struct cu_graph_ *cu_graph;
typedef struct cu_graph_exec_ *cu_graph_exec;

/* Results that we tell apart. */
enum {
    CU_SUCCESS = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_FOUND = 500,
    CU_ILLEGAL_ADDRESS = 700,         /* 700 to 719: the kernel did something wrong ... */
    CU_LAUNCH_OUT_OF_RESOURCES = 701, /* ... but for this: the launch asks for too much */
    CU_LAUNCH_FAILED = 719,
    CU_INVALID_CLUSTER_SIZE = 912,
};

enum cu_device_attribute {
    CU_ATTR_CLOCK_RATE = 13,
    CU_ATTR_MULTIPROCESSOR_COUNT = 16,
    CU_ATTR_MEMORY_CLOCK_RATE = 36, /* kHz */
    CU_ATTR_MEMORY_BUS_WIDTH = 37,  /* bits */
    CU_ATTR_L2_CACHE_SIZE = 38,
    CU_ATTR_SM_MAJOR = 75,
    CU_ATTR_SM_MINOR = 76,
    CU_ATTR_SHARED_PER_BLOCK_OPTIN = 97,
};

enum cu_function_attribute {
    CU_FUNC_MAX_THREADS = 0, /* of a block, by its registers */
    CU_FUNC_STATIC_SHARED = 1,
    CU_FUNC_REGISTERS = 4,
    CU_FUNC_MAX_DYNAMIC_SHARED = 8,
    CU_FUNC_NON_PORTABLE_CLUSTER = 14,
};

enum cu_jit_option {
    CU_JIT_INFO_LOG = 3,
    CU_JIT_INFO_LOG_BYTES = 4,
    CU_JIT_ERROR_LOG = 5,
    CU_JIT_ERROR_LOG_BYTES = 6,
    CU_JIT_LOG_VERBOSE = 12,
};

enum { CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };
enum { CU_STREAM_DEFAULT = 0, CU_CAPTURE_THREAD_LOCAL = 1 };

struct cu_launch_attribute {
    int id;
    char pad[4];
    union {
        char size[64];
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
};

struct cu_launch_config {
    unsigned gx, gy, gz, bx, by, bz, shared;
    cu_stream stream;
    struct cu_launch_attribute *attrs;
    unsigned nattr;
};
struct cu_tensor_map {
    _Alignas(64) unsigned char bytes[128];
};
enum cu_tensor_type {
    CU_TENSOR_UINT8,
    CU_TENSOR_UINT16,
    CU_TENSOR_UINT32,
    CU_TENSOR_INT32,
    CU_TENSOR_UINT64,
    CU_TENSOR_INT64,
    CU_TENSOR_FLOAT16,
    CU_TENSOR_FLOAT32,
    CU_TENSOR_FLOAT64,
    CU_TENSOR_BFLOAT16,
    CU_TENSOR_FLOAT32_FTZ,
    CU_TENSOR_TFLOAT32,
};
_Static_assert(sizeof(struct cu_launch_attribute) == 72 && sizeof(struct cu_launch_config) == 56,
               "as the driver's ABI has them");

struct cu_api {
    void *library;
#define CU(name, symbol, params)          cu_result(*name) params;
#define CU_OPTIONAL(name, symbol, params) cu_result(*name) params; /* NULL: too old a driver */
#include "cuda/api.def"
#undef CU
#undef CU_OPTIONAL
};

/* Opens libcuda.so.1, or what the environment variable KAIO_CUDA_LIB names, and initialises it.
 * False with the reason in why (256 bytes): no library, a symbol missing, no device, a driver that
 * does not start. */
bool cu_open(struct cu_api *api, char why[256]);
/* "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered" */
const char *cu_error_text(const struct cu_api *api, struct arena *a, cu_result r);

#endif
