/* Which variable an address comes from.
 *
 * A register holds addresses of one variable when every instruction that writes it copies one, or adds something
 * that is no address to one. That is found by going over the code until nothing changes; where two variables meet, or
 * an address goes through anything else, nothing is known, so a check never fails by mistake.
 */
#include <config.h>

#include "sim/check.h"

/* What is known of a register: UNSEEN < the address of a variable, or a number < ANY. */
enum { UNSEEN, NUMBER, ANY, FIRST_VAR };

struct walk {
    const struct sim_code *code;
    uint32_t *state; /* by register; FIRST_VAR + index into code->vars */
    bool changed;
};

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
static uint32_t sum(uint32_t a, uint32_t b)
{
    return a == UNSEEN || b == UNSEEN ? UNSEEN : a == NUMBER ? b : b == NUMBER ? a : ANY;
}

/* Of instructions that make numbers of numbers. */
static uint32_t other(const struct walk *k, const struct ptx_inst *in)
{
    uint32_t all = NUMBER;
    for (uint32_t i = 1; i < in->noperand; i++) {
        const uint32_t s = of_operand(k, &in->operand[i]);
        if (s == UNSEEN)
            all = all == NUMBER ? UNSEEN : all;
        else if (s != NUMBER)
            all = ANY;
    }
    return all;
}

static uint32_t result(const struct walk *k, const struct ptx_inst *in)
{
    const char *name = ptx_op_name(in->op);
    const struct ptx_operand *o = in->operand;
    if (strcmp(name, "ld") == 0 || strcmp(name, "atom") == 0 || strcmp(name, "ldu") == 0)
        return NUMBER; /* an index, most often; by itself no variable's address */
    if (in->noperand == 2 &&
        (strcmp(name, "mov") == 0 || strcmp(name, "cvta") == 0 || strcmp(name, "cvt") == 0))
        return of_operand(k, &o[1]);
    if (in->noperand == 3 && strcmp(name, "add") == 0)
        return sum(of_operand(k, &o[1]), of_operand(k, &o[2]));
    if (in->noperand == 3 && strcmp(name, "sub") == 0) {
        const uint32_t b = of_operand(k, &o[2]);
        return b == NUMBER || b == UNSEEN ? sum(of_operand(k, &o[1]), b) : ANY;
    }
    if (in->noperand == 4 && strcmp(name, "mad") == 0) {
        const uint32_t a = of_operand(k, &o[1]), b = of_operand(k, &o[2]);
        if (a == UNSEEN || b == UNSEEN)
            return UNSEEN;
        return a == NUMBER && b == NUMBER ? sum(of_operand(k, &o[3]), NUMBER) : ANY;
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
    const bool dynamic = s->var->is_array && !s->var->count;
    const enum ptx_mod space = ptx_space(s->var->space);
    if (dynamic)
        return; /* to the end of the block's memory, which is checked anyway */
    uint64_t base = s->address;
    if (op->more == SIM_IN_GENERIC)
        base += space == PTX_SHARED ? SIM_SHARED_BASE : SIM_LOCAL_BASE;
    else if (op->more != (space == PTX_SHARED ? SIM_IN_SHARED : SIM_IN_LOCAL))
        return;
    o->var = s->var;
    o->low = base;
    o->high = base + ptx_var_bytes(s->var);
}

void check_symbols(struct check *c, const struct sim_code *code)
{
    const struct ptx_func *f = code->func;
    struct walk k = {.code = code, .state = ARENA_ARRAY(c->launch->arena, f->regs.n, uint32_t)};
    walk(&k);
    for (uint32_t i = 0; i < code->nop && i < CHECK_OPS; i++) {
        struct check_op *o = &c->op[i];
        if (o->kind != CHECK_LOAD && o->kind != CHECK_STORE && o->kind != CHECK_ATOMIC)
            continue;
        const struct ptx_operand *m = address_of(&f->items.v[code->op[i].item].inst);
        const uint32_t state = m ? of_operand(&k, m) : ANY;
        if (state >= FIRST_VAR)
            bound(o, &code->op[i], &code->vars.list.v[state - FIRST_VAR]);
    }
}
