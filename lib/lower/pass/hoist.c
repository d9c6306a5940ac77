/* The same address computed on several ways through the code is computed once, before they part.
 *
 * Value numbering (cg.c) finds an instruction again only where the first one dominates. What two
 * arms of conditions or two loops compute alike is left, and ptxas does not bring it together
 * either: each access to a tile after a condition of its own would compute its address from the
 * thread's number again.
 *
 * The blocks between labels and branches, their dominators and the loops are found first. Then
 * every cheap integer instruction whose operands are assigned once is looked up by operation and
 * operands. The first one of equals moves to the end of the nearest block that dominates them all,
 * and out of loops that its operands don't vary in (ptxas does not take things out of loops that
 * run under a condition there); the registers of the others become its register. As operands come
 * before what uses them, one pass does it.
 */
#include <config.h>

#include "lower/pass/pass.h"

#include <string.h>

/* What is taken out of a loop stays in a register all through it: no more than MOST_MOVED. */
enum { MOST_OPERANDS = 4, MOST_MOVED = 16 };
#define NONE UINT32_MAX

struct block {
    uint32_t begin, end; /* items */
    uint32_t succ[2];
    uint32_t dom;  /* the immediate dominator; the entry: itself; unreachable: NONE */
    uint32_t rank; /* in reverse postorder */
    uint32_t loops;
    VEC(uint32_t) pred;
    VEC(uint32_t) moved; /* items that go to its end */
};

struct entry {
    uint32_t item, block;
    uint32_t next; /* 1 + the number of another one; 0: none */
};

struct share {
    struct arena *a;
    struct ptx_func *f;
    struct block *block;
    uint32_t nblock;
    uint32_t *order; /* blocks in reverse postorder */
    uint32_t norder;
    uint32_t *block_of;  /* by item */
    VEC(uint32_t) vars;  /* items that declare variables */
    uint32_t *def;       /* by register: the block that assigns it; NONE: several times or never */
    int32_t *same;       /* by register: the one to read instead, or itself */
    bool *gone;          /* by item: moved or removed */
    struct entry *entry; /* room for one of each item */
    uint32_t nentry;
    uint32_t *bucket; /* 1 + the number of the latest entry; 0: none */
    uint32_t nbucket; /* a power of two */
};

/* ---- blocks and dominators ------------------------------------------------------------------- */

static bool ends_block(const struct ptx_item *it)
{
    if (it->kind != PTX_I_INST)
        return false;
    switch ((int)it->inst.op) {
    case PTX_OP_BRA:
    case PTX_OP_RET:
    case PTX_OP_EXIT:
    case PTX_OP_TRAP: return true;
    default: return false;
    }
}

/* Are there but .loc and comments from an item up to another? With them code must be what it is
 * without. */
static bool only_notes(const struct ptx_func *f, uint32_t begin, uint32_t end)
{
    while (begin < end &&
           (f->items.v[begin].kind == PTX_I_LOC || f->items.v[begin].kind == PTX_I_COMMENT))
        begin++;
    return begin == end;
}

/* False where control flows in ways not known here. */
static bool find_blocks(struct share *s)
{
    const struct ptx_func *f = s->f;
    uint32_t n = 1, *at_label = ARENA_ARRAY(s->a, f->labels.n, uint32_t);
    for (size_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        if (it->kind == PTX_I_TARGETS || (it->kind == PTX_I_INST && it->inst.op == PTX_OP_BRX))
            return false;
        n += it->kind == PTX_I_LABEL || ends_block(it);
    }
    s->block = ARENA_ARRAY(s->a, n, struct block);
    uint32_t b = 0;
    for (uint32_t i = 0; i < f->items.n; i++) {
        const struct ptx_item *it = &f->items.v[i];
        bool is_new = i > 0 && ends_block(it - 1);
        if (it->kind == PTX_I_LABEL && !only_notes(f, s->block[b].begin, i))
            is_new = true;
        if (is_new) {
            s->block[b].end = i;
            s->block[++b].begin = i;
        }
        if (it->kind == PTX_I_LABEL)
            at_label[it->label] = b;
        if (it->kind == PTX_I_VAR)
            *VEC_PUSH(s->a, &s->vars) = i;
        s->block_of[i] = b;
    }
    s->block[b].end = (uint32_t)f->items.n;
    s->nblock = b + 1;
    for (b = 0; b < s->nblock; b++) {
        struct block *k = &s->block[b];
        k->dom = k->succ[0] = k->succ[1] = NONE;
        const struct ptx_item *last = k->end > k->begin ? &f->items.v[k->end - 1] : NULL;
        bool jumps = last && ends_block(last);
        if (jumps && last->inst.op == PTX_OP_BRA)
            k->succ[1] = at_label[last->inst.operand[0].label];
        if ((!jumps || last->inst.guard >= 0) && b + 1 < s->nblock)
            k->succ[0] = b + 1;
    }
    return true;
}

/* Reverse postorder by a stack of its own: unrolled code has many blocks. */
static void order_blocks(struct share *s)
{
    uint32_t *stack = ARENA_ARRAY(s->a, s->nblock, uint32_t), depth = 0, n = s->nblock;
    uint8_t *next = ARENA_ARRAY(s->a, s->nblock, uint8_t);
    bool *seen = ARENA_ARRAY(s->a, s->nblock, bool);
    uint32_t *post = ARENA_ARRAY(s->a, s->nblock, uint32_t);
    stack[depth++] = 0;
    seen[0] = true;
    while (depth) {
        uint32_t b = stack[depth - 1];
        if (next[b] == 2) {
            post[--n] = b;
            depth--;
            continue;
        }
        uint32_t to = s->block[b].succ[next[b]++];
        if (to == NONE)
            continue;
        *VEC_PUSH(s->a, &s->block[to].pred) = b;
        if (!seen[to]) {
            seen[to] = true;
            stack[depth++] = to;
        }
    }
    s->order = post + n;
    s->norder = s->nblock - n;
    for (uint32_t i = 0; i < s->norder; i++)
        s->block[s->order[i]].rank = i;
}

static uint32_t common(const struct share *s, uint32_t x, uint32_t y)
{
    while (x != y) {
        while (s->block[x].rank > s->block[y].rank)
            x = s->block[x].dom;
        while (s->block[y].rank > s->block[x].rank)
            y = s->block[y].dom;
    }
    return x;
}

static bool dominates(const struct share *s, uint32_t x, uint32_t y)
{
    return common(s, x, y) == x;
}

/* Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm. */
static void find_dominators(struct share *s)
{
    bool changed = true;
    s->block[0].dom = 0;
    while (changed) {
        changed = false;
        for (uint32_t i = 1; i < s->norder; i++) {
            struct block *b = &s->block[s->order[i]];
            uint32_t dom = NONE;
            for (size_t k = 0; k < b->pred.n; k++) {
                uint32_t p = b->pred.v[k];
                if (s->block[p].dom != NONE)
                    dom = dom == NONE ? p : common(s, p, dom);
            }
            changed |= dom != b->dom;
            b->dom = dom;
        }
    }
}

/* Counts, for every block, the loops that it is in: those with a jump back to a block that
 * dominates it. */
static void find_loops(struct share *s)
{
    uint32_t *stack = ARENA_ARRAY(s->a, s->nblock, uint32_t);
    uint32_t *mark = ARENA_ARRAY(s->a, s->nblock, uint32_t);
    for (uint32_t i = 0; i < s->norder; i++) {
        uint32_t head = s->order[i], n = 0;
        bool is_loop = false;
        mark[head] = head + 1;
        for (size_t k = 0; k < s->block[head].pred.n; k++) {
            uint32_t tail = s->block[head].pred.v[k];
            if (!dominates(s, head, tail))
                continue;
            is_loop = true;
            if (mark[tail] != head + 1) {
                mark[tail] = head + 1;
                stack[n++] = tail;
            }
        }
        s->block[head].loops += is_loop;
        while (n) {
            struct block *b = &s->block[stack[--n]];
            b->loops++;
            for (size_t k = 0; k < b->pred.n; k++)
                if (mark[b->pred.v[k]] != head + 1) {
                    mark[b->pred.v[k]] = head + 1;
                    stack[n++] = b->pred.v[k];
                }
        }
    }
}

/* ---- registers ------------------------------------------------------------------------------- */

static inline void note_assigned(struct share *s, int32_t r, uint32_t item, uint32_t *count,
                                 uint32_t *at)
{
    if (r < 0)
        return;
    s->def[r] = ++count[r] == 1 ? s->block_of[item] : NONE;
    at[r] = item;
}

static void note_write(struct share *s, const struct ptx_operand *o, uint32_t item, uint32_t *count,
                       uint32_t *at)
{
    for (uint32_t i = 0; o->kind == PTX_O_VEC && i < o->nelem; i++)
        note_write(s, &o->elem[i], item, count, at);
    if (o->kind != PTX_O_REG)
        return;
    note_assigned(s, o->reg, item, count, at);
    note_assigned(s, o->reg2, item, count, at);
}

/* A register that is read where its assignment does not come before on every way is none of
 * ours. */
static inline void note_register(struct share *s, int32_t r, uint32_t item, const uint32_t *at)
{
    const uint32_t b = s->block_of[item];
    if (r < 0 || s->def[r] == NONE || s->block[b].dom == NONE)
        return;
    if (s->def[r] == b ? at[r] >= item
                       : s->block[s->def[r]].dom == NONE || !dominates(s, s->def[r], b))
        s->def[r] = NONE;
}

static void note_elements(struct share *s, const struct ptx_operand *o, uint32_t item,
                          const uint32_t *at);

static inline void note_read(struct share *s, const struct ptx_operand *o, uint32_t item,
                             const uint32_t *at)
{
    if (o->nelem)
        note_elements(s, o, item, at);
    if (o->kind == PTX_O_REG || o->kind == PTX_O_MEM)
        note_register(s, o->reg, item, at);
    if (o->kind == PTX_O_REG)
        note_register(s, o->reg2, item, at);
}

static void note_elements(struct share *s, const struct ptx_operand *o, uint32_t item,
                          const uint32_t *at)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        note_read(s, &o->elem[i], item, at);
}

static void check_reads(struct share *s, const uint32_t *at)
{
    for (uint32_t i = 0; i < s->f->items.n; i++) {
        const struct ptx_item *it = &s->f->items.v[i];
        if (it->kind != PTX_I_INST)
            continue;
        const unsigned writes = ptx_op_writes(it->inst.op);
        for (unsigned k = 0; k < it->inst.noperand; k++)
            if (!(writes >> k & 1) || it->inst.operand[k].kind == PTX_O_MEM)
                note_read(s, &it->inst.operand[k], i, at);
        if (it->inst.guard >= 0)
            note_register(s, it->inst.guard, i, at);
    }
}

static void find_definitions(struct share *s)
{
    uint32_t *at = ARENA_ARRAY(s->a, s->f->regs.n, uint32_t);
    uint32_t *count = ARENA_ARRAY(s->a, s->f->regs.n, uint32_t);
    for (size_t r = 0; r < s->f->regs.n; r++) {
        s->def[r] = NONE;
        s->same[r] = (int32_t)r;
    }
    for (uint32_t i = 0; i < s->f->items.n; i++) {
        const struct ptx_item *it = &s->f->items.v[i];
        const unsigned writes = it->kind == PTX_I_INST ? ptx_op_writes(it->inst.op) : 0;
        for (unsigned k = 0; it->kind == PTX_I_INST && k < it->inst.noperand; k++)
            if (writes >> k & 1)
                note_write(s, &it->inst.operand[k], i, count, at);
    }
    check_reads(s, at);
}

static void rename_elements(const struct share *s, struct ptx_operand *o);

static inline void rename_operand(const struct share *s, struct ptx_operand *o)
{
    if (o->nelem)
        rename_elements(s, o);
    if ((o->kind == PTX_O_REG || o->kind == PTX_O_MEM) && o->reg >= 0)
        o->reg = s->same[o->reg];
}

static void rename_elements(const struct share *s, struct ptx_operand *o)
{
    for (uint32_t i = 0; i < o->nelem; i++)
        rename_operand(s, &o->elem[i]);
}

/* ---- what is worth it ------------------------------------------------------------------------ */

static bool is_cheap(const struct ptx_inst *in)
{
    switch ((int)in->op) {
    case PTX_OP_ADD_INT:
    case PTX_OP_SUB_INT:
    case PTX_OP_MUL_INT:
    case PTX_OP_MUL_WIDE:
    case PTX_OP_MAD_INT:
    case PTX_OP_MAD_WIDE:
    case PTX_OP_SHL:
    case PTX_OP_SHR:
    case PTX_OP_AND:
    case PTX_OP_OR:
    case PTX_OP_XOR:
    case PTX_OP_NOT:
    case PTX_OP_BFE:
    case PTX_OP_CVT_INT: return true;
    case PTX_OP_MOV: return in->operand[1].kind == PTX_O_SYM;
    default: return false;
    }
}

static bool is_integer(enum ptx_mod type)
{
    switch (type) {
    case PTX_B32:
    case PTX_U32:
    case PTX_S32:
    case PTX_B64:
    case PTX_U64:
    case PTX_S64: return true;
    default: return false;
    }
}

/* The block that declares a variable; the entry where it is the module's. */
static uint32_t declared(const struct share *s, const struct ptx_var *var)
{
    for (size_t i = 0; i < s->vars.n; i++)
        if (s->f->items.v[s->vars.v[i]].var == var)
            return s->block_of[s->vars.v[i]];
    return 0;
}

/* May the instruction move? *after: the last block that one of its operands is assigned in. */
static bool may_move(const struct share *s, const struct ptx_inst *in, uint32_t *after)
{
    if (in->guard >= 0 || in->noperand < 2 || in->noperand > MOST_OPERANDS || !is_cheap(in))
        return false;
    *after = 0;
    for (unsigned i = 0; i < PTX_MAX_TYPES; i++)
        if (in->type[i] && !is_integer((enum ptx_mod)in->type[i]))
            return false;
    for (unsigned k = 0; k < in->noperand; k++) {
        const struct ptx_operand *o = &in->operand[k];
        uint32_t d = 0;
        if (o->kind == PTX_O_SYM)
            d = declared(s, o->var);
        else if (o->kind == PTX_O_REG && o->reg >= 0 && o->reg2 < 0)
            d = s->def[o->reg];
        else if (o->kind != PTX_O_IMM)
            return false;
        if (d == NONE || s->block[d].dom == NONE)
            return false;
        if (k > 0 && s->block[d].rank > s->block[*after].rank)
            *after = d; /* they all dominate the instruction, and so each other */
    }
    return true;
}

static bool same_operands(const struct ptx_inst *x, const struct ptx_inst *y)
{
    for (unsigned k = 1; k < x->noperand; k++) {
        const struct ptx_operand *p = &x->operand[k], *q = &y->operand[k];
        if (p->kind != q->kind || p->neg != q->neg || p->bits != q->bits || p->var != q->var ||
            (p->kind == PTX_O_REG && p->reg != q->reg))
            return false;
    }
    return true;
}

static bool same(const struct ptx_inst *x, const struct ptx_inst *y)
{
    return x->op == y->op && x->noperand == y->noperand && ptx_same_words(x, y) &&
           same_operands(x, y);
}

static uint32_t hash(const struct ptx_inst *in)
{
    uint64_t h = (uint64_t)in->op * 0x9e3779b97f4a7c15u;
    for (unsigned k = 1; k < in->noperand; k++) {
        const struct ptx_operand *o = &in->operand[k];
        h = (h ^ o->bits ^ (o->kind == PTX_O_REG ? (uint64_t)(uint32_t)o->reg << 32 : 0)) *
            0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return (uint32_t)(h >> 16);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* The block to compute in: dominates x and y, comes after the operands, and is in as few loops as
 * can be. */
static uint32_t place_for(const struct share *s, uint32_t x, uint32_t y, uint32_t after)
{
    uint32_t best = common(s, x, y);
    for (uint32_t b = best; b != after && b != 0;) {
        b = s->block[b].dom;
        if (s->block[b].loops < s->block[best].loops)
            best = b;
    }
    return best;
}

/* To the end of another block, from where it was written or from where it moved before. */
static void move(struct share *s, struct entry *e, uint32_t to)
{
    for (size_t i = 0; i < s->block[e->block].moved.n; i++)
        if (s->block[e->block].moved.v[i] == e->item)
            s->block[e->block].moved.v[i] = NONE;
    s->gone[e->item] = true;
    *VEC_PUSH(s->a, &s->block[to].moved) = e->item;
    e->block = s->def[s->f->items.v[e->item].inst.operand[0].reg] = to;
}

/* The instruction of item i is the one of e: computed where both are reached from. */
static void unite(struct share *s, struct entry *e, uint32_t i, uint32_t after)
{
    const struct ptx_item *items = s->f->items.v;
    if (!dominates(s, e->block, s->block_of[i]))
        move(s, e, place_for(s, e->block, s->block_of[i], after));
    s->same[items[i].inst.operand[0].reg] = items[e->item].inst.operand[0].reg;
    s->gone[i] = true;
}

static void visit(struct share *s, uint32_t i)
{
    struct ptx_item *it = &s->f->items.v[i];
    if (it->kind != PTX_I_INST)
        return;
    for (unsigned k = 0; k < it->inst.noperand; k++)
        rename_operand(s, &it->inst.operand[k]);
    uint32_t after;
    if (s->block[s->block_of[i]].dom == NONE || !may_move(s, &it->inst, &after))
        return;
    uint32_t *const at = &s->bucket[hash(&it->inst) & (s->nbucket - 1)];
    for (uint32_t k = *at; k; k = s->entry[k - 1].next)
        if (same(&s->f->items.v[s->entry[k - 1].item].inst, &it->inst)) {
            unite(s, &s->entry[k - 1], i, after);
            return;
        }
    struct entry *e = &s->entry[s->nentry++];
    *e = (struct entry){i, s->block_of[i], *at};
    *at = s->nentry;
    uint32_t to = place_for(s, e->block, e->block, after);
    if (to != e->block && s->block[to].moved.n < MOST_MOVED)
        move(s, e, to);
}

/* Puts item from[i] at each i, where every item is in `from` once: around one cycle of places after
 * the other. */
static void permute(struct ptx_item *v, uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (from[i] == i)
            continue;
        const struct ptx_item first = v[i];
        uint32_t to = i;
        while (from[to] != i) {
            const uint32_t next = from[to];
            v[to] = v[next];
            from[to] = to;
            to = next;
        }
        v[to] = first;
        from[to] = to;
    }
}

/* Moves items to the ends of blocks, and what is gone behind all others. */
static void rebuild(struct share *s)
{
    struct ptx_func *f = s->f;
    const uint32_t all = (uint32_t)f->items.n;
    uint32_t *from = ARENA_ARRAY(s->a, all, uint32_t), n = 0;
    for (uint32_t b = 0; b < s->nblock; b++) {
        const struct block *k = &s->block[b];
        uint32_t end = k->end > k->begin && ends_block(&f->items.v[k->end - 1]) ? k->end - 1
                                                                                : k->end;
        for (uint32_t i = k->begin; i <= k->end; i++) {
            for (size_t j = 0; i == end && j < k->moved.n; j++)
                if (k->moved.v[j] != NONE)
                    from[n++] = k->moved.v[j];
            if (i < k->end && !s->gone[i])
                from[n++] = i;
        }
    }
    f->items.n = n;
    for (uint32_t i = 0; i < n; i++)
        s->gone[from[i]] = false;
    for (uint32_t i = 0; i < all; i++)
        if (s->gone[i])
            from[n++] = i;
    permute(f->items.v, from, all);
    for (uint32_t i = 0; i < f->items.n; i++)
        if (f->items.v[i].kind == PTX_I_LABEL)
            f->labels.v[f->items.v[i].label].item = i;
}

void pass_hoist(struct arena *a, struct ptx_func *f)
{
    struct share s = {.a = a, .f = f, .nbucket = 1024};
    while (s.nbucket < f->items.n)
        s.nbucket *= 2;
    s.block_of = ARENA_ARRAY(a, f->items.n, uint32_t);
    s.gone = ARENA_ARRAY(a, f->items.n, bool);
    s.def = ARENA_ARRAY(a, f->regs.n, uint32_t);
    s.same = ARENA_ARRAY(a, f->regs.n, int32_t);
    s.bucket = ARENA_ARRAY(a, s.nbucket, uint32_t);
    s.entry = ARENA_ARRAY(a, f->items.n, struct entry);
    if (!find_blocks(&s) || s.nblock < 2)
        return;
    order_blocks(&s);
    find_dominators(&s);
    find_loops(&s);
    find_definitions(&s);
    for (uint32_t i = 0; i < f->items.n; i++)
        visit(&s, i);
    rebuild(&s);
}
