#include <config.h>

#include "base/diag.h"

struct span span_join(struct span a, struct span b)
{
    if (!a.src || a.src != b.src)
        return a.src ? a : b;
    size_t end = b.off + b.len > a.off + a.len ? b.off + b.len : a.off + a.len;
    size_t off = a.off < b.off ? a.off : b.off;
    return (struct span){a.src, off, end - off};
}

const struct source *source_new(struct arena *a, const char *name, const char *text, size_t len)
{
    struct source *s = ARENA_NEW(a, struct source);
    s->name = arena_strdup(a, name);
    s->text = arena_strndup(a, text, len);
    s->len = len;
    return s;
}

struct span source_all(const struct source *src)
{
    return (struct span){src, 0, src->len};
}

static bool utf8_continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t line_start(const struct source *s, size_t off)
{
    while (off > 0 && s->text[off - 1] != '\n')
        off--;
    return off;
}

struct line_col span_line_col(struct span s)
{
    struct line_col lc = {1, 1};
    size_t off = s.off < s.src->len ? s.off : s.src->len;
    size_t start = 0;
    const char *end;
    /* emission asks for each expression, of files of thousands of lines */
    while ((end = memchr(s.src->text + start, '\n', off - start))) {
        lc.line++;
        start = (size_t)(end - s.src->text) + 1;
    }
    for (size_t i = start; i < off; i++)
        lc.col += !utf8_continues(s.src->text[i]);
    return lc;
}

struct diags *diags_new(struct arena *a)
{
    struct diags *d = ARENA_NEW(a, struct diags);
    d->arena = a;
    d->limit = DIAG_LIMIT;
    return d;
}

static void add(struct diags *d, enum diag_level level, struct span s, const char *fmt, va_list ap)
{
    struct diag *e = VEC_PUSH(d->arena, &d->list);
    *e = (struct diag){.level = level, .span = s, .text = arena_vprintf(d->arena, fmt, ap)};
}

bool diag_error(struct diags *d, struct span s, const char *fmt, ...)
{
    if (d->nerror++ >= d->limit)
        return false;
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_ERROR, s, fmt, ap);
    va_end(ap);
    return false;
}

void diag_warning(struct diags *d, struct span s, const char *fmt, ...)
{
    if (d->nwarning++ >= d->limit || d->nerror > d->limit)
        return;
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_WARNING, s, fmt, ap);
    va_end(ap);
}

void diag_note(struct diags *d, struct span s, const char *fmt, ...)
{
    if (d->nerror > d->limit)
        return;
    va_list ap;
    va_start(ap, fmt);
    add(d, DIAG_NOTE, s, fmt, ap);
    va_end(ap);
}

void diag_kind(struct diags *d, const char *kind)
{
    size_t i = d->list.n;
    if (d->nerror > d->limit) /* it was only counted */
        return;
    while (i && d->list.v[i - 1].level == DIAG_NOTE)
        i--;
    if (i)
        d->list.v[i - 1].kind = kind;
}

void diags_append(struct diags *d, const struct diags *more)
{
    size_t errors = 0;
    for (size_t i = 0; i < more->list.n; i++) {
        const struct diag *e = &more->list.v[i];
        const size_t before = d->list.n;
        errors += e->level == DIAG_ERROR;
        if (e->level == DIAG_ERROR)
            diag_error(d, e->span, "%s", e->text);
        else if (e->level == DIAG_WARNING)
            diag_warning(d, e->span, "%s", e->text);
        else
            diag_note(d, e->span, "%s", e->text);
        if (d->list.n > before) {
            d->list.v[before].kind = e->kind;
            d->list.v[before].finding = e->finding;
            d->list.v[before].summary = e->summary;
        }
    }
    d->nerror += more->nerror - errors; /* those that were only counted */
}

/* The line that holds the span and a caret line under it; tabs become spaces, and a very long line
 * is cut to a window around the span. */
static void format_line(struct span s, bool color, struct buf *out)
{
    enum { WINDOW = 160 };
    size_t off = s.off < s.src->len ? s.off : s.src->len;
    size_t start = line_start(s.src, off), end = off;
    while (end < s.src->len && s.src->text[end] != '\n' && s.src->text[end] != '\r')
        end++;
    size_t number = span_line_col(s).line;
    const char *more = "";
    if (off - start > WINDOW / 2) {
        start = off - WINDOW / 2;
        while (start < off && utf8_continues(s.src->text[start]))
            start++;
        more = "...";
    }
    bool cut = end - start > WINDOW;
    if (cut) {
        end = start + WINDOW;
        while (end > off && utf8_continues(s.src->text[end]))
            end--;
    }
    buf_printf(out, "%5zu | %s", number, more);
    for (size_t i = start; i < end; i++) {
        unsigned char c = (unsigned char)s.src->text[i];
        buf_putc(out, c == '\t' ? ' ' : c < 0x20 || c == 0x7f ? '?' : (char)c);
    }
    buf_printf(out, "%s\n      | %*s", cut ? "..." : "", (int)strlen(more), "");
    for (size_t i = start; i < off; i++)
        if (!utf8_continues(s.src->text[i]))
            buf_putc(out, ' ');
    buf_puts(out, color ? "\033[1;32m^" : "^");
    for (size_t i = off + 1; i < s.off + s.len && i < end; i++)
        if (!utf8_continues(s.src->text[i]))
            buf_putc(out, '~');
    buf_puts(out, color ? "\033[0m\n" : "\n");
}

/* Text that may quote the input, without what a terminal would obey. */
static void add_printable(struct buf *out, const char *s)
{
    for (; *s; s++)
        buf_putc(out, ((unsigned char)*s < 0x20 && *s != '\n') || *s == 0x7f ? '?' : *s);
}

void diags_format(const struct diags *d, const char *prog, bool color, struct buf *out)
{
    static const char *const name[] = {"note", "warning", "error"};
    static const char *const paint[] = {"\033[1;36m", "\033[1;35m", "\033[1;31m"};
    for (size_t i = 0; i < d->list.n; i++) {
        const struct diag *e = &d->list.v[i];
        if (e->span.src) {
            struct line_col lc = span_line_col(e->span);
            add_printable(out, e->span.src->name);
            buf_printf(out, ":%zu:%zu: ", lc.line, lc.col);
        } else {
            buf_printf(out, "%s: ", prog);
        }
        buf_printf(out, "%s%s:%s ", color ? paint[e->level] : "", name[e->level],
                   color ? "\033[0m" : "");
        add_printable(out, e->text);
        buf_putc(out, '\n');
        if (e->span.src && e->span.src->len > 0)
            format_line(e->span, color, out);
    }
    if (d->nerror > d->limit)
        buf_printf(out, "%s: %zu more errors not shown\n", prog, d->nerror - d->limit);
}

const char *diag_nearest(const char *name, size_t len, const char *const *list)
{
    enum { LONGEST = 63 };
    const char *best = NULL;
    size_t best_cost = len < 4 ? 2 : 3; /* two changes make any short word of any other */
    if (len == 0 || len > LONGEST)
        return NULL;
    for (; *list; list++) {
        size_t n = strlen(*list), row[LONGEST + 1];
        if (n > LONGEST)
            continue;
        for (size_t j = 0; j <= n; j++)
            row[j] = j;
        for (size_t i = 1; i <= len; i++) {
            size_t diagonal = row[0];
            row[0] = i;
            for (size_t j = 1; j <= n; j++) {
                size_t cost = diagonal + (name[i - 1] != (*list)[j - 1]);
                diagonal = row[j];
                if (row[j] + 1 < cost)
                    cost = row[j] + 1;
                if (row[j - 1] + 1 < cost)
                    cost = row[j - 1] + 1;
                row[j] = cost;
            }
        }
        if (row[n] < best_cost && row[n] < len) {
            best_cost = row[n];
            best = *list;
        }
    }
    return best;
}
