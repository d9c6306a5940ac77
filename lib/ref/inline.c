/* Calls of functions of functions: that are too long to be put in place of the call
 * (lang/inline.c). Their text is followed statement by statement: a declaration or an assignment
 * gives a variable a value for what comes after it, an if makes a value of what either way returns.
 * Loops can't be followed. */
#include <config.h>

#include "ref/compile.h"

/* What is left to do after a list of statements. */
struct rest {
    struct lang_stmt *const *v;
    uint32_t n;
    const struct rest *next;
};

enum { SLOTS_MOST = 1 << 16 }; /* an if doubles what follows it */

/* The first argument is evaluated for those that refer to its slot, the second is the value. */
static void eval_let(struct frame *f, const struct node *n, const uint8_t *mask)
{
    node_arg(f, n, 0, mask);
    node_arg(f, n, 1, mask);
}

static struct node *let(struct compiler *c, const struct lang_expr *e, struct node *bound,
                        struct node *value)
{
    if (!bound || !value)
        return NULL;
    struct node *n = ref_node_new(c, e, eval_let, 2);
    c->p->nslot--;
    n->slot = value->slot;
    n->type = value->type;
    n->args[0] = bound;
    n->args[1] = value;
    return n;
}

struct node *ref_inline_local(struct compiler *c, const struct lang_expr *e)
{
    for (size_t k = c->locals.n; k-- > 0;) {
        if (c->locals.v[k].sym != e->sym)
            continue;
        struct node *n = ref_node_new(c, e, NULL, 0); /* its value is where it was evaluated */
        c->p->nslot--;
        n->slot = c->locals.v[k].node->slot;
        return n;
    }
    diag_error(c->d, e->span, "'%s' has no value in the reference", e->sym->name);
    return NULL;
}

static struct node *follow(struct compiler *c, const struct lang_expr *call, const struct rest *r);

/* sym = value, then the rest. */
static struct node *bind(struct compiler *c, const struct lang_expr *call,
                         const struct lang_symbol *sym, const struct lang_expr *value,
                         const struct rest *r)
{
    struct node *bound = ref_compile_expr(c, value);
    if (!bound)
        return NULL;
    *VEC_PUSH(c->p->arena, &c->locals) = (struct local_value){sym, bound};
    struct node *n = let(c, call, bound, follow(c, call, r));
    c->locals.n--;
    return n;
}

static struct lang_expr *implicit(struct compiler *c, struct lang_expr *e, enum dtype type)
{
    if (e->type == type)
        return e;
    struct lang_expr *cast = ARENA_NEW(c->p->arena, struct lang_expr);
    *cast = (struct lang_expr){
        .kind = E_CAST, .type = type, .span = e->span, .is_implicit = true, .nargs = 1};
    cast->args = ARENA_ARRAY(c->p->arena, 1, struct lang_expr *);
    cast->args[0] = e;
    return cast;
}

/* lhs op= rhs as a value of lhs's type. A shift has that type; other operators have rhs's. */
static struct lang_expr *assigned(struct compiler *c, const struct lang_stmt *s)
{
    if (!s->has_op)
        return s->rhs;
    bool shift = s->op == OP_SHL || s->op == OP_SHR;
    enum dtype type = shift ? s->lhs->type : s->rhs->type;
    struct lang_expr *e = ARENA_NEW(c->p->arena, struct lang_expr);
    *e = (struct lang_expr){
        .kind = E_BINARY, .type = type, .span = s->span, .op = s->op, .nargs = 2};
    e->args = ARENA_ARRAY(c->p->arena, 2, struct lang_expr *);
    e->args[0] = implicit(c, s->lhs, type);
    e->args[1] = s->rhs;
    return implicit(c, e, s->lhs->type);
}

static struct node *branch(struct compiler *c, const struct lang_expr *call,
                           const struct lang_stmt *s, const struct rest *r)
{
    struct node *cond = ref_compile_expr(c, s->cond);
    struct node *yes = cond ? follow(c, call, &(struct rest){s->body, 1, r}) : NULL;
    const struct rest other = {s->body + 1, 1, r};
    struct node *no = yes ? follow(c, call, s->nbody > 1 && s->body[1] ? &other : r) : NULL;
    if (!no)
        return NULL;
    struct node *n = ref_node_new(c, call, dtype_is_float(call->type) ? eval_fcond : eval_icond, 3);
    n->args[0] = cond;
    n->args[1] = yes;
    n->args[2] = no;
    return n;
}

static bool is_variable(const struct lang_stmt *s)
{
    const struct lang_symbol *sym = s->kind == S_DECL        ? s->sym
                                    : s->lhs->kind == E_NAME ? s->lhs->sym
                                                             : NULL;
    return sym && sym->kind == SYM_LOCAL && sym->rank == 0 && !sym->table;
}

/* What the statements return. */
static struct node *follow(struct compiler *c, const struct lang_expr *call, const struct rest *r)
{
    while (r && !r->n)
        r = r->next;
    if (c->p->nslot > SLOTS_MOST) {
        diag_error(c->d, call->span, "'%s' is too long for the reference to follow",
                   call->func->name);
        return NULL;
    }
    if (!r) {
        diag_error(c->d, call->span, "'%s' ends without returning a value", call->func->name);
        return NULL;
    }
    const struct lang_stmt *s = r->v[0];
    const struct rest after = {r->v + 1, r->n - 1, r->next};
    switch (s->kind) {
    case S_BLOCK: return follow(c, call, &(struct rest){s->body, s->nbody, &after});
    case S_RETURN: return ref_compile_expr(c, s->rhs);
    case S_IF: return branch(c, call, s, &after);
    case S_DECL:
        if (is_variable(s))
            return s->rhs ? bind(c, call, s->sym, s->rhs, &after) : follow(c, call, &after);
        break;
    case S_ASSIGN:
        if (is_variable(s))
            return bind(c, call, s->lhs->sym, assigned(c, s), &after);
        break;
    default: break;
    }
    diag_error(c->d, call->span,
               "the reference can't follow '%s': it knows variables, if and return alone",
               call->func->name);
    diag_note(c->d, s->span, "this is beyond it");
    return NULL;
}

static struct node *with_arguments(struct compiler *c, const struct lang_expr *e,
                                   struct node **value, uint32_t k)
{
    if (k < e->nargs)
        return let(c, e, value[k], with_arguments(c, e, value, k + 1));
    return follow(c, e, &(struct rest){&e->func->body, 1, NULL});
}

struct node *ref_inline_call(struct compiler *c, const struct lang_expr *e)
{
    const struct lang_func *f = e->func;
    if (!f->body || f->result == DT_VOID || f->result_lanes || e->nargs != f->nparam) {
        diag_error(c->d, e->span, "the reference can't call '%s', which returns no number",
                   f->name);
        return NULL;
    }
    struct node **value = ARENA_ARRAY(c->p->arena, e->nargs + 1, struct node *);
    for (uint32_t k = 0; k < e->nargs; k++)
        if (!(value[k] = ref_compile_expr(c, e->args[k])))
            return NULL;
    size_t before = c->locals.n;
    for (uint32_t k = 0; k < e->nargs; k++)
        *VEC_PUSH(c->p->arena, &c->locals) = (struct local_value){f->param[k], value[k]};
    struct node *n = with_arguments(c, e, value, 0);
    c->locals.n = before;
    return n;
}
