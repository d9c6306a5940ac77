/* Straight code in two parts (pass.h): from its end backwards, a load belongs to the first part,
 * and so does all that writes a register which the first part reads, or writes only where a
 * predicate holds.
 */
#include <config.h>

#include "lower/pass/pass.h"

#include <string.h>

/* Calls on every register that the operand reads, or else on those that it writes. */
static void each_register(struct ptx_operand *o, bool is_write, bool writes,
                          void (*call)(int32_t *reg, void *ctx), void *ctx)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        each_register(&o->elem[i], is_write, writes, call, ctx);
    const bool reads = o->kind == PTX_O_MEM || (o->kind == PTX_O_REG && !is_write);
    if (o->kind != PTX_O_MEM && o->kind != PTX_O_REG)
        return;
    if (reads != writes && o->reg >= 0)
        call(&o->reg, ctx);
    if (reads != writes && o->kind == PTX_O_REG && o->reg2 >= 0)
        call(&o->reg2, ctx);
}

static void each_of(struct ptx_item *it, bool writes, void (*call)(int32_t *reg, void *ctx),
                    void *ctx)
{
    struct ptx_inst *in = &it->inst;
    if (it->kind != PTX_I_INST)
        return;
    for (unsigned k = 0; k < in->noperand; k++)
        each_register(&in->operand[k], dce_writes(in, k), writes, call, ctx);
    if (!writes && in->guard >= 0)
        call(&in->guard, ctx);
}

static void note_needed(int32_t *reg, void *ctx)
{
    bool *needed = ctx;
    needed[*reg] = true;
}

struct asked {
    const bool *needed;
    bool any;
};

static void ask_needed(int32_t *reg, void *ctx)
{
    struct asked *a = ctx;
    a->any |= a->needed[*reg];
}

static bool belongs(struct ptx_item *it, const bool *needed)
{
    struct asked a = {.needed = needed, .any = it->kind == PTX_I_INST && it->inst.op == PTX_OP_LD};
    each_of(it, true, ask_needed, &a);
    return a.any;
}

static bool is_straight(const struct ptx_item *it)
{
    return it->kind == PTX_I_COMMENT || it->kind == PTX_I_LOC ||
           (it->kind == PTX_I_INST && !dce_acts(&it->inst));
}

enum { KEPT = -1, LOADED = -2 }; /* of registers that have no copy, or none yet */

struct moves {
    struct ptx_builder *b;
    struct pass_ahead *a;
    bool fails;
};

static void note_loaded(int32_t *reg, void *ctx)
{
    const struct moves *m = ctx;
    m->a->moved[*reg] = LOADED;
}

static void refuse_loaded(int32_t *reg, void *ctx)
{
    struct moves *m = ctx;
    m->fails |= m->a->moved[*reg] != KEPT;
}

static const char *move_of(enum ptx_mod type)
{
    switch ((int)type) {
    case PTX_PRED: return "mov.pred";
    case PTX_B16:
    case PTX_F16: return "mov.b16";
    case PTX_B64: return "mov.b64";
    case PTX_F32: return "mov.f32";
    case PTX_F64: return "mov.f64";
    default: return "mov.b32";
    }
}

static void read_copy(int32_t *reg, void *ctx)
{
    const struct moves *m = ctx;
    if ((size_t)*reg >= m->a->nreg || m->a->moved[*reg] == KEPT)
        return;
    if (m->a->moved[*reg] == LOADED) {
        const enum ptx_mod type = m->b->func->regs.v[*reg].type;
        const int32_t copy = ptx_reg_new(m->b, type);
        m->a->moved[*reg] = copy;
        PTX(m->b, move_of(type), ptx_r(copy), ptx_r(*reg));
    }
    *reg = m->a->moved[*reg];
}

/* False: the rest writes what a load writes too. */
static bool make_moves(struct arena *arena, struct ptx_builder *b, struct pass_ahead *a)
{
    struct ptx_func *f = b->func;
    struct moves m = {.b = b, .a = a};
    const size_t first = f->items.n;
    for (size_t i = 0; i < a->nload; i++)
        each_of(&a->load[i], true, note_loaded, &m);
    for (size_t i = 0; i < a->nrest; i++)
        each_of(&a->rest[i], true, refuse_loaded, &m);
    for (size_t i = 0; i < a->nrest && !m.fails; i++)
        each_of(&a->rest[i], false, read_copy, &m);
    a->nmove = f->items.n - first;
    a->move = ARENA_ARRAY(arena, a->nmove, struct ptx_item);
    for (size_t i = 0; i < a->nmove; i++)
        a->move[i] = f->items.v[first + i];
    f->items.n = first;
    return !m.fails;
}

bool pass_take_apart(struct arena *arena, struct ptx_builder *b, size_t first, bool moves,
                     int32_t varies, struct pass_ahead *a)
{
    struct ptx_func *f = b->func;
    const size_t n = f->items.n - first;
    for (size_t i = 0; i < n; i++)
        if (!is_straight(&f->items.v[first + i]))
            return false;
    bool *needed = ARENA_ARRAY(arena, f->regs.n, bool), *early = ARENA_ARRAY(arena, n, bool);
    for (size_t i = n; i-- > 0;) {
        struct ptx_item *it = &f->items.v[first + i];
        early[i] = belongs(it, needed);
        if (!early[i])
            continue;
        each_of(it, false, note_needed, needed);
        if (it->inst.guard >= 0) /* what it leaves as it was is read, too */
            each_of(it, true, note_needed, needed);
    }
    *a = (struct pass_ahead){.load = ARENA_ARRAY(arena, n, struct ptx_item),
                             .rest = ARENA_ARRAY(arena, n, struct ptx_item)};
    for (size_t i = 0; i < n; i++)
        *(early[i] ? &a->load[a->nload++] : &a->rest[a->nrest++]) = f->items.v[first + i];
    a->nreg = f->regs.n;
    a->moved = ARENA_ARRAY(arena, a->nreg, int32_t);
    for (size_t i = 0; i < a->nreg; i++)
        a->moved[i] = (int32_t)i == varies ? LOADED : KEPT;
    f->items.n = first;
    if (!moves || make_moves(arena, b, a))
        return true;
    f->items.n += n; /* nothing was renamed, and they are still there */
    return false;
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
void pass_append(struct ptx_builder *b, const struct ptx_item *v, size_t n)
{
    struct arena *a = b->module->arena;
    for (size_t i = 0; i < n; i++) {
        struct ptx_item *it = VEC_PUSH(a, &b->func->items);
        *it = v[i];
        if (it->kind == PTX_I_INST)
            it->inst.operand = copy(a, v[i].inst.operand, v[i].inst.noperand);
    }
}
