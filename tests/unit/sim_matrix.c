/* Matrix instructions: ldmatrix and its like by the definitions of the PTX ISA, what they ask of a
 * warp, undefined values that pass through them; and kernels from a compiler
 * (tests/ptx-run/matrix.cu), whose sums are of small integers and so exact in any order, unchecked
 * and under all checks, which must find nothing. */
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

/* ---- matrices of 8 x 8 ----------------------------------------------------------------------- */

#define HEAD                                                                         \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                                \
    ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n"                           \
    "    .reg .b32 %r<40>;\n    .reg .f32 %f<8>;\n    .reg .b64 %rd<8>;\n"           \
    "    .reg .pred %p<4>;\n    .shared .align 16 .b32 tile[128];\n"                 \
    "    ld.param.u64 %rd1, [x];\n    ld.param.u64 %rd2, [y];\n"                     \
    "    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, tile;\n"                             \
    "    mad.wide.u32 %rd3, %r1, 16, %rd1;\n    mad.wide.u32 %rd4, %r1, 16, %rd2;\n" \
    "    mad.lo.u32 %r3, %r1, 16, %r2;\n    xor.b32 %r4, %r1, 5;\n"                  \
    "    mad.lo.u32 %r4, %r4, 16, %r2;\n"                                            \
    "    ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd3];\n"                       \
    "    mov.b32 %r14, 0;\n    mov.b32 %r15, 0;\n    mov.b32 %r16, 0;\n"             \
    "    mov.b32 %r17, 0;\n    setp.lt.u32 %p1, %r1, 16;\n    setp.lt.u32 %p2, %r1, 99;\n"
/* %r3, %r4: row i of tile, and row i ^ 5; %r10 to %r13: row i of x; %r14 to %r17 go to row i of
 * y */
#define FILL "    st.shared.v4.b32 [%r3], {%r10, %r11, %r12, %r13};\n    bar.warp.sync -1;\n"
#define SAVE "    st.global.v4.b32 [%rd4], {%r14, %r15, %r16, %r17};\n"
#define LAST "    ret;\n}\n"

static uint16_t x16[64][8], y16[32][8];

static bool move(const char *body, unsigned check, uint32_t threads)
{
    s = sim_begin((struct device_options){.threads = 1, .check = check});
    const char *text = arena_printf(s.arena, "%s%s%s", HEAD, body, LAST);
    if (sim_load_text(&s, "test.ptx", text) != DEVICE_OK) {
        fputs(sim_errors(&s), stderr);
        abort();
    }
    for (unsigned i = 0; i < 512; i++)
        x16[i / 8][i % 8] = (uint16_t)(0x3c00 + i);
    sim_arg(&s, sim_buffer(&s, "x", "f16[64,8]", 512, 2, x16, true), 8);
    const uint64_t y = sim_buffer(&s, "y", "f16[32,8]", 256, 2, NULL, false);
    sim_arg(&s, y, 8);
    const bool fine = sim_go(&s, "k", 1, threads) == DEVICE_OK;
    sim_fetch(&s, y16, y, sizeof y16);
    return fine;
}

/* Element e, of a lane's two, of matrix k; row i of it is row i ^ 5 of x, those of the first matrix
 * first. */
static uint16_t loaded(unsigned k, unsigned lane, unsigned e, bool trans)
{
    const unsigned row = lane / 4, col = lane % 4 * 2 + e;
    return trans ? x16[(8 * k + col) ^ 5][row] : x16[(8 * k + row) ^ 5][col];
}

static void loads(void)
{
    static const char *const regs[] = {"", "{%r14}", "{%r14, %r15}", "",
                                       "{%r14, %r15, %r16, %r17}"};
    for (unsigned n = 1; n <= 4; n *= 2)
        for (unsigned trans = 0; trans < 2; trans++) {
            char body[600];
            /* the lanes beyond have no address */
            snprintf(body, sizeof body,
                     "%s    setp.ge.u32 %%p3, %%r1, %u;\n    selp.b32 %%r4, -3, %%r4, %%p3;\n"
                     "    ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 %s, [%%r4];\n%s",
                     FILL, 8 * n, n, trans ? ".trans" : "", regs[n], SAVE);
            const bool fine = move(body, DEVICE_CHECK_ALL, 32);
            unsigned bad = 0;
            for (unsigned i = 0; i < 256; i++) {
                const unsigned lane = i / 8, k = i % 8 / 2;
                bad += y16[lane][i % 8] != (k < n ? loaded(k, lane, i % 2, trans) : 0);
            }
            if (!ok(fine && !bad, "ldmatrix.x%u%s", n, trans ? ".trans" : ""))
                tap_note("%s", sim_errors(&s));
            sim_end(&s);
        }
}

static void stores(void)
{
    static const char *const regs[] = {"", "{%r10}", "{%r10, %r11}", "",
                                       "{%r10, %r11, %r12, %r13}"};
    for (unsigned n = 1; n <= 4; n *= 2)
        for (unsigned trans = 0; trans < 2; trans++) {
            char body[700];
            snprintf(body, sizeof body,
                     "    st.shared.v4.b32 [%%r3], {%%r14, %%r14, %%r14, %%r14};\n"
                     "    bar.warp.sync -1;\n"
                     "    stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [%%r4], %s;\n"
                     "    bar.warp.sync -1;\n"
                     "    ld.shared.v4.b32 {%%r14, %%r15, %%r16, %%r17}, [%%r4];\n%s",
                     n, trans ? ".trans" : "", regs[n], SAVE);
            const bool fine = move(body, DEVICE_CHECK_ALL, 32);
            unsigned bad = 0;
            for (unsigned i = 0; i < 256; i++) {
                const unsigned k = i / 64, row = i / 8 % 8, col = i % 8;
                const unsigned r = trans ? col : row, c = trans ? row : col;
                bad += y16[i / 8][col] != (k < n ? x16[4 * r + c / 2][2 * k + c % 2] : 0);
            }
            if (!ok(fine && !bad, "stmatrix.x%u%s", n, trans ? ".trans" : ""))
                tap_note("%s", sim_errors(&s));
            sim_end(&s);
        }
    const bool fine = move("    movmatrix.sync.aligned.m8n8.trans.b16 %r14, %r11;\n" SAVE, 0, 32);
    unsigned bad = 0;
    for (unsigned i = 0; i < 64; i++)
        bad += y16[i / 2][i % 2] != x16[i / 2 % 4 * 8 + i % 2 * 4 + i / 16][2 + i / 8 % 2];
    ok(fine && !bad, "movmatrix");
    sim_end(&s);
}

/* ---- whole warps, undefined values ----------------------------------------------------------- */

#define MMA                                                                                 \
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r14, %r15}, " \
    "{%r10}, {0f00000000, 0f00000000, 0f00000000, 0f00000000};\n"
#define ROWS   "    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r14, %r15}, [%r3];\n"
#define FIRST  "    st.global.v2.f32 [%rd4], {%f0, %f1};\n" /* rows 0 to 7 of the product */
#define SECOND "    st.global.v2.f32 [%rd4+8], {%f2, %f3};\n"
/* rows 0 to 7 of A alone */
#define HALF                                             \
    "    @!%p1 bra far;\n    setp.lt.u32 %p3, %r1, 8;\n" \
    "    @%p3 st.shared.v4.b32 [%r3], {%r10, %r11, %r12, %r13};\nfar:\n    bar.warp.sync -1;\n"

static void expect(const char *body, uint32_t threads, const char *find, const char *what)
{
    const bool fine = move(body, DEVICE_CHECK_ALL, threads);
    const char *text = sim_errors(&s);
    if (!ok(find ? !fine && strstr(text, find) : fine && !*text, "%s", what))
        tap_note("%s", text);
    sim_end(&s);
}

static void warps(void)
{
    expect(FILL ROWS "    " MMA FIRST, 32, NULL, "a whole warp multiplies");
    expect(FILL ROWS "    @%p2 " MMA FIRST, 32, NULL, "a guard that all lanes pass");
    expect(FILL ROWS "    @!%p2 " MMA SAVE, 32, NULL, "a guard that none passes");
    expect(FILL ROWS "    @%p1 " MMA FIRST, 32,
           "lanes 0-15 of a warp execute this, and all 32 must",
           "a guard that half of the lanes pass");
    expect(FILL ROWS "    @%p1 bra over;\n    " MMA FIRST "over:\n", 32, "lanes 16-31 of a warp",
           "a branch around it");
    expect(FILL ROWS "    @%p1 bra over;\n    mov.b32 %r14, %r15;\nover:\n    " MMA FIRST, 32, NULL,
           "a branch before it");
    expect("    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r14}, [%r3];\n", 48,
           "lanes 0-15 of a warp execute this", "a warp with 16 threads");
    expect("    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r14}, [%r3+8];\n", 32, "misaligned",
           "a misaligned row");
    expect("    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r14, %r15, %r16, %r17}, [%r3+16];\n", 32,
           "load of 16 bytes at", "a row outside");
    expect("    ldmatrix.sync.aligned.m8n8.x1.b16 {%r14}, [%rd3];\n", 32,
           "load of 16 bytes at element 0 of 'x' (f16[64,8], 512 elements), which is not in shared",
           "a generic address of global memory");
    expect("    cvta.shared.u64 %rd5, tile;\n    mad.wide.u32 %rd5, %r1, 16, %rd5;\n" FILL
           "    ldmatrix.sync.aligned.m8n8.x2.b16 {%r14, %r15}, [%rd5];\n    " MMA FIRST,
           32, NULL, "a generic address of shared memory");
    expect(HALF ROWS "    " MMA FIRST, 32, NULL, "undefined rows of A leave the others defined");
    expect(HALF ROWS "    " MMA FIRST SECOND, 32,
           "load of 2 bytes at element 32 of 'tile' (shared b32[128]), where nothing was written",
           "undefined rows of A make rows of the product undefined");
    expect(HALF ROWS "    movmatrix.sync.aligned.m8n8.trans.b16 %r16, %r15;\n"
                     "    st.global.b32 [%rd4], %r16;\n",
           32, "where nothing was written", "... and what movmatrix makes of them");
    expect("    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r10};\n"
           "    ld.shared.v4.b32 {%r14, %r15, %r16, %r17}, [%r2];\n" SAVE,
           32, "race on element", "stmatrix writes for others: a barrier is missing");
}

int main(void)
{
    static const struct {
        unsigned bits;
        const char *text;
    } checks[] = {{0, "unchecked"},
                  {DEVICE_CHECK_MEMORY, "memory checked"},
                  {DEVICE_CHECK_INIT, "init checked"},
                  {DEVICE_CHECK_RACE, "races checked"},
                  {DEVICE_CHECK_ASYNC, "async checked"},
                  {DEVICE_CHECK_ALL, "all checked"}};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        s = sim_begin((struct device_options){.threads = 2, .check = checks[i].bits});
        const char *dir = getenv("KAIO_SRCDIR"), *how = checks[i].text;
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
    loads();
    stores();
    warps();
    return tap_done();
}
