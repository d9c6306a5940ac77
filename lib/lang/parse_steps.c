/* steps: of a program: calls of kernels, equations, and loops around them. */
#include <config.h>

#include "lang/lang_int.h"

typedef VEC(struct lang_step *) step_list;

static struct lang_step *parse_step(struct parser *p);

/* ---- views ----------------------------------------------------------------------------------- */

static bool parse_subscript(struct parser *p, struct lang_subscript *s)
{
    if (p->tok.kind != T_DOTDOT) {
        s->at = parse_range(p);
        if (!s->at)
            return false;
    }
    s->is_range = parser_accept(p, T_DOTDOT);
    if (!s->is_range || p->tok.kind == T_COMMA || p->tok.kind == T_RBRACKET)
        return true;
    s->end = parse_range(p);
    return s->end != NULL;
}

static bool parse_subscripts(struct parser *p, struct lang_view *v)
{
    VEC(struct lang_subscript) list = {0};
    do {
        if (list.n == LANG_MAX_RANK)
            return parser_error(p, "at most %d subscripts", LANG_MAX_RANK);
        if (!parse_subscript(p, VEC_PUSH(p->a, &list)))
            return false;
    } while (parser_accept(p, T_COMMA));
    v->sub = list.v;
    v->nsub = (uint32_t)list.n;
    return parser_expect(p, T_RBRACKET, "after the subscripts");
}

/* Behind 'as'. */
static bool parse_extents(struct parser *p, struct lang_view *v)
{
    VEC(struct lang_expr *) list = {0};
    v->is_shaped = true;
    if (!parser_expect(p, T_LBRACKET, "around the extents, as in 'x as [m, n]'"))
        return false;
    while (p->tok.kind != T_RBRACKET) {
        if (list.n == LANG_MAX_RANK)
            return parser_error(p, "a buffer has at most %d dimensions", LANG_MAX_RANK);
        struct lang_expr *e = parse_expr(p);
        if (!e)
            return false;
        *VEC_PUSH(p->a, &list) = e;
        if (!parser_accept(p, T_COMMA))
            break;
    }
    v->extent = list.v;
    v->nextent = (uint32_t)list.n;
    return parser_expect(p, T_RBRACKET, "after the extents");
}

static struct lang_view *parse_view(struct parser *p)
{
    struct lang_view *v = ARENA_NEW(p->a, struct lang_view);
    v->span = p->tok.span;
    if (p->tok.kind != T_NAME) {
        parser_error(p, "expected a buffer's name, not %s", tok_text(p->a, &p->tok));
        return NULL;
    }
    v->name = parser_name(p);
    parser_next(p);
    if (parser_accept(p, T_LBRACKET) && !parse_subscripts(p, v))
        return NULL;
    if (!p->tok.newline && tok_is(&p->tok, "as")) {
        parser_next(p);
        if (!parse_extents(p, v))
            return NULL;
    }
    v->span = span_join(v->span, p->prev);
    return v;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* At a name: does it begin a buffer, and not an expression of several? */
static bool at_view(struct parser *p)
{
    if (p->tok.kind != T_NAME || p->tok.type != DT_VOID)
        return false;
    const struct token *t = parser_ahead(p);
    return t->kind == T_LBRACKET || t->kind == T_COMMA || t->kind == T_RPAREN || tok_is(t, "as");
}

static bool parse_argument(struct parser *p, struct lang_argument *arg)
{
    if (p->tok.kind != T_NAME)
        return parser_error(p, "expected the name of a parameter, as in 'x: h', not %s",
                            tok_text(p->a, &p->tok));
    arg->name = parser_name(p);
    arg->name_span = p->tok.span;
    parser_next(p);
    if (!parser_expect(p, T_COLON, "after the parameter's name, as in 'x: h'"))
        return false;
    if (!at_view(p)) {
        arg->value = parse_expr(p);
        return arg->value != NULL;
    }
    arg->view = parse_view(p);
    if (!arg->view)
        return false;
    if (p->tok.kind != T_COMMA && p->tok.kind != T_RPAREN)
        return parser_error(p, "an argument is a buffer, a view of one, or a number; an element is "
                               "known only when the program runs, so hand it over as a buffer");
    return true;
}

/* At the kernel's name. */
static bool parse_call(struct parser *p, struct lang_call_step *call)
{
    VEC(struct lang_argument) list = {0};
    call->kernel = parser_name(p);
    call->kernel_span = p->tok.span;
    parser_next(p);
    if (!parser_expect(p, T_LPAREN, "after the kernel's name"))
        return false;
    while (p->tok.kind != T_RPAREN) {
        struct lang_argument *arg = VEC_PUSH(p->a, &list);
        *arg = (struct lang_argument){0};
        if (!parse_argument(p, arg))
            return false;
        if (!parser_accept(p, T_COMMA))
            break;
    }
    call->arg = list.v;
    call->narg = (uint32_t)list.n;
    return parser_expect(p, T_RPAREN, "after the arguments");
}

/* At a name: is it a kernel's, that is, has it arguments with names, which no function has? */
static bool at_kernel(struct parser *p)
{
    if (p->tok.kind != T_NAME || parser_ahead(p)->kind != T_LPAREN)
        return false;
    struct lexer lex = p->lex;
    struct token one, two;
    lex_next(&lex, &one);
    lex_next(&lex, &two);
    return one.kind == T_RPAREN || (one.kind == T_NAME && two.kind == T_COLON);
}

/* At the first name of a step that is no loop: is it a call, with results or without? Looks as far
 * as the '='. */
static bool at_call(const struct parser *at)
{
    struct parser p = *at;
    unsigned depth = 0;
    p.d = p.lex.d = diags_new(p.a);
    if (at_kernel(&p))
        return true;
    do {
        depth += p.tok.kind == T_LBRACKET;
        depth -= depth && p.tok.kind == T_RBRACKET;
        const bool goes_on = p.tok.kind == T_COMMA || depth;
        parser_next(&p);
        if (p.tok.newline && !goes_on)
            return false;
    } while (p.tok.kind != T_EOF && (depth || p.tok.kind != T_ASSIGN));
    if (p.tok.kind == T_EOF)
        return false;
    parser_next(&p);
    return at_kernel(&p);
}

static bool parse_call_step(struct parser *p, struct lang_step *s)
{
    VEC(struct lang_view *) target = {0};
    while (!at_kernel(p)) {
        struct lang_view *v = parse_view(p);
        if (!v)
            return false;
        *VEC_PUSH(p->a, &target) = v;
        if (parser_accept(p, T_COMMA))
            continue;
        if (!parser_expect(p, T_ASSIGN, "between the results and the kernel"))
            return false;
        break;
    }
    s->call.target = target.v;
    s->call.ntarget = (uint32_t)target.n;
    return parse_call(p, &s->call);
}

/* ---- equations ------------------------------------------------------------------------------- */

static bool parse_left(struct parser *p, struct lang_left *left)
{
    if (p->tok.kind == T_NAME && p->tok.type == DT_VOID) {
        const struct token *t = parser_ahead(p);
        if (t->kind == T_COMMA || t->kind == T_RBRACKET || t->kind == T_LT || tok_is(t, "in")) {
            left->index = parse_index(p);
            return left->index != NULL;
        }
    }
    left->at = parse_expr(p);
    if (left->at && p->tok.kind == T_DOTDOT)
        return parser_error(p, "a range is for the arguments of calls; an index with a range is "
                               "written 'i < n'");
    return left->at != NULL;
}

static bool parse_left_side(struct parser *p, struct lang_equation_step *e)
{
    VEC(struct lang_left) list = {0};
    e->name = parser_name(p);
    e->name_span = p->tok.span;
    parser_next(p);
    if (!parser_accept(p, T_LBRACKET))
        return true;
    do {
        if (list.n == LANG_MAX_RANK)
            return parser_error(p, "at most %d subscripts", LANG_MAX_RANK);
        struct lang_left *left = VEC_PUSH(p->a, &list);
        *left = (struct lang_left){0};
        if (!parse_left(p, left))
            return false;
    } while (parser_accept(p, T_COMMA));
    e->left = list.v;
    e->nleft = (uint32_t)list.n;
    return parser_expect(p, T_RBRACKET, "after the subscripts");
}

static bool parse_equation(struct parser *p, struct lang_step *s)
{
    struct lang_equation_step *e = &s->equation;
    if (!parse_left_side(p, e))
        return false;
    if (p->tok.kind == T_NAME && !p->tok.newline)
        return parser_error(p, "expected '=', not %s", tok_text(p->a, &p->tok));
    if (!parser_expect(p, T_ASSIGN, "in the equation"))
        return false;
    e->rhs_span = p->tok.span;
    e->rhs = parse_expr(p);
    e->rhs_span = span_join(e->rhs_span, p->prev);
    return e->rhs != NULL;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* So that one bad step does not hide the others: to the start of the next line, or a brace. */
static void skip_step(struct parser *p)
{
    while (p->tok.kind != T_EOF && p->tok.kind != T_SEMICOLON && p->tok.kind != T_LBRACE &&
           p->tok.kind != T_RBRACE && !(p->tok.newline && p->tok.kind == T_NAME))
        parser_next(p);
}

/* The steps up to a '}' or the end of the text. */
static bool parse_list(struct parser *p, step_list *list)
{
    bool good = true;
    while (p->tok.kind != T_EOF && p->tok.kind != T_RBRACE) {
        if (parser_accept(p, T_SEMICOLON))
            continue;
        const size_t before = p->tok.span.off;
        const unsigned depth = p->depth;
        struct lang_step *s = parse_step(p);
        if (s) {
            *VEC_PUSH(p->a, list) = s;
            continue;
        }
        good = false;
        if (p->d->nerror > DIAG_LIMIT)
            return false;
        p->depth = depth;
        if (p->tok.span.off == before && p->tok.kind != T_EOF)
            parser_next(p);
        skip_step(p);
    }
    return good;
}

static bool parse_block(struct parser *p, struct lang_step ***v, uint32_t *n)
{
    step_list list = {0};
    const struct span open = p->tok.span;
    if (!parser_expect(p, T_LBRACE, "in front of the steps") || !parser_enter(p))
        return false;
    const bool good = parse_list(p, &list);
    parser_leave(p);
    *v = list.v;
    *n = (uint32_t)list.n;
    if (p->tok.kind == T_EOF)
        return diag_error(p->d, open, "there is no '}' for this '{'");
    return parser_expect(p, T_RBRACE, "after the steps") && good;
}

/* "line 12": the one that a step of a launch contract comes from. */
static bool parse_line(struct parser *p, struct lang_step *s)
{
    if (p->tok.newline || !tok_is(&p->tok, "line"))
        return true;
    parser_next(p);
    if (p->tok.kind != T_INT || p->tok.ival > UINT32_MAX)
        return parser_error(p, "expected the number of a line");
    s->line = (uint32_t)p->tok.ival;
    parser_next(p);
    return true;
}

/* for t in 0..n */
static bool parse_for(struct parser *p, struct lang_step *s)
{
    s->kind = STEP_FOR;
    parser_next(p);
    s->index = parse_index(p);
    if (!s->index)
        return false;
    if (!s->index->low)
        return diag_error(p->d, s->index->span, "a loop runs over a range, as in 'for %s in 0..n'",
                          s->index->name);
    s->low = s->index->low;
    s->high = s->index->dims[0];
    return parse_line(p, s) && parse_block(p, &s->body, &s->nbody);
}

static bool parse_repeat(struct parser *p, struct lang_step *s)
{
    s->kind = STEP_REPEAT;
    parser_next(p);
    s->high = parse_expr(p);
    return s->high && parse_line(p, s) && parse_block(p, &s->body, &s->nbody);
}

/* (x[0] > 0), or (kernel(x: x)) */
static bool parse_condition(struct parser *p, struct lang_step *s)
{
    if (!parser_expect(p, T_LPAREN, "in front of the condition"))
        return false;
    if (at_kernel(p)) {
        if (!parse_call(p, &s->call))
            return false;
    } else {
        s->cond_span = p->tok.span;
        s->cond = parse_expr(p);
        s->cond_span = span_join(s->cond_span, p->prev);
        if (!s->cond)
            return false;
    }
    return parser_expect(p, T_RPAREN, "after the condition");
}

static bool parse_while(struct parser *p, struct lang_step *s)
{
    s->kind = STEP_WHILE;
    parser_next(p);
    return parse_condition(p, s) && parse_line(p, s) && parse_block(p, &s->body, &s->nbody);
}

static bool parse_if(struct parser *p, struct lang_step *s)
{
    s->kind = STEP_IF;
    parser_next(p);
    if (!parse_condition(p, s) || !parse_line(p, s) || !parse_block(p, &s->body, &s->nbody))
        return false;
    if (!tok_is(&p->tok, "else"))
        return true;
    parser_next(p);
    if (!tok_is(&p->tok, "if"))
        return parse_block(p, &s->other, &s->nother);
    if (!parser_enter(p))
        return false;
    struct lang_step *other = parse_step(p);
    parser_leave(p);
    s->other = ARENA_NEW(p->a, struct lang_step *);
    s->other[0] = other;
    s->nother = 1;
    return other != NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool ends(struct parser *p, const char *what)
{
    if (p->tok.kind == T_EOF || p->tok.kind == T_SEMICOLON || p->tok.kind == T_RBRACE ||
        p->tok.newline)
        return true;
    return parser_error(p, "expected the end of the %s, not %s", what, tok_text(p->a, &p->tok));
}

static bool parse_simple(struct parser *p, struct lang_step *s)
{
    if (at_call(p)) {
        s->kind = STEP_CALL;
        return parse_call_step(p, s) && parse_line(p, s) && ends(p, "call");
    }
    s->kind = STEP_EQUATION;
    return parse_equation(p, s) && ends(p, "equation");
}

static struct lang_step *parse_step(struct parser *p)
{
    static const struct {
        const char *word;
        bool (*parse)(struct parser *p, struct lang_step *s);
    } loops[] = {
        {"for", parse_for}, {"repeat", parse_repeat}, {"while", parse_while}, {"if", parse_if}};
    struct lang_step *s = ARENA_NEW(p->a, struct lang_step);
    s->span = p->tok.span;
    if (p->tok.kind != T_NAME) {
        parser_error(p, "expected a step, as in 'y = kernel(x: x)' or 'y[i] = x[i]', not %s",
                     tok_text(p->a, &p->tok));
        return NULL;
    }
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        if (!tok_is(&p->tok, loops[i].word))
            continue;
        const enum tok_kind ahead = parser_ahead(p)->kind;
        if (ahead == T_ASSIGN || ahead == T_LBRACKET) /* a buffer of that name */
            break;
        return loops[i].parse(p, s) ? s : NULL;
    }
    if (!parse_simple(p, s))
        return NULL;
    s->span = span_join(s->span, p->prev);
    return s;
}

bool lang_parse_steps(struct arena *a, struct span text, const struct lang_types *types,
                      struct lang_steps *out, struct diags *d)
{
    struct parser p;
    step_list list = {0};
    if (!parser_init(&p, a, text, true, types, d))
        return false;
    bool good = parse_list(&p, &list);
    out->v = list.v;
    out->n = (uint32_t)list.n;
    if (p.tok.kind == T_RBRACE)
        good = parser_error(&p, "there is no '{' for this '}'");
    if (good && list.n == 0)
        good = diag_error(d, text, "there are no steps here");
    return good;
}
