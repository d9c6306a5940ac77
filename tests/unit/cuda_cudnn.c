/* Graphs of attention as cuDNN takes them, without a GPU: every descriptor of every form is made
 * and finished, and a plan for a device that is described to the library. It is the fake one of
 * tests/fake_cudnn.c, or the one that KAIO_CUDNN_LIB names. A real one, 9.11 or later, generates
 * and compiles its kernels then, which says whether it takes the graphs. It looks for libnvrtc.so
 * and for a libcuda.so.1, for which tests/no_gpu.c will do:
 *
 *     make tests/nogpu/libcuda.so.1
 *     export LD_LIBRARY_PATH=tests/nogpu:CUDNN:NVRTC KAIO_CUDNN_LIB=CUDNN/libcudnn.so.9
 *     tests/unit/cuda_cudnn
 */
#include <config.h>

#include "base/arena.h"
#include "cuda/cudnn.h"
#include "tap.h"

#include <stdlib.h>

static struct sdpa_tensor tensor(enum dtype type, uint64_t x, uint64_t y, uint64_t r, uint64_t c)
{
    return (struct sdpa_tensor){true, type, {x, y, r, c}, {y * r * c, r * c, c, 1}};
}

static struct sdpa_problem plain(uint64_t b, uint64_t h, uint64_t hk, uint64_t m, uint64_t n,
                                 uint64_t d)
{
    struct sdpa_problem p = {
        .batch = b, .heads = h, .kv_heads = hk, .m = m, .n = n, .d = d, .e = d, .scale = 0.125};
    p.tensor[SDPA_Q] = p.tensor[SDPA_O] = tensor(DT_F16, b, h, m, d);
    p.tensor[SDPA_K] = p.tensor[SDPA_V] = tensor(DT_F16, b, hk, n, d);
    p.tensor[SDPA_LSE] = tensor(DT_F32, b, h, m, 1);
    return p;
}

static void gradients(struct sdpa_problem *p)
{
    p->backward = true;
    p->tensor[SDPA_DO] = p->tensor[SDPA_DQ] = p->tensor[SDPA_Q];
    p->tensor[SDPA_DK] = p->tensor[SDPA_DV] = p->tensor[SDPA_K];
}

static void lengths(struct sdpa_problem *p)
{
    p->tensor[SDPA_ROWS] = p->tensor[SDPA_LENGTHS] = tensor(DT_I32, p->batch, 1, 1, 1);
}

/* ---- a device that is not there ---- */

enum { DEVICE_PROPERTIES = 38, PROPERTIES_JSON = 2702, TYPE_CHAR = 24, TYPE_DESC = 15 };
enum { HEURISTIC = 4, PLAN = 5, HEURISTIC_PROPERTIES = 204, PLAN_PROPERTIES = 407 };
enum { PLAN_HANDLE = 400, MOST = 8 };

static const char h100[] =
    "{\"deviceName\": \"NVIDIA H100 80GB HBM3\", \"cudaDeviceId\": 0, \"deviceVer\": 900, "
    "\"driverVer\": 13000, \"multiProcessorCount\": 132, \"warpSize\": 32, "
    "\"regsPerBlock\": 65536, \"maxRegistersPerSM\": 65536, \"maxCtasPerSM\": 32, "
    "\"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, "
    "\"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": 232448, "
    "\"reservedSharedMemoryPerBlock\": 1024, \"maxGridSize\": [2147483647, 65535, 65535], "
    "\"maxBlockSize\": [1024, 1024, 64], \"pciDeviceId\": 0, \"isTccDriver\": 0, "
    "\"supportCoopLaunch\": 1, \"totalGlobalMem\": 85017493504, \"smClockRateKHz\": 1980000, "
    "\"memClockRateKHz\": 2619000, \"l2CacheSize\": 52428800, \"memoryBusWidth\": 5120, "
    "\"smCountOrigin\": 0, \"oversizedSharedMemoryPerBlock\": 232448}";

static struct cudnn real;
static struct cudnn_desc_ *properties;
static struct {
    struct cudnn_desc_ *d;
    int name; /* of the attribute that has the properties */
} asks[MOST];
static size_t nasks;

/* Heuristics and plans are told of the device in place of a handle. */
static int create(int type, struct cudnn_desc_ **out)
{
    int r = real.CreateDescriptor(type, out);
    if (r == 0 && (type == HEURISTIC || type == PLAN)) {
        asks[nasks % MOST].d = *out;
        asks[nasks++ % MOST].name = type == PLAN ? PLAN_PROPERTIES : HEURISTIC_PROPERTIES;
    }
    return r;
}

static int set(struct cudnn_desc_ *d, int name, int type, int64_t n, const void *values)
{
    return name == PLAN_HANDLE ? 0 : real.SetAttribute(d, name, type, n, values);
}

static int finalize(struct cudnn_desc_ *d)
{
    int r = 0;
    for (size_t i = 0; i < MOST; i++)
        if (asks[i].d == d) {
            asks[i].d = NULL;
            r = real.SetAttribute(d, asks[i].name, TYPE_DESC, 1, &properties);
        }
    return r ? r : real.Finalize(d);
}

static bool describe_device(struct cudnn *lib)
{
    char text[2000] = "";
    real = *lib;
    lib->CreateDescriptor = create;
    lib->SetAttribute = set;
    lib->Finalize = finalize;
    int r = real.CreateDescriptor(DEVICE_PROPERTIES, &properties);
    if (r == 0)
        r = real.SetAttribute(properties, PROPERTIES_JSON, TYPE_CHAR, sizeof h100 - 1, h100);
    if (r == 0)
        r = real.Finalize(properties);
    if (r)
        real.LastError(text, sizeof text);
    return ok(r == 0, "a device is described %s", text);
}

static void check(const struct cudnn *lib, const char *name, const struct sdpa_problem *p)
{
    struct sdpa_plan plan = {0};
    struct cudnn_error first = {0};
    const char *call = "";
    char text[2000] = "";
    int r = cu_cudnn_graph(lib, NULL, p, &plan, &call);
    if (r)
        lib->LastError(text, sizeof text);
    ok(r == 0, "%s: %zu operations", name, plan.nop);
    if (r)
        tap_note("%s gave %d after %zu operations: %s", call, r, plan.nop, text);
    if (r == 0 && !ok(cu_cudnn_choose(lib, &plan, &first), "%s: a plan", name))
        tap_note("%s gave %d: %s", first.call, first.status, first.text);
    cu_cudnn_drop(lib, &plan.made);
}

/* ---- convolutions ---- */

/* channels_last: the channel is the last of the dimensions in memory. */
static struct conv_tensor image(enum dtype type, unsigned spatial, const uint64_t *dim,
                                bool channels_last)
{
    struct conv_tensor t = {.type = type};
    uint64_t stride = 1;
    memcpy(t.dim, dim, (spatial + 2) * sizeof *dim);
    if (channels_last) {
        t.stride[1] = 1;
        stride = dim[1];
    }
    for (unsigned k = spatial + 1; k >= (channels_last ? 2 : 1); k--) {
        t.stride[k] = stride;
        stride *= dim[k];
    }
    t.stride[0] = stride;
    return t;
}

/* 3 x 3 with a border of zeros, of 16 channels in so many groups. */
static struct conv_problem convolution(enum conv_kind kind, enum dtype type, uint64_t groups,
                                       bool channels_last)
{
    const uint64_t x[] = {2, 16, 12, 12}, w[] = {32, 16 / groups, 3, 3}, y[] = {2, 32, 12, 12};
    struct conv_problem p = {.kind = kind, .spatial = 2, .tf32 = true};
    p.tensor[CONV_X] = image(type, 2, x, channels_last);
    p.tensor[CONV_W] = image(type, 2, w, channels_last);
    p.tensor[CONV_Y] = image(type, 2, y, channels_last);
    for (int k = 0; k < 2; k++)
        p.pre[k] = p.post[k] = p.stride[k] = p.dilation[k] = 1;
    return p;
}

static void check_conv(const struct cudnn *lib, const char *name, struct conv_problem p)
{
    struct conv_plan plan = {0};
    struct cudnn_error first = {0};
    const char *call = "";
    char text[2000] = "";
    int r = cu_cudnn_conv_graph(lib, NULL, &p, &plan, &call);
    if (r)
        lib->LastError(text, sizeof text);
    ok(r == 0, "%s: a graph", name);
    if (r)
        tap_note("%s gave %d: %s", call, r, text);
    if (r == 0 && !ok(cu_cudnn_conv_choose(lib, &p, &plan, &first), "%s: plans", name))
        tap_note("%s gave %d: %s", first.call, first.status, first.text);
    tap_note("%u plans, %zu objects, a workspace of %zu bytes", plan.n, plan.made.n,
             (size_t)plan.workspace_bytes);
    cu_cudnn_drop(lib, &plan.made);
}

static void check_convolutions(const struct cudnn *lib)
{
    check_conv(lib, "f16, channels last", convolution(CONV_FORWARD, DT_F16, 1, true));
    check_conv(lib, "f16", convolution(CONV_FORWARD, DT_F16, 1, false));
    check_conv(lib, "bf16, channels last", convolution(CONV_FORWARD, DT_BF16, 1, true));
    check_conv(lib, "tf32", convolution(CONV_FORWARD, DT_F32, 1, false));
    struct conv_problem p = convolution(CONV_FORWARD, DT_F32, 1, false);
    p.tf32 = false;
    check_conv(lib, "f32", p);
    check_conv(lib, "groups", convolution(CONV_FORWARD, DT_F16, 4, true));
    check_conv(lib, "depthwise", convolution(CONV_FORWARD, DT_F16, 16, true));
    check_conv(lib, "gradient of the image", convolution(CONV_DATA, DT_F16, 1, true));
    check_conv(lib, "gradient of the filter", convolution(CONV_FILTER, DT_F16, 1, true));
    p = convolution(CONV_FORWARD, DT_F16, 1, true);
    for (int k = 0; k < 2; k++) {
        p.stride[k] = 2;
        p.post[k] = 0;
        p.tensor[CONV_Y].dim[2 + k] = 6;
    }
    p.tensor[CONV_Y] = image(DT_F16, 2, p.tensor[CONV_Y].dim, true);
    check_conv(lib, "stride 2", p);
}

int main(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    struct cudnn lib = {0};
    const char *build = getenv("KAIO_BUILDDIR");
    if (!getenv("KAIO_CUDNN_LIB"))
        setenv("KAIO_CUDNN_LIB", arena_printf(a, "%s/tests/libfakecudnn.so", build ? build : "."),
               1);
    ok(cu_cudnn_load(&lib, d), "the library is there");
    if (d->nerror)
        return tap_done();
    tap_note("%s", lib.name);
    if (!describe_device(&lib))
        return tap_done();

    struct sdpa_problem p = plain(2, 4, 4, 128, 256, 64);
    check(&lib, "full", &p);
    p.tensor[SDPA_LSE].is_there = false;
    check(&lib, "full, without lse", &p);
    p = plain(2, 4, 4, 128, 256, 64);
    p.causal = true;
    check(&lib, "causal from the top", &p);
    p.shift = 128;
    check(&lib, "causal to the last key", &p);
    p.window = 64;
    check(&lib, "window", &p);
    p = plain(2, 8, 2, 128, 128, 128);
    p.causal = true;
    check(&lib, "grouped heads", &p);
    p.cap = 30;
    check(&lib, "soft cap", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    p.causal = true;
    p.tensor[SDPA_SLOPE] = tensor(DT_F32, 1, 4, 1, 1);
    check(&lib, "alibi", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    p.tensor[SDPA_BIAS] = tensor(DT_F16, 1, 4, 128, 128);
    check(&lib, "bias", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    lengths(&p);
    check(&lib, "lengths", &p);
    p.causal = true;
    check(&lib, "lengths and causal", &p);
    p.window = 32;
    check(&lib, "lengths and window", &p);
    p = plain(2, 8, 2, 1, 128, 64);
    p.tensor[SDPA_LSE].is_there = false;
    lengths(&p);
    p.tensor[SDPA_PAGES] = tensor(DT_I32, 2, 1, 8, 1);
    p.tensor[SDPA_K] = p.tensor[SDPA_V] = tensor(DT_F16, 40, 2, 16, 64);
    check(&lib, "pages", &p);
    p = plain(2, 4, 4, 128, 128, 64);
    gradients(&p);
    check(&lib, "backward", &p);
    p.causal = true;
    check(&lib, "backward, causal", &p);
    p = plain(2, 8, 2, 128, 128, 64);
    gradients(&p);
    p.causal = true;
    check(&lib, "backward, grouped heads", &p);
    check_convolutions(&lib);
    real.DestroyDescriptor(properties);
    arena_free(a);
    return tap_done();
}
