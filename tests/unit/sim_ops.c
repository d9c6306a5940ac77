/* Every instruction form against values computed elsewhere: tests/ptx-run/ops.txt, written by
 * make_ops.py.
 *
 *     sim_ops              the simulator, as 'make check' runs it
 *     sim_ops --print      the PTX
 *     sim_ops --cuda       the same on the first GPU; differences are shown, and how far
 *                          approximations are off
 */
#include <config.h>

#include "sim.h"
#include "sim/sim.h"

enum { MAX_OPERANDS = 5 };

struct set {
    char name[64];
    unsigned width[MAX_OPERANDS], nwidth;
    uint64_t *row; /* n x nwidth */
    size_t n;
};

struct form {
    char entry[64], set[64];
    unsigned width;
    double ulp, off;
    char *text;
    uint64_t *want;
    size_t n;
};

static struct arena *arena;
static int shown = 8; /* differences of a form */
static VEC(struct set) sets;
static VEC(struct form) forms;
static VEC(uint64_t) numbers; /* of what is being read */

static const struct set *find_set(const char *name)
{
    for (size_t i = 0; i < sets.n; i++)
        if (strcmp(sets.v[i].name, name) == 0)
            return &sets.v[i];
    abort();
}

static void keep_numbers(void)
{
    if (forms.n) {
        struct form *f = &forms.v[forms.n - 1];
        f->want = numbers.v;
        f->n = numbers.n;
    } else if (sets.n) {
        struct set *s = &sets.v[sets.n - 1];
        s->row = numbers.v;
        s->n = numbers.n / s->nwidth;
    }
    memset(&numbers, 0, sizeof numbers);
}

static void read_set(const char *line)
{
    struct set *s = VEC_PUSH(arena, &sets);
    int at = 0, more;
    sscanf(line, "set %63s%n", s->name, &at);
    while (s->nwidth < MAX_OPERANDS &&
           sscanf(line + at, "%u%n", &s->width[s->nwidth], &more) == 1) {
        s->nwidth++;
        at += more;
    }
}

static void read_ops(const char *text)
{
    for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        const char *copy = arena_strndup(arena, line, (size_t)(end - line));
        if (*copy == '#')
            continue;
        if (strncmp(copy, "set ", 4) == 0) {
            keep_numbers();
            read_set(copy);
        } else if (strncmp(copy, "form ", 5) == 0) {
            keep_numbers();
            struct form *f = VEC_PUSH(arena, &forms);
            f->text = arena_strdup(arena, "");
            sscanf(copy, "form %63s %63s %u %lf %lf", f->entry, f->set, &f->width, &f->ulp,
                   &f->off);
        } else if (strncmp(copy, ": ", 2) == 0) {
            struct form *f = &forms.v[forms.n - 1];
            f->text = arena_printf(arena, "%s    %s\n", f->text, copy + 2);
        } else {
            char *p = arena_strdup(arena, copy), *next;
            for (uint64_t v = strtoull(p, &next, 16); next != p; v = strtoull(p, &next, 16)) {
                *VEC_PUSH(arena, &numbers) = v;
                p = next;
            }
        }
    }
    keep_numbers();
}

/* One entry: thread i reads operands 8 bytes apart, executes the form, and writes 8 bytes. */
static void print_entry(const struct form *f, struct buf *b)
{
    const struct set *s = find_set(f->set);
    buf_printf(b, "\n.visible .entry %s(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n",
               f->entry);
    buf_puts(b,
             "    .reg .pred %p, %q;\n    .reg .b32 %t, %x, %y, %z;\n    .reg .b64 %i, %o, %w;\n");
    buf_printf(b, "    .reg .b%u %%d;\n", f->width < 16 ? 16 : f->width);
    for (unsigned k = 0; k < s->nwidth; k++)
        buf_printf(b, "    .reg .b%u %%s%u;\n", s->width[k] < 16 ? 16 : s->width[k], k);
    buf_puts(b,
             "    ld.param.u64 %i, [in];\n    ld.param.u64 %o, [out];\n    ld.param.u32 %t, [n];\n"
             "    cvta.to.global.u64 %i, %i;\n    cvta.to.global.u64 %o, %o;\n"
             "    mov.u32 %x, %ctaid.x;\n    mov.u32 %y, %ntid.x;\n    mov.u32 %z, %tid.x;\n"
             "    mad.lo.u32 %x, %x, %y, %z;\n    setp.ge.u32 %p, %x, %t;\n    @%p ret;\n");
    buf_printf(b, "    mad.wide.u32 %%i, %%x, %u, %%i;\n    mad.wide.u32 %%o, %%x, 8, %%o;\n",
               8 * s->nwidth);
    for (unsigned k = 0; k < s->nwidth; k++)
        buf_printf(b, "    ld.global.b%u %%s%u, [%%i+%u];\n", s->width[k], k, 8 * k);
    buf_printf(b, "%s    st.global.b%u [%%o], %%d;\n    ret;\n}\n", f->text, f->width);
}

static const char *whole_module(void)
{
    struct buf b = buf_in(arena);
    buf_puts(&b, ".version 8.6\n.target sm_90\n.address_size 64\n");
    for (size_t i = 0; i < forms.n; i++)
        print_entry(&forms.v[i], &b);
    return buf_text(&b);
}

/* Floats in the order of their values, so that a difference counts steps. */
static double f32_steps(uint64_t a, uint64_t b)
{
    const int64_t x = a & 0x80000000 ? -(int64_t)(a & 0x7fffffff) : (int64_t)a;
    const int64_t y = b & 0x80000000 ? -(int64_t)(b & 0x7fffffff) : (int64_t)b;
    return fabs((double)(x - y));
}

static double f32_apart(uint64_t a, uint64_t b)
{
    const uint32_t u[2] = {(uint32_t)a, (uint32_t)b};
    float x[2];
    memcpy(x, u, sizeof x);
    return fabs((double)x[0] - (double)x[1]);
}

/* How many results are wrong; notes the first few. */
static int compare(const struct form *f, const uint64_t *got)
{
    const struct set *s = find_set(f->set);
    int bad = 0;
    double worst = 0;
    for (size_t i = 0; i < f->n; i++) {
        const double off = f->ulp > 0 ? f32_steps(got[i], f->want[i]) : got[i] != f->want[i];
        worst = off > worst ? off : worst;
        if (off <= f->ulp || (f->ulp > 0 && f32_apart(got[i], f->want[i]) <= f->off) ||
            bad++ >= shown)
            continue;
        struct buf b = buf_in(arena);
        for (unsigned k = 0; k < s->nwidth; k++)
            buf_printf(&b, " %" PRIx64, s->row[i * s->nwidth + k]);
        tap_note("%s of%s gave %" PRIx64 ", want %" PRIx64, f->entry, buf_text(&b), got[i],
                 f->want[i]);
    }
    if (f->ulp > 0 && bad)
        tap_note("worst: %g ulp", worst);
    return bad;
}

static enum device_status run(const struct device_ops *ops, struct device *dev, struct diags *d,
                              const struct form *f, uint64_t *got)
{
    const struct set *s = find_set(f->set);
    uint64_t in = 0, out = 0;
    const uint32_t n = (uint32_t)s->n;
    const size_t bytes = s->n * s->nwidth * 8;
    enum device_status st = DEVICE_FAILED;
    if (ops->alloc(dev, bytes, NULL, &in, d) == DEVICE_OK &&
        ops->alloc(dev, f->n * 8, NULL, &out, d) == DEVICE_OK &&
        ops->write(dev, in, s->row, bytes, d) == DEVICE_OK &&
        ops->write(dev, out, got, f->n * 8, d) == DEVICE_OK) {
        const void *args[] = {&in, &out, &n};
        const size_t sizes[] = {8, 8, 4};
        const struct device_launch l = {.entry = f->entry,
                                        .grid = {(n + 63) / 64, 1, 1},
                                        .block = {64, 1, 1},
                                        .args = args,
                                        .arg_bytes = sizes,
                                        .narg = 3};
        struct device_stats stats;
        st = ops->launch(dev, &l, 1, &stats, d);
        if (st == DEVICE_OK)
            st = ops->read(dev, got, out, f->n * 8, d);
    }
    ops->release(dev, in);
    ops->release(dev, out);
    return st;
}

static void test(const struct device_ops *ops, bool baseline)
{
    struct diags *d = diags_new(arena);
    struct device *dev;
    const char *ptx = whole_module();
    const struct source *src = source_new(arena, "ops.ptx", ptx, strlen(ptx));
    if (!ok(ops->open(arena, 0, NULL, &dev, d) == DEVICE_OK && ops->load(dev, src, d) == DEVICE_OK,
            "the module loads")) {
        struct buf b = buf_in(arena);
        diags_format(d, "sim_ops", false, &b);
        tap_note("%s", buf_text(&b));
        return;
    }
    if (baseline)
        sim_use_baseline(dev);
    for (size_t i = 0; i < forms.n; i++) {
        const struct form *f = &forms.v[i];
        uint64_t *got = ARENA_ARRAY(arena, f->n, uint64_t);
        struct diags *mine = diags_new(arena);
        int bad = -1;
        if (find_set(f->set)->n != f->n)
            tap_note("%s: as many results as operands are needed", f->entry);
        else if (run(ops, dev, mine, f, got) == DEVICE_OK)
            bad = compare(f, got);
        if (mine->list.n)
            tap_note("%s", mine->list.v[0].text);
        eq_int(bad, 0, "%s%s", f->entry, baseline ? " (baseline)" : "");
    }
    ops->close(dev);
}

int main(int argc, char **argv)
{
    arena = arena_new();
    struct diags *d = diags_new(arena);
    const char *dir = getenv("KAIO_SRCDIR");
    const char *path = arena_printf(arena, "%s/tests/ptx-run/ops.txt", dir ? dir : ".");
    const struct source *src = io_read(arena, d, path, (size_t)16 << 20);
    if (!src)
        return 2;
    read_ops(src->text);
    if (argc > 1)
        shown = 1000;
    if (argc > 1 && strcmp(argv[1], "--print") == 0)
        fputs(whole_module(), stdout);
    else if (argc > 1 && strcmp(argv[1], "--cuda") == 0)
        test(&cuda_device, false);
    else
        for (int baseline = 0; baseline < 2; baseline++)
            test(&sim_device, baseline);
    arena_free(arena);
    return argc > 1 && strcmp(argv[1], "--print") == 0 ? 0 : tap_done();
}
