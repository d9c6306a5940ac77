/* functions: definitions, in C's syntax: f32 name(f32 x, i32 n) { ... }. */
#include <config.h>

#include "lang/lang_int.h"

static bool parse_result(struct parser *p, enum dtype *t, uint8_t *lanes)
{
    while (tok_is(&p->tok, "static") || tok_is(&p->tok, "inline") || tok_is(&p->tok, "__device__"))
        parser_next(p);
    *t = p->tok.kind == T_NAME ? p->tok.type : DT_VOID;
    *lanes = p->tok.lanes;
    if (!tok_is(&p->tok, "void") && *t == DT_VOID)
        return parser_error(
            p, "expected a function, as in 'f32 square(f32 x) { return x * x; }', not %s",
            tok_text(p->a, &p->tok));
    parser_next(p);
    return true;
}

static bool parse_parameter(struct parser *p, struct lang_symbol *sym)
{
    sym->kind = SYM_LOCAL;
    for (;; parser_next(p)) {
        if (tok_is(&p->tok, "const"))
            sym->is_const = true;
        else if (tok_is(&p->tok, "shared"))
            sym->kind = SYM_SHARED;
        else
            break;
    }
    sym->type = p->tok.kind == T_NAME ? p->tok.type : DT_VOID;
    sym->lanes = p->tok.lanes;
    if (sym->type == DT_VOID)
        return parser_error(p, "expected a parameter's type, not %s", tok_text(p->a, &p->tok));
    if (dtype_bits(sym->type) < 8 || dtype_is_fp8(sym->type))
        return parser_error(p, "a parameter can't be %s; use %s", dtype_name(sym->type),
                            dtype_is_float(sym->type) ? "f32" : "i32");
    parser_next(p);
    if (p->tok.kind == T_MUL || p->tok.kind == T_AND)
        return parser_error(p,
                            "there are no pointers; a function sees the kernel's buffers by name");
    if (p->tok.kind != T_NAME)
        return parser_error(p, "expected a parameter's name, not %s", tok_text(p->a, &p->tok));
    sym->name = parser_name(p);
    sym->span = p->tok.span;
    const char *why = lang_reserved(sym->name, p->lex.types);
    if (why)
        return parser_error(p, "'%s' is %s and can't name a parameter", sym->name, why);
    parser_next(p);
    return p->tok.kind != T_LBRACKET || parse_array_extents(p, sym);
}

static bool parse_parameters(struct parser *p, struct lang_func *f)
{
    VEC(struct lang_symbol *) params = {0};
    if (!parser_expect(p, T_LPAREN, "after the function's name"))
        return false;
    if (tok_is(&p->tok, "void"))
        parser_next(p);
    if (p->tok.kind != T_RPAREN) {
        do {
            struct lang_symbol *sym = ARENA_NEW(p->a, struct lang_symbol);
            if (!parse_parameter(p, sym))
                return false;
            sym->id = (uint32_t)params.n;
            for (size_t i = 0; i < params.n; i++)
                if (strcmp(params.v[i]->name, sym->name) == 0)
                    return diag_error(p->d, sym->span, "two parameters are called '%s'", sym->name);
            *VEC_PUSH(p->a, &params) = sym;
        } while (parser_accept(p, T_COMMA));
    }
    f->param = params.v;
    f->nparam = (uint32_t)params.n;
    return parser_expect(p, T_RPAREN, "after the parameters");
}

/* The text from '{' to its '}', unparsed, for a library of which little is used. False when there
 * is no end. */
static bool skip_body(struct parser *p, struct span *text)
{
    const char *t = p->tok.span.src->text;
    size_t at = p->tok.span.off, end = p->lex.end, depth = 0;
    *text = (struct span){p->tok.span.src, at, 0};
    for (; at < end; at++) {
        if (t[at] == '/' && at + 1 < end && (t[at + 1] == '/' || t[at + 1] == '*')) {
            const char *close = t[at + 1] == '/' ? "\n" : "*/";
            const char *found = memmem(t + at + 2, end - at - 2, close, strlen(close));
            if (!found)
                break;
            at = (size_t)(found - t) + strlen(close) - 1;
            continue;
        }
        depth += t[at] == '{';
        if (t[at] == '}' && --depth == 0) {
            text->len = at + 1 - text->off;
            p->lex.pos = at + 1;
            p->has_ahead = false;
            parser_next(p);
            return true;
        }
    }
    return parser_error(p, "this '{' is never closed");
}

static struct lang_func *parse_function(struct parser *p, bool lazy)
{
    struct lang_func *f = ARENA_NEW(p->a, struct lang_func);
    f->priv = ARENA_NEW(p->a, struct lang_func_private);
    if (!parse_result(p, &f->result, &f->result_lanes))
        return NULL;
    if (p->tok.kind != T_NAME) {
        parser_error(p, "expected the function's name, not %s", tok_text(p->a, &p->tok));
        return NULL;
    }
    f->name = parser_name(p);
    f->span = p->tok.span;
    const char *why = lang_reserved(f->name, p->lex.types);
    if (why) {
        parser_error(p, "'%s' is %s and can't name a function", f->name, why);
        return NULL;
    }
    parser_next(p);
    if (!parse_parameters(p, f))
        return NULL;
    if (p->tok.kind != T_LBRACE) {
        parser_error(p, "expected the body of '%s' in { }, not %s", f->name,
                     tok_text(p->a, &p->tok));
        return NULL;
    }
    if (lazy)
        return skip_body(p, &f->priv->text) ? f : NULL;
    f->body = parse_stmt_block(p);
    return f->body ? f : NULL;
}

static bool add_function(struct parser *p, struct lang_func *f, struct lang_scope *scope,
                         const struct lang_options *opt)
{
    const struct lang_symbol *other = lang_find(scope, f->name);
    bool fast;
    if (lang_builtin_parse(f->name, &fast) != FN_COUNT)
        return diag_error(p->d, f->span, "'%s' is a function of the language; choose another name",
                          f->name);
    if (other) {
        diag_error(p->d, f->span, "'%s' is %s already; choose another name", f->name,
                   other->kind == SYM_FUNC ? "defined" : "a parameter or a dimension");
        if (other->span.src)
            diag_note(p->d, other->span, "'%s' is declared here", f->name);
        return false;
    }
    struct lang_symbol *sym = ARENA_NEW(p->a, struct lang_symbol);
    struct lang_func_private *priv = f->priv;
    sym->kind = SYM_FUNC;
    sym->name = f->name;
    sym->span = f->span;
    sym->type = f->result;
    sym->func = f;
    priv->a = p->a;
    priv->scope = scope;
    priv->opt = *opt;
    scope_add(p->a, scope, sym);
    return true;
}

static bool parse_lazy_body(struct lang_func *f, struct diags *d)
{
    struct parser p;
    if (f->body)
        return true;
    if (parser_init(&p, f->priv->a, f->priv->text, false, f->priv->opt.types, d))
        f->body = parse_stmt_block(&p);
    return f->body != NULL;
}

bool check_func(struct lang_func *f, uint32_t calls, struct diags *d)
{
    struct lang_func_private *priv = f->priv;
    if (f->checked)
        return !priv->failed;
    if (calls > LANG_MAX_CALLS)
        return true; /* the caller reports it */
    if (priv->checking)
        return diag_error(d, f->span,
                          "'%s' calls itself; functions are inlined, so recursion is not possible",
                          f->name);
    struct lang_scope params = {.up = priv->scope};
    struct checker c = {
        .a = priv->a, .d = d, .scope = &params, .opt = priv->opt, .place = IN_BODY, .func = f};
    c.opt.index_is_i64 = false;
    bool good = true;
    for (uint32_t i = 0; i < f->nparam; i++) {
        good &= check_extents(&c, f->param[i]);
        scope_add(priv->a, &params, f->param[i]);
    }
    c.nlocal = f->nparam;
    c.calls = calls;
    priv->checking = true;
    priv->failed = !good || !parse_lazy_body(f, d) || !check_stmts(&c, f->body);
    for (uint32_t i = 0; i < f->nparam && !priv->failed; i++)
        if (!f->param[i]->used)
            diag_warning(d, f->param[i]->span, "'%s' is never used", f->param[i]->name);
    priv->checking = false;
    priv->syncs = c.syncs;
    f->nlocal = c.nlocal;
    f->weight = c.weight + 1;
    f->depth = c.depth + 1;
    f->checked = true;
    return !priv->failed;
}

/* const f32 w[5] = {...}; for the functions after it and the body. */
static bool parse_table(struct parser *p, struct lang_scope *scope, const struct lang_options *opt)
{
    stmt_list list = {0};
    struct span at = p->tok.span;
    if (!parse_declaration(p, &list) ||
        !parser_expect(p, T_SEMICOLON, "after the table; a function's result is not const"))
        return false;
    struct lang_stmt *block = parse_new_stmt(p, S_BLOCK, at);
    block->body = list.v;
    block->nbody = (uint32_t)list.n;
    return check_tables(p->a, block, scope, opt, p->d);
}

bool lang_check_func(struct lang_func *f, struct diags *d)
{
    return check_func(f, 0, d);
}

bool lang_functions(struct arena *a, struct span text, struct lang_scope *scope,
                    const struct lang_options *opt, struct diags *d)
{
    struct parser p;
    size_t first = scope->syms.n;
    bool good = parser_init(&p, a, text, false, opt->types, d);
    if (!good)
        return false;
    while (p.tok.kind != T_EOF) {
        if (parser_accept(&p, T_SEMICOLON))
            continue;
        if (tok_is(&p.tok, "const")) {
            if (!parse_table(&p, scope, opt))
                return false;
            continue;
        }
        struct lang_func *f = parse_function(&p, opt->lazy_functions);
        if (!f)
            return false;
        good &= add_function(&p, f, scope, opt);
    }
    for (size_t i = first; !opt->lazy_functions && i < scope->syms.n; i++)
        if (scope->syms.v[i]->kind == SYM_FUNC)
            good &= check_func(scope->syms.v[i]->func, 0, d);
    return good;
}
