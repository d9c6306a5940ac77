#include <config.h>

#include "lang/lang_int.h"

#include <math.h>

/* ---- nodes ----------------------------------------------------------------------------------- */

struct lang_expr *expr_new(struct arena *a, enum lang_expr_kind k, struct span s)
{
    struct lang_expr *e = ARENA_NEW(a, struct lang_expr);
    e->kind = k;
    e->span = s;
    e->type = DT_VOID;
    e->fn = FN_COUNT;
    e->height = 1;
    return e;
}

static void raise_height(struct lang_expr *e, const struct lang_expr *child)
{
    if (child && child->height >= e->height)
        e->height = child->height + 1;
}

bool expr_finish(struct parser *p, struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        raise_height(e, e->args[i]);
    raise_height(e, e->pad);
    for (uint32_t i = 0; i < e->nindex; i++) {
        raise_height(e, e->index[i]->dims ? e->index[i]->dims[0] : NULL);
        raise_height(e, e->index[i]->low);
    }
    e->span = span_join(e->span, p->prev);
    /* half, because the checker may put a cast around every node */
    if (e->height > LANG_MAX_HEIGHT / 2)
        return diag_error(p->d, e->span,
                          "the expression is more than %d operations deep; give parts of it names",
                          LANG_MAX_HEIGHT / 2);
    return true;
}

static struct lang_expr *finish(struct parser *p, struct lang_expr *e)
{
    return expr_finish(p, e) ? e : NULL;
}

static struct lang_expr *node(struct parser *p, enum lang_expr_kind k, struct span s, uint32_t n,
                              struct lang_expr *const *args)
{
    struct lang_expr *e = expr_new(p->a, k, s);
    e->nargs = n;
    e->args = ARENA_ARRAY(p->a, n, struct lang_expr *);
    for (uint32_t i = 0; i < n; i++) {
        if (!args[i])
            return NULL;
        e->args[i] = args[i];
    }
    return e;
}

/* order = relaxed, scope = gpu: at the end of a call's arguments. */
static bool named_argument(struct parser *p, struct lang_expr *e)
{
    bool order = tok_is(&p->tok, "order");
    if (!order && !tok_is(&p->tok, "scope"))
        return parser_error(p, "no argument is called '%s'; there are 'order' and 'scope'",
                            parser_name(p));
    struct span *given = order ? &e->order_span : &e->scope_span, start = p->tok.span;
    if (given->src)
        return parser_error(p, "'%s' is given twice", order ? "order" : "scope");
    parser_next(p);
    parser_next(p); /* = */
    const char *word = p->tok.span.src->text + p->tok.span.off;
    size_t n = p->tok.kind == T_NAME ? p->tok.span.len : 0;
    if (order && !lang_order_parse(word, n, &e->order))
        return parser_error(p, "an order is relaxed, acquire, release, acq_rel or seq_cst, not %s",
                            tok_text(p->a, &p->tok));
    if (!order && !lang_memory_scope_parse(word, n, &e->scope))
        return parser_error(p, "a scope is block, cluster, gpu or system, not %s",
                            tok_text(p->a, &p->tok));
    *given = span_join(start, p->tok.span);
    parser_next(p);
    return true;
}

static bool argument(struct parser *p, struct lang_expr *e, struct lang_expr **arg)
{
    *arg = NULL;
    if (e->kind == E_CALL && p->tok.kind == T_NAME && parser_ahead(p)->kind == T_ASSIGN)
        return named_argument(p, e);
    if (e->order_span.src || e->scope_span.src)
        return parser_error(p, "'order' and 'scope' come after the other arguments");
    *arg = parse_expr(p);
    return *arg != NULL;
}

/* The arguments up to `close`; the opening bracket is already taken. */
static bool arguments(struct parser *p, struct lang_expr *e, enum tok_kind close)
{
    VEC(struct lang_expr *) args = {0};
    if (p->tok.kind != close) {
        do {
            struct lang_expr *arg;
            if (!argument(p, e, &arg))
                return false;
            if (arg)
                *VEC_PUSH(p->a, &args) = arg;
        } while (parser_accept(p, T_COMMA));
    }
    e->args = args.v;
    e->nargs = (uint32_t)args.n;
    return parser_expect(p, close,
                         close == T_RBRACKET ? "after the subscripts" : "after the arguments");
}

/* ---- primaries ------------------------------------------------------------------------------- */

enum dtype literal_int_type(uint64_t v)
{
    return v <= INT32_MAX ? DT_I32 : v <= INT64_MAX ? DT_I64 : DT_U64;
}

static struct lang_expr *literal(struct parser *p)
{
    const struct token t = p->tok;
    struct lang_expr *e = expr_new(p->a, t.kind == T_INT ? E_INT : E_FLOAT, t.span);
    e->ival = t.ival;
    e->fval = t.fval;
    e->suffixed = t.type != DT_VOID;
    e->type = e->suffixed ? t.type : t.kind == T_INT ? literal_int_type(t.ival) : DT_F32;
    if (e->type == DT_I64 && t.kind == T_INT && t.ival > INT64_MAX)
        e->type = DT_U64;
    parser_next(p);
    return e;
}

static struct lang_expr *constant_word(struct parser *p)
{
    struct lang_expr *e = NULL;
    if (tok_is(&p->tok, "true") || tok_is(&p->tok, "false")) {
        e = expr_new(p->a, E_BOOL, p->tok.span);
        e->ival = tok_is(&p->tok, "true");
        e->type = DT_BOOL;
    } else if (tok_is(&p->tok, "inf") || tok_is(&p->tok, "nan")) {
        e = expr_new(p->a, E_FLOAT, p->tok.span);
        e->fval = tok_is(&p->tok, "inf") ? (double)INFINITY : (double)NAN;
        e->type = DT_F32;
    }
    if (e)
        parser_next(p);
    return e;
}

bool parse_index_range(struct parser *p, struct lang_symbol *index)
{
    struct lang_expr *low = NULL, *end = NULL;
    if (parser_accept(p, T_LT)) {
        end = parse_range(p);
    } else if (tok_is(&p->tok, "in")) {
        parser_next(p);
        low = parse_range(p);
        if (!low || !parser_expect(p, T_DOTDOT, "in the range, as in 0..n"))
            return false;
        end = parse_range(p);
    } else if (p->tok.kind == T_LE) {
        return parser_error(p, "a range excludes its end; write '< e + 1' for '<= e'");
    } else {
        return true;
    }
    if (!end)
        return false;
    index->low = low;
    index->written = true;
    index->dims = ARENA_NEW(p->a, struct lang_expr *);
    index->dims[0] = end;
    return true;
}

struct lang_symbol *parse_index(struct parser *p)
{
    if (p->tok.kind != T_NAME) {
        parser_error(p, "expected an index's name, not %s", tok_text(p->a, &p->tok));
        return NULL;
    }
    struct lang_symbol *s = ARENA_NEW(p->a, struct lang_symbol);
    s->kind = SYM_INDEX;
    s->type = DT_I64;
    s->name = parser_name(p);
    s->span = p->tok.span;
    const char *why = lang_reserved(s->name, p->lex.types);
    if (why) {
        parser_error(p, "'%s' is %s and can't be an index", s->name, why);
        return NULL;
    }
    parser_next(p);
    return parse_index_range(p, s) ? s : NULL;
}

/* sum[i](e), and softmax[i](e): a call until it is checked. */
static struct lang_expr *reduction(struct parser *p, const char *name)
{
    struct lang_expr *e = expr_new(p->a, E_REDUCE, p->tok.span);
    VEC(struct lang_symbol *) index = {0};
    if (!lang_reduce_parse(name, strlen(name), &e->reduce)) {
        e->kind = E_CALL;
        e->name = name;
    }
    parser_next(p);
    parser_next(p); /* [ */
    do {
        struct lang_symbol *s = parse_index(p);
        if (!s)
            return NULL;
        *VEC_PUSH(p->a, &index) = s;
    } while (parser_accept(p, T_COMMA));
    if (!parser_expect(p, T_RBRACKET, "after the reduction's indices") ||
        !parser_expect(p, T_LPAREN, "around what is reduced"))
        return NULL;
    e->index = index.v;
    e->nindex = (uint32_t)index.n;
    e->args = ARENA_NEW(p->a, struct lang_expr *);
    e->nargs = 1;
    e->args[0] = parse_expr(p);
    if (!e->args[0] || !parser_expect(p, T_RPAREN, "after what is reduced"))
        return NULL;
    return finish(p, e);
}

static struct lang_expr *padded(struct parser *p, struct span start)
{
    if (!parser_expect(p, T_LPAREN, "after 'pad'"))
        return NULL;
    struct span at = p->tok.span;
    struct lang_expr *e = parse_expr(p);
    if (!e)
        return NULL;
    if (e->kind != E_INDEX || e->pad) {
        diag_error(p->d, at, "pad() takes an element, as in pad(x[i - 1], 0)");
        return NULL;
    }
    if (!parser_expect(p, T_COMMA, "and the value outside, as in pad(x[i - 1], 0)"))
        return NULL;
    e->pad = parse_expr(p);
    if (!e->pad || !parser_expect(p, T_RPAREN, "after pad's value"))
        return NULL;
    e->span = start;
    return finish(p, e);
}

/* threadIdx.x, laneid; NULL without an error when it is none of these. */
static struct lang_expr *special(struct parser *p, bool *failed)
{
    static const char *const vectors[] = {"threadIdx", "blockIdx",   "blockDim",
                                          "gridDim",   "clusterIdx", "clusterDim"};
    static const enum lang_special words[] = {SP_LANEID, SP_WARPID, SP_MULTIPROCESSORS};
    struct lang_expr *e = NULL;
    enum lang_special sp;
    struct span s = p->tok.span;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        if (!tok_is(&p->tok, vectors[i]))
            continue;
        parser_next(p);
        *failed = true;
        if (p->tok.kind == T_DOT) {
            parser_next(p);
            s = span_join(s, p->tok.span);
        }
        char text[16];
        int n = p->tok.kind == T_NAME && p->tok.span.len == 1
                    ? snprintf(text, sizeof text, "%s.%c", vectors[i],
                               p->tok.span.src->text[p->tok.span.off])
                    : 0;
        if (n <= 0 || !lang_special_parse(text, (size_t)n, &sp)) {
            diag_error(p->d, s, "'%s' has three parts; write %s.x, %s.y or %s.z", vectors[i],
                       vectors[i], vectors[i], vectors[i]);
            return NULL;
        }
        *failed = false;
        e = expr_new(p->a, E_SPECIAL, s);
    }
    if (!e && tok_is(&p->tok, "warpSize")) {
        e = expr_new(p->a, E_INT, s);
        e->type = DT_I32;
        e->ival = 32;
        parser_next(p);
        return e;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words && !e; i++)
        if (tok_is(&p->tok, lang_special_name(words[i]))) {
            sp = words[i];
            e = expr_new(p->a, E_SPECIAL, s);
        }
    if (!e)
        return NULL;
    parser_next(p);
    e->special = sp;
    e->type = DT_U32;
    return e;
}

/* f32(x), f32x4(a, b, c, d) */
static struct lang_expr *typed(struct parser *p)
{
    uint8_t lanes = p->tok.lanes;
    struct lang_expr *e = expr_new(p->a, lanes ? E_VECTOR : E_CAST, p->tok.span);
    const char *word = parser_name(p);
    e->type = p->tok.type;
    e->lanes = lanes;
    parser_next(p);
    if (p->tok.kind != T_LPAREN) {
        diag_error(p->d, e->span, "'%s' is a type; a conversion is written %s(x)", word, word);
        return NULL;
    }
    parser_next(p);
    if (!arguments(p, e, T_RPAREN))
        return NULL;
    if (lanes && e->nargs != 1 && e->nargs != lanes) {
        diag_error(p->d, e->span, "%s() takes %u values, or one for all lanes, not %u", word,
                   (unsigned)lanes, (unsigned)e->nargs);
        return NULL;
    }
    if (!lanes && e->nargs != 1) {
        diag_error(p->d, e->span, "a conversion takes one value, not %u", (unsigned)e->nargs);
        return NULL;
    }
    return finish(p, e);
}

static struct lang_expr *named(struct parser *p)
{
    struct span s = p->tok.span;
    const char *name = parser_name(p);
    enum lang_reduce r;
    if (parser_ahead(p)->kind == T_LBRACKET &&
        (lang_reduce_parse(name, strlen(name), &r) || lang_is_notation_word(name) ||
         (lang_is_notation(name) && parser_at_notation(p))))
        return reduction(p, name);
    parser_next(p);
    if (strcmp(name, "pad") == 0)
        return padded(p, s);
    enum lang_expr_kind k = p->tok.kind == T_LBRACKET ? E_INDEX
                            : p->tok.kind == T_LPAREN ? E_CALL
                                                      : E_NAME;
    struct lang_expr *e = expr_new(p->a, k, s);
    e->name = name;
    e->name_at = s.off;
    if (k == E_NAME)
        return e;
    parser_next(p);
    if (!arguments(p, e, k == E_INDEX ? T_RBRACKET : T_RPAREN))
        return NULL;
    if (k == E_INDEX && e->nargs == 0) {
        diag_error(p->d, span_join(s, p->prev), "the subscript is missing");
        return NULL;
    }
    return finish(p, e);
}

static struct lang_expr *not_an_operand(struct parser *p)
{
    const char *text = tok_text(p->a, &p->tok);
    switch (p->tok.kind) {
    case T_MUL: parser_error(p, "there are no pointers; write x[i] for *x"); break;
    case T_INC:
    case T_DEC:
        parser_error(p, "%s is a statement of its own, not part of an expression", text);
        break;
    case T_LBRACE: parser_error(p, "there are no lists in expressions"); break;
    default: parser_error(p, "expected an operand, not %s", text);
    }
    return NULL;
}

static struct lang_expr *primary(struct parser *p)
{
    bool failed = false;
    if (p->tok.kind == T_INT || p->tok.kind == T_FLOAT)
        return literal(p);
    if (p->tok.kind == T_STRING)
        return parse_string(p);
    if (p->tok.kind == T_NAME) {
        struct lang_expr *e = constant_word(p);
        if (!e)
            e = special(p, &failed);
        if (e || failed)
            return e;
        return p->tok.type != DT_VOID ? typed(p) : named(p);
    }
    if (p->tok.kind != T_LPAREN)
        return not_an_operand(p);
    struct span s = p->tok.span;
    parser_next(p);
    struct lang_expr *e = parse_expr(p);
    if (!e)
        return NULL;
    if (p->tok.kind == T_COMMA) {
        parser_error(p, "there is no comma operator");
        return NULL;
    }
    if (!parser_expect(p, T_RPAREN, "to close '('"))
        return NULL;
    e->span = span_join(s, p->prev);
    return e;
}

/* v.x: a lane of a vector. */
static struct lang_expr *member(struct parser *p, struct lang_expr *of)
{
    static const char letters[] = "xyzw";
    parser_next(p);
    const char *at = p->tok.kind == T_NAME && p->tok.span.len == 1
                         ? strchr(letters, p->tok.span.src->text[p->tok.span.off])
                         : NULL;
    if (!at) {
        parser_error(p, "a vector has the parts .x .y .z .w; another lane is written v[k], not %s",
                     tok_text(p->a, &p->tok));
        return NULL;
    }
    struct lang_expr *e = node(p, E_MEMBER, of->span, 1, &of);
    if (!e)
        return NULL;
    e->ival = (uint64_t)(at - letters);
    e->span = span_join(e->span, p->tok.span);
    parser_next(p);
    return finish(p, e);
}

/* x[i][j] is x[i, j]. */
static bool more_subscripts(struct parser *p, struct lang_expr *e)
{
    if (e->kind != E_INDEX || e->pad)
        return parser_error(p, e->kind == E_INDEX
                                   ? "pad() takes all the subscripts: pad(x[i, j], 0)"
                                   : "only a buffer, an array or a tensor has elements");
    struct lang_expr more = {0};
    parser_next(p);
    if (!arguments(p, &more, T_RBRACKET))
        return false;
    if (more.nargs == 0)
        return diag_error(p->d, span_join(e->span, p->prev), "the subscript is missing");
    if (e->nargs + more.nargs > LANG_MAX_RANK)
        return diag_error(p->d, span_join(e->span, p->prev), "at most %d subscripts",
                          LANG_MAX_RANK);
    struct lang_expr **args = ARENA_ARRAY(p->a, e->nargs + more.nargs, struct lang_expr *);
    memcpy(args, e->args, e->nargs * sizeof *args);
    memcpy(args + e->nargs, more.args, more.nargs * sizeof *args);
    e->args = args;
    e->nargs += more.nargs;
    return finish(p, e) != NULL;
}

/* x[i](e): a reduction, if it were called something else. */
static struct lang_expr *unknown_reduction(struct parser *p, const struct lang_expr *e)
{
    const char *near = lang_nearest_reduction(e->name);
    diag_error(p->d, e->span, "unknown reduction '%s'%s%s%s", e->name,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

/* An operand and the subscripts and parts behind it. */
static struct lang_expr *postfix(struct parser *p)
{
    struct lang_expr *e = primary(p);
    while (e) {
        if (p->tok.kind == T_ARROW) {
            parser_error(p, "there are no pointers; a part of a vector is written v.x");
            return NULL;
        }
        if (p->tok.kind == T_DOT)
            e = member(p, e);
        else if (p->tok.kind == T_LBRACKET && !p->tok.newline)
            e = more_subscripts(p, e) ? e : NULL;
        else if (p->tok.kind == T_LPAREN && !p->tok.newline && e->kind == E_INDEX && !e->pad)
            e = unknown_reduction(p, e);
        else
            break;
    }
    return e;
}

/* &x[i]: where an element lies, for the functions that take one. */
static struct lang_expr *address(struct parser *p)
{
    struct span s = p->tok.span;
    parser_next(p);
    struct lang_expr *of = postfix(p);
    if (!of)
        return NULL;
    if ((of->kind != E_INDEX && of->kind != E_NAME) || of->pad) {
        diag_error(p->d, span_join(s, of->span),
                   "'&' takes an element or a shared variable, as in &x[i] or &count");
        return NULL;
    }
    struct lang_expr *e = node(p, E_ADDRESS, s, 1, &of);
    return e ? finish(p, e) : NULL;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* "(f32)": the '(' and the type are taken if that is what is there, and the ')' is checked. */
static bool cast_prefix(struct parser *p, enum dtype *type, uint8_t *lanes)
{
    if (p->tok.kind != T_LPAREN)
        return false;
    const struct token *t = parser_ahead(p);
    if (t->kind != T_NAME || t->type == DT_VOID)
        return false;
    *type = t->type;
    *lanes = t->lanes;
    /* "(f32)" and not "(f32(x))": the character after the name, blanks apart */
    size_t at = t->span.off + t->span.len;
    while (at < p->lex.end && strchr(" \t\r\n", t->span.src->text[at]))
        at++;
    if (at >= p->lex.end || t->span.src->text[at] != ')')
        return false;
    parser_next(p);
    parser_next(p);
    parser_next(p);
    return true;
}

static struct lang_expr *unary(struct parser *p);

static struct lang_expr *operand_of(struct parser *p, enum lang_expr_kind k, struct span s)
{
    if (!parser_enter(p))
        return NULL;
    struct lang_expr *arg = unary(p);
    parser_leave(p);
    return node(p, k, s, 1, &arg);
}

static struct lang_expr *unary(struct parser *p)
{
    struct span s = p->tok.span;
    struct lang_expr *e;
    enum dtype type;
    uint8_t lanes;
    enum lang_op op;
    switch (p->tok.kind) {
    case T_ADD: op = OP_PLUS; break;
    case T_SUB: op = OP_NEG; break;
    case T_NOT: op = OP_NOT; break;
    case T_AND: return address(p);
    case T_BITNOT: op = OP_BITNOT; break;
    default:
        if (!cast_prefix(p, &type, &lanes))
            return postfix(p);
        e = operand_of(p, lanes ? E_VECTOR : E_CAST, s);
        if (!e)
            return NULL;
        e->type = type;
        e->lanes = lanes;
        return finish(p, e);
    }
    parser_next(p);
    e = operand_of(p, E_UNARY, s);
    if (!e)
        return NULL;
    e->op = op;
    return finish(p, e);
}

/* How tightly a binary operator binds; 0: not one. */
static int precedence(enum tok_kind k, enum lang_op *op)
{
    static const struct {
        enum tok_kind kind;
        enum lang_op op;
        int level;
    } table[] = {{T_LOR, OP_LOR, 1},  {T_LAND, OP_LAND, 2}, {T_OR, OP_OR, 3},   {T_XOR, OP_XOR, 4},
                 {T_AND, OP_AND, 5},  {T_EQ, OP_EQ, 6},     {T_NE, OP_NE, 6},   {T_LT, OP_LT, 7},
                 {T_GT, OP_GT, 7},    {T_LE, OP_LE, 7},     {T_GE, OP_GE, 7},   {T_SHL, OP_SHL, 8},
                 {T_SHR, OP_SHR, 8},  {T_ADD, OP_ADD, 9},   {T_SUB, OP_SUB, 9}, {T_MUL, OP_MUL, 10},
                 {T_DIV, OP_DIV, 10}, {T_MOD, OP_MOD, 10}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == k) {
            *op = table[i].op;
            return table[i].level;
        }
    return 0;
}

static struct lang_expr *binary(struct parser *p, int lowest)
{
    struct lang_expr *left = unary(p);
    enum lang_op op;
    int level, before = 0;
    while (left && (level = precedence(p->tok.kind, &op)) >= lowest && level > 0) {
        if (level == 7 && before == 7) {
            parser_error(p, "comparisons do not chain; write 'a < b && b < c'");
            return NULL;
        }
        before = level;
        parser_next(p);
        struct lang_expr *pair[2] = {left, binary(p, level + 1)};
        left = node(p, E_BINARY, left->span, 2, pair);
        if (!left)
            return NULL;
        left->op = op;
        left = finish(p, left);
    }
    return left;
}

struct lang_expr *parse_range(struct parser *p)
{
    if (!parser_enter(p))
        return NULL;
    struct lang_expr *e = binary(p, 8);
    parser_leave(p);
    return e;
}

static struct lang_expr *conditional(struct parser *p)
{
    struct lang_expr *e = binary(p, 1);
    if (!e || p->tok.kind != T_QUESTION)
        return e;
    parser_next(p);
    struct lang_expr *arm[3] = {e, parse_expr(p)};
    if (!arm[1] || !parser_expect(p, T_COLON, "between the two values of '? :'"))
        return NULL;
    arm[2] = parse_expr(p);
    e = node(p, E_COND, e->span, 3, arm);
    return e ? finish(p, e) : NULL;
}

struct lang_expr *parse_expr(struct parser *p)
{
    if (!parser_enter(p))
        return NULL;
    struct lang_expr *e = conditional(p);
    parser_leave(p);
    return e;
}

/* ---- entry points ---------------------------------------------------------------------------- */

struct lang_expr *lang_parse_expr(struct arena *a, struct span text, const struct lang_types *types,
                                  struct diags *d)
{
    struct parser p;
    if (!parser_init(&p, a, text, false, types, d))
        return NULL;
    struct lang_expr *e = parse_expr(&p);
    if (e && p.tok.kind == T_ASSIGN)
        parser_error(&p, "'=' has no meaning here; write '==' to compare");
    else if (e && p.tok.kind != T_EOF)
        parser_error(&p, "expected an operator or the end, not %s", tok_text(a, &p.tok));
    return e && p.tok.kind == T_EOF ? e : NULL;
}
