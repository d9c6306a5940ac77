/* Every form of mma.sync on chosen inputs.
 *
 *     sim_mma                                   the simulator against what an H100 gave
 *                                               (tests/ptx-run/mma.golden), as TAP
 *     sim_mma --device=cuda [--rounds=N] [--keep=FILE] [FORM...]
 *                                               a GPU against the simulator, N times all kinds of
 *                                               inputs; FILE gets what the GPU gave, for mma.golden
 *                                               if N is 1
 *     sim_mma --replay=FILE --rounds=N          the simulator against such a file
 *     sim_mma --print                           the PTX
 *
 * The inputs are made for the ways in which sums of tensor cores can differ: cancellation, terms of
 * very different size, ties, subnormals, overflow, zeros of either sign beside large factors, Inf
 * and NaN. Exit status: 0 all the same, 1 some not, 2 usage, 77 no such device.
 */
#include "sim.h"

#include <inttypes.h>

#include "numbers.h"
#include "sim/sim.h"

enum { M_MOST = 16, N = 8, K_MOST = 256, LANES = 32 };

/* ---- forms ----------------------------------------------------------------------------------- */

struct form {
    char name[80]; /* behind mma.sync.aligned. */
    unsigned m, k, word;
    const struct number *a, *b, *d;
    bool quads;          /* m8n8k4 of f16: four products */
    unsigned na, nb, nd; /* registers */
};

static struct form forms[128];
static size_t nform;

static void add(const char *shape, const char *d, const char *a, const char *b, const char *layout,
                const char *before, const char *behind)
{
    struct form *f = &forms[nform++];
    unsigned n;
    snprintf(f->name, sizeof f->name, "%s.%s%s.%s.%s.%s.%s%s", shape, layout, before, d, a, b, d,
             behind);
    if (sscanf(shape, "m%un%uk%u", &f->m, &n, &f->k) != 3 || n != N)
        abort();
    f->a = number(a, strlen(a));
    f->b = number(b, strlen(b));
    f->d = number(d, strlen(d));
    f->quads = f->k == 4 && f->a->bits == 16;
    f->word = f->d->bits == 64 ? 64 : 32;
    f->na = f->quads ? 2 : f->m * f->k * f->a->bits / f->word / LANES;
    f->nb = f->quads ? 2 : N * f->k * f->b->bits / f->word / LANES;
    f->nd = (f->quads ? 8 : f->m * N / LANES) / (f->d->bits == 16 ? 2 : 1);
}

static void add_integers(const char *const *shape, const char *const *type)
{
    for (; *shape; shape++)
        for (int i = 0; i < 8; i++)
            add(*shape, "s32", type[i & 1], type[i >> 1 & 1], "row.col", i & 4 ? ".satfinite" : "",
                "");
}

static void list_forms(void)
{
    static const char *const layouts[] = {"row.col", "row.row", "col.col", "col.row"};
    static const char *const fp8[] = {"e4m3", "e5m2"};
    static const char *const s8[] = {"m8n8k16", "m16n8k16", "m16n8k32", NULL};
    static const char *const s4[] = {"m8n8k32", "m16n8k32", "m16n8k64", NULL};
    static const char *const b1[] = {"m8n8k128", "m16n8k128", "m16n8k256"};
    static const char *const f64[] = {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"};
    static const char *const rounds[] = {"", ".rz", ".rm", ".rp"};
    for (int k = 16; k >= 8; k -= 8) {
        const char *shape = k == 16 ? "m16n8k16" : "m16n8k8";
        add(shape, "f32", "f16", "f16", "row.col", "", "");
        add(shape, "f16", "f16", "f16", "row.col", "", "");
        add(shape, "f32", "bf16", "bf16", "row.col", "", "");
    }
    add("m16n8k8", "f32", "tf32", "tf32", "row.col", "", "");
    add("m16n8k4", "f32", "tf32", "tf32", "row.col", "", "");
    for (int i = 0; i < 16; i++)
        add(i & 4 ? "m16n8k16" : "m16n8k32", i & 8 ? "f16" : "f32", fp8[i & 1], fp8[i >> 1 & 1],
            "row.col", "", "");
    for (int i = 0; i < 8; i++)
        add("m8n8k4", i & 4 ? "f16" : "f32", "f16", "f16", layouts[i & 3], "", "");
    add_integers(s8, (const char *const[]){"s8", "u8"});
    add_integers(s4, (const char *const[]){"s4", "u4"});
    for (int i = 0; i < 6; i++)
        add(b1[i / 2], "s32", "b1", "b1", "row.col", "", i % 2 ? ".and.popc" : ".xor.popc");
    for (int i = 0; i < 4; i++)
        for (int r = 0; r < 4; r++)
            add(f64[i], "f64", "f64", "f64", "row.col", "", rounds[r]);
}

static void registers(struct buf *b, const char *prefix, unsigned n)
{
    buf_puts(b, "{");
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "%s%%%s%u", i ? ", " : "", prefix, i);
    buf_puts(b, "}");
}

static void load(struct buf *b, const char *what, const char *type, unsigned n, unsigned bytes)
{
    buf_printf(b, "    ld.param.u64 %%at, [%s];\n    mad.wide.u32 %%at, %%i, %u, %%at;\n", what,
               n * bytes);
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "    ld.global.%s %%%s%u, [%%at+%u];\n", type, what, i, i * bytes);
}

/* Block i multiplies the i-th fragments. */
static const char *module_text(struct arena *arena, const struct form *f, const char *target)
{
    struct buf b = buf_in(arena);
    const bool fp8 = f->a->bits == 8 && f->a->exponent;
    const char *any = f->word == 64 ? "f64" : "b32";
    const char *sum = f->word == 64 ? "f64" : strcmp(f->d->name, "f32") == 0 ? "f32" : "b32";
    buf_printf(&b, ".version %s\n.target %s\n.address_size 64\n", fp8 ? "8.7" : "8.0", target);
    buf_puts(&b, ".visible .entry mma(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n"
                 "{\n    .reg .b32 %i, %t;\n    .reg .b64 %at;\n");
    buf_printf(&b, "    .reg .%s %%a<%u>, %%b<%u>;\n    .reg .%s %%c<%u>, %%d<%u>;\n", any, f->na,
               f->nb, sum, f->nd, f->nd);
    buf_puts(&b, "    mov.u32 %i, %ctaid.x;\n    mov.u32 %t, %tid.x;\n"
                 "    mad.lo.u32 %i, %i, 32, %t;\n");
    load(&b, "a", any, f->na, f->word / 8);
    load(&b, "b", any, f->nb, f->word / 8);
    load(&b, "c", sum, f->nd, f->word / 8);
    buf_printf(&b, "    mma.sync.aligned.%s ", f->name);
    registers(&b, "d", f->nd);
    buf_puts(&b, ", ");
    registers(&b, "a", f->na);
    buf_puts(&b, ", ");
    registers(&b, "b", f->nb);
    buf_puts(&b, ", ");
    registers(&b, "c", f->nd);
    buf_printf(&b, ";\n    ld.param.u64 %%at, [d];\n    mad.wide.u32 %%at, %%i, %u, %%at;\n",
               f->nd * f->word / 8);
    for (unsigned i = 0; i < f->nd; i++)
        buf_printf(&b, "    st.global.%s [%%at+%u], %%d%u;\n", sum, i * f->word / 8, i);
    buf_puts(&b, "    ret;\n}\n");
    return buf_text(&b);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

struct matrices {
    uint64_t a[M_MOST][K_MOST], b[K_MOST][N], c[M_MOST][N];
};

static void fill(const struct form *f, enum kind kind, struct matrices *x)
{
    for (unsigned i = 0; i < f->m; i++)
        for (unsigned k = 0; k < f->k; k++)
            x->a[i][k] = any(f->a, kind, false);
    for (unsigned k = 0; k < f->k; k++)
        for (unsigned j = 0; j < N; j++)
            x->b[k][j] = any(f->b, kind, false);
    for (unsigned i = 0; i < f->m; i++)
        for (unsigned j = 0; j < N; j++)
            x->c[i][j] = any(f->d, kind, true);
    if (!f->a->exponent)
        return;
    for (unsigned k = 0; kind == CANCEL && k + 3 < f->k; k += 2) {
        for (unsigned i = 0; i < f->m; i++)
            x->a[i][k + 1] = x->a[i][k];
        for (unsigned j = 0; j < N; j++)
            x->b[k + 1][j] = x->b[k][j] ^ sign_of(f->b);
    }
    for (unsigned i = 0; kind == CANCEL && i < f->m; i++)
        for (unsigned j = 0; j < N; j++)
            if (one_in(2))
                x->c[i][j] = zero(f->d);
    if (kind != STEPS)
        return;
    const unsigned p = (unsigned)between(0, (int)f->k - 1), q = (p + 1) % f->k;
    for (unsigned i = 0; i < f->m; i++) {
        x->a[i][p] = some(f->a, 0, 0);
        x->a[i][q] = some(f->a, -(int)i, -(int)i);
    }
    for (unsigned j = 0; j < N; j++) {
        x->b[p][j] = some(f->b, 0, 0);
        x->b[q][j] = some(f->b, -2 * (int)j, -2 * (int)j);
    }
}

/* ---- fragments ------------------------------------------------------------------------------- */

static void put(unsigned char *words, unsigned word, size_t at, unsigned width, unsigned place,
                uint64_t v)
{
    uint64_t w = 0;
    memcpy(&w, words + at * (word / 8), word / 8);
    w |= v << (place * width);
    memcpy(words + at * (word / 8), &w, word / 8);
}

/* Rows of A or columns of B: as PTX ISA's figures have them for all shapes but m8n8k4 of f16. */
static void put_factor(const struct form *f, unsigned char *to, const struct number *t, unsigned n,
                       unsigned rows, unsigned i, unsigned k, uint64_t v)
{
    const unsigned per = f->word / t->bits, lane = i % 8 * 4 + k / per % 4;
    put(to, f->word, lane * n + i / 8 + k / (4 * per) * (rows / 8), t->bits, k % per, v);
}

static void put_sum(const struct form *f, unsigned char *to, unsigned i, unsigned j, uint64_t v)
{
    const unsigned lane = i % 8 * 4 + j / 2, r = i / 8 * 2 + j % 2;
    const bool half = f->d->bits == 16;
    put(to, f->word, lane * f->nd + (half ? r / 2 : r), half ? 16 : f->word, half ? r % 2 : 0, v);
}

/* The fragments of one case; a m8n8k4 of f16 gets four times as many numbers, in any order. */
static void make_case(const struct form *f, uint32_t n, unsigned char *a, unsigned char *b,
                      unsigned char *c)
{
    static struct matrices x;
    const enum kind kind = f->a->exponent ? n % KINDS : n % 2 ? HUGE : EVEN;
    state = n;
    for (const char *p = f->name; *p; p++)
        state = state * 1099511628211u + (unsigned char)*p;
    for (unsigned q = 0; q < (f->quads ? 4 : 1); q++) {
        fill(f, kind, &x);
        for (unsigned i = 0; i < f->m; i++)
            for (unsigned k = 0; k < f->k; k++)
                if (f->quads)
                    put(a, 32, (q * 8 + i) * 2 + k / 2, 16, k % 2, x.a[i][k]);
                else
                    put_factor(f, a, f->a, f->na, f->m, i, k, x.a[i][k]);
        for (unsigned k = 0; k < f->k; k++)
            for (unsigned j = 0; j < N; j++)
                if (f->quads)
                    put(b, 32, (q * 8 + j) * 2 + k / 2, 16, k % 2, x.b[k][j]);
                else
                    put_factor(f, b, f->b, f->nb, N, j, k, x.b[k][j]);
        for (unsigned i = 0; i < f->m; i++)
            for (unsigned j = 0; j < N; j++)
                if (f->quads)
                    put(c, 32, (q * 64 + i * 8 + j) / (32 / f->d->bits), f->d->bits,
                        j % (32 / f->d->bits), x.c[i][j]);
                else
                    put_sum(f, c, i, j, x.c[i][j]);
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct inputs {
    unsigned char *a, *b, *c;
    size_t na, nb, nd; /* bytes of a case */
    uint32_t n;        /* cases */
};

static struct inputs make_inputs(struct arena *arena, const struct form *f, uint32_t rounds)
{
    struct inputs x = {.n = rounds * (f->a->exponent ? KINDS : 2)};
    x.na = (size_t)LANES * f->na * f->word / 8;
    x.nb = (size_t)LANES * f->nb * f->word / 8;
    x.nd = (size_t)LANES * f->nd * f->word / 8;
    x.a = ARENA_ARRAY(arena, x.n * x.na, unsigned char);
    x.b = ARENA_ARRAY(arena, x.n * x.nb, unsigned char);
    x.c = ARENA_ARRAY(arena, x.n * x.nd, unsigned char);
    for (uint32_t i = 0; i < x.n; i++)
        make_case(f, i, x.a + i * x.na, x.b + i * x.nb, x.c + i * x.nd);
    return x;
}

/* What the device makes of them; NULL: it can't. */
static unsigned char *run(struct arena *arena, const struct device_ops *ops, struct device *dev,
                          const struct form *f, const struct inputs *x, const char *target,
                          struct diags *d)
{
    const char *text = module_text(arena, f, target);
    const struct source *src = source_new(arena, f->name, text, strlen(text));
    const size_t bytes[4] = {x->na * x->n, x->nb * x->n, x->nd * x->n, x->nd * x->n};
    const unsigned char *from[4] = {x->a, x->b, x->c, NULL};
    unsigned char *result = ARENA_ARRAY(arena, bytes[3], unsigned char);
    uint64_t at[4];
    const void *arg[4];
    const size_t arg_bytes[4] = {8, 8, 8, 8};
    const struct device_label label = {.name = "x", .type = ""};
    if (ops->load(dev, src, d) != DEVICE_OK)
        return NULL;
    for (int i = 0; i < 4; i++) {
        arg[i] = &at[i];
        if (ops->alloc(dev, bytes[i], &label, &at[i], d) != DEVICE_OK ||
            (from[i] && ops->write(dev, at[i], from[i], bytes[i], d) != DEVICE_OK))
            return NULL;
    }
    const struct device_launch l = {.entry = "mma",
                                    .grid = {x->n, 1, 1},
                                    .block = {LANES, 1, 1},
                                    .args = arg,
                                    .arg_bytes = arg_bytes,
                                    .narg = 4};
    struct device_stats stats;
    const bool fine = ops->launch(dev, &l, 1, &stats, d) == DEVICE_OK &&
                      ops->read(dev, result, at[3], bytes[3], d) == DEVICE_OK;
    for (int i = 0; i < 4; i++)
        ops->release(dev, at[i]);
    return fine ? result : NULL;
}

/* How many results differ, of how many cases; the first of each kind is shown. */
static unsigned differences(const struct form *f, const struct inputs *x, const unsigned char *got,
                            const unsigned char *want, bool show)
{
    unsigned count = 0, of[KINDS] = {0};
    const unsigned bytes = f->d->bits / 8;
    for (uint32_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < x->nd; k += bytes) {
            uint64_t g = 0, v = 0, c = 0;
            memcpy(&g, got + i * x->nd + k, bytes);
            memcpy(&v, want + i * x->nd + k, bytes);
            if (g == v)
                continue;
            memcpy(&c, x->c + i * x->nd + k, bytes);
            count++;
            if (show && of[i % KINDS]++ < 2)
                tap_note("%s: case %u (%s), byte %zu: %" PRIx64 ", not %" PRIx64 "; C %" PRIx64,
                         f->name, i, kind_text[f->a->exponent ? i % KINDS : 0], k, g, v, c);
        }
    for (unsigned k = 0; show && k < KINDS; k++)
        if (of[k])
            tap_note("%s: %u of kind %s", f->name, of[k], kind_text[k]);
    return count;
}

static struct device *open_device(struct arena *arena, const struct device_ops *ops,
                                  struct diags *d)
{
    struct device *dev = NULL;
    const struct device_options options = {.threads = 2};
    return ops->count(d) > 0 && ops->open(arena, 0, &options, &dev, d) == DEVICE_OK ? dev : NULL;
}

/* ---- a GPU against the simulator ------------------------------------------------------------- */

static bool wanted(const struct form *f, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (strstr(f->name, names[i]))
            return true;
    return n == 0;
}

static void keep(FILE *to, const struct form *f, const struct inputs *x, const unsigned char *d)
{
    if (!to)
        return;
    fprintf(to, "%s %zu\n", f->name, x->n * x->nd);
    fwrite(d, 1, x->n * x->nd, to);
}

static int compare(const struct device_ops *ops, const char *target, uint32_t rounds, FILE *to,
                   int n, char **names)
{
    struct arena *whole = arena_new();
    struct diags *d = diags_new(whole);
    struct device *dev = open_device(whole, ops, d), *sim = open_device(whole, &sim_device, d);
    unsigned wrong = 0, missing = 0;
    if (!dev || !sim) {
        fputs("sim_mma: no such device\n", stderr);
        return 77;
    }
    for (size_t i = 0; i < nform; i++) {
        const struct form *f = &forms[i];
        if (!wanted(f, n, names))
            continue;
        struct arena *arena = arena_new();
        d = diags_new(arena);
        const struct inputs x = make_inputs(arena, f, rounds);
        unsigned char *want = run(arena, &sim_device, sim, f, &x, target, d);
        unsigned char *got = run(arena, ops, dev, f, &x, target, d);
        if (!want || !got) {
            struct buf b = buf_in(arena);
            diags_format(d, "sim_mma", false, &b);
            printf("%-44s %s\n%s", f->name, want ? "refused" : "not simulated", buf_text(&b));
            missing++;
        } else {
            const unsigned bad = differences(f, &x, want, got, true);
            printf("%-44s %u of %zu differ\n", f->name, bad, x.n * x.nd / (f->d->bits / 8));
            wrong += bad != 0;
            keep(to, f, &x, got);
        }
        fflush(stdout);
        arena_free(arena);
    }
    printf("%u forms differ, %u not run\n", wrong, missing);
    ops->close(dev);
    sim_device.close(sim);
    arena_free(whole);
    return wrong || missing;
}

/* ---- the simulator against what a GPU gave --------------------------------------------------- */

static void replay(const char *path, uint32_t rounds, bool baseline)
{
    struct arena *arena = arena_new();
    struct diags *d = diags_new(arena);
    const struct source *src = io_read(arena, d, path, 1 << 26);
    struct device *dev = open_device(arena, &sim_device, d);
    size_t done = 0;
    if (!src || !dev) {
        ok(false, "%s is there", path);
        return;
    }
    if (baseline)
        sim_use_baseline(dev);
    for (const char *p = src->text, *end = p + src->len; p < end; done++) {
        char name[80];
        size_t bytes, k = 0;
        int at;
        if (sscanf(p, "%79s %zu%n", name, &bytes, &at) != 2 || bytes > (size_t)(end - p - at - 1))
            abort();
        p += at + 1;
        while (k < nform && strcmp(forms[k].name, name) != 0)
            k++;
        if (k == nform)
            abort();
        const struct inputs x = make_inputs(arena, &forms[k], rounds);
        unsigned char *got = run(arena, &sim_device, dev, &forms[k], &x, "sm_90", d);
        ok(got && x.n * x.nd == bytes &&
               !differences(&forms[k], &x, got, (const unsigned char *)p, true),
           "%s as on an H100%s", name, baseline ? ", without AVX2" : "");
        p += bytes;
    }
    ok(done > 80, "the file has them all");
    sim_device.close(dev);
    arena_free(arena);
}

static int print_all(const char *target)
{
    struct arena *arena = arena_new();
    for (size_t i = 0; i < nform; i++)
        fputs(module_text(arena, &forms[i], target), stdout);
    arena_free(arena);
    return 0;
}

int main(int argc, char **argv)
{
    const char *device = NULL, *target = "sm_90", *golden = NULL;
    uint32_t rounds = 20;
    bool print = false;
    FILE *to = NULL;
    int i = 1;
    list_forms();
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strncmp(argv[i], "--device=", 9) == 0)
            device = argv[i] + 9;
        else if (strncmp(argv[i], "--target=", 9) == 0)
            target = argv[i] + 9;
        else if (strncmp(argv[i], "--replay=", 9) == 0)
            golden = argv[i] + 9;
        else if (strcmp(argv[i], "--print") == 0)
            print = true;
        else if (strncmp(argv[i], "--rounds=", 9) == 0 && atoi(argv[i] + 9) > 0)
            rounds = (uint32_t)atoi(argv[i] + 9);
        else if (strncmp(argv[i], "--keep=", 7) == 0 && (to = fopen(argv[i] + 7, "wb")))
            continue;
        else
            return 2;
    }
    if (print)
        return print_all(target);
    if (device) {
        const int status = compare(strcmp(device, "cpu") == 0 ? &sim_device : &cuda_device, target,
                                   rounds, to, argc - i, argv + i);
        return to && fclose(to) ? 1 : status;
    }
    const char *dir = getenv("KAIO_SRCDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/ptx-run/mma.golden", dir ? dir : ".");
    replay(golden ? golden : path, golden ? rounds : 1, false);
    replay(golden ? golden : path, golden ? rounds : 1, true);
    return tap_done();
}
