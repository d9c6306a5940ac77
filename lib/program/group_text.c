/* The equations of a group as the text of a kernel. Names of parts of buffers take the place of the
 * subscripts that choose them; all else is the program's own text, on the lines where it stands. */
#include <config.h>

#include "program/group.h"

#include <ctype.h>
#include <stdlib.h>

struct edit { /* bytes of the program's file that other text stands for */
    size_t at, end;
    const char *text;
};

struct writer {
    struct group *g;
    struct buf out;
    size_t line; /* of the text, from 1 */
    VEC(struct edit) edits;
    struct reads reads;
};

/* ---- one expression -------------------------------------------------------------------------- */

/* Behind the subscript that ends at `at`: past the ',', the ']' or the "][". */
static size_t past_subscript(const struct source *src, size_t at, bool *closed)
{
    while (at < src->len && src->text[at] != ',' && src->text[at] != ']')
        at++;
    *closed = at < src->len && src->text[at] == ']';
    at++;
    for (size_t k = at; *closed && k < src->len && !isgraph((unsigned char)src->text[k]); k++)
        if (src->text[k + 1] == '[') {
            *closed = false;
            return k + 2;
        }
    if (*closed && at < src->len && src->text[at] == '[') {
        *closed = false;
        at++;
    }
    return at;
}

static uint32_t edit_read(void *ctx, struct lang_expr *e)
{
    struct writer *w = ctx;
    const uint32_t n = e->kind == E_INDEX && !e->pad ? count_fixed(&w->reads, e->args, e->nargs)
                                                     : 0;
    const struct access *a = find_access(w->g, e->name, prefix_text(w->g->b->a, e->args, n));
    if (!a)
        return 0;
    const char *name = a->assigned ? a->next : a->param;
    struct edit *edit = VEC_PUSH(w->g->b->a, &w->edits);
    *edit = (struct edit){e->name_at, e->name_at + strlen(e->name), name};
    if (n == 0)
        return 0;
    bool closed;
    const struct span last = e->args[n - 1]->span;
    edit->end = past_subscript(last.src, last.off + last.len, &closed);
    edit->text = closed ? name : arena_printf(w->g->b->a, "%s[", name);
    return n;
}

static int by_place(const void *x, const void *y)
{
    const struct edit *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

static void write_bytes(struct writer *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r')
            continue;
        buf_putc(&w->out, text[i]);
        if (text[i] == '\n') {
            buf_puts(&w->out, "  ");
            w->line++;
        }
    }
}

/* The right side, with the edits that its reads want. */
static void write_right(struct writer *w, const struct lang_equation_step *e, struct span text)
{
    w->edits.n = 0;
    w->reads.index.n = 0;
    for (uint32_t i = 0; i < e->nleft; i++)
        if (e->left[i].index)
            *VEC_PUSH(w->g->b->a, &w->reads.index) = e->left[i].index->name;
    find_reads(&w->reads, e->rhs);
    if (w->edits.n)
        qsort(w->edits.v, w->edits.n, sizeof *w->edits.v, by_place);
    size_t at = text.off;
    for (size_t i = 0; i < w->edits.n; i++) {
        const struct edit *edit = &w->edits.v[i];
        write_bytes(w, text.src->text + at, edit->at - at);
        buf_puts(&w->out, edit->text);
        at = edit->end;
    }
    write_bytes(w, text.src->text + at, text.off + text.len - at);
}

/* ---- the text -------------------------------------------------------------------------------- */

static void new_line(struct writer *w)
{
    buf_putc(&w->out, '\n');
    w->line++;
}

static void declare(struct writer *w, size_t *n, const char *name, const char *decl)
{
    buf_printf(&w->out, "%s%s: '%s'", (*n)++ ? ", " : "", name, decl);
}

static const char *part_text(struct group *g, const struct access *a)
{
    const struct lang_symbol *sym = a->var->sym;
    struct shape part = {.type = sym->type, .rank = sym->rank - a->nfixed};
    for (uint32_t i = 0; i < part.rank; i++)
        part.dim[i] = sym->dims[i + a->nfixed];
    return arena_printf(g->b->a, "%s %s",
                        !a->written ? "in"
                        : a->read   ? "inout"
                                    : "out",
                        group_shape_text(g, &part));
}

static void write_params(struct writer *w, bool sink)
{
    struct group *g = w->g;
    size_t n = 0;
    buf_puts(&w->out, "params: {");
    for (size_t i = 0; i < g->access.n; i++)
        declare(w, &n, g->access.v[i]->param, part_text(g, g->access.v[i]));
    for (size_t i = 0; i < g->locals.n; i++)
        if (g->locals.v[i].escapes && !sink)
            declare(w, &n, g->locals.v[i].name,
                    arena_printf(g->b->a, "out %s", group_shape_text(g, &g->locals.v[i].shape)));
    for (size_t i = 0; i < g->scalars.n; i++)
        declare(w, &n, g->scalars.v[i]->name,
                g->scalars.v[i]->kind == SYM_DIM ? "i64" : dtype_name(g->scalars.v[i]->type));
    if (sink)
        declare(w, &n, "kaio_sink", "out f32[]");
    buf_puts(&w->out, "}");
    new_line(w);
}

static void write_types(struct writer *w)
{
    const struct spec *s = w->g->b->spec;
    if (s->types.n == 0)
        return;
    for (size_t i = 0; i < s->types.n; i++)
        buf_printf(&w->out, "%s%s: %s", i ? ", " : "types: {", s->types.v[i].name,
                   dtype_name(s->types.v[i].chosen));
    buf_puts(&w->out, "}");
    new_line(w);
}

static void write_index(struct writer *w, const struct lang_symbol *i, bool first)
{
    buf_printf(&w->out, "%s%s", first ? "[" : ", ", i->name);
    if (!i->written)
        return;
    const char *end = group_range_text(w->g, i->dims[0]);
    if (i->low)
        buf_printf(&w->out, " in %s..%s", lang_expr_text(w->g->b->a, i->low), end);
    else
        buf_printf(&w->out, " < %s", end);
}

static void write_left(struct writer *w, const char *name, const struct lang_equation_step *e,
                       uint32_t nfixed)
{
    buf_puts(&w->out, name);
    for (uint32_t i = nfixed; i < e->nleft; i++)
        write_index(w, e->left[i].index, i == nfixed);
    buf_puts(&w->out, e->nleft > nfixed ? "] = " : " = ");
}

/* What is stored is rounded: so is what stands for it. */
static void write_equation(struct writer *w, const struct equation *q)
{
    const struct lang_equation_step *e = &q->step->equation;
    const bool next = q->to && q->to->next && !w->g->plain;
    while (w->line < span_line_col(q->step->span).line)
        new_line(w);
    buf_puts(&w->out, "  ");
    write_left(w, !q->to ? e->name : next ? q->to->next : q->to->param, e, q->nfixed);
    if (next)
        buf_printf(&w->out, "%s(", dtype_name(q->to->var->sym->type));
    buf_puts(&w->out, w->g->asks ? "(" : "");
    write_right(w, e, e->rhs_span);
    buf_puts(&w->out, w->g->asks ? ") ? 1u : 0u" : next ? ")" : "");
    new_line(w);
    if (q->to)
        q->to->assigned = next;
}

/* x[i, j] = x_next[i, j] */
static void write_store(struct writer *w, const struct access *a)
{
    buf_puts(&w->out, "  ");
    write_left(w, a->param, a->by, a->nfixed);
    buf_puts(&w->out, a->next);
    for (uint32_t i = a->nfixed; i < a->by->nleft; i++)
        buf_printf(&w->out, "%s%s", i == a->nfixed ? "[" : ", ", a->by->left[i].index->name);
    buf_puts(&w->out, a->by->nleft > a->nfixed ? "]" : "");
    new_line(w);
}

static void write_functions(struct writer *w)
{
    const struct span text = w->g->b->spec->program->functions;
    if (!text.src)
        return;
    buf_puts(&w->out, "functions: |\n  ");
    write_bytes(w, text.src->text + text.off, text.len);
    new_line(w);
}

const struct source *group_text(struct group *g, const char *name, bool sink)
{
    struct writer w = {.g = g, .out = buf_in(g->b->a), .line = 1};
    w.reads = (struct reads){.b = g->b, .found = edit_read, .ctx = &w};
    buf_printf(&w.out, "kernel: %s", name);
    new_line(&w);
    write_types(&w);
    write_params(&w, sink);
    buf_puts(&w.out, "compute: |");
    new_line(&w);
    for (size_t i = 0; i < g->v.n; i++)
        write_equation(&w, &g->v.v[i]);
    for (size_t i = 0; i < g->access.n; i++) {
        if (g->access.v[i]->next && !g->plain)
            write_store(&w, g->access.v[i]);
        g->access.v[i]->assigned = false;
    }
    if (sink)
        buf_puts(&w.out, "  kaio_sink = 0\n");
    write_functions(&w);
    return source_new(g->b->a, g->b->spec->src->name, buf_text(&w.out), w.out.len);
}
