#include <config.h>

#include "lang/lang_int.h"

#include "base/num.h"

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static char peek(const struct lexer *l, size_t ahead)
{
    return l->pos + ahead < l->end ? l->src->text[l->pos + ahead] : '\0';
}

static struct span here(const struct lexer *l, size_t off)
{
    return (struct span){l->src, off, l->pos - off};
}

static bool bad(struct lexer *l, struct token *t, struct span s, const char *text)
{
    diag_error(l->d, s, "%s", text);
    t->kind = T_BAD;
    return false;
}

static void skip_line(struct lexer *l)
{
    while (l->pos < l->end && peek(l, 0) != '\n' && peek(l, 0) != '\r')
        l->pos++;
}

/* White space and comments; false for a comment that does not end. */
static bool skip_space(struct lexer *l, struct token *t)
{
    for (;;) {
        char c = peek(l, 0);
        if (l->pos >= l->end)
            return true;
        if (c == '\n' || c == '\r') {
            t->newline = true;
            l->pos++;
        } else if (c == ' ' || c == '\t') {
            l->pos++;
        } else if ((c == '/' && peek(l, 1) == '/') || (c == '#' && l->hash_comments)) {
            skip_line(l);
        } else if (c == '/' && peek(l, 1) == '*') {
            size_t start = l->pos;
            const char *end = NULL;
            l->pos += 2;
            if (l->pos <= l->end)
                end = memmem(l->src->text + l->pos, l->end - l->pos, "*/", 2);
            if (!end) {
                l->pos = l->end;
                return bad(l, t, (struct span){l->src, start, 2},
                           "this comment does not end; write '*/' after it");
            }
            for (; l->src->text + l->pos < end; l->pos++)
                t->newline |= peek(l, 0) == '\n';
            l->pos += 2;
        } else {
            return true;
        }
    }
}

static bool int_suffix(struct lexer *l, struct token *t)
{
    static const struct {
        const char *text;
        enum dtype type;
    } suffix[] = {{"", DT_VOID},  {"u", DT_U32},  {"l", DT_I64},   {"ll", DT_I64},
                  {"ul", DT_U64}, {"lu", DT_U64}, {"ull", DT_U64}, {"llu", DT_U64}};
    char word[4] = "";
    size_t n = 0, start = l->pos;
    while (is_alpha(peek(l, 0)) || is_digit(peek(l, 0))) {
        if (n < 3)
            word[n] = (char)(peek(l, 0) | 0x20);
        n++;
        l->pos++;
    }
    for (size_t i = 0; n <= 3 && i < sizeof suffix / sizeof *suffix; i++)
        if (strcmp(word, suffix[i].text) == 0) {
            t->type = suffix[i].type;
            if (t->type == DT_U32 && t->ival > UINT32_MAX)
                t->type = DT_U64;
            return true;
        }
    return bad(l, t, here(l, start),
               n == 1 && (word[0] == 'f' || word[0] == 'h')
                   ? "a float literal has a point or an exponent; write 1.0f"
                   : "no such suffix of an integer; there are u, l, ul and ll");
}

static bool float_suffix(struct lexer *l, struct token *t)
{
    size_t start = l->pos;
    char c = (char)(peek(l, 0) | 0x20);
    t->type = DT_VOID;
    while (is_alpha(peek(l, 0)) || is_digit(peek(l, 0)))
        l->pos++;
    if (l->pos == start)
        return true;
    if (l->pos == start + 1 && (c == 'f' || c == 'h')) {
        t->type = c == 'f' ? DT_F32 : DT_F16;
        t->fval = dtype_round(t->type, t->fval);
        return true;
    }
    return bad(l, t, here(l, start), "no such suffix of a float; there are f and h");
}

/* The digits of base 2 or 16 after the 0x or 0b. */
static bool based_int(struct lexer *l, struct token *t, unsigned shift)
{
    size_t start = l->pos;
    bool over = false;
    l->pos += 2;
    for (int v; (v = hex_digit(peek(l, 0))) >= 0 && v < 1 << shift; l->pos++) {
        over |= t->ival >> (64 - shift) != 0;
        t->ival = t->ival << shift | (uint64_t)v;
    }
    if (l->pos == start + 2)
        return bad(l, t, here(l, start), "digits are missing after the base");
    if (over)
        return bad(l, t, here(l, start), "the integer does not fit in 64 bits");
    return int_suffix(l, t);
}

static bool decimal_int(struct lexer *l, struct token *t, size_t start)
{
    bool over = false;
    for (size_t i = start; i < l->pos; i++) {
        uint64_t digit = (uint64_t)(l->src->text[i] - '0');
        over |= t->ival > (UINT64_MAX - digit) / 10;
        t->ival = t->ival * 10 + digit;
    }
    if (over)
        return bad(l, t, here(l, start), "the integer does not fit in 64 bits");
    if (l->pos - start > 1 && l->src->text[start] == '0')
        return bad(l, t, here(l, start),
                   "an integer does not start with 0; drop the zeros, or write 0x for hexadecimal");
    return int_suffix(l, t);
}

static void skip_digits(struct lexer *l, bool hex)
{
    while (hex ? hex_digit(peek(l, 0)) >= 0 : is_digit(peek(l, 0)))
        l->pos++;
}

/* Is this 0x1.8p3? Looks ahead for the point or the p. */
static bool is_hex_float(const struct lexer *l)
{
    size_t i = 2;
    while (hex_digit(peek(l, i)) >= 0)
        i++;
    return peek(l, i) == '.' || (peek(l, i) | 0x20) == 'p';
}

/* Most literals have few digits and a small exponent: an integer below 2^53 and a power of ten that
 * are both exact doubles, and one operation that rounds once (Clinger, 1990). False for the others,
 * and for hexadecimal. */
static bool short_decimal(const char *s, size_t n, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    int scale = 0, exponent = 0, sign = 1;
    size_t i = 0;
    bool point = false;
    for (; i < n && (is_digit(s[i]) || s[i] == '.'); i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        digits = digits * 10 + (uint64_t)(s[i] - '0');
        scale -= point;
        if (digits >= (uint64_t)1 << 53)
            return false;
    }
    if (i < n && (s[i] | 0x20) == 'e') {
        i++;
        if (s[i] == '-' || s[i] == '+')
            sign = s[i++] == '-' ? -1 : 1;
        for (; i < n && is_digit(s[i]) && exponent < 1000; i++)
            exponent = exponent * 10 + (s[i] - '0');
    }
    scale += sign * exponent;
    if (i != n || scale < -22 || scale > 22)
        return false;
    *out = scale < 0 ? (double)digits / power[-scale] : (double)digits * power[scale];
    return true;
}

static bool float_value(struct lexer *l, struct token *t, size_t start)
{
    const char *s = l->src->text + start;
    size_t n = l->pos - start;
    t->kind = T_FLOAT;
    if (!short_decimal(s, n, &t->fval) && num_double(s, n, &t->fval) != NUM_OK)
        return bad(l, t, here(l, start), "the literal is out of range; write inf for infinity");
    return float_suffix(l, t);
}

static bool exponent(struct lexer *l, char letter)
{
    if ((peek(l, 0) | 0x20) != letter)
        return true;
    size_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
    if (!is_digit(peek(l, 1 + sign)))
        return false;
    l->pos += 1 + sign;
    skip_digits(l, false);
    return true;
}

static bool number(struct lexer *l, struct token *t)
{
    size_t start = l->pos;
    char base = (char)(peek(l, 1) | 0x20);
    t->kind = T_INT;
    t->type = DT_VOID;
    if (peek(l, 0) == '0' && base == 'x' && is_hex_float(l)) {
        l->pos += 2;
        skip_digits(l, true);
        if (peek(l, 0) == '.')
            l->pos++;
        skip_digits(l, true);
        if ((peek(l, 0) | 0x20) != 'p' || !exponent(l, 'p'))
            return bad(l, t, here(l, start), "a hexadecimal float needs an exponent, as in 0x1p-3");
        return float_value(l, t, start);
    }
    if (peek(l, 0) == '0' && base == 'x')
        return based_int(l, t, 4);
    if (peek(l, 0) == '0' && base == 'b')
        return based_int(l, t, 1);
    skip_digits(l, false);
    bool point = peek(l, 0) == '.' && peek(l, 1) != '.'; /* 0..n is a range */
    if (!point && (peek(l, 0) | 0x20) != 'e')
        return decimal_int(l, t, start);
    if (point) {
        l->pos++;
        skip_digits(l, false);
    }
    if (!exponent(l, 'e'))
        return bad(l, t, here(l, start), "the exponent has no digits");
    return float_value(l, t, start);
}

static bool string(struct lexer *l, struct token *t)
{
    char quote = peek(l, 0);
    size_t start = l->pos++;
    while (l->pos < l->end && peek(l, 0) != quote && peek(l, 0) != '\n')
        l->pos += peek(l, 0) == '\\' && l->pos + 1 < l->end ? 2 : 1;
    if (peek(l, 0) != quote)
        return bad(l, t, here(l, start), "this string does not end on its line");
    l->pos++;
    t->kind = T_STRING;
    return true;
}

/* What may begin with a character: alone, before '=', doubled, and doubled before '='. */
static const struct {
    unsigned char one, eq, two, two_eq;
} marks[128] = {
    ['<'] = {T_LT, T_LE, T_SHL, T_SHL_ASSIGN},
    ['>'] = {T_GT, T_GE, T_SHR, T_SHR_ASSIGN},
    ['='] = {T_ASSIGN, 0, T_EQ, 0},
    ['!'] = {T_NOT, T_NE, 0, 0},
    ['&'] = {T_AND, T_AND_ASSIGN, T_LAND, 0},
    ['|'] = {T_OR, T_OR_ASSIGN, T_LOR, 0},
    ['^'] = {T_XOR, T_XOR_ASSIGN, 0, 0},
    ['+'] = {T_ADD, T_ADD_ASSIGN, T_INC, 0},
    ['-'] = {T_SUB, T_SUB_ASSIGN, T_DEC, 0},
    ['*'] = {T_MUL, T_MUL_ASSIGN, 0, 0},
    ['/'] = {T_DIV, T_DIV_ASSIGN, 0, 0},
    ['%'] = {T_MOD, T_MOD_ASSIGN, 0, 0},
    ['.'] = {T_DOT, 0, T_DOTDOT, 0},
    ['~'] = {T_BITNOT, 0, 0, 0},
    ['?'] = {T_QUESTION, 0, 0, 0},
    [':'] = {T_COLON, 0, 0, 0},
    [';'] = {T_SEMICOLON, 0, 0, 0},
    [','] = {T_COMMA, 0, 0, 0},
    ['('] = {T_LPAREN, 0, 0, 0},
    [')'] = {T_RPAREN, 0, 0, 0},
    ['['] = {T_LBRACKET, 0, 0, 0},
    [']'] = {T_RBRACKET, 0, 0, 0},
    ['{'] = {T_LBRACE, 0, 0, 0},
    ['}'] = {T_RBRACE, 0, 0, 0},
    ['#'] = {T_HASH, 0, 0, 0},
};

static bool punctuation(struct lexer *l, struct token *t)
{
    unsigned char c = (unsigned char)peek(l, 0);
    size_t start = l->pos++;
    if (c < 128 && marks[c].one) {
        char next = peek(l, 0);
        t->kind = (enum tok_kind)marks[c].one;
        if (c == '-' && next == '>')
            t->kind = T_ARROW;
        else if (next == (char)c && marks[c].two)
            t->kind = (enum tok_kind)(peek(l, 1) == '=' && marks[c].two_eq ? marks[c].two_eq
                                                                           : marks[c].two);
        else if (next == '=' && marks[c].eq)
            t->kind = (enum tok_kind)marks[c].eq;
        l->pos += t->kind != (enum tok_kind)marks[c].one;
        l->pos += marks[c].two_eq && t->kind == (enum tok_kind)marks[c].two_eq;
        return true;
    }
    while (l->pos < l->end && ((unsigned char)peek(l, 0) & 0xc0) == 0x80)
        l->pos++;
    return bad(l, t, here(l, start), "this character has no meaning here");
}

/* Every name is asked whether it is a type's, and few are: the length and the first letters sort
 * most out. */
static enum dtype type_named(const char *s, size_t n)
{
    enum dtype t = DT_VOID;
    if (n < 2 || n > 13 || !strchr("_bdefhisu", s[0]))
        return t;
    bool known = is_digit(s[1]) || (n >= 3 && strchr("afhiloBn", s[1]));
    return known && dtype_parse(s, n, &t) ? t : DT_VOID;
}

/* A name of types: is the type that it stands for. */
static enum dtype alias_named(const struct lang_types *types, const char *s, size_t n)
{
    for (size_t i = 0; types && i < types->n; i++)
        if (strncmp(types->v[i].name, s, n) == 0 && types->v[i].name[n] == '\0') {
            types->v[i].used = true;
            return types->v[i].type;
        }
    return DT_VOID;
}

uint8_t lang_vector_parse(const char *s, size_t n, const struct lang_types *types, enum dtype *t)
{
    size_t x = n;
    while (x > 0 && is_digit(s[x - 1]))
        x--;
    if (x < 2 || x == n || n - x > 2 || s[x - 1] != 'x' || s[x] == '0')
        return 0;
    unsigned lanes = (unsigned)(s[x] - '0');
    if (n - x == 2)
        lanes = lanes * 10 + (unsigned)(s[x + 1] - '0');
    *t = alias_named(types, s, x - 1);
    bool plain = *t != DT_VOID || is_digit(s[1 + (s[0] == 'b')]); /* not "halfx2" */
    if (*t == DT_VOID)
        *t = type_named(s, x - 1);
    bool power = lanes >= 2 && lanes <= 16 && (lanes & (lanes - 1)) == 0;
    unsigned bytes = *t == DT_VOID || *t == DT_BOOL ? 0 : dtype_bits(*t) / 8 * lanes;
    if (power && plain && bytes >= 4 && bytes <= 16 && !dtype_is_fp8(*t))
        return (uint8_t)lanes;
    *t = DT_VOID;
    return 0;
}

void lex_next(struct lexer *l, struct token *t)
{
    *t = (struct token){.kind = T_EOF, .type = DT_VOID};
    bool good = skip_space(l, t);
    size_t start = l->pos;
    char c = peek(l, 0);
    if (!good || l->pos >= l->end) {
        t->span = (struct span){l->src, start, 0};
        return;
    }
    if (is_alpha(c)) {
        t->kind = T_NAME;
        while (is_alpha(peek(l, 0)) || is_digit(peek(l, 0)))
            l->pos++;
        t->type = type_named(l->src->text + start, l->pos - start);
        if (t->type == DT_VOID)
            t->type = alias_named(l->types, l->src->text + start, l->pos - start);
        if (t->type == DT_VOID)
            t->lanes = lang_vector_parse(l->src->text + start, l->pos - start, l->types, &t->type);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(l, 1)))) {
        number(l, t);
    } else if (c == '"' || c == '\'') {
        string(l, t);
    } else {
        punctuation(l, t);
    }
    if (l->pos > l->end)
        l->pos = l->end;
    t->span = here(l, start);
}

bool tok_is(const struct token *t, const char *word)
{
    size_t n = strlen(word);
    return t->kind == T_NAME && t->span.len == n &&
           memcmp(t->span.src->text + t->span.off, word, n) == 0;
}

const char *tok_text(struct arena *a, const struct token *t)
{
    if (t->kind == T_EOF)
        return "the end of the text";
    return arena_printf(a, "'%.*s'", (int)(t->span.len < 40 ? t->span.len : 40),
                        t->span.src->text + t->span.off);
}
