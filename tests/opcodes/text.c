/* The kernels of forms whose operands are values. */
#include <config.h>

#include "opcodes.h"

#include <string.h>

#include "ptx/table.h"

unsigned opc_reg_bits(enum ptx_mod type)
{
    const unsigned bits = ptx_type_bits(type);
    return type == PTX_PRED ? 0 : bits < 16 ? 16 : bits;
}

const char *opc_source(struct opc_writer *w, enum opc_role role, enum ptx_mod type, unsigned bits)
{
    const unsigned k = w->form->nsrc++;
    w->form->src[k] = (struct opc_source){role, type};
    if (!bits) {
        buf_printf(&w->decl, "    .reg .pred %%s%u;\n    .reg .b32 %%u%u;\n", k, k);
        buf_printf(&w->load,
                   "    ld.global.b32 %%u%u, [%%i+%u];\n    setp.ne.u32 %%s%u, %%u%u, 0;\n", k,
                   8 * k, k, k);
    } else {
        buf_printf(&w->decl, "    .reg .b%u %%s%u;\n", bits, k);
        buf_printf(&w->load, "    ld.global.b%u %%s%u, [%%i+%u];\n", bits, k, 8 * k);
    }
    return arena_printf(w->arena, "%%s%u", k);
}

const char *opc_result(struct opc_writer *w, unsigned bits)
{
    const unsigned k = w->form->nres++;
    if (!bits) {
        buf_printf(&w->decl, "    .reg .pred %%d%u;\n    .reg .b32 %%v%u;\n", k, k);
        buf_printf(&w->store,
                   "    selp.u32 %%v%u, 1, 0, %%d%u;\n    st.global.b32 [%%o+%u], %%v%u;\n", k, k,
                   8 * k, k);
    } else {
        buf_printf(&w->decl, "    .reg .b%u %%d%u;\n", bits, k);
        buf_printf(&w->store, "    st.global.b%u [%%o+%u], %%d%u;\n", bits, 8 * k, k);
    }
    return arena_printf(w->arena, "%%d%u", k);
}

/* What the k-th operand of kind b is. */
static enum opc_role role_of(const struct ptx_inst *in, unsigned operand)
{
    switch (in->op) {
    case PTX_OP_SHL:
    case PTX_OP_SHR:
    case PTX_OP_SHF:
    case PTX_OP_BFE:
    case PTX_OP_SZEXT:
    case PTX_OP_BMSK: return OPC_SHIFT;
    case PTX_OP_BFI: return operand > 2 ? OPC_SHIFT : OPC_VALUE;
    case PTX_OP_FNS: return operand == 2 ? OPC_FROM : operand == 3 ? OPC_STEP : OPC_VALUE;
    case PTX_OP_SHFL: return operand == 2 ? OPC_LANE : OPC_SEGMENT;
    default: return OPC_VALUE;
    }
}

bool opc_takes_members(enum ptx_op op)
{
    return op == PTX_OP_SHFL || op == PTX_OP_VOTE || op == PTX_OP_VOTE_BALLOT ||
           op == PTX_OP_MATCH_ANY || op == PTX_OP_MATCH_ALL || op == PTX_OP_REDUX_INT ||
           op == PTX_OP_REDUX_BITS || op == PTX_OP_ELECT;
}

static enum ptx_mod twice(enum ptx_mod t)
{
    switch (t) {
    case PTX_U16: return PTX_U32;
    case PTX_S16: return PTX_S32;
    case PTX_U32: return PTX_U64;
    default: return PTX_S64;
    }
}

static enum ptx_mod type_of(const struct ptx_inst *in, const struct ptx_spec *s)
{
    switch (s->kind) {
    case 'u': return (enum ptx_mod)in->type[1];
    case 'w': return twice((enum ptx_mod)in->type[0]);
    case 'b':
    case 'q': return PTX_B32;
    case 'p':
    case 'P':
    case 'y': return PTX_PRED;
    case '=': return (enum ptx_mod)s->type;
    default: return (enum ptx_mod)in->type[0];
    }
}

static bool is_few(enum ptx_op op)
{
    return op == PTX_OP_MATCH_ANY || op == PTX_OP_MATCH_ALL;
}

/* The destination; a pair of registers where there may be one, a wider one where asked for. */
static const char *destination(struct opc_writer *w, const struct ptx_spec *s, bool pair,
                               unsigned wide)
{
    const struct ptx_inst *in = &w->form->inst;
    const char *d = opc_result(w, wide ? wide : opc_reg_bits(type_of(in, s)));
    return pair ? arena_printf(w->arena, "%s|%s", d, opc_result(w, 0)) : d;
}

/* One statement; again: with the operands of the statement before. */
static void statement(struct opc_writer *w, const char *mnemonic, bool pair, unsigned wide,
                      unsigned imm, bool again)
{
    const struct ptx_inst *in = &w->form->inst;
    const struct ptx_row *row = ptx_row(in->op);
    unsigned src = 0;
    buf_printf(&w->body, "    %s", mnemonic);
    for (unsigned i = 0; i < row->nspec; i++) {
        const struct ptx_spec *s = &row->spec[i];
        const char *o;
        if (!ptx_spec_applies(in, s))
            continue;
        if (s->dest)
            o = destination(w, s, pair, wide);
        else if (s->kind == 'i')
            o = arena_printf(w->arena, "%u", imm);
        else if (opc_takes_members(in->op) && i == row->nspec - 1u)
            o = "-1";
        else if (again)
            o = arena_printf(w->arena, "%%s%u", src++);
        else {
            const enum ptx_mod t = type_of(in, s);
            const enum opc_role r = is_few(in->op)                               ? OPC_FEW
                                    : s->kind == 'b'                             ? role_of(in, i)
                                    : t == PTX_PRED && opc_takes_members(in->op) ? OPC_VOTE
                                    : t == PTX_PRED                              ? OPC_PRED
                                                                                 : OPC_VALUE;
            o = opc_source(w, r, t, opc_reg_bits(t));
        }
        buf_printf(&w->body, "%s%s", i ? ", " : " ", o);
    }
    buf_puts(&w->body, ";\n");
}

/* ---- special shapes -------------------------------------------------------------------------- */

/* All 256 tables, sixteen to a kernel. */
static bool lop3(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const bool pair = w->form->inst.op == PTX_OP_LOP3_BOOL;
    if (variant == 16)
        return false;
    w->form->name = arena_printf(w->arena, "%s@%x0", mnemonic, variant);
    for (unsigned k = 0; k < 16; k++)
        statement(w, mnemonic, pair, 0, variant * 16 + k, k > 0);
    return true;
}

static const char *carry_out(enum ptx_op op)
{
    return op == PTX_OP_SUB_CC || op == PTX_OP_SUBC ? "subc.u32" : "addc.u32";
}

/* With the carry in from a further word, and the carry out as a further result. */
static bool with_carry(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const struct ptx_inst *in = &w->form->inst;
    const bool takes = in->op == PTX_OP_ADDC || in->op == PTX_OP_SUBC || in->op == PTX_OP_MADC;
    if (variant)
        return false;
    if (takes) {
        const char *c = opc_source(w, OPC_PRED, PTX_U32, 32);
        buf_printf(&w->body,
                   in->op == PTX_OP_SUBC ? "    sub.cc.u32 %%t, 0, %s;\n"
                                         : "    add.cc.u32 %%t, %s, -1;\n",
                   c);
    }
    statement(w, mnemonic, false, 0, 0, false);
    if (in->mod[PTX_MC_CC])
        buf_printf(&w->body, "    %s %s, 0, 0;\n", carry_out(in->op), opc_result(w, 32));
    return true;
}

/* Groups that a mov packs or unpacks. */
static bool move(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const enum ptx_mod t = (enum ptx_mod)w->form->inst.type[0];
    const unsigned bits = ptx_type_bits(t);
    if (variant == 0 && t == PTX_B128) {
        const char *lo = opc_source(w, OPC_VALUE, PTX_B64, 64);
        buf_puts(&w->decl, "    .reg .b128 %q, %r;\n");
        buf_printf(&w->body, "    mov.b128 %%q, {%s, %s};\n    mov.b128 %%r, %%q;\n", lo,
                   opc_source(w, OPC_VALUE, PTX_B64, 64));
        lo = opc_result(w, 64);
        buf_printf(&w->body, "    mov.b128 {%s, %s}, %%r;\n", lo, opc_result(w, 64));
        return true;
    }
    if (variant == 0) {
        statement(w, mnemonic, false, 0, 0, false);
        return true;
    }
    const unsigned parts = variant <= 2 ? 2 : 4, part = bits / parts;
    if (variant > 4 || ptx_type_is_float(t) || ptx_type_is_signed(t) || t == PTX_PRED ||
        (t != PTX_B16 && t != PTX_B32 && t != PTX_B64 && t != PTX_B128))
        return false;
    struct buf group = buf_in(w->arena);
    const bool pack = variant == 1 || variant == 3, b128 = t == PTX_B128;
    w->form->name = arena_printf(w->arena, "%s@%s%u", mnemonic, pack ? "pack" : "unpack", parts);
    for (unsigned i = 0; i < parts; i++)
        buf_printf(&group, "%s%s", i ? ", " : "{",
                   pack ? opc_source(w, OPC_VALUE, PTX_B64, part) : opc_result(w, part));
    buf_puts(&group, "}");
    if (!b128) {
        const char *whole = pack ? opc_result(w, bits) : opc_source(w, OPC_VALUE, t, bits);
        const char *parts_text = buf_text(&group);
        buf_printf(&w->body, "    %s %s, %s;\n", mnemonic, pack ? whole : parts_text,
                   pack ? parts_text : whole);
        return true;
    }
    buf_puts(&w->decl, "    .reg .b128 %q;\n");
    for (unsigned i = 0; i < 2; i++)
        if (pack)
            opc_result(w, 64);
        else
            opc_source(w, OPC_VALUE, PTX_B64, 64);
    buf_printf(&w->body, "    mov.b128 %%q, %s;\n    mov.b128 %s, %%q;\n",
               pack ? buf_text(&group) : "{%s0, %s1}", pack ? "{%d0, %d1}" : buf_text(&group));
    return true;
}

/* ---- all the others -------------------------------------------------------------------------- */

static bool rounds_near_zero(const struct ptx_inst *in)
{
    return in->mod[PTX_MC_FTZ] &&
           (in->op == PTX_OP_MUL_F32 || in->op == PTX_OP_MUL_F16 || in->op == PTX_OP_FMA_F32 ||
            in->op == PTX_OP_FMA_F16 || in->op == PTX_OP_FMA_F16_RELU || in->op == PTX_OP_DIV_F32 ||
            in->op == PTX_OP_CVT_F32_F64);
}

/* As it stands; with a pair of predicates; with wider registers (cvt). */
static bool plain(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    const struct ptx_inst *in = &w->form->inst;
    const struct ptx_spec *d = &ptx_row(in->op)->spec[0];
    const bool may_pair = d->kind == 'P' || d->kind == 'q';
    const bool must_pair = in->op == PTX_OP_MATCH_ALL || in->op == PTX_OP_SHFL;
    if (in->op == PTX_OP_CVT_INT || in->op == PTX_OP_CVT_FLOAT_TO_INT) {
        const unsigned own = opc_reg_bits((enum ptx_mod)in->type[0]);
        if (own << variant > 64)
            return false;
        if (variant)
            w->form->name = arena_printf(w->arena, "%s@%u", mnemonic, own << variant);
        statement(w, mnemonic, false, own << variant, 0, false);
        return true;
    }
    if (variant == 1 && (rounds_near_zero(in) || in->op == PTX_OP_FMA_OOB)) {
        w->form->name =
            arena_printf(w->arena, "%s@%s", mnemonic, in->op == PTX_OP_FMA_OOB ? "nan" : "tiny");
        w->form->chosen = true;
        statement(w, mnemonic, false, 0, 0, false);
        return true;
    }
    if (variant > (may_pair && !must_pair))
        return false;
    if (variant)
        w->form->name = arena_printf(w->arena, "%s@pair", mnemonic);
    statement(w, mnemonic, variant || must_pair, 0, 0, false);
    return true;
}

void opc_prologue(struct opc_writer *w)
{
    buf_printf(&w->decl,
               "    .reg .b32 %%t, %%x, %%y;\n    .reg .b64 %%i, %%o, %%m;\n"
               "    ld.param.u64 %%i, [in];\n    ld.param.u64 %%o, [out];\n"
               "    mov.u32 %%x, %%ctaid.x;\n    mov.u32 %%y, %%tid.x;\n"
               "    mad.lo.u32 %%x, %%x, %d, %%y;\n    mad.wide.u32 %%i, %%x, %u, %%i;\n"
               "    mad.wide.u32 %%o, %%x, %u, %%o;\n",
               OPC_BLOCK, 8 * opc_stride(w->form->nsrc), 8 * opc_stride(w->form->nres));
}

bool opc_write(struct opc_writer *w, const char *mnemonic, unsigned variant)
{
    bool more;
    switch (w->form->inst.op) {
    case PTX_OP_LOP3:
    case PTX_OP_LOP3_BOOL: more = lop3(w, mnemonic, variant); break;
    case PTX_OP_ADD_CC:
    case PTX_OP_ADDC:
    case PTX_OP_SUB_CC:
    case PTX_OP_SUBC:
    case PTX_OP_MAD_CC:
    case PTX_OP_MADC: more = with_carry(w, mnemonic, variant); break;
    case PTX_OP_MOV: more = move(w, mnemonic, variant); break;
    default: more = plain(w, mnemonic, variant);
    }
    opc_prologue(w);
    return more;
}
