/* Random contractions: sums of products, and of other terms, in every layout and type, with what a
 * spec writes around them. */
#include <config.h>

#include "equations/generate.h"

#include "base/buf.h"
#include "kernels/random.h"

#include <inttypes.h>

enum { MOST_SUMS = 3, MOST_EXTENTS = 5 };

/* What the operands are, and the sums' own type. */
struct kind {
    const char *type, *wide; /* of elements, and of the factors that the sum multiplies */
    const char *out[3];
};

static const struct kind kinds[] = {
    {"f16", "f16", {"f16", "f32", "f16"}},     {"bf16", "bf16", {"bf16", "f32", "f16"}},
    {"f16", "f16", {"f16", "f32", "bf16"}},    {"f32", "f32", {"f32", "f32", "f16"}},
    {"f32", "tf32", {"f32", "f32", "bf16"}},   {"f64", "f64", {"f64", "f64", "f32"}},
    {"i8", "i32", {"i32", "i32", "f32"}},      {"u8", "i32", {"i32", "f32", "i32"}},
    {"e4m3", "e4m3", {"f32", "f16", "e4m3"}},  {"e5m2", "e5m2", {"f32", "bf16", "f16"}},
    {"i4", "f16", {"f16", "f32", "f16"}},      {"i8", "bf16", {"bf16", "f32", "f16"}},
    {"bf16", "bf16", {"bf16", "f32", "bf16"}}, {"f16", "f32", {"f32", "f16", "f32"}},
};

struct gen {
    struct arena *a;
    struct random r;
    const struct kind *kind;
    struct buf params, equations;
    int64_t size[MOST_EXTENTS]; /* b, m, n, k, g: batches, rows, columns, terms, groups of rows */
    const char
        *extent[MOST_EXTENTS];  /* as parameters have it: the letter, or an expression of it */
    int64_t name[MOST_EXTENTS]; /* what the letter is in the case */
    bool batch, used[MOST_EXTENTS];
    bool copied; /* operands are mostly read as they are, in whole vectors: what TMA takes */
    unsigned names;
};

static const char letters[] = "bmnkg", indices[] = "hijl";

static unsigned below(struct gen *g, unsigned n)
{
    return random_below(&g->r, n);
}

static bool one_in(struct gen *g, unsigned n)
{
    return random_one_in(&g->r, n);
}

#define PICK(g, ...) pick(g, (const char *const[]){__VA_ARGS__, NULL})
static const char *pick(struct gen *g, const char *const *of)
{
    unsigned n = 0;
    while (of[n])
        n++;
    return of[below(g, n)];
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* A parameter over the axes, letters of b, m, n and k, and its element there: "x3[i, l]". */
static const char *element(struct gen *g, const char *mode, const char *type, const char *axes)
{
    const char *name = arena_printf(g->a, "x%u", g->names++);
    struct buf read = buf_in(g->a);
    buf_printf(&g->params, "  %s: %s %s[", name, mode, type);
    buf_puts(&read, name);
    for (const char *c = axes; *c; c++) {
        const char *first = strchr(letters, *c);
        buf_printf(&g->params, "%s%s", c == axes ? "" : ", ", g->extent[first - letters]);
        buf_printf(&read, "%s%c", c == axes ? "[" : ", ", indices[first - letters]);
        g->used[first - letters] = true;
    }
    buf_puts(&g->params, "]\n");
    buf_puts(&read, *axes ? "]" : "");
    return buf_text(&read);
}

/* The text with every occurrence of what replaced. */
static const char *replaced(struct gen *g, const char *text, const char *what, const char *with)
{
    struct buf b = buf_in(g->a);
    for (const char *at; (at = strstr(text, what)); text = at + strlen(what)) {
        buf_printf(&b, "%.*s", (int)(at - text), text);
        buf_puts(&b, with);
    }
    buf_puts(&b, text);
    return buf_text(&b);
}

static bool is_int(const struct gen *g)
{
    return strcmp(g->kind->wide, "i32") == 0;
}

static bool is_byte(const char *type)
{
    return *type == 'i' || *type == 'u' || *type == 'e';
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Where the element comes from, if not simply from its own place. side: m or n. */
static const char *moved(struct gen *g, const char *e, char side)
{
    const char *own = side == 'm' ? "[i" : "[j", *second = side == 'm' ? ", i" : ", j";
    switch (below(g, 6)) {
    case 0: {
        const char *back = arena_printf(g->a, "%s - 1 - l", g->extent[3]);
        return replaced(g, replaced(g, e, ", l]", arena_printf(g->a, ", %s]", back)), "[l,",
                        arena_printf(g->a, "[%s,", back));
    }
    case 1: {
        /* the element before, and a zero before the first */
        const char *shifted = replaced(g, replaced(g, e, ", l]", ", l - 1]"), "[l,", "[l - 1,");
        return strcmp(shifted, e) != 0 ? arena_printf(g->a, "pad(%s, 0)", shifted) : e;
    }
    case 2:
        return replaced(g, replaced(g, e, own, arena_printf(g->a, "%s / 2", own)), second,
                        arena_printf(g->a, "%s / 2", second));
    case 3: {
        const char *ids = element(g, "in", "i32", side == 'm' ? "m" : "n");
        return replaced(g, replaced(g, e, own, arena_printf(g->a, "[%s", ids)), second,
                        arena_printf(g->a, ", %s", ids));
    }
    default: return e;
    }
}

/* What is done to an element before it is multiplied. */
static const char *prologue(struct gen *g, const char *e, char side)
{
    const char rows[] = {side, 0};
    const char *type = g->kind->type;
    if (is_int(g) || strcmp(type, "e4m3") == 0 || strcmp(type, "e5m2") == 0)
        return e;
    switch (below(g, 9)) {
    case 0: return arena_printf(g->a, "%s * 0.5", e);
    case 1: return arena_printf(g->a, "relu(%s)", e);
    case 2: return arena_printf(g->a, "%s * %s", e, element(g, "in", "f32", rows));
    case 3: return arena_printf(g->a, "%s * %s", e, element(g, "in", PICK(g, "f16", "f32"), "k"));
    case 4: return arena_printf(g->a, "(l <= %s ? %s : 0)", side == 'm' ? "i" : "j", e);
    case 5: {
        const char axes[] = {side, 'k', 0};
        return arena_printf(g->a, "(%s ? %s : 0)", element(g, "in", "bool", axes), e);
    }
    case 6: return arena_printf(g->a, "silu(f32(%s))", e);
    case 7: {
        /* a scale for each group of terms */
        const char *s = element(g, "in", "f16", arena_printf(g->a, "k%c", side));
        return arena_printf(g->a, "%s * %s", e, replaced(g, s, "[l,", "[l / 16,"));
    }
    default: return e;
    }
}

static const char *operand(struct gen *g, char side)
{
    const struct kind *kind = g->kind;
    struct buf axes = buf_in(g->a);
    const bool bytes = g->copied && is_byte(g->kind->type); /* along the terms alone */
    bool last = bytes || one_in(g, 2), batched = g->batch && (side == 'm' || !one_in(g, 3));
    if (batched && !one_in(g, 5))
        buf_puts(&axes, "b");
    buf_printf(&axes, last ? "%ck" : "k%c", side);
    if (batched && !strchr(buf_text(&axes), 'b'))
        buf_puts(&axes, "b");
    const char *e = element(g, "in", kind->type, buf_text(&axes)), *plain = e;
    if (one_in(g, g->copied ? 20 : 4))
        e = moved(g, e, side);
    if (one_in(g, g->copied ? 20 : 3))
        e = prologue(g, e, side);
    if (strcmp(kind->wide, "tf32") == 0 || is_int(g))
        return arena_printf(g->a, "%s(%s)", kind->wide, e);
    bool narrow = strcmp(kind->type, kind->wide) == 0 && e == plain;
    return narrow ? e : arena_printf(g->a, "%s(%s)", kind->wide, e);
}

/* Of terms that are made of both, but no products. */
static const char *pairs_of(struct gen *g, const char *l, const char *a, const char *b)
{
    switch (below(g, 6)) {
    case 0: return arena_printf(g->a, "sum[%s](abs(%s - %s))", l, a, b);
    case 1: return arena_printf(g->a, "sum[%s]((%s - %s) * (%s - %s))", l, a, b, a, b);
    case 2: return arena_printf(g->a, "min[%s](%s + 2 * %s)", l, a, b);
    case 3: return arena_printf(g->a, "max[%s](abs(%s - %s))", l, b, a);
    case 4: return arena_printf(g->a, "sum[%s](%s < %s ? %s : %s)", l, a, b, b, a);
    default: return arena_printf(g->a, "sum[%s](max(%s, %s) - 1)", l, a, b);
    }
}

static const char *sum_of(struct gen *g, const char *a, const char *b)
{
    const char *both = arena_printf(g->a, "%s%s", a, b);
    bool bare = strstr(both, "[l,") || strstr(both, ", l]") || strstr(both, ", l,");
    const char *l = bare && !one_in(g, 3) ? "l" : arena_printf(g->a, "l < %s", g->extent[3]);
    if (one_in(g, 6))
        return pairs_of(g, l, a, b);
    switch (below(g, is_int(g) ? 4 : 7)) {
    case 0: return arena_printf(g->a, "sum[%s](%s * %s)", l, b, a);
    case 4: return arena_printf(g->a, "sum[%s](%s * %s * 0.25)", l, a, b);
    case 5: return arena_printf(g->a, "sum[%s](-(%s * %s))", l, a, b);
    default: return arena_printf(g->a, "sum[%s](%s * %s)", l, a, b);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

static const char *epilogue(struct gen *g, const char *e)
{
    const char *all = g->batch ? "bmn" : "mn";
    for (unsigned n = below(g, 4); n > 0; n--)
        switch (below(g, 11)) {
        case 0: e = arena_printf(g->a, "(%s + %s)", e, element(g, "in", "f32", "n")); break;
        case 1: e = arena_printf(g->a, "(%s + %s)", e, element(g, "in", "f16", "m")); break;
        case 2: e = arena_printf(g->a, "%s * s", e); break;
        case 3: e = arena_printf(g->a, "%s(%s)", PICK(g, "relu", "abs"), e); break;
        case 4:
            if (!is_int(g))
                e = arena_printf(g->a, "%s(%s)", PICK(g, "silu", "gelu", "tanh"), e);
            break;
        case 5: e = arena_printf(g->a, "(%s + %s)", e, element(g, "in", "bf16", all)); break;
        case 6: e = arena_printf(g->a, "%s * %s", e, element(g, "in", "f32", "n")); break;
        case 7: e = arena_printf(g->a, "(j <= i ? %s : -1)", e); break;
        case 8: e = arena_printf(g->a, "%s * %s", e, element(g, "in", "f32", "m")); break;
        case 9: e = arena_printf(g->a, "clamp(%s, -20, 20)", e); break;
        default: e = arena_printf(g->a, "(%s + %s)", e, element(g, "in", "f16", "nm")); break;
        }
    return e;
}

static void equation(struct gen *g, const char *left, const char *type, const char *right)
{
    bool is_float = type && (*type == 'f' || *type == 'b' || *type == 'e');
    buf_printf(&g->equations, type && !is_float ? "  %s = %s(%s)\n" : "  %s = %.0s%s\n", left,
               type ? type : "", right);
}

/* An output over the results' axes, which may be in another order. */
static void output(struct gen *g, const char *right)
{
    const char *type = g->kind->out[below(g, 3)], *axes = g->batch ? "bmn" : "mn";
    if (one_in(g, 5))
        axes = g->batch ? PICK(g, "bnm", "mbn", "mnb") : "nm";
    bool inout = one_in(g, 8) && !is_int(g);
    const char *left = element(g, inout ? "inout" : "out", type, axes);
    if (inout)
        right = arena_printf(g->a, "%s + 0.5 * %s", right, left);
    equation(g, left, type, right);
}

static const char *intermediate(struct gen *g, const char *right)
{
    const char *batch = g->batch ? arena_printf(g->a, "h < %s, ", g->extent[0]) : "";
    const char *left =
        arena_printf(g->a, "t%u[%si < %s, j < %s]", g->names, batch, g->extent[1], g->extent[2]);
    equation(g, left, NULL, right);
    return arena_printf(g->a, g->batch ? "t%u[h, i, j]" : "t%u[i, j]", g->names++);
}

static void results(struct gen *g)
{
    const char *a = operand(g, 'm'), *b = operand(g, 'n'), *s = sum_of(g, a, b);
    switch (below(g, 8)) {
    case 0: /* several products of the same rows */
        for (unsigned n = 1 + below(g, MOST_SUMS - 1); n > 0; n--)
            output(g, epilogue(g, sum_of(g, a, operand(g, 'n'))));
        output(g, epilogue(g, s));
        break;
    case 1: { /* two that become one */
        const char *gate = intermediate(g, sum_of(g, a, operand(g, 'n')));
        const char *up = one_in(g, 2) ? intermediate(g, s) : s;
        output(g, arena_printf(g->a, "%s * %s",
                               is_int(g) ? gate : arena_printf(g->a, "silu(%s)", gate), up));
        break;
    }
    case 2: { /* one that becomes two */
        const char *t = intermediate(g, s);
        output(g, epilogue(g, t));
        output(g, epilogue(g, t));
        break;
    }
    case 3: { /* of the same columns */
        output(g, epilogue(g, s));
        output(g, sum_of(g, operand(g, 'm'), b));
        break;
    }
    case 4: { /* and something else of the result */
        const char *t = intermediate(g, s);
        output(g, epilogue(g, t));
        const char *left = element(g, "out", "f32", g->batch ? "bm" : "m");
        equation(g, left, "f32", arena_printf(g->a, "max[j](%s)", t));
        break;
    }
    default: output(g, epilogue(g, s)); break;
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int64_t size(struct gen *g)
{
    static const int64_t edges[] = {1,  2,  7,  8,  15,  16,  17,  24,  31,  32,  33, 48,
                                    63, 64, 65, 96, 127, 128, 129, 130, 160, 256, 257};
    if (one_in(g, 3))
        return 1 + below(g, 300);
    return edges[below(g, sizeof edges / sizeof *edges)];
}

/* Within what the simulator does in a second; one at most is 0. */
static const char *sizes(struct gen *g)
{
    g->batch = one_in(g, 4);
    g->size[0] = g->batch ? 1 + below(g, 3) : 1;
    for (;;) {
        double work = (double)g->size[0];
        for (int d = 1; d < 4; d++)
            work *= (double)(g->size[d] = size(g));
        if (work <= 1.5e6)
            break;
    }
    /* whole vectors, or an odd length, as often as any other */
    const int whole = g->copied ? 16 : 8;
    if (g->copied ? !one_in(g, 4) : one_in(g, 3))
        for (int d = 1; d < 4; d++)
            g->size[d] = (g->size[d] + whole - 1) / whole * whole;
    if (strcmp(g->kind->type, "i4") == 0) /* whose rows are whole bytes */
        for (int d = 0; d < 4; d++)
            g->size[d] += g->size[d] & 1;
    if (!one_in(g, 30))
        return NULL;
    int d = 1 + (int)below(g, 3);
    g->size[d] = 0;
    return arena_printf(g->a, "%c", letters[d]);
}

/* Some are expressions; of i4 none, whose rows must be known to be whole bytes. */
static void write_extents(struct gen *g)
{
    const bool some = strcmp(g->kind->type, "i4") != 0 && one_in(g, 3);
    for (int d = 0; d < MOST_EXTENTS; d++) {
        const char *name = arena_printf(g->a, "%c", letters[d]);
        g->name[d] = g->size[d] ? g->size[d] : 1;
        g->extent[d] = some && g->size[d] && one_in(g, 2)
                           ? generate_extent(g->a, &g->r, name, g->size[d], &g->name[d])
                           : name;
    }
}

static bool has_wgmma(const struct gen *g)
{
    const char *type = g->kind->type, *wide = g->kind->wide;
    return strcmp(type, "i4") != 0 && (strcmp(type, wide) == 0 || is_int(g)) &&
           strcmp(wide, "f32") != 0 && strcmp(wide, "f64") != 0;
}

/* By wgmma; half of the numbers are chosen by the emitter. */
static const char *wgmma_schedule(struct gen *g)
{
    const unsigned bits = is_byte(g->kind->type) ? 8 : strcmp(g->kind->type, "f32") == 0 ? 32 : 16;
    struct buf b = buf_in(g->a);
    buf_puts(&b, "{strategy: matmul, mma: wgmma");
    if (!one_in(g, 3))
        buf_printf(&b, ", tile: [%s, %s, %u]", PICK(g, "64", "128", "192", "256"),
                   PICK(g, "16", "24", "32", "64", "64", "96", "128", "128", "192", "256"),
                   1024 / bits * (1 + one_in(g, 4)));
    if (one_in(g, 3))
        buf_printf(&b, ", stages: %u", 2 + below(g, 5));
    if (one_in(g, 2))
        buf_printf(&b, ", cluster: %s", PICK(g, "1", "2", "[1, 2]", "[2, 2]"));
    switch (below(g, 6)) {
    case 0: buf_puts(&b, ", pingpong: yes"); break;
    case 1: buf_printf(&b, ", split: %u", 2 + below(g, 3)); break;
    case 2: buf_printf(&b, ", blocks: %u", 1 + below(g, 5)); break;
    case 3: buf_printf(&b, ", group: %u", 1 + below(g, 3)); break;
    default: break;
    }
    buf_putc(&b, '}');
    return buf_text(&b);
}

static const char *schedule(struct gen *g, unsigned sm)
{
    switch (below(g, 8)) {
    case 0: return "{strategy: matmul, mma: none}";
    case 1:
        return sm >= 80 && strcmp(g->kind->type, "f32") == 0 ? "{strategy: matmul, mma: tf32x3}"
                                                             : "{strategy: matmul}";
    case 2: return sm >= 89 ? "{strategy: matmul, mma: fp8}" : "{strategy: matmul}";
    case 3: return arena_printf(g->a, "{strategy: matmul, split: %u}", 1 + below(g, 5));
    case 4: return arena_printf(g->a, "{strategy: matmul, stages: %u}", 1 + below(g, 5));
    case 5:
        return arena_printf(g->a, "{strategy: matmul, tile: [%s, %s, %s]}",
                            PICK(g, "16", "32", "64", "128"), PICK(g, "32", "64", "128"),
                            PICK(g, "8", "16", "32", "64"));
    case 6:
        return arena_printf(g->a, "{strategy: matmul, tile: [64, 64, 32], warps: [%s, %s]}",
                            PICK(g, "1", "2", "4"), PICK(g, "1", "2"));
    default: return arena_printf(g->a, "{strategy: matmul, group: %u}", 1 + below(g, 8));
    }
}

struct generated generate_contraction(struct arena *a, const char *name,
                                      const struct ptx_target *target, uint64_t seed,
                                      uint64_t number)
{
    const bool wgmma = target->sm == 90 && target->suffix == 'a';
    struct gen *g = ARENA_NEW(a, struct gen);
    *g = (struct gen){.a = a, .r = random_start(seed ^ 0x6d6d, number)};
    g->params = buf_in(a);
    g->equations = buf_in(a);
    g->kind = &kinds[below(g, sizeof kinds / sizeof *kinds)];
    g->copied = wgmma && !one_in(g, 4);
    struct generated made = {.zero = sizes(g)};
    write_extents(g);
    results(g);
    struct buf b = buf_in(a);
    buf_printf(&b, "kernel: %s\nparams:\n%s  s: %s\ncompute: |\n%s", name, buf_text(&g->params),
               is_int(g) ? "i32" : "f32", buf_text(&g->equations));
    if (one_in(g, wgmma ? 2 : 4)) {
        made.scheduled = true;
        buf_printf(&b, "schedule: %s\n",
                   g->copied && has_wgmma(g) && !one_in(g, 6) ? wgmma_schedule(g)
                                                              : schedule(g, target->sm));
    }
    buf_puts(&b, "cases:\n  c: {");
    bool filter = false;
    for (int d = 0; d < 4; d++)
        if (g->used[d]) {
            buf_printf(&b, "%c: %" PRId64 ", ", letters[d], g->name[d]);
            filter |= strstr(g->extent[d], GENERATE_FILTER " ") != NULL;
        }
    buf_printf(&b, "%ss: %s}\n", filter ? GENERATE_FILTER ": 3, " : "",
               is_int(g)      ? "3"
               : one_in(g, 2) ? "0.75"
                              : "-1.5");
    made.text = buf_text(&b);
    return made;
}
