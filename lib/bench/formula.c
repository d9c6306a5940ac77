/* Formulas of equations: with intermediates in the places of their names, and small patterns in
 * them. */
#include <config.h>

#include "bench/formula.h"

#include <math.h>

enum { NODES_MOST = 1 << 16, INDICES_MOST = 6 };

const struct lang_expr *formula_bare(const struct lang_expr *e)
{
    while (e->kind == E_CAST)
        e = e->args[0];
    return e;
}

/* ---- intermediates are put in the places of their names ---- */

const struct lang_expr *formula_expand(struct finder *f, const struct lang_expr *e,
                                       const struct bound *b);

static const struct lang_equation *equation_of(const struct lang_symbol *sym)
{
    bool read = sym->kind == SYM_TENSOR || (sym->kind == SYM_BUFFER && sym->mode == MODE_OUT);
    return read ? sym->def : NULL;
}

static const struct lang_expr *inlined(struct finder *f, const struct lang_expr *e,
                                       const struct bound *b)
{
    const struct lang_equation *q = equation_of(e->sym);
    const struct bound *inner = NULL;
    for (uint32_t k = 0; k < e->nargs; k++) {
        struct bound *next = ARENA_NEW(f->a, struct bound);
        *next = (struct bound){q->index[k], formula_expand(f, e->args[k], b), inner};
        inner = next;
    }
    return formula_expand(f, q->rhs, inner);
}

/* The sum's indices are its own, with ranges in which names are replaced as well. */
static const struct bound *own_indices(struct finder *f, struct lang_expr *e, const struct bound *b)
{
    struct lang_symbol **own = ARENA_ARRAY(f->a, e->nindex, struct lang_symbol *);
    for (uint32_t k = 0; k < e->nindex; k++) {
        struct lang_symbol *sym = own[k] = ARENA_NEW(f->a, struct lang_symbol);
        struct lang_expr *name = ARENA_NEW(f->a, struct lang_expr);
        struct bound *next = ARENA_NEW(f->a, struct bound);
        *sym = *e->index[k];
        sym->dims = ARENA_ARRAY(f->a, 1, struct lang_expr *);
        sym->dims[0] = (struct lang_expr *)(uintptr_t)formula_expand(f, e->index[k]->dims[0], b);
        if (sym->low)
            sym->low = (struct lang_expr *)(uintptr_t)formula_expand(f, sym->low, b);
        *name = (struct lang_expr){.kind = E_NAME, .type = sym->type, .sym = sym};
        *next = (struct bound){e->index[k], name, b};
        b = next;
    }
    e->index = own;
    return b;
}

const struct lang_expr *formula_expand(struct finder *f, const struct lang_expr *e,
                                       const struct bound *b)
{
    if (++f->nodes > NODES_MOST)
        return e;
    if (e->kind == E_NAME)
        for (const struct bound *k = b; k; k = k->next)
            if (k->from == e->sym)
                return k->to;
    if (e->kind == E_INDEX && equation_of(e->sym) && equation_of(e->sym)->nindex == e->nargs)
        return inlined(f, e, b);
    struct lang_expr *copy = ARENA_NEW(f->a, struct lang_expr);
    *copy = *e;
    if (e->kind == E_REDUCE)
        b = own_indices(f, copy, b);
    copy->args = ARENA_ARRAY(f->a, e->nargs, struct lang_expr *);
    for (uint32_t k = 0; k < e->nargs; k++)
        copy->args[k] = (struct lang_expr *)(uintptr_t)formula_expand(f, e->args[k], b);
    return copy;
}

/* ---- sameness ---- */

bool formula_same(const struct lang_expr *x, const struct lang_expr *y, const struct renamed *r)
{
    x = formula_bare(x);
    y = formula_bare(y);
    if (x->kind != y->kind || x->nargs != y->nargs || x->pad || y->pad)
        return false;
    struct renamed inner[INDICES_MOST];
    switch ((int)x->kind) {
    case E_NAME:
        for (; r; r = r->next)
            if (r->x == x->sym || r->y == y->sym)
                return r->x == x->sym && r->y == y->sym;
        return x->sym == y->sym;
    case E_INDEX:
        if (x->sym != y->sym)
            return false;
        break;
    case E_CALL:
        if (x->fn != y->fn || x->func || y->func)
            return false;
        break;
    case E_REDUCE:
        if (x->reduce != y->reduce || x->nindex != y->nindex || x->nindex > INDICES_MOST)
            return false;
        for (uint32_t k = 0; k < x->nindex; k++) {
            const struct lang_symbol *s = x->index[k], *t = y->index[k];
            if (!s->low != !t->low || (s->low && !formula_same(s->low, t->low, r)) ||
                !formula_same(s->dims[0], t->dims[0], r))
                return false;
            inner[k] = (struct renamed){s, t, r};
            r = &inner[k];
        }
        break;
    default:
        if (!lang_same_node(x, y))
            return false;
    }
    for (uint32_t k = 0; k < x->nargs; k++)
        if (!formula_same(x->args[k], y->args[k], r))
            return false;
    return true;
}

bool formula_same_range(const struct lang_symbol *x, const struct lang_symbol *y)
{
    return !x->low == !y->low && (!x->low || formula_same(x->low, y->low, NULL)) &&
           formula_same(x->dims[0], y->dims[0], NULL);
}

/* ---- small patterns ---- */

bool formula_is_binary(const struct lang_expr *e, enum lang_op op)
{
    return e->kind == E_BINARY && e->op == op;
}

bool formula_is_reduce(const struct lang_expr *e, enum lang_reduce reduce)
{
    return e->kind == E_REDUCE && e->reduce == reduce && e->nindex == 1;
}

bool formula_is_call(const struct lang_expr *e, enum lang_builtin fn)
{
    return e->kind == E_CALL && !e->func && e->fn == fn;
}

bool formula_is_read(const struct lang_expr *e)
{
    return e->kind == E_INDEX && e->sym->kind == SYM_BUFFER && e->sym->mode == MODE_IN && !e->pad;
}

bool formula_mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    if (e->kind == E_NAME && e->sym == sym)
        return true;
    for (uint32_t k = 0; k < e->nargs; k++)
        if (formula_mentions(e->args[k], sym))
            return true;
    return false;
}

bool formula_has_sum(const struct lang_expr *e)
{
    if (formula_is_reduce(e, RED_SUM))
        return true;
    for (uint32_t k = 0; k < e->nargs; k++)
        if (formula_has_sum(e->args[k]))
            return true;
    return false;
}

bool formula_scalar(struct finder *f, const struct lang_expr *e, double *v)
{
    return attention_scalar(f->at, formula_bare(e), v);
}

/* c ? e : 0, c ? e : -inf: the conditions are the mask's. */
const struct lang_expr *formula_take_conditions(struct finder *f, const struct lang_expr *e,
                                                struct attention_mask *m)
{
    double otherwise;
    e = formula_bare(e);
    while (e->kind == E_COND && formula_scalar(f, e->args[2], &otherwise) &&
           (otherwise == 0 || otherwise == -INFINITY)) {
        *VEC_PUSH(f->a, &m->conditions) = e->args[0];
        e = formula_bare(e->args[1]);
    }
    return e;
}

/* Factors that are numbers are taken off. */
const struct lang_expr *formula_take_factor(struct finder *f, const struct lang_expr *e,
                                            double *factor)
{
    double v;
    for (;;) {
        e = formula_bare(e);
        if (formula_is_binary(e, OP_MUL) && formula_scalar(f, e->args[1], &v)) {
            *factor *= v;
            e = e->args[0];
        } else if (formula_is_binary(e, OP_MUL) && formula_scalar(f, e->args[0], &v)) {
            *factor *= v;
            e = e->args[1];
        } else if (formula_is_binary(e, OP_DIV) && formula_scalar(f, e->args[1], &v)) {
            *factor /= v;
            e = e->args[0];
        } else {
            return e;
        }
    }
}

bool formula_fail(struct finder *f, const char *why)
{
    if (!f->x->why)
        f->x->why = why;
    return false;
}

const struct lang_equation *formula_output_equation(const struct lang_equations *all, size_t k)
{
    const struct lang_equation *q = all->v[k];
    return q->sym->kind == SYM_BUFFER && q->sym->mode == MODE_OUT ? q : NULL;
}
