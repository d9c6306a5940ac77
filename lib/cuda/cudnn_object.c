/* Objects of cuDNN's backend interface. */
#include <config.h>

#include "cuda/cudnn.h"

enum { TYPE_BACKEND_DESCRIPTOR = 15 }; /* cudnn_graph.h */
enum { ALLOC_FAILED = 4003 };

typedef struct cudnn_desc_ *desc;

int cu_cudnn_make(const struct cudnn *lib, struct cudnn_objects *made, int type, desc *out)
{
    *out = NULL;
    if (made->n == CUDNN_DESCS_MOST)
        return ALLOC_FAILED;
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
