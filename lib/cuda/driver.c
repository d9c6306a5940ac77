/* An NVIDIA GPU as a device (run/device.h), through its driver. */
#include <config.h>

#include "cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda/jit.h"
#include "cuda/load.h"

enum { ERROR_BYTES = 16 * 1024, LOG_BYTES = 256 * 1024 };

/* What a failed call means to the user. */
static enum device_status status_of(cu_result r)
{
    if (r == CU_INVALID_VALUE || r == CU_LAUNCH_OUT_OF_RESOURCES || r == CU_INVALID_CLUSTER_SIZE ||
        r == CU_NOT_FOUND)
        return DEVICE_REFUSED;
    if (r >= CU_ILLEGAL_ADDRESS && r <= CU_LAUNCH_FAILED)
        return DEVICE_FAULT;
    return DEVICE_FAILED;
}

enum device_status cu_failed(struct device *dev, struct diags *d, cu_result r, const char *doing)
{
    diag_error(d, SPAN_NONE, "%s: %s", doing, cu_error_text(&dev->cu, d->arena, r));
    return status_of(r);
}

static int attribute(const struct device *dev, int which)
{
    int v = 0;
    return dev->cu.DeviceGetAttribute(&v, which, dev->id) == CU_SUCCESS && v > 0 ? v : 0;
}

static int count_devices(struct diags *d)
{
    struct cu_api cu;
    char why[256];
    int n = 0;
    if (!cu_open(&cu, why)) {
        diag_note(d, SPAN_NONE, "%s", why);
        return 0;
    }
    if (cu.DeviceGetCount(&n) != CU_SUCCESS || n < 0)
        n = 0;
    if (n == 0)
        diag_note(d, SPAN_NONE, "the NVIDIA driver sees no GPU");
    return n;
}

static void unload(struct device *dev, struct cu_loaded *m)
{
    if (m->library)
        dev->cu.LibraryUnload(m->library);
    else if (m->module)
        dev->cu.ModuleUnload(m->module);
    *m = (struct cu_loaded){0};
}

static void close_device(struct device *dev)
{
    struct cu_api *cu = &dev->cu;
    cu_blas_close(dev);
    cu_cudnn_close(dev);
    cu_queue_close(dev);
    unload(dev, &dev->loaded);
    if (dev->start)
        cu->EventDestroy(dev->start);
    if (dev->end)
        cu->EventDestroy(dev->end);
    if (dev->context)
        cu->DevicePrimaryCtxRelease(dev->id);
    dev->start = dev->end = NULL;
    dev->context = NULL;
}

static enum device_status start_device(struct device *dev, struct diags *d)
{
    struct cu_api *cu = &dev->cu;
    cu_result r = cu->DeviceGet(&dev->id, dev->ordinal);
    if (r == CU_SUCCESS)
        r = cu->DriverGetVersion(&dev->version);
    if (r == CU_SUCCESS)
        r = cu->DevicePrimaryCtxRetain(&dev->context, dev->id);
    if (r == CU_SUCCESS)
        r = cu->CtxSetCurrent(dev->context);
    if (r == CU_SUCCESS)
        r = cu->EventCreate(&dev->start, 0);
    if (r == CU_SUCCESS)
        r = cu->EventCreate(&dev->end, 0);
    if (r != CU_SUCCESS) {
        cu_failed(dev, d, r, arena_printf(d->arena, "cannot use GPU %d", dev->ordinal));
        close_device(dev);
        return DEVICE_FAILED;
    }
    dev->sm = (unsigned)(attribute(dev, CU_ATTR_SM_MAJOR) * 10 + attribute(dev, CU_ATTR_SM_MINOR));
    dev->shared_optin = (unsigned)attribute(dev, CU_ATTR_SHARED_PER_BLOCK_OPTIN);
    return DEVICE_OK;
}

static enum device_status set_heap(struct device *dev, uint64_t bytes, struct diags *d)
{
    enum { MALLOC_HEAP = 2 };
    cu_result r = dev->cu.CtxSetLimit(MALLOC_HEAP, (size_t)bytes);
    if (r == CU_SUCCESS)
        return DEVICE_OK;
    cu_failed(dev, d, r, "cannot give kernels that much of a heap");
    close_device(dev);
    return DEVICE_REFUSED;
}

static enum device_status open_device(struct arena *a, int ordinal,
                                      const struct device_options *opt, struct device **out,
                                      struct diags *d)
{
    struct device *dev = ARENA_NEW(a, struct device);
    char why[256];
    int n = 0;
    dev->arena = a;
    dev->ordinal = ordinal;
    if (!cu_open(&dev->cu, why)) {
        diag_error(d, SPAN_NONE, "%s", why);
        return DEVICE_ABSENT;
    }
    if (dev->cu.DeviceGetCount(&n) != CU_SUCCESS || ordinal < 0 || ordinal >= n) {
        if (n > 0)
            diag_error(d, SPAN_NONE, "there is no GPU %d; the driver sees %d, numbered from 0",
                       ordinal, n);
        else
            diag_error(d, SPAN_NONE, "the NVIDIA driver sees no GPU");
        return DEVICE_ABSENT;
    }
    *out = dev;
    enum device_status status = start_device(dev, d);
    if (status == DEVICE_OK && opt && opt->heap_bytes)
        status = set_heap(dev, opt->heap_bytes, d);
    return status;
}

static void device_about(struct device *dev, struct device_info *info)
{
    size_t bytes = 0;
    *info = (struct device_info){.kind = "cuda", .ordinal = dev->ordinal, .sm = dev->sm};
    if (dev->cu.DeviceGetName(info->name, sizeof info->name, dev->id) != CU_SUCCESS)
        snprintf(info->name, sizeof info->name, "GPU %d", dev->ordinal);
    dev->cu.DeviceTotalMem(&bytes, dev->id);
    info->memory = bytes;
    info->multiprocessors = (unsigned)attribute(dev, CU_ATTR_MULTIPROCESSOR_COUNT);
    info->clock_khz = (unsigned)attribute(dev, CU_ATTR_CLOCK_RATE);
    info->l2_bytes = (uint64_t)attribute(dev, CU_ATTR_L2_CACHE_SIZE);
    info->driver_version = (unsigned)dev->version;
    /* two transfers a cycle: every memory that GPUs have */
    info->bandwidth = 2 * (uint64_t)attribute(dev, CU_ATTR_MEMORY_CLOCK_RATE) * 1000 *
                      ((uint64_t)attribute(dev, CU_ATTR_MEMORY_BUS_WIDTH) / 8);
}

/* ---- memory ---- */

static enum device_status alloc_memory(struct device *dev, uint64_t bytes,
                                       const struct device_label *label, uint64_t *address,
                                       struct diags *d)
{
    /* an empty buffer has an address too */
    cu_result r = dev->cu.MemAlloc(address, bytes ? (size_t)bytes : 1);
    if (r == CU_SUCCESS)
        return DEVICE_OK;
    if (r == CU_OUT_OF_MEMORY)
        diag_error(d, SPAN_NONE, "the GPU has no memory left for the %llu bytes of '%s'",
                   (unsigned long long)bytes, label && label->name ? label->name : "a buffer");
    else
        cu_failed(dev, d, r, "cannot allocate GPU memory");
    return DEVICE_FAILED;
}

static enum device_status release_memory(struct device *dev, uint64_t address)
{
    return dev->cu.MemFree(address) == CU_SUCCESS ? DEVICE_OK : DEVICE_FAILED;
}

/* With unified addresses, which every 64-bit system has, this is what cuMemAlloc() gives in all but
 * speed. */
static enum device_status bind_memory(struct device *dev, void *host, uint64_t bytes,
                                      uint64_t *address, struct diags *d)
{
    enum { PORTABLE = 1, MAPPED = 2 };
    cu_result r = dev->cu.MemHostRegister(host, (size_t)bytes, PORTABLE | MAPPED);
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, "cannot give the GPU memory of the host");
    r = dev->cu.MemHostGetDevicePointer(address, host, 0);
    if (r == CU_SUCCESS)
        return DEVICE_OK;
    dev->cu.MemHostUnregister(host);
    return cu_failed(dev, d, r, "cannot give the GPU memory of the host");
}

static enum device_status unbind_memory(struct device *dev, void *host, uint64_t address)
{
    (void)address;
    return dev->cu.MemHostUnregister(host) == CU_SUCCESS ? DEVICE_OK : DEVICE_FAILED;
}

static enum device_status describe_memory(struct device *dev, uint64_t address,
                                          const struct device_label *label, struct diags *d)
{
    (void)dev;
    (void)address;
    (void)label;
    (void)d;
    return DEVICE_OK;
}

static enum device_status write_memory(struct device *dev, uint64_t address, const void *from,
                                       uint64_t bytes, struct diags *d)
{
    cu_result r = bytes ? dev->cu.MemcpyHtoD(address, from, (size_t)bytes) : CU_SUCCESS;
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, "cannot copy to the GPU");
    return DEVICE_OK;
}

static enum device_status read_memory(struct device *dev, void *to, uint64_t address,
                                      uint64_t bytes, struct diags *d)
{
    cu_result r = bytes ? dev->cu.MemcpyDtoH(to, address, (size_t)bytes) : CU_SUCCESS;
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, "cannot copy from the GPU");
    return DEVICE_OK;
}

/* Waits for the end event; the time since the start event. */
static cu_result elapsed(struct device *dev, struct device_stats *stats)
{
    float ms = 0;
    cu_result r = dev->cu.EventSynchronize(dev->end);
    if (r == CU_SUCCESS)
        r = dev->cu.EventElapsedTime(&ms, dev->start, dev->end);
    if (stats)
        *stats = (struct device_stats){.seconds = (double)ms * 1e-3};
    return r;
}

static enum device_status copy_memory(struct device *dev, uint64_t to, uint64_t from,
                                      uint64_t bytes, struct device_stats *stats, struct diags *d)
{
    cu_result r = dev->cu.EventRecord(dev->start, NULL);
    if (r == CU_SUCCESS && bytes)
        r = dev->cu.MemcpyDtoDAsync(to, from, (size_t)bytes, NULL);
    if (r == CU_SUCCESS)
        r = dev->cu.EventRecord(dev->end, NULL);
    if (r == CU_SUCCESS)
        r = elapsed(dev, stats);
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, "cannot copy on the GPU");
    return DEVICE_OK;
}

/* ---- modules ---- */

/* One compilation. log: what the compiler says, of LOG_BYTES; empty when the driver had the result
 * already.
 *
 * cuModuleLoadDataEx() holds the context while it compiles: other threads wait, also with launches.
 * cuLibraryLoadData() holds nothing, and gives the same code. (So does cuLinkComplete(), but as
 * code for a linker: without setmaxnreg.) What it refuses is given to the former, whose word on
 * errors counts. */
static cu_result compile(struct device *dev, const struct source *ptx, bool beside,
                         struct cu_loaded *out, char *error, char *log)
{
    int option[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES, CU_JIT_INFO_LOG,
                    CU_JIT_INFO_LOG_BYTES, CU_JIT_LOG_VERBOSE};
    void *value[] = {error, (void *)(uintptr_t)ERROR_BYTES, log, (void *)(uintptr_t)LOG_BYTES,
                     (void *)(uintptr_t)1};
    const unsigned n = sizeof option / sizeof *option;
    const struct cu_api *cu = &dev->cu;
    memset(error, 0, ERROR_BYTES + 1);
    memset(log, 0, LOG_BYTES + 1);
    *out = (struct cu_loaded){.text = ptx};
    if (beside && cu->LibraryLoadData && cu->LibraryGetModule && cu->LibraryUnload &&
        cu->LibraryLoadData(&out->library, ptx->text, option, value, n, NULL, NULL, 0) ==
            CU_SUCCESS) {
        if (cu->LibraryGetModule(&out->module, out->library) == CU_SUCCESS)
            return CU_SUCCESS;
        cu->LibraryUnload(out->library);
    }
    /* the log's sizes were replaced by what was written */
    value[1] = (void *)(uintptr_t)ERROR_BYTES;
    value[3] = (void *)(uintptr_t)LOG_BYTES;
    out->library = NULL;
    return cu->ModuleLoadDataEx(&out->module, ptx->text, n, option, value);
}

/* The driver has compiled this before and says nothing of it: what was kept of that, or what it
 * says of the same text once more, with a comment behind it that it has not seen. */
static const char *verdict_again(struct device *dev, const struct cu_jit *j, bool beside,
                                 char *error, char *log, struct arena *a)
{
    const char *kept = cu_jit_recall(a, j);
    struct timespec now = {0};
    struct buf text = buf_in(a);
    struct cu_loaded m;
    if (kept)
        return kept;
    clock_gettime(CLOCK_REALTIME, &now);
    buf_add(&text, j->ptx->text, j->ptx->len);
    buf_printf(&text, "\n// %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    const struct source again = {j->ptx->name, buf_text(&text), text.len};
    if (compile(dev, &again, beside, &m, error, log) == CU_SUCCESS)
        unload(dev, &m);
    const char *verdict = cu_jit_verdict(a, log);
    cu_jit_keep(a, j, verdict);
    return verdict;
}

/* Warns of what the compiler made slower than it is written. */
static void warn(struct device *dev, const struct source *ptx, bool beside, char *error, char *log,
                 struct diags *d)
{
    const struct cu_jit j = {ptx, dev->sm, dev->version};
    bool delicate = cu_jit_delicate(ptx);
    const char *verdict = cu_jit_verdict(d->arena, log);
    if (delicate && *log)
        cu_jit_keep(d->arena, &j, verdict);
    else if (delicate)
        verdict = verdict_again(dev, &j, beside, error, log, d->arena);
    cu_jit_warn(ptx, verdict, d);
}

/* Compiles PTX, or takes a cubin; DEVICE_REFUSED with the JIT's log in d. beside: while others do
 * so, too. */
static enum device_status load(struct device *dev, const struct source *ptx, bool beside,
                               struct cu_loaded *out, struct diags *d)
{
    const bool binary = cu_is_cubin(ptx);
    struct cu_header head = binary ? (struct cu_header){0} : cu_header_of(ptx);
    size_t before = d->nerror;
    *out = (struct cu_loaded){0};
    if (!cu_header_fits(&head, dev->sm, dev->version, d))
        return DEVICE_REFUSED;
    char *error = malloc(ERROR_BYTES + 1), *log = malloc(LOG_BYTES + 1);
    cu_result r = error && log ? compile(dev, ptx, beside, out, error, log) : CU_OUT_OF_MEMORY;
    if (r == CU_SUCCESS && !binary)
        warn(dev, ptx, beside, error, log, d);
    else if (r != CU_SUCCESS && error)
        cu_report_log(ptx, error, d);
    free(error);
    free(log);
    if (r == CU_SUCCESS)
        return DEVICE_OK;
    if (d->nerror == before)
        cu_failed(dev, d, r, arena_printf(d->arena, "the driver refuses '%s'", ptx->name));
    return r == CU_OUT_OF_MEMORY ? DEVICE_FAILED : DEVICE_REFUSED;
}

static enum device_status load_module(struct device *dev, const struct source *ptx, struct diags *d)
{
    struct cu_loaded m;
    enum device_status status = load(dev, ptx, false, &m, d);
    if (status != DEVICE_OK)
        return status;
    unload(dev, &dev->loaded);
    dev->loaded = m;
    return DEVICE_OK;
}

struct device_module {
    struct cu_loaded loaded;
};

const struct cu_loaded *cu_module_of(const struct device *dev, const struct device_launch *l)
{
    return l->module ? &l->module->loaded : &dev->loaded;
}

static enum device_status load_beside(struct device *dev, const struct source *ptx,
                                      struct device_module **out, struct diags *d)
{
    struct cu_loaded loaded;
    *out = NULL;
    enum device_status status = load(dev, ptx, true, &loaded, d);
    if (status != DEVICE_OK)
        return status;
    struct device_module *m = malloc(sizeof *m);
    if (!m) {
        unload(dev, &loaded);
        diag_error(d, SPAN_NONE, "no memory left to load a module");
        return DEVICE_FAILED;
    }
    m->loaded = loaded;
    *out = m;
    return DEVICE_OK;
}

static void unload_module(struct device *dev, struct device_module *m)
{
    unload(dev, &m->loaded);
    free(m);
}

static enum device_status find_symbol(struct device *dev, const struct device_module *m,
                                      const char *name, uint64_t *address, uint64_t *bytes,
                                      struct diags *d)
{
    size_t n = 0;
    cu_result r = dev->cu.ModuleGetGlobal(address, &n, m->loaded.module, name);
    *bytes = n;
    if (r == CU_SUCCESS)
        return DEVICE_OK;
    if (r != CU_NOT_FOUND)
        return cu_failed(dev, d, r, "cannot find a variable");
    diag_error(d, SPAN_NONE, "the module has no variable '%s' in global or constant memory", name);
    return DEVICE_REFUSED;
}

static enum device_status enter(struct device *dev, struct diags *d)
{
    cu_result r = dev->cu.CtxSetCurrent(dev->context);
    return r == CU_SUCCESS ? DEVICE_OK : cu_failed(dev, d, r, "cannot use the GPU");
}

static enum device_status finish(struct device *dev, struct diags *d)
{
    (void)dev;
    (void)d;
    return DEVICE_OK;
}

/* ---- launches ---- */

static enum device_status launch(struct device *dev, const struct device_launch *l, size_t n,
                                 struct device_stats *stats, struct diags *d)
{
    cu_function f;
    enum device_status status = cu_prepare(dev, l, &f, d);
    for (size_t i = 0; i < n && status == DEVICE_OK; i++) {
        cu_result r = dev->cu.EventRecord(dev->start, NULL);
        if (r == CU_SUCCESS)
            r = cu_launch(dev, f, l, NULL);
        if (r == CU_SUCCESS)
            r = dev->cu.EventRecord(dev->end, NULL);
        if (r == CU_SUCCESS)
            r = elapsed(dev, stats ? &stats[i] : NULL);
        if (r != CU_SUCCESS)
            status = cu_failed(dev, d, r, arena_printf(d->arena, "kernel '%s' failed", l->entry));
    }
    return status;
}

const struct device_ops cuda_device = {
    .kind = "cuda",
    .count = count_devices,
    .open = open_device,
    .info = device_about,
    .alloc = alloc_memory,
    .release = release_memory,
    .bind = bind_memory,
    .unbind = unbind_memory,
    .describe = describe_memory,
    .write = write_memory,
    .read = read_memory,
    .copy = copy_memory,
    .load = load_module,
    .load_module = load_beside,
    .unload_module = unload_module,
    .symbol = find_symbol,
    .launch = launch,
    .tensor_map = cu_tensor_map,
    .enter = enter,
    .finish = finish,
    .close = close_device,
    .queue = &cuda_queue,
    .blas = &cuda_blas,
    .sdpa = &cuda_sdpa,
    .conv = &cuda_conv,
};
