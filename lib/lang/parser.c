#include <config.h>

#include "lang/lang_int.h"

bool parser_init(struct parser *p, struct arena *a, struct span text, bool hash_comments,
                 const struct lang_types *types, struct diags *d)
{
    *p = (struct parser){.a = a, .d = d};
    p->lex = (struct lexer){d, text.src, text.off, text.off + text.len, hash_comments, types};
    if (text.len > LANG_MAX_TEXT) {
        text.len = 1;
        return diag_error(d, text, "this text is longer than 256 KiB");
    }
    p->prev = (struct span){text.src, text.off, 0};
    lex_next(&p->lex, &p->tok);
    return true;
}

void parser_next(struct parser *p)
{
    p->prev = p->tok.span;
    if (p->has_ahead)
        p->tok = p->ahead;
    else
        lex_next(&p->lex, &p->tok);
    p->has_ahead = false;
}

const struct token *parser_ahead(struct parser *p)
{
    if (!p->has_ahead)
        lex_next(&p->lex, &p->ahead);
    p->has_ahead = true;
    return &p->ahead;
}

bool parser_at_notation(const struct parser *p)
{
    struct lexer lex = p->lex;
    struct token tok = p->ahead;
    unsigned depth = 0;
    lex.d = diags_new(p->a);
    do {
        depth += tok.kind == T_LBRACKET;
        depth -= tok.kind == T_RBRACKET;
        lex_next(&lex, &tok);
    } while (depth && tok.kind != T_EOF && tok.kind != T_BAD);
    return tok.kind == T_LPAREN;
}

bool parser_accept(struct parser *p, enum tok_kind k)
{
    if (p->tok.kind != k)
        return false;
    parser_next(p);
    return true;
}

bool parser_error(struct parser *p, const char *fmt, ...)
{
    if (p->tok.kind == T_BAD)
        return false;
    va_list ap;
    va_start(ap, fmt);
    diag_error(p->d, p->tok.span, "%s", arena_vprintf(p->a, fmt, ap));
    va_end(ap);
    return false;
}

bool parser_expect(struct parser *p, enum tok_kind k, const char *what)
{
    static const char *const text[] = {[T_EOF] = "the end",
                                       [T_NAME] = "a name",
                                       [T_INT] = "an integer",
#define X(NAME, text) [T_##NAME] = "'" text "'",
                                       LANG_PUNCTUATION(X)
#undef X
    };
    if (parser_accept(p, k))
        return true;
    return parser_error(p, "expected %s%s%s, not %s", text[k], *what ? " " : "", what,
                        tok_text(p->a, &p->tok));
}

bool parser_enter(struct parser *p)
{
    if (p->depth >= LANG_MAX_NESTING)
        return parser_error(p, "nested more than %d levels deep", LANG_MAX_NESTING);
    p->depth++;
    return true;
}

void parser_leave(struct parser *p)
{
    p->depth--;
}

const char *parser_name(struct parser *p)
{
    return arena_strndup(p->a, p->tok.span.src->text + p->tok.span.off, p->tok.span.len);
}

bool parser_at_type(const struct parser *p, enum dtype *t)
{
    if (p->tok.kind != T_NAME || p->tok.type == DT_VOID || p->tok.lanes)
        return false;
    *t = p->tok.type;
    return true;
}
