/* Operands against their row. The rules are the manual's ("Operand Size Exceeding Instruction-Type
 * Size" among them) as ptxas 13.0 applies them; tests/unit/ptx_judge.c compares the two. */
#include <config.h>

#include "ptx/validate.h"

static bool is_bits(unsigned t)
{
    return t == PTX_B8 || t == PTX_B16 || t == PTX_B32 || t == PTX_B64 || t == PTX_B128;
}

static bool is_int(unsigned t)
{
    return (t >= PTX_U8 && t <= PTX_S64) || is_bits(t);
}

/* A type whose values live in untyped registers: packed ones, and the formats without registers of
 * their own. */
static bool is_packed(unsigned t)
{
    switch ((int)t) {
    case PTX_BF16:
    case PTX_BF16X2:
    case PTX_F32X2:
    case PTX_U16X2:
    case PTX_S16X2:
    case PTX_TF32:
    case PTX_E4M3X2:
    case PTX_E5M2X2: return true;
    default: return false;
    }
}

/* May a register of type r hold a value of type t? wide: ld, st and cvt take a register that is too
 * large. */
static bool reg_fits(unsigned r, unsigned t, bool wide)
{
    if (r == PTX_PRED || t == PTX_PRED)
        return r == t;
    unsigned rbits = ptx_type_bits((enum ptx_mod)r), tbits = ptx_type_bits((enum ptx_mod)t);
    if (is_packed(t))
        return is_bits(r) && rbits == tbits;
    if (r == t)
        return true;
    if (rbits != tbits && !(wide && rbits > tbits))
        return false;
    if (is_bits(t))
        return true;
    if (ptx_type_is_float((enum ptx_mod)t))
        return is_bits(r);
    return is_int(r);
}

/* May a literal stand for a value of type t? */
static bool literal_fits(const struct ptx_operand *o, unsigned t)
{
    switch (o->kind) {
    case PTX_O_IMM: return is_int(t) || t == PTX_PRED;
    case PTX_O_F32: return t == PTX_F32 || t == PTX_F64 || t == PTX_B32;
    default: return t == PTX_F32 || t == PTX_F64 || t == PTX_B64;
    }
}

static enum ptx_mod twice(unsigned t)
{
    switch ((int)t) {
    case PTX_U16: return PTX_U32;
    case PTX_S16: return PTX_S32;
    case PTX_U32: return PTX_U64;
    default: return PTX_S64;
    }
}

/* The type of a plain operand; PTX_NONE for those that are none (memory, labels, ...). */
static unsigned spec_type(const struct ptx_inst *in, const struct ptx_spec *s)
{
    switch (s->kind) {
    case 't':
    case 'v':
    case 'x':
    case 'a': return in->type[0];
    case 'u': return in->type[1];
    case 'w': return twice(in->type[0]);
    case 'b': return PTX_U32;
    case 'q': return PTX_B32;
    case 'h': return PTX_U64;
    case 'k': return PTX_B16;
    case 'p':
    case 'P':
    case 'y': return PTX_PRED;
    case '=': return s->type;
    default: return PTX_NONE;
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

const char *ptx_mnemonic(const struct ptx_validator *v, const struct ptx_inst *in)
{
    const char *words[PTX_MAX_WORDS];
    size_t n = ptx_mnemonic_words(in, words);
    struct buf text = buf_in(v->diags->arena);
    buf_puts(&text, ptx_op_name(in->op));
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, ".%s", words[i]);
    return buf_text(&text);
}

static bool wrong(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                  const char *want)
{
    return diag_error(v->diags, v->span, "operand %zu of '%s' must be %s", index + 1,
                      ptx_mnemonic(v, in), want);
}

static bool wrong_reg(struct ptx_validator *v, const struct ptx_inst *in, int32_t reg,
                      unsigned type)
{
    const struct ptx_reg *r = &v->func->regs.v[reg];
    return diag_error(v->diags, v->span, "'%s' can't take '%s', a .%s register, for a .%s operand",
                      ptx_mnemonic(v, in), r->name, ptx_mod_text(r->type),
                      ptx_mod_text((enum ptx_mod)type));
}

/* ---- plain values ---------------------------------------------------------------------------- */

static bool check_reg(struct ptx_validator *v, const struct ptx_inst *in, int32_t reg,
                      unsigned type)
{
    if (reg < 0 || reg_fits(v->func->regs.v[reg].type, type, ptx_op_wide(in->op)))
        return true;
    return wrong_reg(v, in, reg, type);
}

static bool check_sreg(struct ptx_validator *v, const struct ptx_inst *in, enum ptx_sreg r,
                       unsigned type)
{
    if (in->op != PTX_OP_MOV && ptx_op_family(in->op) != PTX_FAMILY_CVT)
        return diag_error(v->diags, v->span, "'%s' can't read '%s': move it into a register first",
                          ptx_mnemonic(v, in), ptx_sreg_text(r));
    if (!reg_fits(ptx_sreg_type(r), type, false))
        return diag_error(v->diags, v->span, "'%s' is .%s, not .%s", ptx_sreg_text(r),
                          ptx_mod_text(ptx_sreg_type(r)), ptx_mod_text((enum ptx_mod)type));
    unsigned min_ptx = ptx_sreg_min_ptx(r), min_sm = ptx_sreg_min_sm(r);
    if (!ptx_sm_allows(min_sm, v->module->sm, v->module->sm_suffix))
        return diag_error(v->diags, v->span, "'%s' needs sm_%u (the target is sm_%u)",
                          ptx_sreg_text(r), min_sm, v->module->sm);
    if (v->module->version < min_ptx)
        return diag_error(v->diags, v->span, "'%s' needs PTX %u.%u (the module says %u.%u)",
                          ptx_sreg_text(r), min_ptx / 10, min_ptx % 10, v->module->version / 10,
                          v->module->version % 10);
    return true;
}

static bool check_value(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                        const struct ptx_operand *o, unsigned type, bool dest)
{
    switch (o->kind) {
    case PTX_O_REG:
        if (o->neg && (dest || type != PTX_PRED))
            return wrong(v, in, index, "a register without '!'");
        if (o->reg2 >= 0)
            return wrong(v, in, index, "one register, not a pair");
        return check_reg(v, in, o->reg, type);
    case PTX_O_IMM:
    case PTX_O_F32:
    case PTX_O_F64:
        if (dest)
            return wrong(v, in, index, "a register");
        if (!literal_fits(o, type))
            return diag_error(v->diags, v->span, "%s can't stand for a .%s operand of '%s'",
                              o->kind == PTX_O_IMM   ? "an integer"
                              : o->kind == PTX_O_F32 ? "a float literal"
                                                     : "a double literal",
                              ptx_mod_text((enum ptx_mod)type), ptx_mnemonic(v, in));
        return true;
    case PTX_O_SREG:
        return dest ? wrong(v, in, index, "a register") : check_sreg(v, in, o->sreg, type);
    default: return wrong(v, in, index, dest ? "a register" : "a register or a constant");
    }
}

/* ---- the other kinds ------------------------------------------------------------------------- */

/* d, or d|p. */
static bool check_pair(struct ptx_validator *v, const struct ptx_inst *in, const struct ptx_spec *s,
                       size_t index, const struct ptx_operand *o)
{
    bool needs_second = in->op == PTX_OP_LOP3_BOOL || in->op == PTX_OP_ELECT;
    if (o->kind == PTX_O_SINK && (s->sink || s->kind == 'P') && !needs_second)
        return true;
    if (o->kind != PTX_O_REG || o->neg)
        return wrong(v, in, index,
                     s->kind == 'P' ? "a predicate or a pair p|q" : "a register or a pair d|p");
    if (o->reg < 0 && !s->sink && s->kind != 'P')
        return wrong(v, in, index, "a register before the '|'");
    if (needs_second && o->reg2 < 0)
        return wrong(v, in, index, "a pair d|p");
    return check_reg(v, in, o->reg, spec_type(in, s)) && check_reg(v, in, o->reg2, PTX_PRED);
}

/* The address of something in that space (PTX_NONE: in any). */
static bool no_generic(struct ptx_validator *v, const struct ptx_inst *in,
                       const struct ptx_operand *o)
{
    const char *space = ptx_mod_text(o->var->space);
    return diag_error(v->diags, v->span,
                      "'%s' is in .%s, and '%s' takes a generic address: that of a register, from "
                      "mov and cvta.%s",
                      o->var->name, space, ptx_mnemonic(v, in), space);
}

static bool check_address(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                          const struct ptx_operand *o, enum ptx_mod space)
{
    if (o->kind != PTX_O_MEM)
        return wrong(v, in, index, "an address in [ ]");
    if (o->reg >= 0) {
        const struct ptx_reg *r = &v->func->regs.v[o->reg];
        if (!is_int(r->type))
            return diag_error(v->diags, v->span, "'%s', a .%s register, can't be an address",
                              r->name, ptx_mod_text(r->type));
        return true;
    }
    if (o->var && space != PTX_NONE && o->var->space != space)
        return diag_error(v->diags, v->span, "'%s' is in .%s, but '%s' addresses .%s", o->var->name,
                          ptx_mod_text(o->var->space), ptx_mnemonic(v, in), ptx_mod_text(space));
    if (o->var && space == PTX_NONE && (o->var->space == PTX_PARAM || o->var->space == PTX_CONST))
        return no_generic(v, in, o);
    if (o->var && o->var->is_input && ptx_op_family(in->op) == PTX_FAMILY_ST)
        return diag_error(v->diags, v->span, "'%s' is a parameter: it can't be written",
                          o->var->name);
    if (!o->var && space != PTX_LOCAL)
        return wrong(v, in, index,
                     "an address in a register or variable (constants only address .local)");
    return true;
}

static enum ptx_mod space_of(const struct ptx_inst *in, enum ptx_mod_class cls)
{
    return ptx_space((enum ptx_mod)in->mod[cls]);
}

static unsigned vector_length(const struct ptx_inst *in)
{
    switch (in->mod[PTX_MC_VECTOR]) {
    case PTX_V2: return 2;
    case PTX_V4: return 4;
    case PTX_V8: return 8;
    default: return 0;
    }
}

/* {a, b}: n values of the type; sinks among them where a load writes, constants where a store
 * reads. */
static bool check_group(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                        const struct ptx_operand *o, size_t n, unsigned type, bool dest)
{
    char what[40];
    unsigned first = PTX_NONE;
    if (o->kind != PTX_O_VEC || o->nelem != n) {
        snprintf(what, sizeof what, "%zu elements in { }", n);
        return wrong(v, in, index, what);
    }
    for (uint32_t i = 0; i < o->nelem; i++) {
        const struct ptx_operand *e = &o->elem[i];
        if (e->kind == PTX_O_SINK)
            continue;
        if (!check_value(v, in, index, e, type, dest))
            return false;
        if (e->kind != PTX_O_REG)
            continue;
        unsigned bits = ptx_type_bits(v->func->regs.v[e->reg].type);
        if (first != PTX_NONE && bits != first)
            return wrong(v, in, index, "elements of one size");
        first = bits;
    }
    return dest && first == PTX_NONE ? wrong(v, in, index, "at least one register") : true;
}

static bool check_vector(struct ptx_validator *v, const struct ptx_inst *in,
                         const struct ptx_spec *s, size_t index, const struct ptx_operand *o)
{
    unsigned n = vector_length(in);
    if (o->kind == PTX_O_SINK && s->sink)
        return true;
    if (n)
        return check_group(v, in, index, o, n, in->type[0], s->dest);
    return check_value(v, in, index, o, in->type[0], s->dest);
}

/* mov.b64 {a, b}, d; and the other way round: the parts fill the whole. */
static bool check_pack(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                       const struct ptx_operand *o, bool dest)
{
    static const unsigned parts[] = {PTX_B8, PTX_B16, PTX_B32, PTX_B64};
    unsigned total = ptx_type_bits((enum ptx_mod)in->type[0]);
    if (!is_bits(in->type[0]))
        return diag_error(v->diags, v->span, "'%s' can't pack or unpack: that takes a .b type",
                          ptx_mnemonic(v, in));
    for (size_t i = 0; i < 4; i++)
        if ((o->nelem == 2 || o->nelem == 4) &&
            ptx_type_bits((enum ptx_mod)parts[i]) * o->nelem == total)
            return check_group(v, in, index, o, o->nelem, parts[i], dest);
    return wrong(v, in, index, "2 or 4 elements that make up the whole");
}

static bool check_mov(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                      const struct ptx_operand *o, bool dest)
{
    if (o->kind == PTX_O_VEC) {
        if (index == 1 && in->operand[0].kind == PTX_O_VEC)
            return diag_error(v->diags, v->span, "'%s' can't move a group to a group",
                              ptx_mnemonic(v, in));
        return check_pack(v, in, index, o, dest);
    }
    if (!dest && (o->kind == PTX_O_SYM || o->kind == PTX_O_FUNC)) {
        if (ptx_type_is_float((enum ptx_mod)in->type[0]) || in->type[0] == PTX_PRED)
            return diag_error(v->diags, v->span, "'%s' can't take an address", ptx_mnemonic(v, in));
        return true;
    }
    return check_value(v, in, index, o, in->type[0], dest);
}

/* cvta, mapa: a register, or a variable of that space. */
static bool check_addressable(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                              const struct ptx_operand *o)
{
    enum ptx_mod space = ptx_space((enum ptx_mod)in->mod[PTX_MC_SPACE]);
    if (o->kind != PTX_O_SYM)
        return check_value(v, in, index, o, in->type[0], false);
    if (space != PTX_NONE && o->var->space != space)
        return diag_error(v->diags, v->span, "'%s' is in .%s, not in .%s", o->var->name,
                          ptx_mod_text(o->var->space), ptx_mod_text(space));
    return true;
}

static bool check_tensor(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                         const struct ptx_operand *o)
{
    if (!check_address(v, in, index, o, PTX_NONE))
        return false;
    if (o->var && o->var->space != PTX_GLOBAL)
        return no_generic(v, in, o);
    if (o->bits)
        return wrong(v, in, index, "a tensor map's address without an offset");
    for (uint32_t i = 0; i < o->nelem; i++)
        if (!check_value(v, in, index, &o->elem[i], PTX_U32, false))
            return false;
    unsigned dims = in->mod[PTX_MC_SHAPE] - PTX_D1 + 1u;
    return o->nelem == dims || wrong(v, in, index, "[map, {coordinates}], one for each dimension");
}

static bool check_size(struct ptx_validator *v, const struct ptx_inst *in, size_t index,
                       const struct ptx_operand *o)
{
    const bool pred = o->kind == PTX_O_REG && o->reg >= 0 &&
                      v->func->regs.v[o->reg].type == PTX_PRED;
    if (pred && v->module->version < 75)
        return diag_error(
            v->diags, v->span,
            "a predicate as operand %zu of '%s' needs PTX 7.5 (the module says %u.%u)", index + 1,
            ptx_mnemonic(v, in), v->module->version / 10, v->module->version % 10);
    return check_value(v, in, index, o, pred ? PTX_PRED : PTX_U32, false);
}

static bool check_operand(struct ptx_validator *v, const struct ptx_inst *in,
                          const struct ptx_spec *s, size_t index)
{
    const struct ptx_operand *o = &in->operand[index];
    if (o->kind == PTX_O_SINK && s->sink && s->kind != 'q')
        return true;
    switch (s->kind) {
    case 'P':
    case 'q': return check_pair(v, in, s, index, o);
    case 'v': return check_vector(v, in, s, index, o);
    case 'x': return check_mov(v, in, index, o, s->dest);
    case 'm':
    case 'M':
    case 'B':
        if (o->nelem)
            return wrong(v, in, index, "an address without coordinates");
        return check_address(v, in, index, o,
                             s->kind == 'B'
                                 ? PTX_SHARED
                                 : space_of(in, s->kind == 'M' ? PTX_MC_SPACE2 : PTX_MC_SPACE));
    case 'g':
        return check_group(v, in, index, o, ptx_group_length(in),
                           in->type[0] == PTX_F32 ? PTX_F32 : PTX_B32, true);
    case 'A':
        if (o->kind == PTX_O_VEC)
            return check_group(v, in, index, o, 4, PTX_B32, false);
        return check_value(v, in, index, o, PTX_U64, false);
    case 'T': return check_tensor(v, in, index, o);
    case 'a': return check_addressable(v, in, index, o);
    case 'z': return check_size(v, in, index, o);
    case 's': return o->kind == PTX_O_SINK || wrong(v, in, index, "_");
    case 'i': return o->kind == PTX_O_IMM || wrong(v, in, index, "an integer constant");
    case 'l': return o->kind == PTX_O_LABEL || wrong(v, in, index, "a label");
    case 'f':
    case 'c': return true; /* calls are checked with the functions */
    default: break;
    }
    if (s->group)
        return check_group(v, in, index, o, s->group, s->type, s->dest);
    return check_value(v, in, index, o, spec_type(in, s), s->dest);
}

/* The specifications of its operands. */
static bool find_specs(struct ptx_validator *v, const struct ptx_inst *in, struct ptx_known *known)
{
    known->noperand = SIZE_MAX;
    if (!ptx_operand_specs(in, known->spec))
        return diag_error(v->diags, v->span, "'%s' does not take %u operands", ptx_mnemonic(v, in),
                          in->noperand);
    known->noperand = in->noperand;
    memset(known->taken, 0, sizeof known->taken);
    return true;
}

bool ptx_check_operands(struct ptx_validator *v, const struct ptx_inst *in)
{
    struct ptx_known *const known = &v->known[ptx_seen_at(in)];
    if (known->noperand != in->noperand && !find_specs(v, in, known))
        return false;
    for (size_t i = 0; i < in->noperand; i++) {
        const struct ptx_operand *o = &in->operand[i];
        const bool is_plain = o->kind == PTX_O_REG && !o->neg && o->reg >= 0 && o->reg2 < 0;
        const enum ptx_mod type = is_plain ? v->func->regs.v[o->reg].type : PTX_NONE;
        if (is_plain && type == known->taken[i])
            continue;
        if (!check_operand(v, in, known->spec[i], i))
            return false;
        known->taken[i] = is_plain ? (uint16_t)type : known->taken[i];
    }
    return true;
}
