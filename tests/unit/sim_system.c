/* printf() and assert() of kernels (tests/ptx-run/system.cu). */
#include "sim.h"

enum { THREADS = 64, BLOCKS = 2, N = THREADS * BLOCKS };
static struct sim s;
static uint32_t x[N];
static char said[1 << 16];
static size_t said_bytes;

static void hear(void *ctx, const char *text, size_t n)
{
    (void)ctx;
    if (said_bytes + n < sizeof said)
        memcpy(said + said_bytes, text, n);
    said_bytes += n;
}

static enum device_status run(const char *entry)
{
    const uint64_t at = sim_buffer(&s, "x", "u32[128]", N, 4, x, false);
    memset(said, 0, sizeof said);
    said_bytes = 0;
    sim_arg(&s, at, 8);
    const enum device_status status = sim_go(&s, entry, BLOCKS, THREADS);
    sim_fetch(&s, x, at, sizeof x);
    sim_device.release(s.dev, at);
    return status;
}

static void talk(void)
{
    char want[4096];
    size_t n = 0;
    int bad = 0;
    for (unsigned i = 3; i < N; i += 37)
        n += (size_t)snprintf(want + n, sizeof want - n,
                              "%u: %5.2f|abc     |%08x|%lld|%c|%e|0x10|%%|%+d|lon|%6d|%u\n%s", i,
                              i / 4.0, i * 77777u, (long long)i << 40, 'A' + (int)(i % 26),
                              (double)((float)i * 1e-3f), (int)i, -(int)i, i,
                              i == 3 ? "no more\n" : ""); /* thread 5, in the first warp */
    memset(x, 0, sizeof x);
    eq_int(run("talk"), DEVICE_OK, "printf() is called");
    said[said_bytes] = '\0';
    eq_str(said, want, "... and its text comes in the order of the blocks");
    for (unsigned i = 0; i < N; i++)
        bad += x[i] != (i % 37 == 3 ? 13u : 0u);
    eq_int(bad, 0, "... and returns how many arguments it had");
}

int main(void)
{
    s = sim_begin((struct device_options){.threads = 2, .print = hear});
    const char *dir = getenv("KAIO_SRCDIR");
    const char *path = arena_printf(s.arena, "%s/tests/ptx-run/system.ptx", dir ? dir : ".");
    const struct source *src = io_read(s.arena, s.diags, path, 1 << 20);
    if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        return 1;
    }
    talk();
    for (unsigned i = 0; i < N; i++)
        x[i] = i == 7 || i == 9 ? 50 : i % 50;
    eq_int(run("check"), DEVICE_FAULT, "an assertion that does not hold");
    const char *errors = sim_errors(&s);
    ok(strstr(errors, "kernel 'check': assertion 'x[threadIdx.x] < 50 && \"too large\"' failed at "
                      "system.cu:") != NULL,
       "... is told");
    ok(strstr(errors, "block (0,0,0), thread (7,0,0)") != NULL, "... of its thread");
    for (unsigned i = 0; i < N; i++)
        x[i] = i % 50;
    eq_int(run("check"), DEVICE_OK, "assertions that hold");
    eq_int(run("wild"), DEVICE_FAULT, "a format that is nowhere");
    ok(strstr(sim_errors(&s), "load of 1 bytes at ") != NULL, "... is a fault");
    x[0] = 200;
    eq_int(run("much"), DEVICE_OK, "more text than is kept");
    ok(said_bytes > 15 << 20 && said_bytes <= 16 << 20, "... is cut");
    ok(strstr(sim_errors(&s), "calls of printf in kernel 'much' are not shown") != NULL,
       "... with a warning");
    sim_end(&s);
    return tap_done();
}
