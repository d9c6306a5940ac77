#include <config.h>

#include "lower/pass/pass.h"

#include <string.h>

/* Everything that the emitter writes with a destination and that does nothing else may go when the
 * result is unread. */
bool dce_acts(const struct ptx_inst *in)
{
    return ptx_op_acts(in->op);
}

bool dce_writes(const struct ptx_inst *in, unsigned k)
{
    return ptx_op_writes(in->op) >> k & 1;
}

/* Few operands have elements: here and in hoist.c what walks over these is apart, so that the rest
 * is done in place. */
static void count_elements(const struct ptx_operand *o, bool is_write, uint32_t *reads, uint32_t n);

/* Adds n to the count of every register that the operand reads. */
static inline void count_reads(const struct ptx_operand *o, bool is_write, uint32_t *reads,
                               uint32_t n)
{
    if (o->nelem)
        count_elements(o, is_write, reads, n);
    if (o->kind == PTX_O_MEM ? o->reg >= 0 : o->kind == PTX_O_REG && !is_write) {
        reads[o->reg] += n;
        if (o->kind == PTX_O_REG && o->reg2 >= 0)
            reads[o->reg2] += n;
    }
}

/* Of a group, or a tensor's coordinates. */
static void count_elements(const struct ptx_operand *o, bool is_write, uint32_t *reads, uint32_t n)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        count_reads(&o->elem[i], is_write, reads, n);
}

static bool is_any_read(const struct ptx_operand *group, const uint32_t *reads);

static inline bool is_read(const struct ptx_operand *o, const uint32_t *reads)
{
    if (o->kind == PTX_O_VEC)
        return is_any_read(o, reads);
    return o->kind == PTX_O_REG && (reads[o->reg] || (o->reg2 >= 0 && reads[o->reg2]));
}

static bool is_any_read(const struct ptx_operand *group, const uint32_t *reads)
{
    for (uint32_t i = 0; i < group->nelem; i++)
        if (is_read(&group->elem[i], reads))
            return true;
    return false;
}

static void count_inst(const struct ptx_inst *in, uint32_t *reads, uint32_t n)
{
    const unsigned writes = ptx_op_writes(in->op);
    for (unsigned k = 0; k < in->noperand; k++)
        count_reads(&in->operand[k], writes >> k & 1, reads, n);
    if (in->guard >= 0)
        reads[in->guard] += n;
}

static bool is_dead(const struct ptx_inst *in, const uint32_t *reads)
{
    if (dce_acts(in))
        return false;
    const unsigned writes = ptx_op_writes(in->op);
    bool any = false;
    for (unsigned k = 0; k < in->noperand; k++) {
        if (!(writes >> k & 1))
            continue;
        any = true;
        if (is_read(&in->operand[k], reads))
            return false;
    }
    return any;
}

/* A branch to what comes next anyway: an if whose arm came to nothing. next: the next instruction
 * that stays. Such branches are worse than useless: ptxas 13.0 crashes on two of them under the
 * same condition. */
static bool leads_on(const struct ptx_func *f, const struct ptx_inst *in, size_t i, size_t next)
{
    if (in->op != PTX_OP_BRA || in->operand[0].kind != PTX_O_LABEL)
        return false;
    const size_t to = f->labels.v[in->operand[0].label].item;
    return to > i && to < next;
}

static void remove_items(struct ptx_func *f, const bool *gone, const uint32_t *jumps)
{
    size_t n = 0;
    for (size_t i = 0; i < f->items.n; i++) {
        struct ptx_item it = f->items.v[i];
        if (gone[i] || (it.kind == PTX_I_LABEL && !jumps[it.label]))
            continue;
        if (it.kind == PTX_I_LABEL)
            f->labels.v[it.label].item = (uint32_t)n;
        f->items.v[n++] = it;
    }
    f->items.n = n;
}

/* Labels that were made but never needed go, and the others are numbered again. */
static void remove_labels(struct arena *a, struct ptx_func *f, const uint32_t *jumps)
{
    uint32_t *number = ARENA_ARRAY(a, f->labels.n, uint32_t), n = 0;
    for (uint32_t i = 0; i < f->labels.n; i++)
        if (jumps[i]) {
            number[i] = n;
            f->labels.v[n++] = f->labels.v[i];
        }
    f->labels.n = n;
    for (size_t i = 0; i < f->items.n; i++) {
        struct ptx_item *it = &f->items.v[i];
        if (it->kind == PTX_I_LABEL)
            it->label = number[it->label];
        for (unsigned k = 0; it->kind == PTX_I_INST && k < it->inst.noperand; k++)
            if (it->inst.operand[k].kind == PTX_O_LABEL)
                it->inst.operand[k].label = number[it->inst.operand[k].label];
    }
}

void pass_dce(struct arena *a, struct ptx_func *f)
{
    uint32_t *reads = ARENA_ARRAY(a, f->regs.n, uint32_t);
    uint32_t *jumps = ARENA_ARRAY(a, f->labels.n, uint32_t);
    bool *gone = ARENA_ARRAY(a, f->items.n, bool);
    for (size_t i = 0; i < f->items.n; i++)
        if (f->items.v[i].kind == PTX_I_INST)
            count_inst(&f->items.v[i].inst, reads, 1);
    /* backwards, so that what only fed a dead instruction is dead by the time it is met */
    size_t next = f->items.n;
    for (size_t i = f->items.n; i-- > 0;) {
        struct ptx_item *it = &f->items.v[i];
        if (it->kind != PTX_I_INST)
            continue;
        if (is_dead(&it->inst, reads) || leads_on(f, &it->inst, i, next)) {
            gone[i] = true;
            count_inst(&it->inst, reads, UINT32_MAX); /* minus one */
            continue;
        }
        next = i;
        for (unsigned k = 0; k < it->inst.noperand; k++)
            if (it->inst.operand[k].kind == PTX_O_LABEL)
                jumps[it->inst.operand[k].label]++;
    }
    remove_items(f, gone, jumps);
    remove_labels(a, f, jumps);
}
