/* What a launch asks of the device, and the launch itself. */
#include <config.h>

#include "cuda/driver.h"
#include "cuda/load.h"

enum { CLUSTER_PORTABLE = 8 };

static bool too_many(const struct device_launch *l, size_t has, struct diags *d)
{
    return diag_error(d, SPAN_NONE, "entry '%s' has %zu parameters; %zu arguments are passed",
                      l->entry, has, l->narg);
}

static bool too_few(const struct device_launch *l, struct diags *d)
{
    return diag_error(d, SPAN_NONE, "entry '%s' has more than the %zu parameters that are passed",
                      l->entry, l->narg);
}

/* The arguments are as many and as large as the entry's parameters, where its text or the driver
 * tells. Of a number the driver tells by refusing the next one, which compute-sanitizer reports: of
 * text it is not asked. */
static bool check_params(struct device *dev, cu_function f, const struct source *ptx,
                         const struct device_launch *l, struct diags *d)
{
    size_t offset, size, has;
    const bool counted = cu_count_params(ptx, l->entry, &has);
    if (counted && has != l->narg)
        return has < l->narg ? too_many(l, has, d) : too_few(l, d);
    if (!dev->cu.FuncGetParamInfo)
        return true;
    for (size_t i = 0; i < l->narg; i++) {
        if (dev->cu.FuncGetParamInfo(f, i, &offset, &size) != CU_SUCCESS)
            return too_many(l, i, d);
        if (size != l->arg_bytes[i])
            return diag_error(d, SPAN_NONE,
                              "parameter %zu of entry '%s' has %zu bytes; %zu are passed", i + 1,
                              l->entry, size, l->arg_bytes[i]);
    }
    if (!counted && dev->cu.FuncGetParamInfo(f, l->narg, &offset, &size) == CU_SUCCESS)
        return too_few(l, d);
    return true;
}

static struct cu_launch_config config_of(const struct device_launch *l, cu_stream stream,
                                         struct cu_launch_attribute *cluster)
{
    struct device_dim g = l->grid, b = l->block, c = l->cluster;
    *cluster = (struct cu_launch_attribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                            .value.cluster = {c.x, c.y, c.z}};
    return (struct cu_launch_config){g.x,    g.y,     g.z, b.x, b.y, b.z, l->shared_bytes,
                                     stream, cluster, 1};
}

cu_result cu_launch(struct device *dev, cu_function f, const struct device_launch *l,
                    cu_stream stream)
{
    struct device_dim g = l->grid, b = l->block;
    void **args = (void **)(uintptr_t)l->args; /* the driver only reads them */
    struct cu_launch_attribute cluster;
    struct cu_launch_config config = config_of(l, stream, &cluster);
    if (l->cluster.x == 0)
        return dev->cu.LaunchKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, l->shared_bytes, stream, args,
                                    NULL);
    return dev->cu.LaunchKernelEx(&config, f, args, NULL);
}

static enum device_status refuse(struct diags *d, const char *why)
{
    diag_error(d, SPAN_NONE, "%s", why);
    return DEVICE_REFUSED;
}

static unsigned function_has(const struct device *dev, cu_function f, int attribute)
{
    int v = 0;
    return dev->cu.FuncGetAttribute(&v, attribute, f) == CU_SUCCESS && v > 0 ? (unsigned)v : 0;
}

/* Threads by the registers that the compiled entry has, and shared memory beside its own. */
static enum device_status check_block(struct device *dev, cu_function f,
                                      const struct device_launch *l, struct diags *d)
{
    struct device_dim b = l->block;
    uint64_t threads = (uint64_t)b.x * b.y * b.z, own = function_has(dev, f, CU_FUNC_STATIC_SHARED),
             most = function_has(dev, f, CU_FUNC_MAX_THREADS);
    if (dev->shared_optin && own + l->shared_bytes > dev->shared_optin)
        return refuse(d, arena_printf(d->arena,
                                      "entry '%s' asks for %u bytes of dynamic shared memory%s; "
                                      "this device has %u",
                                      l->entry, l->shared_bytes,
                                      own ? arena_printf(d->arena, " beside %llu of its own",
                                                         (unsigned long long)own)
                                          : "",
                                      dev->shared_optin));
    if (most && threads > most)
        return refuse(d, arena_printf(d->arena,
                                      "entry '%s' has %u registers, enough for blocks of %llu "
                                      "threads; %llu given",
                                      l->entry, function_has(dev, f, CU_FUNC_REGISTERS),
                                      (unsigned long long)most, (unsigned long long)threads));
    return DEVICE_OK;
}

/* A cluster's blocks run at the same time, in one of the device's groups of multiprocessors. */
static enum device_status check_cluster(struct device *dev, cu_function f,
                                        const struct device_launch *l, struct diags *d)
{
    struct device_dim c = l->cluster, b = l->block;
    uint64_t blocks = (uint64_t)c.x * c.y * c.z;
    struct cu_launch_attribute attribute;
    struct cu_launch_config config = config_of(l, NULL, &attribute);
    cu_result r = CU_SUCCESS;
    int n = 0;
    if (blocks > CLUSTER_PORTABLE)
        r = dev->cu.FuncSetAttribute(f, CU_FUNC_NON_PORTABLE_CLUSTER, 1);
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, arena_printf(d->arena, "cannot launch '%s'", l->entry));
    if (!dev->cu.OccupancyMaxActiveClusters)
        return DEVICE_OK;
    r = dev->cu.OccupancyMaxActiveClusters(&n, f, &config);
    if ((r == CU_SUCCESS && n < 1) || r == CU_INVALID_CLUSTER_SIZE)
        return refuse(d, arena_printf(d->arena,
                                      "the device has no room for a cluster of %llu blocks of "
                                      "'%s', each of %llu threads and %u bytes of dynamic shared "
                                      "memory; a smaller cluster may fit",
                                      (unsigned long long)blocks, l->entry,
                                      (unsigned long long)b.x * b.y * b.z, l->shared_bytes));
    return DEVICE_OK; /* whatever else may be wrong shows at the launch */
}

/* Dynamic shared memory beyond the default and clusters beyond the portable size must be asked
 * for. */
static enum device_status reserve(struct device *dev, cu_function f, const struct device_launch *l,
                                  struct diags *d)
{
    if (l->cluster.x && dev->sm < 90)
        return refuse(d,
                      arena_printf(d->arena, "clusters need sm_90; this device is sm_%u", dev->sm));
    if (l->cluster.x && !dev->cu.LaunchKernelEx)
        return refuse(d, arena_printf(d->arena,
                                      "clusters need a driver of CUDA 11.8; this one is of CUDA "
                                      "%d.%d: update it",
                                      dev->version / 1000, dev->version % 1000 / 10));
    enum device_status status = check_block(dev, f, l, d);
    if (status != DEVICE_OK)
        return status;
    if (l->shared_bytes > 0) { /* the default is 48 KiB less the kernel's own */
        cu_result r = dev->cu.FuncSetAttribute(f, CU_FUNC_MAX_DYNAMIC_SHARED, (int)l->shared_bytes);
        if (r != CU_SUCCESS)
            return cu_failed(dev, d, r, arena_printf(d->arena, "cannot launch '%s'", l->entry));
    }
    return l->cluster.x ? check_cluster(dev, f, l, d) : DEVICE_OK;
}

enum device_status cu_prepare(struct device *dev, const struct device_launch *l, cu_function *f,
                              struct diags *d)
{
    const struct cu_loaded *m = cu_module_of(dev, l);
    *f = NULL;
    cu_result r = m->module ? dev->cu.ModuleGetFunction(f, m->module, l->entry) : CU_NOT_FOUND;
    if (r == CU_NOT_FOUND) {
        diag_error(d, SPAN_NONE, "the module has no entry '%s'", l->entry);
        return DEVICE_REFUSED;
    }
    if (r != CU_SUCCESS)
        return cu_failed(dev, d, r, "cannot find the kernel");
    return check_params(dev, *f, m->text, l, d) ? reserve(dev, *f, l, d) : DEVICE_REFUSED;
}
