/* Loads, stores, addresses. */
#include <config.h>

#include "sim/atom.h"
#include "sim/decode.h"
#include "sim/flight.h"

bool dec_space(struct dec *dc, enum ptx_mod mod, enum sim_space *space)
{
    switch (ptx_space(mod)) {
    case PTX_NONE: *space = SIM_IN_GENERIC; return true;
    case PTX_GLOBAL:
    case PTX_CONST:
    case PTX_PARAM: *space = SIM_IN_GLOBAL; return true;
    case PTX_SHARED: *space = SIM_IN_SHARED; return true;
    case PTX_LOCAL: *space = SIM_IN_LOCAL; return true;
    default: return dec_unsupported(dc);
    }
}

/* Adds a state space's window in the generic space. */
static uint64_t generic_base(enum ptx_mod space)
{
    return space == PTX_SHARED ? SIM_SHARED_BASE : space == PTX_LOCAL ? SIM_LOCAL_BASE : 0;
}

/* An address of a parameter from its lower 32 bits, in a slot of 32: that is all that Triton keeps
 * of it. */
static uint32_t param_address(struct dec *dc, uint32_t low)
{
    const uint32_t wide = dec_temp(dc, DEC_64), all = dec_temp(dc, DEC_64);
    const uint64_t upper = dc->in->param_base & ~(uint64_t)UINT32_MAX;
    dec_emit3(dc, SIM_H_U64_U32, wide, low, 0, 0);
    dec_emit3(dc, SIM_H_OR_64, all, wide, dec_const(dc, upper, true), 0);
    return all;
}

bool dec_memory(struct dec *dc, const struct ptx_operand *m, enum sim_space space, uint32_t *slot,
                uint64_t *offset, bool *narrow)
{
    uint64_t at;
    *narrow = false;
    *offset = m->bits;
    if (m->kind != PTX_O_MEM)
        return dec_error(dc, "'%s' needs an address in [ ]", dec_mnemonic(dc));
    if (m->reg >= 0) {
        const struct ptx_operand r = {.kind = PTX_O_REG, .reg = m->reg, .reg2 = -1};
        *narrow = dc->reg_class[m->reg] == DEC_32;
        if (*narrow && ptx_space(dc->inst->mod[PTX_MC_SPACE]) == PTX_PARAM) {
            *slot = param_address(dc, dec_src(dc, &r, SIM_T_u32));
            *narrow = false;
            return !dc->failed;
        }
        if (*narrow && space != SIM_IN_SHARED && space != SIM_IN_LOCAL)
            return dec_error(dc, "an address in this state space has 64 bits, '%s' has 32",
                             dc->in->func->regs.v[m->reg].name);
        *slot = dec_src(dc, &r, *narrow ? SIM_T_u32 : SIM_T_u64);
        return !dc->failed;
    }
    if (!m->var) {
        *slot = dec_const(dc, m->bits, true);
        *offset = 0;
        return true;
    }
    if (!dec_address(dc, m->var, &at))
        return false;
    if (space == SIM_IN_GENERIC)
        at += generic_base(ptx_space(m->var->space));
    *slot = dec_const(dc, at, true);
    return true;
}

uint32_t dec_flat(struct dec *dc, const struct ptx_operand *m, enum sim_space space)
{
    uint32_t slot = 0;
    uint64_t offset;
    bool narrow;
    if (!dec_memory(dc, m, space, &slot, &offset, &narrow))
        return 0;
    if (narrow && offset) {
        const uint32_t sum = dec_temp(dc, DEC_32);
        dec_emit3(dc, SIM_H_ADD_32, sum, slot, dec_const(dc, offset, false), 0);
        slot = sum;
    }
    if (narrow || offset) {
        const uint32_t all = dec_temp(dc, DEC_64);
        if (narrow)
            dec_emit3(dc, SIM_H_U64_U32, all, slot, 0, 0);
        else
            dec_emit3(dc, SIM_H_ADD_64, all, slot, dec_const(dc, offset, true), 0);
        slot = all;
    }
    return slot;
}

struct access {
    enum sim_space space;
    uint32_t slot;
    uint64_t offset;
    bool narrow;
    uint32_t elems, bytes; /* of one element; of 128 bits two, the halves */
    enum ptx_mod type;
};

static bool access_of(struct dec *dc, const struct ptx_operand *m, struct access *x)
{
    const struct ptx_inst *in = dc->inst;
    x->type = in->type[0];
    x->bytes = dec_type_bytes(x->type);
    x->elems = in->mod[PTX_MC_VECTOR] == PTX_V2   ? 2
               : in->mod[PTX_MC_VECTOR] == PTX_V4 ? 4
               : in->mod[PTX_MC_VECTOR]           ? 8
                                                  : 1;
    if (x->type == PTX_B128 && x->elems == 1) {
        x->bytes = 8;
        x->elems = 2;
    }
    if (!x->bytes)
        return dec_unsupported(dc);
    return dec_space(dc, in->mod[PTX_MC_SPACE], &x->space) &&
           dec_memory(dc, m, x->space, &x->slot, &x->offset, &x->narrow);
}

static void fill(struct dec *dc, struct sim_op *op, const struct access *x)
{
    op->a = x->slot;
    op->imm = x->offset;
    op->size = (uint8_t)(x->elems * x->bytes);
    op->more = (uint8_t)x->space;
    op->cache = dc->code->ncache++;
    op->flags = x->narrow ? SIM_A32 : 0;
}

/* The elements of a vector operand, or the operand itself. */
static const struct ptx_operand *element(const struct ptx_operand *o, uint32_t i)
{
    return o->kind == PTX_O_VEC ? (i < o->nelem ? &o->elem[i] : NULL) : i == 0 ? o : NULL;
}

/* The register class that holds an element: at least as wide as the type, wider is allowed. */
static enum dec_class element_class(struct dec *dc, const struct ptx_operand *o, uint32_t bytes)
{
    const enum dec_class least = bytes == 8 ? DEC_64 : bytes == 4 ? DEC_32 : DEC_16;
    const enum dec_class have = dec_operand_class(dc, o, least);
    if (have == DEC_PRED || have == DEC_NONE || have < least)
        dec_error(dc, "the register is too narrow for '%s'", dec_mnemonic(dc));
    return have;
}

static enum sim_type type_of_class(enum dec_class c)
{
    return c == DEC_64 ? SIM_T_u64 : c == DEC_32 ? SIM_T_u32 : SIM_T_u16;
}

static enum sim_handler_id load_handler(uint32_t bytes, bool is_signed, enum dec_class c)
{
    const bool wide = c == DEC_64;
    switch (bytes) {
    case 1:
        if (!is_signed)
            return wide ? SIM_H_LD_U8_W : SIM_H_LD_U8;
        return wide ? SIM_H_LD_S8_W : c == DEC_32 ? SIM_H_LD_S8 : SIM_H_LD_S8_H;
    case 2:
        if (!is_signed || c == DEC_16)
            return wide ? SIM_H_LD_U16_W : SIM_H_LD_U16;
        return wide ? SIM_H_LD_S16_W : SIM_H_LD_S16;
    case 4: return !wide ? SIM_H_LD_32 : is_signed ? SIM_H_LD_S32_W : SIM_H_LD_U32_W;
    default: return SIM_H_LD_64;
    }
}

/* Does a load into a wider register extend the sign? */
static bool extends_sign(enum ptx_mod type)
{
    return ptx_type_is_signed(type) && !ptx_type_is_float(type);
}

static enum sim_handler_id store_handler(uint32_t bytes, bool wide)
{
    switch (bytes) {
    case 1: return wide ? SIM_H_ST_8_W : SIM_H_ST_8;
    case 2: return wide ? SIM_H_ST_16_W : SIM_H_ST_16;
    case 4: return wide ? SIM_H_ST_32_W : SIM_H_ST_32;
    default: return SIM_H_ST_64;
    }
}

/* A load from the argument block at a place known now is a constant. */
static bool load_param(struct dec *dc, const struct access *x)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *m = &in->operand[1];
    uint64_t at;
    if (x->type == PTX_B128 || !m->var || ptx_space(m->var->space) != PTX_PARAM || m->reg >= 0 ||
        !dec_address(dc, m->var, &at))
        return false;
    const uint64_t start = at - dc->in->param_base + m->bits, bytes = x->bytes * x->elems;
    if (start > dc->in->param_bytes || bytes > dc->in->param_bytes - start || start % bytes)
        return false;
    for (uint32_t i = 0; i < x->elems; i++) {
        const struct ptx_operand *d = element(&in->operand[0], i);
        if (!d)
            return false;
        const enum dec_class c = element_class(dc, d, x->bytes);
        uint64_t v = 0;
        memcpy(&v, dc->in->params + start + i * x->bytes, x->bytes);
        if (extends_sign(x->type) && x->bytes < 8)
            v = (uint64_t)((int64_t)(v << (64 - 8 * x->bytes)) >> (64 - 8 * x->bytes));
        if (c == DEC_16)
            v = (uint16_t)v;
        const uint32_t from = dec_const(dc, v, c == DEC_64);
        dec_emit3(dc, c == DEC_64 ? SIM_H_MOV_64 : SIM_H_MOV_32, dec_dst(dc, d, type_of_class(c)),
                  from, 0, 0);
    }
    return true;
}

/* The slots of a vector's elements, from the first on, and their class. */
static bool vector_slots(struct dec *dc, const struct ptx_operand *v, const struct access *x,
                         bool store, uint32_t first, uint32_t slot[4], enum dec_class *class)
{
    enum dec_class c = DEC_NONE;
    if (x->type == PTX_B128) {
        *class = DEC_64;
        return dec_halves(dc, v, !store, slot);
    }
    for (uint32_t i = 0; i < x->elems; i++) {
        const struct ptx_operand *o = element(v, i);
        if (!o || (v->kind == PTX_O_VEC && v->nelem != x->elems))
            return dec_error(dc, "'%s' needs %u registers in { }", dec_mnemonic(dc), x->elems);
        if (o->kind != PTX_O_SINK && !dec_is_imm(o)) {
            const enum dec_class have = element_class(dc, o, x->bytes);
            if (c != DEC_NONE && have != c)
                return dec_error(dc, "the registers in { } must be of one width");
            c = have;
        }
    }
    if (c == DEC_NONE)
        c = x->bytes == 8 ? DEC_64 : x->bytes == 4 ? DEC_32 : DEC_16;
    enum sim_type t = type_of_class(c);
    if (x->type == PTX_F32)
        t = SIM_T_f32;
    if (x->type == PTX_F64)
        t = SIM_T_f64;
    for (uint32_t i = first; i < x->elems && i < first + 4; i++)
        slot[i - first] = store ? dec_src(dc, element(v, i), t) : dec_dst(dc, element(v, i), t);
    *class = c;
    return !dc->failed;
}

/* Four elements at a time. */
static bool vector(struct dec *dc, const struct ptx_operand *v, const struct access *x, bool store)
{
    if (x->elems > 4)
        dec_keep_guard(dc);
    for (uint32_t first = 0; first < x->elems; first += 4) {
        uint32_t slot[4] = {0};
        enum dec_class c = DEC_NONE;
        struct access some = *x;
        some.elems = x->elems > 4 ? 4 : x->elems;
        some.offset += (uint64_t)first * x->bytes;
        if (!vector_slots(dc, v, x, store, first, slot, &c))
            return false;
        struct sim_op *op =
            dec_emit3(dc, store ? SIM_H_ST_VEC : SIM_H_LD_VEC, slot[0], 0, slot[1], slot[2]);
        op->e = slot[3];
        fill(dc, op, &some);
        op->elems = some.elems;
        const bool extends = extends_sign(x->type) && x->bytes < (c == DEC_16 ? 2 : 8);
        op->round =
            (uint8_t)((c == DEC_64 ? SIM_V_WIDE : 0) | (!extends      ? 0
                                                        : c == DEC_16 ? SIM_V_SIGNED | SIM_V_HALF
                                                                      : SIM_V_SIGNED));
        if (store)
            op->flags |= SIM_STORES;
    }
    return !dc->failed;
}

bool dec_ld(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    struct access x;
    if (!access_of(dc, &in->operand[1], &x))
        return false;
    if (load_param(dc, &x))
        return !dc->failed;
    if (in->mod[PTX_MC_ORDER] && in->mod[PTX_MC_ORDER] != PTX_WEAK &&
        (x.space == SIM_IN_GLOBAL || x.space == SIM_IN_GENERIC))
        dc->code->ordered = true;
    if (x.elems * x.bytes > 16)
        return dec_unsupported(dc);
    if (x.elems > 1)
        return vector(dc, &in->operand[0], &x, false);
    const struct ptx_operand *d = element(&in->operand[0], 0);
    if (!d)
        return dec_unsupported(dc);
    const enum dec_class c = element_class(dc, d, x.bytes);
    if (dc->failed)
        return false;
    const bool is_signed = extends_sign(x.type);
    const uint32_t to = dec_dst(dc, d, type_of_class(c));
    struct sim_op *op = dec_emit(dc, load_handler(x.bytes, is_signed, c));
    op->d = to;
    fill(dc, op, &x);
    return !dc->failed;
}

bool dec_st(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    struct access x;
    if (!access_of(dc, &in->operand[0], &x))
        return false;
    if (x.elems * x.bytes > 16)
        return dec_unsupported(dc);
    if (x.elems > 1)
        return vector(dc, &in->operand[1], &x, true);
    const struct ptx_operand *s = element(&in->operand[1], 0);
    if (!s)
        return dec_unsupported(dc);
    const enum dec_class c = element_class(dc, s, x.bytes);
    enum sim_type t = type_of_class(c);
    if (x.type == PTX_F32)
        t = SIM_T_f32;
    if (x.type == PTX_F64)
        t = SIM_T_f64;
    const uint32_t from = dec_src(dc, s, t);
    struct sim_op *op = dec_emit(dc, store_handler(x.bytes, c == DEC_64));
    op->d = from;
    fill(dc, op, &x);
    op->flags |= SIM_STORES;
    return !dc->failed;
}

/* Generic addresses of global, constant and parameter memory are their own; the others have a
 * window. */
static bool cvta(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const enum ptx_mod space = ptx_space(in->mod[PTX_MC_SPACE]);
    const bool to = in->op == PTX_OP_CVTA_TO;
    if (dec_type_bytes(in->type[0]) != 8)
        return dec_unsupported(dc);
    const uint64_t base = generic_base(space);
    const uint32_t from = dec_src(dc, &in->operand[1], SIM_T_u64);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_u64);
    if (space == PTX_PARAM && !to) {
        const uint32_t low = dec_temp(dc, DEC_32);
        dec_emit3(dc, SIM_H_U32_U64, low, from, 0, 0);
        dec_emit3(dc, SIM_H_MOV_64, d, param_address(dc, low), 0, 0);
    } else if (base)
        dec_emit3(dc, to ? SIM_H_SUB_64 : SIM_H_ADD_64, d, from, dec_const(dc, base, true), 0);
    else
        dec_emit3(dc, SIM_H_MOV_64, d, from, 0, 0);
    return !dc->failed;
}

static bool isspacep(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const enum ptx_mod space = ptx_space(in->mod[PTX_MC_SPACE]);
    const uint32_t from = dec_src(dc, &in->operand[1], SIM_T_u64);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_p);
    const uint32_t window = dec_temp(dc, DEC_64);
    if (space != PTX_GLOBAL && space != PTX_SHARED && space != PTX_LOCAL)
        return dec_unsupported(dc);
    dec_emit3(dc, SIM_H_SHR_U64, window, from, dec_const(dc, SIM_WINDOW_BITS, false), 0);
    const uint64_t wanted = space == PTX_SHARED  ? SIM_WINDOW_SHARED
                            : space == PTX_LOCAL ? SIM_WINDOW_LOCAL
                                                 : SIM_WINDOW_FIRST;
    dec_emit3(dc, space == PTX_GLOBAL ? SIM_H_GE_U64 : SIM_H_EQ_64, d, window,
              dec_const(dc, wanted, true), 0);
    return !dc->failed;
}

static bool getctarank(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const bool wide = dec_type_bytes(in->type[0]) == 8;
    const uint32_t from = dec_src(dc, &in->operand[1], wide ? SIM_T_u64 : SIM_T_u32);
    const uint32_t own = dec_special(dc, PTX_SR_CLUSTER_CTARANK, SIM_T_u32);
    const uint32_t d = dec_dst(dc, &in->operand[0], SIM_T_u32);
    dec_emit3(dc, wide ? SIM_H_CTARANK_64 : SIM_H_CTARANK_32, d, from, own, 0);
    return !dc->failed;
}

bool dec_space_of(struct dec *dc)
{
    switch (dc->inst->op) {
    case PTX_OP_CVTA:
    case PTX_OP_CVTA_TO: return cvta(dc);
    case PTX_OP_ISSPACEP: return isspacep(dc);
    case PTX_OP_GETCTARANK: return getctarank(dc);
    default: return dec_generic(dc); /* mapa */
    }
}

/* ---- atomics --------------------------------------------------------------------------------- */

static enum sim_atom half_code(enum ptx_mod op, bool bf)
{
    return op == PTX_ADD   ? bf ? SIM_ATOM_ADD_BF16 : SIM_ATOM_ADD_F16
           : op == PTX_MIN ? bf ? SIM_ATOM_MIN_BF16 : SIM_ATOM_MIN_F16
           : bf            ? SIM_ATOM_MAX_BF16
                           : SIM_ATOM_MAX_F16;
}

static bool atom_code(const struct ptx_inst *in, enum sim_atom *code)
{
    const enum ptx_mod t = in->type[0], op = in->mod[PTX_MC_OP];
    const bool is_signed = ptx_type_is_signed(t);
    if (t == PTX_F16 || t == PTX_F16X2 || t == PTX_BF16 || t == PTX_BF16X2) {
        *code = half_code(op, t == PTX_BF16 || t == PTX_BF16X2);
        return op == PTX_ADD || op == PTX_MIN || op == PTX_MAX;
    }
    switch (op) {
    case PTX_ADD: *code = t == PTX_F32 || t == PTX_F64 ? SIM_ATOM_ADD_F : SIM_ATOM_ADD; return true;
    case PTX_MIN: *code = is_signed ? SIM_ATOM_MIN_S : SIM_ATOM_MIN_U; return true;
    case PTX_MAX: *code = is_signed ? SIM_ATOM_MAX_S : SIM_ATOM_MAX_U; return true;
    case PTX_AND: *code = SIM_ATOM_AND; return true;
    case PTX_OR: *code = SIM_ATOM_OR; return true;
    case PTX_XOR: *code = SIM_ATOM_XOR; return true;
    case PTX_EXCH: *code = SIM_ATOM_EXCH; return true;
    case PTX_CAS: *code = SIM_ATOM_CAS; return true;
    case PTX_INC: *code = SIM_ATOM_INC; return true;
    case PTX_DEC: *code = SIM_ATOM_DEC; return true;
    default: return false;
    }
}

/* Does the order in which blocks come show in the result? Adding integers and the like commute. */
static bool order_shows(enum sim_atom code, bool reads)
{
    return reads || code == SIM_ATOM_EXCH || code == SIM_ATOM_CAS || code == SIM_ATOM_INC ||
           code == SIM_ATOM_DEC || code >= SIM_ATOM_ADD_F; /* floats */
}
_Static_assert(SIM_ATOM_ADD_F > SIM_ATOM_CAS && SIM_ATOM_ADD_F > SIM_ATOM_DEC,
               "those of floats are the last");

uint8_t dec_fold(struct dec *dc, enum ptx_mod op, enum ptx_mod t, bool shared)
{
    struct ptx_words words = {.type[0] = (uint16_t)t};
    const struct ptx_inst in = {.mod = words.mod, .type = words.type};
    enum sim_atom code;
    words.mod[PTX_MC_OP] = (uint16_t)op;
    if (!atom_code(&in, &code)) {
        dec_unsupported(dc);
        return SIM_NO_FOLD;
    }
    if (!shared && order_shows(code, false))
        dc->code->ordered = true;
    return (uint8_t)code;
}

static enum sim_type atom_type(enum ptx_mod t, uint32_t bytes)
{
    return t == PTX_F32   ? SIM_T_f32
           : t == PTX_F64 ? SIM_T_f64
           : bytes == 8   ? SIM_T_u64
           : bytes == 4   ? SIM_T_u32
                          : SIM_T_u16;
}

/* One element, k of the operands' vectors; a vector is atomic element by element (PTX ISA,
 * atom). */
static bool atom_element(struct dec *dc, const struct access *x, enum sim_atom code, bool reads,
                         uint32_t k)
{
    const struct ptx_inst *in = dc->inst;
    const struct ptx_operand *d = reads ? element(&in->operand[0], k) : NULL;
    const struct ptx_operand *s = element(&in->operand[reads + 1], k);
    const enum sim_type t = atom_type(x->type, x->bytes);
    if (!s || (reads && !d && in->operand[0].kind != PTX_O_SINK))
        return dec_error(dc, "'%s' needs %u registers in { }", dec_mnemonic(dc), x->elems);
    const uint32_t b = dec_src(dc, s, t);
    const uint32_t c = code == SIM_ATOM_CAS ? dec_src(dc, &in->operand[reads + 2], t) : b;
    const bool wanted = d && d->kind != PTX_O_SINK;
    const uint32_t to = wanted ? dec_dst(dc, d, t) : 0;
    struct sim_op *op = dec_emit3(dc,
                                  x->bytes == 8   ? SIM_H_ATOM_64
                                  : x->bytes == 4 ? SIM_H_ATOM_32
                                                  : SIM_H_ATOM_16,
                                  to, 0, b, c);
    struct access one = *x;
    one.elems = 1;
    one.offset += (uint64_t)k * x->bytes;
    fill(dc, op, &one);
    op->round = (uint8_t)code;
    op->flags |= (uint8_t)(SIM_STORES | (wanted ? SIM_READS : 0));
    if (x->space != SIM_IN_SHARED && order_shows(code, wanted))
        dc->code->ordered = true;
    return !dc->failed;
}

/* Of 128 bits: exch and cas. */
static bool atom_128(struct dec *dc, const struct access *x, enum sim_atom code)
{
    const struct ptx_inst *in = dc->inst;
    const bool wanted = in->operand[0].kind != PTX_O_SINK;
    uint32_t b[2], c[2], d[2];
    if (!dec_halves(dc, &in->operand[2], false, b) ||
        !dec_halves(dc, &in->operand[code == SIM_ATOM_CAS ? 3 : 2], false, c) ||
        !dec_halves(dc, &in->operand[0], true, d))
        return false;
    struct sim_op *op = dec_emit3(dc, SIM_H_ATOM_128, d[0], 0, b[0], c[0]);
    fill(dc, op, x);
    op->round = (uint8_t)code;
    op->flags |= (uint8_t)(SIM_STORES | (wanted ? SIM_READS : 0));
    if (x->space != SIM_IN_SHARED)
        dc->code->ordered = true;
    return !dc->failed;
}

/* atom[...].op.type d, [a], b[, c] and red without d. */
bool dec_atom(struct dec *dc)
{
    const struct ptx_inst *in = dc->inst;
    const bool reads = ptx_op_family(in->op) == PTX_FAMILY_ATOM;
    struct access x;
    enum sim_atom code;
    if (!atom_code(in, &code) || !access_of(dc, &in->operand[reads], &x))
        return dec_unsupported(dc);
    if (x.type == PTX_B128)
        return atom_128(dc, &x, code);
    if (x.elems > 1)
        dec_keep_guard(dc);
    for (uint32_t k = 0; k < x.elems; k++)
        if (!atom_element(dc, &x, code, reads, k))
            return false;
    return true;
}
