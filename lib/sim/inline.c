/* Calls: an entry that has any is decoded from a copy in which the functions' bodies stand in their
 * place.
 *
 * A parameter in .param space becomes a local variable; the callee's name for it and the caller's
 * are the same one, so nothing is copied. A parameter in a register is moved.
 */
#include <config.h>

#include "sim/inline.h"

#include "sim/module.h"
#include "sim/system.h"

enum { DEEPEST = 64, MOST_ITEMS = 1 << 20 };

static bool is_call(const struct ptx_item *item)
{
    return item->kind == PTX_I_INST && item->inst.op == PTX_OP_CALL;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct ptx_var *inline_local(struct copy *c, const struct ptx_var *like)
{
    struct ptx_var *v = ARENA_NEW(c->arena, struct ptx_var);
    *v = *like;
    v->space = PTX_LOCAL;
    v->linkage = "";
    v->is_input = false;
    return v;
}

static bool is_entry_param(const struct copy *c, const struct ptx_var *v)
{
    for (size_t i = 0; i < c->func->params.n; i++)
        if (c->func->params.v[i] == v)
            return true;
    return false;
}

void inline_rename(struct copy *c, struct body *b, const struct ptx_var *from,
                   const struct ptx_var *to)
{
    *VEC_PUSH(c->arena, &b->vars) = (struct renamed){from, to};
}

/* A .param variable of a body is a local one; all others are themselves. */
const struct ptx_var *inline_var(struct copy *c, struct body *b, const struct ptx_var *v)
{
    if (!v || ptx_space(v->space) != PTX_PARAM || is_entry_param(c, v))
        return v;
    for (size_t i = b->vars.n; i-- > 0;)
        if (b->vars.v[i].from == v)
            return b->vars.v[i].to;
    const struct ptx_var *to = inline_local(c, v);
    inline_rename(c, b, v, to);
    return to;
}

static bool in_frame(const struct body *b, const struct ptx_var *v)
{
    return b->routine && v && v->space == PTX_LOCAL;
}

struct ptx_operand inline_memory(struct copy *c, const struct body *b, const struct ptx_var *v,
                                 uint64_t offset)
{
    if (in_frame(b, v))
        return ptx_mem(b->routine->fp, (int64_t)(routine_slot(c, b->routine, v) + offset));
    return ptx_mem_var(v, (int64_t)offset);
}

/* A variable in a frame: [fp + ...], and its address in a register. */
static struct ptx_operand place(struct copy *c, const struct body *b, struct ptx_operand o)
{
    if (!in_frame(b, o.var) || (o.kind != PTX_O_MEM && o.kind != PTX_O_SYM))
        return o;
    const struct ptx_operand at = inline_memory(c, b, o.var, o.bits);
    if (o.kind == PTX_O_MEM)
        return at;
    const int32_t address = ptx_reg_new(&c->b, PTX_B64);
    PTX(&c->b, "add.u64", ptx_r(address), ptx_r(at.reg), ptx_imm((int64_t)at.bits));
    return ptx_r(address);
}

struct ptx_operand inline_operand(struct copy *c, struct body *b, const struct ptx_operand *o,
                                  bool placed)
{
    struct ptx_operand r = *o;
    if (r.reg >= 0)
        r.reg += b->first_reg;
    if (r.reg2 >= 0)
        r.reg2 += b->first_reg;
    if (r.kind == PTX_O_LABEL)
        r.label += b->first_label;
    if (r.kind == PTX_O_FUNC && placed)
        r = ptx_imm((int64_t)sim_function_address(c->module, r.name, strlen(r.name)));
    r.var = inline_var(c, b, o->var);
    if (r.nelem) {
        r.elem = ARENA_ARRAY(c->arena, r.nelem, struct ptx_operand);
        for (uint32_t i = 0; i < r.nelem; i++)
            r.elem[i] = inline_operand(c, b, &o->elem[i], placed);
    }
    return placed ? place(c, b, r) : r;
}

void inline_room(struct copy *c, struct body *b)
{
    const struct ptx_func *f = b->func;
    b->first_label = (uint32_t)c->func->labels.n;
    for (size_t i = 0; i < f->labels.n; i++)
        *VEC_PUSH(c->arena, &c->func->labels) = f->labels.v[i];
    b->first_reg = (int32_t)c->func->regs.n;
    for (size_t i = 0; i < f->regs.n; i++)
        *VEC_PUSH(c->arena, &c->func->regs) = f->regs.v[i];
}

/* ---- items ----------------------------------------------------------------------------------- */

static struct ptx_item *add_item(struct copy *c, const struct ptx_item *like)
{
    struct ptx_item *item = VEC_PUSH(c->arena, &c->func->items);
    *item = *like;
    return item;
}

static void place_label(struct copy *c, uint32_t label, struct span span)
{
    const struct ptx_item item = {.kind = PTX_I_LABEL, .span = span, .label = label};
    c->func->labels.v[label].item = (uint32_t)c->func->items.n;
    add_item(c, &item);
}

static void add_inst(struct copy *c, enum ptx_op op, enum ptx_mod space, enum ptx_mod type,
                     struct ptx_operand d, struct ptx_operand s)
{
    struct ptx_item item = {.kind = PTX_I_INST, .span = c->b.span};
    struct ptx_inst *in = &item.inst;
    struct ptx_words words = {.type[0] = (uint16_t)type};
    *in = (struct ptx_inst){.op = op, .guard = -1, .noperand = 2};
    words.mod[PTX_MC_SPACE] = (uint16_t)space;
    words.mod[PTX_MC_TYPE] = (uint16_t)type;
    ptx_set_words(c->b.module, in, &words);
    in->operand = ARENA_ARRAY(c->arena, 2, struct ptx_operand);
    in->operand[0] = d;
    in->operand[1] = s;
    add_item(c, &item);
}

/* ---- calls ----------------------------------------------------------------------------------- */

int32_t inline_param_reg(const struct ptx_func *f, const struct ptx_var *v)
{
    for (size_t i = 0; i < f->regs.n; i++)
        if (f->regs.v[i].decl == UINT32_MAX && strcmp(f->regs.v[i].name, v->name) == 0)
            return (int32_t)i;
    return -1;
}

/* An argument (or with result, where a result goes) meets its parameter: in front of the body, and
 * behind it. */
static void pass(struct copy *c, struct body *callee, const struct ptx_var *param,
                 const struct ptx_operand *arg, bool result, bool behind)
{
    const bool in_memory = ptx_space(param->space) == PTX_PARAM, by_name = arg->kind == PTX_O_SYM;
    if (in_memory && !behind)
        inline_rename(c, callee, param, by_name ? arg->var : inline_local(c, param));
    if ((in_memory && by_name) || result != behind || arg->kind == PTX_O_SINK)
        return;
    const struct ptx_operand own =
        in_memory ? inline_memory(c, callee, inline_var(c, callee, param), 0)
                  : ptx_r(callee->first_reg + inline_param_reg(callee->func, param));
    const struct ptx_operand other = by_name ? inline_memory(c, callee, arg->var, 0) : *arg;
    const struct ptx_operand to = result ? other : own, from = result ? own : other;
    if (to.kind == PTX_O_MEM)
        add_inst(c, PTX_OP_ST, PTX_LOCAL, param->type, to, from);
    else if (from.kind == PTX_O_MEM)
        add_inst(c, PTX_OP_LD, PTX_LOCAL, param->type, to, from);
    else
        add_inst(c, PTX_OP_MOV, PTX_NONE, param->type, to, from);
}

static void pass_all(struct copy *c, struct body *callee, const struct ptx_inst *call, bool behind)
{
    const struct ptx_func *f = callee->func;
    for (size_t i = 0; i < f->results.n; i++)
        pass(c, callee, f->results.v[i], &call->operand[0].elem[i], true, behind);
    for (size_t i = 0; i < f->params.n; i++)
        pass(c, callee, f->params.v[i], &call->operand[2].elem[i], false, behind);
}

/* The function that is called by name; NULL after an error: it has no body here. */
static const struct ptx_func *callee_of(struct copy *c, const struct ptx_item *item)
{
    const struct ptx_operand *o = item->inst.operand;
    const struct ptx_func *f = ptx_find_func(c->module, o[1].name);
    if (!f || !f->has_body) {
        diag_error(c->diags, item->span, "the module has no function '%s' with a body", o[1].name);
        return NULL;
    }
    if (f->params.n != o[2].nelem || f->results.n != o[0].nelem) {
        diag_error(c->diags, item->span, "'%s' has %zu parameters and %zu results", f->name,
                   f->params.n, f->results.n);
        return NULL;
    }
    return f;
}

static bool too_deep(const struct body *b)
{
    unsigned depth = 0;
    for (; b; b = b->caller)
        depth++;
    return depth > DEEPEST;
}

/* Variables passed by name are the caller's own .param ones, a result's not an argument's too: they
 * become one. */
static bool check_names(struct copy *c, const struct ptx_item *item, const struct ptx_inst *call)
{
    for (int list = 0; list < 3; list += 2)
        for (uint32_t i = 0; i < call->operand[list].nelem; i++) {
            const struct ptx_operand *o = &call->operand[list].elem[i];
            bool fine = o->kind != PTX_O_SYM || o->var->space == PTX_LOCAL;
            for (uint32_t k = 0; list && k < call->operand[0].nelem; k++)
                fine &= !o->var || call->operand[0].elem[k].var != o->var;
            if (!fine)
                return diag_error(c->diags, item->span, "the simulator can't pass '%s' like this",
                                  o->var->name);
        }
    return true;
}

/* The machine's function of that name, unless the module has one. */
static const struct system_function *system_of(const struct copy *c, const char *name)
{
    const struct ptx_func *f = ptx_find_func(c->module, name);
    return f && f->has_body ? NULL : system_function(name);
}

/* The call stays, with its arguments in registers. */
static bool copy_system_call(struct copy *c, struct body *b, const struct ptx_item *from,
                             const struct system_function *f)
{
    const struct ptx_operand *o = from->inst.operand;
    struct ptx_item item = *from;
    struct ptx_operand arg[8], result = ptx_sink();
    if (o[2].nelem != f->narg || o[0].nelem != f->nresult)
        return diag_error(c->diags, from->span, "'%s' has %u parameters and %u results", f->name,
                          f->narg, f->nresult);
    for (uint32_t i = 0; i < f->narg; i++) {
        const struct ptx_operand a = inline_operand(c, b, &o[2].elem[i], false);
        arg[i] = a;
        if (a.kind != PTX_O_SYM)
            continue;
        arg[i] = ptx_r(ptx_reg_new(&c->b, f->wide[i] ? PTX_B64 : PTX_B32));
        PTX(&c->b, f->wide[i] ? "ld.local.b64" : "ld.local.b32", arg[i],
            inline_memory(c, b, a.var, a.bits));
    }
    if (f->nresult)
        result = inline_operand(c, b, &o[0].elem[0], false);
    const struct ptx_operand to = result;
    if (to.kind == PTX_O_SYM)
        result = ptx_r(ptx_reg_new(&c->b, f->wide_result ? PTX_B64 : PTX_B32));
    item.inst.guard = item.inst.guard < 0 ? -1 : item.inst.guard + b->first_reg;
    item.inst.operand = ARENA_ARRAY(c->arena, 3, struct ptx_operand);
    item.inst.operand[0] = ptx_vec(&c->b, f->nresult, &result);
    item.inst.operand[1] = o[1];
    item.inst.operand[2] = ptx_vec(&c->b, f->narg, arg);
    add_item(c, &item);
    if (to.kind == PTX_O_SYM)
        PTX(&c->b, f->wide_result ? "st.local.b64" : "st.local.b32",
            inline_memory(c, b, to.var, to.bits), result);
    return true;
}

static bool copy_call(struct copy *c, struct body *b, const struct ptx_item *item)
{
    c->b.span = item->span;
    if (item->inst.operand[1].kind != PTX_O_FUNC)
        return routine_call(c, b, item, NULL);
    const struct system_function *system = system_of(c, item->inst.operand[1].name);
    if (system)
        return copy_system_call(c, b, item, system);
    const struct ptx_func *f = callee_of(c, item);
    if (!f)
        return false;
    if (routine_recurses(c, f) || too_deep(b))
        return routine_call(c, b, item, f);
    struct ptx_inst call = item->inst;
    call.operand = ARENA_ARRAY(c->arena, 3, struct ptx_operand);
    for (int i = 0; i < 3; i++)
        call.operand[i] = inline_operand(c, b, &item->inst.operand[i], false);
    if (!check_names(c, item, &call))
        return false;
    struct body callee = {.caller = b, .func = f, .routine = b->routine};
    callee.end = ptx_label_new(&c->b, "return");
    inline_room(c, &callee);
    const uint32_t over = call.guard >= 0 ? ptx_label_new(&c->b, "over") : 0;
    if (call.guard >= 0)
        ptx_emit(&c->b, call.guard + b->first_reg, !call.guard_neg, "bra",
                 PTX_ARGS(ptx_label(over)));
    pass_all(c, &callee, &call, false);
    if (!inline_body(c, &callee))
        return false;
    c->b.span = item->span;
    ptx_label_here(&c->b, callee.end);
    pass_all(c, &callee, &call, true);
    if (call.guard >= 0)
        ptx_label_here(&c->b, over);
    return true;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* An access to a parameter, which is in local memory here. */
static void make_local(struct copy *c, struct ptx_inst *in)
{
    struct ptx_words words;
    if (!in->mod[PTX_MC_SPACE])
        return;
    memcpy(words.mod, in->mod, sizeof words.mod);
    memcpy(words.type, in->type, sizeof words.type);
    words.mod[PTX_MC_SPACE] = PTX_LOCAL;
    ptx_set_words(c->b.module, in, &words);
}

static bool copy_inst(struct copy *c, struct body *b, const struct ptx_item *from)
{
    if (is_call(from))
        return copy_call(c, b, from);
    const int32_t guard = from->inst.guard < 0 ? -1 : from->inst.guard + b->first_reg;
    c->b.span = from->span;
    if ((b->caller || b->routine) && from->inst.op == PTX_OP_RET) {
        ptx_emit(&c->b, guard, from->inst.guard_neg, "bra", PTX_ARGS(ptx_label(b->end)));
        return true;
    }
    struct ptx_item item = *from;
    struct ptx_inst *in = &item.inst;
    in->guard = guard;
    in->operand = ARENA_ARRAY(c->arena, in->noperand, struct ptx_operand);
    for (uint32_t i = 0; i < in->noperand; i++) {
        const struct ptx_operand *was = &from->inst.operand[i];
        const struct ptx_var *v = inline_var(c, b, was->var);
        in->operand[i] = inline_operand(c, b, was, true);
        if (was->kind == PTX_O_MEM && v && v->space == PTX_LOCAL)
            make_local(c, in);
    }
    add_item(c, &item);
    return true;
}

static bool copy_item(struct copy *c, struct body *b, const struct ptx_item *from)
{
    switch (from->kind) {
    case PTX_I_INST: return copy_inst(c, b, from);
    case PTX_I_LABEL: place_label(c, from->label + b->first_label, from->span); return true;
    case PTX_I_TARGETS: {
        struct ptx_item item = *from;
        uint32_t *to = ARENA_ARRAY(c->arena, from->ntarget, uint32_t);
        for (uint32_t i = 0; i < from->ntarget; i++)
            to[i] = from->target[i] + b->first_label;
        item.target = to;
        add_item(c, &item);
        return true;
    }
    default: add_item(c, from); return true;
    }
}

bool inline_body(struct copy *c, struct body *b)
{
    const struct ptx_func *f = b->func;
    const uint32_t start = (uint32_t)c->func->items.n;
    b->item = ARENA_ARRAY(c->arena, f->items.n, uint32_t);
    const struct ptx_item here = {.kind = PTX_I_OPEN, .span = f->span};
    add_item(c, &here);
    for (size_t i = 0; i < f->items.n; i++) {
        b->item[i] = (uint32_t)c->func->items.n;
        if (!copy_item(c, b, &f->items.v[i]))
            return false;
        if (c->func->items.n > MOST_ITEMS)
            return diag_error(c->diags, f->span, "'%s' is too large with all that it calls",
                              c->func->name);
    }
    for (size_t i = 0; i < f->regs.n; i++) {
        const uint32_t decl = f->regs.v[i].decl;
        c->func->regs.v[(size_t)b->first_reg + i].decl = decl == UINT32_MAX ? start : b->item[decl];
    }
    return true;
}

const struct ptx_func *dec_inline(const struct sim_decode_in *in, struct diags *d)
{
    const struct ptx_func *f = in->func;
    size_t calls = 0;
    for (size_t i = 0; i < f->items.n; i++)
        calls += is_call(&f->items.v[i]);
    if (!calls)
        return f;
    struct ptx_func *to = ARENA_NEW(in->arena, struct ptx_func);
    struct copy c = {.arena = in->arena,
                     .module = in->module,
                     .scratch = {.arena = in->arena},
                     .func = to,
                     .diags = d};
    c.b = ptx_builder_new(&c.scratch, to);
    struct body b = {.func = f};
    *to = *f;
    memset(&to->items, 0, sizeof to->items);
    memset(&to->regs, 0, sizeof to->regs);
    memset(&to->labels, 0, sizeof to->labels);
    inline_room(&c, &b);
    return routine_begin(&c, &b) && inline_body(&c, &b) && routine_bodies(&c) ? to : NULL;
}
