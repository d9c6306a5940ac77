/* Calls in equations: where a function is made of variables, if and return, what it returns is put
 * in place of the call, so that whoever reads the equation sees all that it reads. */
#include <config.h>

#include "lang/lang_int.h"

/* What a name stands for: values are closed, they mean the same everywhere. Newer ones first. */
struct binding {
    const struct lang_symbol *sym;
    struct lang_expr *value;     /* or: */
    struct lang_symbol *renamed; /* an index of a copied reduction */
    const struct binding *up;
};

/* What is left to do after a list of statements. */
struct rest {
    struct lang_stmt *const *v;
    uint32_t n;
    const struct rest *next;
};

enum { MOST_NODES = 2000 }; /* an if doubles what follows it */

struct inliner {
    struct arena *a;
    unsigned nodes;
    bool as_is; /* calls stay, and so do vectors, of an equation */
};

static struct lang_expr *copy(struct inliner *in, const struct lang_expr *e,
                              const struct binding *env);
static struct lang_expr *call(struct inliner *in, const struct lang_expr *e,
                              const struct binding *env);

static const struct binding *find(const struct binding *env, const struct lang_symbol *sym)
{
    while (env && env->sym != sym)
        env = env->up;
    return env;
}

static struct lang_expr *node(struct inliner *in, enum lang_expr_kind kind, enum dtype type,
                              struct span span, uint32_t nargs)
{
    struct lang_expr *e = ARENA_NEW(in->a, struct lang_expr);
    *e = (struct lang_expr){
        .kind = kind, .type = type, .span = span, .fn = FN_COUNT, .nargs = nargs};
    e->args = ARENA_ARRAY(in->a, nargs, struct lang_expr *);
    return e;
}

/* NULL when an argument is missing or it becomes too high. */
static struct lang_expr *finish(struct lang_expr *e)
{
    e->height = 1;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (!e->args[i])
            return NULL;
        if (e->args[i]->height >= e->height)
            e->height = e->args[i]->height + 1;
    }
    if (e->pad && e->pad->height >= e->height)
        e->height = e->pad->height + 1;
    return e->height <= LANG_MAX_HEIGHT ? e : NULL;
}

/* A value of a parameter or a variable, whose type is settled: literals don't adapt to what is
 * around them. */
static struct lang_expr *settled(struct inliner *in, struct lang_expr *e)
{
    if (!e || !expr_adapts(e))
        return e;
    expr_settle(e);
    struct lang_expr *cast = node(in, E_CAST, e->type, e->span, 1);
    cast->args[0] = e;
    return finish(cast);
}

/* The indices of a reduction are its own in every copy. */
static const struct binding *copy_indices(struct inliner *in, struct lang_expr *e,
                                          const struct binding *env)
{
    struct lang_symbol **old = e->index;
    e->index = ARENA_ARRAY(in->a, e->nindex, struct lang_symbol *);
    for (uint32_t i = 0; i < e->nindex; i++) {
        struct lang_symbol *s = e->index[i] = ARENA_NEW(in->a, struct lang_symbol);
        struct binding *b = ARENA_NEW(in->a, struct binding);
        *s = *old[i];
        if (s->low && !(s->low = copy(in, s->low, env)))
            return NULL;
        if (s->dims) {
            s->dims = ARENA_NEW(in->a, struct lang_expr *);
            if (!(s->dims[0] = copy(in, old[i]->dims[0], env)))
                return NULL;
        }
        *b = (struct binding){.sym = old[i], .renamed = s, .up = env};
        env = b;
    }
    return env;
}

static bool can_copy(const struct inliner *in, const struct lang_expr *e)
{
    if (in->as_is)
        return in->nodes <= MOST_NODES;
    switch (e->kind) {
    case E_SPECIAL:
    case E_VECTOR:
    case E_MEMBER:
    case E_ADDRESS:
    case E_STRING: return false;
    case E_INDEX: /* local arrays and tables are a body's */
        if (e->sym->kind != SYM_BUFFER && e->sym->kind != SYM_TENSOR)
            return false;
        break;
    default: break;
    }
    return e->lanes == 0 && in->nodes <= MOST_NODES;
}

static struct lang_expr *copy(struct inliner *in, const struct lang_expr *e,
                              const struct binding *env)
{
    in->nodes++;
    if (!can_copy(in, e))
        return NULL;
    if (e->kind == E_CALL && e->func && !in->as_is)
        return call(in, e, env);
    const struct binding *b = e->kind == E_NAME ? find(env, e->sym) : NULL;
    if (b && b->value)
        return copy(in, b->value, NULL);
    if (e->kind == E_NAME && !b && e->sym->kind == SYM_LOCAL)
        return NULL;
    struct lang_expr *c = node(in, e->kind, e->type, e->span, e->nargs);
    struct lang_expr **args = c->args;
    *c = *e;
    c->args = args;
    if (b)
        c->sym = b->renamed;
    if (e->kind == E_REDUCE && e->nindex && !(env = copy_indices(in, c, env)))
        return NULL;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!(c->args[i] = copy(in, e->args[i], env)))
            return NULL;
    if (e->pad && !(c->pad = copy(in, e->pad, env)))
        return NULL;
    return finish(c);
}

/* ---- statements ------------------------------------------------------------------------------ */

static struct lang_expr *follow(struct inliner *in, const struct rest *r,
                                const struct binding *env);

static struct lang_expr *branch(struct inliner *in, const struct lang_stmt *s, const struct rest *r,
                                const struct binding *env)
{
    const struct rest yes = {s->body, 1, r}, no = {s->body + 1, 1, r};
    struct lang_expr *c = copy(in, s->cond, env);
    struct lang_expr *x = c ? follow(in, &yes, env) : NULL;
    struct lang_expr *y = x ? follow(in, s->nbody > 1 && s->body[1] ? &no : r, env) : NULL;
    if (!y)
        return NULL;
    struct lang_expr *e = node(in, E_COND, x->type, s->span, 3);
    e->args[0] = c;
    e->args[1] = x;
    e->args[2] = y;
    return finish(e);
}

/* lhs op= rhs: computed in the type of rhs, and converted back. */
static struct lang_expr *compound(struct inliner *in, const struct lang_stmt *s,
                                  const struct binding *env)
{
    if (s->op == OP_SHL || s->op == OP_SHR) /* which have the type of lhs */
        return NULL;
    struct lang_expr *x = copy(in, s->lhs, env), *y = copy(in, s->rhs, env);
    if (!x || !y)
        return NULL;
    struct lang_expr *e = node(in, E_BINARY, s->rhs->type, s->span, 2);
    e->op = s->op;
    e->args[0] = x;
    e->args[1] = y;
    expr_cast(in->a, x, e->type);
    if (!finish(e))
        return NULL;
    expr_cast(in->a, e, s->lhs->type);
    return e;
}

static bool is_variable(const struct lang_symbol *sym)
{
    return sym->kind == SYM_LOCAL && sym->rank == 0 && !sym->table && sym->lanes == 0;
}

static struct lang_expr *follow(struct inliner *in, const struct rest *r, const struct binding *env)
{
    while (r && !r->n)
        r = r->next;
    if (!r)
        return NULL;
    const struct lang_stmt *s = r->v[0];
    const struct rest after = {r->v + 1, r->n - 1, r->next};
    const struct rest inside = {s->body, s->nbody, &after};
    const struct lang_symbol *sym = NULL;
    switch (s->kind) {
    case S_BLOCK: return follow(in, &inside, env);
    case S_RETURN: return s->rhs ? copy(in, s->rhs, env) : NULL;
    case S_IF: return branch(in, s, &after, env);
    case S_DECL: sym = s->sym; break;
    case S_ASSIGN: sym = s->lhs->kind == E_NAME ? s->lhs->sym : NULL; break;
    default: break;
    }
    if (!sym || !is_variable(sym))
        return NULL;
    if (!s->rhs)
        return follow(in, &after, env);
    struct lang_expr *value = s->kind == S_ASSIGN && s->has_op ? compound(in, s, env)
                                                               : copy(in, s->rhs, env);
    const struct binding b = {.sym = sym, .value = settled(in, value), .up = env};
    return b.value ? follow(in, &after, &b) : NULL;
}

static struct lang_expr *call(struct inliner *in, const struct lang_expr *e,
                              const struct binding *env)
{
    const struct lang_func *f = e->func;
    struct binding *b = ARENA_ARRAY(in->a, e->nargs + 1, struct binding);
    if (!f->body || f->result_lanes)
        return NULL;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (!is_variable(f->param[i]))
            return NULL;
        b[i] = (struct binding){.sym = f->param[i],
                                .value = settled(in, copy(in, e->args[i], env)),
                                .up = i ? &b[i - 1] : NULL};
        if (!b[i].value)
            return NULL;
    }
    const struct rest whole = {(struct lang_stmt *const *)&f->body, 1, NULL};
    return settled(in, follow(in, &whole, e->nargs ? &b[e->nargs - 1] : NULL));
}

void inline_call(struct arena *a, struct lang_expr *e)
{
    struct inliner in = {.a = a};
    struct lang_expr *result = call(&in, e, NULL);
    if (result)
        *e = *result;
}

struct lang_expr *expr_renamed(struct arena *a, const struct lang_expr *e, uint32_t n,
                               struct lang_symbol *const *from, struct lang_symbol *const *to)
{
    struct inliner in = {.a = a, .as_is = true};
    struct binding *b = ARENA_ARRAY(a, n, struct binding);
    for (uint32_t i = 0; i < n; i++)
        b[i] = (struct binding){.sym = from[i], .renamed = to[i], .up = i ? &b[i - 1] : NULL};
    return copy(&in, e, n ? &b[n - 1] : NULL);
}

/* ---- what a function reads ------------------------------------------------------------------- */

static const struct lang_expr *written_in_expr(const struct lang_expr *e)
{
    const struct lang_expr *found = NULL;
    if (e->sym && e->sym->kind == SYM_BUFFER && e->sym->mode != MODE_IN)
        return e;
    for (uint32_t i = 0; i < e->nargs && !found; i++)
        found = written_in_expr(e->args[i]);
    if (e->pad && !found)
        found = written_in_expr(e->pad);
    if (e->kind == E_CALL && e->func && e->func->body && !found)
        found = reads_written(e->func->body);
    return found;
}

const struct lang_expr *reads_written(const struct lang_stmt *s)
{
    const struct lang_expr *const e[] = {s->lhs, s->rhs, s->cond};
    const struct lang_expr *found = NULL;
    for (size_t i = 0; i < 3 && !found; i++)
        found = e[i] ? written_in_expr(e[i]) : NULL;
    for (uint32_t i = 0; i < s->nlist && !found; i++)
        found = s->list[i] ? written_in_expr(s->list[i]) : NULL;
    for (uint32_t i = 0; i < s->nbody && !found; i++)
        found = s->body[i] ? reads_written(s->body[i]) : NULL;
    if (s->init && !found)
        found = reads_written(s->init);
    if (s->step && !found)
        found = reads_written(s->step);
    return found;
}
