/* Objects of cuDNN's backend interface, and those that every graph has. */
#include <config.h>

#include "cuda/cudnn.h"

#include "cuda/cudnn_values.h"

/* cudnn_graph.h */
enum {
    OPERATIONGRAPH_HANDLE = 800,
    OPERATIONGRAPH_OPS = 801,
    TENSOR_BYTE_ALIGNMENT = 900,
    TENSOR_DATA_TYPE = 901,
    TENSOR_DIMENSIONS = 902,
    TENSOR_STRIDES = 903,
    TENSOR_UNIQUE_ID = 906,
    TENSOR_IS_VIRTUAL = 907,
    TENSOR_IS_BY_VALUE = 908,
};

typedef struct cudnn_desc_ *desc;

int cu_cudnn_make(const struct cudnn *lib, struct cudnn_objects *made, int type, desc *out)
{
    *out = NULL;
    if (made->n == CUDNN_DESCS_MOST)
        return STATUS_NO_HOST_MEMORY;
    int r = lib->CreateDescriptor(type, out);
    if (r == 0)
        made->desc[made->n++] = *out;
    return r;
}

void cu_cudnn_drop(const struct cudnn *lib, struct cudnn_objects *made)
{
    while (made->n)
        lib->DestroyDescriptor(made->desc[--made->n]);
}

desc cu_cudnn_new(struct cudnn_builder *b, int type)
{
    desc out = NULL;
    if (b->status == 0 && (b->status = cu_cudnn_make(b->lib, b->made, type, &out)) != 0)
        b->call = "cudnnBackendCreateDescriptor";
    return out;
}

void cu_cudnn_set(struct cudnn_builder *b, desc t, int name, int type, int64_t n,
                  const void *values)
{
    if (b->status == 0 && (b->status = b->lib->SetAttribute(t, name, type, n, values)) != 0)
        b->call = "cudnnBackendSetAttribute";
}

void cu_cudnn_set_desc(struct cudnn_builder *b, desc t, int name, desc v)
{
    cu_cudnn_set(b, t, name, TYPE_BACKEND_DESCRIPTOR, 1, &v);
}

void cu_cudnn_set_int(struct cudnn_builder *b, desc t, int name, int type, int v)
{
    cu_cudnn_set(b, t, name, type, 1, &v);
}

void cu_cudnn_finish(struct cudnn_builder *b, desc t)
{
    if (b->status == 0 && (b->status = b->lib->Finalize(t)) != 0)
        b->call = "cudnnBackendFinalize";
}

/* ---- what every graph has ---- */

int cu_cudnn_type(enum dtype t)
{
    return t == DT_F16 ? HALF : t == DT_BF16 ? BFLOAT16 : t == DT_I32 ? INT32 : FLOAT;
}

desc cu_cudnn_tensor(struct cudnn_builder *b, const struct cudnn_tensor *t)
{
    const int64_t align = t->is_number ? 4 : 16;
    desc out = cu_cudnn_new(b, TENSOR_DESCRIPTOR);
    cu_cudnn_set_int(b, out, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, t->type);
    cu_cudnn_set(b, out, TENSOR_DIMENSIONS, TYPE_INT64, t->rank, t->dim);
    cu_cudnn_set(b, out, TENSOR_STRIDES, TYPE_INT64, t->rank, t->stride);
    cu_cudnn_set(b, out, TENSOR_UNIQUE_ID, TYPE_INT64, 1, &t->uid);
    cu_cudnn_set(b, out, TENSOR_BYTE_ALIGNMENT, TYPE_INT64, 1, &align);
    cu_cudnn_set(b, out, TENSOR_IS_VIRTUAL, TYPE_BOOLEAN, 1, &t->is_virtual);
    cu_cudnn_set(b, out, TENSOR_IS_BY_VALUE, TYPE_BOOLEAN, 1, &t->is_number);
    cu_cudnn_finish(b, out);
    return out;
}

desc cu_cudnn_operations(struct cudnn_builder *b, struct cudnn_handle_ *handle, const desc *op,
                         size_t n)
{
    desc graph = cu_cudnn_new(b, OPERATIONGRAPH_DESCRIPTOR);
    if (handle)
        cu_cudnn_set(b, graph, OPERATIONGRAPH_HANDLE, TYPE_HANDLE, 1, &handle);
    cu_cudnn_set(b, graph, OPERATIONGRAPH_OPS, TYPE_BACKEND_DESCRIPTOR, (int64_t)n, op);
    cu_cudnn_finish(b, graph);
    return graph;
}
