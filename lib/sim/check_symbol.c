/* Which variable an address comes from.
 *
 * A register holds addresses of one variable when every instruction that writes it copies one, or
 * adds something that is no address to one. That is found by going over the code until nothing
 * changes; where two variables meet, or an address goes through anything else, nothing is known, so
 * a check never fails by mistake.
 *
 * Arrays in dynamic shared memory start at the one variable for all of it: the first there, the
 * others where hidden parameters ($0) say, which the launch's values tell apart.
 */
#include <config.h>

#include "sim/check.h"
#include "sim/flight.h"

/* What is known of a register: UNSEEN < the address of a variable, or a number < ANY. */
enum { UNSEEN, NUMBER, ANY, FIRST_VAR };

struct walk {
    const struct sim_code *code;
    const struct device_launch *what;
    uint32_t *state; /* by register; FIRST_VAR + i: address in variable i of code->vars; + nvar
                      * more: where it starts in dynamic shared memory */
    uint32_t nvar;
    uint32_t dynamic; /* the state of dynamic shared memory's address; 0: there is none, or arrays
                         can't be told apart */
    uint64_t base;    /* where it starts */
    bool changed;
};

/* ---- dynamic shared memory ------------------------------------------------------------------- */

/* The value of a hidden parameter of 64 bits. */
static bool hidden_value(const struct walk *k, const struct ptx_var *v, uint64_t *value)
{
    const struct ptx_func *f = k->code->func;
    for (size_t i = 0; i < f->params.n && i < k->what->narg; i++)
        if (f->params.v[i] == v && *v->name == '$' && k->what->arg_bytes[i] == 8) {
            memcpy(value, k->what->args[i], 8);
            return true;
        }
    return false;
}

static bool is_hidden_value(const struct walk *k, uint64_t wanted)
{
    const struct ptx_func *f = k->code->func;
    uint64_t value;
    for (size_t i = 0; i < f->params.n; i++)
        if (hidden_value(k, f->params.v[i], &value) && value == wanted)
            return true;
    return false;
}

static void find_dynamic(struct walk *k)
{
    for (uint32_t i = 0; i < k->nvar; i++) {
        const struct sim_symbol *s = &k->code->vars.list.v[i];
        if (ptx_space(s->var->space) == PTX_SHARED && s->var->is_array && !s->var->count) {
            k->dynamic = k->what->narray ? FIRST_VAR + i : 0;
            k->base = s->address;
        }
    }
    for (size_t i = 0; i < k->what->narray; i++)
        if (k->what->array[i].at && !is_hidden_value(k, k->what->array[i].at))
            k->dynamic = 0;
}

/* The sized array at an offset in it; nvar: none. */
static uint32_t array_at(const struct walk *k, uint64_t offset)
{
    for (uint32_t i = 0; i < k->nvar; i++) {
        const struct sim_symbol *s = &k->code->vars.list.v[i];
        if (ptx_space(s->var->space) == PTX_SHARED && s->var->count &&
            s->address == k->base + offset)
            return i;
    }
    return k->nvar;
}

/* What a load from a parameter gives. */
static uint32_t of_param(const struct walk *k, const struct ptx_var *v)
{
    uint64_t value;
    if (!k->dynamic || !hidden_value(k, v, &value))
        return NUMBER;
    const uint32_t i = array_at(k, value);
    return i < k->nvar && value ? FIRST_VAR + k->nvar + i : ANY;
}

static bool is_offset(const struct walk *k, uint32_t state)
{
    return state >= FIRST_VAR + k->nvar;
}

/* ---- registers ------------------------------------------------------------------------------- */

static uint32_t of_var(const struct walk *k, const struct ptx_var *v)
{
    const enum ptx_mod space = ptx_space(v->space);
    if (space != PTX_SHARED && space != PTX_LOCAL)
        return NUMBER;
    for (uint32_t i = 0; i < k->code->vars.list.n; i++)
        if (k->code->vars.list.v[i].var == v)
            return FIRST_VAR + i;
    return ANY;
}

static uint32_t of_operand(const struct walk *k, const struct ptx_operand *o)
{
    switch (o->kind) {
    case PTX_O_REG: return o->reg >= 0 ? k->state[o->reg] : NUMBER;
    case PTX_O_SYM: return of_var(k, o->var);
    case PTX_O_MEM: return o->var ? of_var(k, o->var) : o->reg >= 0 ? k->state[o->reg] : NUMBER;
    case PTX_O_VEC: return ANY;
    default: return NUMBER;
    }
}

static uint32_t meet(uint32_t a, uint32_t b)
{
    return a == UNSEEN ? b : b == UNSEEN || a == b ? a : ANY;
}

/* a + b */
static uint32_t sum(const struct walk *k, uint32_t a, uint32_t b)
{
    if (a == UNSEEN || b == UNSEEN)
        return UNSEEN;
    if (is_offset(k, a) && b == k->dynamic)
        return a - k->nvar;
    if (is_offset(k, b) && a == k->dynamic)
        return b - k->nvar;
    return a == NUMBER ? b : b == NUMBER ? a : ANY;
}

/* The symbol of what an instruction makes of numbers. */
static uint32_t other(const struct walk *k, const struct ptx_inst *in)
{
    uint32_t all = NUMBER;
    for (uint32_t i = 1; i < in->noperand; i++) {
        const uint32_t s = of_operand(k, &in->operand[i]);
        if (s == UNSEEN)
            all = all == NUMBER ? UNSEEN : all;
        else if (s != NUMBER && !is_offset(k, s))
            all = ANY;
    }
    return all;
}

static uint32_t result(const struct walk *k, const struct ptx_inst *in)
{
    const char *name = ptx_op_name(in->op);
    const struct ptx_operand *o = in->operand;
    if (strcmp(name, "ld") == 0 && o[1].kind == PTX_O_MEM && o[1].var &&
        ptx_space(o[1].var->space) == PTX_PARAM)
        return of_param(k, o[1].var);
    if (strcmp(name, "ld") == 0 || strcmp(name, "atom") == 0 || strcmp(name, "ldu") == 0)
        return NUMBER; /* an index, most often; by itself no variable's address */
    if (in->noperand == 2 &&
        (strcmp(name, "mov") == 0 || strcmp(name, "cvta") == 0 || strcmp(name, "cvt") == 0))
        return of_operand(k, &o[1]);
    if (in->noperand == 3 && strcmp(name, "add") == 0)
        return sum(k, of_operand(k, &o[1]), of_operand(k, &o[2]));
    if (in->noperand == 3 && strcmp(name, "sub") == 0) {
        const uint32_t b = of_operand(k, &o[2]);
        return b == NUMBER || b == UNSEEN ? sum(k, of_operand(k, &o[1]), b) : ANY;
    }
    if (in->noperand == 4 && strcmp(name, "mad") == 0) {
        const uint32_t a = of_operand(k, &o[1]), b = of_operand(k, &o[2]);
        if (a == UNSEEN || b == UNSEEN)
            return UNSEEN;
        return a == NUMBER && b == NUMBER ? sum(k, of_operand(k, &o[3]), NUMBER) : ANY;
    }
    if (in->noperand == 4 && strcmp(name, "selp") == 0)
        return meet(of_operand(k, &o[1]), of_operand(k, &o[2]));
    return other(k, in);
}

static void assign(struct walk *k, const struct ptx_operand *d, uint32_t state)
{
    for (uint32_t i = 0; i < d->nelem; i++)
        assign(k, &d->elem[i], state);
    const int32_t reg[2] = {d->kind == PTX_O_REG ? d->reg : -1,
                            d->kind == PTX_O_REG ? d->reg2 : -1};
    for (int i = 0; i < 2; i++) {
        if (reg[i] < 0)
            continue;
        const uint32_t now = meet(k->state[reg[i]], state);
        k->changed = k->changed || now != k->state[reg[i]];
        k->state[reg[i]] = now;
    }
}

static void walk(struct walk *k)
{
    const struct ptx_func *f = k->code->func;
    do {
        k->changed = false;
        for (size_t i = 0; i < f->items.n; i++) {
            const struct ptx_inst *in = &f->items.v[i].inst;
            if (f->items.v[i].kind == PTX_I_INST && in->noperand)
                assign(k, &in->operand[0], result(k, in));
        }
    } while (k->changed);
}

/* The address operand of a load, store or atomic. */
static const struct ptx_operand *address_of(const struct ptx_inst *in)
{
    for (uint32_t i = 0; i < in->noperand; i++)
        if (in->operand[i].kind == PTX_O_MEM)
            return &in->operand[i];
    return NULL;
}

static void bound(struct check_op *o, const struct sim_op *op, const struct sim_symbol *s)
{
    const enum ptx_mod space = ptx_space(s->var->space);
    uint64_t base = s->address;
    if (op->more == SIM_IN_GENERIC)
        base += space == PTX_SHARED ? SIM_SHARED_BASE : SIM_LOCAL_BASE;
    else if (op->more != (space == PTX_SHARED ? SIM_IN_SHARED : SIM_IN_LOCAL))
        return;
    o->var = s->var;
    o->low = base;
    o->high = base + ptx_var_bytes(s->var);
}

/* The variable that an address with this state is in; NULL: not known. */
static const struct sim_symbol *variable(const struct walk *k, uint32_t state)
{
    if (state < FIRST_VAR || is_offset(k, state))
        return NULL;
    const struct sim_symbol *s = &k->code->vars.list.v[state - FIRST_VAR];
    if (s->var->is_array && !s->var->count) {
        const uint32_t i = state == k->dynamic ? array_at(k, 0) : k->nvar;
        return i < k->nvar ? &k->code->vars.list.v[i] : NULL;
    }
    return s;
}

/* The operand of an instruction that moves bytes beside the threads which says where they are in
 * the block's own shared memory; NULL: none does. */
static const struct ptx_operand *flight_of(const struct ptx_inst *in)
{
    switch (in->op) {
    case PTX_OP_CP_BULK_LOAD:
    case PTX_OP_CP_TENSOR_LOAD:
    case PTX_OP_CP_IM2COL_LOAD_3D:
    case PTX_OP_CP_IM2COL_LOAD_4D:
    case PTX_OP_CP_IM2COL_LOAD_5D: return &in->operand[0];
    case PTX_OP_CP_BULK_STORE:
    case PTX_OP_CP_BULK_CLUSTER:
    case PTX_OP_CP_BULK_REDUCE:
    case PTX_OP_CP_BULK_REDUCE_S64:
    case PTX_OP_CP_BULK_REDUCE_BITS:
    case PTX_OP_CP_BULK_REDUCE_INC:
    case PTX_OP_CP_BULK_REDUCE_ADD:
    case PTX_OP_CP_BULK_REDUCE_HALF:
    case PTX_OP_CP_BULK_REDUCE_MINMAX_HALF:
    case PTX_OP_CP_BULK_REDUCE_PEER:
    case PTX_OP_CP_BULK_REDUCE_PEER_U64:
    case PTX_OP_CP_BULK_REDUCE_PEER_BITS:
    case PTX_OP_CP_BULK_REDUCE_PEER_INC:
    case PTX_OP_CP_TENSOR_STORE:
    case PTX_OP_CP_TENSOR_REDUCE:
    case PTX_OP_CP_IM2COL_STORE:
    case PTX_OP_CP_IM2COL_REDUCE: return &in->operand[1];
    default: return NULL;
    }
}

/* The variables that instructions move bytes from or to beside the threads. */
static void bound_flight(const struct walk *k, struct check_op *o, const struct ptx_inst *in)
{
    const struct ptx_operand *m = flight_of(in);
    const struct sim_symbol *s = m ? variable(k, of_operand(k, m)) : NULL;
    if (!s || ptx_space(s->var->space) != PTX_SHARED)
        return;
    o->var = s->var;
    o->low = s->address;
    o->high = s->address + ptx_var_bytes(s->var);
}

bool sim_check_flight_strays(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                             const struct sim_flight *f)
{
    const struct check_op *o = &w->block->launch->check->op[op - w->code];
    const uint64_t at = f->kind == SIM_FLY_PEER ? f->from : f->shared;
    if (!o->var || (at >= o->low && at + f->extent <= o->high))
        return false;
    struct sim_fault *fault = &w->block->fault;
    sim_fault_at(w, op, lane, SIM_F_BOUNDS);
    fault->address = at;
    fault->bytes = f->extent;
    fault->store = f->kind == SIM_FLY_LOAD;
    fault->space = SIM_IN_SHARED;
    fault->var = o->var;
    return true;
}

void check_symbols(struct check *c, const struct sim_code *code)
{
    const struct ptx_func *f = code->func;
    struct walk k = {.code = code,
                     .what = c->launch->what,
                     .state = ARENA_ARRAY(c->launch->arena, f->regs.n, uint32_t),
                     .nvar = (uint32_t)code->vars.list.n};
    find_dynamic(&k);
    walk(&k);
    for (uint32_t i = 0; i < code->nop && i < CHECK_OPS; i++) {
        struct check_op *o = &c->op[i];
        const uint32_t item = code->op[i].item;
        if (o->kind == CHECK_OTHER && item < f->items.n && f->items.v[item].kind == PTX_I_INST)
            bound_flight(&k, o, &f->items.v[item].inst);
        if (o->kind != CHECK_LOAD && o->kind != CHECK_STORE && o->kind != CHECK_ATOMIC &&
            o->kind != CHECK_COPY)
            continue;
        const struct ptx_operand *m = address_of(&f->items.v[code->op[i].item].inst);
        const struct sim_symbol *s = m ? variable(&k, of_operand(&k, m)) : NULL;
        if (s)
            bound(o, &code->op[i], s);
    }
}
