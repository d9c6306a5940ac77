/* Queued and recorded work on a GPU (run/device.h, struct device_queue): a stream, CUDA graphs, two
 * events. */
#include <config.h>

#include "cuda/driver.h"

#include <stdlib.h>

struct device_graph {
    cu_graph graph;
    cu_graph_exec exec;
};

/* The stream waits for the legacy default stream, and it for the stream, so that copies to and from
 * the host keep their order with what is queued. */
enum device_status cu_queue_stream(struct device *dev, struct diags *d)
{
    struct cu_api *cu = &dev->cu;
    if (dev->stream)
        return DEVICE_OK;
    if (!cu->GraphInstantiateWithFlags) {
        diag_error(d, SPAN_NONE, "the NVIDIA driver is too old for graphs: CUDA 11.4 has them");
        return DEVICE_FAILED;
    }
    cu_result r = cu->StreamCreate(&dev->stream, CU_STREAM_DEFAULT);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "cannot make a stream");
}

void cu_queue_close(struct device *dev)
{
    if (dev->stream)
        dev->cu.StreamDestroy(dev->stream);
    dev->stream = NULL;
    nvml_close(&dev->nvml);
    dev->nvml.why = NULL;
}

static enum device_status prepare(struct device *dev, const struct device_launch *l,
                                  struct diags *d)
{
    cu_function f;
    enum device_status status = cu_queue_stream(dev, d);
    return status == DEVICE_OK ? cu_prepare(dev, l, &f, d) : status;
}

static enum device_status launch(struct device *dev, const struct device_launch *l, struct diags *d)
{
    cu_function f = NULL;
    enum device_status status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK)
        return status;
    cu_result r = dev->cu.ModuleGetFunction(&f, cu_module_of(dev, l)->module, l->entry);
    if (r == CU_SUCCESS)
        r = cu_launch(dev, f, l, dev->stream);
    if (r == CU_SUCCESS)
        return DEVICE_OK;
    return cu_failed(dev, d, r, arena_printf(d->arena, "cannot launch '%s'", l->entry));
}

static enum device_status copy(struct device *dev, uint64_t to, uint64_t from, uint64_t bytes,
                               struct diags *d)
{
    enum device_status status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK || bytes == 0)
        return status;
    cu_result r = dev->cu.MemcpyDtoDAsync(to, from, (size_t)bytes, dev->stream);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "cannot copy on the GPU");
}

static enum device_status fill(struct device *dev, uint64_t address, uint8_t value, uint64_t bytes,
                               struct diags *d)
{
    enum device_status status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK || bytes == 0)
        return status;
    cu_result r = dev->cu.MemsetD8Async(address, value, (size_t)bytes, dev->stream);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "cannot fill GPU memory");
}

static enum device_status record(struct device *dev, struct diags *d)
{
    enum device_status status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK)
        return status;
    cu_result r = dev->cu.StreamBeginCapture(dev->stream, CU_CAPTURE_THREAD_LOCAL);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "cannot record a graph");
}

static enum device_status recorded(struct device *dev, struct device_graph **out, struct diags *d)
{
    struct cu_api *cu = &dev->cu;
    struct device_graph *g = calloc(1, sizeof *g);
    cu_graph graph = NULL;
    *out = NULL;
    cu_result r = cu->StreamEndCapture(dev->stream, &graph);
    if (!g || r != CU_SUCCESS || !graph) {
        free(g);
        return cu_failed(dev, d, r == CU_SUCCESS ? CU_OUT_OF_MEMORY : r, "cannot record a graph");
    }
    g->graph = graph;
    r = cu->GraphInstantiateWithFlags(&g->exec, graph, 0);
    if (r == CU_SUCCESS && cu->GraphUpload) /* else its first replay does */
        r = cu->GraphUpload(g->exec, dev->stream);
    if (r == CU_SUCCESS) {
        *out = g;
        return DEVICE_OK;
    }
    enum device_status status = cu_failed(dev, d, r, "cannot make a graph ready");
    if (g->exec)
        cu->GraphExecDestroy(g->exec);
    cu->GraphDestroy(graph);
    free(g);
    return status;
}

static enum device_status replay(struct device *dev, struct device_graph *g, struct diags *d)
{
    cu_result r = dev->cu.GraphLaunch(g->exec, dev->stream);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "cannot launch a graph");
}

static void discard(struct device *dev, struct device_graph *g)
{
    dev->cu.GraphExecDestroy(g->exec);
    dev->cu.GraphDestroy(g->graph);
    free(g);
}

static enum device_status mark(struct device *dev, bool end, struct diags *d)
{
    enum device_status status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK)
        return status;
    cu_result r = dev->cu.EventRecord(end ? dev->end : dev->start, dev->stream);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "cannot record an event");
}

static enum device_status wait(struct device *dev, double *seconds, struct diags *d)
{
    float ms = 0;
    enum device_status status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK)
        return status;
    cu_result r = dev->cu.StreamSynchronize(dev->stream);
    if (r == CU_SUCCESS && seconds)
        r = dev->cu.EventElapsedTime(&ms, dev->start, dev->end);
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, "the work on the GPU failed");
    if (seconds)
        *seconds = (double)ms * 1e-3;
    return DEVICE_OK;
}

static const char *sensors(struct device *dev, struct device_sensors *s)
{
    char id[64] = "";
    *s = (struct device_sensors){0};
    if (dev->nvml.why)
        return dev->nvml.why;
    if (!dev->nvml.library && (dev->cu.DeviceGetPCIBusId(id, sizeof id, dev->id) != CU_SUCCESS ||
                               !nvml_open(&dev->nvml, id)))
        return dev->nvml.why ? dev->nvml.why : "the driver does not say where the GPU is";
    nvml_read(&dev->nvml, s);
    return NULL;
}

const struct device_queue cuda_queue = {
    .prepare = prepare,
    .launch = launch,
    .copy = copy,
    .fill = fill,
    .record = record,
    .recorded = recorded,
    .replay = replay,
    .discard = discard,
    .mark = mark,
    .wait = wait,
    .sensors = sensors,
};
