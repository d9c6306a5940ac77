/* cuDNN, found at run time; the declarations are our own, of the few calls in cudnn.def. Private to
 * lib/cuda. */
#ifndef KAIO_CUDA_CUDNN_H
#define KAIO_CUDA_CUDNN_H

#include "cuda/api.h"
#include "run/conv.h"
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

enum { CUDNN_DESCS_MOST = 256, SDPA_OPS_MOST = 48, SDPA_EXTRAS_MOST = 16 };

/* The library's objects that were made for a plan, to be destroyed with it. */
struct cudnn_objects {
    struct cudnn_desc_ *desc[CUDNN_DESCS_MOST];
    size_t n;
};

struct sdpa_plan {
    struct cudnn_objects made;
    struct cudnn_desc_ *op[SDPA_OPS_MOST];
    struct sdpa_extra extra[SDPA_EXTRAS_MOST];
    size_t nop, nextra;
    struct cudnn_desc_ *graph, *plan;
    bool uses[SDPA_BUFFERS];
    uint64_t workspace, workspace_bytes, extra_bytes; /* the library's own part comes first */
};

struct conv_plan {
    struct cudnn_objects made;
    struct cudnn_desc_ *graph;
    struct cudnn_desc_ *plan[CONV_CHOICES_MOST];
    unsigned n;
    uint64_t workspace, workspace_bytes; /* what the greediest wants */
};

extern const struct device_sdpa cuda_sdpa;
extern const struct device_conv cuda_conv;
void cu_cudnn_close(struct device *dev);

struct cudnn_error {
    int status; /* 0: none */
    const char *call;
    char text[256]; /* the library's reason; "" where it gives none */
};

/* ---- cudnn_object.c -------------------------------------------------------------------------- */

/* Makes an object; it is destroyed with the others. */
int cu_cudnn_make(const struct cudnn *lib, struct cudnn_objects *made, int type,
                  struct cudnn_desc_ **out);
void cu_cudnn_drop(const struct cudnn *lib, struct cudnn_objects *made);

/* Makes objects and gives them attributes. The first status that is not 0 stays, and nothing is
 * done from then on. */
struct cudnn_builder {
    const struct cudnn *lib;
    struct cudnn_objects *made;
    int status;
    const char *call; /* what gave it */
};
struct cudnn_desc_ *cu_cudnn_new(struct cudnn_builder *b, int type);
void cu_cudnn_set(struct cudnn_builder *b, struct cudnn_desc_ *t, int name, int type, int64_t n,
                  const void *values);
void cu_cudnn_set_desc(struct cudnn_builder *b, struct cudnn_desc_ *t, int name,
                       struct cudnn_desc_ *v);
void cu_cudnn_set_int(struct cudnn_builder *b, struct cudnn_desc_ *t, int name, int type, int v);
void cu_cudnn_finish(struct cudnn_builder *b, struct cudnn_desc_ *t);

/* A tensor of a graph, of the library's type (cudnn_values.h). Its number is not 0. */
struct cudnn_tensor {
    int type;
    int64_t rank, uid;
    const int64_t *dim, *stride;
    bool is_virtual; /* one operation makes it for others; it is in no memory */
    bool is_number;  /* its value is given in place of an address */
};
int cu_cudnn_type(enum dtype t);
struct cudnn_desc_ *cu_cudnn_tensor(struct cudnn_builder *b, const struct cudnn_tensor *t);
/* The graph of n operations. handle NULL: as far as that goes without a GPU. */
struct cudnn_desc_ *cu_cudnn_operations(struct cudnn_builder *b, struct cudnn_handle_ *handle,
                                        struct cudnn_desc_ *const *op, size_t n);

/* ---- cudnn.c --------------------------------------------------------------------------------- */

/* Loads the functions. False with an error in d. */
bool cu_cudnn_load(struct cudnn *lib, struct diags *d);
/* What the library says of its last error. */
void cu_cudnn_take_error(const struct cudnn *lib, int status, const char *call,
                         struct cudnn_error *e);
enum device_status cu_cudnn_tell(struct diags *d, const struct cudnn_error *e);
enum device_status cu_cudnn_failed(const struct cudnn *lib, struct diags *d, int status,
                                   const char *call);
/* Loads the library and makes the handle of a device that has none, and memory of zeros for a plan,
 * which free() frees. */
enum device_status cu_cudnn_begin(struct device *dev, size_t bytes, void **plan, struct diags *d);
/* Allocates a workspace; there is none of 0 bytes. */
enum device_status cu_cudnn_workspace(struct device *dev, uint64_t bytes, uint64_t *address,
                                      struct diags *d);
/* Goes through the engines that the heuristic names for a graph, the best one first, and makes
 * plans of them until use() has had enough and returns false. The first error is kept in *first,
 * unless one is there. The heuristic leaves out engines that do not support the graph, perhaps all;
 * the one that is the fallback knows some for what it did not foresee. */
struct cudnn_tried {
    struct cudnn_desc_ *engine, *plan;
    uint64_t workspace_bytes;
};
void cu_cudnn_try(const struct cudnn *lib, struct cudnn_objects *made, struct cudnn_desc_ *graph,
                  bool fallback, struct cudnn_error *first,
                  bool (*use)(void *ctx, const struct cudnn_tried *t), void *ctx);
/* Makes a plan for the graph with the best engine that takes it. False where none does: why the
 * first did not. */
bool cu_cudnn_choose(const struct cudnn *lib, struct sdpa_plan *plan, struct cudnn_error *first);
/* Executes a plan on n tensors, by their numbers. */
enum device_status cu_cudnn_execute(struct device *dev, struct cudnn_desc_ *plan, int64_t n,
                                    const int64_t *uid, void *const *at, uint64_t workspace,
                                    struct diags *d);
const char *cu_cudnn_version(struct device *dev);

/* ---- cudnn_graph.c, cudnn_conv.c ------------------------------------------------------------- */

/* Makes the plan's graph of operations. handle NULL: as far as that goes without a GPU. A status of
 * the library; *call: what gave it. */
int cu_cudnn_graph(const struct cudnn *lib, struct cudnn_handle_ *handle,
                   const struct sdpa_problem *p, struct sdpa_plan *plan, const char **call);
int cu_cudnn_conv_graph(const struct cudnn *lib, struct cudnn_handle_ *handle,
                        const struct conv_problem *p, struct conv_plan *plan, const char **call);
/* Makes plans for the graph with the first engines that take it. False where none does: why the
 * first did not. */
bool cu_cudnn_conv_choose(const struct cudnn *lib, const struct conv_problem *p,
                          struct conv_plan *plan, struct cudnn_error *first);

#endif
