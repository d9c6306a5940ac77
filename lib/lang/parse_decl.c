/* Declarations of variables and arrays. */
#include <config.h>

#include "lang/lang_int.h"

struct lang_stmt *parse_new_stmt(struct parser *p, enum lang_stmt_kind k, struct span s)
{
    struct lang_stmt *t = ARENA_NEW(p->a, struct lang_stmt);
    t->kind = k;
    t->span = s;
    return t;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

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

static bool array_list(struct parser *p, struct lang_stmt *s)
{
    if (p->tok.kind != T_LBRACE)
        return parser_error(p, "an array's values are a list in braces, as in {1, 2} or {}");
    s->rhs = list(p);
    return s->rhs != NULL;
}

/* ---- declarations ---------------------------------------------------------------------------- */

/* "f32 x", "const", "auto", "shared": does a declaration begin here? */
bool parse_at_declaration(struct parser *p)
{
    if (tok_is(&p->tok, "const") || tok_is(&p->tok, "auto") || tok_is(&p->tok, "shared"))
        return true;
    return p->tok.kind == T_NAME && p->tok.type != DT_VOID && parser_ahead(p)->kind != T_LPAREN;
}

static bool declared_name(struct parser *p, struct lang_symbol *sym)
{
    if (p->tok.kind == T_MUL || p->tok.kind == T_AND)
        return parser_error(p, "there are no pointers; subscript the buffer by its name");
    if (p->tok.kind != T_NAME)
        return parser_error(p, "expected the variable's name, not %s", tok_text(p->a, &p->tok));
    sym->name = parser_name(p);
    sym->span = p->tok.span;
    const char *why = lang_reserved(sym->name, p->lex.types);
    if (why)
        return parser_error(p, "'%s' is %s and can't name a variable", sym->name, why);
    parser_next(p);
    return p->tok.kind != T_LBRACKET || parse_array_extents(p, sym);
}

static bool initialiser(struct parser *p, struct lang_stmt *s)
{
    const char *name = s->sym->name;
    if (s->sym->kind == SYM_SHARED)
        return parser_error(p,
                            "shared memory has no initial value; assign '%s' in the body and then "
                            "call __syncthreads()",
                            name);
    parser_next(p);
    if (s->sym->rank > 0) {
        s->has_list = true;
        return array_list(p, s);
    }
    if (p->tok.kind == T_LBRACE)
        return parser_error(p, "'%s' is no array; an array is declared %s[4] = {...}", name, name);
    s->rhs = parse_expr(p);
    return s->rhs != NULL;
}

static bool declarator(struct parser *p, const struct lang_symbol *as, struct lang_stmt **out)
{
    struct lang_stmt *s = *out = parse_new_stmt(p, S_DECL, p->tok.span);
    s->sym = ARENA_NEW(p->a, struct lang_symbol);
    *s->sym = *as;
    if (!declared_name(p, s->sym))
        return false;
    if (p->tok.kind == T_LPAREN)
        return parser_error(p, "functions are defined in 'functions:', not in a body");
    if (as->type == DT_VOID && s->sym->rank > 0)
        return parser_error(p, "an array is declared with its type, not 'auto'");
    if (p->tok.kind == T_ASSIGN) {
        if (!initialiser(p, s))
            return false;
    } else if (as->type == DT_VOID) {
        return parser_error(p, "'auto' takes its type from a value; write 'auto %s = ...'",
                            s->sym->name);
    } else if (as->is_const) {
        return parser_error(p, "a const needs its value; write 'const %s %s%s = ...'",
                            lang_type_name(p->a, as->type, as->lanes), s->sym->name,
                            s->sym->rank ? "[...]" : "");
    }
    s->span = span_join(s->span, p->prev);
    return true;
}

static bool declared_type(struct parser *p, struct lang_symbol *as)
{
    enum dtype type = as->type = p->tok.type;
    as->lanes = p->tok.lanes;
    if (tok_is(&p->tok, "volatile"))
        return parser_error(p, LANG_NO_VOLATILE);
    if (p->tok.kind != T_NAME || type == DT_VOID)
        return parser_error(p, "expected a type, not %s", tok_text(p->a, &p->tok));
    if (dtype_bits(type) < 8 || dtype_is_fp8(type))
        return parser_error(p, "a variable can't be %s; load it into %s", dtype_name(type),
                            dtype_is_float(type) ? "f32" : "i32");
    parser_next(p);
    if (tok_is(&p->tok, "const")) {
        as->is_const = true;
        parser_next(p);
    }
    if (p->tok.kind == T_NAME && p->tok.type != DT_VOID)
        return parser_error(p, "two types in a row; write one, as in 'u32', 'i64' or 'f32'");
    return true;
}

/* "const u32 a = 1, b = 2", "shared f32 tile[32][33]", without the ';'. */
bool parse_declaration(struct parser *p, stmt_list *out)
{
    struct lang_symbol as = {.kind = SYM_LOCAL, .type = DT_VOID};
    bool is_auto = false;
    for (;; parser_next(p)) {
        if (tok_is(&p->tok, "const"))
            as.is_const = true;
        else if (tok_is(&p->tok, "auto"))
            is_auto = true;
        else if (tok_is(&p->tok, "shared"))
            as.kind = SYM_SHARED;
        else
            break;
    }
    if (as.kind == SYM_SHARED && (as.is_const || is_auto))
        return parser_error(p, "shared memory is declared with its type alone: shared f32 x[256];");
    if (!is_auto && !declared_type(p, &as))
        return false;
    do {
        struct lang_stmt *s;
        if (!declarator(p, &as, &s))
            return false;
        *VEC_PUSH(p->a, out) = s;
    } while (parser_accept(p, T_COMMA));
    return true;
}
