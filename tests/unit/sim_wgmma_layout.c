/* Which place in shared memory is which element of a matrix, for every layout that a descriptor of
 * wgmma can name: tiles are filled with their own coordinates, and a product with rows of the
 * identity shows what was read where.
 *
 *     sim_wgmma_layout                    the simulator, as TAP
 *     sim_wgmma_layout --device=cuda      a GPU, likewise
 *     sim_wgmma_layout --print            the PTX
 */
#include "wgmma.h"

enum what { OF_A, OF_B };

/* Small whole numbers as the type has them. */
static uint64_t whole(const struct number *t, unsigned v)
{
    if (!t->exponent)
        return v;
    if (!v)
        return 0;
    const int e = 31 - __builtin_clz(v);
    const uint64_t f = (uint64_t)v << t->mantissa >> e;
    return make(t, false, e, f);
}

static unsigned number_of(const struct wg_form *f, const unsigned char *d)
{
    float x;
    uint32_t u;
    memcpy(&x, d, 4);
    memcpy(&u, d, 4);
    return f->d->exponent ? x >= 0 && x < 65536 ? (unsigned)x : 99999 : u;
}

/* The form in which the whole numbers up to 255 are exact. */
static struct wg_form form_of(unsigned bytes, unsigned n)
{
    return bytes == 1 ? wg_form("s32", "u8", "u8", n)
                      : wg_form("f32", bytes == 2 ? "f16" : "tf32", bytes == 2 ? "f16" : "tf32", n);
}

/* One matrix lies as p says and holds row numbers (pass 0) or depths (pass 1); the other has a 1 in
 * each row, at depth row mod K. */
static void fill(const struct wg_form *f, enum what what, const struct wg_place *p,
                 const struct wg_place *unit, unsigned pass, unsigned char *image)
{
    const struct number *t = f->a;
    const unsigned rows = what == OF_A ? WG_ROWS : f->n, others = what == OF_A ? f->n : WG_ROWS;
    for (unsigned i = 0; i < WG_IMAGE; i += t->bits / 8)
        memcpy(image + i, &(uint64_t){whole(t, 251)}, t->bits / 8); /* what must not be read */
    for (unsigned n = 0; n < others; n++)
        for (unsigned k = 0; k < f->k; k++)
            wg_put(image, unit, t, n, k, whole(t, n % f->k == k));
    for (unsigned n = 0; n < rows; n++)
        for (unsigned k = 0; k < f->k; k++)
            wg_put(image, p, t, n, k, whole(t, pass ? k : n % 250));
}

struct device_at {
    const struct device_ops *ops;
    struct device *dev;
};

/* Is each element read from its place? */
static bool reads_right(const struct device_at *at, struct wg_form f, enum what what,
                        struct wg_place p)
{
    struct arena *arena = arena_new();
    struct diags *d = diags_new(arena);
    /* the other matrix: K-major, no swizzle, behind or before this one */
    const struct wg_place unit =
        wg_place(0, false, what == OF_A ? 22528 : 0, what == OF_A ? f.n : WG_ROWS);
    unsigned wrong = 0;
    *(what == OF_A ? &f.a_trans : &f.b_trans) = p.mn;
    wg_name(&f);
    struct wg_cases x = wg_cases(arena, &f, 2);
    for (unsigned pass = 0; pass < 2; pass++) {
        fill(&f, what, &p, &unit, pass, x.image + pass * WG_IMAGE);
        x.which[3 * pass] = wg_descriptor(what == OF_A ? &p : &unit);
        x.which[3 * pass + 1] = wg_descriptor(what == OF_A ? &unit : &p);
    }
    const unsigned char *got = wg_run(arena, at->ops, at->dev, &f, &x, d);
    for (unsigned pass = 0; got && pass < 2; pass++)
        for (unsigned i = 0; i < WG_ROWS; i++)
            for (unsigned j = 0; j < f.n; j++) {
                const unsigned row = what == OF_A ? i : j, depth = (what == OF_A ? j : i) % f.k;
                const unsigned want = pass ? depth : row % 250;
                const unsigned v = number_of(&f, got + pass * x.nd + wg_at_d(&f, i, j));
                if (v != want && wrong++ < 3)
                    tap_note("%s: row %u, depth %u: %s %u", f.name, row, depth,
                             pass ? "depth" : "row", v);
            }
    if (!got) {
        struct buf b = buf_in(arena);
        diags_format(d, "sim_wgmma_layout", false, &b);
        tap_note("%s", buf_text(&b));
    }
    const bool fine = got && !wrong;
    arena_free(arena);
    return fine;
}

/* All places of a kind: compact; with gaps; a start inside of the swizzle's span; a pattern that
 * begins at an address that is not a multiple of its length. */
static void check(const struct device_at *at, unsigned bytes, enum what what, unsigned span,
                  bool mn)
{
    static const char *const how[] = {"compact", "with gaps", "with a start inside of the span",
                                      "with a base offset"};
    for (unsigned i = 0; i < 4; i++) {
        const unsigned n = what == OF_A ? 64 : i == 1 ? 80 : 128;
        const struct wg_form f = form_of(bytes, n);
        const uint32_t start = what == OF_A ? 0 : 20480;
        struct wg_place p = wg_place(span, mn, start, what == OF_A ? WG_ROWS : n);
        if (i == 1) {
            p.stride += span ? 1024 : 48;
            p.leading += !mn && span ? 0 : span ? 2048 : mn ? n / 8 * 48 + 16 : 16;
        } else if (i == 2) {
            if (mn || span < 64)
                continue;
            p.start += 32;
        } else if (i == 3) {
            if (span < 64)
                continue;
            p.start += 384;
            p.pattern = p.start;
        }
        ok(reads_right(at, f, what, p), "%s in %s, %u bytes each, span %u, %s",
           what == OF_A ? "A" : "B", mn ? "MN-major" : "K-major", bytes, span, how[i]);
    }
}

/* A in registers: D must show the same as from shared memory. */
static void check_registers(const struct device_at *at, unsigned bytes)
{
    struct arena *arena = arena_new();
    struct diags *d = diags_new(arena);
    struct wg_form f = form_of(bytes, 64);
    const struct wg_place unit = wg_place(0, false, 0, f.n);
    unsigned wrong = 0;
    f.a_registers = true;
    wg_name(&f);
    struct wg_cases x = wg_cases(arena, &f, 1);
    fill(&f, OF_A, &(struct wg_place){.start = 22528, .stride = 256, .leading = 128}, &unit, 0,
         x.image);
    for (unsigned i = 0; i < WG_ROWS; i++)
        for (unsigned k = 0; k < f.k; k++)
            wg_put_a(&f, x.a, i, k, whole(f.a, (i * 3 + k * 5) % 250));
    x.which[1] = wg_descriptor(&unit);
    const unsigned char *got = wg_run(arena, at->ops, at->dev, &f, &x, d);
    for (unsigned i = 0; got && i < WG_ROWS; i++)
        for (unsigned j = 0; j < f.n; j++)
            wrong += number_of(&f, got + wg_at_d(&f, i, j)) != (i * 3 + j % f.k * 5) % 250;
    ok(got && !wrong, "A in registers, %u bytes each", bytes);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--device=cpu") == 0)
        argc = 1;
    const bool cuda = argc == 2 && strcmp(argv[1], "--device=cuda") == 0;
    struct arena *arena = arena_new();
    struct device_at at = {.ops = cuda ? &cuda_device : &sim_device};
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        struct wg_form f = form_of(2, 64);
        fputs(wg_text(arena, &f), stdout);
        arena_free(arena);
        return 0;
    }
    if (argc > 1 && !cuda)
        return 2;
    at.dev = wg_open(arena, at.ops, diags_new(arena));
    if (!at.dev)
        return 77;
    for (unsigned span = 0; span <= 128; span = span ? 2 * span : 32)
        for (unsigned bytes = 1; bytes <= 4; bytes *= 2)
            for (enum what what = OF_A; what <= OF_B; what++)
                for (unsigned mn = 0; mn < (bytes == 2 ? 2 : 1); mn++)
                    check(&at, bytes, what, span, mn);
    for (unsigned bytes = 1; bytes <= 4; bytes *= 2)
        check_registers(&at, bytes);
    at.ops->close(at.dev);
    arena_free(arena);
    return tap_done();
}
