/* Matrix instructions: kernels from a compiler (tests/ptx-run/matrix.cu), whose sums are of small integers and so exact
 * in any order, unchecked and under all checks, which must find nothing. */
#include "sim.h"

enum { M = 128, N = 192, K = 96 };
static struct sim s;

/* small integers that differ from row to row and column to column */
static int element(unsigned i, unsigned j)
{
    return (int)((i * 7 + j * 13 + i * j % 11) % 9) - 4;
}

static uint16_t to_half(int v)
{
    const unsigned mag = (unsigned)(v < 0 ? -v : v);
    if (!mag)
        return 0;
    const unsigned e = 31 - (unsigned)__builtin_clz(mag);
    return (uint16_t)((v < 0 ? 0x8000 : 0) | (e + 15) << 10 | (mag << (10 - e) & 1023));
}

static bool run(const char *entry, unsigned m, unsigned n, unsigned k, uint64_t c, uint64_t a,
                uint64_t b)
{
    sim_arg(&s, c, 8);
    sim_arg(&s, a, 8);
    sim_arg(&s, b, 8);
    sim_arg(&s, n, 4);
    sim_arg(&s, k, 4);
    for (size_t i = 0; i < s.narg; i++)
        s.arg[i] = &s.value[i];
    const struct device_launch l = {.entry = entry,
                                    .grid = {n / 64, m / 64, 1},
                                    .block = {128, 1, 1},
                                    .args = s.arg,
                                    .arg_bytes = s.arg_bytes,
                                    .narg = s.narg};
    s.narg = 0;
    const bool fine = sim_device.launch(s.dev, &l, 1, &s.stats, s.diags) == DEVICE_OK;
    if (!fine)
        tap_note("%s", sim_errors(&s));
    return fine;
}

/* Element (i, j) of the product of K columns of A and rows of B. */
static int product(unsigned i, unsigned j)
{
    int sum = 0;
    for (unsigned q = 0; q < K; q++)
        sum += element(i, q) * element(q + 5, j);
    return sum;
}

static void f16(const char *how)
{
    static uint16_t a[M * K], b[K * N];
    static float c[M * N];
    for (unsigned i = 0; i < M * K; i++)
        a[i] = to_half(element(i / K, i % K));
    for (unsigned i = 0; i < K * N; i++)
        b[i] = to_half(element(i / N + 5, i % N));
    const uint64_t at_a = sim_buffer(&s, "a", "f16[m,k]", M * K, 2, a, true);
    const uint64_t at_b = sim_buffer(&s, "b", "f16[k,n]", K * N, 2, b, true);
    const uint64_t at_c = sim_buffer(&s, "c", "f32[m,n]", M * N, 4, NULL, false);
    const bool fine = run("matmul_f16", M, N, K, at_c, at_a, at_b);
    sim_fetch(&s, c, at_c, sizeof c);
    unsigned bad = 0;
    for (unsigned i = 0; i < M * N; i++)
        bad += c[i] != (float)product(i / N, i % N);
    ok(fine && !bad, "f16: cp.async in three stages, ldmatrix, mma, %s", how);
}

static void tf32(const char *how)
{
    static float a[M * K], b[K * N], c[M * N];
    for (unsigned i = 0; i < M * K; i++)
        a[i] = (float)element(i / K, i % K);
    for (unsigned i = 0; i < K * N; i++)
        b[i] = (float)element(i % K + 5, i / K);
    const uint64_t at_a = sim_buffer(&s, "a", "f32[m,k]", M * K, 4, a, true);
    const uint64_t at_b = sim_buffer(&s, "b", "f32[n,k]", K * N, 4, b, true);
    const uint64_t at_c = sim_buffer(&s, "c", "f32[m,n]", M * N, 4, NULL, false);
    const bool fine = run("matmul_tf32", M, N, K, at_c, at_a, at_b);
    sim_fetch(&s, c, at_c, sizeof c);
    unsigned bad = 0;
    for (unsigned i = 0; i < M * N; i++)
        bad += c[i] != (float)product(i / N, i % N);
    ok(fine && !bad, "tf32: two stages, %s", how);
}

static void s8(const char *how)
{
    static int8_t a[M * 2 * K], b[2 * K * N];
    static int32_t c[M * N];
    for (unsigned i = 0; i < M * 2 * K; i++)
        a[i] = (int8_t)(i % (2 * K) < K ? element(i / (2 * K), i % (2 * K)) : -128);
    for (unsigned i = 0; i < 2 * K * N; i++)
        b[i] = (int8_t)(i % (2 * K) < K ? element(i % (2 * K) + 5, i / (2 * K)) : -128);
    const uint64_t at_a = sim_buffer(&s, "a", "i8[m,k]", M * 2 * K, 1, a, true);
    const uint64_t at_b = sim_buffer(&s, "b", "i8[n,k]", 2 * K * N, 1, b, true);
    const uint64_t at_c = sim_buffer(&s, "c", "i32[m,n]", M * N, 4, NULL, false);
    const bool fine = run("matmul_s8", M, N, 2 * K, at_c, at_a, at_b);
    sim_fetch(&s, c, at_c, sizeof c);
    unsigned bad = 0;
    for (unsigned i = 0; i < M * N; i++)
        bad += c[i] != product(i / N, i % N) + K * 128 * 128;
    ok(fine && !bad, "s8: two stages, %s", how);
}

int main(void)
{
    const unsigned checks[] = {0, DEVICE_CHECK_ALL};
    for (int i = 0; i < 2; i++) {
        s = sim_begin((struct device_options){.threads = 2, .check = checks[i]});
        const char *dir = getenv("KAIO_SRCDIR"), *how = i ? "checked" : "unchecked";
        const char *path = arena_printf(s.arena, "%s/tests/ptx-run/matrix.ptx", dir ? dir : ".");
        const struct source *src = io_read(s.arena, s.diags, path, 1 << 20);
        if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
            fputs(sim_errors(&s), stderr);
            return 1;
        }
        f16(how);
        tf32(how);
        s8(how);
        sim_end(&s);
    }
    return tap_done();
}
