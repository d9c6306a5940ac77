/* Calls: an entry that has any is decoded from a copy in which the functions' bodies stand in their place.
 *
 * A parameter in .param space becomes a local variable; the callee's name for it and the caller's are the same one, so
 * nothing is copied. A parameter in a register is moved. Functions that call themselves, and functions called through
 * a register, are not had.
 */
#include <config.h>

#include "sim/decode.h"

/* A variable of the text and the one that stands for it in this body. */
struct renamed {
    const struct ptx_var *from, *to;
};

/* One body being copied. */
struct body {
    const struct body *caller; /* NULL: the entry */
    const struct ptx_func *func;
    int32_t first_reg;         /* its registers come from there on in the copy */
    uint32_t first_label, end; /* its labels; where it returns to */
    uint32_t *item;            /* by its item: the copy's */
    VEC(struct renamed) vars;
};

struct copy {
    struct arena *arena;
    const struct ptx_module *module;
    struct ptx_func *func;
    struct diags *diags;
};

enum { DEEPEST = 64, MOST_ITEMS = 1 << 20 };

static bool is_call(const struct ptx_item *item)
{
    return item->kind == PTX_I_INST && item->inst.op == PTX_OP_CALL;
}

/* ---- names ------------------------------------------------------------------------------------------- */

static struct ptx_var *new_local(struct copy *c, const struct ptx_var *like)
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

static void rename_var(struct copy *c, struct body *b, const struct ptx_var *from,
                       const struct ptx_var *to)
{
    *VEC_PUSH(c->arena, &b->vars) = (struct renamed){from, to};
}

/* A .param variable of a body is a local one; all others are themselves. */
static const struct ptx_var *var_of(struct copy *c, struct body *b, const struct ptx_var *v)
{
    if (!v || ptx_space(v->space) != PTX_PARAM || is_entry_param(c, v))
        return v;
    for (size_t i = b->vars.n; i-- > 0;)
        if (b->vars.v[i].from == v)
            return b->vars.v[i].to;
    const struct ptx_var *to = new_local(c, v);
    rename_var(c, b, v, to);
    return to;
}

static struct ptx_operand operand_of(struct copy *c, struct body *b, const struct ptx_operand *o)
{
    struct ptx_operand r = *o;
    if (r.reg >= 0)
        r.reg += b->first_reg;
    if (r.reg2 >= 0)
        r.reg2 += b->first_reg;
    if (r.kind == PTX_O_LABEL)
        r.label += b->first_label;
    r.var = var_of(c, b, o->var);
    if (r.nelem) {
        r.elem = ARENA_ARRAY(c->arena, r.nelem, struct ptx_operand);
        for (uint32_t i = 0; i < r.nelem; i++)
            r.elem[i] = operand_of(c, b, &o->elem[i]);
    }
    return r;
}

static uint32_t new_label(struct copy *c)
{
    *VEC_PUSH(c->arena, &c->func->labels) = (struct ptx_label){"$return", UINT32_MAX};
    return (uint32_t)c->func->labels.n - 1;
}

static int32_t new_regs(struct copy *c, const struct ptx_func *f)
{
    const size_t first = c->func->regs.n;
    for (size_t i = 0; i < f->regs.n; i++)
        *VEC_PUSH(c->arena, &c->func->regs) = f->regs.v[i];
    return (int32_t)first;
}

/* ---- items ------------------------------------------------------------------------------------------- */

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

static void add_inst(struct copy *c, struct span span, enum ptx_op op, enum ptx_mod space,
                     enum ptx_mod type, struct ptx_operand d, struct ptx_operand s)
{
    struct ptx_item item = {.kind = PTX_I_INST, .span = span};
    struct ptx_inst *in = &item.inst;
    *in = (struct ptx_inst){.op = op, .guard = -1, .noperand = 2};
    in->mod[PTX_MC_SPACE] = (uint16_t)space;
    in->mod[PTX_MC_TYPE] = in->type[0] = (uint16_t)type;
    in->operand = ARENA_ARRAY(c->arena, 2, struct ptx_operand);
    in->operand[0] = d;
    in->operand[1] = s;
    add_item(c, &item);
}

static void add_branch(struct copy *c, struct span span, int32_t guard, bool neg, uint32_t label)
{
    struct ptx_item item = {.kind = PTX_I_INST, .span = span};
    item.inst =
        (struct ptx_inst){.op = PTX_OP_BRA, .guard = guard, .guard_neg = neg, .noperand = 1};
    item.inst.operand = ARENA_NEW(c->arena, struct ptx_operand);
    *item.inst.operand =
        (struct ptx_operand){.kind = PTX_O_LABEL, .reg = -1, .reg2 = -1, .label = label};
    add_item(c, &item);
}

static struct ptx_operand memory_of(const struct ptx_var *v)
{
    return (struct ptx_operand){.kind = PTX_O_MEM, .reg = -1, .reg2 = -1, .var = v};
}

static struct ptx_operand register_of(int32_t reg)
{
    return (struct ptx_operand){.kind = PTX_O_REG, .reg = reg, .reg2 = -1};
}

/* ---- calls ------------------------------------------------------------------------------------------- */

/* A register parameter's number among the callee's registers. */
static int32_t param_reg(const struct ptx_func *f, const struct ptx_var *v)
{
    for (size_t i = 0; i < f->regs.n; i++)
        if (f->regs.v[i].decl == UINT32_MAX && strcmp(f->regs.v[i].name, v->name) == 0)
            return (int32_t)i;
    return -1;
}

/* An argument (or with result, where a result goes) meets its parameter: in front of the body, and behind it. */
static void pass(struct copy *c, struct body *callee, struct span span, const struct ptx_var *param,
                 const struct ptx_operand *arg, bool result, bool behind)
{
    const bool in_memory = ptx_space(param->space) == PTX_PARAM, by_name = arg->kind == PTX_O_SYM;
    if (in_memory && !behind)
        rename_var(c, callee, param, by_name ? arg->var : new_local(c, param));
    if ((in_memory && by_name) || result != behind || arg->kind == PTX_O_SINK)
        return;
    const struct ptx_operand own =
        in_memory ? memory_of(var_of(c, callee, param))
                  : register_of(callee->first_reg + param_reg(callee->func, param));
    const struct ptx_operand other = by_name ? memory_of(arg->var) : *arg;
    const struct ptx_operand to = result ? other : own, from = result ? own : other;
    if (to.kind == PTX_O_MEM)
        add_inst(c, span, PTX_OP_ST, PTX_LOCAL, param->type, to, from);
    else if (from.kind == PTX_O_MEM)
        add_inst(c, span, PTX_OP_LD, PTX_LOCAL, param->type, to, from);
    else
        add_inst(c, span, PTX_OP_MOV, PTX_NONE, param->type, to, from);
}

static void pass_all(struct copy *c, struct body *callee, struct span span,
                     const struct ptx_inst *call, bool behind)
{
    const struct ptx_func *f = callee->func;
    for (size_t i = 0; i < f->results.n; i++)
        pass(c, callee, span, f->results.v[i], &call->operand[0].elem[i], true, behind);
    for (size_t i = 0; i < f->params.n; i++)
        pass(c, callee, span, f->params.v[i], &call->operand[2].elem[i], false, behind);
}

/* The function called, when it can be: it has a body, is known by name and does not call itself. */
static const struct ptx_func *callee_of(struct copy *c, const struct body *b,
                                        const struct ptx_item *item)
{
    const struct ptx_operand *o = item->inst.operand;
    unsigned depth = 0;
    if (item->inst.noperand != 3 || o[1].kind != PTX_O_FUNC) {
        diag_error(c->diags, item->span, "the simulator can't call through a register");
        return NULL;
    }
    const struct ptx_func *f = ptx_find_func(c->module, o[1].name);
    if (!f || !f->has_body) {
        diag_error(c->diags, item->span, "the module has no function '%s' with a body", o[1].name);
        return NULL;
    }
    for (const struct body *at = b; at; at = at->caller, depth++)
        if (at->func == f || depth > DEEPEST) {
            diag_error(c->diags, item->span, "'%s' calls itself, which the simulator does not have",
                       f->name);
            return NULL;
        }
    if (f->params.n != o[2].nelem || f->results.n != o[0].nelem) {
        diag_error(c->diags, item->span, "'%s' has %zu parameters and %zu results", f->name,
                   f->params.n, f->results.n);
        return NULL;
    }
    return f;
}

/* Variables passed by name are the caller's own .param ones, a result's not an argument's too: they become one. */
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

static bool copy_body(struct copy *c, struct body *b);

static bool copy_call(struct copy *c, struct body *b, const struct ptx_item *item)
{
    const struct ptx_func *f = callee_of(c, b, item);
    if (!f)
        return false;
    struct ptx_inst call = item->inst;
    call.operand = ARENA_ARRAY(c->arena, 3, struct ptx_operand);
    for (int i = 0; i < 3; i++)
        call.operand[i] = operand_of(c, b, &item->inst.operand[i]);
    if (!check_names(c, item, &call))
        return false;
    struct body callee = {.caller = b, .func = f, .end = new_label(c)};
    callee.first_label = (uint32_t)c->func->labels.n;
    for (size_t i = 0; i < f->labels.n; i++)
        *VEC_PUSH(c->arena, &c->func->labels) = f->labels.v[i];
    callee.first_reg = new_regs(c, f);
    const uint32_t over = call.guard >= 0 ? new_label(c) : 0;
    if (call.guard >= 0)
        add_branch(c, item->span, call.guard + b->first_reg, !call.guard_neg, over);
    pass_all(c, &callee, item->span, &call, false);
    if (!copy_body(c, &callee))
        return false;
    place_label(c, callee.end, item->span);
    pass_all(c, &callee, item->span, &call, true);
    if (call.guard >= 0)
        place_label(c, over, item->span);
    return true;
}

/* ---- bodies ------------------------------------------------------------------------------------------ */

static bool copy_inst(struct copy *c, struct body *b, const struct ptx_item *from)
{
    if (is_call(from))
        return copy_call(c, b, from);
    const int32_t guard = from->inst.guard < 0 ? -1 : from->inst.guard + b->first_reg;
    if (b->caller && from->inst.op == PTX_OP_RET) {
        add_branch(c, from->span, guard, from->inst.guard_neg, b->end);
        return true;
    }
    struct ptx_item item = *from;
    struct ptx_inst *in = &item.inst;
    in->guard = guard;
    in->operand = ARENA_ARRAY(c->arena, in->noperand, struct ptx_operand);
    for (uint32_t i = 0; i < in->noperand; i++) {
        in->operand[i] = operand_of(c, b, &from->inst.operand[i]);
        const struct ptx_operand *o = &in->operand[i];
        if (o->kind == PTX_O_MEM && o->var && o->var->space == PTX_LOCAL)
            in->mod[PTX_MC_SPACE] = in->mod[PTX_MC_SPACE] ? PTX_LOCAL : PTX_NONE;
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

static bool copy_body(struct copy *c, struct body *b)
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
    struct copy c = {in->arena, in->module, to, d};
    struct body b = {.func = f};
    *to = *f;
    memset(&to->items, 0, sizeof to->items);
    memset(&to->regs, 0, sizeof to->regs);
    memset(&to->labels, 0, sizeof to->labels);
    for (size_t i = 0; i < f->labels.n; i++)
        *VEC_PUSH(in->arena, &to->labels) = f->labels.v[i];
    new_regs(&c, f);
    return copy_body(&c, &b) ? to : NULL;
}
