#include <config.h>

#include "run/line.h"

struct reader {
    struct arena *a;
    struct diags *d;
    const char *at, *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* What is between two quotes; r->at is behind the first. */
static bool read_quoted(struct reader *r, char quote, struct buf *word)
{
    for (; r->at < r->end && *r->at != quote; r->at++) {
        const bool more = r->end - r->at > 1;
        if (quote == '"' && *r->at == '\\' && more && (r->at[1] == '"' || r->at[1] == '\\'))
            r->at++;
        buf_putc(word, *r->at);
    }
    if (r->at == r->end)
        return diag_error(r->d, SPAN_NONE, "a quote (%c) has no end on its line", quote);
    r->at++;
    return true;
}

/* Quotes and backslashes are taken off; r->at is at its first character. */
static bool read_word(struct reader *r, struct buf *word)
{
    while (r->at < r->end && !is_blank(*r->at)) {
        const char c = *r->at++;
        if (c == '\'' || c == '"') {
            if (!read_quoted(r, c, word))
                return false;
        } else if (c != '\\') {
            buf_putc(word, c);
        } else if (r->at < r->end) {
            buf_putc(word, *r->at++);
        } else {
            return diag_error(r->d, SPAN_NONE,
                              "nothing follows the backslash: a line ends where "
                              "it ends, and \\\\ is one backslash");
        }
    }
    return true;
}

static bool take_word(struct reader *r, const char *word, struct line *l)
{
    static const char kernel[] = "--kernel=";
    struct run_arg arg;
    if (run_arg_split(r->a, word, &arg)) {
        *VEC_PUSH(r->a, &l->args) = arg;
        return true;
    }
    if (strncmp(word, kernel, strlen(kernel)) == 0) {
        if (l->kernel)
            return diag_error(r->d, SPAN_NONE, "--kernel is given twice");
        l->kernel = word + strlen(kernel);
        return true;
    }
    if (*word == '-')
        return diag_error(r->d, SPAN_NONE,
                          "'%s': of the options a line may have --kernel=NAME; give others on the "
                          "command line",
                          word);
    return diag_error(r->d, SPAN_NONE, "'%s' is not NAME=VALUE", word);
}

bool line_read(struct arena *a, const char *text, size_t len, struct line *l, struct diags *d)
{
    struct reader r = {.a = a, .d = d, .at = text, .end = text + len};
    *l = (struct line){0};
    if (memchr(text, 0, len))
        return diag_error(d, SPAN_NONE, "the line has a zero byte, which no argument can have");
    for (;;) {
        struct buf word = buf_in(a);
        while (r.at < r.end && is_blank(*r.at))
            r.at++;
        if (r.at == r.end || *r.at == '#')
            return true;
        if (!read_word(&r, &word) || !take_word(&r, buf_text(&word), l))
            return false;
    }
}

void line_complete(struct arena *a, struct line *l, const struct run_arg *other, size_t n)
{
    const size_t own = l->args.n;
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (size_t k = 0; k < own; k++)
            replaced = replaced || strcmp(l->args.v[k].name, other[i].name) == 0;
        if (!replaced)
            *VEC_PUSH(a, &l->args) = other[i];
    }
}
