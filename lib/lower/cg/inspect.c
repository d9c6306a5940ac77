#include <config.h>

#include "lower/cg/cg.h"

static bool any_arg(const struct lang_expr *e, bool (*f)(const struct lang_expr *))
{
    for (uint32_t i = 0; i < e->nargs; i++)
        if (f(e->args[i]))
            return true;
    return e->pad && f(e->pad);
}

bool inspect_reads_itself(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_INDEX:
    case E_REDUCE: return true;
    case E_CALL:
        return e->func || lang_builtin_acts(e->fn) || (e->fn >= FN_PHILOX && e->fn <= FN_NORMAL);
    case E_NAME:
        return e->sym->kind == SYM_BUFFER || e->sym->kind == SYM_TENSOR ||
               e->sym->kind == SYM_SHARED;
    default: return false;
    }
}

bool inspect_reads(const struct lang_expr *e)
{
    return inspect_reads_itself(e) || any_arg(e, inspect_reads);
}

/* Asked of each equation once: they may read each other in many ways. */
static bool equation_reduces(const struct cg *g, const struct lang_equation *eq)
{
    struct cg_reducing *known = g->reducing;
    for (size_t i = 0; i < known->v.n; i++)
        if (known->v.v[i].eq == eq)
            return known->v.v[i].reduces;
    bool reduces = inspect_reduces(g, eq->rhs);
    struct cg_reduces *k = VEC_PUSH(g->a, &known->v);
    *k = (struct cg_reduces){eq, reduces};
    return reduces;
}

bool inspect_reduces(const struct cg *g, const struct lang_expr *e)
{
    e = cg_view(g, e);
    if (e->kind == E_REDUCE)
        return true;
    if ((e->kind == E_INDEX || e->kind == E_NAME) && cg_is_defined(g, e->sym) &&
        equation_reduces(g, e->sym->def))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (inspect_reduces(g, e->args[i]))
            return true;
    return e->pad && inspect_reduces(g, e->pad);
}

bool inspect_mentions(const struct lang_expr *e, uint32_t n, struct lang_symbol *const *index)
{
    if (e->kind == E_NAME)
        for (uint32_t i = 0; i < n; i++)
            if (e->sym == index[i])
                return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (inspect_mentions(e->args[i], n, index))
            return true;
    return e->pad && inspect_mentions(e->pad, n, index);
}

const struct lang_expr *inspect_strip(const struct lang_expr *e)
{
    while (e->kind == E_CAST && e->is_implicit)
        e = e->args[0];
    return e;
}

bool inspect_is_index(const struct lang_expr *e, const struct lang_symbol *index)
{
    e = inspect_strip(e);
    return e->kind == E_NAME && e->sym == index;
}

struct lang_expr *inspect_index_name(struct cg *g, struct lang_symbol *index, struct span s)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){
        .kind = E_NAME, .type = DT_I64, .span = s, .name = index->name, .sym = index, .height = 1};
    return e;
}

bool inspect_rounds_to_tf32(const struct lang_expr *e)
{
    return e->kind == E_CALL && !e->func &&
           (e->fn == FN_TF32 || e->fn == FN_TF32_RN || e->fn == FN_TF32_RZ);
}

bool inspect_is_in_place(const struct lang_expr *e, const struct lang_equation *eq)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        if (i >= eq->nindex || !inspect_is_index(e->args[i], eq->index[i]))
            return false;
    return true;
}

bool inspect_at_launch(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_INT: return true;
    case E_NAME:
        return e->sym->kind == SYM_DIM ||
               (e->sym->kind == SYM_SCALAR && dtype_is_int(e->sym->type));
    case E_UNARY:
    case E_BINARY: break;
    case E_CAST:
        if (!e->is_implicit)
            return false;
        break;
    case E_CALL:
        if (e->func || (e->fn != FN_MIN && e->fn != FN_MAX && e->fn != FN_CEIL_DIV))
            return false;
        break;
    default: return false;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!inspect_at_launch(e->args[i]))
            return false;
    return true;
}

static bool is_no_leaf(const struct lang_expr *e)
{
    return !inspect_is_leaf(e);
}

bool inspect_is_leaf(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_INT:
    case E_FLOAT:
    case E_BOOL: return true;
    case E_NAME:
        return (e->sym->kind == SYM_LOCAL && e->sym->rank == 0) || e->sym->kind == SYM_DIM ||
               e->sym->kind == SYM_SCALAR || e->sym->kind == SYM_INDEX;
    case E_UNARY:
    case E_CAST: return inspect_is_leaf(e->args[0]);
    case E_VECTOR: return !any_arg(e, is_no_leaf);
    default: return false;
    }
}

static bool is_constant(const struct lang_expr *e, int64_t *v)
{
    if (e->kind == E_INT)
        return *v = (int64_t)e->ival, true;
    if (e->kind == E_NAME && e->sym->kind == SYM_DIM && e->sym->has_value)
        return *v = (int64_t)e->sym->value, true;
    return false;
}

const struct lang_expr *inspect_reduction(const struct cg *g, const struct lang_expr *e)
{
    e = cg_view(g, e);
    if (e->kind == E_REDUCE)
        return e;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *r = inspect_reduction(g, e->args[i]);
        if (r)
            return r;
    }
    return e->pad ? inspect_reduction(g, e->pad) : NULL;
}

bool inspect_same_expr(const struct lang_expr *x, const struct lang_expr *y)
{
    int64_t i, j;
    x = inspect_strip(x);
    y = inspect_strip(y);
    if (is_constant(x, &i) && is_constant(y, &j))
        return i == j;
    if (x->kind != y->kind || x->nargs != y->nargs) /* c / 8 of a fixed c, and a number */
        return lang_const_int(x, &i) && lang_const_int(y, &j) && i == j;
    switch (x->kind) {
    case E_NAME: return x->sym == y->sym;
    case E_UNARY:
    case E_BINARY:
        if (x->op != y->op)
            return false;
        break;
    case E_CALL:
        if (x->fn != y->fn || x->func != y->func)
            return false;
        break;
    case E_COND: break;
    default: return false;
    }
    const bool swaps = x->kind == E_BINARY && (x->op == OP_ADD || x->op == OP_MUL);
    if (swaps && inspect_same_expr(x->args[0], y->args[1]) &&
        inspect_same_expr(x->args[1], y->args[0]))
        return true;
    for (uint32_t k = 0; k < x->nargs; k++)
        if (!inspect_same_expr(x->args[k], y->args[k]))
            return false;
    return true;
}

bool inspect_same_node(const struct lang_expr *x, const struct lang_expr *y)
{
    return x->type == y->type && lang_same_node(x, y);
}

bool inspect_same_shape(const struct lang_symbol *x, const struct lang_symbol *y)
{
    if (x->rank != y->rank)
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!inspect_same_expr(x->dims[i], y->dims[i]))
            return false;
    return true;
}

struct declared {
    const struct lang_symbol *sym;
    unsigned depth; /* of ifs and loops around it */
};
struct body_walk {
    struct cg *g;
    VEC(struct declared) locals;
};

static void note_assignment(struct body_walk *w, const struct lang_symbol *sym, unsigned depth)
{
    unsigned declared = 0; /* parameters are outside everything */
    for (size_t i = 0; i < w->locals.n; i++)
        if (w->locals.v[i].sym == sym)
            declared = w->locals.v[i].depth;
    if (depth > declared && !inspect_needs_register(w->g, sym))
        *VEC_PUSH(w->g->a, &w->g->assigned) = sym;
}

static void walk_stmt(struct body_walk *w, const struct lang_stmt *s, unsigned depth)
{
    if (!s)
        return;
    bool loop = s->kind == S_FOR || s->kind == S_WHILE || s->kind == S_DO;
    bool straight = loop && cg_wants_unrolling(s);
    bool control = s->kind == S_IF || s->kind == S_SWITCH || (loop && !(straight && !cg_jumps(s)));
    if (s->kind == S_DECL) {
        struct declared *d = VEC_PUSH(w->g->a, &w->locals);
        *d = (struct declared){s->sym, depth};
    }
    if (s->kind == S_ASSIGN && s->lhs->kind == E_NAME)
        note_assignment(w, s->lhs->sym, depth);
    walk_stmt(w, s->init, depth);
    if (s->step && !(straight && s->init && s->init->kind == S_DECL))
        walk_stmt(w, s->step, depth + (loop && !straight));
    for (uint32_t i = 0; i < s->nbody; i++)
        walk_stmt(w, s->body[i], depth + control);
}

void inspect_body(struct cg *g, const struct lang_stmt *s)
{
    struct body_walk w = {.g = g};
    walk_stmt(&w, s, 0);
}

void inspect_function(struct cg *g, const struct lang_func *f)
{
    for (size_t i = 0; i < g->inspected.n; i++)
        if (g->inspected.v[i] == f)
            return;
    *VEC_PUSH(g->a, &g->inspected) = f;
    inspect_body(g, f->body);
}

const struct lang_symbol *inspect_root(const struct lang_expr *e)
{
    while (e->kind == E_MEMBER || e->kind == E_ADDRESS)
        e = e->args[0];
    return e->sym;
}

bool inspect_needs_register(const struct cg *g, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < g->assigned.n; i++)
        if (g->assigned.v[i] == sym)
            return true;
    return false;
}

bool inspect_in_range(const struct lang_expr *e, uint32_t i)
{
    int64_t at, n;
    return cg_in_range(e->args[i], e->sym->dims[i]) ||
           (lang_const_int(e->args[i], &at) && lang_const_int(e->sym->dims[i], &n) && at >= 0 &&
            at < n);
}

bool inspect_may_stray(const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        if (inspect_may_stray(e->args[i]))
            return true;
    for (uint32_t i = 0; i < e->nindex; i++)
        if ((e->index[i]->low && inspect_may_stray(e->index[i]->low)) ||
            inspect_may_stray(e->index[i]->dims[0]))
            return true;
    for (uint32_t i = 0; e->kind == E_INDEX && !e->pad && i < e->nargs; i++)
        if (!inspect_in_range(e, i))
            return true;
    return e->pad && inspect_may_stray(e->pad);
}

const struct lang_expr *inspect_guarded_reduction(const struct cg *g, const struct lang_expr *e,
                                                  bool guarded)
{
    const struct lang_expr *found = NULL;
    e = cg_view(g, e);
    if (e->kind == E_REDUCE && guarded && !e->anywhere && inspect_may_stray(e))
        return e;
    const bool guards = lang_guards(e);
    for (uint32_t i = 0; i < e->nargs && !found; i++)
        found = inspect_guarded_reduction(g, e->args[i], guarded || (guards && i));
    return e->pad && !found ? inspect_guarded_reduction(g, e->pad, guarded) : found;
}
