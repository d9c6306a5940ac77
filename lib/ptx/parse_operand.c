/* Operands, by their own syntax; the row of the instruction only says where a label stands and what
 * type a float literal takes. */
#include <config.h>

#include "ptx/parse.h"

static struct ptx_operand operand(enum ptx_operand_kind kind)
{
    return (struct ptx_operand){.kind = kind, .reg = -1, .reg2 = -1};
}

static bool is_warp_size(const struct ptx_token *t)
{
    return t->kind == PTX_T_IDENT && t->len == 7 && memcmp(t->text, "WARP_SZ", 7) == 0;
}

static bool is_underscore(const struct ptx_token *t)
{
    return t->kind == PTX_T_IDENT && t->len == 1 && *t->text == '_';
}

void ptx_pend_label(struct ptx_parser *p, uint32_t *label, struct ptx_token name)
{
    *label = UINT32_MAX;
    *VEC_PUSH(p->arena, &p->pending) = (struct ptx_pending){
        label, name.text, name.len, ptx_span(&p->lex, name.text, name.text + name.len)};
}

static bool parse_label(struct ptx_parser *p, struct ptx_operand *o)
{
    *o = operand(PTX_O_LABEL);
    if (p->lex.tok.kind != PTX_T_IDENT)
        return ptx_expected(p, "a label");
    ptx_pend_label(p, &o->label, p->lex.tok);
    ptx_lex_next(&p->lex);
    return true;
}

static bool undeclared(struct ptx_parser *p, const struct ptx_token *t)
{
    bool percent = *t->text == '%';
    return diag_error(p->diags, ptx_span(&p->lex, t->text, t->text + t->len),
                      percent ? "'%.*s' is neither a declared register nor a special register"
                              : "'%.*s' is not declared",
                      (int)t->len, t->text);
}

/* The register under the cursor (a declared one) into *reg. */
static bool parse_reg(struct ptx_parser *p, int32_t *reg)
{
    struct ptx_token t = p->lex.tok;
    uint32_t index;
    if (t.kind != PTX_T_IDENT)
        return ptx_expected(p, "a register");
    struct ptx_symbol *s = ptx_scope_find(&p->scopes, t.text, t.len, &index);
    if (!s)
        return undeclared(p, &t);
    if (s->kind != PTX_S_REG && s->kind != PTX_S_RANGE)
        return ptx_expected(p, "a register");
    *reg = (int32_t)index;
    ptx_lex_next(&p->lex);
    return true;
}

/* What may follow a register or _ : the second of a pair. */
static bool parse_pair(struct ptx_parser *p, struct ptx_operand *o)
{
    if (!ptx_accept(p, '|'))
        return true;
    if (is_underscore(&p->lex.tok)) {
        ptx_lex_next(&p->lex);
        return o->kind == PTX_O_REG || ptx_expected(p, "a register on one side of '|'");
    }
    o->kind = PTX_O_REG;
    return parse_reg(p, &o->reg2);
}

/* [5] or +20 behind a variable's name. */
static bool parse_offset(struct ptx_parser *p, const struct ptx_var *v, uint64_t *offset)
{
    struct ptx_constant c;
    *offset = 0;
    if (ptx_accept(p, '+')) {
        struct span at = ptx_tok_span(p);
        if (!ptx_parse_constant(p, &c))
            return false;
        if (c.kind != PTX_T_INT)
            return diag_error(p->diags, at, "an offset is an integer");
        *offset = c.bits;
    } else if (v && ptx_accept(p, '[')) {
        uint64_t index;
        if (!ptx_parse_uint(p, INT32_MAX, &index) || !ptx_expect(p, ']', "the index"))
            return false;
        *offset = index * (ptx_type_bits(v->type) / 8);
    }
    return true;
}

static bool parse_name(struct ptx_parser *p, struct ptx_operand *o)
{
    struct ptx_token t = p->lex.tok;
    uint32_t index = 0;
    struct ptx_symbol *s = ptx_scope_find(&p->scopes, t.text, t.len, &index);
    if (!s) {
        enum ptx_sreg r = ptx_sreg_find(t.text, t.len);
        if (r == PTX_SR_COUNT)
            return undeclared(p, &t);
        *o = operand(PTX_O_SREG);
        o->sreg = r;
        ptx_lex_next(&p->lex);
        return true;
    }
    switch (s->kind) {
    case PTX_S_REG:
    case PTX_S_RANGE:
        *o = operand(PTX_O_REG);
        o->reg = (int32_t)index;
        ptx_lex_next(&p->lex);
        return parse_pair(p, o);
    case PTX_S_VAR:
        *o = operand(PTX_O_SYM);
        o->var = s->var;
        ptx_lex_next(&p->lex);
        return parse_offset(p, s->var, &o->bits);
    case PTX_S_FUNC:
        *o = operand(PTX_O_FUNC);
        o->name = s->func->name;
        ptx_lex_next(&p->lex);
        return true;
    case PTX_S_LABEL: break;
    }
    return diag_error(p->diags, ptx_tok_span(p), "a label can't stand here");
}

static bool parse_element(struct ptx_parser *p, struct ptx_operand *o);

/* {a, b} or (a, b): the opening one has been read. */
static bool parse_group(struct ptx_parser *p, char close, struct ptx_operand *o)
{
    VEC(struct ptx_operand) list = {0};
    *o = operand(PTX_O_VEC);
    while (!ptx_accept(p, close)) {
        struct ptx_operand e;
        if (list.n == PTX_MAX_ELEMENTS)
            return ptx_expected(p, "fewer elements");
        if (list.n && !ptx_expect(p, ',', "the element"))
            return false;
        if (!parse_element(p, &e))
            return false;
        *VEC_PUSH(p->arena, &list) = e;
    }
    o->elem = list.v;
    o->nelem = (uint32_t)list.n;
    return true;
}

/* [reg + 8], [symbol + 8], [symbol[2]], [64], [reg, {x, y}]: the bracket has been read. */
static bool parse_memory(struct ptx_parser *p, struct ptx_operand *o)
{
    struct ptx_operand base;
    *o = operand(PTX_O_MEM);
    if (p->lex.tok.kind == PTX_T_IDENT && !is_warp_size(&p->lex.tok)) {
        if (!parse_name(p, &base))
            return false;
        if (base.kind == PTX_O_SYM) {
            o->var = base.var;
            o->bits = base.bits;
        } else if (base.kind == PTX_O_REG && base.reg2 < 0) {
            o->reg = base.reg;
            if (!parse_offset(p, NULL, &o->bits))
                return false;
        } else {
            return ptx_expected(p, "an address: a register, a variable or a constant");
        }
    } else {
        struct ptx_constant c;
        if (!ptx_parse_constant(p, &c))
            return false;
        if (c.kind != PTX_T_INT)
            return ptx_expected(p, "an integer address");
        o->bits = c.bits;
    }
    if (ptx_accept(p, ',')) {
        struct ptx_operand coords;
        if (!ptx_expect(p, '{', "the tensor") || !parse_group(p, '}', &coords))
            return false;
        o->elem = coords.elem;
        o->nelem = coords.nelem;
    }
    return ptx_expect(p, ']', "the address");
}

static bool parse_number(struct ptx_parser *p, struct ptx_operand *o)
{
    struct ptx_constant c;
    if (!ptx_parse_constant(p, &c))
        return false;
    *o = operand(c.kind == PTX_T_INT ? PTX_O_IMM : c.kind == PTX_T_F32 ? PTX_O_F32 : PTX_O_F64);
    o->bits = c.bits;
    return true;
}

/* Anything but a { } group or a memory operand. */
static bool parse_element(struct ptx_parser *p, struct ptx_operand *o)
{
    if (is_underscore(&p->lex.tok)) {
        *o = operand(PTX_O_SINK);
        ptx_lex_next(&p->lex);
        return parse_pair(p, o);
    }
    if (p->lex.tok.kind == PTX_T_IDENT && !is_warp_size(&p->lex.tok))
        return parse_name(p, o);
    return parse_number(p, o);
}

/* Is the ! under the cursor that of a predicate, not of a constant expression? */
static bool at_negation(const struct ptx_parser *p)
{
    const char *c = p->lex.pos;
    while (c < p->lex.end && (*c == ' ' || *c == '\t'))
        c++;
    return ptx_at(p, '!') && c < p->lex.end &&
           (*c == '%' || *c == '_' || *c == '$' || (*c | 32) >= 'a');
}

static bool parse_operand(struct ptx_parser *p, bool label, struct ptx_operand *o)
{
    if (label)
        return parse_label(p, o);
    if (at_negation(p)) {
        ptx_lex_next(&p->lex);
        *o = operand(PTX_O_REG);
        o->neg = true;
        return parse_reg(p, &o->reg);
    }
    if (ptx_accept(p, '{'))
        return parse_group(p, '}', o);
    if (ptx_accept(p, '['))
        return parse_memory(p, o);
    const struct ptx_token *t = &p->lex.tok;
    bool number = t->kind == PTX_T_INT || t->kind == PTX_T_F32 || t->kind == PTX_T_F64 ||
                  t->kind == PTX_T_DECIMAL ||
                  (t->kind == PTX_T_PUNCT && strchr("+-~!(", t->punct)) || is_warp_size(t);
    return number ? parse_number(p, o) : parse_element(p, o);
}

/* call (results), function, (arguments), prototype; */
static bool parse_call(struct ptx_parser *p, struct ptx_operand *o, uint8_t *n)
{
    o[0] = o[2] = operand(PTX_O_VEC);
    *n = 3;
    if (ptx_accept(p, '(') && (!parse_group(p, ')', &o[0]) || !ptx_expect(p, ',', "the results")))
        return false;
    if (p->lex.tok.kind != PTX_T_IDENT)
        return ptx_expected(p, "a function");
    uint32_t index;
    struct ptx_symbol *s = ptx_scope_find(&p->scopes, p->lex.tok.text, p->lex.tok.len, &index);
    if (s && s->kind != PTX_S_FUNC) {
        o[1] = operand(PTX_O_REG);
        if (!parse_reg(p, &o[1].reg))
            return false;
    } else {
        o[1] = operand(PTX_O_FUNC);
        o[1].name = arena_strndup(p->arena, p->lex.tok.text, p->lex.tok.len);
        ptx_lex_next(&p->lex);
    }
    if (!ptx_accept(p, ','))
        return true;
    if (ptx_accept(p, '(')) {
        if (!parse_group(p, ')', &o[2]))
            return false;
        if (!ptx_accept(p, ','))
            return true;
    }
    *n = 4;
    return parse_label(p, &o[3]);
}

/* A float literal takes the type of its instruction, however it was written: 1.5 in an .f32 one is
 * an .f32. */
static void settle_float(struct ptx_operand *o, enum ptx_mod type)
{
    double d;
    float f;
    uint32_t bits;
    if (o->kind == PTX_O_F64 && type == PTX_F32) {
        memcpy(&d, &o->bits, sizeof d);
        f = (float)d;
        memcpy(&bits, &f, sizeof bits);
        o->kind = PTX_O_F32;
        o->bits = bits;
    } else if (o->kind == PTX_O_F32 && type == PTX_F64) {
        bits = (uint32_t)o->bits;
        memcpy(&f, &bits, sizeof f);
        d = (double)f;
        o->kind = PTX_O_F64;
        memcpy(&o->bits, &d, sizeof d);
    }
    for (uint32_t i = 0; o->kind == PTX_O_VEC && i < o->nelem; i++)
        if (o->elem[i].kind != PTX_O_VEC)
            settle_float(&o->elem[i], type);
}

static bool wrong_count(struct ptx_parser *p, const struct ptx_inst *in, size_t n, struct span at)
{
    size_t least, most;
    ptx_operand_range(in, &least, &most);
    if (least == most)
        return diag_error(p->diags, at, "'%s' takes %zu operand%s, not %zu", ptx_op_name(in->op),
                          least, least == 1 ? "" : "s", n);
    return diag_error(p->diags, at, "'%s' takes %zu to %zu operands, not %zu", ptx_op_name(in->op),
                      least, most, n);
}

/* The form is known; what the operands' own text left open is settled by it. */
static void settle_operands(struct ptx_inst *in)
{
    const struct ptx_spec *specs[PTX_MAX_OPERANDS];
    if (!ptx_operand_specs(in, specs))
        return;
    for (size_t i = 0; i < in->noperand; i++) {
        struct ptx_operand *o = &in->operand[i];
        char kind = specs[i]->kind;
        settle_float(o, kind == '=' ? specs[i]->type : kind == 'u' ? in->type[1] : in->type[0]);
        /* Triton writes st.b32 [a], {%r1}; */
        if (o->kind == PTX_O_VEC && o->nelem == 1 && kind == 'v' &&
            in->mod[PTX_MC_VECTOR] == PTX_NONE)
            *o = o->elem[0];
    }
}

/* Up to PTX_MAX_OPERANDS operands into o. */
static bool parse_list(struct ptx_parser *p, const struct ptx_inst *in, struct ptx_operand *o,
                       uint8_t *n)
{
    const struct ptx_row *row = ptx_row(in->op);
    if (in->op == PTX_OP_CALL)
        return parse_call(p, o, n);
    if (ptx_at(p, ';'))
        return true;
    do {
        if (*n == PTX_MAX_OPERANDS)
            return ptx_expected(p, "';' (no instruction has that many operands)");
        bool label = *n < row->nspec && row->spec[*n].kind == 'l';
        if (!parse_operand(p, label, &o[*n]))
            return false;
        ++*n;
    } while (ptx_accept(p, ','));
    return true;
}

bool ptx_parse_operands(struct ptx_parser *p, const struct ptx_word *words, size_t nword,
                        struct ptx_inst *in)
{
    struct ptx_operand o[PTX_MAX_OPERANDS];
    const char *from = p->lex.tok.text;
    uint8_t n = 0;
    size_t first_pending = p->pending.n;
    if (!parse_list(p, in, o, &n)) {
        p->pending.n = first_pending;
        return false;
    }
    in->noperand = n;
    in->operand = ARENA_ARRAY(p->arena, n, struct ptx_operand);
    memcpy(in->operand, o, n * sizeof *o);
    /* The operands moved from the stack to their place, and their labels with them. */
    for (size_t i = first_pending; i < p->pending.n; i++)
        for (uint8_t k = 0; k < n; k++)
            if (p->pending.v[i].label == &o[k].label)
                p->pending.v[i].label = &in->operand[k].label;

    size_t least, most;
    ptx_operand_range(in, &least, &most);
    if (n < least || n > most) {
        /* Another row of the same mnemonic may take that many: max.f32 of two and of three. */
        struct ptx_spelling other;
        if (ptx_match(words, nword, n, &other)) {
            in->op = other.op;
            ptx_set_words(p->module, in, &other.words);
        }
        ptx_operand_range(in, &least, &most);
        if (n < least || n > most)
            return wrong_count(p, in, n, ptx_span(&p->lex, from, p->lex.tok_end));
    }
    settle_operands(in);
    return true;
}
