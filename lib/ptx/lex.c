#include <config.h>

#include "ptx/lex.h"

#include "base/num.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

struct span ptx_span(const struct ptx_lexer *l, const char *from, const char *to)
{
    return (struct span){l->src, (size_t)(from - l->src->text), (size_t)(to - from)};
}

/* The character n places on, NUL past the end. */
static char at(const struct ptx_lexer *l, size_t n)
{
    return (size_t)(l->end - l->pos) > n ? l->pos[n] : 0;
}

static void keep_comment(struct ptx_lexer *l, const char *from, const char *to, bool block)
{
    *VEC_PUSH(l->arena, &l->comments) = (struct ptx_comment){from, (size_t)(to - from), block};
}

static void line_comment(struct ptx_lexer *l)
{
    const char *from = l->pos + 2;
    const char *nl = memchr(from, '\n', (size_t)(l->end - from));
    l->pos = nl ? nl : l->end;
    if (l->fresh_line)
        keep_comment(l, from, l->pos, false);
}

static bool block_comment(struct ptx_lexer *l)
{
    const char *start = l->pos, *from = start + 2, *p = from;
    while ((p = memchr(p, '*', (size_t)(l->end - p))) && !(p + 1 < l->end && p[1] == '/'))
        p++;
    if (!p) {
        l->pos = l->end;
        return diag_error(l->diags, ptx_span(l, start, from), "comment is not closed with '*/'");
    }
    l->pos = p + 2;
    if (l->fresh_line)
        keep_comment(l, from, p, true);
    return true;
}

static bool skip_space(struct ptx_lexer *l)
{
    while (l->pos < l->end) {
        if (*l->pos == '\n') {
            l->fresh_line = true;
            l->pos++;
        } else if (is_space(*l->pos)) {
            l->pos++;
        } else if (*l->pos == '/' && at(l, 1) == '/') {
            line_comment(l);
        } else if (*l->pos == '/' && at(l, 1) == '*') {
            if (!block_comment(l))
                return false;
        } else {
            break;
        }
    }
    return true;
}

static void bad(struct ptx_lexer *l, const char *from, const char *what)
{
    l->tok.kind = PTX_T_BAD;
    diag_error(l->diags, ptx_span(l, from, l->pos), "%s", what);
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* 0fXXXXXXXX or 0dXXXXXXXXXXXXXXXX. */
static void hex_float(struct ptx_lexer *l, const char *from, size_t digits)
{
    uint64_t v = 0;
    size_t n = 0;
    l->pos += 2;
    for (; hex_digit(at(l, 0)) < 16; n++)
        v = v << 4 | (uint64_t)hex_digit(*l->pos++);
    while (is_word(at(l, 0))) {
        n = 0;
        l->pos++;
    }
    l->tok.kind = digits == 8 ? PTX_T_F32 : PTX_T_F64;
    l->tok.bits = v;
    if (n != digits)
        bad(l, from,
            digits == 8 ? "0f needs exactly 8 hexadecimal digits"
                        : "0d needs exactly 16 hexadecimal digits");
}

static void decimal_float(struct ptx_lexer *l, const char *from)
{
    double v = 0;
    l->tok.kind = PTX_T_DECIMAL;
    if (num_double(from, (size_t)(l->pos - from), &v) != NUM_OK)
        bad(l, from, "number is out of the range of .f64");
    memcpy(&l->tok.bits, &v, sizeof v);
}

static void integer(struct ptx_lexer *l, const char *from, int base)
{
    uint64_t v = 0;
    bool any = false, over = false;
    for (; hex_digit(at(l, 0)) < base; l->pos++) {
        over |= __builtin_mul_overflow(v, (uint64_t)base, &v);
        over |= __builtin_add_overflow(v, (uint64_t)hex_digit(*l->pos), &v);
        any = true;
    }
    l->tok.kind = PTX_T_INT;
    l->tok.bits = v;
    l->tok.is_unsigned = v > INT64_MAX;
    if (at(l, 0) == 'U') {
        l->tok.is_unsigned = true;
        l->pos++;
    }
    bool more = is_word(at(l, 0));
    while (is_word(at(l, 0)))
        l->pos++;
    if (more || !any)
        bad(l, from, "not a number");
    else if (over)
        bad(l, from, "number does not fit 64 bits");
}

static void number(struct ptx_lexer *l)
{
    const char *from = l->pos;
    char second = at(l, 1);
    if (*from == '0' && (second == 'f' || second == 'F')) {
        hex_float(l, from, 8);
        return;
    }
    if (*from == '0' && (second == 'd' || second == 'D')) {
        hex_float(l, from, 16);
        return;
    }
    if (*from == '0' && (second == 'x' || second == 'X' || second == 'b' || second == 'B')) {
        l->pos += 2;
        integer(l, from, second == 'x' || second == 'X' ? 16 : 2);
        return;
    }
    const char *p = from;
    while (p < l->end && is_digit(*p))
        p++;
    bool is_float = false;
    if (p < l->end && *p == '.') {
        is_float = true;
        for (p++; p < l->end && is_digit(*p);)
            p++;
    }
    if (p < l->end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        if (q < l->end && (*q == '+' || *q == '-'))
            q++;
        if (q < l->end && is_digit(*q)) {
            is_float = true;
            while (q < l->end && is_digit(*q))
                q++;
            p = q;
        }
    }
    if (!is_float) {
        integer(l, from, *from == '0' && is_digit(second) ? 8 : 10);
        return;
    }
    l->pos = p;
    if (is_word(at(l, 0))) {
        l->pos++;
        bad(l, from, "not a number");
        return;
    }
    decimal_float(l, from);
}

static void identifier(struct ptx_lexer *l)
{
    const char *from = l->pos++;
    while (is_word(at(l, 0)))
        l->pos++;
    l->tok.kind = PTX_T_IDENT;
    if (*from == '%') {
        /* %tid.x is one name. */
        char c = at(l, 1);
        if (at(l, 0) == '.' && c >= 'w' && c <= 'z' && !is_word(at(l, 2)))
            l->pos += 2;
    }
}

static void dotted(struct ptx_lexer *l)
{
    l->pos++;
    while (is_word(at(l, 0)) || (at(l, 0) == ':' && at(l, 1) == ':' && is_word(at(l, 2))))
        l->pos += *l->pos == ':' ? 2 : 1;
    l->tok.kind = PTX_T_DOT;
}

static void string(struct ptx_lexer *l)
{
    const char *from = l->pos++;
    while (l->pos < l->end && *l->pos != '"' && *l->pos != '\n') {
        if (*l->pos == '\\' && l->pos + 1 < l->end && l->pos[1] != '\n')
            l->pos++;
        l->pos++;
    }
    if (at(l, 0) != '"') {
        bad(l, from, "string is not closed");
        return;
    }
    l->pos++;
    l->tok.kind = PTX_T_STRING;
}

static void scan(struct ptx_lexer *l)
{
    l->tok = (struct ptx_token){.kind = PTX_T_END};
    if (!skip_space(l))
        l->tok.kind = PTX_T_BAD;
    const char *from = l->pos;
    l->tok.text = from;
    if (from >= l->end)
        return;
    char c = *from;
    if (is_digit(c)) {
        number(l);
    } else if (is_letter(c) || c == '_' || c == '$' || (c == '%' && is_word(at(l, 1)))) {
        identifier(l);
    } else if (c == '.' && is_word(at(l, 1))) {
        dotted(l);
    } else if (c == '"') {
        string(l);
    } else if (c != 0 && strchr("{}()[],;:+-*/%&|^~<>=!@?", c)) {
        l->pos++;
        l->tok.kind = PTX_T_PUNCT;
        l->tok.punct = c;
    } else {
        do
            l->pos++;
        while (l->pos < l->end && ((unsigned char)*l->pos & 0xc0) == 0x80);
        bad(l, from, "unexpected character");
    }
    l->tok.len = (size_t)(l->pos - from);
    l->fresh_line = false;
}

void ptx_lex_start(struct ptx_lexer *l, const struct source *src, size_t offset, struct arena *a,
                   struct diags *d)
{
    size_t len = src->len;
    while (len > offset && src->text[len - 1] == 0)
        len--;
    *l = (struct ptx_lexer){.src = src,
                            .arena = a,
                            .diags = d,
                            .pos = src->text + offset,
                            .end = src->text + len,
                            .fresh_line = true};
    l->tok_end = l->pos;
    scan(l);
}

void ptx_lex_next(struct ptx_lexer *l)
{
    l->tok_end = l->pos;
    scan(l);
}

bool ptx_lex_colon_follows(const struct ptx_lexer *l)
{
    const char *p = l->pos;
    while (p < l->end && is_space(*p))
        p++;
    return p < l->end && *p == ':';
}

const char *ptx_lex_line(struct ptx_lexer *l)
{
    const char *from = l->tok.text;
    if (l->tok.kind == PTX_T_END || memchr(l->tok_end, '\n', (size_t)(from - l->tok_end)))
        return "";
    const char *to = memchr(from, '\n', (size_t)(l->end - from));
    l->pos = to = to ? to : l->end;
    /* A comment ends the text, unless its slashes are in a string. */
    bool quoted = false;
    for (const char *p = from; p + 1 < to; p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (!quoted && p[0] == '/' && p[1] == '/')
            to = p;
    }
    while (to > from && is_space(to[-1]))
        to--;
    l->tok_end = to;
    scan(l);
    return arena_strndup(l->arena, from, (size_t)(to - from));
}
