/* cuDNN, found at run time; the declarations are our own, of the few calls in cudnn.def. Private to
 * lib/cuda. */
#ifndef KAIO_CUDA_CUDNN_H
#define KAIO_CUDA_CUDNN_H

#include "cuda/api.h"
#include "run/sdpa.h"

struct cudnn_handle_;
struct cudnn_desc_;

/* A device keeps the library that it has loaded and its handle here. */
struct cudnn {
    void *library;
    struct cudnn_handle_ *handle;
    char name[32];              /* "cuDNN 9.19.0" */
    size_t (*GetVersion)(void); /* the only one that returns no status */
#define CUDNN(name, symbol, params) int(*name) params;
#include "cuda/cudnn.def"
};

/* An execution needs these beside its caller's buffers: each is a number, or memory in the
 * workspace. */
struct sdpa_extra {
    int64_t uid;
    bool is_number;
    uint64_t at; /* in the workspace */
    union {
        float f;
        int32_t i;
    } number;
};

enum { SDPA_DESCS_MOST = 256, SDPA_OPS_MOST = 48, SDPA_EXTRAS_MOST = 16 };

struct sdpa_plan {
    struct cudnn_desc_ *desc[SDPA_DESCS_MOST]; /* all that were made */
    struct cudnn_desc_ *op[SDPA_OPS_MOST];
    struct sdpa_extra extra[SDPA_EXTRAS_MOST];
    size_t ndesc, nop, nextra;
    struct cudnn_desc_ *graph, *plan;
    bool uses[SDPA_BUFFERS];
    uint64_t workspace, workspace_bytes, extra_bytes; /* the library's own part comes first */
};

extern const struct device_sdpa cuda_sdpa;
void cu_cudnn_close(struct device *dev);

struct cudnn_error {
    int status; /* 0: none */
    const char *call;
    char text[256]; /* the library's reason; "" where it gives none */
};

/* cudnn.c: loads the functions. False with an error in d. */
bool cu_cudnn_load(struct cudnn *lib, struct diags *d);
/* Makes a plan for the graph with the best engine that takes it. False where none does: why the
 * first did not. */
bool cu_cudnn_choose(const struct cudnn *lib, struct sdpa_plan *plan, struct cudnn_error *first);

/* cudnn_graph.c: makes the plan's graph of operations. handle NULL: as far as that goes without a
 * GPU. A status of the library; *call: what gave it. */
int cu_cudnn_graph(const struct cudnn *lib, struct cudnn_handle_ *handle,
                   const struct sdpa_problem *p, struct sdpa_plan *plan, const char **call);
/* Makes an object; it is destroyed with the plan. */
int cu_cudnn_make(const struct cudnn *lib, struct sdpa_plan *plan, int type,
                  struct cudnn_desc_ **out);
void cu_cudnn_drop(const struct cudnn *lib, struct sdpa_plan *plan);

#endif
