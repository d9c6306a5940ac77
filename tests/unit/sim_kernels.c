/* Ordinary kernels from a compiler (tests/ptx-run/kernels.cu) against the same computations in
 * C. */
#include <config.h>

#include "sim.h"

static struct sim begin(unsigned threads)
{
    struct sim s = sim_begin((struct device_options){.threads = threads});
    const char *dir = getenv("KAIO_SRCDIR");
    const char *path = arena_printf(s.arena, "%s/tests/ptx-run/kernels.ptx", dir ? dir : ".");
    const struct source *src = io_read(s.arena, s.diags, path, 1 << 20);
    if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        abort();
    }
    return s;
}

static void saxpy(unsigned threads)
{
    enum { N = 100003 };
    static float x[N], y[N], got[N];
    struct sim s = begin(threads);
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 1000) * 0.37f;
        y[i] = (float)(i % 77) - 30;
    }
    const uint64_t dx = sim_buffer(&s, "x", "f32[n]", N, 4, x, true);
    const uint64_t dy = sim_buffer(&s, "y", "f32[n]", N, 4, y, false);
    sim_arg(&s, N, 4);
    sim_arg(&s, 0x40200000, 4); /* 2.5f */
    sim_arg(&s, dx, 8);
    sim_arg(&s, dy, 8);
    ok(sim_go(&s, "saxpy", (N + 255) / 256, 256) == DEVICE_OK, "saxpy runs");
    sim_fetch(&s, got, dy, sizeof got);
    int bad = 0;
    for (int i = 0; i < N; i++)
        bad += got[i] != fmaf(2.5f, x[i], y[i]);
    eq_int(bad, 0, "saxpy with %u threads", threads);
    /* 20 instructions a thread, 11 of them where i >= n */
    eq_int(s.stats.thread_instructions, (uint64_t)N * 20 + (391 * 256 - N) * 11,
           "thread-instructions are counted");
    sim_end(&s);
}

static void matmul(void)
{
    enum { N = 50 };
    static float a[N * N], b[N * N], got[N * N];
    struct sim s = begin(2);
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i % 13) * 0.1f;
        b[i] = (float)(i % 7) - 3.3f;
    }
    sim_arg(&s, N, 4);
    sim_arg(&s, sim_buffer(&s, "a", "f32[n,n]", N * N, 4, a, true), 8);
    sim_arg(&s, sim_buffer(&s, "b", "f32[n,n]", N * N, 4, b, true), 8);
    const uint64_t c = sim_buffer(&s, "c", "f32[n,n]", N * N, 4, NULL, false);
    sim_arg(&s, c, 8);
    for (size_t i = 0; i < s.narg; i++)
        s.arg[i] = &s.value[i];
    const struct device_launch l = {"matmul", {4, 4, 1}, {16, 16, 1}, {0, 0, 0},
                                    0,        s.arg,     s.arg_bytes, 4};
    ok(sim_device.launch(s.dev, &l, 1, &s.stats, s.diags) == DEVICE_OK, "matmul runs");
    sim_fetch(&s, got, c, sizeof got);
    int bad = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float want = 0;
            for (int k = 0; k < N; k++)
                want = fmaf(a[i * N + k], b[k * N + j], want);
            bad += got[i * N + j] != want;
        }
    eq_int(bad, 0, "matmul on a two-dimensional grid");
    sim_end(&s);
}

static void collatz(void)
{
    enum { N = 3000 };
    static uint32_t got[N];
    struct sim s = begin(1);
    const uint64_t d = sim_buffer(&s, "len", "u32[n]", N, 4, NULL, false);
    sim_arg(&s, N, 4);
    sim_arg(&s, d, 8);
    ok(sim_go(&s, "collatz", (N + 127) / 128, 128) == DEVICE_OK, "collatz runs");
    sim_fetch(&s, got, d, sizeof got);
    int bad = 0;
    for (unsigned i = 0; i < N; i++) {
        uint32_t c = 0;
        for (uint64_t v = i + 1; v != 1; v = v & 1 ? 3 * v + 1 : v >> 1)
            c++;
        bad += c != got[i];
    }
    eq_int(bad, 0, "lanes leave a loop at different times (collatz)");
    sim_end(&s);
}

static unsigned escape(double cx, double cy)
{
    double x = 0, y = 0;
    unsigned k = 0;
    while (k < 500 && fma(x, x, y * y) < 4) {
        const double t = fma(x, x, -(y * y)) + cx;
        y = fma(2 * x, y, cy);
        x = t;
        k++;
    }
    return k;
}

static void mandelbrot(void)
{
    enum { W = 60, H = 40 };
    static uint32_t got[W * H];
    struct sim s = begin(2);
    const uint64_t d = sim_buffer(&s, "out", "u32[h,w]", W * H, 4, NULL, false);
    sim_arg(&s, W, 4);
    sim_arg(&s, H, 4);
    sim_arg(&s, d, 8);
    ok(sim_go(&s, "mandelbrot", (W * H + 127) / 128, 128) == DEVICE_OK, "mandelbrot runs");
    sim_fetch(&s, got, d, sizeof got);
    int bad = 0;
    for (int i = 0; i < W * H; i++)
        bad += got[i] != escape(3.0 * (i % W) / W - 2.0, 3.0 * (i / W) / H - 1.5);
    eq_int(bad, 0, "mandelbrot in double precision");
    sim_end(&s);
}

static void block_sum(void)
{
    enum { N = 1000, B = 128, G = (N + B - 1) / B };
    static float x[N], got[G];
    struct sim s = begin(2);
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 17);
    const uint64_t d = sim_buffer(&s, "s", "f32[8]", G, 4, NULL, false);
    sim_arg(&s, N, 4);
    sim_arg(&s, sim_buffer(&s, "x", "f32[n]", N, 4, x, true), 8);
    sim_arg(&s, d, 8);
    if (!ok(sim_go(&s, "block_sum", G, B) == DEVICE_OK, "block_sum runs"))
        tap_note("%s", sim_errors(&s));
    sim_fetch(&s, got, d, sizeof got);
    int bad = 0;
    for (int b = 0; b < G; b++) {
        float want = 0;
        for (int i = b * B; i < N && i < (b + 1) * B; i++)
            want += x[i];
        bad += got[b] != want;
    }
    eq_int(bad, 0, "shared memory, a barrier and shuffles");
    sim_end(&s);
}

static void digits(void)
{
    enum { N = 500 };
    static uint32_t x[N], got[N];
    struct sim s = begin(2);
    for (unsigned i = 0; i < N; i++)
        x[i] = i * 2654435761u;
    const uint64_t d = sim_buffer(&s, "most", "u32[n]", N, 4, NULL, false);
    sim_arg(&s, N, 4);
    sim_arg(&s, sim_buffer(&s, "x", "u32[n]", N, 4, x, true), 8);
    sim_arg(&s, d, 8);
    if (!ok(sim_go(&s, "digits", (N + 127) / 128, 128) == DEVICE_OK, "digits runs"))
        tap_note("%s", sim_errors(&s));
    sim_fetch(&s, got, d, sizeof got);
    int bad = 0;
    for (int i = 0; i < N; i++) {
        unsigned count[10] = {0}, best = 0;
        for (unsigned v = x[i]; v; v /= 10)
            count[v % 10]++;
        for (unsigned k = 1; k < 10; k++)
            best = count[k] > count[best] ? k : best;
        bad += got[i] != best;
    }
    eq_int(bad, 0, "an array in local memory");
    sim_end(&s);
}

static void waiting(void)
{
    struct sim s = begin(2);
    uint32_t zero[64] = {0}, got[64];
    const uint64_t a = sim_buffer(&s, "a", "u32[64]", 64, 4, zero, false);
    const uint64_t b = sim_buffer(&s, "b", "u32[64]", 64, 4, zero, false);
    sim_arg(&s, a, 8);
    sim_arg(&s, b, 8);
    ok(sim_go(&s, "turns", 1, 96) == DEVICE_OK, "lanes and warps that wait for each other get on");
    sim_fetch(&s, got, b, 4);
    uint32_t want = 0;
    for (uint32_t i = 0; i < 96; i++)
        want = want * 3 + i;
    eq_int(got[0], want, "... in the order that they wait for");

    sim_device.write(s.dev, a, zero, sizeof zero, s.diags);
    sim_device.write(s.dev, b, zero, sizeof zero, s.diags);
    sim_arg(&s, a, 8);
    sim_arg(&s, b, 8);
    ok(sim_go(&s, "lock", 3, 64) == DEVICE_OK, "a lock between lanes of a warp");
    sim_fetch(&s, got, b, 4);
    eq_int(got[0], 192, "... lets each in once");

    sim_arg(&s, a, 8);
    sim_arg(&s, b, 8);
    ok(sim_go(&s, "blocks_wait", 40, 1) == DEVICE_OK,
       "a block may wait for one with a higher index");
    sim_fetch(&s, got, b, sizeof got);
    int bad = 0;
    for (uint32_t i = 0; i < 40; i++)
        bad += got[i] != i;
    eq_int(bad, 0, "... and all of them finish");
    sim_end(&s);
}

int main(void)
{
    for (unsigned threads = 1; threads <= 3; threads++)
        saxpy(threads);
    matmul();
    collatz();
    mandelbrot();
    block_sum();
    digits();
    waiting();
    return tap_done();
}
