/* A libcuda.so for machines without a GPU: lib/cuda is tested against it (KAIO_CUDA_LIB). Device memory is the host's.
 *
 * The kernels it knows, by name:
 *     saxpy(u64 x, u64 y, f32 alpha, u32 n)   y[i] += alpha * x[i] for i < n, by as many threads as are launched
 *     copy(u64 x, u64 y, u32 bytes)           y = x
 *     overrun(u64 y, u32 bytes)               writes four bytes more than it should
 *     talk(u64 y, u32 limit, u64 messages)    what talk.ptx says, in blocks of 4 threads, the last thread first
 *     fault()                                 an illegal address
 *     idle(...)                               does nothing
 * The environment says how it behaves:
 *     FAKE_CUDA_LOG=FILE        a line for each call that does something
 *     FAKE_CUDA_FAIL=NAME:CODE  that function fails, from its first call on
 *     FAKE_CUDA_DEVICES=N (1)   FAKE_CUDA_SM=NN (80)   FAKE_CUDA_VERSION=N (13000)   FAKE_CUDA_MEMORY=BYTES (16 MiB)
 *     FAKE_CUDA_JIT_LOG=TEXT    the JIT refuses every module and says this
 */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 256, GUARD = 64 };

static struct block {
    unsigned char *p;
    size_t bytes;
} blocks[MAX_BLOCKS];
static size_t in_use;
static int pending; /* an asynchronous error, reported by the next synchronisation */
static int clock_ticks;

static long setting(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s && *s ? atol(s) : otherwise;
}

__attribute__((format(printf, 1, 2))) static void record(const char *fmt, ...)
{
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fputc('\n', f);
    fclose(f);
}

/* The error that the environment wants of this function. */
static int told_to_fail(const char *name)
{
    const char *s = getenv("FAKE_CUDA_FAIL");
    size_t n = strlen(name);
    return s && strncmp(s, name, n) == 0 && s[n] == ':' ? atoi(s + n + 1) : 0;
}
#define MAY_FAIL()                          \
    do {                                    \
        int code_ = told_to_fail(__func__); \
        if (code_)                          \
            return code_;                   \
    } while (0)

/* The function of this name in the ABI; declared, so that every compiler is content. */
#define API(name, ...)     \
    int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

API(cuInit, unsigned flags)
{
    MAY_FAIL();
    return flags == 0 ? 0 : 1;
}

API(cuDriverGetVersion, int *v)
{
    *v = (int)setting("FAKE_CUDA_VERSION", 13000);
    return 0;
}

API(cuGetErrorName, int e, const char **s)
{
    *s = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
    return *s ? 0 : 1;
}

API(cuGetErrorString, int e, const char **s)
{
    *s = e == 2 ? "out of memory" : e == 700 ? "an illegal memory access was encountered" : NULL;
    return *s ? 0 : 1;
}

API(cuDeviceGetCount, int *n)
{
    MAY_FAIL();
    *n = (int)setting("FAKE_CUDA_DEVICES", 1);
    return 0;
}

API(cuDeviceGet, int *device, int ordinal)
{
    *device = ordinal + 40; /* not the ordinal: they must not be mixed up */
    return 0;
}

API(cuDeviceGetName, char *name, int len, int device)
{
    snprintf(name, (size_t)len, "Fake GPU %d", device - 40);
    return 0;
}

API(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)setting("FAKE_CUDA_MEMORY", 16 << 20);
    return 0;
}

API(cuDeviceGetAttribute, int *v, int which, int device)
{
    long sm = setting("FAKE_CUDA_SM", 80);
    (void)device;
    *v = which == 75   ? (int)(sm / 10)
         : which == 76 ? (int)(sm % 10)
         : which == 97 ? 166912
         : which == 38 ? 1 << 20
         : which == 16 ? 4
         : which == 13 ? 1000000
                       : 0;
    return 0;
}

API(cuDevicePrimaryCtxRetain, void **context, int device)
{
    MAY_FAIL();
    record("retain %d", device);
    *context = blocks;
    return 0;
}

API(cuDevicePrimaryCtxRelease_v2, int device)
{
    record("release %d", device);
    return 0;
}

API(cuCtxSetCurrent, void *context)
{
    return context == blocks ? 0 : 201;
}

/* ---- modules: a copy of the text ---- */

API(cuModuleLoadDataEx, char **module, const char *image, unsigned n, int *option, void **value)
{
    const char *log = getenv("FAKE_CUDA_JIT_LOG");
    size_t room = 0;
    MAY_FAIL();
    for (unsigned i = 0; i < n; i++)
        if (option[i] == 6)
            room = (size_t)(uintptr_t)value[i];
    if (log) {
        for (unsigned i = 0; i < n; i++)
            if (option[i] == 5)
                snprintf(value[i], room, "%s", log);
        return 218;
    }
    record("load %zu bytes", strlen(image));
    *module = strdup(image);
    return *module ? 0 : 2;
}

API(cuModuleUnload, char *module)
{
    record("unload");
    free(module);
    return 0;
}

/* Where ".entry name(" stands. */
API(cuModuleGetFunction, const char **f, const char *module, const char *name)
{
    char text[256];
    MAY_FAIL();
    snprintf(text, sizeof text, ".entry %s(", name);
    *f = strstr(module, text);
    return *f ? 0 : 500;
}

API(cuFuncGetParamInfo, const char *f, size_t index, size_t *offset, size_t *size)
{
    const char *end = strchr(f, ')');
    f = strchr(f, '(');
    for (size_t i = 0;; i++) {
        f = strstr(f, ".param .");
        if (!f || f > end)
            return 1;
        f += 8;
        if (i == index) {
            *offset = 8 * i;
            *size = (size_t)atoi(f + 1) / 8;
            return 0;
        }
    }
}

API(cuFuncSetAttribute, const char *f, int which, int value)
{
    MAY_FAIL();
    (void)f;
    record("attribute %d = %d", which, value);
    return 0;
}

/* ---- memory, with bands around it that must stay as they are ---- */

API(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
    MAY_FAIL();
    if (bytes == 0)
        return 1;
    if (in_use + bytes > (size_t)setting("FAKE_CUDA_MEMORY", 16 << 20))
        return 2;
    for (size_t i = 0; i < MAX_BLOCKS; i++) {
        if (blocks[i].p)
            continue;
        unsigned char *p = aligned_alloc(256, (bytes + 2 * GUARD + 511) / 256 * 256);
        if (!p)
            return 2;
        memset(p, 0xa5, (bytes + 2 * GUARD + 511) / 256 * 256);
        blocks[i] = (struct block){p + 256, bytes};
        in_use += bytes;
        *address = (uint64_t)(uintptr_t)blocks[i].p;
        record("alloc %zu", bytes);
        return 0;
    }
    return 2;
}

API(cuMemFree_v2, uint64_t address)
{
    for (size_t i = 0; i < MAX_BLOCKS; i++)
        if (blocks[i].p && (uint64_t)(uintptr_t)blocks[i].p == address) {
            record("free %zu", blocks[i].bytes);
            in_use -= blocks[i].bytes;
            free(blocks[i].p - 256);
            blocks[i] = (struct block){0};
            return 0;
        }
    return 1;
}

/* The host's pointer to [address, address + bytes), or NULL unless it lies in one block. */
static unsigned char *host(uint64_t address, size_t bytes)
{
    for (size_t i = 0; i < MAX_BLOCKS; i++) {
        uint64_t base = (uint64_t)(uintptr_t)blocks[i].p;
        if (base && address >= base && address - base <= blocks[i].bytes &&
            bytes <= blocks[i].bytes - (address - base))
            return blocks[i].p + (address - base);
    }
    return NULL;
}

API(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes)
{
    unsigned char *p = host(to, bytes);
    MAY_FAIL();
    record("write %zu", bytes);
    if (!p)
        return 1;
    memcpy(p, from, bytes);
    return 0;
}

API(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes)
{
    unsigned char *p = host(from, bytes);
    MAY_FAIL();
    record("read %zu", bytes);
    if (!p || pending)
        return pending ? pending : 1;
    memcpy(to, p, bytes);
    return 0;
}

API(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    unsigned char *t = host(to, bytes), *f = host(from, bytes);
    (void)stream;
    MAY_FAIL();
    record("copy %zu", bytes);
    if (!t || !f)
        return 1;
    memmove(t, f, bytes);
    return 0;
}

/* ---- events: numbers from a clock that each record advances by a millisecond ---- */

API(cuEventCreate, int **event, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    *event = calloc(1, sizeof **event);
    return *event ? 0 : 2;
}

API(cuEventDestroy_v2, int *event)
{
    free(event);
    return 0;
}

API(cuEventRecord, int *event, void *stream)
{
    (void)stream;
    *event = ++clock_ticks;
    return 0;
}

API(cuEventSynchronize, int *event)
{
    (void)event;
    return pending;
}

API(cuEventElapsedTime, float *ms, int *start, int *end)
{
    *ms = (float)(*end - *start);
    return 0;
}

/* ---- launches ---- */

static int saxpy(uint64_t threads, void **args)
{
    uint64_t xa, ya;
    float alpha;
    uint32_t n;
    memcpy(&xa, args[0], 8);
    memcpy(&ya, args[1], 8);
    memcpy(&alpha, args[2], 4);
    memcpy(&n, args[3], 4);
    float *x = (float *)(void *)host(xa, (size_t)n * 4),
          *y = (float *)(void *)host(ya, (size_t)n * 4);
    if (!x || !y)
        return 700;
    for (uint64_t i = 0; i < n && i < threads; i++)
        y[i] = fmaf(alpha, x[i], y[i]);
    return 0;
}

static int copy(void **args)
{
    uint64_t xa, ya;
    uint32_t n;
    memcpy(&xa, args[0], 8);
    memcpy(&ya, args[1], 8);
    memcpy(&n, args[2], 4);
    unsigned char *x = host(xa, n), *y = host(ya, n);
    if (!x || !y)
        return 700;
    memmove(y, x, n);
    return 0;
}

/* Within the allocation when a guard band follows the buffer. */
static int overrun(void **args)
{
    uint64_t ya;
    uint32_t n;
    memcpy(&ya, args[0], 8);
    memcpy(&n, args[1], 4);
    unsigned char *y = host(ya, n + 4);
    if (!y)
        return 700;
    memset(y, 0, n + 4);
    return 0;
}

/* A record of the buffer for messages: two 64-bit counters of words (claimed, room), a third of what was lost, two 32-bit
 * words about assertions, then the records. */
static void say(unsigned char *buffer, uint32_t id, uint32_t thread, const uint32_t *arg,
                uint32_t narg)
{
    uint64_t count[3];
    memcpy(count, buffer, sizeof count);
    uint64_t at = count[0];
    count[0] += 3 + narg;
    if (count[0] > count[1]) {
        count[2]++;
    } else {
        uint32_t record[3] = {id << 10 | thread % 4, thread / 4, 0};
        memcpy(buffer + 32 + 4 * at, record, sizeof record);
        if (narg)
            memcpy(buffer + 32 + 4 * at + sizeof record, arg, 4 * narg);
    }
    memcpy(buffer, count, sizeof count);
}

static int talk(uint64_t threads, void **args)
{
    uint64_t ya, ma;
    uint32_t limit, failed[2] = {0, 0};
    memcpy(&ya, args[0], 8);
    memcpy(&limit, args[1], 4);
    memcpy(&ma, args[2], 8);
    unsigned char *y = host(ya, 4 * threads), *messages = host(ma, 32);
    if (!y || !messages)
        return 700;
    for (uint32_t i = (uint32_t)threads; i-- > 0;) {
        say(messages, 1, i, &i, 1);
        if (i < limit) {
            memcpy(y + 4 * i, &i, 4);
            continue;
        }
        say(messages, 2, i, NULL, 0);
        failed[0]++;
        failed[1] = 2;
    }
    memcpy(messages + 24, failed, sizeof failed);
    return 0;
}

static int run(const char *f, uint64_t threads, void **args)
{
    if (strncmp(f, ".entry saxpy(", 13) == 0)
        pending = saxpy(threads, args);
    else if (strncmp(f, ".entry copy(", 12) == 0)
        pending = copy(args);
    else if (strncmp(f, ".entry overrun(", 15) == 0)
        pending = overrun(args);
    else if (strncmp(f, ".entry talk(", 12) == 0)
        pending = talk(threads, args);
    else if (strncmp(f, ".entry fault(", 13) == 0)
        pending = 700;
    return 0;
}

API(cuLaunchKernel, const char *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
    unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
    (void)stream;
    (void)extra;
    MAY_FAIL();
    record("launch %u,%u,%u x %u,%u,%u shared %u", gx, gy, gz, bx, by, bz, shared);
    if (!gx || !gy || !gz || !bx || !by || !bz || (uint64_t)bx * by * bz > 1024)
        return 1;
    return run(f, (uint64_t)gx * gy * gz * bx * by * bz, args);
}

struct config {
    unsigned gx, gy, gz, bx, by, bz, shared;
    void *stream;
    struct {
        int id;
        char pad[4];
        unsigned x, y, z;
        char rest[52];
    } * attr;
    unsigned nattr;
};

API(cuLaunchKernelEx, const struct config *c, const char *f, void **args, void **extra)
{
    (void)extra;
    MAY_FAIL();
    record("launch %u,%u,%u x %u,%u,%u shared %u cluster %u,%u,%u", c->gx, c->gy, c->gz, c->bx,
           c->by, c->bz, c->shared, c->attr->x, c->attr->y, c->attr->z);
    return c->nattr == 1 && c->attr->id == 4 ? run(f, 0, args) : 1;
}
