/* cuDNN behind run/sdpa.h. It works in the primary context, which is the one that is current here,
 * and on the queue's stream.
 *
 * A problem becomes a graph of operations (cudnn_graph.c). The library's heuristics name engines
 * for it, of which the first that it can make a plan of is taken, as frameworks do.
 */
#include <config.h>

#include "cuda/cudnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/cudnn_values.h"
#include "cuda/driver.h"

/* cudnn_graph.h */
enum {
    ENGINECFG_DESCRIPTOR = 3,
    ENGINEHEUR_DESCRIPTOR = 4,
    EXECUTION_PLAN_DESCRIPTOR = 5,
    VARIANT_PACK_DESCRIPTOR = 16,
};
enum {
    ENGINEHEUR_MODE = 200,
    ENGINEHEUR_OPERATION_GRAPH = 201,
    ENGINEHEUR_RESULTS = 202,
    EXECUTION_PLAN_HANDLE = 400,
    EXECUTION_PLAN_ENGINE_CONFIG = 401,
    EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    VARIANT_PACK_UNIQUE_IDS = 1000,
    VARIANT_PACK_DATA_POINTERS = 1001,
    VARIANT_PACK_WORKSPACE = 1003,
};
enum { HEUR_MODE_FALLBACK = 2, HEUR_MODE_A = 3 };
enum { ENGINES_MOST = 16 };
/* The version since which the library itself clears memory where it adds up gradients. */
enum { CLEARS_SUMS = 90600 };

/* The library describes its last error in many lines. The engine's configuration comes first. Then
 * each function on the way out adds "Warning: STATUS; Reason: WHY at: CONDITION". The first reason
 * is the innermost one, and the likeliest to be in words. The library tells it only once. */
void cu_cudnn_take_error(const struct cudnn *lib, int status, const char *call,
                         struct cudnn_error *e)
{
    static const char reason[] = "Reason: ";
    char text[2048] = "";
    lib->LastError(text, sizeof text);
    text[sizeof text - 1] = 0;
    char *at = strstr(text, reason);
    at = at ? at + sizeof reason - 1 : text;
    at[strcspn(at, "\r\n")] = 0;
    char *condition = strstr(at, " at: ");
    if (condition)
        *condition = 0;
    e->status = status;
    e->call = call;
    snprintf(e->text, sizeof e->text, "%s", at);
}

enum device_status cu_cudnn_tell(struct diags *d, const struct cudnn_error *e)
{
    diag_error(d, SPAN_NONE, "%s: status %d%s%s", e->call, e->status, *e->text ? ": " : "",
               e->text);
    if (e->status == STATUS_NO_SUBLIBRARY)
        return DEVICE_ABSENT;
    return e->status >= STATUS_REFUSES && e->status < STATUS_INTERNAL ? DEVICE_REFUSED
                                                                      : DEVICE_FAILED;
}

enum device_status cu_cudnn_failed(const struct cudnn *lib, struct diags *d, int status,
                                   const char *call)
{
    struct cudnn_error e;
    cu_cudnn_take_error(lib, status, call, &e);
    return cu_cudnn_tell(d, &e);
}

/* ---- loading ---- */

static void *open_library(struct diags *d)
{
    static const char *const where[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
    const char *env = getenv("KAIO_CUDNN_LIB");
    void *library = NULL;
    if (env && *env) {
        library = dlopen(env, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            diag_error(d, SPAN_NONE, "KAIO_CUDNN_LIB: %s", dlerror());
        return library;
    }
    for (size_t i = 0; i < sizeof where / sizeof *where && !library; i++)
        library = dlopen(where[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        diag_error(d, SPAN_NONE,
                   "there is no libcudnn.so.9 here; KAIO_CUDNN_LIB may name the file of one, as "
                   "PyTorch brings it");
    return library;
}

bool cu_cudnn_load(struct cudnn *lib, struct diags *d)
{
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
        {"cudnnGetVersion", offsetof(struct cudnn, GetVersion)},
#define CUDNN(name, symbol, params) {symbol, offsetof(struct cudnn, name)},
#include "cuda/cudnn.def"
    };
    if (!lib->library)
        lib->library = open_library(d);
    for (size_t i = 0; lib->library && i < sizeof functions / sizeof *functions; i++) {
        void *p = dlsym(lib->library, functions[i].symbol);
        if (!p)
            return diag_error(d, SPAN_NONE, "libcudnn.so has no %s; is it of version 9?",
                              functions[i].symbol);
        memcpy((char *)lib + functions[i].offset, &p, sizeof p);
    }
    if (!lib->library)
        return false;
    const size_t v = lib->GetVersion();
    snprintf(lib->name, sizeof lib->name, "cuDNN %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    return true;
}

/* Loads the library and makes the device's handle, if it has none. */
static enum device_status open_handle(struct device *dev, struct diags *d)
{
    struct cudnn *lib = &dev->cudnn;
    struct cudnn_handle_ *handle = NULL;
    if (lib->handle)
        return DEVICE_OK;
    if (!cu_cudnn_load(lib, d))
        return DEVICE_ABSENT;
    enum device_status status = cu_queue_stream(dev, d);
    if (status != DEVICE_OK)
        return status;
    int r = lib->Create(&handle);
    if (r != 0)
        return cu_cudnn_failed(lib, d, r, "cudnnCreate");
    if ((r = lib->SetStream(handle, dev->stream)) != 0) {
        lib->Destroy(handle);
        return cu_cudnn_failed(lib, d, r, "cudnnSetStream");
    }
    lib->handle = handle;
    return DEVICE_OK;
}

void cu_cudnn_close(struct device *dev)
{
    struct cudnn *lib = &dev->cudnn;
    if (lib->handle)
        lib->Destroy(lib->handle);
    *lib = (struct cudnn){0}; /* the library stays: it may have threads */
}

/* ---- plans ---- */

static int make_engines(const struct cudnn *lib, struct cudnn_objects *made,
                        struct cudnn_desc_ *graph, int mode, struct cudnn_desc_ **engine,
                        int64_t *n)
{
    struct cudnn_desc_ *heuristic;
    int64_t found = 0;
    *n = 0;
    int r = cu_cudnn_make(lib, made, ENGINEHEUR_DESCRIPTOR, &heuristic);
    if (r == 0)
        r = lib->SetAttribute(heuristic, ENGINEHEUR_OPERATION_GRAPH, TYPE_BACKEND_DESCRIPTOR, 1,
                              &graph);
    if (r == 0)
        r = lib->SetAttribute(heuristic, ENGINEHEUR_MODE, TYPE_HEUR_MODE, 1, &mode);
    if (r == 0)
        r = lib->Finalize(heuristic);
    if (r == 0)
        r = lib->GetAttribute(heuristic, ENGINEHEUR_RESULTS, TYPE_BACKEND_DESCRIPTOR, 0, &found,
                              NULL);
    found = found < ENGINES_MOST ? found : ENGINES_MOST;
    for (int64_t i = 0; i < found && r == 0; i++)
        r = cu_cudnn_make(lib, made, ENGINECFG_DESCRIPTOR, &engine[i]);
    if (r == 0 && found)
        r = lib->GetAttribute(heuristic, ENGINEHEUR_RESULTS, TYPE_BACKEND_DESCRIPTOR, found, n,
                              engine);
    return r == 0 && *n == 0 ? STATUS_NOT_SUPPORTED : r;
}

/* A plan of one engine, if the library can make it. */
static int try_engine(const struct cudnn *lib, struct cudnn_objects *made,
                      struct cudnn_desc_ *engine, struct cudnn_tried *t)
{
    int64_t bytes = 0, n;
    *t = (struct cudnn_tried){.engine = engine};
    int r = cu_cudnn_make(lib, made, EXECUTION_PLAN_DESCRIPTOR, &t->plan);
    if (r == 0)
        r = lib->SetAttribute(t->plan, EXECUTION_PLAN_HANDLE, TYPE_HANDLE, 1, &lib->handle);
    if (r == 0)
        r = lib->SetAttribute(t->plan, EXECUTION_PLAN_ENGINE_CONFIG, TYPE_BACKEND_DESCRIPTOR, 1,
                              &engine);
    if (r == 0)
        r = lib->Finalize(t->plan);
    if (r == 0)
        r = lib->GetAttribute(t->plan, EXECUTION_PLAN_WORKSPACE_SIZE, TYPE_INT64, 1, &n, &bytes);
    t->workspace_bytes = ((uint64_t)bytes + 255) / 256 * 256;
    return r;
}

/* Keeps the first error. False where r is one. */
static bool works(const struct cudnn *lib, int r, struct cudnn_error *first)
{
    if (r != 0 && first->status == 0)
        cu_cudnn_take_error(lib, r, "the engines of cuDNN", first);
    return r == 0;
}

void cu_cudnn_try(const struct cudnn *lib, struct cudnn_objects *made, struct cudnn_desc_ *graph,
                  bool fallback, struct cudnn_error *first,
                  bool (*use)(void *ctx, const struct cudnn_tried *t), void *ctx)
{
    struct cudnn_desc_ *engine[ENGINES_MOST];
    struct cudnn_tried t;
    int64_t n;
    int r = make_engines(lib, made, graph, fallback ? HEUR_MODE_FALLBACK : HEUR_MODE_A, engine, &n);
    bool more = works(lib, r, first);
    for (int64_t i = 0; i < n && more; i++)
        if (works(lib, try_engine(lib, made, engine[i], &t), first))
            more = use(ctx, &t);
}

struct first_plan {
    struct sdpa_plan *plan;
    bool found;
};

static bool take_first(void *ctx, const struct cudnn_tried *t)
{
    struct first_plan *x = ctx;
    x->plan->plan = t->plan;
    x->plan->workspace_bytes = t->workspace_bytes;
    x->found = true;
    return false;
}

bool cu_cudnn_choose(const struct cudnn *lib, struct sdpa_plan *plan, struct cudnn_error *first)
{
    struct first_plan x = {plan, false};
    *first = (struct cudnn_error){0};
    for (int fallback = 0; fallback < 2 && !x.found; fallback++)
        cu_cudnn_try(lib, &plan->made, plan->graph, fallback, first, take_first, &x);
    return x.found;
}

enum device_status cu_cudnn_begin(struct device *dev, size_t bytes, void **plan, struct diags *d)
{
    *plan = NULL;
    enum device_status status = open_handle(dev, d);
    if (status != DEVICE_OK)
        return status;
    *plan = calloc(1, bytes);
    return *plan ? DEVICE_OK : cu_cudnn_failed(&dev->cudnn, d, STATUS_NO_HOST_MEMORY, "cuDNN");
}

enum device_status cu_cudnn_workspace(struct device *dev, uint64_t bytes, uint64_t *address,
                                      struct diags *d)
{
    if (bytes == 0)
        return DEVICE_OK;
    cu_result r = dev->cu.MemAlloc(address, bytes);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "no workspace for cuDNN");
}

static void discard(struct device *dev, struct sdpa_plan *plan)
{
    cu_cudnn_drop(&dev->cudnn, &plan->made);
    if (plan->workspace)
        dev->cu.MemFree(plan->workspace);
    free(plan);
}

static enum device_status fill_plan(struct device *dev, const struct sdpa_problem *p,
                                    struct sdpa_plan *plan, struct diags *d)
{
    const struct cudnn *lib = &dev->cudnn;
    const char *call = NULL;
    struct cudnn_error first;
    if (p->backward && lib->GetVersion() < CLEARS_SUMS) {
        diag_error(d, SPAN_NONE, "%s: gradients are asked of cuDNN 9.6 and later", lib->name);
        return DEVICE_REFUSED;
    }
    int r = cu_cudnn_graph(lib, lib->handle, p, plan, &call);
    if (r != 0)
        return cu_cudnn_failed(lib, d, r, call);
    if (!cu_cudnn_choose(lib, plan, &first))
        return cu_cudnn_tell(d, &first);
    return cu_cudnn_workspace(dev, plan->workspace_bytes + plan->extra_bytes, &plan->workspace, d);
}

static enum device_status make_plan(struct device *dev, const struct sdpa_problem *p,
                                    struct sdpa_plan **out, struct diags *d)
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

/* ---- execution ---- */

/* The addresses of everything that the graph reads or writes, under its tensors' numbers. */
static int64_t pack_of(struct sdpa_plan *plan, const uint64_t *address, int64_t *uid, void **at)
{
    int64_t n = 0;
    for (int i = 0; i < SDPA_BUFFERS; i++)
        if (plan->uses[i]) {
            uid[n] = i + 1;
            at[n++] = (void *)(uintptr_t)address[i];
        }
    for (size_t i = 0; i < plan->nextra; i++) {
        struct sdpa_extra *x = &plan->extra[i];
        const uint64_t memory = plan->workspace + plan->workspace_bytes + x->at;
        uid[n] = x->uid;
        at[n++] = x->is_number ? (void *)&x->number : (void *)(uintptr_t)memory;
    }
    return n;
}

enum device_status cu_cudnn_execute(struct device *dev, struct cudnn_desc_ *plan, int64_t n,
                                    const int64_t *uid, void *const *at, uint64_t workspace,
                                    struct diags *d)
{
    const struct cudnn *lib = &dev->cudnn;
    void *space = (void *)(uintptr_t)workspace;
    struct cudnn_desc_ *pack = NULL;
    int r = lib->CreateDescriptor(VARIANT_PACK_DESCRIPTOR, &pack);
    if (r == 0)
        r = lib->SetAttribute(pack, VARIANT_PACK_DATA_POINTERS, TYPE_VOID_PTR, n, at);
    if (r == 0)
        r = lib->SetAttribute(pack, VARIANT_PACK_UNIQUE_IDS, TYPE_INT64, n, uid);
    if (r == 0)
        r = lib->SetAttribute(pack, VARIANT_PACK_WORKSPACE, TYPE_VOID_PTR, 1, &space);
    if (r == 0)
        r = lib->Finalize(pack);
    if (r == 0)
        r = lib->Execute(lib->handle, plan, pack);
    if (pack)
        lib->DestroyDescriptor(pack);
    return r == 0 ? DEVICE_OK : cu_cudnn_failed(lib, d, r, "cudnnBackendExecute");
}

static enum device_status execute(struct device *dev, struct sdpa_plan *plan,
                                  const uint64_t *address, struct diags *d)
{
    int64_t uid[SDPA_BUFFERS + SDPA_EXTRAS_MOST];
    void *at[SDPA_BUFFERS + SDPA_EXTRAS_MOST];
    const int64_t n = pack_of(plan, address, uid, at);
    return cu_cudnn_execute(dev, plan->plan, n, uid, at, plan->workspace, d);
}

const char *cu_cudnn_version(struct device *dev)
{
    return dev->cudnn.name;
}

const struct device_sdpa cuda_sdpa = {
    .plan = make_plan,
    .execute = execute,
    .discard = discard,
    .version = cu_cudnn_version,
};
