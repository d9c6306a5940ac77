/* One product by wgmma a block: PTX for a form of it, and where a matrix's elements go in shared
 * memory and registers. What is written here about layouts is taken from PTX ISA's figures, not
 * from lib/sim. */
#ifndef KAIO_TESTS_WGMMA_H
#define KAIO_TESTS_WGMMA_H

#include "numbers.h"
#include "sim.h"

enum { WG_THREADS = 128, WG_ROWS = 64, WG_K_MOST = 32, WG_N_MOST = 256, WG_IMAGE = 45056 };

struct wg_form {
    const struct number *a, *b, *d;
    unsigned n, k;
    unsigned nd; /* registers */
    bool a_registers, a_trans, b_trans, a_minus, b_minus, saturate;
    char name[96];
};

static struct wg_form wg_form(const char *d, const char *a, const char *b, unsigned n)
{
    struct wg_form f = {.a = number(a, strlen(a)), .b = number(b, strlen(b)), .n = n};
    f.d = number(d, strlen(d));
    f.k = 256 / f.a->bits;
    f.nd = n / (f.d->bits == 16 ? 4 : 2);
    return f;
}
static void wg_name(struct wg_form *f)
{
    snprintf(f->name, sizeof f->name, "m64n%uk%u%s.%s.%s.%s%s%s%s%s%s", f->n, f->k,
             f->saturate ? ".satfinite" : "", f->d->name, f->a->name, f->b->name,
             f->a_registers ? " A in registers" : "", f->a_trans ? " A^T" : "",
             f->b_trans ? " B^T" : "", f->a_minus ? " -A" : "", f->b_minus ? " -B" : "");
}

/* ---- PTX ------------------------------------------------------------------------------------- */

static void wg_registers(struct buf *b, const char *prefix, unsigned n)
{
    buf_puts(b, "{");
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "%s%%%s%u", i ? ", " : "", prefix, i);
    buf_puts(b, "}");
}

/* The instruction; scale-d is %p. */
static void wg_instruction(struct buf *b, const struct wg_form *f)
{
    buf_printf(b, "    wgmma.mma_async.sync.aligned.m64n%uk%u%s.%s.%s.%s ", f->n, f->k,
               f->saturate ? ".satfinite" : "", f->d->name, f->a->name, f->b->name);
    wg_registers(b, "d", f->nd);
    if (f->a_registers) {
        buf_puts(b, ", ");
        wg_registers(b, "a", 4);
    } else {
        buf_puts(b, ", %da");
    }
    buf_puts(b, ", %db, %p");
    if (f->a->exponent)
        buf_printf(b, ", %d, %d", f->a_minus ? -1 : 1, f->b_minus ? -1 : 1);
    if (f->a->bits == 16 && !f->a_registers)
        buf_printf(b, ", %d", f->a_trans);
    if (f->a->bits == 16)
        buf_printf(b, ", %d", f->b_trans);
    buf_puts(b, ";\n");
}

/* Block i puts its image into shared memory and multiplies what its two descriptors name there
 * (relative to it); the third word: scale-d. */
static const char *wg_text(struct arena *arena, const struct wg_form *f)
{
    struct buf b = buf_in(arena);
    const char *sum = f->d->bits == 32 && f->d->exponent ? "f32" : "b32";
    buf_printf(&b,
               ".version 8.4\n.target sm_90a\n.address_size 64\n"
               ".visible .entry wgmma(.param .u64 image, .param .u64 which, .param .u64 a, "
               ".param .u64 c, .param .u64 d)\n.maxntid 128, 1, 1\n{\n"
               "    .reg .b32 %%i, %%t, %%s, %%w, %%x<4>, %%a<4>;\n"
               "    .reg .b64 %%at, %%da, %%db, %%base, %%scale;\n    .reg .pred %%p, %%more;\n");
    buf_printf(&b, "    .reg .%s %%d<%u>;\n    .shared .align 1024 .b8 tile[%d];\n", sum, f->nd,
               WG_IMAGE);
    buf_printf(&b,
               "    mov.u32 %%i, %%ctaid.x;\n    mov.u32 %%t, %%tid.x;\n    mov.u32 %%s, tile;\n"
               "    ld.param.u64 %%at, [image];\n    mad.wide.u32 %%at, %%i, %d, %%at;\n"
               "    mad.wide.u32 %%at, %%t, 16, %%at;\n    mad.lo.u32 %%w, %%t, 16, %%s;\n"
               "    add.u32 %%s, %%s, %d;\n$copy:\n"
               "    ld.global.v4.b32 {%%x0, %%x1, %%x2, %%x3}, [%%at];\n"
               "    st.shared.v4.b32 [%%w], {%%x0, %%x1, %%x2, %%x3};\n"
               "    add.u64 %%at, %%at, 2048;\n    add.u32 %%w, %%w, 2048;\n"
               "    setp.lt.u32 %%more, %%w, %%s;\n    @%%more bra $copy;\n"
               "    fence.proxy.async;\n    bar.sync 0;\n    mov.u32 %%s, tile;\n"
               "    shr.u32 %%s, %%s, 4;\n    cvt.u64.u32 %%base, %%s;\n"
               "    ld.param.u64 %%at, [which];\n    mad.wide.u32 %%at, %%i, 24, %%at;\n"
               "    ld.global.u64 %%da, [%%at];\n    ld.global.u64 %%db, [%%at+8];\n"
               "    ld.global.u64 %%scale, [%%at+16];\n    add.u64 %%da, %%da, %%base;\n"
               "    add.u64 %%db, %%db, %%base;\n    setp.ne.u64 %%p, %%scale, 0;\n"
               "    mad.lo.u32 %%i, %%i, 128, %%t;\n",
               WG_IMAGE, WG_IMAGE);
    if (f->a_registers)
        buf_puts(&b, "    ld.param.u64 %at, [a];\n    mad.wide.u32 %at, %i, 16, %at;\n"
                     "    ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%at];\n");
    buf_printf(&b, "    ld.param.u64 %%at, [c];\n    mad.wide.u32 %%at, %%i, %u, %%at;\n",
               f->nd * 4);
    for (unsigned i = 0; i < f->nd; i++)
        buf_printf(&b, "    ld.global.%s %%d%u, [%%at+%u];\n", sum, i, i * 4);
    buf_puts(&b, "    wgmma.fence.sync.aligned;\n");
    wg_instruction(&b, f);
    buf_printf(&b,
               "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n"
               "    ld.param.u64 %%at, [d];\n    mad.wide.u32 %%at, %%i, %u, %%at;\n",
               f->nd * 4);
    for (unsigned i = 0; i < f->nd; i++)
        buf_printf(&b, "    st.global.%s [%%at+%u], %%d%u;\n", sum, i * 4, i);
    buf_puts(&b, "    ret;\n}\n");
    return buf_text(&b);
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* How a matrix lies in shared memory. pattern: where its swizzle's pattern begins. */
struct wg_place {
    unsigned span; /* bytes; 0: no swizzle */
    bool mn;
    uint32_t start, leading, stride, pattern;
};

static uint64_t wg_descriptor(const struct wg_place *p)
{
    const uint64_t mode = p->span == 128 ? 1 : p->span == 64 ? 2 : p->span == 32 ? 3 : 0;
    return p->start / 16 | (uint64_t)(p->leading / 16) << 16 | (uint64_t)(p->stride / 16) << 32 |
           (uint64_t)(p->pattern / 128 % 8) << 49 | mode << 62;
}

/* PTX ISA, "Swizzling Modes": chunk c of a line of 128 bytes is where chunk [line][c] would be. */
static const uint8_t wg_swizzle[3][8][8] = {
    {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}},
    {{0, 1, 2, 3, 4, 5, 6, 7},
     {1, 0, 3, 2, 5, 4, 7, 6},
     {2, 3, 0, 1, 6, 7, 4, 5},
     {3, 2, 1, 0, 7, 6, 5, 4}},
    {{0, 1, 2, 3, 4, 5, 6, 7},
     {1, 0, 3, 2, 5, 4, 7, 6},
     {2, 3, 0, 1, 6, 7, 4, 5},
     {3, 2, 1, 0, 7, 6, 5, 4},
     {4, 5, 6, 7, 0, 1, 2, 3},
     {5, 4, 7, 6, 1, 0, 3, 2},
     {6, 7, 4, 5, 2, 3, 0, 1},
     {7, 6, 5, 4, 3, 2, 1, 0}},
};

/* Where the element of so many bytes at row n (of M or N), depth k is. */
static uint32_t wg_offset(const struct wg_place *p, unsigned n, unsigned k, unsigned bytes)
{
    const unsigned x = (p->mn ? n : k) * bytes, y = p->mn ? k : n;
    uint32_t at = p->start;
    if (!p->span && !p->mn)
        at += y % 8 * 16 + y / 8 * p->stride + x % 16 + x / 16 * p->leading;
    else if (!p->span)
        at += y % 8 * 16 + y / 8 * p->leading + x % 16 + x / 16 * p->stride;
    else if (!p->mn)
        at += y % 8 * p->span + y / 8 * p->stride + x;
    else
        at += y % 8 * p->span + y / 8 * p->stride + x % p->span + x / p->span * p->leading;
    if (!p->span)
        return at;
    const unsigned mode = p->span / 64, lines = 2u << mode;
    const unsigned line = (at - p->pattern) / 128 % lines, chunk = at / 16 % 8;
    return at / 128 * 128 + wg_swizzle[mode][line][chunk] * 16u + at % 16;
}

/* A compact place of that kind for rows x 32 bytes of K. */
static struct wg_place wg_place(unsigned span, bool mn, uint32_t start, unsigned rows)
{
    struct wg_place p = {.span = span, .mn = mn, .start = start};
    if (!span && !mn) {
        p.leading = 128;
        p.stride = 256;
    } else if (!span) {
        p.stride = 128;
        p.leading = rows / 8 * 128;
    } else {
        p.stride = 8 * span;
        p.leading = mn ? 16 * span : 16;
    }
    return p;
}

/* ---- registers ------------------------------------------------------------------------------- */

/* Word w of thread t's, and the place in it, for row i of A, depth k. */
static void wg_put_a(const struct wg_form *f, unsigned char *to, unsigned i, unsigned k, uint64_t v)
{
    const unsigned per = 32 / f->a->bits, t = i / 16 * 32 + i % 8 * 4 + k / per % 4;
    const unsigned r = i % 16 / 8 + k / (4 * per) * 2;
    uint32_t w;
    memcpy(&w, to + (t * 4 + r) * 4, 4);
    w |= (uint32_t)(v << k % per * f->a->bits);
    memcpy(to + (t * 4 + r) * 4, &w, 4);
}

/* Where row i, column j of D is, in bytes. */
static size_t wg_at_d(const struct wg_form *f, unsigned i, unsigned j)
{
    const size_t t = i / 16 * 32 + i % 8 * 4 + j % 8 / 2, half = i % 16 / 8;
    if (f->d->bits == 16)
        return (t * f->nd + j / 8 * 2 + half) * 4 + j % 2 * 2;
    return (t * f->nd + j / 8 * 4 + half * 2 + j % 2) * 4;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* n blocks' worth of inputs. */
struct wg_cases {
    uint32_t n;
    unsigned char *image, *a, *c;
    uint64_t *which;
    size_t nd; /* bytes of D, each */
};

static struct wg_cases wg_cases(struct arena *arena, const struct wg_form *f, uint32_t n)
{
    struct wg_cases x = {.n = n, .nd = (size_t)WG_THREADS * f->nd * 4};
    x.image = ARENA_ARRAY(arena, (size_t)n * WG_IMAGE, unsigned char);
    x.a = ARENA_ARRAY(arena, (size_t)n * WG_THREADS * 16, unsigned char);
    x.c = ARENA_ARRAY(arena, n * x.nd, unsigned char);
    x.which = ARENA_ARRAY(arena, 3 * (size_t)n, uint64_t);
    return x;
}

static void wg_put(unsigned char *image, const struct wg_place *p, const struct number *t,
                   unsigned n, unsigned k, uint64_t v)
{
    memcpy(image + wg_offset(p, n, k, t->bits / 8), &v, t->bits / 8);
}

/* What the device makes of them; NULL: it can't. */
static unsigned char *wg_run(struct arena *arena, const struct device_ops *ops, struct device *dev,
                             const struct wg_form *f, const struct wg_cases *x, struct diags *d)
{
    const char *text = wg_text(arena, f);
    const struct source *src = source_new(arena, f->name, text, strlen(text));
    const size_t bytes[5] = {(size_t)x->n * WG_IMAGE, 24 * (size_t)x->n,
                             (size_t)x->n * WG_THREADS * 16, x->n * x->nd, x->n * x->nd};
    const void *from[5] = {x->image, x->which, x->a, x->c, NULL};
    unsigned char *result = ARENA_ARRAY(arena, bytes[4], unsigned char);
    uint64_t at[5];
    const void *arg[5];
    const size_t arg_bytes[5] = {8, 8, 8, 8, 8};
    const struct device_label label = {.name = "x", .type = ""};
    if (ops->load(dev, src, d) != DEVICE_OK)
        return NULL;
    for (int i = 0; i < 5; i++) {
        arg[i] = &at[i];
        if (ops->alloc(dev, bytes[i], &label, &at[i], d) != DEVICE_OK ||
            (from[i] && ops->write(dev, at[i], from[i], bytes[i], d) != DEVICE_OK))
            return NULL;
    }
    const struct device_launch l = {.entry = "wgmma",
                                    .grid = {x->n, 1, 1},
                                    .block = {WG_THREADS, 1, 1},
                                    .args = arg,
                                    .arg_bytes = arg_bytes,
                                    .narg = 5};
    struct device_stats stats;
    const bool fine = ops->launch(dev, &l, 1, &stats, d) == DEVICE_OK &&
                      ops->read(dev, result, at[4], bytes[4], d) == DEVICE_OK;
    for (int i = 0; i < 5; i++)
        ops->release(dev, at[i]);
    return fine ? result : NULL;
}

static struct device *wg_open(struct arena *arena, const struct device_ops *ops, struct diags *d)
{
    struct device *dev = NULL;
    const struct device_options options = {.threads = 2};
    return ops->count(d) > 0 && ops->open(arena, 0, &options, &dev, d) == DEVICE_OK ? dev : NULL;
}

#endif
