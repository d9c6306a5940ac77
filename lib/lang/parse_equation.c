#include <config.h>

#include "lang/equations_int.h"

/* To the next line's or ';' 's start, so that one bad equation does not hide the others. */
static void skip_equation(struct parser *p)
{
    while (p->tok.kind != T_EOF && p->tok.kind != T_SEMICOLON &&
           !(p->tok.newline && p->tok.kind == T_NAME))
        parser_next(p);
}

static bool parse_left(struct parser *p, struct equation_syntax *s)
{
    VEC(struct lang_symbol *) index = {0};
    if (p->tok.kind != T_NAME)
        return parser_error(p, "expected an equation, as in 'y[i] = x[i]', not %s",
                            tok_text(p->a, &p->tok));
    s->name = parser_name(p);
    s->name_span = p->tok.span;
    parser_next(p);
    if (p->tok.kind == T_NAME)
        return parser_error(p, "an equation has no type in front; write 'name[i] = ...'");
    if (parser_accept(p, T_LBRACKET)) {
        if (p->tok.kind == T_RBRACKET)
            return parser_error(p, "a tensor without dimensions is written as its bare name");
        do {
            if (p->tok.kind == T_INT)
                return parser_error(p,
                                    "an index here is a name that runs over the whole dimension; "
                                    "choose the value on the right, as in 'i == 0 ? a : b'");
            struct lang_symbol *i = parse_index(p);
            if (!i)
                return false;
            *VEC_PUSH(p->a, &index) = i;
            if (p->tok.kind != T_COMMA && p->tok.kind != T_RBRACKET)
                return parser_error(p, "an index on the left is a bare name, with a range at most: "
                                       "write the arithmetic on the right");
        } while (parser_accept(p, T_COMMA));
        if (!parser_expect(p, T_RBRACKET, "after the indices"))
            return false;
    }
    s->eq->index = index.v;
    s->eq->nindex = (uint32_t)index.n;
    return true;
}

static bool parse_equation(struct parser *p, struct equation_syntax *s)
{
    s->eq = ARENA_NEW(p->a, struct lang_equation);
    s->eq->span = p->tok.span;
    if (!parse_left(p, s))
        return false;
    if (p->tok.kind >= T_SHL_ASSIGN && p->tok.kind <= T_OR_ASSIGN && p->tok.kind != T_ASSIGN &&
        p->tok.span.len > 1 && p->tok.kind != T_EQ)
        return parser_error(
            p, "an equation defines its left side once; write '=' and the whole value");
    if (p->tok.kind == T_EQ)
        return parser_error(p, "an equation is written with one '='");
    if (!parser_expect(p, T_ASSIGN, "in the equation"))
        return false;
    s->eq->rhs = parse_expr(p);
    if (!s->eq->rhs)
        return false;
    s->eq->span = span_join(s->eq->span, p->prev);
    if (p->tok.kind == T_EOF || p->tok.kind == T_SEMICOLON || p->tok.newline)
        return true;
    return parser_error(p, "expected an operator or the end of the equation, not %s",
                        tok_text(p->a, &p->tok));
}

bool parse_equations(struct arena *a, struct span text, const struct lang_types *types,
                     struct equation_text *out, struct diags *d)
{
    struct parser p;
    bool good = parser_init(&p, a, text, true, types, d);
    if (!good)
        return false;
    while (p.tok.kind != T_EOF) {
        if (parser_accept(&p, T_SEMICOLON))
            continue;
        struct equation_syntax s = {0};
        if (out->v.n == LANG_MAX_EQUATIONS)
            return parser_error(&p, "more than %d equations", LANG_MAX_EQUATIONS);
        size_t before = p.tok.span.off;
        if (parse_equation(&p, &s)) {
            *VEC_PUSH(a, &out->v) = s;
            continue;
        }
        good = false;
        p.depth = 0;
        if (p.tok.span.off == before && p.tok.kind != T_EOF)
            parser_next(&p);
        skip_equation(&p);
    }
    if (good && out->v.n == 0)
        return diag_error(d, text, "there are no equations here");
    return good;
}
