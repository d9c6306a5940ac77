/* The warp matrix functions of CUDA (tests/ptx-run/wmma.cu): every shape and type in every layout,
 * under all checks. The numbers are small integers, so that sums are exact in any order. */
#include "sim.h"

enum { PAD = 8 };

static const struct kernel {
    const char *entry;
    unsigned m, n, k;
    const char *ab, *cd; /* types of a and b, of c and d */
} kernels[] = {
    {"f16_square", 16, 16, 16, "f16", "f32"},   {"f16_tall", 32, 8, 16, "f16", "f32"},
    {"f16_wide", 8, 32, 16, "f16", "f32"},      {"f16_half", 16, 16, 16, "f16", "f16"},
    {"bf16_square", 16, 16, 16, "bf16", "f32"}, {"bf16_wide", 8, 32, 16, "bf16", "f32"},
    {"tf32_square", 16, 16, 8, "f32", "f32"},   {"s8_square", 16, 16, 16, "i8", "i32"},
    {"u8_tall", 32, 8, 16, "i8", "i32"},        {"s8_wide", 8, 32, 16, "i8", "i32"},
    {"f64_square", 8, 8, 4, "f64", "f64"},
};

static unsigned bytes_of(const char *type)
{
    return strcmp(type, "i8") == 0 ? 1 : strstr(type, "16") ? 2 : strstr(type, "64") ? 8 : 4;
}

static void put(unsigned char *to, size_t at, const char *type, int v)
{
    const unsigned bytes = bytes_of(type);
    const float f = (float)v;
    const double d = v;
    uint32_t u;
    memcpy(&u, &f, 4);
    if (strcmp(type, "f16") == 0)
        u = v ? (u >> 16 & 0x8000) | ((u >> 13 & 0x3ffff) - (112u << 10)) : 0;
    else if (strcmp(type, "bf16") == 0)
        u >>= 16;
    else if (*type == 'i')
        u = (uint32_t)v;
    if (bytes == 8)
        memcpy(to + 8 * at, &d, 8);
    else
        memcpy(to + bytes * at, &u, bytes);
}

static int a_at(unsigned i, unsigned k)
{
    return (int)((3 * i + 5 * k + i * k % 7) % 5);
}
static int b_at(unsigned k, unsigned j)
{
    return (int)((7 * k + 2 * j + k * j % 3) % 4);
}
static int c_at(unsigned i, unsigned j)
{
    return (int)((i + 11 * j) % 13);
}

/* Element (i, j) of a matrix of rows x cols; lines are padded. */
static size_t place(unsigned i, unsigned j, unsigned rows, unsigned cols, bool col)
{
    return col ? j * (size_t)(rows + PAD) + i : i * (size_t)(cols + PAD) + j;
}

static bool run(struct sim *s, const struct kernel *k, unsigned layouts)
{
    enum { ROOM = 64 * 64 };
    static unsigned char a[8 * ROOM], b[8 * ROOM], c[8 * ROOM], want[8 * ROOM], got[8 * ROOM];
    const unsigned ab = bytes_of(k->ab), cd = bytes_of(k->cd);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    memset(c, 0, sizeof c);
    memset(want, 0, sizeof want);
    for (unsigned q = 0; q < k->k; q++) {
        for (unsigned i = 0; i < k->m; i++)
            put(a, place(i, q, k->m, k->k, layouts & 1), k->ab, a_at(i, q));
        for (unsigned j = 0; j < k->n; j++)
            put(b, place(q, j, k->k, k->n, layouts & 2), k->ab, b_at(q, j));
    }
    for (unsigned i = 0; i < k->m; i++)
        for (unsigned j = 0; j < k->n; j++) {
            int sum = 2 * c_at(i, j);
            for (unsigned q = 0; q < k->k; q++)
                sum += a_at(i, q) * b_at(q, j);
            put(c, place(i, j, k->m, k->n, layouts & 4), k->cd, c_at(i, j));
            put(want, place(i, j, k->m, k->n, layouts & 4), k->cd, sum);
        }
    const uint64_t d = sim_buffer(s, "d", "", ROOM, cd, NULL, false);
    sim_arg(s, d, 8);
    sim_arg(s, sim_buffer(s, "a", "", ROOM, ab, a, true), 8);
    sim_arg(s, sim_buffer(s, "b", "", ROOM, ab, b, true), 8);
    sim_arg(s, sim_buffer(s, "c", "", ROOM, cd, c, true), 8);
    sim_arg(s, layouts, 4);
    if (sim_go(s, k->entry, 1, 32) != DEVICE_OK) {
        tap_note("%s", sim_errors(s));
        return false;
    }
    sim_fetch(s, got, d, (size_t)ROOM * cd);
    return memcmp(got, want, (size_t)ROOM * cd) == 0;
}

int main(void)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct sim s = sim_begin((struct device_options){.threads = 1, .check = DEVICE_CHECK_ALL});
        const char *dir = getenv("KAIO_SRCDIR");
        const char *path = arena_printf(s.arena, "%s/tests/ptx-run/wmma.ptx", dir ? dir : ".");
        const struct source *src = io_read(s.arena, s.diags, path, 1 << 20);
        if (!src || sim_device.load(s.dev, src, s.diags) != DEVICE_OK) {
            fputs(sim_errors(&s), stderr);
            return 1;
        }
        unsigned bad = 0;
        for (unsigned layouts = 0; layouts < 8; layouts++)
            bad |= (unsigned)!run(&s, &kernels[i], layouts) << layouts;
        ok(!bad, "%s, in all layouts", kernels[i].entry);
        if (bad)
            tap_note("wrong with layouts 0x%02x", bad);
        sim_end(&s);
    }
    return tap_done();
}
