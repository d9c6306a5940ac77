/* The CUDA device against tests/fake_cuda.c. */
#include <config.h>

#include "cuda/load.h"
#include "run/device.h"
#include "tap.h"

static const char ptx[] =
    ".version 8.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 alpha, .param .u32 n)\n"
    "{ ret; }\n"
    ".visible .entry fault() { ret; }\n"
    ".visible .entry idle() { ret; }\n";

static const char twice_ptx[] =
    ".version 8.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n)\n"
    "{ ret; }\n";

static const char *fake_path(void)
{
    static char path[4096];
    const char *dir = getenv("KAIO_BUILDDIR");
    snprintf(path, sizeof path, "%s/tests/libfakecuda.so", dir ? dir : ".");
    return path;
}

/* A machine with the settings NAME=VALUE, ..., NULL and no others. */
static void machine(const char *first, ...)
{
    static const char *const names[] = {
        "FAKE_CUDA_LOG",      "FAKE_CUDA_FAIL",     "FAKE_CUDA_DEVICES", "FAKE_CUDA_SM",
        "FAKE_CUDA_VERSION",  "FAKE_CUDA_MEMORY",   "FAKE_CUDA_JIT_LOG", "FAKE_CUDA_US",
        "FAKE_NVML",          "FAKE_CUDA_SHARED",   "FAKE_CUDA_THREADS", "FAKE_CUDA_CLUSTERS",
        "FAKE_CUDA_JIT_INFO", "FAKE_CUDA_JIT_CACHE"};
    va_list ap;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("KAIO_CUDA_LIB", fake_path(), 1);
    setenv("KAIO_NVML_LIB", fake_path(), 1);
    va_start(ap, first);
    for (const char *s = first; s; s = va_arg(ap, const char *)) {
        char name[64];
        const char *eq = strchr(s, '=');
        snprintf(name, sizeof name, "%.*s", (int)(eq - s), s);
        setenv(name, eq + 1, 1);
    }
    va_end(ap);
}

struct setup {
    struct arena *a;
    struct diags *d;
    struct device *dev;
    enum device_status status;
};

static struct setup open_at(int ordinal)
{
    struct setup s = {.a = arena_new()};
    s.d = diags_new(s.a);
    s.status = cuda_device.open(s.a, ordinal, &(struct device_options){0}, &s.dev, s.d);
    return s;
}

static void finish(struct setup *s)
{
    if (s->status == DEVICE_OK)
        cuda_device.close(s->dev);
    arena_free(s->a);
}

static const char *first_text(const struct diags *d)
{
    return d->list.n ? d->list.v[0].text : "";
}

static enum device_status load(struct setup *s, const char *text)
{
    return cuda_device.load(s->dev, source_new(s->a, "k.ptx", text, strlen(text)), s->d);
}

static void test_absent(void)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    machine(NULL);
    setenv("KAIO_CUDA_LIB", "/nonexistent/libcuda.so.1", 1);
    eq_int(cuda_device.count(d), 0, "no library, no devices");
    ok(d->nerror == 0 && strstr(first_text(d), "no NVIDIA driver: /nonexistent/libcuda.so.1"),
       "and a note why");
    struct setup s = open_at(0);
    eq_int(s.status, DEVICE_ABSENT, "opening it says that it is absent");
    finish(&s);
    d = diags_new(a);
    setenv("KAIO_CUDA_LIB", "libm.so.6", 1);
    eq_int(cuda_device.count(d), 0, "another library is not the driver");
    ok(strstr(first_text(d), "'libm.so.6' has no cuInit"), "and a note says so");
    d = diags_new(a);
    machine("FAKE_CUDA_DEVICES=0", NULL);
    eq_int(cuda_device.count(d), 0, "a driver without a GPU");
    eq_str(first_text(d), "the NVIDIA driver sees no GPU", "has its note");
    d = diags_new(a);
    machine("FAKE_CUDA_FAIL=cuInit:804", NULL);
    eq_int(cuda_device.count(d), 0, "a driver that does not start");
    eq_str(first_text(d), "the NVIDIA driver does not start: unknown error (804): no description",
           "says why");
    machine("FAKE_CUDA_DEVICES=2", NULL);
    s = open_at(2);
    eq_int(s.status, DEVICE_ABSENT, "GPU 2 of two is absent");
    eq_str(first_text(s.d), "there is no GPU 2; the driver sees 2, numbered from 0",
           "and the message counts them");
    finish(&s);
    machine("FAKE_CUDA_FAIL=cuDevicePrimaryCtxRetain:2", NULL);
    s = open_at(0);
    eq_int(s.status, DEVICE_FAILED, "a device that can't be used has failed");
    eq_str(first_text(s.d), "cannot use GPU 0: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory",
           "by its name");
    finish(&s);
    arena_free(a);
}

static void test_info(void)
{
    struct device_info info;
    machine("FAKE_CUDA_DEVICES=2", "FAKE_CUDA_SM=90", NULL);
    struct setup s = open_at(1);
    cuda_device.info(s.dev, &info);
    eq_str(info.name, "Fake GPU 1", "the name");
    eq_int(info.sm, 90, "the compute capability");
    eq_int(info.memory, 16 << 20, "the memory");
    eq_int(info.l2_bytes, 1 << 20, "the L2 cache");
    eq_int(info.driver_version, 13000, "the driver's version");
    finish(&s);
}

/* Three floats there and back through a launch. */
static void test_launch(void)
{
    float x[3] = {1, 2, 3}, y[3] = {10, 20, 30}, alpha = 2;
    uint64_t xa = 0, ya = 0;
    uint32_t n = 3;
    struct device_stats stats[2];
    machine(NULL);
    struct setup s = open_at(0);
    eq_int(cuda_device.alloc(s.dev, sizeof x, NULL, &xa, s.d), DEVICE_OK, "memory");
    cuda_device.alloc(s.dev, sizeof y, NULL, &ya, s.d);
    ok(xa % 256 == 0 && ya % 256 == 0, "is aligned");
    cuda_device.write(s.dev, xa, x, sizeof x, s.d);
    cuda_device.write(s.dev, ya, y, sizeof y, s.d);
    eq_int(load(&s, ptx), DEVICE_OK, "a module");
    const void *args[] = {&xa, &ya, &alpha, &n};
    size_t sizes[] = {8, 8, 4, 4};
    struct device_launch l = {"saxpy", {1, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0, args, sizes, 4};
    eq_int(cuda_device.launch(s.dev, &l, 2, stats, s.d), DEVICE_OK, "two launches");
    cuda_device.read(s.dev, y, ya, sizeof y, s.d);
    ok(y[0] == 14 && y[1] == 28 && y[2] == 42, "compute");
    eq_dbl(stats[0].seconds, 0.001, "the first is timed");
    eq_dbl(stats[1].seconds, 0.001, "and the second");
    eq_int(cuda_device.copy(s.dev, ya, xa, sizeof x, stats, s.d), DEVICE_OK,
           "a copy on the device");
    cuda_device.read(s.dev, y, ya, sizeof y, s.d);
    ok(memcmp(x, y, sizeof x) == 0 && stats[0].seconds == 0.001, "copies and is timed");
    l.narg = 3;
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_REFUSED,
           "an argument short is refused");
    eq_str(first_text(s.d), "entry 'saxpy' has more than the 3 parameters that are passed",
           "and said");
    l.narg = 4;
    sizes[3] = 8;
    s.d = diags_new(s.a);
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_REFUSED,
           "an argument too wide is refused");
    eq_str(first_text(s.d), "parameter 4 of entry 'saxpy' has 4 bytes; 8 are passed", "and said");
    l.entry = "saxpi";
    s.d = diags_new(s.a);
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_REFUSED,
           "an unknown entry is refused");
    eq_str(first_text(s.d), "the module has no entry 'saxpi'", "and named");
    eq_int(cuda_device.release(s.dev, xa), DEVICE_OK, "memory is given back");
    eq_int(cuda_device.release(s.dev, xa), DEVICE_FAILED, "once");
    finish(&s);
}

static void read_log(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
}

static void counts(const char *text, const char *entry, int want)
{
    struct arena *a = arena_new();
    size_t n = 99;
    const bool found = cu_count_params(source_new(a, "k", text, strlen(text)), entry, &n);
    eq_int(found ? (int)n : -1, want, "parameters of %s in '%s'", entry, text);
    arena_free(a);
}

static void test_counts(void)
{
    counts(".visible .entry k(.param .u64 a, .param .align 64 .b8 m[128])\n{ ret; }", "k", 2);
    counts(".entry kk(.param .u64 a)\n{}\n.entry k ( ) {}", "k", 0);
    counts(".entry k {ret;}", "k", 0);
    counts("// .entry k(.param .u32 a, .param .u32 b)\n.entry\tk(.param .u32 a // , one\n)", "k",
           1);
    counts("/* .entry k(a,b) */ .weak .entry /**/ k /* ( */ (/* , */ .param .f32 k, .param .u32 n)",
           "k", 2);
    counts(".entry kk(.param .u64 a)", "k", -1);
    counts(".func k(.param .u64 a)", "k", -1);
    counts(".entry k(.param .u64 a", "k", 1);
    counts(".entry", "k", -1);
    counts("/* .entry k()", "k", -1);
    counts("", "k", -1);
    counts(".file 1 \".entry k(.param .u64 a)\"\n.entry k(.param .u64 a, .param .u64 b)", "k", 2);
    counts(".file 1 \"/*\\\".entry k(\"\r\n.entry k(.param .u64 a)", "k", 1);
    counts(".file 1 \".entry k()", "k", -1);
    counts("\177ELF .entry k\n(.param .u64 a)", "k", -1);
}

static void test_attributes(void)
{
    char path[] = "/tmp/kaio-cuda-XXXXXX", setting[64], text[4096];
    int fd = mkstemp(path);
    snprintf(setting, sizeof setting, "FAKE_CUDA_LOG=%s", path);
    machine(setting, "FAKE_CUDA_SM=90", NULL);
    struct setup s = open_at(0);
    load(&s, ptx);
    struct device_launch l = {"idle", {16, 2, 1}, {64, 1, 1}, {16, 1, 1}, 49153, NULL, NULL, 0};
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_OK,
           "a large block in a large cluster");
    finish(&s);
    read_log(path, text, sizeof text);
    ok(strstr(text, "attribute 8 = 49153\n"), "dynamic shared memory is asked for");
    ok(strstr(text, "attribute 14 = 1\n"), "so is a cluster above 8 blocks");
    ok(strstr(text, "launch 16,2,1 x 64,1,1 shared 49153 cluster 16,1,1\n"),
       "and the launch has its cluster");
    ok(strstr(text, "retain 40\n") && strstr(text, "unload\n") && strstr(text, "release 40\n"),
       "what was taken is given back");
    ok(!strstr(text, "no parameter"), "and the driver is asked for no parameter that is not there");
    remove(path);
    if (fd >= 0)
        fclose(fdopen(fd, "r"));
    machine(NULL);
    s = open_at(0);
    load(&s, ptx);
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_REFUSED, "sm_80 has no clusters");
    l.cluster.x = 0;
    l.shared_bytes = 200000;
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_REFUSED,
           "nor 200000 bytes of shared memory");
    eq_str(s.d->list.n > 1 ? s.d->list.v[1].text : "",
           "entry 'idle' asks for 200000 bytes of dynamic shared memory; this device has 166912",
           "and says so");
    finish(&s);
}

/* A launch of `idle` on an H100 that behaves as told: refused, with this message. */
static void refused_launch(const char *setting, struct device_launch l, const char *message)
{
    machine("FAKE_CUDA_SM=90", setting, NULL);
    struct setup s = open_at(0);
    load(&s, ptx);
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_REFUSED, "refused: %s", message);
    eq_str(first_text(s.d), message, "and said");
    finish(&s);
}

static void test_limits(void)
{
    struct device_launch l = {"idle", {16, 1, 1}, {512, 1, 1}, {16, 1, 1}, 100000, NULL, NULL, 0};
    refused_launch("FAKE_CUDA_SHARED=132449", l,
                   "entry 'idle' asks for 100000 bytes of dynamic shared memory beside 132449 of "
                   "its own; this device has 232448");
    refused_launch("FAKE_CUDA_THREADS=384", l,
                   "entry 'idle' has 40 registers, enough for blocks of 384 threads; 512 given");
    refused_launch("FAKE_CUDA_CLUSTERS=0", l,
                   "the device has no room for a cluster of 16 blocks of 'idle', each of 512 "
                   "threads and 100000 bytes of dynamic shared memory; a smaller cluster may fit");
    refused_launch("FAKE_CUDA_FAIL=cuOccupancyMaxActiveClusters:912", l,
                   "the device has no room for a cluster of 16 blocks of 'idle', each of 512 "
                   "threads and 100000 bytes of dynamic shared memory; a smaller cluster may fit");
}

static const struct device_tensor_map tensor = {.address = 4096,
                                                .type = DT_BF16,
                                                .rank = 3,
                                                .dim = {100, 30, 7},
                                                .stride = {2, 208, 8000},
                                                .box = {64, 8, 1},
                                                .step = {1, 2, 1},
                                                .swizzle = 128,
                                                .promotion = 256,
                                                .nan_fill = true};

/* What each field becomes for the driver, and every type. */
static void test_tensor_map(void)
{
    static const struct {
        enum dtype type;
        int is;
    } types[] = {{DT_F64, 8}, {DT_F32, 7}, {DT_F16, 6},  {DT_E4M3, 0}, {DT_E5M2, 0},
                 {DT_I64, 5}, {DT_I32, 3}, {DT_I16, 1},  {DT_I8, 0},   {DT_U64, 4},
                 {DT_U32, 2}, {DT_U16, 1}, {DT_BOOL, 0}, {DT_U8, 0}};
    char path[] = "/tmp/kaio-cuda-XXXXXX", setting[64], text[8192], want[64];
    unsigned char map[DEVICE_TENSOR_MAP];
    int fd = mkstemp(path);
    snprintf(setting, sizeof setting, "FAKE_CUDA_LOG=%s", path);
    machine(setting, "FAKE_CUDA_SM=90", NULL);
    struct setup s = open_at(0);
    struct device_tensor_map m = tensor;
    eq_int(cuda_device.tensor_map(s.dev, &m, map, s.d), DEVICE_OK, "a tensor map");
    struct device_tensor_map pixels = m;
    pixels.im2col = true;
    pixels.box[1] = 300;
    pixels.lower[0] = -3;
    pixels.upper[0] = 2;
    eq_int(cuda_device.tensor_map(s.dev, &pixels, map, s.d), DEVICE_OK, "one of windows");
    m.nan_fill = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        m.type = types[i].type;
        m.interleave = i % 3 == 0 ? 0 : 8u << i % 3;
        m.swizzle = i % 4 == 0 ? 0 : 16u << i % 4;
        m.promotion = i % 4 == 0 ? 0 : 32u << i % 4;
        m.address += 16;
        cuda_device.tensor_map(s.dev, &m, map, s.d);
    }
    read_log(path, text, sizeof text);
    ok(strstr(text, "map at 4096 type 9: 100/64/1 30/8/2@208 7/1/1@8000, interleave 0 swizzle 3 "
                    "promotion 3 fill 1\n"),
       "all its numbers arrive");
    ok(strstr(text, "im2col map at 4096 type 9: 100/1 from -3 to 2 30/2@208 7/1@8000, 64 channels "
                    "of 300, interleave 0 swizzle 3 promotion 3 fill 1\n"),
       "and those of windows");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(want, sizeof want, "map at %d type %d:", (int)(4096 + 16 * (i + 1)), types[i].is);
        const char *line = strstr(text, want);
        ok(line, "%s", want);
        snprintf(want, sizeof want, "interleave %d swizzle %d promotion %d fill 0\n", (int)(i % 3),
                 (int)(i % 4), (int)(i % 4));
        ok(line && strstr(line, want) == strstr(line, "interleave"), "%s", want);
    }
    finish(&s);
    remove(path);
    if (fd >= 0)
        fclose(fdopen(fd, "r"));
    machine("FAKE_CUDA_SM=90", "FAKE_CUDA_FAIL=cuTensorMapEncodeTiled:1", NULL);
    s = open_at(0);
    eq_int(cuda_device.tensor_map(s.dev, &m, map, s.d), DEVICE_REFUSED, "one that is refused");
    eq_str(first_text(s.d), "the driver refuses a tensor map: unknown error (1): no description",
           "is said");
    finish(&s);
    machine(NULL);
    s = open_at(0);
    eq_int(cuda_device.tensor_map(s.dev, &m, map, s.d), DEVICE_REFUSED, "sm_80 has none");
    eq_str(first_text(s.d), "tensor maps need sm_90; this device is sm_80", "and says so");
    finish(&s);
}

static void test_failures(void)
{
    uint64_t address;
    struct device_label label = {.name = "x"};
    machine(NULL);
    struct setup s = open_at(0);
    eq_int(cuda_device.alloc(s.dev, 17 << 20, &label, &address, s.d), DEVICE_FAILED,
           "too much memory");
    eq_str(first_text(s.d), "the GPU has no memory left for the 17825792 bytes of 'x'",
           "is said with the buffer");
    s.d = diags_new(s.a);
    load(&s, ptx);
    struct device_launch l = {"fault", {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, NULL, NULL, 0};
    eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), DEVICE_FAULT,
           "a kernel that goes wrong is a fault");
    eq_str(first_text(s.d),
           "kernel 'fault' failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was "
           "encountered",
           "by its name");
    finish(&s);
}

/* The launch itself fails: the kernel is to blame for some errors, the device for others. */
static void test_statuses(void)
{
    static const struct {
        const char *setting;
        enum device_status status;
    } v[] = {
        {"FAKE_CUDA_FAIL=cuLaunchKernel:1", DEVICE_REFUSED},
        {"FAKE_CUDA_FAIL=cuLaunchKernel:701", DEVICE_REFUSED},
        {"FAKE_CUDA_FAIL=cuLaunchKernel:719", DEVICE_FAULT},
        {"FAKE_CUDA_FAIL=cuLaunchKernel:2", DEVICE_FAILED},
        {"FAKE_CUDA_FAIL=cuLaunchKernel:999", DEVICE_FAILED},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        machine(v[i].setting, NULL);
        struct setup s = open_at(0);
        load(&s, ptx);
        struct device_launch l = {"idle", {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, NULL, NULL, 0};
        eq_int(cuda_device.launch(s.dev, &l, 1, NULL, s.d), v[i].status, "%s", v[i].setting);
        eq_int(s.d->nerror, 1, "has a message");
        finish(&s);
    }
}

static const struct {
    const char *text, *setting, *message;
    size_t line; /* where it points; 0: nowhere */
} refusals[] = {
    {".version 8.0\n.target sm_90a\n", "FAKE_CUDA_SM=80",
     "the module needs sm_90a; this device is sm_80", 2},
    {".version 8.0\n.target sm_90a\n", "FAKE_CUDA_SM=100",
     "the module needs sm_90a; this device is sm_100", 2},
    {"// x\n.version 8.0\n .target sm_86, debug\n", "FAKE_CUDA_SM=80",
     "the module needs sm_86; this device is sm_80", 3},
    {".version 8.8\n.target sm_100f\n", "FAKE_CUDA_SM=120",
     "the module needs sm_100f; this device is sm_120", 2},
    {".version 8.4\n.target sm_80\n", "FAKE_CUDA_VERSION=12020",
     "the module is PTX 8.4; this driver (CUDA 12.2) compiles PTX up to 8.2: update the driver", 1},
    {".version 7.0\n.target sm_80\nadd.f33 x;\n",
     "FAKE_CUDA_JIT_LOG=ptxas application ptx input, line 3; error   : Unexpected instruction "
     "types\n"
     "ptxas fatal   : Ptx assembly aborted due to errors",
     "the driver's compiler says: Unexpected instruction types", 3},
    {".version 7.0\n.target sm_80\n", "FAKE_CUDA_FAIL=cuModuleLoadDataEx:218",
     "the driver refuses 'k.ptx': unknown error (218): no description", 0},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        machine(refusals[i].setting, NULL);
        struct setup s = open_at(0);
        eq_int(load(&s, refusals[i].text), DEVICE_REFUSED, "refused: %s", refusals[i].message);
        eq_str(first_text(s.d), refusals[i].message, "so it says");
        if (refusals[i].line)
            eq_int(s.d->list.n ? span_line_col(s.d->list.v[0].span).line : 0, refusals[i].line,
                   "at its line");
        finish(&s);
    }
    machine("FAKE_CUDA_SM=89", NULL);
    struct setup s = open_at(0);
    eq_int(load(&s, ".version 7.0\n.target sm_70\n"), DEVICE_OK,
           "an older target runs on a newer device");
    finish(&s);
    machine("FAKE_CUDA_SM=90", "FAKE_CUDA_VERSION=13020", NULL);
    s = open_at(0);
    eq_int(load(&s, ".version 9.9\n.target sm_90a\n"), DEVICE_OK,
           "a driver newer than our table is believed");
    finish(&s);
    machine("FAKE_CUDA_SM=103", NULL);
    s = open_at(0);
    eq_int(load(&s, ".version 8.8\n.target sm_100f\n"), DEVICE_OK,
           "a family's module runs on its later members");
    finish(&s);
}

static const char gemm[] = ".version 8.0\n"
                           ".target sm_90a\n"
                           ".address_size 64\n"
                           ".visible .entry other() {\n"
                           "  setmaxnreg.inc.sync.aligned.u32 232;\n"
                           "  ret; }\n"
                           "// gemm of .entry other\n"
                           ".visible .entry gemm()\n"
                           "{\n"
                           "  mov.u32 %r1, 0;\n"
                           "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {}, a, b, 0;\n"
                           "  setmaxnreg.dec.sync.aligned.u32 40;\n"
                           "  ret;\n"
                           "}\n"
                           ".func helper() { ret; }\n";
#define SERIALIZED                                                                                 \
    "FAKE_CUDA_JIT_INFO=ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "      \
    "instructions are serialized due to ill formed pipeline stage in the function 'gemm'\n"        \
    "ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to allow "           \
    "debugging.\n"                                                                                 \
    "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n" \
    "ptxas info    : Function properties for other\n"                                              \
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"         \
    "ptxas info    : Function properties for helper\n"                                             \
    "ptxas         .     24 bytes stack frame, 20 bytes spill stores, 20 bytes spill loads\n"      \
    "ptxas info    : Function properties for gemm\n"                                               \
    "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"       \
    "ptxas info    : Used 255 registers\n"

static void lost_speed(struct setup *s, const char *how)
{
    static const struct {
        const char *text;
        size_t line;
    } want[] = {
        {"the driver's compiler says: Potential Performance Loss: wgmma.mma_async instructions are "
         "serialized due to ill formed pipeline stage in the function 'gemm' (C7510)",
         11},
        {"the driver's compiler says: Potential Performance Loss: 'setmaxnreg' ignored to allow "
         "debugging. (C7504)",
         5},
        {"the driver's compiler finds no registers for all of 'gemm': it stores 12 bytes and loads "
         "8",
         8},
    };
    eq_int(s->d->nerror, 0, "%s: no error", how);
    eq_int(s->d->nwarning, 3, "%s: three warnings", how);
    for (size_t i = 0; i < 3 && i < s->d->list.n; i++) {
        eq_str(s->d->list.v[i].text, want[i].text, "%s: warning %zu", how, i + 1);
        eq_int(span_line_col(s->d->list.v[i].span).line, want[i].line, "where it is");
    }
}

static void spoil(const char *command, const char *dir)
{
    char text[512];
    snprintf(text, sizeof text, command, dir);
    eq_int(system(text), 0, "%s", text);
}

static size_t compiled(const char *path)
{
    char text[8192];
    size_t n = 0;
    read_log(path, text, sizeof text);
    for (const char *s = text; (s = strstr(s, "load ")); s++)
        n++;
    return n;
}

static void test_lost_speed(void)
{
    char dir[] = "/tmp/kaio-jit-XXXXXX", cache[64], driver[64], log[64];
    machine(
        "FAKE_CUDA_SM=90",
        "FAKE_CUDA_JIT_INFO=ptxas info : (C7517) warpgroup.wait is injected in around line 10 by "
        "compiler to allow use of registers defined by GMMA in function 'gemm'",
        "XDG_CACHE_HOME=/dev/null", NULL);
    struct setup injected = open_at(0);
    load(&injected, gemm);
    eq_str(
        first_text(injected.d),
        "the driver's compiler says: warpgroup.wait is injected in around line 10 by compiler to "
        "allow use of registers defined by GMMA in function 'gemm' (C7517)",
        "a wait that the compiler adds");
    eq_int(injected.d->list.n ? span_line_col(injected.d->list.v[0].span).line : 0, 10,
           "at the line that it says");
    finish(&injected);
    ok(mkdtemp(dir), "a folder");
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s", dir);
    snprintf(driver, sizeof driver, "FAKE_CUDA_JIT_CACHE=%s/driver", dir);
    snprintf(log, sizeof log, "FAKE_CUDA_LOG=%s/log", dir);
    static const char *const then[] = {
        "rm -f %s/log",                                         /* kept */
        "rm -r %s/kaio",                                        /* not kept */
        "for f in %s/kaio/jit/*; do sed -i '$d' $f; done",      /* cut off */
        "for f in %s/kaio/jit/*; do sed -i '1s/1/2/' $f; done", /* of another make */
        "rm -r %1$s/kaio; ln -s /dev/null %1$s/kaio",           /* can't be kept */
    };
    machine("FAKE_CUDA_SM=90", SERIALIZED, cache, driver, log, NULL);
    struct setup s = open_at(0);
    eq_int(load(&s, gemm), DEVICE_OK, "a module that is slow");
    lost_speed(&s, "at first");
    eq_int(compiled(strchr(log, '=') + 1), 1, "is compiled once");
    finish(&s);
    for (size_t i = 0; i < sizeof then / sizeof *then; i++) {
        spoil("rm -f %s/log", dir);
        spoil(then[i], dir);
        s = open_at(0);
        eq_int(load(&s, gemm), DEVICE_OK, "again");
        lost_speed(&s, then[i]);
        eq_int(compiled(strchr(log, '=') + 1), i ? 2 : 1,
               "the driver, which has the code, is asked only for what was not kept");
        finish(&s);
    }
    spoil("rm -r %s", dir);
    machine("FAKE_CUDA_SM=90", "XDG_CACHE_HOME=/dev/null", NULL);
    s = open_at(0);
    load(&s, gemm);
    eq_int(s.d->list.n, 0, "a good one has no warning");
    finish(&s);
    unsetenv("XDG_CACHE_HOME");
}

/* Two modules side by side; work queued, recorded and replayed. */
static void test_queue(void)
{
    const struct device_queue *q = cuda_device.queue;
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    uint64_t xa = 0, ya = 0;
    uint32_t n = 4;
    double seconds = 0;
    struct device_module *m, *other;
    struct device_graph *g;
    machine("FAKE_CUDA_US=twice:25", NULL);
    struct setup s = open_at(0);
    const struct source *twice = source_new(s.a, "t.ptx", twice_ptx, sizeof twice_ptx - 1);
    cuda_device.alloc(s.dev, sizeof x, NULL, &xa, s.d);
    cuda_device.alloc(s.dev, sizeof y, NULL, &ya, s.d);
    cuda_device.write(s.dev, xa, x, sizeof x, s.d);
    eq_int(cuda_device.load_module(s.dev, twice, &m, s.d), DEVICE_OK, "a module");
    eq_int(
        cuda_device.load_module(s.dev, source_new(s.a, "k.ptx", ptx, sizeof ptx - 1), &other, s.d),
        DEVICE_OK, "and another beside it");
    const void *args[] = {&xa, &ya, &n};
    size_t sizes[] = {8, 8, 4};
    struct device_launch l = {"twice", {1, 1, 1}, {32, 1, 1}, {0}, 0, args, sizes, 3, .module = m};
    eq_int(q->prepare(s.dev, &l, s.d), DEVICE_OK, "a launch that the module knows");
    l.module = other;
    eq_int(q->prepare(s.dev, &l, s.d), DEVICE_REFUSED, "the other module has no such entry");
    l.module = m;
    ok(q->launch(s.dev, &l, s.d) == DEVICE_OK && q->wait(s.dev, NULL, s.d) == DEVICE_OK, "it runs");
    cuda_device.read(s.dev, y, ya, sizeof y, s.d);
    ok(y[0] == 2 && y[3] == 8, "and computes");

    eq_int(q->fill(s.dev, ya, 0, sizeof y, s.d), DEVICE_OK, "memory is filled");
    eq_int(q->record(s.dev, s.d), DEVICE_OK, "a recording");
    q->launch(s.dev, &l, s.d);
    q->copy(s.dev, xa, ya, sizeof x, s.d);
    eq_int(q->recorded(s.dev, &g, s.d), DEVICE_OK, "becomes a graph");
    cuda_device.read(s.dev, y, ya, sizeof y, s.d);
    ok(y[0] == 0 && y[3] == 0, "and nothing has run");
    q->mark(s.dev, false, s.d);
    q->replay(s.dev, g, s.d);
    q->replay(s.dev, g, s.d);
    q->mark(s.dev, true, s.d);
    eq_int(q->wait(s.dev, &seconds, s.d), DEVICE_OK, "two replays");
    ok(seconds > 50e-6 && seconds < 60e-6, "are timed");
    cuda_device.read(s.dev, x, xa, sizeof x, s.d);
    ok(x[0] == 4 && x[3] == 16, "and each did what was recorded");
    q->discard(s.dev, g);
    cuda_device.unload_module(s.dev, m);
    cuda_device.unload_module(s.dev, other);
    finish(&s);
}

static void test_queue_failures(void)
{
    const struct device_queue *q = cuda_device.queue;
    struct device_graph *g;
    machine("FAKE_CUDA_FAIL=cuStreamEndCapture:901", NULL);
    struct setup s = open_at(0);
    eq_int(q->record(s.dev, s.d), DEVICE_OK, "a recording");
    ok(q->recorded(s.dev, &g, s.d) == DEVICE_FAILED && !g, "that the driver gives up");
    eq_int(q->wait(s.dev, NULL, s.d), DEVICE_OK, "leaves the stream usable");
    finish(&s);
    machine("FAKE_CUDA_FAIL=cuGraphInstantiateWithFlags:2", NULL);
    s = open_at(0);
    q->record(s.dev, s.d);
    ok(q->recorded(s.dev, &g, s.d) == DEVICE_FAILED && !g, "a graph that cannot be made ready");
    eq_str(first_text(s.d),
           "cannot make a graph ready: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory", "is said");
    finish(&s);
}

static void test_sensors(void)
{
    struct device_sensors v;
    machine("FAKE_CUDA_DEVICES=1", NULL);
    struct setup s = open_at(0);
    ok(!cuda_device.queue->sensors(s.dev, &v), "sensors");
    ok(v.watts == 420.5 && v.limit_watts == 700 && v.celsius == 51, "power and temperature");
    ok(v.sm_mhz >= 1950 && v.max_sm_mhz == 1980 && v.memory_mhz == 2619, "clocks");
    ok(v.throttle == DEVICE_THROTTLE_POWER && strcmp(v.driver, "999.1") == 0,
       "why they are lower, and the driver");
    finish(&s);
    machine("FAKE_NVML=0", NULL);
    s = open_at(0);
    const char *why = cuda_device.queue->sensors(s.dev, &v);
    ok(why && strstr(why, "does not start") && v.watts == 0, "without NVML there are none");
    ok(cuda_device.queue->sensors(s.dev, &v) == why, "and it is not tried again");
    finish(&s);
}

int main(void)
{
    test_absent();
    test_info();
    test_launch();
    test_counts();
    test_attributes();
    test_limits();
    test_tensor_map();
    test_failures();
    test_statuses();
    test_refusals();
    test_lost_speed();
    test_queue();
    test_queue_failures();
    test_sensors();
    return tap_done();
}
