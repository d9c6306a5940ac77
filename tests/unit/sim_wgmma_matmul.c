/* Kernels that use wgmma, with small whole numbers, whose sums are exact in any order: as CUDA's
 * compiler has them (tests/ptx-run/wgmma.cu), in all four layouts, and with the sums of one product
 * as the factor of the next; and written by hand, with every swizzle.
 *
 *     sim_wgmma_matmul [--device=cuda]
 *     sim_wgmma_matmul --print            the PTX by hand
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

/* Launches with n pointers and the three sizes, unless they are NULL, and reads the first
 * buffer. */
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

/* ---- by hand --------------------------------------------------------------------------------- */

enum { HAND = 64, HAND_K = 192 }; /* HAND x HAND, one warpgroup */

/* Brings lines of a factor into shared memory at tile + place: along K of 64 rows, or along the
 * rows of the steps of K. */
static void hand_fetch(struct buf *b, const char *x, bool mn, unsigned span, unsigned place)
{
    const unsigned each = span / 16, deep = span / 2, wide = mn ? 8 : each;
    buf_printf(b, "    mov.u32 %%q, %%t;\n$fetch_%s:\n", x);
    buf_printf(b, "    div.u32 %%line, %%q, %u;\n    rem.u32 %%c, %%q, %u;\n", wide, wide);
    if (mn)
        buf_printf(b,
                   "    add.u32 %%i, %%line, %%k;\n    mul.lo.u32 %%i, %%i, %u;\n"
                   "    div.u32 %%to, %%c, %u;\n    mul.lo.u32 %%to, %%to, %u;\n"
                   "    rem.u32 %%j, %%c, %u;\n    mad.lo.u32 %%to, %%j, 16, %%to;\n",
                   2 * HAND, each, deep * span, each);
    else
        buf_printf(b,
                   "    mul.lo.u32 %%i, %%line, %u;\n    mad.lo.u32 %%i, %%k, 2, %%i;\n"
                   "    mul.lo.u32 %%to, %%c, 16;\n",
                   2 * HAND_K);
    buf_printf(b,
               "    mad.lo.u32 %%i, %%c, 16, %%i;\n    mad.lo.u32 %%to, %%line, %u, %%to;\n"
               "    shr.u32 %%j, %%to, 7;\n    and.b32 %%j, %%j, %u;\n    shl.b32 %%j, %%j, 4;\n"
               "    xor.b32 %%to, %%to, %%j;\n    add.u32 %%to, %%to, %%tile;\n"
               "    cvt.u64.u32 %%at, %%i;\n    add.u64 %%at, %%at, %%%s;\n"
               "    ld.global.v4.b32 {%%x0, %%x1, %%x2, %%x3}, [%%at];\n"
               "    st.shared.v4.b32 [%%to+%u], {%%x0, %%x1, %%x2, %%x3};\n"
               "    add.u32 %%q, %%q, 128;\n    setp.lt.u32 %%p, %%q, %u;\n"
               "    @%%p bra $fetch_%s;\n",
               span, each - 1, x, place, 4 * span, x);
}

/* The descriptor of the s-th 16 steps of K. */
static void hand_descriptor(struct buf *b, const char *d, bool mn, unsigned span, unsigned place,
                            unsigned s)
{
    const unsigned start = place + s * (mn ? 16 * span : 32), leading = mn ? span / 2 * span : 16;
    const uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : 3;
    const uint64_t rest = (uint64_t)(leading / 16) << 16 | (uint64_t)(8 * span / 16) << 32 |
                          mode << 62;
    buf_printf(b,
               "    add.u32 %%i, %%tile, %u;\n    shr.u32 %%i, %%i, 4;\n"
               "    cvt.u64.u32 %%%s, %%i;\n    or.b64 %%%s, %%%s, 0x%llx;\n",
               start, d, d, d, (unsigned long long)rest);
}

static void hand_sums(struct buf *b)
{
    buf_puts(b, "{");
    for (unsigned i = 0; i < HAND / 2; i++)
        buf_printf(b, "%s%%d%u", i ? ", " : "", i);
    buf_puts(b, "}");
}

static void hand_entry(struct buf *b, unsigned span, bool ta, bool tb)
{
    const unsigned tile = HAND * span;
    buf_printf(b,
               ".visible .entry hand%u%c%c(.param .u64 to, .param .u64 a, .param .u64 b)\n"
               ".maxntid 128, 1, 1\n{\n    .reg .pred %%p, %%adds;\n    .reg .f32 %%d<%d>;\n"
               "    .reg .b32 %%t, %%tile, %%k, %%q, %%line, %%c, %%i, %%j, %%to, %%x<4>;\n"
               "    .reg .b64 %%a, %%b, %%at, %%da, %%db;\n"
               "    .shared .align 1024 .b8 tiles[%u];\n"
               "    mov.u32 %%t, %%tid.x;\n    mov.u32 %%tile, tiles;\n"
               "    ld.param.u64 %%a, [a];\n    ld.param.u64 %%b, [b];\n"
               "    mov.u32 %%k, 0;\n$next:\n    bar.sync 0;\n",
               span, ta ? 'm' : 'k', tb ? 'n' : 'k', HAND / 2, 2 * tile);
    hand_fetch(b, "a", ta, span, 0);
    hand_fetch(b, "b", tb, span, tile);
    buf_puts(b, "    fence.proxy.async;\n    bar.sync 0;\n    wgmma.fence.sync.aligned;\n");
    for (unsigned s = 0; s < span / 32; s++) {
        hand_descriptor(b, "da", ta, span, 0, s);
        hand_descriptor(b, "db", tb, span, tile, s);
        buf_printf(b,
                   "    setp.ne.u32 %%adds, %%k, %d;\n"
                   "    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 ",
                   s ? -1 : 0);
        hand_sums(b);
        buf_printf(b, ", %%da, %%db, %%adds, 1, 1, %d, %d;\n", ta, tb);
    }
    buf_printf(b,
               "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n"
               "    add.u32 %%k, %%k, %u;\n    setp.lt.u32 %%p, %%k, %d;\n    @%%p bra $next;\n"
               "    ld.param.u64 %%at, [to];\n    shr.u32 %%line, %%t, 5;\n"
               "    mul.lo.u32 %%line, %%line, 16;\n    and.b32 %%c, %%t, 31;\n"
               "    shr.u32 %%i, %%c, 2;\n    add.u32 %%line, %%line, %%i;\n"
               "    and.b32 %%c, %%c, 3;\n    mul.lo.u32 %%c, %%c, 8;\n"
               "    mad.lo.u32 %%i, %%line, %d, %%c;\n    cvt.u64.u32 %%a, %%i;\n"
               "    add.u64 %%at, %%at, %%a;\n",
               span / 2, HAND_K, 4 * HAND);
    for (unsigned i = 0; i < HAND / 2; i++)
        buf_printf(b, "    st.global.f32 [%%at+%u], %%d%u;\n",
                   i / 4 * 32 + i % 2 * 4 + i / 2 % 2 * 8 * 4 * HAND, i);
    buf_puts(b, "    ret;\n}\n");
}

static const char *hand_text(struct arena *arena)
{
    struct buf b = buf_in(arena);
    buf_puts(&b, ".version 8.0\n.target sm_90a\n.address_size 64\n");
    for (unsigned span = 32; span <= 128; span *= 2)
        for (unsigned i = 0; i < 4; i++)
            hand_entry(&b, span, i & 1, i & 2);
    return buf_text(&b);
}

static bool hand(const struct on *on, unsigned span, bool ta, bool tb)
{
    struct arena *arena = arena_new();
    static float d[HAND * HAND];
    const uint16_t *a = matrix(arena, HAND, HAND_K, ta, a_at),
                   *b = matrix(arena, HAND_K, HAND, !tb, b_at);
    const uint64_t at[3] = {buffer(on, NULL, sizeof d), buffer(on, a, HAND * HAND_K * 2),
                            buffer(on, b, HAND_K * HAND * 2)};
    double seconds;
    bool fine = go(on, arena_printf(arena, "hand%u%c%c", span, ta ? 'm' : 'k', tb ? 'n' : 'k'),
                   (struct device_dim){1, 1, 1}, 128, 0, at, 3, NULL, d, sizeof d, &seconds);
    for (size_t i = 0; fine && i < HAND; i++)
        for (size_t j = 0; j < HAND; j++) {
            int sum = 0;
            for (size_t q = 0; q < HAND_K; q++)
                sum += a_at(i, q) * b_at(q, j);
            fine &= d[i * HAND + j] == (float)sum;
        }
    show(arena, on);
    for (int i = 0; i < 3; i++)
        on->ops->release(on->dev, at[i]);
    arena_free(arena);
    return fine;
}

static void check_hand(const struct on *on, const char *how)
{
    struct arena *arena = arena_new();
    const char *text = hand_text(arena);
    if (!ok(on->ops->load(on->dev, source_new(arena, "hand.ptx", text, strlen(text)), on->d) ==
                DEVICE_OK,
            "kernels by hand%s", how))
        show(arena, on);
    for (unsigned span = 32; span <= 128; span *= 2)
        for (unsigned i = 0; i < 4; i++)
            ok(hand(on, span, i & 1, i & 2), "span %u, A %s, B %s%s", span,
               i & 1 ? "M-major" : "K-major", i & 2 ? "N-major" : "K-major", how);
    arena_free(arena);
}

/* ---- runs ------------------------------------------------------------------------------------ */

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
    check_hand(on, how);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--device=cpu") == 0)
        argc = 1;
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
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        fputs(hand_text(arena), stdout);
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
    for (uint64_t seed = 0; !cuda && seed < 3; seed++) {
        const struct device_options options = {
            .threads = 2, .seed = seed, .check = seed ? 0 : DEVICE_CHECK_ALL};
        if (!open_on(arena, &on, options))
            return 1;
        check_all(&on, seed == 0   ? ", under all checks"
                       : seed == 1 ? ", at times drawn"
                                   : ", at other times");
        on.ops->close(on.dev);
    }
    arena_free(arena);
    return tap_done();
}
