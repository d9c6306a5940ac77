/* cuDNN's convolutions behind run/conv.h: a graph of one operation, and plans for it by the first
 * engines that the heuristics name, which the caller may time. */
#include <config.h>

#include "cuda/cudnn.h"

#include <stdlib.h>

#include "cuda/driver.h"

/* cudnn_graph.h */
enum {
    CONVOLUTION_DESCRIPTOR = 1,
    ENGINE_DESCRIPTOR = 2,
    OPERATION_FORWARD_DESCRIPTOR = 10,
    OPERATION_FILTER_DESCRIPTOR = 11,
    OPERATION_DATA_DESCRIPTOR = 12,
    OPERATIONGRAPH_DESCRIPTOR = 15,
    TENSOR_DESCRIPTOR = 17,
};
enum {
    CONVOLUTION_COMP_TYPE = 100,
    CONVOLUTION_CONV_MODE = 101,
    CONVOLUTION_DILATIONS = 102,
    CONVOLUTION_FILTER_STRIDES = 103,
    CONVOLUTION_POST_PADDINGS = 104,
    CONVOLUTION_PRE_PADDINGS = 105,
    CONVOLUTION_SPATIAL_DIMS = 106,
    ENGINECFG_ENGINE = 300,
    OPERATIONGRAPH_HANDLE = 800,
    OPERATIONGRAPH_OPS = 801,
    TENSOR_BYTE_ALIGNMENT = 900,
    TENSOR_DATA_TYPE = 901,
    TENSOR_DIMENSIONS = 902,
    TENSOR_STRIDES = 903,
    TENSOR_UNIQUE_ID = 906,
    TENSOR_IS_VIRTUAL = 907,
    TENSOR_IS_BY_VALUE = 908,
    ENGINE_NUMERICAL_NOTE = 1303,
};
enum {
    TYPE_HANDLE = 0,
    TYPE_DATA_TYPE = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INT64 = 3,
    TYPE_FLOAT = 4,
    TYPE_CONVOLUTION_MODE = 7,
    TYPE_NUMERICAL_NOTE = 11,
    TYPE_BACKEND_DESCRIPTOR = 15,
};
enum { FLOAT = 0, HALF = 2, BFLOAT16 = 9 };
enum { CROSS_CORRELATION = 1 };
enum { NOTE_TENSOR_CORE = 0, NOTE_DOWN_CONVERT = 1, NOTE_REDUCED_SUMS = 2, NOTES_MOST = 16 };
enum { STATUS_NOT_SUPPORTED = 3000, STATUS_NO_HOST_MEMORY = 4003 };
/* An engine that wants more beside its operands is not asked. */
static const uint64_t WORKSPACE_MOST = (uint64_t)4 << 30;

typedef struct cudnn_desc_ *desc;

/* Of an operation of each kind: its descriptor, and the attributes of it. */
static const struct {
    int type, alpha, beta, how, operand[CONV_OPERANDS];
} operations[] = {
    [CONV_FORWARD] = {OPERATION_FORWARD_DESCRIPTOR, 700, 701, 702, {704, 703, 705}},
    [CONV_DATA] = {OPERATION_DATA_DESCRIPTOR, 706, 707, 708, {710, 709, 711}},
    [CONV_FILTER] = {OPERATION_FILTER_DESCRIPTOR, 712, 713, 714, {716, 715, 717}},
};

/* ---- the graph ---- */

static int type_of(enum dtype t)
{
    return t == DT_F16 ? HALF : t == DT_BF16 ? BFLOAT16 : FLOAT;
}

/* Its number in the graph is that of the operand and 1, so that none is 0. */
static desc tensor(struct cudnn_builder *b, const struct conv_problem *p, enum conv_operand which)
{
    const struct conv_tensor *t = &p->tensor[which];
    const int64_t uid = which + 1, rank = p->spatial + 2, align = 16;
    const bool no = false;
    int64_t dim[CONV_RANK_MOST], stride[CONV_RANK_MOST];
    for (int64_t k = 0; k < rank; k++) {
        dim[k] = (int64_t)t->dim[k];
        stride[k] = (int64_t)t->stride[k];
    }
    desc out = cu_cudnn_new(b, TENSOR_DESCRIPTOR);
    cu_cudnn_set_int(b, out, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, type_of(t->type));
    cu_cudnn_set(b, out, TENSOR_DIMENSIONS, TYPE_INT64, rank, dim);
    cu_cudnn_set(b, out, TENSOR_STRIDES, TYPE_INT64, rank, stride);
    cu_cudnn_set(b, out, TENSOR_UNIQUE_ID, TYPE_INT64, 1, &uid);
    cu_cudnn_set(b, out, TENSOR_BYTE_ALIGNMENT, TYPE_INT64, 1, &align);
    cu_cudnn_set(b, out, TENSOR_IS_VIRTUAL, TYPE_BOOLEAN, 1, &no);
    cu_cudnn_set(b, out, TENSOR_IS_BY_VALUE, TYPE_BOOLEAN, 1, &no);
    cu_cudnn_finish(b, out);
    return out;
}

static desc window(struct cudnn_builder *b, const struct conv_problem *p)
{
    const int64_t spatial = p->spatial;
    desc how = cu_cudnn_new(b, CONVOLUTION_DESCRIPTOR);
    cu_cudnn_set_int(b, how, CONVOLUTION_COMP_TYPE, TYPE_DATA_TYPE, FLOAT);
    cu_cudnn_set_int(b, how, CONVOLUTION_CONV_MODE, TYPE_CONVOLUTION_MODE, CROSS_CORRELATION);
    cu_cudnn_set(b, how, CONVOLUTION_SPATIAL_DIMS, TYPE_INT64, 1, &spatial);
    cu_cudnn_set(b, how, CONVOLUTION_DILATIONS, TYPE_INT64, spatial, p->dilation);
    cu_cudnn_set(b, how, CONVOLUTION_FILTER_STRIDES, TYPE_INT64, spatial, p->stride);
    cu_cudnn_set(b, how, CONVOLUTION_PRE_PADDINGS, TYPE_INT64, spatial, p->pre);
    cu_cudnn_set(b, how, CONVOLUTION_POST_PADDINGS, TYPE_INT64, spatial, p->post);
    cu_cudnn_finish(b, how);
    return how;
}

int cu_cudnn_conv_graph(const struct cudnn *lib, struct cudnn_handle_ *handle,
                        const struct conv_problem *p, struct conv_plan *plan, const char **call)
{
    const float one = 1, zero = 0;
    struct cudnn_builder b = {lib, &plan->made, 0, NULL};
    desc operand[CONV_OPERANDS];
    for (int k = 0; k < CONV_OPERANDS; k++)
        operand[k] = tensor(&b, p, (enum conv_operand)k);
    desc how = window(&b, p), op = cu_cudnn_new(&b, operations[p->kind].type);
    for (int k = 0; k < CONV_OPERANDS; k++)
        cu_cudnn_set_desc(&b, op, operations[p->kind].operand[k], operand[k]);
    cu_cudnn_set_desc(&b, op, operations[p->kind].how, how);
    cu_cudnn_set(&b, op, operations[p->kind].alpha, TYPE_FLOAT, 1, &one);
    cu_cudnn_set(&b, op, operations[p->kind].beta, TYPE_FLOAT, 1, &zero);
    cu_cudnn_finish(&b, op);
    plan->graph = cu_cudnn_new(&b, OPERATIONGRAPH_DESCRIPTOR);
    if (handle)
        cu_cudnn_set(&b, plan->graph, OPERATIONGRAPH_HANDLE, TYPE_HANDLE, 1, &handle);
    cu_cudnn_set_desc(&b, plan->graph, OPERATIONGRAPH_OPS, op);
    cu_cudnn_finish(&b, plan->graph);
    *call = b.call;
    return b.status;
}

/* ---- engines ---- */

/* Engines say what they do to numbers. Sums are in f32, and plain f32 is not rounded to tf32. */
static bool is_precise(const struct cudnn *lib, struct conv_plan *plan, bool is_f32, desc config)
{
    int note[NOTES_MOST];
    int64_t n = 0;
    desc engine = NULL;
    int r = cu_cudnn_make(lib, &plan->made, ENGINE_DESCRIPTOR, &engine);
    if (r == 0)
        r = lib->GetAttribute(config, ENGINECFG_ENGINE, TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    if (r == 0)
        r = lib->GetAttribute(engine, ENGINE_NUMERICAL_NOTE, TYPE_NUMERICAL_NOTE, NOTES_MOST, &n,
                              note);
    for (int64_t i = 0; r == 0 && i < n && i < NOTES_MOST; i++)
        if (note[i] == NOTE_REDUCED_SUMS ||
            (is_f32 && (note[i] == NOTE_TENSOR_CORE || note[i] == NOTE_DOWN_CONVERT)))
            return false;
    return r == 0;
}

struct chooser {
    const struct cudnn *lib;
    const struct conv_problem *p;
    struct conv_plan *plan;
    struct cudnn_error *first;
};

static bool take(void *ctx, const struct cudnn_tried *t)
{
    struct chooser *x = ctx;
    struct conv_plan *plan = x->plan;
    const bool is_f32 = x->p->tensor[CONV_X].type == DT_F32 && !x->p->tf32;
    if (t->status != 0) {
        if (x->first->status == 0)
            cu_cudnn_take_error(x->lib, t->status, "the engines of cuDNN", x->first);
        return true;
    }
    if (t->workspace_bytes > WORKSPACE_MOST || !is_precise(x->lib, plan, is_f32, t->engine))
        return true;
    if (t->workspace_bytes > plan->workspace_bytes)
        plan->workspace_bytes = t->workspace_bytes;
    plan->plan[plan->n++] = t->plan;
    return plan->n < CONV_CHOICES_MOST;
}

bool cu_cudnn_conv_choose(const struct cudnn *lib, const struct conv_problem *p,
                          struct conv_plan *plan, struct cudnn_error *first)
{
    struct chooser x = {lib, p, plan, first};
    *first = (struct cudnn_error){0};
    for (int fallback = 0; fallback < 2 && plan->n == 0; fallback++)
        cu_cudnn_try(lib, &plan->made, plan->graph, fallback, take, &x);
    if (plan->n == 0 && first->status == 0)
        *first = (struct cudnn_error){.status = STATUS_NOT_SUPPORTED,
                                      .call = "the engines of cuDNN",
                                      .text = "none keeps the precision"};
    return plan->n > 0;
}

/* ---- run/conv.h ---- */

static void discard(struct device *dev, struct conv_plan *plan)
{
    cu_cudnn_drop(&dev->cudnn, &plan->made);
    if (plan->workspace)
        dev->cu.MemFree(plan->workspace);
    free(plan);
}

static enum device_status make_workspace(struct device *dev, struct conv_plan *plan,
                                         struct diags *d)
{
    if (plan->workspace_bytes == 0)
        return DEVICE_OK;
    cu_result r = dev->cu.MemAlloc(&plan->workspace, plan->workspace_bytes);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "no workspace for cuDNN");
}

static enum device_status make_plan(struct device *dev, const struct conv_problem *p,
                                    struct conv_plan **out, struct diags *d)
{
    const struct cudnn *lib = &dev->cudnn;
    const char *call = NULL;
    struct cudnn_error first;
    *out = NULL;
    enum device_status status = cu_cudnn_open(dev, d);
    if (status != DEVICE_OK)
        return status;
    struct conv_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cu_cudnn_failed(lib, d, STATUS_NO_HOST_MEMORY, "cuDNN");
    int r = cu_cudnn_conv_graph(lib, lib->handle, p, plan, &call);
    if (r != 0)
        status = cu_cudnn_failed(lib, d, r, call);
    else
        status = cu_cudnn_conv_choose(lib, p, plan, &first) ? make_workspace(dev, plan, d)
                                                            : cu_cudnn_tell(d, &first);
    if (status == DEVICE_OK)
        *out = plan;
    else
        discard(dev, plan);
    return status;
}

static unsigned choices(const struct conv_plan *plan)
{
    return plan->n;
}

static enum device_status execute(struct device *dev, struct conv_plan *plan, unsigned choice,
                                  const uint64_t *address, struct diags *d)
{
    int64_t uid[CONV_OPERANDS];
    void *at[CONV_OPERANDS];
    for (int k = 0; k < CONV_OPERANDS; k++) {
        uid[k] = k + 1;
        at[k] = (void *)(uintptr_t)address[k];
    }
    return cu_cudnn_execute(dev, plan->plan[choice], CONV_OPERANDS, uid, at, plan->workspace, d);
}

const struct device_conv cuda_conv = {
    .plan = make_plan,
    .choices = choices,
    .execute = execute,
    .discard = discard,
    .version = cu_cudnn_version,
};
