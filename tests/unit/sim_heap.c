/* malloc() and free() of kernels (tests/ptx-run/heap.cu). */
#include "sim.h"

enum { N = 64 };
static struct sim s;
static const struct source *src;
static int32_t x[N];
static uint64_t xa;

static void begin(struct device_options options)
{
    s = sim_begin(options);
    const char *dir = getenv("KAIO_SRCDIR");
    const char *path = arena_printf(s.arena, "%s/tests/ptx-run/heap.ptx", dir ? dir : ".");
    src = io_read(s.arena, s.diags, path, 1 << 20);
    if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        exit(1);
    }
    memset(x, 0, sizeof x);
    xa = sim_buffer(&s, "x", "i32[64]", N, 4, x, false);
    sim_arg(&s, xa, 8);
}

static const char *end(void)
{
    static char said[1 << 14];
    snprintf(said, sizeof said, "%s", sim_errors(&s));
    sim_end(&s);
    return said;
}

static void works(unsigned check)
{
    int bad = 0;
    begin((struct device_options){.threads = 2, .check = check});
    sim_arg(&s, 20, 4);
    eq_int(sim_go(&s, "list", 2, 32), DEVICE_OK, "lists by new and delete (checks %u)", check);
    sim_fetch(&s, x, xa, sizeof x);
    for (int i = 0; i < N; i++)
        bad += x[i] != 190 * (i % 32) + 190;
    eq_int(bad, 0, "add up");
    eq_int(sim_device.finish(s.dev, s.diags), DEVICE_OK, "and nothing leaks");
    eq_str(end(), "", "nor is anything said");

    begin((struct device_options){.threads = 2, .check = check});
    sim_arg(&s, 300, 4);
    eq_int(sim_go(&s, "churn", 2, 32), DEVICE_OK, "76 MB through 8 MiB, piece by piece");
    sim_fetch(&s, x, xa, sizeof x);
    for (int i = 0; i < N; i++)
        bad += x[i] != 299 * 300 / 2;
    eq_int(bad, 0, "with their own values");
    eq_str(end(), "", "and without a finding");
}

static void size(uint64_t heap, uint64_t piece, int least, int most)
{
    int n = 0;
    begin((struct device_options){.heap_bytes = heap});
    sim_arg(&s, piece, 8);
    eq_int(sim_go(&s, "exhaust", 1, 32), DEVICE_OK, "malloc() until there is no more");
    sim_fetch(&s, x, xa, sizeof x);
    for (int i = 0; i < 32; i++)
        n += x[i];
    ok(n >= least && n <= most, "gives %d pieces of %d bytes", n, (int)piece);
    end();
}

static void launches(void)
{
    uint64_t p[N];
    begin((struct device_options){.check = DEVICE_CHECK_ALL});
    const uint64_t pa = sim_buffer(&s, "p", "u64[64]", N, 8, NULL, false);
    s.narg = 0;
    sim_arg(&s, pa, 8);
    eq_int(sim_go(&s, "take", 1, N), DEVICE_OK, "one launch takes");
    eq_int(sim_device.finish(s.dev, s.diags), DEVICE_FAULT, "what it has not freed");
    const struct diag *d = s.diags->list.v;
    ok(strstr(d->text, "kernel 'take': 512 bytes that malloc() gave here were never freed, 64 "
                       "pieces") &&
           d->span.src == src && !strcmp(d->kind, "leak"),
       "is a leak, of that call");
    sim_errors(&s);
    sim_fetch(&s, p, pa, sizeof p);
    int32_t at_5 = 0;
    eq_int(sim_device.read(s.dev, &at_5, p[5], 4, s.diags), DEVICE_OK, "the host reads it");
    ok(at_5 == 5 && p[5] % 16 == 0, "and finds what was written");
    sim_arg(&s, pa, 8);
    sim_arg(&s, xa, 8);
    eq_int(sim_go(&s, "give", 1, N), DEVICE_OK, "another launch gives it back");
    sim_fetch(&s, x, xa, sizeof x);
    eq_int(x[63], 63, "with what was in it");
    eq_int(sim_device.finish(s.dev, s.diags), DEVICE_OK, "and then nothing leaks");
    eq_int(sim_device.read(s.dev, &at_5, p[5], 4, s.diags), DEVICE_REFUSED, "it is no memory now");
    sim_errors(&s);
    sim_arg(&s, pa, 8);
    sim_arg(&s, xa, 8);
    eq_int(sim_go(&s, "give", 1, N), DEVICE_FAULT, "once more it is a use after free");
    const char *said = end();
    if (!ok(strstr(said, "load of 4 bytes at byte 0 of 8 bytes of malloc(), which was released") &&
                strstr(said, "they were taken in an earlier launch"),
            "which says where it was taken"))
        tap_note("%s", said);
}

/* A kernel that does wrong: its fault, the kind of it, and what is said. */
static void fault(const char *entry, unsigned check, int first, int second, const char *kind,
                  const char *text, const char *more)
{
    begin((struct device_options){.check = check});
    if (second >= 0) {
        sim_arg(&s, (uint32_t)first, 4);
        if (second)
            sim_arg(&s, (uint32_t)second, 4);
    }
    eq_int(sim_go(&s, entry, 1, 1), DEVICE_FAULT, "%s(%d, %d)", entry, first, second);
    eq_str(s.diags->list.v[0].kind, kind, "is of its kind");
    const char *said = end();
    if (!ok(strstr(said, text) && strstr(said, more), "'%s' is said", text))
        tap_note("%s", said);
}

int main(void)
{
    works(0);
    works(DEVICE_CHECK_ALL);
    size(0, 64 << 10, 120, 128);
    size(1 << 20, 64 << 10, 15, 16);
    size(0, 9 << 20, 0, 0);
    size(32 << 20, 9 << 20, 3, 3);
    launches();
    fault("over", 0, 10, 0, "out-of-bounds", "load of 4 bytes at byte 40 of 40 bytes of malloc()",
          "they were taken by block (0,0,0), thread (0,0,0)");
    fault("over", 0, -1, 0, "out-of-bounds", "of the heap, where malloc() has given nothing", "");
    fault("after", 0, 0, -1, "use-after-free",
          "byte 12 of 40 bytes of malloc(), which was released",
          "they were freed by block (0,0,0), thread (0,0,0)");
    fault("wrong", 0, 0, 2, "bad-free", "free() of 40 bytes that were freed already",
          "they were freed by");
    fault("wrong", 0, 16, 1, "bad-free", "free() of byte 16 of 40 bytes of malloc()", "");
    fault("wrong", 0, -1, 1, "bad-free", "which malloc() has not given", "");
    fault("undefined", DEVICE_CHECK_INIT, 0, -1, "uninitialised",
          "byte 12 of 40 bytes of malloc(), where nothing was written", "");
    return tap_done();
}
