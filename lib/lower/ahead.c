/* Straight code in two parts (cg.h): from its end backwards, a load belongs to the first part, and so does all that writes a
 * register which the first part reads, or writes only where a predicate holds.
 */
#include <config.h>

#include "lower/cg.h"

#include <string.h>

static void note_reads(const struct ptx_operand *o, bool is_write, bool *needed)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        note_reads(&o->elem[i], is_write, needed);
    if (o->kind != PTX_O_MEM && (o->kind != PTX_O_REG || is_write))
        return;
    if (o->reg >= 0)
        needed[o->reg] = true;
    if (o->kind == PTX_O_REG && o->reg2 >= 0)
        needed[o->reg2] = true;
}

static bool writes_any(const struct ptx_operand *o, const bool *needed)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        if (writes_any(&o->elem[i], needed))
            return true;
    return o->kind == PTX_O_REG &&
           ((o->reg >= 0 && needed[o->reg]) || (o->reg2 >= 0 && needed[o->reg2]));
}

static bool belongs(const struct ptx_inst *in, const bool *needed)
{
    if (in->op == PTX_OP_LD)
        return true;
    for (unsigned k = 0; k < in->noperand; k++)
        if (dce_writes(in, k) && writes_any(&in->operand[k], needed))
            return true;
    return false;
}

static bool is_straight(const struct ptx_item *it)
{
    return it->kind == PTX_I_COMMENT || it->kind == PTX_I_LOC ||
           (it->kind == PTX_I_INST && !dce_acts(&it->inst));
}

bool cg_take_apart(struct cg *g, size_t first, struct cg_ahead *a)
{
    struct ptx_func *f = g->func;
    const size_t n = f->items.n - first;
    for (size_t i = 0; i < n; i++)
        if (!is_straight(&f->items.v[first + i]))
            return false;
    bool *needed = ARENA_ARRAY(g->a, f->regs.n, bool), *early = ARENA_ARRAY(g->a, n, bool);
    for (size_t i = n; i-- > 0;) {
        const struct ptx_inst *in = &f->items.v[first + i].inst;
        early[i] = f->items.v[first + i].kind == PTX_I_INST && belongs(in, needed);
        for (unsigned k = 0; k < in->noperand && early[i]; k++)
            note_reads(&in->operand[k], dce_writes(in, k) && in->guard < 0, needed);
        if (early[i] && in->guard >= 0)
            needed[in->guard] = true;
    }
    *a = (struct cg_ahead){.load = ARENA_ARRAY(g->a, n, struct ptx_item),
                           .rest = ARENA_ARRAY(g->a, n, struct ptx_item)};
    for (size_t i = 0; i < n; i++)
        *(early[i] ? &a->load[a->nload++] : &a->rest[a->nrest++]) = f->items.v[first + i];
    f->items.n = first;
    return true;
}

static struct ptx_operand *copy(struct arena *a, const struct ptx_operand *v, size_t n)
{
    struct ptx_operand *c = ARENA_ARRAY(a, n, struct ptx_operand);
    for (size_t i = 0; i < n; i++) {
        c[i] = v[i];
        if (v[i].nelem)
            c[i].elem = copy(a, v[i].elem, v[i].nelem);
    }
    return c;
}

/* Operands of their own: registers are numbered anew in place. */
void cg_append(struct cg *g, const struct ptx_item *v, size_t n)
{
    struct arena *a = g->module->arena;
    for (size_t i = 0; i < n; i++) {
        struct ptx_item *it = VEC_PUSH(a, &g->func->items);
        *it = v[i];
        it->inst.operand = copy(a, v[i].inst.operand, v[i].inst.noperand);
    }
}
