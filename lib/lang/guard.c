/* A warning for the mistake that everybody makes once: the grid is rounded up to whole blocks, and
 * the last block's threads are not asked whether there is an element for them.
 *
 * Only what is certain is said. The grid is ceil_div(n, block) in x alone, nothing requires n to be
 * a multiple of the block, the buffer has n elements, the subscript is the thread's number in the
 * grid or a variable that always is, and no condition around the access, or before it with a return
 * behind it, has anything to do with that number. */
#include <config.h>

#include "lang/lang_int.h"

struct guard {
    struct arena *a;
    struct diags *d;
    const struct lang_launch *launch;
    const struct lang_expr *n;               /* the grid covers so many elements, and maybe more */
    VEC(const struct lang_symbol *) number;  /* locals that are the thread's number in the grid */
    VEC(const struct lang_symbol *) derived; /* locals that have to do with a thread's numbers */
    bool told;
};

static const struct lang_expr *bare(const struct lang_expr *e)
{
    while (e->kind == E_CAST && (e->is_implicit || dtype_is_int(e->type)))
        e = e->args[0];
    return e;
}

static bool is_special(const struct lang_expr *e, enum lang_special sp)
{
    e = bare(e);
    return e->kind == E_SPECIAL && e->special == sp;
}

static bool is_block(const struct guard *g, const struct lang_expr *e)
{
    return is_special(e, SP_NTID_X) || expr_same(bare(e), g->launch->block[0]);
}

static bool is_member(const struct lang_symbol *const *v, size_t n, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == sym)
            return true;
    return false;
}

/* blockIdx.x * blockDim.x + threadIdx.x, in any order. */
static bool is_number(const struct guard *g, const struct lang_expr *e)
{
    e = bare(e);
    if (e->kind == E_NAME)
        return is_member(g->number.v, g->number.n, e->sym);
    if (e->kind != E_BINARY || e->op != OP_ADD)
        return false;
    for (int i = 0; i < 2; i++) {
        const struct lang_expr *p = bare(e->args[i]);
        if (!is_special(e->args[1 - i], SP_TID_X) || p->kind != E_BINARY || p->op != OP_MUL)
            continue;
        for (int k = 0; k < 2; k++)
            if (is_special(p->args[k], SP_CTAID_X) && is_block(g, p->args[1 - k]))
                return true;
    }
    return false;
}

/* Has it to do with which thread this is? */
static bool depends(const struct guard *g, const struct lang_expr *e)
{
    if (!e)
        return false;
    if (e->kind == E_SPECIAL && e->special <= SP_CTAID_Z)
        return true;
    if (e->kind == E_NAME && e->sym->kind == SYM_LOCAL &&
        (is_member(g->number.v, g->number.n, e->sym) ||
         is_member(g->derived.v, g->derived.n, e->sym)))
        return true;
    if (e->kind == E_INDEX && e->sym->kind != SYM_BUFFER)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (depends(g, e->args[i]))
            return true;
    return false;
}

static bool is_assigned(const struct lang_stmt *s, const struct lang_symbol *sym)
{
    if (!s)
        return false;
    if (s->kind == S_ASSIGN && s->lhs->sym == sym)
        return true;
    for (uint32_t i = 0; i < s->nbody; i++)
        if (is_assigned(s->body[i], sym))
            return true;
    return is_assigned(s->init, sym) || is_assigned(s->step, sym);
}

static void learn(struct guard *g, const struct lang_stmt *s, const struct lang_stmt *body)
{
    if (!s)
        return;
    const struct lang_symbol *to = s->kind == S_DECL                               ? s->sym
                                   : s->kind == S_ASSIGN && s->lhs->kind == E_NAME ? s->lhs->sym
                                                                                   : NULL;
    if (s->kind == S_DECL && s->rhs && !s->sym->rank && !s->sym->lanes && is_number(g, s->rhs) &&
        !is_assigned(body, s->sym))
        *VEC_PUSH(g->a, &g->number) = s->sym;
    else if (to && to->kind == SYM_LOCAL && depends(g, s->rhs))
        *VEC_PUSH(g->a, &g->derived) = to;
    learn(g, s->init, body);
    learn(g, s->step, body);
    for (uint32_t i = 0; i < s->nbody; i++)
        learn(g, s->body[i], body);
}

static void tell(struct guard *g, const struct lang_expr *e)
{
    const char *i = lang_expr_text(g->a, e->args[0]), *n = lang_expr_text(g->a, g->n);
    if (g->told)
        return;
    g->told = true;
    diag_warning(g->d, e->span,
                 "the grid is rounded up to whole blocks, so %s goes beyond the %s elements of "
                 "'%s'; guard it with 'if (%s < %s)'",
                 i, n, e->sym->name, i, n);
}

static void visit_expr(struct guard *g, const struct lang_expr *e)
{
    if (!e || g->told)
        return;
    if (e->kind == E_INDEX && !e->pad && e->sym->kind == SYM_BUFFER && e->sym->rank == 1 &&
        e->nargs == 1 && expr_same(e->sym->dims[0], g->n) && is_number(g, e->args[0]))
        tell(g, e);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (i == 0 || !lang_guards(e) || !depends(g, e->args[0]))
            visit_expr(g, e->args[i]);
}

static bool returns(const struct lang_stmt *s)
{
    if (s->kind == S_RETURN || s->kind == S_BREAK || s->kind == S_CONTINUE)
        return true;
    for (uint32_t i = 0; i < s->nbody; i++)
        if (returns(s->body[i]))
            return true;
    return false;
}

/* True: what follows is guarded. */
static bool visit(struct guard *g, const struct lang_stmt *s)
{
    if (!s || g->told)
        return false;
    if (s->cond && depends(g, s->cond)) {
        visit_expr(g, s->cond);
        return returns(s);
    }
    visit_expr(g, s->cond);
    if (s->lhs)
        visit_expr(g, s->lhs);
    visit_expr(g, s->rhs);
    for (uint32_t i = 0; i < s->nlist; i++)
        visit_expr(g, s->list[i]);
    bool over = visit(g, s->init);
    for (uint32_t i = 0; i < s->nbody && !over; i++)
        over = visit(g, s->body[i]);
    return over;
}

/* n of ceil_div(n, block), or of (n + block - 1) / block. */
static const struct lang_expr *covered(const struct lang_launch *l)
{
    const struct lang_expr *e = bare(l->grid[0]);
    if (e->kind == E_CALL && !e->func && e->fn == FN_CEIL_DIV && expr_same(e->args[1], l->block[0]))
        return bare(e->args[0]);
    return NULL;
}

static bool has_remainder(const struct lang_expr *e)
{
    if (e->op == OP_MOD && e->kind == E_BINARY)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (has_remainder(e->args[i]))
            return true;
    return false;
}

void lang_warn_unguarded(struct arena *a, const struct lang_stmt *body,
                         const struct lang_launch *launch, struct diags *d)
{
    struct guard g = {.a = a, .d = d, .launch = launch, .n = covered(launch)};
    int64_t n, block, one;
    if (!g.n || (lang_const_int(g.n, &n) && lang_const_int(launch->block[0], &block) && block > 0 &&
                 n % block == 0))
        return;
    for (uint32_t i = 1; i < 3; i++)
        if ((launch->grid[i] && !(lang_const_int(launch->grid[i], &one) && one == 1)) ||
            (launch->block[i] && !(lang_const_int(launch->block[i], &one) && one == 1)))
            return;
    for (size_t i = 0; i < launch->nrequire; i++)
        if (has_remainder(launch->require[i]))
            return;
    learn(&g, body, body);
    visit(&g, body);
}
