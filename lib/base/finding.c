#include <config.h>

#include "base/finding.h"

#include <inttypes.h>

void diags_explain(struct diags *d, size_t i, const struct finding *f)
{
    if (i >= d->list.n)
        return;
    struct finding *copy = ARENA_NEW(d->arena, struct finding);
    *copy = *f;
    d->list.v[i].finding = copy;
    d->list.v[i].kind = f->kind;
}

void diags_summarize(struct diags *d, const struct finding_summary *s)
{
    struct buf text = buf_in(d->arena);
    buf_printf(&text, "%zu finding%s in kernel '%s'", s->findings, s->findings == 1 ? "" : "s",
               s->entry);
    for (size_t i = 0; i < s->nkind; i++)
        buf_printf(&text, "%s%zu %s", i ? ", " : ": ", s->by_kind[i].n, s->by_kind[i].kind);
    if (s->suppressed)
        buf_printf(&text, "; %zu suppressed", s->suppressed);
    if (s->shown < s->findings)
        buf_printf(&text, "; %zu more than --max-findings shows", s->findings - s->shown);
    if (s->rest)
        buf_printf(&text, "; there was no room for %" PRIu64 " occurrences of others", s->rest);
    struct finding_summary *copy = ARENA_NEW(d->arena, struct finding_summary);
    *copy = *s;
    struct diag *e = VEC_PUSH(d->arena, &d->list);
    *e = (struct diag){
        .level = DIAG_NOTE, .text = arena_strdup(d->arena, buf_text(&text)), .summary = copy};
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_span(struct json *j, struct span s)
{
    if (!s.src)
        return;
    const struct line_col at = span_line_col(s);
    json_str(j, "file", s.src->name);
    json_uint(j, "line", at.line);
    json_uint(j, "column", at.col);
}

static void write_place(struct json *j, const struct finding_place *p)
{
    json_str(j, "file", p->file);
    json_uint(j, "line", p->line);
    if (p->column)
        json_uint(j, "column", p->column);
    if (p->function)
        json_str(j, "function", p->function);
}

static void write_index(struct json *j, const char *key, const uint64_t i[3])
{
    json_array(j, key);
    for (int k = 0; k < 3; k++)
        json_uint(j, NULL, i[k]);
    json_end(j);
}

/* All but the span. */
static void write_side(struct json *j, const struct finding_side *s)
{
    if (s->access)
        json_str(j, "access", s->access);
    if (s->has_block)
        write_index(j, "block", s->block);
    if (s->has_thread)
        write_index(j, "thread", s->thread);
    if (!s->nsource)
        return;
    json_object(j, "source");
    write_place(j, &s->source[0]);
    json_end(j);
    if (s->nsource < 2)
        return;
    json_array(j, "inlined_at");
    for (size_t i = 1; i < s->nsource; i++) {
        json_object(j, NULL);
        write_place(j, &s->source[i]);
        json_end(j);
    }
    json_end(j);
}

static void write_finding(struct json *j, const struct finding *f)
{
    char address[24];
    json_str(j, "check", f->check);
    json_str(j, "entry", f->entry);
    write_side(j, &f->at);
    if (f->space) {
        snprintf(address, sizeof address, "0x%" PRIx64, f->address);
        json_str(j, "space", f->space);
        json_str(j, "address", address);
        if (f->bytes)
            json_uint(j, "bytes", f->bytes);
        json_str(j, "buffer", f->buffer);
        json_str(j, "place", f->place);
    }
    if (f->two) {
        json_object(j, "other");
        write_span(j, f->other.span);
        write_side(j, &f->other);
        json_end(j);
    }
    if (f->count) {
        json_uint(j, "count", f->count);
        json_uint(j, "blocks", f->blocks);
    }
}

static void write_summary(struct json *j, const struct finding_summary *s)
{
    json_str(j, "entry", s->entry);
    json_uint(j, "findings", s->findings);
    json_uint(j, "shown", s->shown);
    json_uint(j, "suppressed", s->suppressed);
    json_uint(j, "rest", s->rest);
    json_object(j, "by_kind");
    for (size_t i = 0; i < s->nkind; i++)
        json_uint(j, s->by_kind[i].kind, s->by_kind[i].n);
    json_end(j);
}

static bool is_note(const struct diag *e)
{
    return e->level == DIAG_NOTE && !e->summary;
}

/* The diagnostic at i and the notes behind it; gives the index of the next one. */
static size_t write_diag(struct json *j, const struct diags *d, size_t i)
{
    static const char *const level[] = {"note", "warning", "error"};
    const struct diag *e = &d->list.v[i++];
    json_object(j, NULL);
    json_str(j, "kind", e->kind ? e->kind : e->summary ? "summary" : level[e->level]);
    json_str(j, "level", level[e->level]);
    json_str(j, "message", e->text);
    write_span(j, e->span.src || !e->finding ? e->span : e->finding->at.span);
    if (e->finding)
        write_finding(j, e->finding);
    if (e->summary)
        write_summary(j, e->summary);
    if (!e->summary && i < d->list.n && is_note(&d->list.v[i])) {
        json_array(j, "notes");
        for (; i < d->list.n && is_note(&d->list.v[i]); i++) {
            json_object(j, NULL);
            json_str(j, "message", d->list.v[i].text);
            write_span(j, d->list.v[i].span);
            json_end(j);
        }
        json_end(j);
    }
    json_end(j);
    return i;
}

void diags_json(const struct diags *d, struct buf *out)
{
    for (size_t i = 0; i < d->list.n;) {
        struct json j = json_in(out, 0);
        i = write_diag(&j, d, i);
        buf_putc(out, '\n');
    }
    if (d->nerror > d->limit) {
        struct json j = json_in(out, 0);
        json_object(&j, NULL);
        json_str(&j, "kind", "note");
        json_str(&j, "level", "note");
        json_str(&j, "message",
                 arena_printf(d->arena, "%zu more errors not shown", d->nerror - d->limit));
        json_end(&j);
        buf_putc(out, '\n');
    }
}

void diags_json_elements(const struct diags *d, struct json *j)
{
    for (size_t i = 0; i < d->list.n;)
        i = write_diag(j, d, i);
}
