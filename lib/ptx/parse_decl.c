/* Declarations: registers, variables in memory, parameters. */
#include <config.h>

#include "ptx/parse.h"

struct ptx_symbol *ptx_declare(struct ptx_parser *p, struct ptx_token name,
                               enum ptx_symbol_kind kind)
{
    struct span at = ptx_span(&p->lex, name.text, name.text + name.len);
    struct ptx_symbol *s = ptx_scope_add(&p->scopes, name.text, name.len, kind);
    if (!s) {
        const struct ptx_symbol *old = ptx_scope_own(&p->scopes, name.text, name.len);
        diag_error(p->diags, at, "'%.*s' is declared twice", (int)name.len, name.text);
        diag_note(p->diags, old->span, "the first one is here");
        return NULL;
    }
    s->span = at;
    return s;
}

/* A type under the cursor, or PTX_NONE with an error. */
static enum ptx_mod parse_type(struct ptx_parser *p)
{
    const struct ptx_token *t = &p->lex.tok;
    enum ptx_mod type = PTX_NONE;
    if (t->kind == PTX_T_DOT)
        type = ptx_type_find(t->text + 1, t->len - 1);
    if (type == PTX_NONE) {
        ptx_expected(p, "a type such as .b32 or .f32");
        return PTX_NONE;
    }
    ptx_lex_next(&p->lex);
    return type;
}

/* ---- registers ------------------------------------------------------------------------------- */

/* %r<n>: n names in one block of memory. */
static void add_range(struct ptx_parser *p, struct ptx_func *f, const char *base, size_t len,
                      uint32_t n, enum ptx_mod type, uint32_t decl)
{
    size_t stride = len + 8;
    char *names = arena_calloc(p->arena, n, stride);
    for (uint32_t i = 0; i < n; i++) {
        char digits[8], *name = names + i * stride;
        unsigned k = 0;
        uint32_t v = i;
        memcpy(name, base, len);
        do
            digits[k++] = (char)('0' + v % 10);
        while (v /= 10);
        for (unsigned j = 0; j < k; j++)
            name[len + j] = digits[k - 1 - j];
        *VEC_PUSH(p->arena, &f->regs) = (struct ptx_reg){name, type, decl};
    }
}

static bool parse_reg_name(struct ptx_parser *p, struct ptx_func *f, enum ptx_mod type,
                           struct span from)
{
    struct ptx_token name = p->lex.tok;
    uint64_t count = 1;
    bool range = false;
    if (name.kind != PTX_T_IDENT)
        return ptx_expected(p, "a register's name");
    ptx_lex_next(&p->lex);
    if (ptx_accept(p, '<')) {
        range = true;
        /* Not a constant expression: the > would be an operator. */
        if (p->lex.tok.kind != PTX_T_INT || p->lex.tok.bits > PTX_MAX_REGS)
            return ptx_expected(p, "the number of registers");
        count = p->lex.tok.bits;
        ptx_lex_next(&p->lex);
        if (!ptx_expect(p, '>', "the number"))
            return false;
    }
    if (p->nreg + count > PTX_MAX_REGS)
        return diag_error(p->diags, from, "more than %d registers in a module", PTX_MAX_REGS);
    p->nreg += count;
    struct ptx_symbol *s = ptx_declare(p, name, range ? PTX_S_RANGE : PTX_S_REG);
    struct ptx_item *it = ptx_item_new(p, PTX_I_REG, from);
    uint32_t decl = (uint32_t)(f->items.n - 1);
    it->first_reg = (uint32_t)f->regs.n;
    it->nreg = (uint32_t)count;
    it->reg_range = range;
    it->type = type;
    it->text = arena_strndup(p->arena, name.text, name.len);
    if (s) {
        s->index = it->first_reg;
        s->count = it->nreg;
    }
    if (range)
        add_range(p, f, name.text, name.len, (uint32_t)count, type, decl);
    else
        *VEC_PUSH(p->arena, &f->regs) = (struct ptx_reg){it->text, type, decl};
    return true;
}

void ptx_parse_regs(struct ptx_parser *p, struct ptx_func *f)
{
    struct span from = ptx_tok_span(p);
    ptx_lex_next(&p->lex);
    if (ptx_at_dot(p, "v2") || ptx_at_dot(p, "v4")) {
        diag_error(p->diags, ptx_tok_span(p),
                   "vector registers are not supported; declare one register per element");
        ptx_recover(p);
        return;
    }
    enum ptx_mod type = parse_type(p);
    bool good = type != PTX_NONE;
    while (good) {
        good = parse_reg_name(p, f, type, from);
        if (!good || !ptx_accept(p, ','))
            break;
    }
    if (!good || !ptx_expect(p, ';', "the declaration"))
        ptx_recover(p);
}

/* ---- variables ------------------------------------------------------------------------------- */

static enum ptx_mod space_of(const struct ptx_token *t)
{
    if (t->kind != PTX_T_DOT)
        return PTX_NONE;
    enum ptx_mod m = ptx_mod_find(t->text + 1, t->len - 1, PTX_MC_SPACE);
    return m == PTX_GLOBAL || m == PTX_CONST || m == PTX_SHARED || m == PTX_LOCAL || m == PTX_PARAM
               ? m
               : PTX_NONE;
}

bool ptx_at_var(const struct ptx_parser *p)
{
    return space_of(&p->lex.tok) != PTX_NONE;
}

/* .attribute(.managed): the text between the parentheses. */
static bool parse_attribute(struct ptx_parser *p, struct ptx_var *v)
{
    ptx_lex_next(&p->lex);
    if (!ptx_expect(p, '(', ".attribute"))
        return false;
    v->attribute = ptx_text_until(p, ")");
    return ptx_expect(p, ')', "the attribute");
}

/* What may stand between the space and the name, in the orders that compilers write it. */
static bool parse_var_type(struct ptx_parser *p, struct ptx_var *v)
{
    uint64_t align;
    while (p->lex.tok.kind == PTX_T_DOT) {
        if (ptx_at_dot(p, "align")) {
            ptx_lex_next(&p->lex);
            struct span at = ptx_tok_span(p);
            if (!ptx_parse_uint(p, 1 << 20, &align))
                return false;
            if (align == 0 || (align & (align - 1)))
                return diag_error(p->diags, at, "an alignment is a power of two");
            v->align = (uint32_t)align;
        } else if (ptx_at_dot(p, "attribute")) {
            if (!parse_attribute(p, v))
                return false;
        } else if (ptx_accept_dot(p, "v2")) {
            v->vec = PTX_V2;
        } else if (ptx_accept_dot(p, "v4")) {
            v->vec = PTX_V4;
        } else if (ptx_at_dot(p, "ptr")) {
            break;
        } else if (ptx_at_dot(p, "texref") || ptx_at_dot(p, "samplerref") ||
                   ptx_at_dot(p, "surfref")) {
            return diag_error(p->diags, ptx_tok_span(p),
                              "texture and surface references are not supported");
        } else if (v->type == PTX_NONE) {
            v->type = parse_type(p);
            if (v->type == PTX_NONE)
                return false;
        } else {
            return ptx_expected(p, "the variable's name");
        }
    }
    return v->type != PTX_NONE || ptx_expected(p, "a type such as .b32 or .f32");
}

/* .ptr .global .align 16 of a kernel's parameter. */
static bool parse_ptr(struct ptx_parser *p, struct ptx_var *v)
{
    if (!ptx_accept_dot(p, "ptr"))
        return true;
    struct buf text = buf_in(p->arena);
    buf_puts(&text, ".ptr");
    if (space_of(&p->lex.tok) != PTX_NONE) {
        buf_printf(&text, " %.*s", (int)p->lex.tok.len, p->lex.tok.text);
        ptx_lex_next(&p->lex);
    }
    if (ptx_accept_dot(p, "align")) {
        uint64_t align;
        if (!ptx_parse_uint(p, 1 << 20, &align))
            return false;
        buf_printf(&text, " .align %llu", (unsigned long long)align);
    }
    v->ptr = buf_text(&text);
    return true;
}

/* [4][8] behind the name. */
static bool parse_dimensions(struct ptx_parser *p, struct ptx_var *v)
{
    struct buf shape = buf_in(p->arena);
    struct span at = ptx_tok_span(p);
    uint64_t count = 1;
    unsigned n = 0;
    while (ptx_accept(p, '[')) {
        uint64_t size = 0;
        if (!ptx_at(p, ']') && !ptx_parse_uint(p, INT64_MAX, &size))
            return false;
        if (!ptx_expect(p, ']', "the dimension"))
            return false;
        if (__builtin_mul_overflow(count, size, &count) || count > (uint64_t)1 << 40 || ++n > 32)
            return diag_error(p->diags, at, "the array is too large");
        buf_printf(&shape, "[%llu]", (unsigned long long)size);
    }
    v->is_array = n > 0;
    v->count = n > 0 ? count : 0;
    if (n > 1)
        v->shape = buf_text(&shape);
    return true;
}

/* The number of elements of an array without one, from its initialiser: {1, 2, 3} or "text". */
static uint64_t count_elements(const char *init)
{
    uint64_t n = 1;
    unsigned depth = 0;
    if (*init == '"')
        return strlen(init) - 1;
    for (; *init; init++) {
        if (*init == '{')
            depth++;
        else if (*init == '}')
            depth--;
        else if (*init == ',' && depth == 1)
            n++;
    }
    return n;
}

static void declare_var(struct ptx_parser *p, struct ptx_token name, struct ptx_var *v)
{
    v->name = arena_strndup(p->arena, name.text, name.len);
    /* .extern .shared may be repeated, and a definition may follow a declaration. */
    struct ptx_symbol *old = ptx_scope_own(&p->scopes, name.text, name.len);
    if (old && old->kind == PTX_S_VAR && strcmp(old->var->linkage, ".extern") == 0 &&
        old->var->space == v->space) {
        old->var = v;
        return;
    }
    struct ptx_symbol *s = ptx_declare(p, name, PTX_S_VAR);
    if (s)
        s->var = v;
}

static bool parse_declarator(struct ptx_parser *p, const struct ptx_var *like, struct span from)
{
    struct ptx_var *v = ARENA_NEW(p->arena, struct ptx_var);
    struct ptx_token name = p->lex.tok;
    *v = *like;
    if (name.kind != PTX_T_IDENT)
        return ptx_expected(p, "the variable's name");
    v->span = ptx_tok_span(p);
    ptx_lex_next(&p->lex);
    if (ptx_at(p, '<'))
        return ptx_expected(p, "no range of names (that is for registers)");
    if (!parse_dimensions(p, v))
        return false;
    if (ptx_accept(p, '=')) {
        v->init = ptx_text_until(p, ",;");
        if (!*v->init)
            return ptx_expected(p, "an initial value");
        if (v->is_array && v->count == 0 && !v->shape)
            v->count = count_elements(v->init);
    }
    declare_var(p, name, v);
    ptx_item_new(p, PTX_I_VAR, from)->var = v;
    return true;
}

const char *ptx_parse_linkage(struct ptx_parser *p)
{
    static const char *const linkages[] = {".extern", ".visible", ".weak", ".common"};
    for (size_t i = 0; i < 4; i++)
        if (ptx_accept_dot(p, linkages[i] + 1))
            return linkages[i];
    return "";
}

void ptx_parse_vars(struct ptx_parser *p, const char *linkage, struct span from)
{
    struct ptx_var like = {.linkage = linkage, .space = space_of(&p->lex.tok)};
    bool good = like.space != PTX_NONE ||
                ptx_expected(p, "a state space such as .global or .shared");
    if (good) {
        ptx_lex_next(&p->lex);
        good = parse_var_type(p, &like);
    }
    while (good) {
        good = parse_declarator(p, &like, from);
        if (!good || !ptx_accept(p, ','))
            break;
    }
    if (!good || !ptx_expect(p, ';', "the declaration"))
        ptx_recover(p);
}

struct ptx_var *ptx_parse_param(struct ptx_parser *p, struct ptx_func *f)
{
    struct ptx_var *v = ARENA_NEW(p->arena, struct ptx_var);
    v->linkage = "";
    bool reg = ptx_accept_dot(p, "reg");
    if (!reg && !ptx_accept_dot(p, "param")) {
        ptx_expected(p, ".param");
        return NULL;
    }
    v->space = reg ? PTX_NONE : PTX_PARAM;
    if (!parse_var_type(p, v) || !parse_ptr(p, v))
        return NULL;
    struct ptx_token name = p->lex.tok;
    if (name.kind != PTX_T_IDENT) {
        ptx_expected(p, "the parameter's name");
        return NULL;
    }
    v->span = ptx_tok_span(p);
    v->name = arena_strndup(p->arena, name.text, name.len);
    ptx_lex_next(&p->lex);
    if (!parse_dimensions(p, v))
        return NULL;
    if (name.len == 1 && *name.text == '_')
        return v; /* a prototype's parameter without a name */
    struct ptx_symbol *s = ptx_declare(p, name, reg ? PTX_S_REG : PTX_S_VAR);
    if (s && reg) {
        s->index = (uint32_t)f->regs.n;
        *VEC_PUSH(p->arena, &f->regs) = (struct ptx_reg){v->name, v->type, UINT32_MAX};
        p->nreg++;
    } else if (s) {
        s->var = v;
    }
    return v;
}
