/* Functions that are called as routines: those that may come to themselves, and those that are
 * called through a register. */
#include <config.h>

#include "sim/inline.h"

#include "sim/module.h"

enum { STACK = 16384, ALIGN = 16, SLOT = 8 };

static uint32_t round_to(uint32_t at, uint32_t align)
{
    return (at + align - 1) / align * align;
}

/* ---- who calls whom -------------------------------------------------------------------------- */

static bool names(const char *text, const char *name)
{
    const size_t len = strlen(name);
    for (const char *p = text; (p = strstr(p, name)) != NULL; p += len) {
        const bool starts = p == text || !strchr("_$%", p[-1]) || strchr("{, (", p[-1]);
        const char after = p[len];
        if (starts && (!after || strchr("}, )+", after)))
            return true;
    }
    return false;
}

typedef VEC(const char *) name_list;

static bool has_name(const name_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], name) == 0)
            return true;
    return false;
}

/* The names of functions that instructions other than calls have. */
static void add_addresses(struct copy *c, const struct ptx_func *of, name_list *list)
{
    for (size_t i = 0; i < of->items.n; i++) {
        const struct ptx_inst *in = &of->items.v[i].inst;
        if (of->items.v[i].kind != PTX_I_INST || in->op == PTX_OP_CALL)
            continue;
        for (uint32_t k = 0; k < in->noperand; k++)
            if (in->operand[k].kind == PTX_O_FUNC && !has_name(list, in->operand[k].name))
                *VEC_PUSH(c->arena, list) = in->operand[k].name;
    }
}

static bool in_a_variable(const struct ptx_module *m, const char *name)
{
    for (size_t i = 0; i < m->items.n; i++) {
        const struct ptx_item *item = &m->items.v[i];
        if (item->kind == PTX_I_VAR && item->var->init && names(item->var->init, name))
            return true;
    }
    return false;
}

/* The functions whose address the module takes, in its order. */
static const func_list *addressed(struct copy *c)
{
    const struct ptx_module *m = c->module;
    name_list taken = {0};
    if (c->knows_addressed)
        return &c->addressed;
    c->knows_addressed = true;
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i].kind == PTX_I_FUNC)
            add_addresses(c, m->items.v[i].func, &taken);
    for (size_t i = 0; i < m->items.n; i++) {
        const struct ptx_func *f = m->items.v[i].func;
        if (m->items.v[i].kind == PTX_I_FUNC && !f->is_entry && f->has_body &&
            (has_name(&taken, f->name) || in_a_variable(m, f->name)))
            *VEC_PUSH(c->arena, &c->addressed) = f;
    }
    return &c->addressed;
}

static uint64_t bytes_of(const struct ptx_operand *o)
{
    return o->kind == PTX_O_SYM ? ptx_var_bytes(o->var) : 0;
}

/* May the call go to f? Of what is passed in registers only the number is known. */
static bool fits(const struct ptx_inst *call, const struct ptx_func *f)
{
    const struct ptx_operand *results = &call->operand[0], *args = &call->operand[2];
    if (f->results.n != results->nelem || f->params.n != args->nelem)
        return false;
    for (uint32_t i = 0; i < args->nelem; i++)
        if (bytes_of(&args->elem[i]) && bytes_of(&args->elem[i]) != ptx_var_bytes(f->params.v[i]))
            return false;
    for (uint32_t i = 0; i < results->nelem; i++)
        if (bytes_of(&results->elem[i]) &&
            bytes_of(&results->elem[i]) != ptx_var_bytes(f->results.v[i]))
            return false;
    return true;
}

static void add_once(struct arena *a, func_list *list, const struct ptx_func *f)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i] == f)
            return;
    *VEC_PUSH(a, list) = f;
}

/* The functions that an instruction may call. */
static void add_callees(struct copy *c, const struct ptx_inst *call, func_list *list)
{
    const struct ptx_operand *o = &call->operand[1];
    if (o->kind == PTX_O_FUNC) {
        const struct ptx_func *f = ptx_find_func(c->module, o->name);
        if (f && f->has_body)
            add_once(c->arena, list, f);
        return;
    }
    const func_list *may = addressed(c);
    for (size_t i = 0; i < may->n; i++)
        if (fits(call, may->v[i]))
            add_once(c->arena, list, may->v[i]);
}

/* Its number in the graph, where it is put if it is not there. */
static uint32_t node_of(struct copy *c, const struct ptx_func *f)
{
    for (size_t i = 0; i < c->graph.n; i++)
        if (c->graph.v[i].func == f)
            return (uint32_t)i;
    *VEC_PUSH(c->arena, &c->graph) = (struct node){.func = f};
    return (uint32_t)c->graph.n - 1;
}

/* Does a function come to itself again? seen, list: room for the whole graph; seen holds no number
 * of this one yet. */
static bool comes_back(const struct copy *c, uint32_t from, uint32_t *seen, uint32_t *list)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k <= n; k++) {
        const struct node *at = &c->graph.v[k ? list[k - 1] : from];
        for (size_t i = 0; i < at->callee.n; i++) {
            const uint32_t to = at->callee.v[i];
            if (seen[to] == from + 1)
                continue;
            seen[to] = from + 1;
            list[n++] = to;
        }
    }
    return seen[from] == from + 1;
}

/* Who calls whom, from the entry on. Is any of it more than calls by name of what does not come
 * back? */
static bool make_graph(struct copy *c, const struct ptx_func *entry)
{
    bool needed = false;
    node_of(c, entry);
    for (uint32_t k = 0; k < c->graph.n; k++) {
        const struct ptx_func *f = c->graph.v[k].func;
        func_list list = {0};
        for (size_t i = 0; i < f->items.n; i++) {
            const struct ptx_item *item = &f->items.v[i];
            if (item->kind != PTX_I_INST || item->inst.op != PTX_OP_CALL)
                continue;
            needed |= item->inst.operand[1].kind != PTX_O_FUNC;
            add_callees(c, &item->inst, &list);
        }
        for (size_t i = 0; i < list.n; i++) {
            const uint32_t to = node_of(c, list.v[i]);
            *VEC_PUSH(c->arena, &c->graph.v[k].callee) = to;
        }
    }
    uint32_t *seen = ARENA_ARRAY(c->arena, c->graph.n, uint32_t);
    uint32_t *list = ARENA_ARRAY(c->arena, c->graph.n, uint32_t);
    for (uint32_t k = 0; k < c->graph.n; k++)
        needed |= c->graph.v[k].recursive = comes_back(c, k, seen, list);
    return needed;
}

bool routine_recurses(const struct copy *c, const struct ptx_func *f)
{
    for (size_t i = 0; i < c->graph.n; i++)
        if (c->graph.v[i].func == f)
            return c->graph.v[i].recursive;
    return false;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static uint32_t add_slot(struct copy *c, struct routine *r, const struct ptx_var *v, uint64_t bytes,
                         uint32_t align)
{
    r->frame = round_to(r->frame, align < ALIGN ? align ? align : 1 : ALIGN);
    *VEC_PUSH(c->arena, &r->slot) = (struct framed){v, r->frame};
    r->frame += bytes < STACK ? (uint32_t)bytes : STACK;
    return r->slot.v[r->slot.n - 1].at;
}

uint32_t routine_slot(struct copy *c, struct routine *r, const struct ptx_var *v)
{
    for (size_t i = 0; i < r->slot.n; i++)
        if (r->slot.v[i].var == v)
            return r->slot.v[i].at;
    return add_slot(c, r, v, ptx_var_bytes(v), ptx_var_align(v));
}

static void add_params(struct copy *c, struct routine *r, const struct ptx_func *f, bool results)
{
    const size_t n = results ? f->results.n : f->params.n;
    for (size_t i = 0; i < n; i++) {
        const struct ptx_var *p = results ? f->results.v[i] : f->params.v[i];
        const bool in_memory = ptx_space(p->space) == PTX_PARAM;
        if (p->is_array && p->count == 0)
            diag_error(c->diags, f->span,
                       "the simulator can't call '%s', whose arguments vary in number, by its "
                       "address or from itself",
                       f->name);
        /* the same place whether the function or a prototype says how it is aligned */
        add_slot(c, r, in_memory ? inline_local(c, p) : NULL, ptx_var_bytes(p), ALIGN);
    }
}

static struct routine *routine_of(struct copy *c, const struct ptx_func *f)
{
    for (size_t i = 0; i < c->routines.n; i++)
        if (c->routines.v[i]->func == f)
            return c->routines.v[i];
    struct routine *r = ARENA_NEW(c->arena, struct routine);
    *r = (struct routine){.func = f, .recursive = routine_recurses(c, f)};
    r->start = ptx_label_new(&c->b, "routine");
    r->end = ptx_label_new(&c->b, "return");
    add_params(c, r, f, false);
    add_params(c, r, f, true);
    *VEC_PUSH(c->arena, &c->routines) = r;
    return r;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A register from 1, 2, 4, 8 or 16 bytes of local memory, or there. */
static void load(struct copy *c, unsigned bytes, int32_t reg, struct ptx_operand at)
{
    static const char *const name[] = {[1] = "ld.local.b8",
                                       [2] = "ld.local.b16",
                                       [4] = "ld.local.b32",
                                       [8] = "ld.local.b64",
                                       [16] = "ld.local.b128"};
    PTX(&c->b, name[bytes], ptx_r(reg), at);
}

static void store(struct copy *c, unsigned bytes, int32_t reg, struct ptx_operand at)
{
    static const char *const name[] = {[1] = "st.local.b8",
                                       [2] = "st.local.b16",
                                       [4] = "st.local.b32",
                                       [8] = "st.local.b64",
                                       [16] = "st.local.b128"};
    PTX(&c->b, name[bytes], at, ptx_r(reg));
}

/* Copies bytes from one place to another, both [register or variable + offset]. */
static void copy_bytes(struct copy *c, struct ptx_operand to, struct ptx_operand from,
                       uint64_t bytes, uint32_t align)
{
    const int32_t wide = ptx_reg_new(&c->b, PTX_B64), word = ptx_reg_new(&c->b, PTX_B32);
    for (uint64_t at = 0; at < bytes;) {
        unsigned each = 8;
        while (each > align || each > bytes - at)
            each /= 2;
        const int32_t t = each == 8 ? wide : word;
        load(c, each, t, from);
        store(c, each, t, to);
        at += each;
        from.bits += each;
        to.bits += each;
    }
}

/* An argument goes to a place, or a result comes from there. */
static void carry(struct copy *c, const struct body *b, const struct ptx_var *param,
                  const struct ptx_operand *arg, struct ptx_operand at, bool result)
{
    if (arg->kind == PTX_O_SINK)
        return;
    if (arg->kind == PTX_O_SYM) {
        const struct ptx_operand own = inline_memory(c, b, arg->var, arg->bits);
        uint32_t align = ptx_var_align(arg->var);
        align = align > ptx_var_align(param) ? ptx_var_align(param) : align;
        copy_bytes(c, result ? own : at, result ? at : own, ptx_var_bytes(param), align);
        return;
    }
    const char *type = ptx_mod_text(param->type);
    char mnemonic[32];
    snprintf(mnemonic, sizeof mnemonic, "%s.local.%s", result ? "ld" : "st", type);
    PTX(&c->b, mnemonic, result ? *arg : at, result ? at : *arg);
}

static void carry_all(struct copy *c, const struct body *b, const struct routine *r,
                      const struct ptx_inst *call, bool results)
{
    const size_t nparam = r->func->params.n;
    const size_t n = results ? r->func->results.n : nparam;
    for (size_t i = 0; i < n; i++)
        carry(c, b, results ? r->func->results.v[i] : r->func->params.v[i],
              &call->operand[results ? 0 : 2].elem[i],
              ptx_mem(c->sp, r->slot.v[results ? nparam + i : i].at), results);
}

/* To r, and back to that label. */
static void jump(struct copy *c, struct routine *r, uint32_t behind)
{
    PTX(&c->b, "mov.u32", ptx_r(c->next), ptx_imm((int64_t)r->site.n));
    *VEC_PUSH(c->arena, &r->site) = behind;
    PTX(&c->b, "bra", ptx_label(r->start));
}

static void branch_by(struct copy *c, int32_t index, const char *what, uint32_t n,
                      const uint32_t *labels)
{
    const uint32_t list = ptx_label_new(&c->b, what);
    ptx_label_here(&c->b, list);
    struct ptx_item *item = VEC_PUSH(c->arena, &c->func->items);
    *item = (struct ptx_item){.kind = PTX_I_TARGETS, .span = c->b.span};
    uint32_t *to = ARENA_ARRAY(c->arena, n, uint32_t);
    memcpy(to, labels, n * sizeof *to);
    item->target = to;
    item->ntarget = n;
    PTX(&c->b, "brx.idx", ptx_r(index), ptx_label(list));
}

/* The address in a register says where. Functions that it can't be, and what is no address, are
 * faults. */
static void dispatch(struct copy *c, struct ptx_operand address, const func_list *callees,
                     uint32_t behind)
{
    const uint32_t n = sim_functions(c->module), trap = ptx_label_new(&c->b, "trap");
    uint32_t *labels = ARENA_ARRAY(c->arena, n, uint32_t);
    for (uint32_t i = 0; i < n; i++)
        labels[i] = trap;
    for (size_t i = 0; i < callees->n; i++)
        labels[sim_function_number(c->module, callees->v[i])] = ptx_label_new(&c->b, "callee");
    const int32_t t = ptx_reg_new(&c->b, PTX_B64), index = ptx_reg_new(&c->b, PTX_B32);
    PTX(&c->b, "sub.u64", ptx_r(t), address, ptx_imm((int64_t)SIM_CODE_BASE));
    PTX(&c->b, "shr.u64", ptx_r(t), ptx_r(t), ptx_imm(4));
    PTX(&c->b, "min.u64", ptx_r(t), ptx_r(t), ptx_imm(n));
    PTX(&c->b, "cvt.u32.u64", ptx_r(index), ptx_r(t));
    branch_by(c, index, &SIM_FUNCTIONS[1], n, labels);
    for (size_t i = 0; i < callees->n; i++) {
        ptx_label_here(&c->b, labels[sim_function_number(c->module, callees->v[i])]);
        jump(c, routine_of(c, callees->v[i]), behind);
    }
    ptx_label_here(&c->b, trap);
    PTX0(&c->b, "trap");
}

bool routine_call(struct copy *c, struct body *b, const struct ptx_item *item,
                  const struct ptx_func *f)
{
    struct ptx_inst call = item->inst;
    call.operand = ARENA_ARRAY(c->arena, 3, struct ptx_operand);
    for (int i = 0; i < 3; i++)
        call.operand[i] = inline_operand(c, b, &item->inst.operand[i], false);
    func_list callees = {0};
    add_callees(c, &call, &callees);
    const uint32_t over = ptx_label_new(&c->b, "over"), behind = ptx_label_new(&c->b, "behind");
    if (call.guard >= 0)
        ptx_emit(&c->b, call.guard + b->first_reg, !call.guard_neg, "bra",
                 PTX_ARGS(ptx_label(over)));
    if (!callees.n) { /* no address is that of such a function: a fault, if it is reached */
        dispatch(c, call.operand[1], &callees, over);
        ptx_label_here(&c->b, over);
        return true;
    }
    struct routine *r = routine_of(c, callees.v[0]);
    carry_all(c, b, r, &call, false);
    if (f)
        jump(c, r, behind);
    else
        dispatch(c, call.operand[1], &callees, behind);
    ptx_label_here(&c->b, behind);
    carry_all(c, b, r, &call, true);
    ptx_label_here(&c->b, over);
    return true;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

bool routine_begin(struct copy *c, const struct body *entry)
{
    c->sp = -1;
    if (!make_graph(c, entry->func))
        return true;
    struct ptx_var *stack = ARENA_NEW(c->arena, struct ptx_var);
    *stack = (struct ptx_var){.name = SIM_STACK,
                              .space = PTX_LOCAL,
                              .type = PTX_B8,
                              .align = ALIGN,
                              .is_array = true,
                              .count = STACK,
                              .linkage = "",
                              .span = entry->func->span};
    c->stack = stack;
    c->b.span = entry->func->span;
    c->sp = ptx_reg_new(&c->b, PTX_B64);
    c->next = ptx_reg_new(&c->b, PTX_B32);
    c->begin = ptx_label_new(&c->b, "begin");
    c->body = ptx_label_new(&c->b, "body");
    /* the stack is named last, so that it comes behind all other local variables */
    PTX(&c->b, "bra", ptx_label(c->begin));
    ptx_label_here(&c->b, c->body);
    return true;
}

static void note_used(const struct ptx_operand *o, const struct routine *r, bool *used)
{
    const int32_t reg[] = {o->reg, o->reg2};
    for (int i = 0; i < 2; i++)
        if (reg[i] >= r->first_reg && reg[i] < r->last_reg)
            used[reg[i] - r->first_reg] = true;
    for (uint32_t i = 0; i < o->nelem; i++)
        note_used(&o->elem[i], r, used);
}

/* The routine's registers that its bodies name. */
static bool *used_registers(struct copy *c, const struct routine *r)
{
    bool *used = ARENA_ARRAY(c->arena, (size_t)(r->last_reg - r->first_reg), bool);
    for (uint32_t i = r->first_item; i < r->last_item; i++) {
        const struct ptx_inst *in = &c->func->items.v[i].inst;
        if (c->func->items.v[i].kind != PTX_I_INST)
            continue;
        if (in->guard >= r->first_reg && in->guard < r->last_reg)
            used[in->guard - r->first_reg] = true;
        for (uint32_t k = 0; k < in->noperand; k++)
            note_used(&in->operand[k], r, used);
    }
    return used;
}

/* The place where a register is saved that comes behind *end bytes of others. */
static uint32_t save_at(unsigned bits, uint32_t *end)
{
    const uint32_t bytes = bits > 64 ? 2 * SLOT : SLOT, at = round_to(*end, bytes);
    *end = at + bytes;
    return at;
}

/* Saves the registers of a routine that may come to itself at [sp + ...], or takes them from
 * there. */
static void keep(struct copy *c, const struct routine *r, const bool *used, bool back)
{
    const int32_t word = ptx_reg_new(&c->b, PTX_B32);
    uint32_t end = r->save;
    for (int32_t reg = r->first_reg; reg < r->last_reg; reg++) {
        if (!used[reg - r->first_reg])
            continue;
        const unsigned bits = ptx_type_bits(c->func->regs.v[reg].type);
        const struct ptx_operand to = ptx_mem(c->sp, save_at(bits, &end));
        if (bits == 1 && back) {
            load(c, 4, word, to);
            PTX(&c->b, "setp.ne.u32", ptx_r(reg), ptx_r(word), ptx_imm(0));
        } else if (bits == 1) {
            PTX(&c->b, "selp.b32", ptx_r(word), ptx_imm(1), ptx_imm(0), ptx_r(reg));
            store(c, 4, word, to);
        } else if (back) {
            load(c, bits / 8, reg, to);
        } else {
            store(c, bits / 8, reg, to);
        }
    }
}

/* Parameters and results in registers. */
static void pass_registers(struct copy *c, const struct routine *r, int32_t first_reg, bool results)
{
    const struct ptx_func *f = r->func;
    const size_t n = results ? f->results.n : f->params.n;
    for (size_t i = 0; i < n; i++) {
        const struct ptx_var *v = results ? f->results.v[i] : f->params.v[i];
        const struct framed *slot = &r->slot.v[results ? f->params.n + i : i];
        if (slot->var)
            continue;
        const struct ptx_operand reg = ptx_r(first_reg + inline_param_reg(f, v));
        const struct ptx_operand at = ptx_mem(r->fp, slot->at);
        char mnemonic[32];
        snprintf(mnemonic, sizeof mnemonic, "%s.local.%s", results ? "st" : "ld",
                 ptx_mod_text(v->type));
        PTX(&c->b, mnemonic, results ? at : reg, results ? reg : at);
    }
}

/* What is made for the function as such comes from where it begins in the source. */
static void copy_loc(struct copy *c, const struct ptx_func *f)
{
    for (size_t i = 0; i < f->items.n; i++)
        if (f->items.v[i].kind == PTX_I_LOC) {
            *VEC_PUSH(c->arena, &c->func->items) = f->items.v[i];
            return;
        }
}

static bool copy_routine(struct copy *c, struct routine *r)
{
    const struct ptx_func *f = r->func;
    struct body b = {.func = f, .routine = r, .end = ptx_label_new(&c->b, "end")};
    const uint32_t start = ptx_label_new(&c->b, "enter");
    r->first_reg = (int32_t)c->func->regs.n;
    r->fp = ptx_reg_new(&c->b, PTX_B64);
    r->back = ptx_reg_new(&c->b, PTX_B32);
    inline_room(c, &b);
    for (size_t i = 0; i < f->params.n + f->results.n; i++)
        if (r->slot.v[i].var)
            inline_rename(c, &b, i < f->params.n ? f->params.v[i] : f->results.v[i - f->params.n],
                          r->slot.v[i].var);
    r->first_item = (uint32_t)c->func->items.n;
    ptx_label_here(&c->b, start);
    PTX(&c->b, "mov.u64", ptx_r(r->fp), ptx_r(c->sp));
    PTX(&c->b, "mov.u32", ptx_r(r->back), ptx_r(c->next));
    pass_registers(c, r, b.first_reg, false);
    /* its size is not known yet: the item is mended below */
    const uint32_t grow = (uint32_t)c->func->items.n;
    PTX(&c->b, "add.u64", ptx_r(c->sp), ptx_r(c->sp), ptx_imm(0));
    if (!inline_body(c, &b))
        return false;
    c->b.span = f->span;
    ptx_label_here(&c->b, b.end);
    pass_registers(c, r, b.first_reg, true);
    PTX(&c->b, "mov.u64", ptx_r(c->sp), ptx_r(r->fp));
    PTX(&c->b, "mov.u32", ptx_r(c->next), ptx_r(r->back));
    PTX(&c->b, "bra", ptx_label(r->end));
    r->last_item = (uint32_t)c->func->items.n;
    r->last_reg = (int32_t)c->func->regs.n;
    r->save = round_to(r->frame, ALIGN);
    const bool *used = used_registers(c, r);
    uint32_t end = r->save;
    for (int32_t reg = r->first_reg; r->recursive && reg < r->last_reg; reg++)
        if (used[reg - r->first_reg])
            save_at(ptx_type_bits(c->func->regs.v[reg].type), &end);
    r->frame = round_to(end, ALIGN);
    c->func->items.v[grow].inst.operand[2].bits = r->frame;
    ptx_label_here(&c->b, r->start);
    copy_loc(c, f);
    if (r->recursive)
        keep(c, r, used, false);
    PTX(&c->b, "bra", ptx_label(start));
    return true;
}

/* When all calls are known. */
static void end_routine(struct copy *c, const struct routine *r)
{
    c->b.span = r->func->span;
    ptx_label_here(&c->b, r->end);
    copy_loc(c, r->func);
    if (r->recursive)
        keep(c, r, used_registers(c, r), true);
    branch_by(c, c->next, "back", (uint32_t)r->site.n, r->site.v);
}

bool routine_bodies(struct copy *c)
{
    if (c->sp < 0)
        return true;
    c->b.span = c->func->span;
    PTX0(&c->b, "ret");
    for (size_t i = 0; i < c->routines.n; i++)
        if (!copy_routine(c, c->routines.v[i]))
            return false;
    for (size_t i = 0; i < c->routines.n; i++)
        end_routine(c, c->routines.v[i]);
    ptx_label_here(&c->b, c->begin);
    PTX(&c->b, "mov.u64", ptx_r(c->sp), ptx_sym(c->stack));
    PTX(&c->b, "bra", ptx_label(c->body));
    return true;
}
