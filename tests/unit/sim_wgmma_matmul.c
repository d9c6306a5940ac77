/* Kernels that use wgmma as CUDA's compiler has them (tests/ptx-run/wgmma.cu), with small whole numbers, whose sums are
 * exact in any order: in all four layouts, and with the sums of one product as the factor of the next.
 *
 *     sim_wgmma_matmul [--device=cuda]
 *     sim_wgmma_matmul --time[=N]         how long N x N x N takes (512)
 */
#include "sim.h"

#include <time.h>

static uint16_t f16_of(int v) /* |v| < 2048 */
{
    const float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    return v ? (uint16_t)((u >> 16 & 0x8000) | ((u >> 13 & 0x3ffff) - (112u << 10))) : 0;
}

static int a_at(size_t i, size_t k)
{
    return (int)((3 * i + 5 * k + i * k % 7) % 11) - 5;
}
static int b_at(size_t k, size_t j)
{
    return (int)((7 * k + 2 * j + k * j % 3) % 9) - 4;
}

/* rows x cols, or transposed */
static uint16_t *matrix(struct arena *arena, size_t rows, size_t cols, bool transposed,
                        int (*at)(size_t, size_t))
{
    uint16_t *m = ARENA_ARRAY(arena, rows * cols, uint16_t);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            m[transposed ? j * rows + i : i * cols + j] = f16_of(at(i, j));
    return m;
}

struct on {
    const struct device_ops *ops;
    struct device *dev;
    struct diags *d;
};

static uint64_t buffer(const struct on *on, const void *data, size_t bytes)
{
    const struct device_label label = {.name = "x", .type = ""};
    uint64_t at = 0;
    if (on->ops->alloc(on->dev, bytes, &label, &at, on->d) != DEVICE_OK ||
        (data && on->ops->write(on->dev, at, data, bytes, on->d) != DEVICE_OK))
        abort();
    return at;
}

/* Launches with n pointers and the three sizes, unless they are NULL, and reads the first buffer. */
static bool go(const struct on *on, const char *entry, struct device_dim grid, uint32_t threads,
               uint32_t shared, const uint64_t *at, size_t n, const int *size, void *to,
               size_t bytes, double *seconds)
{
    const void *arg[8];
    size_t arg_bytes[8], k = 0;
    for (; k < n; k++) {
        arg[k] = &at[k];
        arg_bytes[k] = 8;
    }
    for (size_t i = 0; size && i < 3; i++, k++) {
        arg[k] = &size[i];
        arg_bytes[k] = 4;
    }
    const struct device_launch l = {.entry = entry,
                                    .grid = grid,
                                    .block = {threads, 1, 1},
                                    .shared_bytes = shared,
                                    .args = arg,
                                    .arg_bytes = arg_bytes,
                                    .narg = k};
    struct device_stats stats = {0};
    const bool fine = on->ops->launch(on->dev, &l, 1, &stats, on->d) == DEVICE_OK &&
                      on->ops->read(on->dev, to, at[0], bytes, on->d) == DEVICE_OK;
    *seconds = stats.seconds;
    return fine;
}

static void show(struct arena *arena, const struct on *on)
{
    struct buf b = buf_in(arena);
    diags_format(on->d, "sim_wgmma_matmul", false, &b);
    if (*buf_text(&b))
        tap_note("%s", buf_text(&b));
}

static bool matmul(const struct on *on, const char *entry, int m, int n, int k, double *seconds)
{
    struct arena *arena = arena_new();
    const size_t M = (size_t)m, N = (size_t)n, K = (size_t)k;
    const bool ta = entry[7] == 'm', tb = entry[8] == 'n';
    const uint16_t *a = matrix(arena, M, K, ta, a_at), *b = matrix(arena, K, N, !tb, b_at);
    float *d = ARENA_ARRAY(arena, M * N, float);
    const uint64_t at[3] = {buffer(on, NULL, M * N * 4), buffer(on, a, M * K * 2),
                            buffer(on, b, K * N * 2)};
    const struct device_dim grid = {(uint32_t)n / 128, (uint32_t)m / 128, 1};
    bool fine =
        go(on, entry, grid, 256, 2 * 32768, at, 3, (const int[]){m, n, k}, d, M * N * 4, seconds);
    int *const sum = ARENA_ARRAY(arena, N, int);
    for (size_t i = 0; fine && i<M; i += M> 256 ? 37 : 1) {
        memset(sum, 0, N * sizeof *sum);
        for (size_t q = 0; q < K; q++)
            for (size_t j = 0; j < N; j++)
                sum[j] += a_at(i, q) * b_at(q, j);
        for (size_t j = 0; j < N; j++)
            fine &= d[i * N + j] == (float)sum[j];
    }
    show(arena, on);
    for (int i = 0; i < 3; i++)
        on->ops->release(on->dev, at[i]);
    arena_free(arena);
    return fine;
}

/* f16(a b) v */
static bool chain(const struct on *on)
{
    enum { M = 64, N = 128, K = 64 };
    struct arena *arena = arena_new();
    static int p[M][N];
    const uint16_t *a = matrix(arena, M, K, false, a_at), *b = matrix(arena, K, N, true, b_at),
                   *v = matrix(arena, N, N, false, b_at);
    static float d[M * N];
    const uint64_t at[4] = {buffer(on, NULL, sizeof d), buffer(on, a, M * K * 2),
                            buffer(on, b, K * N * 2), buffer(on, v, N * N * 2)};
    double seconds;
    bool fine = go(on, "chain", (struct device_dim){1, 1, 1}, 128, 2 * (M * K + K * N + N * N), at,
                   4, NULL, d, sizeof d, &seconds);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            p[i][j] = 0;
            for (size_t q = 0; q < K; q++)
                p[i][j] += a_at(i, q) * b_at(q, j);
            if (abs(p[i][j]) >= 2048)
                abort(); /* not exact in f16 */
        }
    for (size_t i = 0; fine && i < M; i++)
        for (size_t j = 0; j < N; j++) {
            int sum = 0;
            for (size_t q = 0; q < N; q++)
                sum += p[i][q] * b_at(q, j);
            fine &= d[i * N + j] == (float)sum;
        }
    show(arena, on);
    for (int i = 0; i < 4; i++)
        on->ops->release(on->dev, at[i]);
    arena_free(arena);
    return fine;
}

static bool open_on(struct arena *arena, struct on *on, struct device_options options)
{
    const char *dir = getenv("KAIO_SRCDIR");
    char path[4096];
    on->d = diags_new(arena);
    snprintf(path, sizeof path, "%s/tests/ptx-run/wgmma.ptx", dir ? dir : ".");
    const struct source *src = io_read(arena, on->d, path, 1 << 24);
    if (on->ops->count(on->d) < 1 ||
        on->ops->open(arena, 0, &options, &on->dev, on->d) != DEVICE_OK)
        return false;
    return src && on->ops->load(on->dev, src, on->d) == DEVICE_OK;
}

static void check_all(const struct on *on, const char *how)
{
    static const char *const entry[] = {"matmul_kk", "matmul_kn", "matmul_mk", "matmul_mn"};
    double seconds;
    for (int i = 0; i < 4; i++)
        ok(matmul(on, entry[i], 256, 128, 192, &seconds), "%s%s", entry[i], how);
    ok(chain(on), "a chain of products%s", how);
}

int main(int argc, char **argv)
{
    struct arena *arena = arena_new();
    struct on on = {.ops = &sim_device};
    if (argc > 1 && strncmp(argv[1], "--time", 6) == 0) {
        const int n = argv[1][6] ? atoi(argv[1] + 7) : 512;
        double seconds;
        if (n < 128 || n % 128 || !open_on(arena, &on, (struct device_options){.threads = 0}) ||
            !matmul(&on, "matmul_kk", n, n, n, &seconds))
            return 1;
        printf("%d^3: %.3f s, %.3g multiply-adds/s\n", n, seconds, (double)n * n * n / seconds);
        sim_device.close(on.dev);
        arena_free(arena);
        return 0;
    }
    const bool cuda = argc == 2 && strcmp(argv[1], "--device=cuda") == 0;
    if (argc > 1 && !cuda)
        return 2;
    if (cuda)
        on.ops = &cuda_device;
    if (!open_on(arena, &on, (struct device_options){.threads = 2}))
        return cuda ? 77 : 1;
    check_all(&on, "");
    on.ops->close(on.dev);
    for (uint64_t seed = 1; !cuda && seed < 4; seed++) {
        if (!open_on(arena, &on, (struct device_options){.threads = 2, .seed = seed}))
            return 1;
        check_all(&on, seed == 1 ? ", at times drawn" : ", at other times");
        on.ops->close(on.dev);
    }
    arena_free(arena);
    return tap_done();
}
