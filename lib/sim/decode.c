#include <config.h>

#include <inttypes.h>
#include <stdarg.h>

#include "sim/block.h"
#include "sim/decode.h"
#include "sim/wgmma.h"

/* ---- reports --------------------------------------------------------------------------------- */

const char *dec_mnemonic(struct dec *dc)
{
    struct buf b = buf_in(dc->in->arena);
    ptx_print_inst(dc->in->func, dc->inst, &b);
    const char *s = buf_text(&b);
    if (*s == '@')
        s += strcspn(s, " ") + 1;
    return arena_strndup(dc->in->arena, s, strcspn(s, " \t;"));
}

bool dec_error(struct dec *dc, const char *fmt, ...)
{
    if (dc->failed)
        return false;
    dc->failed = true;
    va_list ap;
    va_start(ap, fmt);
    diag_error(dc->diags, dc->span, "%s", arena_vprintf(dc->in->arena, fmt, ap));
    va_end(ap);
    return false;
}

bool dec_unsupported(struct dec *dc)
{
    return dec_error(dc, "the simulator does not have '%s'", dec_mnemonic(dc));
}

/* ---- records --------------------------------------------------------------------------------- */

static struct sim_op *add_op(struct dec *dc, enum sim_handler_id h)
{
    struct sim_op *op = VEC_PUSH(dc->in->arena, &dc->op);
    const struct sim_handler *f = &dc->in->build->h[h];
    op->fn[0] = f->full;
    op->fn[1] = f->part;
    op->serial = dc->code->ninst;
    op->item = dc->item;
    op->guard = SIM_NO_GUARD;
    *VEC_PUSH(dc->in->arena, &dc->polls) = false;
    return op;
}

struct sim_op *dec_emit(struct dec *dc, enum sim_handler_id h)
{
    if (dc->guard) {
        struct sim_op *g = add_op(dc, SIM_H_GUARD);
        g->a = dc->guard_off;
        g->flags = dc->guard_flags;
    }
    return add_op(dc, h);
}

struct sim_op *dec_emit3(struct dec *dc, enum sim_handler_id h, uint32_t d, uint32_t a, uint32_t b,
                         uint32_t c)
{
    struct sim_op *op = dec_emit(dc, h);
    op->d = d;
    op->a = a;
    op->b = b;
    op->c = c;
    return op;
}

struct sim_op *dec_emit_control(struct dec *dc, enum sim_handler_id h)
{
    struct sim_op *op = add_op(dc, h);
    if (dc->guard) {
        op->guard = dc->guard_off;
        op->flags = dc->guard_flags;
    }
    return op;
}

void dec_keep_guard(struct dec *dc)
{
    if (!dc->guard)
        return;
    struct sim_op *op = add_op(dc, SIM_H_PMOV);
    op->d = dec_temp(dc, DEC_PRED);
    op->a = dc->guard_off;
    dc->guard_off = op->d;
}

/* ---- slots ----------------------------------------------------------------------------------- */

enum dec_class dec_class_of(enum sim_type t)
{
    switch (t) {
    case SIM_T_p: return DEC_PRED;
    case SIM_T_u16:
    case SIM_T_s16:
    case SIM_T_h: return DEC_16;
    case SIM_T_u32:
    case SIM_T_s32:
    case SIM_T_f32: return DEC_32;
    case SIM_T_u64:
    case SIM_T_s64:
    case SIM_T_f64: return DEC_64;
    case SIM_T_none: break;
    }
    return DEC_NONE;
}

uint32_t dec_type_bytes(enum ptx_mod t)
{
    const unsigned bits = t == PTX_PRED ? 0 : ptx_type_bits(t);
    return bits % 8 == 0 && bits <= 64 ? bits / 8 : 0;
}

enum dec_class dec_reg_class(enum ptx_mod declared)
{
    if (declared == PTX_PRED)
        return DEC_PRED;
    if (declared == PTX_B128)
        return DEC_128;
    switch (dec_type_bytes(declared)) {
    case 1:
    case 2: return DEC_16;
    case 4: return DEC_32;
    case 8: return DEC_64;
    default: return DEC_NONE;
    }
}

/* The most bytes of a warp's register file, far above what any compiler makes. */
enum { MOST_BYTES = 1 << 28 };

static uint32_t take(uint32_t *next, uint32_t bytes)
{
    const uint32_t off = *next;
    *next += bytes;
    return off;
}

uint32_t dec_temp(struct dec *dc, enum dec_class c)
{
    if (dc->file_next > MOST_BYTES) {
        dec_error(dc, "'%s' has more registers than the simulator can hold", dc->in->func->name);
        return 0;
    }
    if (c == DEC_PRED) {
        if (dc->pred_next == dc->pred_end) {
            dc->pred_next = take(&dc->file_next, SIM_SLOT);
            dc->pred_end = dc->pred_next + SIM_SLOT;
        }
        return take(&dc->pred_next, 4);
    }
    return take(&dc->file_next, (c == DEC_128 ? 16 : c == DEC_64 ? 8 : 4) * SIM_LANES);
}

uint32_t dec_const(struct dec *dc, uint64_t bits, bool wide)
{
    if (!wide)
        bits = (uint32_t)bits;
    for (size_t i = 0; i < dc->code->consts.n; i++)
        if (dc->code->consts.v[i].bits == bits && dc->code->consts.v[i].wide == wide)
            return dc->code->consts.v[i].off;
    struct sim_const *c = VEC_PUSH(dc->in->arena, &dc->code->consts);
    c->off = dec_temp(dc, wide ? DEC_64 : DEC_32);
    c->bits = bits;
    c->wide = wide;
    return c->off;
}

bool dec_is_clock(enum ptx_sreg reg)
{
    return reg >= PTX_SR_CLOCK && reg <= PTX_SR_GLOBALTIMER_HI;
}
_Static_assert(PTX_SR_GLOBALTIMER_HI - PTX_SR_CLOCK == 5,
               "the special registers in between count time too");

/* Does it tell where the system's shared memory is? */
static bool is_reserved(enum ptx_sreg reg)
{
    return reg >= PTX_SR_RESERVED_SMEM_BEGIN && reg <= PTX_SR_RESERVED_SMEM_1;
}
_Static_assert(PTX_SR_RESERVED_SMEM_1 - PTX_SR_RESERVED_SMEM_BEGIN == 4,
               "the special registers in between are of the system's shared memory too");

uint32_t dec_special(struct dec *dc, enum ptx_sreg reg, enum sim_type t)
{
    const bool wide = dec_type_bytes(ptx_sreg_type(reg)) == 8;
    if (!sim_special_known(reg)) {
        dec_error(dc, "the simulator does not have the special register '%s' here",
                  ptx_sreg_text(reg));
        return 0;
    }
    if (dec_class_of(t) != (wide ? DEC_64 : DEC_32)) {
        dec_error(dc, "'%s' has %d bits, which this operand has not", ptx_sreg_text(reg),
                  wide ? 64 : 32);
        return 0;
    }
    for (size_t i = 0; i < dc->code->specials.n; i++)
        if (dc->code->specials.v[i].reg == reg)
            return dc->code->specials.v[i].off;
    dc->code->reserves |= is_reserved(reg);
    struct sim_special *s = VEC_PUSH(dc->in->arena, &dc->code->specials);
    s->off = dec_temp(dc, wide ? DEC_64 : DEC_32);
    s->reg = reg;
    return s->off;
}

bool dec_is_imm(const struct ptx_operand *o)
{
    return o->kind == PTX_O_IMM || o->kind == PTX_O_F32 || o->kind == PTX_O_F64;
}

uint64_t dec_imm(struct dec *dc, const struct ptx_operand *o, enum sim_type t)
{
    uint64_t bits = o->bits;
    double d;
    float f;
    if (o->kind == PTX_O_F64 && dec_class_of(t) == DEC_32) {
        memcpy(&d, &bits, 8);
        f = (float)d;
        uint32_t u;
        memcpy(&u, &f, 4);
        return u;
    }
    if (o->kind == PTX_O_F32 && t == SIM_T_f64) {
        const uint32_t u = (uint32_t)bits;
        memcpy(&f, &u, 4);
        d = (double)f;
        memcpy(&bits, &d, 8);
        return bits;
    }
    if (o->kind == PTX_O_IMM && (t == SIM_T_f32 || t == SIM_T_f64)) {
        dec_error(dc, "an integer stands where a floating-point literal is needed");
        return 0;
    }
    return dec_class_of(t) == DEC_16 ? (uint16_t)bits : bits;
}

/* The place of a variable that has one: params and the module's own. */
static bool lookup(const struct sim_symbols *s, const struct ptx_var *v, uint64_t *address)
{
    for (size_t i = 0; i < s->list.n; i++)
        if (s->list.v[i].var == v) {
            *address = s->list.v[i].address;
            return true;
        }
    return false;
}

bool dec_address(struct dec *dc, const struct ptx_var *v, uint64_t *address)
{
    if (lookup(&dc->vars, v, address) || lookup(dc->in->symbols, v, address))
        return true;
    return dec_error(dc, "the simulator has no place for the variable '%s'", v->name);
}

static const char *class_text(enum dec_class c)
{
    static const char *const text[] = {"nothing", "a predicate", "16 bits",
                                       "32 bits", "64 bits",     "128 bits"};
    return text[c];
}

static uint32_t reg_slot(struct dec *dc, int32_t reg, enum dec_class want)
{
    const enum dec_class have = dc->reg_class[reg];
    if (have != want) {
        const char *name = dc->in->func->regs.v[reg].name;
        dec_error(dc, "'%s' is declared as %s, this operand is %s", name, class_text(have),
                  class_text(want));
        return 0;
    }
    return dc->reg_off[reg];
}

/* A store to memory of the thread's own, as of an argument, is no use: an empty structure is
 * passed, or copied as a byte, without a value. */
static bool is_copy(const struct ptx_inst *in)
{
    const enum ptx_mod space = in->mod[PTX_MC_SPACE];
    return in->op == PTX_OP_ST &&
           (space == PTX_LOCAL || space == PTX_PARAM || (!space && in->type[0] == PTX_U8));
}

uint32_t dec_src(struct dec *dc, const struct ptx_operand *o, enum sim_type t)
{
    const bool wide = dec_class_of(t) == DEC_64;
    uint64_t address;
    switch (o->kind) {
    case PTX_O_REG:
        if (t == SIM_T_p)
            return dec_pred(dc, o);
        dc->reg_read[o->reg] |= !is_copy(dc->inst);
        return reg_slot(dc, o->reg, dec_class_of(t));
    case PTX_O_IMM:
    case PTX_O_F32:
    case PTX_O_F64:
        if (t == SIM_T_p)
            return dec_pred(dc, o);
        return dec_const(dc, dec_imm(dc, o, t), wide);
    case PTX_O_SREG: return dec_special(dc, o->sreg, t);
    case PTX_O_SYM:
        if (!dec_address(dc, o->var, &address))
            return 0;
        return dec_const(dc, address + o->bits, wide);
    default:
        dec_error(dc, "the simulator can't use this kind of operand in '%s'", dec_mnemonic(dc));
        return 0;
    }
}

uint32_t dec_dst(struct dec *dc, const struct ptx_operand *o, enum sim_type t)
{
    if (o->kind == PTX_O_SINK || (o->kind == PTX_O_REG && o->reg < 0))
        return dec_temp(dc, dec_class_of(t));
    if (o->kind != PTX_O_REG) {
        dec_error(dc, "the destination of '%s' is not a register", dec_mnemonic(dc));
        return 0;
    }
    dc->reg_written[o->reg] = true;
    return reg_slot(dc, o->reg, dec_class_of(t));
}

uint32_t dec_pred(struct dec *dc, const struct ptx_operand *o)
{
    if (o->kind == PTX_O_IMM)
        return dec_const(dc, o->bits ? UINT32_MAX : 0, false);
    if (o->kind == PTX_O_SREG && ptx_sreg_type(o->sreg) == PTX_PRED)
        return dec_special(dc, o->sreg, SIM_T_u32);
    if (o->kind != PTX_O_REG) {
        dec_error(dc, "a predicate is needed here");
        return 0;
    }
    dc->reg_read[o->reg] = true;
    const uint32_t off = reg_slot(dc, o->reg, DEC_PRED);
    if (!o->neg)
        return off;
    const uint32_t temp = dec_temp(dc, DEC_PRED);
    dec_emit3(dc, SIM_H_PNOT, temp, off, 0, 0);
    return temp;
}

bool dec_halves(struct dec *dc, const struct ptx_operand *o, bool writes, uint32_t half[2])
{
    if (o->kind == PTX_O_SINK && writes) {
        half[0] = dec_temp(dc, DEC_128);
    } else if (o->kind == PTX_O_REG) {
        (writes ? dc->reg_written : dc->reg_read)[o->reg] = true;
        half[0] = reg_slot(dc, o->reg, DEC_128);
    } else {
        return dec_error(dc, "'%s' needs a register of 128 bits here", dec_mnemonic(dc));
    }
    half[1] = half[0] + 8 * SIM_LANES;
    return !dc->failed;
}

enum dec_class dec_operand_class(struct dec *dc, const struct ptx_operand *o, enum dec_class wanted)
{
    return o->kind == PTX_O_REG ? (enum dec_class)dc->reg_class[o->reg] : wanted;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static const dec_fn decoders[PTX_FAMILY_COUNT] = {
#define SIM_FAMILY(FAMILY, function) [PTX_FAMILY_##FAMILY] = function,
#include "sim/families.def"
};

/* Can a loop with this instruction in it be waiting for another thread, or for time to pass? */
static bool may_poll(const struct ptx_inst *in)
{
    switch (ptx_op_family(in->op)) {
    case PTX_FAMILY_LD:
        return in->mod[PTX_MC_ORDER] != PTX_NONE && in->mod[PTX_MC_ORDER] != PTX_WEAK;
    case PTX_FAMILY_ATOM: return in->operand[0].kind != PTX_O_SINK;
    case PTX_FAMILY_MOV:
        return in->operand[1].kind == PTX_O_SREG && dec_is_clock(in->operand[1].sreg);
    case PTX_FAMILY_SLEEP: return true;
    case PTX_FAMILY_MBAR_WAIT: /* try_wait stops the thread instead */
        return in->op == PTX_OP_MBARRIER_TEST_WAIT || in->op == PTX_OP_MBARRIER_TEST_PARITY;
    default: return false;
    }
}

static bool decode_inst(struct dec *dc, const struct ptx_item *item)
{
    const struct ptx_inst *in = &item->inst;
    dc->inst = in;
    dc->span = item->span;
    dc->failed = false;
    dc->guard = in->guard >= 0;
    if (dc->guard) {
        dc->reg_read[in->guard] = true;
        dc->guard_off = reg_slot(dc, in->guard, DEC_PRED);
        dc->guard_flags = in->guard_neg ? SIM_GUARD_NOT : 0;
    }
    const dec_fn fn = decoders[ptx_op_family(in->op)];
    const bool ok = fn ? fn(dc) : dec_unsupported(dc);
    if (ok && may_poll(in))
        dc->polls.v[dc->polls.n - 1] = true;
    dc->code->ninst++;
    return ok && !dc->failed;
}

/* ---- the entry ------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t x, uint64_t align)
{
    return align ? (x + align - 1) / align * align : x;
}

static void mark_operand(const struct ptx_operand *o, bool *used)
{
    if (o->reg >= 0)
        used[o->reg] = true;
    if (o->reg2 >= 0)
        used[o->reg2] = true;
    for (uint32_t i = 0; i < o->nelem; i++)
        mark_operand(&o->elem[i], used);
}

/* The registers that instructions name: a million may be declared, and each would be cleared for
 * each warp. */
static bool *used_regs(const struct ptx_func *f, struct arena *a)
{
    bool *used = ARENA_ARRAY(a, f->regs.n + 1, bool);
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_inst *in = &f->items.v[i].inst;
        if (f->items.v[i].kind != PTX_I_INST)
            continue;
        if (in->guard >= 0)
            used[in->guard] = true;
        for (uint32_t k = 0; k < in->noperand; k++)
            mark_operand(&in->operand[k], used);
    }
    return used;
}

static void place_regs(struct dec *dc)
{
    const struct ptx_func *f = dc->in->func;
    const size_t n = f->regs.n;
    struct arena *a = dc->in->arena;
    const bool *used = used_regs(f, a);
    dc->reg_off = ARENA_ARRAY(a, n, uint32_t);
    dc->reg_class = ARENA_ARRAY(a, n, uint8_t);
    dc->reg_written = ARENA_ARRAY(a, n, bool);
    dc->reg_read = ARENA_ARRAY(a, n, bool);
    dc->pred_next = 4; /* the first is the carry */
    for (size_t i = 0; i < n; i++) {
        dc->reg_class[i] = (uint8_t)dec_reg_class(f->regs.v[i].type);
        if (used[i] && dc->reg_class[i] == DEC_PRED)
            dc->reg_off[i] = take(&dc->pred_next, 4);
    }
    dc->pred_end = (uint32_t)round_up(dc->pred_next, SIM_SLOT);
    dc->file_next = dc->pred_end;
    for (size_t i = 0; i < n; i++)
        if (used[i] && dc->reg_class[i] != DEC_PRED && dc->reg_class[i] != DEC_NONE)
            dc->reg_off[i] = dec_temp(dc, dc->reg_class[i]);
    dc->code->zero_bytes = dc->file_next;
}

static void add_var(struct dec *dc, const struct ptx_var *v, uint64_t address)
{
    struct sim_symbol *s = VEC_PUSH(dc->in->arena, &dc->vars.list);
    s->var = v;
    s->address = address;
}

/* Gives each .shared and .local variable that an operand names its place; dynamic shared memory
 * comes behind. */
static void place_var(struct dec *dc, const struct ptx_var *v, bool dynamic)
{
    const enum ptx_mod space = ptx_space(v->space);
    uint64_t *bytes = space == PTX_SHARED ? &dc->code->shared_bytes : &dc->code->local_bytes;
    uint64_t have;
    const bool unsized = v->is_array && v->count == 0;
    if (space == PTX_SHARED && unsized && ptx_var_align(v) > dc->code->dynamic_align)
        dc->code->dynamic_align = ptx_var_align(v);
    if ((space != PTX_SHARED && space != PTX_LOCAL) || unsized != dynamic ||
        lookup(&dc->vars, v, &have))
        return;
    if (dynamic) {
        /* all of them are the same memory */
        add_var(dc, v, round_up(dc->code->shared_bytes, dc->code->dynamic_align));
        return;
    }
    *bytes = round_up(*bytes, ptx_var_align(v));
    add_var(dc, v, *bytes);
    *bytes += ptx_var_bytes(v);
}

static void place_operand(struct dec *dc, const struct ptx_operand *o, bool dynamic)
{
    if (o->var)
        place_var(dc, o->var, dynamic);
    for (uint32_t i = 0; i < o->nelem; i++)
        place_operand(dc, &o->elem[i], dynamic);
}

enum { MOST_LOCAL = 512 * 1024 }; /* per thread (CUDA programming guide, compute capabilities) */

static void place_vars(struct dec *dc)
{
    const struct ptx_func *f = dc->in->func;
    for (size_t i = 0; i < f->params.n; i++)
        add_var(dc, f->params.v[i], dc->in->param_base + dc->in->param_offset[i]);
    dc->code->dynamic_align = 16;
    for (int dynamic = 0; dynamic < 2; dynamic++)
        for (size_t i = 0; i < f->items.n; i++)
            if (f->items.v[i].kind == PTX_I_INST)
                for (uint32_t k = 0; k < f->items.v[i].inst.noperand; k++)
                    place_operand(dc, &f->items.v[i].inst.operand[k], dynamic);
    dc->code->local_bytes = round_up(dc->code->local_bytes, 16);
    if (dc->code->local_bytes > MOST_LOCAL)
        diag_error(dc->diags, f->span,
                   "kernel '%s' needs %" PRIu64 " bytes of local memory a thread, the limit is %d",
                   f->name, dc->code->local_bytes, MOST_LOCAL);
}

static void find_labels(struct dec *dc)
{
    const struct ptx_func *f = dc->in->func;
    dc->label_op = ARENA_ARRAY(dc->in->arena, f->labels.n, uint32_t);
    dc->label_used = ARENA_ARRAY(dc->in->arena, f->labels.n, bool);
    memset(dc->label_op, 0xff, f->labels.n * sizeof *dc->label_op);
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *item = &f->items.v[i];
        if (item->kind == PTX_I_INST)
            for (uint32_t k = 0; k < item->inst.noperand; k++)
                if (item->inst.operand[k].kind == PTX_O_LABEL)
                    dc->label_used[item->inst.operand[k].label] = true;
        if (item->kind == PTX_I_TARGETS)
            for (uint32_t k = 0; k < item->ntarget; k++)
                dc->label_used[item->target[k]] = true;
    }
}

/* A register that is read but that nothing writes: compilers without optimisation leave such (of a
 * structure's padding, say), and it is 0 here. */
static void check_written(struct dec *dc)
{
    const struct ptx_func *f = dc->in->func;
    for (size_t i = 0; i < f->regs.n; i++)
        if (dc->reg_read[i] && !dc->reg_written[i])
            diag_warning(dc->diags, f->items.v[f->regs.v[i].decl].span,
                         "'%s' is read in '%s' but no instruction writes it", f->regs.v[i].name,
                         f->name);
}

/* The record that a branch to a label goes to: the one behind it, where those that fall through
 * come too. */
static uint32_t label_place(const struct dec *dc, uint32_t label)
{
    uint32_t at = dc->label_op[label];
    while (dc->op.v[at].fn[0] == dc->in->build->h[SIM_H_LABEL].full)
        at++;
    return at;
}

static void decode_items(struct dec *dc)
{
    const struct ptx_func *f = dc->in->func;
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *item = &f->items.v[i];
        dc->item = (uint32_t)i;
        if (item->kind == PTX_I_LABEL && dc->label_used[item->label]) {
            dc->label_op[item->label] = (uint32_t)dc->op.n;
            add_op(dc, SIM_H_LABEL);
        } else if (item->kind == PTX_I_INST) {
            decode_inst(dc, item);
        }
    }
    /* falling off the end is a return */
    dc->guard = false;
    add_op(dc, SIM_H_EXIT);
    for (size_t i = 0; i < dc->fixups.n; i++)
        dc->op.v[dc->fixups.v[i].op].target = label_place(dc, dc->fixups.v[i].label);
    struct sim_targets *list = ARENA_ARRAY(dc->in->arena, dc->targets.n, struct sim_targets);
    for (size_t i = 0; i < dc->targets.n; i++) {
        const struct ptx_item *item = dc->targets.v[i].item;
        uint32_t *to = ARENA_ARRAY(dc->in->arena, item->ntarget, uint32_t);
        for (uint32_t k = 0; k < item->ntarget; k++)
            to[k] = label_place(dc, item->target[k]);
        list[i] = (struct sim_targets){item->ntarget, to};
    }
    dc->code->targets = list;
}

struct sim_code *sim_decode(const struct sim_decode_in *given, struct diags *d)
{
    struct sim_decode_in flat = *given, *in = &flat;
    struct sim_code *code = ARENA_NEW(in->arena, struct sim_code);
    struct dec dc = {.in = in, .diags = d, .code = code, .span = in->func->span};
    const size_t before = d->nerror;
    in->func = dec_inline(given, d);
    if (!in->func)
        return NULL;
    code->module = in->module;
    code->func = in->func;
    code->registers = sim_registers_at_entry(given->func);
    place_regs(&dc);
    place_vars(&dc);
    find_labels(&dc);
    decode_items(&dc);
    if (d->nerror == before)
        check_written(&dc);
    if (d->nerror != before)
        return NULL;
    code->op = dc.op.v;
    code->vars = dc.vars;
    code->nop = (uint32_t)dc.op.n;
    code->scratch = take(&dc.file_next, SIM_SCRATCH);
    code->file_bytes = dc.file_next;
    dec_order(&dc);
    return code;
}
