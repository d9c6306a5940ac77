/* A module: header, directives, variables and functions. */
#include <config.h>

#include "ptx/parse.h"

/* ---- the cursor ------------------------------------------------------------------------------ */

struct span ptx_tok_span(const struct ptx_parser *p)
{
    return ptx_span(&p->lex, p->lex.tok.text, p->lex.tok.text + p->lex.tok.len);
}

bool ptx_at(const struct ptx_parser *p, char punct)
{
    return p->lex.tok.kind == PTX_T_PUNCT && p->lex.tok.punct == punct;
}

bool ptx_accept(struct ptx_parser *p, char punct)
{
    if (!ptx_at(p, punct))
        return false;
    ptx_lex_next(&p->lex);
    return true;
}

bool ptx_expected(struct ptx_parser *p, const char *what)
{
    const struct ptx_token *t = &p->lex.tok;
    if (t->kind == PTX_T_BAD)
        return false; /* said already */
    if (t->kind == PTX_T_END)
        return diag_error(p->diags, ptx_span(&p->lex, p->lex.tok_end, p->lex.tok_end),
                          "expected %s, but the text ends here", what);
    return diag_error(p->diags, ptx_tok_span(p), "expected %s, not '%.*s'", what,
                      (int)(t->len > 40 ? 40 : t->len), t->text);
}

bool ptx_expect(struct ptx_parser *p, char punct, const char *after)
{
    if (ptx_accept(p, punct))
        return true;
    char what[80];
    snprintf(what, sizeof what, "'%c' after %s", punct, after);
    return ptx_expected(p, what);
}

bool ptx_at_dot(const struct ptx_parser *p, const char *word)
{
    const struct ptx_token *t = &p->lex.tok;
    size_t n = strlen(word);
    return t->kind == PTX_T_DOT && t->len == n + 1 && memcmp(t->text + 1, word, n) == 0;
}

bool ptx_accept_dot(struct ptx_parser *p, const char *word)
{
    if (!ptx_at_dot(p, word))
        return false;
    ptx_lex_next(&p->lex);
    return true;
}

bool ptx_stop(const struct ptx_parser *p)
{
    return p->fatal || p->lex.tok.kind == PTX_T_END || p->diags->nerror >= DIAG_LIMIT;
}

/* At a '{': are there registers in it, and no statements? */
static bool at_operand(const struct ptx_parser *p)
{
    for (const char *s = p->lex.tok.text + 1; s < p->lex.end; s++)
        if (strchr("{;}", *s))
            return *s == '}';
    return false;
}

void ptx_recover(struct ptx_parser *p)
{
    while (!ptx_stop(p) && !ptx_at(p, '}')) {
        if (ptx_accept(p, ';'))
            return;
        if (ptx_at(p, '{')) {
            if (!at_operand(p))
                return;
            while (!ptx_stop(p) && !ptx_at(p, '}'))
                ptx_lex_next(&p->lex);
        }
        ptx_lex_next(&p->lex);
    }
}

const char *ptx_text_until(struct ptx_parser *p, const char *ends)
{
    struct buf text = buf_in(p->arena);
    size_t depth = 0;
    const char *last_end = NULL;
    while (!ptx_stop(p)) {
        const struct ptx_token *t = &p->lex.tok;
        char c = t->kind == PTX_T_PUNCT ? t->punct : 0;
        if (c && depth == 0 && strchr(ends, c))
            break;
        if (c == '{' || c == '(' || c == '[')
            depth++;
        else if (c && strchr("})]", c) && depth > 0)
            depth--;
        if (last_end && t->text > last_end)
            buf_putc(&text, ' ');
        buf_add(&text, t->text, t->len);
        last_end = t->text + t->len;
        ptx_lex_next(&p->lex);
    }
    return buf_text(&text);
}

/* ---- items ----------------------------------------------------------------------------------- */

static struct ptx_item *push_item(struct ptx_parser *p)
{
    return p->func ? VEC_PUSH(p->arena, &p->func->items) : VEC_PUSH(p->arena, &p->module->items);
}

static void push_comment(struct ptx_parser *p, const char *from, const char *to)
{
    struct ptx_item *it = push_item(p);
    it->kind = PTX_I_COMMENT;
    it->span = ptx_span(&p->lex, from, to);
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    if (from < to && *from == ' ')
        from++;
    it->text = arena_strndup(p->arena, from, (size_t)(to - from));
}

/* A line of a block comment, without the star that many begin with. */
static void push_block_line(struct ptx_parser *p, const char *from, const char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    if (from < to && *from == '*')
        from++;
    push_comment(p, from, to);
}

void ptx_take_comments(struct ptx_parser *p)
{
    for (size_t i = 0; i < p->lex.comments.n; i++) {
        const struct ptx_comment *c = &p->lex.comments.v[i];
        const char *from = c->text, *end = c->text + c->len, *nl;
        if (!c->block) {
            push_comment(p, from, end);
            continue;
        }
        while ((nl = memchr(from, '\n', (size_t)(end - from)))) {
            push_block_line(p, from, nl);
            from = nl + 1;
        }
        push_block_line(p, from, end);
    }
    p->lex.comments.n = 0;
}

struct ptx_item *ptx_item_new(struct ptx_parser *p, enum ptx_item_kind kind, struct span span)
{
    struct ptx_item *it = push_item(p);
    it->kind = kind;
    it->span = span;
    return it;
}

/* ---- the module's directives ----------------------------------------------------------------- */

/* 8.0: read as text, since as a number 8.10 would be 8.1. */
static bool parse_version(struct ptx_parser *p)
{
    const struct ptx_token *t = &p->lex.tok;
    ptx_lex_next(&p->lex);
    if (t->kind != PTX_T_DECIMAL || t->len != 3 || t->text[1] != '.' || t->text[0] < '1')
        return ptx_expected(p, "a version such as 8.0");
    if (p->module->version)
        return diag_error(p->diags, ptx_tok_span(p), ".version is given twice");
    p->module->version = (unsigned)(t->text[0] - '0') * 10 + (unsigned)(t->text[2] - '0');
    p->module->version_span = ptx_tok_span(p);
    ptx_lex_next(&p->lex);
    return true;
}

static bool parse_target(struct ptx_parser *p)
{
    struct ptx_module *m = p->module;
    struct buf more = buf_in(p->arena);
    ptx_lex_next(&p->lex);
    const struct ptx_token *t = &p->lex.tok;
    if (t->kind != PTX_T_IDENT)
        return ptx_expected(p, "a target such as sm_80");
    const struct ptx_target *target = ptx_target_any(t->text, t->len);
    if (!target)
        return diag_error(p->diags, ptx_tok_span(p), "unknown target '%.*s'", (int)t->len, t->text);
    m->sm = target->sm;
    m->sm_suffix = target->suffix;
    m->target_span = ptx_tok_span(p);
    ptx_lex_next(&p->lex);
    while (ptx_accept(p, ',')) {
        if (t->kind != PTX_T_IDENT)
            return ptx_expected(p, "a platform option such as debug");
        buf_printf(&more, "%s%.*s", more.len ? ", " : "", (int)t->len, t->text);
        ptx_lex_next(&p->lex);
    }
    m->target_more = buf_text(&more);
    return true;
}

static bool parse_address_size(struct ptx_parser *p)
{
    uint64_t v;
    ptx_lex_next(&p->lex);
    struct span at = ptx_tok_span(p);
    if (!ptx_parse_uint(p, 64, &v))
        return false;
    if (v != 64)
        return diag_error(p->diags, at, "only 64-bit addresses are supported");
    p->module->address_size = 64;
    return true;
}

/* A directive to the end of its line: .file, and what -G adds. */
static void parse_line(struct ptx_parser *p)
{
    struct span at = ptx_tok_span(p);
    const char *word = arena_strndup(p->arena, p->lex.tok.text, p->lex.tok.len);
    ptx_lex_next(&p->lex);
    const char *rest = ptx_lex_line(&p->lex);
    ptx_item_new(p, PTX_I_TEXT, at)->text = *rest ? arena_printf(p->arena, "%s\t%s", word, rest)
                                                  : word;
}

/* .section name { bytes }: debugging data, kept to the letter. */
static bool parse_section(struct ptx_parser *p)
{
    struct span at = ptx_tok_span(p);
    const char *from = p->lex.tok.text;
    while (!ptx_stop(p) && !ptx_at(p, '{') && !ptx_at(p, ';'))
        ptx_lex_next(&p->lex);
    while (!ptx_stop(p) && !ptx_at(p, '}'))
        ptx_lex_next(&p->lex);
    const char *end = p->lex.pos;
    p->lex.comments.n = 0;
    if (!ptx_expect(p, '}', "the section"))
        return false;
    ptx_item_new(p, PTX_I_TEXT, at)->text = arena_strndup(p->arena, from, (size_t)(end - from));
    return true;
}

static bool parse_module_text(struct ptx_parser *p)
{
    struct span at = ptx_tok_span(p);
    const char *text = ptx_text_until(p, ";");
    if (!ptx_expect(p, ';', "the directive"))
        return false;
    ptx_item_new(p, PTX_I_TEXT, at)->text = arena_printf(p->arena, "%s;", text);
    return true;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* .maxntid 128, 1, 1 into three numbers; those left out are 1. */
static bool parse_triple(struct ptx_parser *p, uint32_t v[3])
{
    uint64_t n;
    v[0] = v[1] = v[2] = 1;
    ptx_lex_next(&p->lex);
    for (int i = 0; i < 3; i++) {
        if (!ptx_parse_uint(p, UINT32_MAX, &n))
            return false;
        v[i] = (uint32_t)n;
        if (i == 2 || !ptx_accept(p, ','))
            break;
    }
    return true;
}

static bool parse_one(struct ptx_parser *p, uint32_t *v)
{
    uint64_t n;
    ptx_lex_next(&p->lex);
    if (!ptx_parse_uint(p, UINT32_MAX, &n))
        return false;
    *v = (uint32_t)n;
    return true;
}

/* Any other: its word and what belongs to it, on a line of its own. */
static bool parse_other_directive(struct ptx_parser *p, struct buf *more)
{
    const struct ptx_token *t = &p->lex.tok;
    if (more->len)
        buf_putc(more, '\n');
    buf_add(more, t->text, t->len);
    ptx_lex_next(&p->lex);
    for (bool first = true;
         t->kind == PTX_T_INT || t->kind == PTX_T_STRING || (first && ptx_at(p, '('));
         first = false) {
        if (ptx_accept(p, '(')) {
            buf_printf(more, "(%s)", ptx_text_until(p, ")"));
            if (!ptx_expect(p, ')', "the attribute"))
                return false;
            break;
        }
        buf_printf(more, "%s%.*s", first ? " " : ", ", (int)t->len, t->text);
        ptx_lex_next(&p->lex);
        if (!ptx_accept(p, ','))
            break;
    }
    ptx_accept(p, ';'); /* of .pragma */
    return true;
}

static bool parse_directives(struct ptx_parser *p, struct ptx_func *f)
{
    struct buf more = buf_in(p->arena);
    bool good = true;
    while (good && p->lex.tok.kind == PTX_T_DOT) {
        if (ptx_at_dot(p, "maxntid"))
            good = parse_triple(p, f->maxntid);
        else if (ptx_at_dot(p, "reqntid"))
            good = parse_triple(p, f->reqntid);
        else if (ptx_at_dot(p, "minnctapersm"))
            good = parse_one(p, &f->minnctapersm);
        else if (ptx_at_dot(p, "maxnreg"))
            good = parse_one(p, &f->maxnreg);
        else if (ptx_accept_dot(p, "noreturn"))
            f->noreturn = true;
        else
            good = parse_other_directive(p, &more);
    }
    f->directives = buf_text(&more);
    return good;
}

/* ( .param .u64 a, ... ) into the list; the parenthesis has been read. */
static bool parse_params(struct ptx_parser *p, struct ptx_func *f, bool results)
{
    bool first = true;
    while (!ptx_accept(p, ')')) {
        if (!first && !ptx_expect(p, ',', "the parameter"))
            return false;
        first = false;
        struct ptx_var *v = ptx_parse_param(p, f);
        if (!v)
            return false;
        v->is_input = !results;
        if (results)
            *VEC_PUSH(p->arena, &f->results) = v;
        else
            *VEC_PUSH(p->arena, &f->params) = v;
    }
    return true;
}

/* A function may be declared several times and defined once; the name then means the definition. */
static void declare_func(struct ptx_parser *p, struct ptx_token name, struct ptx_func *f)
{
    struct ptx_symbol *s = ptx_scope_own(&p->scopes, name.text, name.len);
    if (s && s->kind == PTX_S_FUNC && !(s->func->has_body && f->has_body)) {
        if (f->has_body)
            s->func = f;
        return;
    }
    s = ptx_declare(p, name, PTX_S_FUNC);
    if (s)
        s->func = f;
}

static bool parse_signature(struct ptx_parser *p, struct ptx_func *f, struct ptx_token *name)
{
    if (ptx_at_dot(p, "attribute")) {
        ptx_lex_next(&p->lex);
        if (!ptx_expect(p, '(', ".attribute"))
            return false;
        f->attribute = ptx_text_until(p, ")");
        if (!ptx_expect(p, ')', "the attribute"))
            return false;
    }
    if (!f->is_entry && ptx_accept(p, '(') && !parse_params(p, f, true))
        return false;
    *name = p->lex.tok;
    if (name->kind != PTX_T_IDENT)
        return ptx_expected(p, "the function's name");
    f->span = ptx_tok_span(p);
    f->name = arena_strndup(p->arena, name->text, name->len);
    ptx_lex_next(&p->lex);
    if (ptx_accept(p, '(') && !parse_params(p, f, false))
        return false;
    return parse_directives(p, f);
}

/* The parameters again, around the body: those in registers are the first registers, in the same
 * order. */
static void declare_params(struct ptx_parser *p, struct ptx_func *f)
{
    uint32_t reg = 0;
    for (size_t i = 0; i < f->results.n + f->params.n; i++) {
        struct ptx_var *v = i < f->results.n ? f->results.v[i] : f->params.v[i - f->results.n];
        bool in_reg = v->space == PTX_NONE;
        if (in_reg && (reg == f->regs.n || strcmp(f->regs.v[reg].name, v->name) != 0))
            continue; /* one without a name */
        struct ptx_symbol *s =
            ptx_scope_add(&p->scopes, v->name, strlen(v->name), in_reg ? PTX_S_REG : PTX_S_VAR);
        if (!s)
            continue;
        s->span = v->span;
        s->var = v;
        if (in_reg)
            s->index = reg++;
    }
}

static bool parse_func(struct ptx_parser *p, const char *linkage, struct span from)
{
    struct ptx_func *f = ARENA_NEW(p->arena, struct ptx_func);
    struct ptx_token name;
    f->linkage = linkage;
    f->directives = "";
    f->is_entry = ptx_at_dot(p, "entry");
    ptx_lex_next(&p->lex);
    ptx_take_comments(p);
    ptx_item_new(p, PTX_I_FUNC, from)->func = f;
    ptx_scope_enter(&p->scopes);
    bool good = parse_signature(p, f, &name);
    ptx_scope_leave(&p->scopes);
    if (!good)
        return false;
    f->has_body = ptx_at(p, '{');
    declare_func(p, name, f);
    if (!f->has_body)
        return ptx_expect(p, ';', "the declaration");
    ptx_scope_enter(&p->scopes);
    declare_params(p, f);
    p->func = f;
    ptx_parse_body(p, f);
    p->func = NULL;
    ptx_scope_leave(&p->scopes);
    return true;
}

/* ---- the module ------------------------------------------------------------------------------ */

static bool parse_top(struct ptx_parser *p)
{
    struct span from = ptx_tok_span(p);
    if (ptx_at_dot(p, "version"))
        return parse_version(p);
    if (ptx_at_dot(p, "target"))
        return parse_target(p);
    if (ptx_at_dot(p, "address_size"))
        return parse_address_size(p);
    if (ptx_at_dot(p, "file") || ptx_at_dot(p, "loc")) {
        parse_line(p);
        return true;
    }
    if (ptx_at_dot(p, "section"))
        return parse_section(p);
    if (ptx_at_dot(p, "pragma") || ptx_at_dot(p, "alias"))
        return parse_module_text(p);
    const char *linkage = ptx_parse_linkage(p);
    if (ptx_at_dot(p, "func") || ptx_at_dot(p, "entry"))
        return parse_func(p, linkage, from);
    if (ptx_at_var(p)) {
        ptx_parse_vars(p, linkage, from);
        return true;
    }
    if (ptx_at_dot(p, "texref") || ptx_at_dot(p, "tex") || ptx_at_dot(p, "surfref"))
        return diag_error(p->diags, ptx_tok_span(p),
                          "texture and surface references are not supported");
    return ptx_expected(p, "a directive such as .version, .global or .entry");
}

/* The leading lines that begin with //@ ; the lexer then starts behind them. */
static const char *take_header(struct arena *a, const struct source *src, size_t *len)
{
    struct buf header = buf_in(a);
    const char *p = src->text, *end = p + src->len;
    while (end - p >= 3 && memcmp(p, "//@", 3) == 0) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *to = nl ? nl : end;
        const char *from = p + 3;
        if (from < to && *from == ' ')
            from++;
        const char *stop = to > from && to[-1] == '\r' ? to - 1 : to;
        buf_add(&header, from, (size_t)(stop - from));
        buf_putc(&header, '\n');
        p = nl ? nl + 1 : end;
    }
    *len = (size_t)(p - src->text);
    return buf_text(&header);
}

/* What could not be read may have a body: it is not the module's text. */
static void skip_braces(struct ptx_parser *p)
{
    size_t depth = 0;
    do {
        if (ptx_at(p, '{'))
            depth++;
        else if (ptx_at(p, '}') && depth > 0)
            depth--;
        else if (depth == 0 && !ptx_at(p, '}'))
            return;
        ptx_lex_next(&p->lex);
    } while (depth > 0 && !ptx_stop(p));
}

struct ptx_module *ptx_parse(struct arena *a, const struct source *src, struct diags *d)
{
    struct ptx_parser p = {.arena = a, .diags = d};
    size_t before = d->nerror, header;
    p.module = ARENA_NEW(a, struct ptx_module);
    p.module->arena = a;
    p.module->target_more = "";
    p.module->address_size = 64;
    p.module->header = take_header(a, src, &header);
    ptx_scopes_init(&p.scopes, a);
    ptx_lex_start(&p.lex, src, header, a, d);
    const char *nul = memchr(src->text, 0, (size_t)(p.lex.end - src->text));
    if (nul) {
        /* Kept texts are C strings, and the driver would not read on either. */
        diag_error(d, ptx_span(&p.lex, nul, nul + 1), "a NUL byte in the text: this is not PTX");
        return NULL;
    }
    while (!ptx_stop(&p)) {
        ptx_take_comments(&p);
        if (ptx_accept(&p, ';') || parse_top(&p))
            continue;
        ptx_recover(&p);
        skip_braces(&p);
    }
    ptx_take_comments(&p);
    if (d->nerror == before && !p.module->version)
        diag_error(d, (struct span){src, 0, 0}, "no .version: this is not PTX");
    if (d->nerror == before && !p.module->sm)
        diag_error(d, (struct span){src, 0, 0}, "no .target");
    return d->nerror == before ? p.module : NULL;
}
