/* Computes where an element of a buffer lies, in the order that leaves the least to do in the
 * innermost loop. */
#include <config.h>

#include "lower/cg/cg.h"

#include <stdlib.h>

/* ---- what varies in which loop --------------------------------------------------------------- */

static void add_reg(struct cg *g, struct cg_nest *nest, int32_t reg)
{
    for (size_t i = 0; i < nest->assigned.n; i++)
        if (nest->assigned.v[i] == reg)
            return;
    *VEC_PUSH(g->a, &nest->assigned) = reg;
}

static void collect(struct cg *g, struct cg_nest *nest, const struct lang_stmt *s)
{
    if (!s)
        return;
    if (s->kind == S_ASSIGN) {
        const struct lang_expr *to = s->lhs;
        while (to->kind == E_MEMBER)
            to = to->args[0];
        const struct cg_binding *b = to->kind == E_NAME ? cg_find(g, to->sym) : NULL;
        if (b && b->is_mutable && b->val.op.kind == PTX_O_REG)
            add_reg(g, nest, b->val.op.reg);
    }
    collect(g, nest, s->init);
    collect(g, nest, s->step);
    for (uint32_t i = 0; i < s->nbody; i++)
        collect(g, nest, s->body[i]);
}

void cg_nest_open(struct cg *g, struct cg_nest *nest, const struct lang_stmt *s)
{
    *nest = (struct cg_nest){.up = g->nest,
                             .depth = g->nest ? g->nest->depth + 1 : 1,
                             .first = (int32_t)g->func->regs.n};
    collect(g, nest, s);
    g->nest = nest;
}

void cg_nest_close(struct cg *g, struct cg_nest *nest)
{
    g->nest = nest->up;
}

void cg_nest_varies(struct cg *g, struct cg_nest *nest, int32_t reg)
{
    add_reg(g, nest, reg);
}

void cg_for_open(struct cg *g, struct cg_for *f, const char *head, const char *end,
                 struct cg_val from, const struct cg_val *below)
{
    *f = (struct cg_for){.head = cg_label(g, head), .has_end = end != NULL};
    if (end)
        f->end = cg_label(g, end);
    f->at = cg_new_mutable(g, from.type);
    cg_move(g, f->at, from);
    if (below) {
        const struct cg_val none = cg_binary(g, OP_GE, cg_value(from.type, f->at), *below);
        cg_jump_if(g, cg_reg(g, none), true, f->end);
    }
    f->mark = cg_scope_open(g);
    cg_place(g, f->head);
    cg_loop_head(g);
    cg_nest_open(g, &f->nest, NULL);
    cg_nest_varies(g, &f->nest, f->at);
}

void cg_for_close(struct cg *g, struct cg_for *f, struct cg_val step, const struct cg_val *below)
{
    CG_ASSIGN(g, f->at, dtype_bits(step.type) == 64 ? "add.s64" : "add.s32", ptx_r(f->at),
              cg_op(g, step));
    if (below) {
        const struct cg_val more = cg_binary(g, OP_LT, cg_value(step.type, f->at), *below);
        cg_jump_if(g, cg_reg(g, more), true, f->head);
    }
    cg_nest_close(g, &f->nest);
    cg_scope_close(g, f->mark);
    if (f->has_end)
        cg_place(g, f->end);
}

static bool varies_in(const struct cg *g, const struct cg_nest *nest, int32_t reg)
{
    for (size_t i = 0; i < nest->assigned.n; i++)
        if (nest->assigned.v[i] == reg)
            return true;
    if (reg < nest->first)
        return false;
    /* made since the loop began: by a pure instruction, whose operands tell, or else by something
     * that may vary */
    return (size_t)reg >= g->depth_of.n || !g->depth_of.v[reg] || g->depth_of.v[reg] > nest->depth;
}

unsigned cg_depth(const struct cg *g, struct ptx_operand o)
{
    if ((o.kind != PTX_O_REG && o.kind != PTX_O_MEM) || o.reg < 0)
        return 0;
    for (const struct cg_nest *nest = g->nest; nest; nest = nest->up)
        if (varies_in(g, nest, o.reg))
            return nest->depth;
    return 0;
}

void cg_set_depth(struct cg *g, int32_t reg, unsigned depth)
{
    while (g->depth_of.n <= (size_t)reg)
        VEC_PUSH(g->a, &g->depth_of);
    g->depth_of.v[reg] = depth + 1; /* 0: not known */
}

/* ---- elements -------------------------------------------------------------------------------- */

static int32_t offset_by(struct cg *g, int32_t base, struct cg_val index, unsigned size)
{
    struct cg_val bytes = cg_binary(g, OP_MUL, index, cg_int(DT_I64, size));
    return CG(g, PTX_B64, "add.s64", ptx_r(base), cg_op(g, bytes));
}

struct cg_place_of cg_element(struct cg *g, const struct lang_symbol *t, uint32_t n,
                              const struct cg_val *subscript)
{
    int64_t i;
    unsigned bits = dtype_bits(t->type);
    if (n < 2 || bits < 8 || !g->nest)
        return cg_address(g, t, cg_flat_index(g, t, n, subscript));
    struct cg_val row = cg_flat_index(g, t, n - 1, subscript), last = cg_index(g, subscript[n - 1]);
    unsigned row_depth = cg_depth(g, row.op), last_depth = cg_depth(g, last.op);
    if (row_depth == last_depth || cg_is_const(row, &i) || cg_is_const(last, &i))
        return cg_address(g, t, cg_flat_index(g, t, n, subscript));
    /* what does not vary in the innermost loop is added to the base first, so that it is outside of
     * it */
    struct cg_place_of at = {.base = cg_param_of(g, t).op.reg, .nibble = cg_int(DT_U32, 0)};
    row = cg_binary(g, OP_MUL, row, cg_extent(g, t, n - 1));
    at.base = offset_by(g, at.base, row_depth < last_depth ? row : last, bits / 8);
    at.base = offset_by(g, at.base, row_depth < last_depth ? last : row, bits / 8);
    return at;
}
