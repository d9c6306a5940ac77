/* Arrays: their extents and lists of initial values. */
#include <config.h>

#include "lang/lang_int.h"

bool parse_array_extents(struct parser *p, struct lang_symbol *sym)
{
    VEC(struct lang_expr *) dims = {0};
    while (parser_accept(p, T_LBRACKET)) {
        if (p->tok.kind == T_RBRACKET) { /* shared f32 buf[]: as many as the launch gives */
            if (sym->kind != SYM_SHARED || dims.n)
                return parser_error(p, "an array needs its size; write %s[16]", sym->name);
            sym->rank = 1;
            sym->dims = ARENA_NEW(p->a, struct lang_expr *);
            parser_next(p);
            return p->tok.kind != T_LBRACKET ||
                   parser_error(p, "an array without a size has one dimension");
        }
        do {
            if (dims.n == LANG_MAX_ARRAY_RANK)
                return parser_error(p, "an array has at most %d dimensions", LANG_MAX_ARRAY_RANK);
            struct lang_expr *e = parse_expr(p);
            if (!e)
                return false;
            *VEC_PUSH(p->a, &dims) = e;
        } while (parser_accept(p, T_COMMA));
        if (!parser_expect(p, T_RBRACKET, "after the array's size"))
            return false;
    }
    sym->dims = dims.v;
    sym->rank = (uint32_t)dims.n;
    return true;
}

/* { e, {e, e}, ... }: an E_VECTOR without lanes, whose values may be such lists again. */
static struct lang_expr *list(struct parser *p)
{
    VEC(struct lang_expr *) v = {0};
    struct lang_expr *e = expr_new(p->a, E_VECTOR, p->tok.span);
    if (!parser_enter(p))
        return NULL;
    parser_next(p);
    while (p->tok.kind != T_RBRACE) {
        struct lang_expr *one = p->tok.kind == T_LBRACE ? list(p) : parse_expr(p);
        if (!one)
            return NULL;
        *VEC_PUSH(p->a, &v) = one;
        if (!parser_accept(p, T_COMMA))
            break;
    }
    parser_leave(p);
    if (!parser_expect(p, T_RBRACE, "after the array's values"))
        return NULL;
    e->args = v.v;
    e->nargs = (uint32_t)v.n;
    return expr_finish(p, e) ? e : NULL;
}

bool parse_array_list(struct parser *p, struct lang_stmt *s)
{
    if (p->tok.kind != T_LBRACE)
        return parser_error(p, "an array's values are a list in braces, as in {1, 2} or {}");
    s->rhs = list(p);
    return s->rhs != NULL;
}
