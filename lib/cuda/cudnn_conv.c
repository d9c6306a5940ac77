/* cuDNN's convolutions behind run/conv.h: a graph of one operation, and plans for it by the first
 * engines that the heuristics name, which the caller may time. */
#include <config.h>

#include "cuda/cudnn.h"

#include <stdlib.h>

#include "cuda/cudnn_values.h"
#include "cuda/driver.h"

/* cudnn_graph.h */
enum {
    CONVOLUTION_DESCRIPTOR = 1,
    ENGINE_DESCRIPTOR = 2,
    OPERATION_FORWARD_DESCRIPTOR = 10,
    OPERATION_FILTER_DESCRIPTOR = 11,
    OPERATION_DATA_DESCRIPTOR = 12,
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
    ENGINE_NUMERICAL_NOTE = 1303,
};
enum { CROSS_CORRELATION = 1 };
enum { NOTE_TENSOR_CORE = 0, NOTE_DOWN_CONVERT = 1, NOTE_REDUCED_SUMS = 2, NOTES_MOST = 16 };
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

/* Its number in the graph is that of the operand and 1, so that none is 0. */
static desc tensor(struct cudnn_builder *b, const struct conv_problem *p, enum conv_operand which)
{
    const struct conv_tensor *t = &p->tensor[which];
    const int64_t rank = p->spatial + 2;
    int64_t dim[CONV_RANK_MOST], stride[CONV_RANK_MOST];
    for (int64_t k = 0; k < rank; k++) {
        dim[k] = (int64_t)t->dim[k];
        stride[k] = (int64_t)t->stride[k];
    }
    return cu_cudnn_tensor(b, &(struct cudnn_tensor){.type = cu_cudnn_type(t->type),
                                                     .rank = rank,
                                                     .uid = which + 1,
                                                     .dim = dim,
                                                     .stride = stride});
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
    plan->graph = cu_cudnn_operations(&b, handle, &op, 1);
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
};

static bool take(void *ctx, const struct cudnn_tried *t)
{
    struct chooser *x = ctx;
    struct conv_plan *plan = x->plan;
    const bool is_f32 = x->p->tensor[CONV_X].type == DT_F32 && !x->p->tf32;
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
    struct chooser x = {lib, p, plan};
    *first = (struct cudnn_error){0};
    for (int fallback = 0; fallback < 2 && plan->n == 0; fallback++)
        cu_cudnn_try(lib, &plan->made, plan->graph, fallback, first, take, &x);
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

static enum device_status fill_plan(struct device *dev, const struct conv_problem *p,
                                    struct conv_plan *plan, struct diags *d)
{
    const struct cudnn *lib = &dev->cudnn;
    const char *call = NULL;
    struct cudnn_error first;
    int r = cu_cudnn_conv_graph(lib, lib->handle, p, plan, &call);
    if (r != 0)
        return cu_cudnn_failed(lib, d, r, call);
    if (!cu_cudnn_conv_choose(lib, p, plan, &first))
        return cu_cudnn_tell(d, &first);
    return cu_cudnn_workspace(dev, plan->workspace_bytes, &plan->workspace, d);
}

static enum device_status make_plan(struct device *dev, const struct conv_problem *p,
                                    struct conv_plan **out, struct diags *d)
{
    void *plan;
    enum device_status status = cu_cudnn_begin(dev, sizeof **out, &plan, d);
    if (status == DEVICE_OK && (status = fill_plan(dev, p, plan, d)) != DEVICE_OK) {
        discard(dev, plan);
        plan = NULL;
    }
    *out = plan;
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
