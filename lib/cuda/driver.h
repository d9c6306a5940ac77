/* A GPU that is open: what the parts of lib/cuda share. Private to lib/cuda. */
#ifndef KAIO_CUDA_DRIVER_H
#define KAIO_CUDA_DRIVER_H

#include "cuda/api.h"
#include "cuda/blas.h"
#include "cuda/cudnn.h"
#include "cuda/nvml.h"
#include "run/device.h"

/* A module and the text that it was made from. */
struct cu_loaded {
    cu_module module;   /* NULL: none */
    cu_library library; /* that it belongs to; NULL: none */
    const struct source *text;
};

struct device {
    struct arena *arena;
    struct cu_api cu;
    cu_device ordinal, id;
    cu_context context;
    struct cu_loaded loaded; /* by load() */
    int version;             /* of the driver: 12040 */
    unsigned sm;
    unsigned shared_optin; /* largest shared memory of a block, bytes */
    cu_event start, end;
    cu_stream stream; /* of the queue; NULL until it is used */
    struct nvml nvml;
    struct blas blas;
    struct cudnn cudnn;
};

/* Adds an error, "doing: what the driver says", and says what it means. */
enum device_status cu_failed(struct device *dev, struct diags *d, cu_result r, const char *doing);
/* The module that a launch names. */
const struct cu_loaded *cu_module_of(const struct device *dev, const struct device_launch *l);
/* The entry that a launch names, with its parameters checked, and prepared for the shared memory
 * and the cluster that the launch asks for. */
enum device_status cu_prepare(struct device *dev, const struct device_launch *l, cu_function *f,
                              struct diags *d);
cu_result cu_launch(struct device *dev, cu_function f, const struct device_launch *l,
                    cu_stream stream);

/* struct device_ops's tensor_map. */
enum device_status cu_tensor_map(struct device *dev, const struct device_tensor_map *m,
                                 unsigned char to[DEVICE_TENSOR_MAP], struct diags *d);

extern const struct device_queue cuda_queue;
/* Makes the stream where there is none yet. */
enum device_status cu_queue_stream(struct device *dev, struct diags *d);
void cu_queue_close(struct device *dev);

#endif
