#include <config.h>

#include "spec/spec_int.h"

struct span text_trim(struct span s)
{
    const char *t = s.src->text;
    while (s.len && strchr(" \t\r\n", t[s.off]))
        s.off++, s.len--;
    while (s.len && strchr(" \t\r\n", t[s.off + s.len - 1]))
        s.len--;
    return s;
}

bool text_take_end(struct span *s, const char *word)
{
    const size_t n = strlen(word);
    if (s->len < n || memcmp(s->src->text + s->off + s->len - n, word, n) != 0)
        return false;
    *s = text_trim((struct span){s->src, s->off, s->len - n});
    return true;
}

bool text_take_word(struct span *s, const char *word)
{
    const size_t n = strlen(word);
    const char *t = s->src->text + s->off;
    if (s->len <= n || memcmp(t, word, n) != 0 || !strchr(" \t\n", t[n]))
        return false;
    s->off += n;
    s->len -= n;
    *s = text_trim(*s);
    return true;
}

bool text_take_zero(struct span *s)
{
    struct span rest = *s;
    const char *t = s->src->text + s->off;
    if (!text_take_end(&rest, "0") || !text_take_end(&rest, "=") ||
        (rest.len && t[rest.len - 1] == '='))
        return false;
    *s = rest;
    return true;
}

bool text_span(const struct yaml_value *v, const char *key, struct span *out, struct diags *d)
{
    if (v->kind != YAML_SCALAR)
        return diag_error(d, v->span, "'%s' is a text, not a %s", key,
                          v->kind == YAML_LIST ? "list" : "map");
    if (v->style == YAML_FOLDED)
        return diag_error(d, v->span, "write '|' instead of '>', so that lines stay lines");
    if (!v->is_raw)
        return diag_error(d, v->span, "write '%s' without escapes, or as a block ('|')", key);
    *out = v->raw;
    if (text_trim(v->raw).len == 0)
        return diag_error(d, v->span, "'%s' is empty", key);
    return true;
}

/* Without the quotes of an item: the language has none, so they are YAML's. */
static struct span unquote(struct span s)
{
    const char *t = s.src->text;
    bool quoted = s.len >= 2 && (t[s.off] == '\'' || t[s.off] == '"') &&
                  t[s.off + s.len - 1] == t[s.off];
    return quoted ? text_trim((struct span){s.src, s.off + 1, s.len - 2}) : s;
}

void text_split(struct arena *a, struct span text, span_list *out)
{
    const char *t = text.src->text;
    size_t end = text.off + text.len, start = text.off;
    unsigned depth = 0;
    char quote = 0;
    for (size_t i = text.off; i <= end; i++) {
        char c = i < end ? t[i] : ',';
        if (i < end && quote) {
            quote = c == quote ? 0 : quote;
            continue;
        }
        if (c == '\'' || c == '"')
            quote = c;
        depth += c == '(' || c == '[' || c == '{';
        depth -= (c == ')' || c == ']' || c == '}') && depth > 0;
        if (i < end && (c != ',' || depth > 0))
            continue;
        struct span s = unquote(text_trim((struct span){text.src, start, i - start}));
        start = i + 1;
        if (s.len > 0 || i < end) /* a comma after the last one is allowed */
            *VEC_PUSH(a, out) = s;
    }
}

bool text_list(struct arena *a, const struct yaml_value *v, const char *key, span_list *out,
               struct diags *d)
{
    struct span s;
    bool good = true;
    if (v->kind == YAML_LIST && v->is_flow) {
        s = v->all;
        if (s.len >= 2)
            s.off++, s.len -= 2;
        text_split(a, s, out);
        for (size_t i = 0; i < out->n; i++)
            if (out->v[i].len == 0)
                good = diag_error(d, out->v[i], "nothing between two commas");
    } else if (v->kind == YAML_LIST) {
        for (size_t i = 0; i < v->n; i++) {
            if (text_span(v->item[i], key, &s, d))
                *VEC_PUSH(a, out) = text_trim(s);
            else
                good = false;
        }
    } else {
        if (!text_span(v, key, &s, d))
            return false;
        *VEC_PUSH(a, out) = text_trim(s);
    }
    return good;
}

static bool is_identifier(const char *s)
{
    size_t n = 0;
    for (; s[n]; n++) {
        char c = s[n];
        bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!alpha && (n == 0 || c < '0' || c > '9'))
            return false;
    }
    return n > 0;
}

bool check_identifier(const struct yaml_value *key, const char *what, struct diags *d)
{
    enum { LONGEST = 128 };
    const char *why;
    if (key->kind != YAML_SCALAR)
        return diag_error(d, key->span, "the name of %s is a word", what);
    if (strcmp(key->text, "<<") == 0)
        return diag_error(d, key->span,
                          "merge keys ('<<') are not used here; use an alias for the whole "
                          "value");
    if (!is_identifier(key->text))
        return diag_error(d, key->span,
                          "'%.40s' can't be the name of %s: it needs letters, digits and '_', "
                          "and no digit first",
                          key->text, what);
    if (key->len > LONGEST)
        return diag_error(d, key->span, "the name of %s has at most %d characters", what, LONGEST);
    if (strcmp(key->text, "_") == 0)
        return diag_error(d, key->span, "'_' alone can't be the name of %s", what);
    why = lang_reserved(key->text, NULL);
    if (why && !lang_is_notation(key->text)) /* no text says the name of a kernel called softmax */
        return diag_error(d, key->span, "'%s' is %s and can't be the name of %s", key->text, why,
                          what);
    return true;
}

bool check_symbol_name(const struct yaml_value *key, const struct lang_types *types,
                       const char *what, struct diags *d)
{
    if (!check_identifier(key, what, d))
        return false;
    const char *why = lang_reserved(key->text, types);
    return !why || diag_error(d, key->span, "'%s' is %s%s and can't be the name of %s", key->text,
                              why, lang_is_notation(key->text) ? "" : " (see 'types')", what);
}
