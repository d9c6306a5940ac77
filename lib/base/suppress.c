#include <config.h>

#include "base/suppress.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct arena *a;
    const struct source *src;
    size_t at, end; /* of the line */
    const char *const *kinds;
    struct diags *d;
};

/* The next word of the line, without quotes; NULL: there is none, or (with an error) a quote is
 * open. */
static const char *next_word(struct reader *r, struct span *span)
{
    const char *s = r->src->text;
    struct buf word = buf_in(r->a);
    while (r->at < r->end && isspace((unsigned char)s[r->at]))
        r->at++;
    if (r->at == r->end || s[r->at] == '#')
        return NULL;
    const size_t start = r->at;
    bool quoted = false;
    for (; r->at < r->end && (quoted || !isspace((unsigned char)s[r->at])); r->at++) {
        if (s[r->at] == '"')
            quoted = !quoted;
        else
            buf_putc(&word, s[r->at]);
    }
    *span = (struct span){r->src, start, r->at - start};
    if (quoted) {
        diag_error(r->d, *span, "this quote has no end");
        return NULL;
    }
    return buf_text(&word);
}

/* Does the pattern match any kind that there is? */
static bool check_kind(struct reader *r, const char *pattern, struct span span)
{
    for (const char *const *k = r->kinds; *k; k++)
        if (fnmatch(pattern, *k, 0) == 0)
            return true;
    const char *near = diag_nearest(pattern, strlen(pattern), r->kinds);
    if (near)
        return diag_error(r->d, span, "no finding is of the kind '%s'; did you mean '%s'?", pattern,
                          near);
    return diag_error(r->d, span, "no finding is of the kind '%s'; kaio-run(1) lists the kinds",
                      pattern);
}

/* "31" or "31-40" */
static bool read_lines(const char *s, struct suppression *rule)
{
    uint64_t n[2] = {0, 0};
    int k = 0;
    for (const char *p = s; *p; p++) {
        if (*p == '-' && k == 0 && p > s)
            k = 1;
        else if (isdigit((unsigned char)*p) && n[k] < UINT32_MAX / 16)
            n[k] = n[k] * 10 + (uint64_t)(*p - '0');
        else
            return false;
    }
    rule->first = (uint32_t)n[0];
    rule->last = (uint32_t)(k ? n[1] : n[0]);
    return rule->first > 0 && rule->last >= rule->first;
}

static bool read_condition(struct reader *r, const char *word, struct span span,
                           struct suppression *rule)
{
    const char *eq = strchr(word, '=');
    const char *key = eq ? arena_strndup(r->a, word, (size_t)(eq - word)) : word;
    const char **to = NULL;
    bool twice = false;
    if (eq && !eq[1])
        return diag_error(r->d, span, "'%s' has no value", word);
    if (eq && strcmp(key, "line") == 0) {
        twice = rule->last;
        if (!read_lines(eq + 1, rule))
            return diag_error(r->d, span, "'%s' is no line, as 31 or 31-40 are", eq + 1);
    } else if (eq) {
        to = strcmp(key, "entry") == 0    ? &rule->entry
             : strcmp(key, "buffer") == 0 ? &rule->buffer
             : strcmp(key, "file") == 0   ? &rule->file
                                          : NULL;
        if (!to)
            return diag_error(r->d, span,
                              "unknown condition '%s'; it is entry, buffer, file or line", key);
        twice = *to;
        *to = eq + 1;
    } else {
        return diag_error(r->d, span, "'%s' is not entry=, buffer=, file= or line=", word);
    }
    return !twice || diag_error(r->d, span, "'%s' is given twice", key);
}

static void read_rule(struct reader *r, struct suppressions *s)
{
    const size_t errors = r->d->nerror;
    struct suppression rule = {0};
    struct span span, all;
    const char *word = next_word(r, &all);
    if (!word || !check_kind(r, word, all))
        return;
    rule.kind = word;
    while ((word = next_word(r, &span))) {
        all = span_join(all, span);
        if (!read_condition(r, word, span, &rule))
            return;
    }
    rule.span = all;
    if (r->d->nerror == errors)
        *VEC_PUSH(r->a, &s->list) = rule;
}

bool suppress_read(struct arena *a, struct suppressions *s, const struct source *text,
                   const char *const *kinds, struct diags *d)
{
    const size_t errors = d->nerror;
    struct reader r = {.a = a, .src = text, .kinds = kinds, .d = d};
    for (size_t start = 0; start < text->len; start = r.end + 1) {
        const char *eol = memchr(text->text + start, '\n', text->len - start);
        r.at = start;
        r.end = eol ? (size_t)(eol - text->text) : text->len;
        read_rule(&r, s);
    }
    return d->nerror == errors;
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool matches(const char *pattern, const char *s)
{
    return !pattern || (s && fnmatch(pattern, s, 0) == 0);
}

static bool file_matches(const char *pattern, const char *name)
{
    const char *slash = strrchr(name, '/');
    return matches(pattern, name) ||
           (slash && !strchr(pattern, '/') && matches(pattern, slash + 1));
}

static bool is_here(const struct suppression *rule, const char *file, size_t line)
{
    return file && file_matches(rule->file, file) &&
           (!rule->last || (line >= rule->first && line <= rule->last));
}

static bool side_is_here(const struct suppression *rule, const struct finding_side *s)
{
    if (s->span.src && is_here(rule, s->span.src->name, span_line_col(s->span).line))
        return true;
    for (size_t i = 0; i < s->nsource; i++)
        if (is_here(rule, s->source[i].file, s->source[i].line))
            return true;
    return false;
}

struct suppression *suppress_find(struct suppressions *s, const struct finding *f)
{
    for (size_t i = 0; i < s->list.n; i++) {
        struct suppression *rule = &s->list.v[i];
        if (!matches(rule->kind, f->kind) || !matches(rule->entry, f->entry) ||
            !matches(rule->buffer, f->buffer))
            continue;
        if ((rule->file || rule->last) && !side_is_here(rule, &f->at) &&
            !(f->two && side_is_here(rule, &f->other)))
            continue;
        rule->used++;
        return rule;
    }
    return NULL;
}

void suppress_unused(const struct suppressions *s, const char *const *entry, struct diags *d)
{
    for (size_t i = 0; i < s->list.n; i++) {
        const char *const *e = entry;
        while (*e && !matches(s->list.v[i].entry, *e))
            e++;
        if (*e && !s->list.v[i].used)
            diag_note(d, s->list.v[i].span, "this suppression was not needed");
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A pattern that matches that name and no other, as a word. */
static void write_name(struct buf *out, const char *key, const char *name)
{
    const bool quote = strpbrk(name, " \t#");
    buf_printf(out, " %s=%s", key, quote ? "\"" : "");
    for (; *name; name++) {
        if (strchr("*?[\\", *name))
            buf_putc(out, '\\');
        buf_putc(out, *name == '"' || *name == '\n' ? '?' : *name);
    }
    if (quote)
        buf_putc(out, '"');
}

void suppress_write(const struct finding *f, struct buf *out)
{
    const struct finding_side *s = &f->at;
    buf_puts(out, f->kind);
    write_name(out, "entry", f->entry);
    if (f->buffer)
        write_name(out, "buffer", f->buffer);
    if (s->nsource && s->source[0].file) {
        const char *slash = strrchr(s->source[0].file, '/');
        write_name(out, "file", slash ? slash + 1 : s->source[0].file);
        buf_printf(out, " line=%" PRIu32, s->source[0].line);
    } else if (s->span.src) {
        const char *slash = strrchr(s->span.src->name, '/');
        write_name(out, "file", slash ? slash + 1 : s->span.src->name);
        buf_printf(out, " line=%zu", span_line_col(s->span).line);
    }
    buf_putc(out, '\n');
}
