/* Calls whose results are rounded to 16 bits or fewer at once: a relative error passes unchanged
 * through products, quotients, negation, abs() and the two values of ?: (and errors add up), so
 * what reaches the conversion through these only may be as inaccurate as that lets it be. A cast is
 * a rounding point and ends the search; an intermediate does not, if all that reads it rounds at
 * once. This is the one place that decides: the emitter takes the variants and the oracle their
 * errors where it has set the mark. */
#include <config.h>

#include "lang/lang_int.h"

static bool is_short_float(enum dtype t)
{
    return dtype_is_float(t) && dtype_bits(t) <= 16;
}

/* What a value becomes. */
enum fate { KEPT, ROUNDED, TO_F16 /* with at most negation, abs() and ?: in between */ };

/* What the values become that e is made of, if e becomes this; the first of them that does. */
static enum fate passed(const struct lang_expr *e, enum fate fate, uint32_t *first)
{
    *first = 0;
    if (e->kind == E_CAST)
        return !is_short_float(e->type) ? KEPT : e->type == DT_F16 ? TO_F16 : ROUNDED;
    if (e->type != DT_F32 || fate == KEPT)
        return KEPT;
    switch ((int)e->kind) {
    case E_CALL: return !e->func && e->fn == FN_ABS ? fate : KEPT;
    case E_UNARY: return fate;
    case E_COND: *first = 1; return fate;
    case E_BINARY: return e->op == OP_MUL || e->op == OP_DIV ? ROUNDED : KEPT;
    default: return KEPT;
    }
}

static void mark(const struct checker *c, struct lang_expr *e, enum fate fate)
{
    uint32_t first;
    if (e->type != DT_F32 || e->kind == E_CAST)
        return;
    const enum fate inner = passed(e, fate, &first);
    if (inner == KEPT && e->kind == E_CALL && e->fn != FN_COUNT) {
        e->rounded = true;
        e->to_f16 = fate == TO_F16;
        if (c->opt.rounded_calls)
            c->opt.rounded_calls[e->fn] = true;
    }
    for (uint32_t i = first; i < e->nargs && inner != KEPT; i++)
        mark(c, e->args[i], inner);
}

void check_rounded(const struct checker *c, struct lang_expr *e, enum dtype to)
{
    if (c->opt.mark_rounded && is_short_float(to))
        mark(c, e, to == DT_F16 ? TO_F16 : ROUNDED);
}

/* ---- intermediates --------------------------------------------------------------------------- */

struct fates {
    const struct lang_equations *all;
    enum fate *of; /* by equation: the least of what those make of it that read it */
    bool changed;
};

static void lessen(struct fates *f, const struct lang_symbol *sym, enum fate fate)
{
    for (size_t i = 0; i < f->all->n; i++)
        if (f->all->v[i]->sym == sym && fate < f->of[i]) {
            f->of[i] = fate;
            f->changed = true;
        }
}

static void visit(struct fates *f, const struct lang_expr *e, enum fate fate)
{
    uint32_t first;
    const enum fate inner = passed(e, fate, &first);
    if ((e->kind == E_INDEX || e->kind == E_NAME) && e->sym && e->sym->kind == SYM_TENSOR)
        lessen(f, e->sym, e->pad ? KEPT : fate);
    for (uint32_t i = 0; i < e->nindex; i++) {
        if (e->index[i]->low)
            visit(f, e->index[i]->low, KEPT);
        visit(f, e->index[i]->dims[0], KEPT);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        visit(f, e->args[i], i < first ? KEPT : inner);
    if (e->pad)
        visit(f, e->pad, KEPT);
}

static bool is_intermediate(const struct lang_equation *eq)
{
    return eq->sym->kind == SYM_TENSOR && eq->sym->type == DT_F32 && !eq->is_recurrence;
}

void check_rounded_equations(const struct checker *c, const struct lang_equations *all)
{
    struct fates f = {.all = all, .of = ARENA_ARRAY(c->a, all->n, enum fate), .changed = true};
    if (!c->opt.mark_rounded)
        return;
    for (size_t i = 0; i < all->n; i++)
        f.of[i] = is_intermediate(all->v[i]) ? TO_F16 : KEPT;
    while (f.changed) {
        f.changed = false;
        for (size_t i = 0; i < all->n; i++)
            visit(&f, all->v[i]->rhs, f.of[i]);
    }
    for (size_t i = 0; i < all->n; i++)
        if (f.of[i] != KEPT)
            mark(c, all->v[i]->rhs, f.of[i]);
}
