/* A function's body: instructions, labels, declarations, blocks. */
#include <config.h>

#include "ptx/parse.h"

/* ---- labels ---------------------------------------------------------------------------------- */

static void parse_label_here(struct ptx_parser *p, struct ptx_func *f)
{
    struct ptx_token name = p->lex.tok;
    struct span at = ptx_tok_span(p);
    struct ptx_symbol *s = ptx_declare(p, name, PTX_S_LABEL);
    ptx_lex_next(&p->lex);
    ptx_lex_next(&p->lex); /* the colon */
    struct ptx_item *it = ptx_item_new(p, PTX_I_LABEL, at);
    it->label = (uint32_t)f->labels.n;
    *VEC_PUSH(p->arena, &f->labels) = (struct ptx_label){
        arena_strndup(p->arena, name.text, name.len), (uint32_t)(f->items.n - 1)};
    if (s)
        s->index = it->label;
}

static void enter(struct ptx_parser *p)
{
    ptx_scope_enter(&p->scopes);
    *VEC_PUSH(p->arena, &p->pending_from) = p->pending.n;
}

/* Branches to the block's own labels are settled; the others are for the block around it. */
static void leave(struct ptx_parser *p)
{
    size_t from = p->pending_from.v[--p->pending_from.n], keep = from;
    for (size_t i = from; i < p->pending.n; i++) {
        struct ptx_pending *b = &p->pending.v[i];
        struct ptx_symbol *s = ptx_scope_own(&p->scopes, b->name, b->len);
        if (s && s->kind == PTX_S_LABEL)
            *b->label = s->index;
        else if (p->pending_from.n)
            p->pending.v[keep++] = *b;
        else
            diag_error(p->diags, b->span, "label '%.*s' is not defined here", (int)b->len, b->name);
    }
    p->pending.n = keep;
    ptx_scope_leave(&p->scopes);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static bool parse_guard(struct ptx_parser *p, struct ptx_inst *in)
{
    in->guard = -1;
    if (!ptx_accept(p, '@'))
        return true;
    in->guard_neg = ptx_accept(p, '!');
    uint32_t index;
    const struct ptx_token *t = &p->lex.tok;
    struct ptx_symbol *s =
        t->kind == PTX_T_IDENT ? ptx_scope_find(&p->scopes, t->text, t->len, &index) : NULL;
    if (!s)
        return ptx_expected(p, "a declared predicate register");
    if ((s->kind != PTX_S_REG && s->kind != PTX_S_RANGE) || p->func->regs.v[index].type != PTX_PRED)
        return diag_error(p->diags, ptx_tok_span(p), "'%.*s' is no predicate register", (int)t->len,
                          t->text);
    in->guard = (int32_t)index;
    ptx_lex_next(&p->lex);
    return true;
}

static bool unknown(struct ptx_parser *p, const struct ptx_word *w, size_t n, struct span at)
{
    struct buf text = buf_in(p->arena);
    for (size_t i = 0; i < n && text.len < 80; i++)
        buf_printf(&text, "%s%.*s", i ? "." : "", (int)(w[i].len > 40 ? 40 : w[i].len), w[i].text);
    static const char *const images[] = {"tex",  "tld4",  "txq", "suld",
                                         "sust", "sured", "suq", "istypep"};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        if (strlen(images[i]) == w->len && memcmp(images[i], w->text, w->len) == 0)
            return diag_error(p->diags, at, "'%s': textures and surfaces are not supported",
                              buf_text(&text));
    const char *near = ptx_nearest(p->arena, w, n);
    if (near)
        return diag_error(p->diags, at, "unknown instruction '%s' (did you mean '%s'?)",
                          buf_text(&text), near);
    return diag_error(p->diags, at, "unknown instruction '%s'", buf_text(&text));
}

/* The name and its dotted words; spaces between them are allowed. */
static bool parse_mnemonic(struct ptx_parser *p, struct ptx_word w[PTX_MAX_WORDS], size_t *n,
                           struct ptx_inst *in)
{
    const char *from = p->lex.tok.text;
    struct ptx_spelling found;
    if (p->lex.tok.kind != PTX_T_IDENT)
        return ptx_expected(p, "an instruction");
    w[0] = (struct ptx_word){from, p->lex.tok.len};
    *n = 1;
    for (ptx_lex_next(&p->lex); p->lex.tok.kind == PTX_T_DOT; ptx_lex_next(&p->lex)) {
        if (*n == PTX_MAX_WORDS)
            return diag_error(p->diags, ptx_tok_span(p), "no instruction has that many modifiers");
        w[(*n)++] = (struct ptx_word){p->lex.tok.text + 1, p->lex.tok.len - 1};
    }
    if (!ptx_match(w, *n, PTX_ANY_COUNT, &found))
        return unknown(p, w, *n, ptx_span(&p->lex, from, p->lex.tok_end));
    in->op = found.op;
    ptx_set_words(p->module, in, &found.words);
    return true;
}

static bool parse_inst(struct ptx_parser *p)
{
    struct ptx_word words[PTX_MAX_WORDS];
    struct ptx_inst in = {0};
    const char *from = p->lex.tok.text;
    size_t n = 0;
    if (!parse_guard(p, &in) || !parse_mnemonic(p, words, &n, &in) ||
        !ptx_parse_operands(p, words, n, &in))
        return false;
    if (!ptx_at(p, ';'))
        return ptx_expected(p, "',' or ';' after the operand");
    struct ptx_item *it = ptx_item_new(p, PTX_I_INST, ptx_span(&p->lex, from, p->lex.tok_end));
    it->inst = in;
    ptx_lex_next(&p->lex);
    return true;
}

/* ---- directives ------------------------------------------------------------------------------ */

static bool parse_loc(struct ptx_parser *p)
{
    struct span at = ptx_tok_span(p);
    uint64_t v[3];
    ptx_lex_next(&p->lex);
    for (int i = 0; i < 3; i++) {
        if (p->lex.tok.kind != PTX_T_INT || p->lex.tok.bits > UINT32_MAX)
            return ptx_expected(p, "the numbers of file, line and column after .loc");
        v[i] = p->lex.tok.bits;
        if (i < 2)
            ptx_lex_next(&p->lex);
    }
    /* What follows on this line (function_name, inlined_at) is kept as it is. */
    ptx_lex_next(&p->lex);
    const char *more = "";
    if (ptx_at(p, ','))
        more = ptx_lex_line(&p->lex);
    struct ptx_item *it = ptx_item_new(p, PTX_I_LOC, at);
    it->file = (uint32_t)v[0];
    it->line = (uint32_t)v[1];
    it->column = (uint32_t)v[2];
    it->text = more;
    return true;
}

static bool parse_targets(struct ptx_parser *p)
{
    struct span at = ptx_tok_span(p);
    VEC(struct ptx_token) names = {0};
    do {
        ptx_lex_next(&p->lex);
        if (p->lex.tok.kind != PTX_T_IDENT)
            return ptx_expected(p, "a label");
        *VEC_PUSH(p->arena, &names) = p->lex.tok;
        ptx_lex_next(&p->lex);
    } while (ptx_at(p, ','));
    uint32_t *target = ARENA_ARRAY(p->arena, names.n, uint32_t);
    for (size_t i = 0; i < names.n; i++)
        ptx_pend_label(p, &target[i], names.v[i]);
    struct ptx_item *it = ptx_item_new(p, PTX_I_TARGETS, at);
    it->target = target;
    it->ntarget = (uint32_t)names.n;
    return ptx_expect(p, ';', "the label");
}

/* A directive that ends with a semicolon, kept as text. */
static bool parse_text(struct ptx_parser *p, enum ptx_item_kind kind)
{
    struct span at = ptx_tok_span(p);
    const char *text = ptx_text_until(p, ";");
    if (!ptx_expect(p, ';', "the directive"))
        return false;
    ptx_item_new(p, kind, at)->text = arena_printf(p->arena, "%s;", text);
    return true;
}

static bool parse_directive(struct ptx_parser *p)
{
    if (ptx_at_dot(p, "reg")) {
        ptx_parse_regs(p, p->func);
        return true;
    }
    struct span from = ptx_tok_span(p);
    const char *linkage = ptx_parse_linkage(p);
    if (*linkage || ptx_at_var(p)) {
        ptx_parse_vars(p, linkage, from);
        return true;
    }
    if (ptx_at_dot(p, "loc"))
        return parse_loc(p);
    if (ptx_at_dot(p, "branchtargets"))
        return parse_targets(p);
    if (ptx_at_dot(p, "callprototype") || ptx_at_dot(p, "calltargets"))
        return parse_text(p, PTX_I_PROTO);
    if (ptx_at_dot(p, "pragma"))
        return parse_text(p, PTX_I_TEXT);
    return diag_error(p->diags, ptx_tok_span(p), "unknown directive '%.*s'", (int)p->lex.tok.len,
                      p->lex.tok.text);
}

/* ---- the body -------------------------------------------------------------------------------- */

static void parse_statement(struct ptx_parser *p)
{
    const struct ptx_token *t = &p->lex.tok;
    bool good = true;
    if (t->kind == PTX_T_IDENT && ptx_lex_colon_follows(&p->lex)) {
        parse_label_here(p, p->func);
    } else if (t->kind == PTX_T_IDENT || ptx_at(p, '@')) {
        good = parse_inst(p);
    } else if (t->kind == PTX_T_DOT) {
        good = parse_directive(p);
    } else {
        good = ptx_expected(p, "an instruction, a label or a directive");
    }
    if (!good)
        ptx_recover(p);
}

void ptx_parse_body(struct ptx_parser *p, struct ptx_func *f)
{
    unsigned depth = 1;
    struct span open = ptx_tok_span(p);
    f->has_body = true;
    ptx_lex_next(&p->lex);
    enter(p);
    while (depth > 0 && !ptx_stop(p)) {
        ptx_take_comments(p);
        struct span at = ptx_tok_span(p);
        if (ptx_accept(p, '}')) {
            leave(p);
            if (--depth > 0)
                ptx_item_new(p, PTX_I_CLOSE, at);
        } else if (ptx_at(p, '{')) {
            if (depth == PTX_MAX_DEPTH) {
                diag_error(p->diags, at, "more than %d blocks within each other", PTX_MAX_DEPTH);
                p->fatal = true;
                break;
            }
            ptx_lex_next(&p->lex);
            ptx_item_new(p, PTX_I_OPEN, at);
            enter(p);
            depth++;
        } else {
            parse_statement(p);
        }
    }
    if (depth > 0 && !p->fatal && p->diags->nerror < DIAG_LIMIT)
        diag_error(p->diags, open, "the body of '%s' is not closed with '}'", f->name);
    while (depth-- > 0 && p->pending_from.n) {
        p->pending.n = p->pending_from.v[--p->pending_from.n];
        ptx_scope_leave(&p->scopes);
    }
}
