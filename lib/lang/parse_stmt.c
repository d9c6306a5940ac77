/* body: and functions: statements and definitions. */
#include <config.h>

#include "lang/lang_int.h"

static bool parse_stmt(struct parser *p, stmt_list *out);

/* ---- recovery -------------------------------------------------------------------------------- */

/* To behind the next ';' of this block, or to its '}'. */
static void skip_statement(struct parser *p)
{
    unsigned depth = 0;
    while (p->tok.kind != T_EOF) {
        if (p->tok.kind == T_LBRACE)
            depth++;
        if (p->tok.kind == T_RBRACE && depth-- == 0)
            return;
        bool end = (p->tok.kind == T_SEMICOLON || p->tok.kind == T_RBRACE) && depth == 0;
        parser_next(p);
        if (end)
            return;
    }
}

static bool expect_semicolon(struct parser *p, const char *what)
{
    if (parser_accept(p, T_SEMICOLON))
        return true;
    if (p->tok.kind == T_BAD)
        return false;
    if (p->tok.newline || p->tok.kind == T_EOF || p->tok.kind == T_RBRACE) {
        struct span after = {p->prev.src, p->prev.off + p->prev.len, 1};
        return diag_error(p->d, after, "a ';' is missing %s", what);
    }
    return parser_error(p, "expected ';' %s, not %s", what, tok_text(p->a, &p->tok));
}

/* ---- assignments and calls ------------------------------------------------------------------- */

static bool assignment_op(enum tok_kind k, enum lang_op *op)
{
    static const struct {
        enum tok_kind kind;
        enum lang_op op;
    } table[] = {{T_ADD_ASSIGN, OP_ADD}, {T_SUB_ASSIGN, OP_SUB}, {T_MUL_ASSIGN, OP_MUL},
                 {T_DIV_ASSIGN, OP_DIV}, {T_MOD_ASSIGN, OP_MOD}, {T_AND_ASSIGN, OP_AND},
                 {T_XOR_ASSIGN, OP_XOR}, {T_OR_ASSIGN, OP_OR},   {T_SHL_ASSIGN, OP_SHL},
                 {T_SHR_ASSIGN, OP_SHR}, {T_INC, OP_ADD},        {T_DEC, OP_SUB}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == k) {
            *op = table[i].op;
            return true;
        }
    return false;
}

static struct lang_expr *literal_one(struct parser *p, struct span s)
{
    struct lang_expr *e = expr_new(p->a, E_INT, s);
    e->type = DT_I32;
    e->ival = 1;
    return e;
}

/* NAME where a declaration's type is expected. */
static bool not_a_type(struct parser *p, struct span s, const char *name)
{
    static const char *const cuda[][2] = {
        {"float2", "f32x2"},         {"float4", "f32x4"}, {"double2", "f64x2"}, {"int2", "i32x2"},
        {"int4", "i32x4"},           {"uint2", "u32x2"},  {"uint4", "u32x4"},   {"half2", "f16x2"},
        {"__half2", "f16x2"},        {"__half", "f16"},   {"uint", "u32"},      {"uchar4", "u8x4"},
        {"__nv_bfloat162", "bf16x2"}};
    for (size_t i = 0; i < sizeof cuda / sizeof *cuda; i++)
        if (strcmp(name, cuda[i][0]) == 0)
            return diag_error(p->d, s, "there is no type '%s'; write %s", name, cuda[i][1]);
    const char *x = strrchr(name, 'x');
    enum dtype t;
    if (strcmp(name, "volatile") == 0)
        return diag_error(p->d, s, LANG_NO_VOLATILE);
    if (x && x[1] && strspn(x + 1, "0123456789") == strlen(x + 1) &&
        (dtype_parse(name, (size_t)(x - name), &t) ||
         lang_reserved(arena_strndup(p->a, name, (size_t)(x - name)), p->lex.types)))
        return diag_error(
            p->d, s, "there is no '%s': a vector has 2, 4, 8 or 16 lanes and 4 to 16 bytes", name);
    return diag_error(p->d, s, "'%s' is not a type", name);
}

/* x = e, x += e, x++, ++x, f(x): without the ';'. */
static struct lang_stmt *simple_statement(struct parser *p)
{
    struct lang_stmt *s = parse_new_stmt(p, S_EXPR, p->tok.span);
    struct span at = p->tok.span;
    enum lang_op op = OP_ADD;
    bool prefix = p->tok.kind == T_INC || p->tok.kind == T_DEC;
    if (prefix) {
        assignment_op(p->tok.kind, &op);
        parser_next(p);
    }
    struct lang_expr *e = parse_expr(p);
    if (!e)
        return NULL;
    s->rhs = e;
    bool fast, compound = assignment_op(p->tok.kind, &op);
    if (prefix || p->tok.kind == T_INC || p->tok.kind == T_DEC) {
        s->kind = S_ASSIGN;
        s->lhs = e;
        s->rhs = literal_one(p, prefix ? at : p->tok.span);
        s->has_op = true;
        s->op = op;
        if (!prefix)
            parser_next(p);
    } else if (compound || p->tok.kind == T_ASSIGN) {
        s->kind = S_ASSIGN;
        s->lhs = e;
        s->has_op = compound;
        s->op = op;
        parser_next(p);
        s->rhs = parse_expr(p);
        if (!s->rhs)
            return NULL;
    } else if (e->kind != E_CALL) {
        if (e->kind == E_NAME && p->tok.kind == T_NAME)
            not_a_type(p, e->span, e->name);
        else if (e->kind == E_NAME && lang_builtin_parse(e->name, &fast) != FN_COUNT)
            diag_error(p->d, e->span, "'%s' is a function; write %s(...)", e->name, e->name);
        else if (p->tok.kind == T_SEMICOLON || p->tok.kind == T_RBRACE)
            diag_error(p->d, e->span, "this computes a value that nothing uses; assign it");
        else
            parser_error(p, "expected '=' or an operator, not %s", tok_text(p->a, &p->tok));
        return NULL;
    }
    s->span = span_join(s->span, p->prev);
    return s;
}

/* ---- control --------------------------------------------------------------------------------- */

static struct lang_stmt *as_block(struct parser *p, const stmt_list *list, struct span s)
{
    struct lang_stmt *b = parse_new_stmt(p, S_BLOCK, span_join(s, p->prev));
    b->body = list->v;
    b->nbody = (uint32_t)list->n;
    return b;
}

/* A branch or a loop's body: always a block, so that a declaration in it has its own scope. */
static struct lang_stmt *branch(struct parser *p)
{
    stmt_list list = {0};
    struct span s = p->tok.span;
    if (p->tok.kind == T_LBRACE)
        return parse_stmt_block(p);
    if (p->tok.kind == T_SEMICOLON) {
        parser_error(p, "an empty statement here is easily overlooked; write {}");
        return NULL;
    }
    return parse_stmt(p, &list) ? as_block(p, &list, s) : NULL;
}

static struct lang_expr *parenthesised(struct parser *p, const char *what)
{
    if (!parser_expect(p, T_LPAREN, what))
        return NULL;
    struct lang_expr *e = parse_expr(p);
    if (e && p->tok.kind == T_ASSIGN) {
        parser_error(p, "an assignment is not a condition; write '==' to compare");
        return NULL;
    }
    return e && parser_expect(p, T_RPAREN, "after the condition") ? e : NULL;
}

static void set_bodies(struct parser *p, struct lang_stmt *s, struct lang_stmt *first,
                       struct lang_stmt *second)
{
    s->body = ARENA_ARRAY(p->a, 2, struct lang_stmt *);
    s->body[0] = first;
    s->body[1] = second;
    s->nbody = second ? 2 : 1;
    s->span = span_join(s->span, p->prev);
}

static bool parse_if(struct parser *p, struct lang_stmt *s)
{
    struct lang_stmt *no = NULL;
    parser_next(p);
    s->cond = parenthesised(p, "after 'if'");
    struct lang_stmt *yes = s->cond ? branch(p) : NULL;
    if (!yes)
        return false;
    if (tok_is(&p->tok, "else")) {
        parser_next(p);
        no = branch(p);
        if (!no)
            return false;
    }
    set_bodies(p, s, yes, no);
    return true;
}

static bool parse_while(struct parser *p, struct lang_stmt *s)
{
    parser_next(p);
    s->cond = parenthesised(p, "after 'while'");
    struct lang_stmt *body = s->cond ? branch(p) : NULL;
    if (body)
        set_bodies(p, s, body, NULL);
    return body != NULL;
}

static bool parse_do(struct parser *p, struct lang_stmt *s)
{
    parser_next(p);
    struct lang_stmt *body = branch(p);
    if (!body)
        return false;
    if (!tok_is(&p->tok, "while"))
        return parser_error(p, "expected 'while' after the body of 'do', not %s",
                            tok_text(p->a, &p->tok));
    parser_next(p);
    s->cond = parenthesised(p, "after 'while'");
    if (!s->cond || !expect_semicolon(p, "after 'do ... while (...)'"))
        return false;
    set_bodies(p, s, body, NULL);
    return true;
}

/* After an error in a loop's head: to behind its ')', so that its ';' are not taken for statements'
 * ends. */
static void skip_head(struct parser *p)
{
    unsigned depth = 1;
    while (depth > 0 && p->tok.kind != T_EOF && p->tok.kind != T_LBRACE &&
           p->tok.kind != T_RBRACE) {
        depth += p->tok.kind == T_LPAREN;
        depth -= p->tok.kind == T_RPAREN;
        parser_next(p);
    }
}

static bool parse_for_head(struct parser *p, struct lang_stmt *s)
{
    stmt_list init = {0};
    if (p->tok.kind != T_LPAREN)
        return parser_error(p, "a loop is written for (u32 i = 0; i < n; i++) { ... }");
    parser_next(p);
    if (p->tok.kind != T_SEMICOLON) {
        if (parse_at_declaration(p)) {
            if (!parse_declaration(p, &init))
                return false;
            if (init.n != 1)
                return diag_error(p->d, init.v[1]->span,
                                  "a for loop declares one variable; declare the "
                                  "others before it");
            s->init = init.v[0];
        } else if (!(s->init = simple_statement(p))) {
            return false;
        }
    }
    if (p->tok.kind == T_COLON || tok_is(&p->tok, "in"))
        return parser_error(p, "a loop is written for (u32 i = 0; i < n; i++)");
    if (!parser_expect(p, T_SEMICOLON, "after the loop's start"))
        return false;
    if (p->tok.kind != T_SEMICOLON && !(s->cond = parse_expr(p)))
        return false;
    if (!parser_expect(p, T_SEMICOLON, "after the loop's condition"))
        return false;
    if (p->tok.kind != T_RPAREN && !(s->step = simple_statement(p)))
        return false;
    if (p->tok.kind == T_COMMA)
        return parser_error(p, "a for loop has one step; put the others at the end of its body");
    return parser_expect(p, T_RPAREN, "after the loop's step");
}

static bool parse_for(struct parser *p, struct lang_stmt *s)
{
    parser_next(p);
    if (!parse_for_head(p, s)) {
        skip_head(p);
        return false;
    }
    struct lang_stmt *body = branch(p);
    if (body)
        set_bodies(p, s, body, NULL);
    return body != NULL;
}

static bool parse_switch(struct parser *p, struct lang_stmt *s)
{
    parser_next(p);
    s->cond = parenthesised(p, "after 'switch'");
    if (!s->cond)
        return false;
    if (p->tok.kind != T_LBRACE)
        return parser_error(p, "expected '{' after 'switch (...)', not %s",
                            tok_text(p->a, &p->tok));
    struct lang_stmt *body = parse_stmt_block(p);
    if (body)
        set_bodies(p, s, body, NULL);
    return body != NULL;
}

/* "case 1:", "default:" */
static bool parse_case(struct parser *p, struct lang_stmt *s)
{
    bool is_default = tok_is(&p->tok, "default");
    parser_next(p);
    if (!is_default && !(s->rhs = parse_expr(p)))
        return false;
    if (p->tok.kind == T_DOTDOT || p->tok.kind == T_COMMA)
        return parser_error(p, "a case has one value; write a case for each");
    s->span = span_join(s->span, p->prev);
    return parser_expect(p, T_COLON, is_default ? "after 'default'" : "after the case's value");
}

/* "#pragma unroll [N]" in front of a loop. */
static bool parse_pragma(struct parser *p, uint32_t *unroll)
{
    parser_next(p);
    if (!tok_is(&p->tok, "pragma"))
        return parser_error(p,
                            "a comment is written // here; only '#pragma unroll' begins with '#'");
    parser_next(p);
    if (!tok_is(&p->tok, "unroll"))
        return parser_error(p, "unknown pragma; there is '#pragma unroll [N]'");
    parser_next(p);
    *unroll = LANG_UNROLL_FULL;
    if (p->tok.kind == T_INT && !p->tok.newline) {
        if (p->tok.ival < 1 || p->tok.ival > 1024) {
            parser_error(p, "a loop is unrolled 1 to 1024 times");
            parser_next(p);
            if (tok_is(&p->tok, "for") && parser_ahead(p)->kind == T_LPAREN) {
                parser_next(p);
                parser_next(p);
                skip_head(p);
            }
            return false;
        }
        *unroll = (uint32_t)p->tok.ival;
        parser_next(p);
    }
    if (!tok_is(&p->tok, "for") && !tok_is(&p->tok, "while") && !tok_is(&p->tok, "do"))
        return parser_error(p, "'#pragma unroll' stands in front of a loop");
    return true;
}

static bool parse_return(struct parser *p, struct lang_stmt *s)
{
    parser_next(p);
    if (p->tok.kind != T_SEMICOLON && !p->tok.newline && !(s->rhs = parse_expr(p)))
        return false;
    s->span = span_join(s->span, p->prev);
    return expect_semicolon(p, "after 'return'");
}

/* Words of C and CUDA that the language does not have. */
static bool refused_word(struct parser *p)
{
    static const struct {
        const char *word, *say;
    } table[] = {
        {"goto", "there is no goto"},
        {"__shared__", "shared memory is declared 'shared', without the underscores"},
        {"static", "there is no static; declare the variable without it"},
        {"struct", "there are no structs"},
        {"loop", "there is no 'loop'; write for (;;) or while"},
        {"let", "a variable is declared with its type or auto, as in 'auto x = 1;'"},
        {"var", "a variable is declared with its type or auto, as in 'auto x = 1;'"},
        {"else", "this 'else' belongs to no 'if'"},
        {"void", "functions are defined in 'functions:', not in a body"},
        {"long", "there is no type 'long'; write i64"},
        {"char", "there is no type 'char'; write i8"},
        {"signed", "there is no type 'signed'; write i32"},
        {"size_t", "there is no type 'size_t'; write u64"},
        {"printf", "there is no printf; write print(\"...\", ...)"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (tok_is(&p->tok, table[i].word)) {
            parser_error(p, "%s", table[i].say);
            return true;
        }
    return false;
}

static bool control(struct parser *p, struct lang_stmt *s, bool *known)
{
    static const struct {
        const char *word;
        enum lang_stmt_kind kind;
        bool (*parse)(struct parser *, struct lang_stmt *);
    } table[] = {{"if", S_IF, parse_if},
                 {"for", S_FOR, parse_for},
                 {"while", S_WHILE, parse_while},
                 {"do", S_DO, parse_do},
                 {"switch", S_SWITCH, parse_switch},
                 {"case", S_CASE, parse_case},
                 {"default", S_CASE, parse_case},
                 {"return", S_RETURN, parse_return}};
    *known = true;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (tok_is(&p->tok, table[i].word)) {
            s->kind = table[i].kind;
            return table[i].parse(p, s);
        }
    if (tok_is(&p->tok, "break") || tok_is(&p->tok, "continue")) {
        bool is_break = tok_is(&p->tok, "break");
        s->kind = is_break ? S_BREAK : S_CONTINUE;
        parser_next(p);
        return expect_semicolon(p, is_break ? "after 'break'" : "after 'continue'");
    }
    *known = false;
    return true;
}

static bool statement(struct parser *p, stmt_list *out)
{
    uint32_t unroll = 0;
    bool known;
    if (p->tok.kind == T_HASH && !parse_pragma(p, &unroll))
        return false;
    if (parser_accept(p, T_SEMICOLON))
        return true;
    if (p->tok.kind == T_LBRACE) {
        struct lang_stmt *b = parse_stmt_block(p);
        if (b)
            *VEC_PUSH(p->a, out) = b;
        return b != NULL;
    }
    if (p->tok.kind == T_NAME && refused_word(p))
        return false;
    if (p->tok.kind == T_RBRACE)
        return parser_error(p, "this '}' closes nothing");
    struct lang_stmt *s = parse_new_stmt(p, S_EXPR, p->tok.span);
    if (!control(p, s, &known))
        return false;
    if (known) {
        s->unroll = unroll;
        *VEC_PUSH(p->a, out) = s;
        return true;
    }
    if (parse_at_declaration(p))
        return parse_declaration(p, out) && expect_semicolon(p, "after the declaration");
    s = simple_statement(p);
    if (!s)
        return false;
    *VEC_PUSH(p->a, out) = s;
    return expect_semicolon(p, s->kind == S_EXPR ? "after the call" : "after the assignment");
}

static bool parse_stmt(struct parser *p, stmt_list *out)
{
    if (!parser_enter(p))
        return false;
    bool good = statement(p, out);
    parser_leave(p);
    return good;
}

/* Statements up to `end`; after an error goes on with the next one, so that all are reported. */
static bool statements(struct parser *p, stmt_list *out, enum tok_kind end)
{
    bool good = true;
    while (p->tok.kind != end && p->tok.kind != T_EOF) {
        size_t before = p->tok.span.off;
        unsigned depth = p->depth;
        if (parse_stmt(p, out))
            continue;
        good = false;
        p->depth = depth;
        if (p->tok.kind == T_RBRACE && end == T_EOF)
            parser_next(p);
        else if (p->tok.span.off == before || p->tok.kind != T_RBRACE)
            skip_statement(p);
        if (p->d->nerror > DIAG_LIMIT)
            return false;
    }
    return good;
}

struct lang_stmt *parse_stmt_block(struct parser *p)
{
    struct span s = p->tok.span;
    stmt_list list = {0};
    parser_next(p);
    bool good = statements(p, &list, T_RBRACE);
    if (p->tok.kind == T_EOF) {
        if (good)
            diag_error(p->d, s, "this '{' is never closed");
        return NULL;
    }
    parser_next(p);
    return good ? as_block(p, &list, s) : NULL;
}

struct lang_stmt *lang_parse_body(struct arena *a, struct span text, const struct lang_types *types,
                                  struct diags *d)
{
    struct parser p;
    stmt_list list = {0};
    if (!parser_init(&p, a, text, false, types, d))
        return NULL;
    struct span s = p.tok.span;
    if (!statements(&p, &list, T_EOF))
        return NULL;
    if (list.n == 0) {
        diag_error(d, text, "the body is empty");
        return NULL;
    }
    return as_block(&p, &list, s);
}
