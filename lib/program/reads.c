/* What equations say, before they are checked. */
#include <config.h>

#include "program/group.h"

static bool is_index_name(const struct reads *r, const char *name)
{
    for (size_t i = 0; i < r->index.n; i++)
        if (strcmp(r->index.v[i], name) == 0)
            return true;
    return false;
}

static void find_in_range(struct reads *r, const struct lang_symbol *index)
{
    if (index->low)
        find_reads(r, index->low);
    if (index->written)
        find_reads(r, index->dims[0]);
}

void find_reads(struct reads *r, struct lang_expr *e)
{
    const size_t outer = r->index.n;
    uint32_t first = 0;
    if ((e->kind == E_NAME || e->kind == E_INDEX) && e->name && !is_index_name(r, e->name))
        first = r->found(r->ctx, e);
    for (uint32_t i = 0; i < e->nindex; i++)
        find_in_range(r, e->index[i]);
    for (uint32_t i = 0; i < e->nindex; i++)
        *VEC_PUSH(r->b->a, &r->index) = e->index[i]->name;
    for (uint32_t i = first; i < e->nargs; i++)
        find_reads(r, e->args[i]);
    if (e->pad)
        find_reads(r, e->pad);
    r->index.n = outer;
}

bool is_fixed(const struct reads *r, const struct lang_expr *e)
{
    if (e->kind == E_NAME) {
        const struct lang_symbol *sym = lang_find(&r->b->block->scope, e->name);
        return !is_index_name(r, e->name) && !find_variable(r->b, e->name) && sym &&
               (sym->kind == SYM_DIM || (sym->kind == SYM_SCALAR && dtype_is_int(sym->type)));
    }
    if (e->kind == E_INT)
        return true;
    if (e->kind != E_UNARY && e->kind != E_BINARY && e->kind != E_COND)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_fixed(r, e->args[i]))
            return false;
    return true;
}

uint32_t count_fixed(const struct reads *r, struct lang_expr *const *arg, uint32_t n)
{
    uint32_t k = 0;
    while (k < n && is_fixed(r, arg[k]))
        k++;
    return k;
}

const char *prefix_text(struct arena *a, struct lang_expr *const *arg, uint32_t n)
{
    struct buf text = buf_in(a);
    for (uint32_t i = 0; i < n; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", lang_expr_text(a, arg[i]));
    return buf_text(&text);
}

/* ---- names in steps -------------------------------------------------------------------------- */

static bool expr_says(const struct lang_expr *e, const char *name)
{
    if (!e)
        return false;
    if (e->name && strcmp(e->name, name) == 0)
        return true;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (expr_says(e->index[i]->low, name) ||
            (e->index[i]->dims && expr_says(e->index[i]->dims[0], name)))
            return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (expr_says(e->args[i], name))
            return true;
    return expr_says(e->pad, name);
}

static bool view_says(const struct lang_view *v, const char *name)
{
    return v && strcmp(v->name, name) == 0;
}

static bool call_says(const struct lang_call_step *c, const char *name)
{
    for (uint32_t i = 0; i < c->ntarget; i++)
        if (view_says(c->target[i], name))
            return true;
    for (uint32_t i = 0; i < c->narg; i++)
        if (view_says(c->arg[i].view, name) || expr_says(c->arg[i].value, name))
            return true;
    return false;
}

static bool list_says(struct lang_step *const *v, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (step_says(v[i], name))
            return true;
    return false;
}

bool step_says(const struct lang_step *s, const char *name)
{
    const struct lang_equation_step *e = &s->equation;
    if (s->kind == STEP_EQUATION) {
        for (uint32_t i = 0; i < e->nleft; i++)
            if (expr_says(e->left[i].at, name))
                return true;
        return strcmp(e->name, name) == 0 || expr_says(e->rhs, name);
    }
    return call_says(&s->call, name) || expr_says(s->cond, name) || expr_says(s->low, name) ||
           expr_says(s->high, name) || list_says(s->body, s->nbody, name) ||
           list_says(s->other, s->nother, name);
}
