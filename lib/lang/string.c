/* String literals, and the two calls that take them: print() and assert(). */
#include <config.h>

#include "data/message.h"
#include "lang/lang_int.h"

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
    return c >= '0' && at ? (int)(at - digits) : -1;
}

/* The character at *i of a literal's text, an escape resolved, and *i moved past it; -1: no such
 * escape. */
static int next_char(const char *s, size_t n, size_t *i)
{
    static const char letters[] = "ntr\\\"'a0", values[] = "\n\t\r\\\"'\a";
    if (s[*i] != '\\' || *i + 1 >= n)
        return (unsigned char)s[(*i)++];
    char c = s[*i + 1];
    *i += 2;
    if (c == 'x') {
        int v = 0, digits = 0;
        for (; digits < 2 && *i < n && hex_value(s[*i]) >= 0; digits++)
            v = v * 16 + hex_value(s[(*i)++]);
        return digits ? v : -1;
    }
    const char *at = strchr(letters, c);
    return at && *at ? (unsigned char)values[at - letters] : -1;
}

/* Appends the text of the current token, one literal. */
static bool take_literal(struct parser *p, struct buf *text)
{
    const size_t start = p->tok.span.off + 1, n = p->tok.span.len - 2;
    const char *s = p->tok.span.src->text + start;
    if (s[-1] == '\'')
        return parser_error(p, "a text is written in double quotes");
    for (size_t i = 0; i < n;) {
        const size_t from = i;
        int c = next_char(s, n, &i);
        if (c <= 0)
            return diag_error(p->d, (struct span){p->tok.span.src, start + from, i - from},
                              c < 0
                                  ? "no such escape; there are \\n \\t \\r \\a \\\\ \\\" and \\x41"
                                  : "a text can't hold the character 0");
        buf_putc(text, (char)c);
    }
    return true;
}

struct lang_expr *parse_string(struct parser *p)
{
    struct lang_expr *e = expr_new(p->a, E_STRING, p->tok.span);
    struct buf text = buf_in(p->a);
    while (p->tok.kind == T_STRING) { /* as in C, those in a row are one */
        if (!take_literal(p, &text))
            return NULL;
        e->span = span_join(e->span, p->tok.span);
        parser_next(p);
    }
    e->text = buf_text(&text);
    return e;
}

/* Past the end of one literal and what stands between it and the next. */
static size_t past_quotes(const char *s, size_t n, size_t i)
{
    while (i < n && s[i] == '"') {
        for (i++; i < n && s[i] != '"'; i++)
            ;
        i++;
    }
    return i < n ? i : n;
}

/* The part of the literals that their resolved text's bytes off .. off + len - 1 come from. */
static struct span part(const struct lang_expr *e, size_t off, size_t len)
{
    const char *s = e->span.src->text + e->span.off + 1;
    const size_t n = e->span.len - 2;
    size_t i = past_quotes(s, n, 0);
    for (; off > 0 && i < n; off--) {
        next_char(s, n, &i);
        i = past_quotes(s, n, i);
    }
    const size_t from = i;
    for (; len > 0 && i < n; len--) {
        i = past_quotes(s, n, i);
        next_char(s, n, &i);
    }
    return (struct span){e->span.src, e->span.off + 1 + from, i > from ? i - from : 1};
}

static bool want_string(struct checker *c, const struct lang_expr *e, const char *what)
{
    if (e->kind != E_STRING)
        return diag_error(c->d, e->span, "%s is a text in double quotes", what);
    return true;
}

static bool in_body(struct checker *c, const struct lang_expr *e)
{
    if (c->place != IN_BODY)
        return diag_error(c->d, e->span, "%s() is for body: and functions:", e->name);
    if (c->func && !c->func->impure.src)
        c->func->impure = e->span;
    return true;
}

/* Argument k of print() under a conversion. */
static bool check_printed(struct checker *c, struct lang_expr *e, uint32_t k,
                          const struct message_conversion *conversion)
{
    struct lang_expr *arg = e->args[k];
    const struct lang_expr *format = e->args[0];
    if (arg->kind == E_STRING)
        return diag_error(c->d, arg->span, "write the text in the format itself");
    if (!check_expr(c, arg))
        return false;
    if (arg->type == DT_VOID)
        return diag_error(c->d, arg->span, "this function returns no value");
    if (arg->lanes)
        return diag_error(c->d, arg->span, "a vector is printed lane by lane: .x, .y ...");
    const char *why = message_misfit(conversion->letter, arg->type);
    if (why) {
        diag_error(c->d, part(format, conversion->off, conversion->len), "'%.*s' %s",
                   (int)conversion->len, format->text + conversion->off, why);
        diag_note(c->d, arg->span, "this is %s", dtype_name(arg->type));
        return false;
    }
    check_convert(c, arg, message_type(arg->type));
    return true;
}

bool check_print(struct checker *c, struct lang_expr *e)
{
    struct message_conversion conversion;
    enum message_item what;
    uint32_t k = 1;
    size_t at = 0;
    bool good = true;
    e->type = DT_VOID;
    if (!in_body(c, e) || !want_string(c, e->args[0], "the first argument of print()"))
        return false;
    struct lang_expr *format = e->args[0];
    while ((what = message_next(format->text, &at, &conversion)) != MESSAGE_END) {
        struct span s = part(format, conversion.off, conversion.len);
        if (what == MESSAGE_BAD)
            return diag_error(c->d, s, "%s", conversion.why);
        if (k >= e->nargs)
            return diag_error(c->d, s, "no argument is left for '%.*s'", (int)conversion.len,
                              format->text + conversion.off);
        good &= check_printed(c, e, k++, &conversion);
    }
    if (k < e->nargs)
        return diag_error(c->d, e->args[k]->span,
                          "the format has %u conversion%s, so nothing prints this argument; add "
                          "one, as in %%d or %%g",
                          (unsigned)k - 1, k == 2 ? "" : "s");
    return good;
}

bool check_assert(struct checker *c, struct lang_expr *e)
{
    e->type = DT_VOID;
    if (!in_body(c, e))
        return false;
    /* the condition as it was written: folding and conversions come next */
    e->text = lang_expr_text(c->a, e->args[0]);
    return check_condition(c, e->args[0]) &&
           (e->nargs < 2 || want_string(c, e->args[1], "the message of assert()"));
}
