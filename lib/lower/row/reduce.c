/* Finds what a row reduces, and the differences to a maximum in what it reduces and stores
 * (row/walk.h). */
#include <config.h>

#include "lower/row/walk.h"

static bool same_row(const struct row_env *x, const struct row_env *y);

static bool same_bound(const struct row_bound *x, const struct row_bound *y)
{
    if (x->kind != y->kind)
        return false;
    if (x->kind == ROW_LEAD)
        return x->n == y->n;
    /* on the outer columns no reduction depends */
    return x->kind == ROW_COLUMN || (inspect_same_expr(x->arg, y->arg) && same_row(x->in, y->in));
}

/* Do two environments stand for the same row? They must where one reduction is met twice. */
static bool same_row(const struct row_env *x, const struct row_env *y)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < y->n; k++)
            if (x->v[i].sym == y->v[k].sym && !same_bound(&x->v[i], &y->v[k]))
                return false;
    return true;
}

static bool same_columns(const struct row *row, const struct lang_expr *e)
{
    if (e->nindex != row->ncol)
        return false;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (e->index[i]->low || !inspect_same_expr(e->index[i]->dims[0], row->col[i]))
            return false;
    return true;
}

bool row_walk_reduce(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    if (!same_columns(row, e))
        return lower_lacks(w->why, e->span, "%s runs over another range than the columns",
                           lang_reduce_name(e->reduce));
    for (uint32_t i = 0; i < row->nreduce; i++)
        if (row->reduce[i].e == e) {
            uint32_t deep = row->reduce[i].level + 1;
            if (!same_row(row->reduce[i].env, env))
                return lower_lacks(w->why, e->span, "%s is read for other rows",
                                   lang_reduce_name(e->reduce));
            w->deep = deep > w->deep ? deep : w->deep;
            return true;
        }
    if (row->nreduce == ROW_REDUCES)
        return lower_lacks(w->why, e->span, "%s is one reduction too many",
                           lang_reduce_name(e->reduce));
    uint32_t at = row->nreduce++;
    struct row_env *in = ARENA_NEW(w->g->a, struct row_env);
    in->v = ARENA_ARRAY(w->g->a, env->n + e->nindex, struct row_bound);
    for (uint32_t i = 0; i < env->n; i++)
        in->v[in->n++] = env->v[i];
    for (uint32_t i = 0; i < e->nindex; i++)
        in->v[in->n++] = (struct row_bound){
            .sym = e->index[i], .kind = ROW_COLUMN, .n = i, .scope = &row->reduce[at]};
    row->reduce[at] = (struct row_reduce){.e = e, .env = in};
    const struct row_walk outer = *w;
    w->scope = &row->reduce[at];
    w->guarded |= w->guard && (w->outside || !e->anywhere);
    w->deep = 0;
    w->guard = NULL;
    w->column = w->divided = false;
    bool good = row_walk_expr(w, e->args[0], in);
    row->reduce[at].level = w->deep;
    uint32_t deep = w->deep + 1;
    row->nlevel = deep > row->nlevel ? deep : row->nlevel;
    w->scope = outer.scope;
    w->guard = outer.guard;
    w->guarded = outer.guarded;
    w->column = outer.column;
    w->divided = outer.divided;
    w->deep = deep > outer.deep ? deep : outer.deep;
    return good;
}

/* ---- x - max(x) ------------------------------------------------------------------------------ */

/* Do both stand for the same value, the columns taken as the same? */
static bool same_value(const struct row_walk *w, const struct lang_expr *x,
                       const struct row_env *in_x, const struct lang_expr *y,
                       const struct row_env *in_y, unsigned depth)
{
    x = inspect_strip(x);
    y = inspect_strip(y);
    if (x->kind == E_NAME && x->sym->kind == SYM_INDEX) {
        const struct row_bound *a = row_bound_of(in_x, x), *b = row_bound_of(in_y, y);
        return a && b && a->kind == b->kind && a->kind != ROW_OTHER && a->n == b->n;
    }
    if (depth > 32 || x->pad || !inspect_same_node(x, y))
        return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!same_value(w, x->args[i], in_x, y->args[i], in_y, depth + 1))
            return false;
    return true;
}

/* Finds what e reads by way of equations, and sets *env to their environment. */
static const struct lang_expr *resolve(const struct row_walk *w, const struct lang_expr *e,
                                       const struct row_env **env)
{
    for (unsigned depth = 0; depth < 32; depth++) {
        e = inspect_strip(cg_view(w->g, e));
        if (!row_is_tensor(e) || e->pad || !cg_is_defined(w->g, e->sym) ||
            e->sym->type != e->sym->def->rhs->type)
            break;
        *env = row_enter(w, e, *env);
        e = e->sym->def->rhs;
    }
    return e;
}

struct row_reduce *row_reduction_of(const struct row_walk *w, const struct lang_expr *e,
                                    const struct row_env *env)
{
    e = resolve(w, e, &env);
    for (uint32_t i = 0; i < w->row->nreduce && e->kind == E_REDUCE; i++)
        if (w->row->reduce[i].e == e)
            return &w->row->reduce[i];
    return NULL;
}

static bool is_zero(const struct lang_expr *e)
{
    e = inspect_strip(e);
    return (e->kind == E_INT && e->ival == 0) || (e->kind == E_FLOAT && e->fval == 0);
}

/* isinf(m) ? 0 : m, which logsumexp takes off instead of the maximum m: the reduction m. */
static struct row_reduce *finite_reduction(const struct row_walk *w, const struct lang_expr *e,
                                           const struct row_env *env)
{
    e = resolve(w, e, &env);
    if (e->kind != E_COND || !is_zero(e->args[1]))
        return NULL;
    const struct lang_expr *c = inspect_strip(e->args[0]);
    if (c->kind != E_CALL || c->func || c->fn != FN_ISINF)
        return NULL;
    struct row_reduce *m = row_reduction_of(w, e->args[2], env);
    return m && row_reduction_of(w, c->args[0], env) == m ? m : NULL;
}

/* The maximum that the argument is a difference to, of the same. A product would be rounded once
 * with the difference, and not before as in the maximum. */
static struct row_reduce *top_of(const struct row_walk *w, const struct lang_expr *arg,
                                 const struct row_env *env, bool *finite)
{
    arg = inspect_strip(arg);
    if (arg->kind != E_BINARY || arg->op != OP_SUB)
        return NULL;
    const struct lang_expr *x = arg->args[0];
    struct row_reduce *top = row_reduction_of(w, arg->args[1], env);
    *finite = !top;
    if (!top)
        top = finite_reduction(w, arg->args[1], env);
    bool falls = top && top->e->reduce == RED_MAX && !(x->kind == E_BINARY && x->op == OP_MUL) &&
                 same_value(w, x, env, top->e->args[0], top->env, 0);
    return falls ? top : NULL;
}

void row_note_falling(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    struct row_falling f = {.e = e};
    f.top = top_of(w, e->args[0], env, &f.finite);
    f.always = f.top != NULL;
    f.term = w->scope && w->scope->e->reduce == RED_SUM && w->scope->e->args[0]->type == DT_F32;
    f.damped = f.term || w->divided;
    for (uint32_t i = 0; i < row->nfalling; i++) {
        struct row_falling *o = &row->falling[i];
        if (o->e != e)
            continue;
        o->always &= f.always && f.top == o->top && f.finite == o->finite;
        o->damped &= f.damped;
        o->term &= f.term;
        return;
    }
    if (row->nfalling < ROW_REDUCES)
        row->falling[row->nfalling++] = f;
}
