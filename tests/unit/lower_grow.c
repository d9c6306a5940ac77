/* The time that emission takes, as the input grows: about linear, so that nobody waits for a long
 * text. Each kind of text is emitted at two sizes, one four times the other; the exponent between
 * the two is what is judged. The processor's time is taken, the least of a few, and what takes less
 * than LITTLE seconds is not compared with anything. A pass that doubles its work with every level
 * would take years at these sizes: the alarm ends the test.
 */
#include <config.h>

#include "lower/lower.h"
#include "ptx/ptx.h"
#include "tap.h"

#include <time.h>
#include <unistd.h>

#define LITTLE   0.02
#define STEEPEST 2.3
enum { SECONDS = 120, TRIES = 3, FACTOR = 4 };

/* first, n times piece, middle, n times close, tail. In them # is a piece's number, @ the number
 * before and $ the last. */
struct kind {
    const char *name;
    unsigned n;
    const char *params, *first, *piece, *middle, *close, *tail;
};

#define VECTORS  "x: in f32[n]\n  ids: in i32[n]\n  y: out f32[n]"
#define MATRICES "a: in f32[n, n]\n  b: in f32[n, n]\n  y: out f32[n, n]"
#define ROWS     "a: in f32[n, n]\n  y: out f32[n]"

static const struct kind equations[] = {
    {"divisions in a subscript", 100, VECTORS, "y[i] = x[i", " / 2", "]", "", ""},
    {"divisions by a dimension", 100, VECTORS "\n  z: in f32[m]", "y[i] = x[i", " / m", "]", "",
     ""},
    {"sums in a subscript", 100, VECTORS, "y[i] = x[(i", " + i", ") / 1000]", "", ""},
    {"products in a subscript", 100, VECTORS, "y[i] = x[(i", " * 3", ") % 7]", "", ""},
    {"rests in a subscript", 100, VECTORS, "y[i] = x[i", " % 97", "]", "", ""},
    {"brackets and divisions in a subscript", 45, VECTORS, "y[i] = x[", "(", "i", " / 2 + 1)", "]"},
    {"choices in a subscript", 45, VECTORS, "y[i] = x[", "i > 3 ? i - 1 : ", "i", "", "]"},
    {"choices between choices", 45, VECTORS, "y[i] = x[", "(", "i", " > 3 ? i / 2 : i + 2)", "]"},
    {"gathers within gathers", 22, VECTORS, "y[i] = x[", "(ids[", "i", "] + 1) / 2", "]"},
    {"casts in a subscript", 22, VECTORS, "y[i] = x[", "i32(u32(", "i", " / 2))", "]"},
    {"choices", 45, VECTORS, "y[i] = ", "x[i] > 1.0 ? 2.0 : ", "x[i]", "", ""},
    {"choices of choices", 45, VECTORS, "y[i] = ", "(", "x[i]", " > 1.0 ? x[i / 2] : 1.0)", ""},
    {"brackets", 45, VECTORS, "y[i] = ", "(", "x[i]", ")", ""},
    {"pads in pads", 45, VECTORS, "y[i] = ", "pad(x[i + 1], ", "0.0", ")", ""},
    {"calls in calls", 45, VECTORS, "y[i] = ", "exp(", "x[i]", ")", ""},
    {"sums of reads", 100, VECTORS, "y[i] = 0.0", " + x[(i + #) % n]", "", "", ""},
    {"conditions", 100, VECTORS, "y[i] = x[i] > 1.0", " && x[i] > #.5", " ? 1.0 : 0.0", "", ""},
    {"intermediates of intermediates", 45, VECTORS, "t0[i] = x[i]\n", "  t#[i] = t@[i] + 1.0\n",
     "  y[i] = t$[i]", "", ""},
    {"intermediates that are used twice", 45, VECTORS, "t0[i] = x[i]\n",
     "  t#[i] = t@[i] + t@[i]\n", "  y[i] = t$[i]", "", ""},
    {"twice in a row", 45, ROWS, "t0[i < n, j < n] = a[i, j]\n",
     "  t#[i < n, j < n] = t@[i, j] + t@[i, j]\n", "  y[i] = sum[l](t$[i, l])", "", ""},
    {"twice in a product", 45, MATRICES, "t0[i < n, j < n] = a[i, j]\n",
     "  t#[i < n, j < n] = t@[i, j] + t@[j, i]\n", "  y[i, j] = sum[l](t$[i, l] * b[l, j])", "",
     ""},
    {"sums in a row", 30, ROWS, "t0[i] = sum[j](a[i, j])\n",
     "  t#[i] = t@[i] * sum[j](a[i, j] * #.0)\n", "  y[i] = t$[i]", "", ""},
    {"factors of a product", 100, MATRICES, "y[i, j] = sum[l](", "(a[i, l] + 1.0) * ", "b[l, j])",
     "", ""},
    {"terms of a product", 60, MATRICES, "y[i, j] = sum[l](0.0", " + a[i, l] * b[l, j]", ")", "",
     ""},
    {"products", 30, MATRICES, "y[i, j] = 0.0", " + sum[l](a[i, l] * b[l, j])", "", "", ""},
};

#define BODY                                                                            \
    "u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n  f32 s = " \
    "x[i];\n  "

static const struct kind bodies[] = {
    {"statements", 400, VECTORS, BODY, "s = s * 1.5f + 2.0f;\n  ", "y[i] = s;", "", ""},
    {"ifs", 300, VECTORS, BODY, "if (s > 1.0f) s = s * 1.5f;\n  ", "y[i] = s;", "", ""},
    {"ifs in ifs", 45, VECTORS, BODY, "if (s > 1.0f) {\n  ", "s = 2.0f;\n  ", "}\n  ", "y[i] = s;"},
    {"loops", 200, VECTORS, BODY, "for (u32 j = 0; j < n; j++) { s = s + x[j]; }\n  ", "y[i] = s;",
     "", ""},
    {"loops in loops", 45, VECTORS, BODY, "for (u32 j# = 0; j# < n; j#++) {\n  ",
     "s = s + 1.0f;\n  ", "}\n  ", "y[i] = s;"},
    {"variables", 300, VECTORS, BODY "f32 v0 = s;\n  ", "f32 v# = v@ + v@;\n  ", "y[i] = v$;", "",
     ""},
    {"cases of a switch", 300, VECTORS, BODY "switch (i) {\n  ", "case #: s = 1.0f; break;\n  ",
     "}\n  y[i] = s;", "", ""},
    {"divisions", 100, VECTORS, BODY "y[i] = x[i", " / 2", "];", "", ""},
};

static void put(struct buf *b, const char *text, unsigned number, unsigned last)
{
    for (const char *c = text; *c; c++)
        if (*c == '#' || *c == '@')
            buf_printf(b, "%u", *c == '#' ? number : number - 1);
        else if (*c == '$')
            buf_printf(b, "%u", last);
        else
            buf_putc(b, *c);
}

static const char *text_of(struct arena *a, const struct kind *k, unsigned n, bool body)
{
    struct buf b = buf_in(a);
    buf_printf(&b, "kernel: k\nparams:\n  %s\n%s", k->params,
               body ? "grid: ceil_div(n, 128)\nblock: 128\nbody: |\n  " : "compute: |\n  ");
    buf_puts(&b, k->first);
    for (unsigned i = 1; i <= n; i++)
        put(&b, k->piece, i, n);
    put(&b, k->middle, 0, n);
    for (unsigned i = 0; i < n; i++)
        buf_puts(&b, k->close);
    buf_printf(&b, "%s\n", k->tail);
    return buf_text(&b);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds that reading and emission of n pieces take; negative: it was refused. */
static double seconds(const struct kind *k, unsigned n, bool body)
{
    struct arena *a = arena_new();
    struct diags *d = diags_new(a);
    const char *text = text_of(a, k, n, body);
    const double before = now();
    struct spec_file *f = spec_read(a, source_new(a, "k.yaml", text, strlen(text)), NULL, 0, d);
    const struct lower_options lo = {.lines = LOWER_LINES_ALL};
    struct ptx_module *m =
        f ? lower_specs(a, f->specs.v, f->specs.n, ptx_target_find("sm_80", 5), &lo, d) : NULL;
    if (m) {
        struct buf out = buf_in(a);
        ptx_print(m, &out);
    }
    const double took = m ? now() - before : -1;
    for (size_t i = 0; !m && i < d->list.n; i++)
        tap_note("%s", d->list.v[i].text);
    arena_free(a);
    return took;
}

static double least(const struct kind *k, unsigned n, bool body)
{
    double best = seconds(k, n, body);
    for (int i = 1; i < TRIES && best > LITTLE; i++) {
        const double again = seconds(k, n, body);
        best = again < best ? again : best;
    }
    return best;
}

static void judge(const struct kind *k, bool body)
{
    const double few = least(k, k->n, body), many = least(k, FACTOR * k->n, body);
    const double exponent = log(many / fmax(few, LITTLE)) / log(FACTOR);
    ok(few >= 0 && many >= 0 && !(exponent > STEEPEST), "%s: %u take %.1f ms, %u take %.1f ms",
       k->name, k->n, few * 1e3, FACTOR * k->n, many * 1e3);
}

int main(void)
{
    alarm(SECONDS);
    for (size_t i = 0; i < sizeof equations / sizeof *equations; i++)
        judge(&equations[i], false);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        judge(&bodies[i], true);
    return tap_done();
}
