/* "in f32[rows, cols / 2]", "f32 = 1e-5": a parameter's declaration. */
#include <config.h>

#include "lang/lang_int.h"

static bool parse_type(struct parser *p, enum dtype *t)
{
    static const char *const modes[] = {"in", "out", "inout", NULL};
    if (parser_at_type(p, t)) {
        parser_next(p);
        return true;
    }
    if (p->tok.kind != T_NAME)
        return parser_error(p, "expected a type, as in 'in f32[n]' or 'f32 = 1.0', not %s",
                            tok_text(p->a, &p->tok));
    const char *word = parser_name(p);
    const char *near = diag_nearest(word, strlen(word), dtype_names());
    if (!near)
        near = diag_nearest(word, strlen(word), modes);
    if (strcmp(word, "long") == 0)
        near = "i64";
    if (strcmp(word, "char") == 0)
        near = "i8";
    if (near)
        return parser_error(p, "unknown type '%s'; did you mean '%s'?", word, near);
    if (strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(word))
        return parser_error(p, "unknown type '%s'; for a choice, write 'types: {%s: [f16, f32]}'",
                            word, word);
    return parser_error(p,
                        "unknown type '%s'; there are f64 f32 f16 bf16 e4m3 e5m2 i64 i32 i16 i8 i4 "
                        "u64 u32 u16 u8 u4 bool",
                        word);
}

static bool parse_dims(struct parser *p, struct lang_symbol *sym)
{
    VEC(struct lang_expr *) dims = {0};
    if (p->tok.kind != T_RBRACKET) {
        do {
            if (dims.n == LANG_MAX_RANK)
                return parser_error(p, "a buffer has at most %d dimensions", LANG_MAX_RANK);
            struct lang_expr *e = parse_expr(p);
            if (!e)
                return false;
            *VEC_PUSH(p->a, &dims) = e;
        } while (parser_accept(p, T_COMMA));
    }
    sym->dims = dims.v;
    sym->rank = (uint32_t)dims.n;
    if (!parser_expect(p, T_RBRACKET, "after the dimensions"))
        return false;
    if (p->tok.kind == T_LBRACKET)
        return parser_error(p, "write all dimensions in one pair of brackets, as in f32[m, n]");
    return true;
}

static bool parse_scalar(struct parser *p, struct lang_symbol *sym, bool has_mode,
                         struct lang_expr **value)
{
    enum dtype t = sym->type;
    sym->kind = SYM_SCALAR;
    if (p->tok.kind == T_MUL || p->tok.kind == T_AND)
        return parser_error(
            p,
            "there are no pointers; a buffer is declared with its dimensions, as in "
            "%s[n]",
            dtype_name(t));
    if (has_mode)
        return diag_error(p->d, p->prev,
                          "a buffer needs its dimensions, as in %s[n]; a scalar has no "
                          "in or out",
                          dtype_name(t));
    if (dtype_bits(t) < 8 || dtype_is_fp8(t))
        return diag_error(p->d, p->prev, "a scalar can't be %s; use %s", dtype_name(t),
                          dtype_is_float(t) ? "f32" : "i32");
    if (!parser_accept(p, T_ASSIGN))
        return true;
    *value = parse_expr(p);
    return *value != NULL;
}

static bool parse_buffer(struct parser *p, struct lang_symbol *sym)
{
    sym->kind = SYM_BUFFER;
    if (!parse_dims(p, sym))
        return false;
    if (p->tok.kind == T_ASSIGN)
        return parser_error(p, "a buffer has no default");
    if (dtype_bits(sym->type) < 8 && sym->rank == 0)
        return diag_error(p->d, p->prev,
                          "%s is packed two to a byte and needs an even last dimension",
                          dtype_name(sym->type));
    return true;
}

bool lang_parse_param(struct arena *a, struct span text, const struct lang_types *types,
                      struct lang_symbol *sym, struct lang_expr **value, struct diags *d)
{
    static const char *const modes[] = {
        [MODE_IN] = "in", [MODE_OUT] = "out", [MODE_INOUT] = "inout"};
    struct parser p;
    bool has_mode = false;
    *value = NULL;
    if (!parser_init(&p, a, text, false, types, d))
        return false;
    if (p.tok.kind == T_EOF)
        return diag_error(d, text, "a declaration is missing, as in 'in f32[n]' or 'f32 = 1.0'");
    for (size_t i = 0; i < 3 && !has_mode; i++)
        if (tok_is(&p.tok, modes[i])) {
            sym->mode = (enum lang_mode)i;
            has_mode = true;
            parser_next(&p);
        }
    if (!parse_type(&p, &sym->type))
        return false;
    bool good = parser_accept(&p, T_LBRACKET) ? parse_buffer(&p, sym)
                                              : parse_scalar(&p, sym, has_mode, value);
    if (good && p.tok.kind != T_EOF)
        good = parser_error(&p, "expected the end of the declaration, not %s", tok_text(a, &p.tok));
    return good;
}
