/* The public API, as a program that embeds libkaio uses it. */
#include <config.h>

#include "kaio.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static const char saxpy[] = "kernel: saxpy\n"
                            "params:\n"
                            "  x: in f32[n]\n"
                            "  y: inout f32[n]\n"
                            "  alpha: f32 = 2\n"
                            "compute: |\n"
                            "  y[i] = alpha * x[i] + y[i]\n";

enum { N = 1000 };

static void emit_run_verify(struct kaio *k)
{
    float x[N], y[N], before[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = before[i] = (float)(i % 7);
    }
    char *ptx = NULL;
    size_t len = 0;
    eq_int(kaio_emit(k, "saxpy.yaml", saxpy, strlen(saxpy), NULL, &ptx, &len), KAIO_OK, "emits");
    ok(ptx && strlen(ptx) == len && strstr(ptx, ".visible .entry saxpy"), "gives the PTX");
    struct kaio_arg args[] = {
        {.name = "x", .data = x, .bytes = sizeof x},
        {.name = "y", .data = y, .bytes = sizeof y},
        {.name = "alpha", .value = "3"},
        {.name = "n", .value = "1000"},
    };
    eq_int(kaio_run(k, "cpu", ptx, len, args, 4), KAIO_OK, "runs");
    eq_str(kaio_messages(k), "", "says nothing");
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += y[i] != 3 * x[i] + before[i];
    eq_int(wrong, 0, "computes");

    args[1] = (struct kaio_arg){.name = "y", .data = before, .bytes = sizeof before, .result = y};
    eq_int(kaio_verify(k, "saxpy.yaml", saxpy, strlen(saxpy), args, 4), KAIO_OK, "verifies");
    y[123] += 1;
    eq_int(kaio_verify(k, "saxpy.yaml", saxpy, strlen(saxpy), args, 4), KAIO_MISMATCH,
           "finds a wrong element");
    ok(strstr(kaio_messages(k), "123") != NULL, "names it");

    args[1] = (struct kaio_arg){.name = "y", .data = y, .bytes = sizeof y - 4};
    memcpy(y, before, sizeof y);
    eq_int(kaio_run(k, "cpu", ptx, len, args, 4), KAIO_BAD_INPUT, "refuses too few bytes");
    ok(memcmp(y, before, sizeof y) == 0, "and leaves them alone");
    eq_int(kaio_run(k, "tpu", ptx, len, args, 4), KAIO_BAD_INPUT, "refuses an unknown device");
    eq_int(kaio_run(k, "cpu", ptx, len / 2, args, 4), KAIO_BAD_INPUT, "refuses half a module");
    free(ptx);
}

static void types(void)
{
    struct kaio *k = kaio_new();
    static const char scale[] = "kernel: scale\n"
                                "types: {T: [f16, f32]}\n"
                                "params:\n"
                                "  x: in T[n]\n"
                                "  y: out T[n]\n"
                                "compute: |\n"
                                "  y[i] = 3 * x[i]\n";
    char *ptx;
    size_t len;
    eq_int(kaio_emit(k, "s", scale, strlen(scale), NULL, &ptx, &len), KAIO_OK, "emits");
    ok(ptx && strstr(ptx, "y: out f16[n]") != NULL, "for the first type");
    free(ptx);
    eq_int(kaio_define_type(k, "T", "float"), KAIO_OK, "takes a type");
    eq_int(kaio_emit(k, "s", scale, strlen(scale), NULL, &ptx, &len), KAIO_OK, "emits");
    ok(ptx && strstr(ptx, "y: out f32[n]") != NULL, "for the type that was chosen");
    free(ptx);
    float x[2] = {1, 2}, y[2] = {3, 6};
    struct kaio_arg args[] = {{.name = "x", .data = x, .bytes = sizeof x},
                              {.name = "y", .data = y, .bytes = sizeof y},
                              {.name = "n", .value = "2"}};
    eq_int(kaio_verify(k, "s", scale, strlen(scale), args, 3), KAIO_OK, "verifies that type");
    eq_int(kaio_define_type(k, "T", "f33"), KAIO_BAD_INPUT, "refuses what is no type");
    ok(strstr(kaio_messages(k), "name of a type") != NULL, "and says so");
    eq_int(kaio_define_type(k, "T", "f64"), KAIO_OK, "takes a type");
    eq_int(kaio_emit(k, "s", scale, strlen(scale), NULL, &ptx, &len), KAIO_BAD_INPUT,
           "refuses one that the spec does not list");
    ok(strstr(kaio_messages(k), "'T' is one of f16, f32, not f64") != NULL, "and names the list");
    kaio_free(k);
}

static void messages(struct kaio *k)
{
    char *ptx;
    size_t len;
    static const char bad[] = "kernel: k\nparams:\n  y: out f32[n]\ncompute: |\n  y[i] = z[i]\n";
    eq_int(kaio_emit(k, "bad.yaml", bad, strlen(bad), "sm_80", &ptx, &len), KAIO_BAD_INPUT,
           "refuses a bad spec");
    ok(strstr(kaio_messages(k), "bad.yaml:5:10: error:") != NULL, "with the position");
    ok(ptx == NULL && len == 0, "and gives nothing");
    eq_int(kaio_emit(k, "s", saxpy, strlen(saxpy), "sm_1", &ptx, &len), KAIO_BAD_INPUT,
           "refuses an unknown target");
    eq_int(kaio_define(k, "n", 64), KAIO_OK, "takes a definition");
    eq_int(kaio_emit(k, "s", saxpy, strlen(saxpy), "sm_80", &ptx, &len), KAIO_OK, "emits");
    ok(ptx && strstr(ptx, "dims: {n: 64}") != NULL, "for the size that was defined");
    free(ptx);
}

/* A program's contract goes behind those of the kernels that it calls. */
static void programs(struct kaio *k)
{
    static const char add[] = "kernel: add\nparams:\n  x: in f32[n]\n  y: inout f32[n]\n"
                              "grid: 1\nblock: 32\n"
                              "body: |\n  u32 i = threadIdx.x;\n  if (i < n) y[i] += x[i];\n"
                              "  if (i == 0) print(\"%g,\", y[0]);\n";
    static const char contract[] =
        "//@ ---\n//@ kaio: 1\n//@ program: p\n//@ params:\n"
        "//@   x: in f32[n]\n//@   y: inout f32[n]\n//@   s: state f32[n]\n"
        "//@ steps: |\n//@   repeat 3 { add(x: x, y: s) }\n"
        "//@   add(x: s, y: y)\n";
    char *ptx = NULL;
    size_t len = 0;
    float x[2] = {1, 2}, y[2] = {10, 10};
    struct kaio_arg args[] = {{.name = "x", .data = x, .bytes = sizeof x},
                              {.name = "y", .data = y, .bytes = sizeof y},
                              {.name = "n", .value = "2"}};
    eq_int(kaio_emit(k, "add.yaml", add, strlen(add), NULL, &ptx, &len), KAIO_OK, "emits");
    char *all = malloc(len + sizeof contract), *end = ptx;
    while (end && strncmp(end, "//@", 3) == 0)
        end = strchr(end, '\n') + 1;
    const size_t head = (size_t)(end - ptx), more = strlen(contract);
    memcpy(all, ptx, head);
    memcpy(all + head, contract, more);
    memcpy(all + head + more, end, len - head);
    eq_int(kaio_run(k, "cpu", all, len + more, args, 3), KAIO_OK, "a program runs");
    ok(y[0] == 13 && y[1] == 16, "computes");
    eq_str(kaio_printed(k), "1,2,3,13,", "and its kernels speak in their order");
    free(all);
    free(ptx);
}

static void printing(struct kaio *k)
{
    static const char talk[] =
        "kernel: talk\nparams:\n  limit: u32\n  y: out u32[n]\nblock: 4\ngrid: ceil_div(n, 4)\n"
        "body: |\n  u32 i = blockIdx.x * 4 + threadIdx.x;\n"
        "  print(\"%u,\", i);\n  assert(i < limit);\n  y[0] = 1;\n";
    char *ptx = NULL;
    size_t len = 0;
    unsigned y = 0;
    struct kaio_arg args[] = {{.name = "y", .data = &y, .bytes = sizeof y},
                              {.name = "limit", .value = "4"},
                              {.name = "n", .value = "1"}};
    eq_int(kaio_emit(k, "talk.yaml", talk, strlen(talk), NULL, &ptx, &len), KAIO_OK, "emits");
    eq_str(kaio_printed(k), "", "nothing is printed yet");
    eq_int(kaio_run(k, "cpu", ptx, len, args, 3), KAIO_OK, "a kernel that prints runs");
    eq_str(kaio_printed(k), "0,1,2,3,", "and this is what it says");
    args[1].value = "2";
    eq_int(kaio_run(k, "cpu", ptx, len, args, 3), KAIO_FAILED,
           "an assertion that does not hold fails");
    eq_str(kaio_printed(k), "0,1,2,3,", "after what was printed");
    ok(strstr(kaio_messages(k),
              "talk.yaml:10: assertion failed: i < limit block (0,0,0) thread (2,0,0)") != NULL,
       "and is named");
    free(ptx);
}

#if defined __SANITIZE_ADDRESS__
#define OWN_MALLOC 0 /* the sanitizer has one */
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC
static size_t refuse = SIZE_MAX; /* this many bytes and more there are not */

void *__libc_malloc(size_t n);
void *malloc(size_t n)
{
    return n >= refuse ? NULL : __libc_malloc(n);
}

/* An arena's memory is from here; the simulator's buffers are too, with more around them. */
void *__libc_calloc(size_t n, size_t size);
void *calloc(size_t n, size_t size)
{
    enum { AROUND = 256 };
    return n * size >= refuse && n * size - refuse < AROUND ? NULL : __libc_calloc(n, size);
}

/* Bytes that this thread has allocated and not freed. (What the process has mapped tells little: a
 * thread that allocates for the first time may map 64 MiB for itself.) */
static size_t in_use(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Memory that runs out when the results are fetched: after the outputs were opened, with the device
 * in use. */
static void no_memory(struct kaio *k)
{
    static const char fill[] = "kernel: fill\nparams:\n  y: out f32[n]\ncompute: y[i] = 1\n";
    enum { BYTES = 8 << 20, TIMES = 8 };
    char dir[] = "/tmp/kaio_api.XXXXXX", path[64];
    char *ptx = NULL;
    size_t len = 0;
    ok(mkdtemp(dir) != NULL, "a directory");
    snprintf(path, sizeof path, "%s/y.npy", dir);
    eq_int(kaio_emit(k, "fill", fill, strlen(fill), NULL, &ptx, &len), KAIO_OK, "emits");
    struct kaio_arg args[] = {{.name = "y", .value = path}, {.name = "n", .value = "2097152"}};
    size_t before = 0;
    int refused = 0;
    for (int i = 0; i <= TIMES; i++) {
        if (i == 1)
            before = in_use();
        refuse = BYTES;
        refused += kaio_run(k, "cpu", ptx, len, args, 2) == KAIO_BAD_INPUT &&
                   strstr(kaio_messages(k), "not enough memory") != NULL;
        refuse = SIZE_MAX;
    }
    eq_int(refused, TIMES + 1, "memory that runs out in a run is told");
    ok(in_use() < before + BYTES, "the device is closed");
    ok(rmdir(dir) == 0 && mkdir(dir, 0700) == 0, "no unfinished output is left");
    eq_int(kaio_run(k, "cpu", ptx, len, args, 2), KAIO_OK, "and the next run is well");
    eq_int(access(path, R_OK), 0, "and writes its output");
    unlink(path);
    rmdir(dir);
    free(ptx);
}
#else
static void no_memory(struct kaio *k)
{
    (void)k;
}
#endif

int main(void)
{
    struct kaio *k = kaio_new();
    emit_run_verify(k);
    printing(k);
    programs(k);
    no_memory(k);
    types();
    messages(k);
    kaio_free(k);
    kaio_free(NULL);
    return tap_done();
}
