#include <config.h>

#include "lower/cg.h"

#include <stdlib.h>

/* ---- declarations and assignments ----------------------------------------------------------------- */

static struct cg_val zero(struct cg *g, enum dtype t)
{
    return dtype_is_float(t) ? cg_float(g, t, 0) : cg_int(t, 0);
}

static void bind_local(struct cg *g, const struct lang_symbol *sym, struct cg_val v,
                       struct cg_since since)
{
    if (!inspect_needs_register(g, sym)) {
        cg_bind(g, sym, cg_freeze(g, v), false);
        return;
    }
    int32_t reg = cg_new_mutable(g, sym->type);
    cg_move_new(g, reg, v, since);
    cg_bind(g, sym, cg_value(sym->type, reg), true);
}

static void declare(struct cg *g, const struct lang_stmt *s)
{
    const struct lang_expr *init = s->rhs;
    if (s->sym->rank || s->sym->lanes || s->sym->kind == SYM_SHARED) {
        cg_error(g, s->span, "arrays and vectors are not in this version");
        return;
    }
    struct cg_since since = cg_now(g);
    bind_local(g, s->sym,
               init ? cg_convert(g, cg_expr(g, init), s->sym->type) : zero(g, s->sym->type), since);
}

/* old op rhs, as the type of lhs */
static struct cg_val compound(struct cg *g, const struct lang_stmt *s, struct cg_val old)
{
    enum dtype lt = s->lhs->type;
    struct lang_expr *rhs = s->rhs;
    bool shift = s->op == OP_SHL || s->op == OP_SHR;
    enum dtype t = rhs->type;
    if (shift) /* the count's type does not matter: the left one's promotion does */
        t = dtype_bits(lt) < 32 ? DT_I32 : lt;
    old = cg_convert(g, old, t);
    struct cg_val r;
    if (g->contract_fma && (s->op == OP_ADD || s->op == OP_SUB) && (t == DT_F32 || t == DT_F64) &&
        rhs->kind == E_BINARY && rhs->op == OP_MUL) {
        struct cg_val x = cg_expr(g, rhs->args[0]), y = cg_expr(g, rhs->args[1]);
        if (s->op == OP_SUB)
            x = cg_unary(g, OP_NEG, x);
        r = cg_fma(g, x, y, old);
    } else {
        r = cg_binary(g, s->op, old, cg_expr(g, rhs));
    }
    return cg_convert(g, r, lt);
}

static void assign_element(struct cg *g, const struct lang_stmt *s)
{
    const struct lang_expr *e = s->lhs;
    if (e->type == DT_I4 || e->type == DT_U4) {
        cg_error(g, e->span,
                 "two elements of '%s' share a byte, so storing one could undo another thread's "
                 "store: declare it u8 and store both nibbles at once",
                 e->sym->name);
        return;
    }
    struct cg_val sub[8];
    for (uint32_t i = 0; i < e->nargs; i++)
        sub[i] = cg_expr(g, e->args[i]);
    struct cg_place_of at = cg_element(g, e->sym, e->nargs, sub);
    struct cg_val v = s->has_op ? compound(g, s, cg_load(g, e->sym, at)) : cg_expr(g, s->rhs);
    cg_store(g, e->sym, at, cg_convert(g, v, e->type));
}

static void assign(struct cg *g, const struct lang_stmt *s)
{
    if (s->lhs->kind != E_NAME || s->lhs->sym->kind != SYM_LOCAL) {
        assign_element(g, s);
        return;
    }
    struct cg_since since = cg_now(g);
    struct cg_val old = cg_find(g, s->lhs->sym)->val;
    struct cg_val v = s->has_op ? compound(g, s, old) : cg_expr(g, s->rhs);
    v = cg_convert(g, v, s->lhs->type);
    struct cg_binding *b = cg_find(g, s->lhs->sym);
    if (b->is_mutable)
        cg_move_new(g, old.op.reg, v, since);
    else
        b->val = cg_freeze(g, v);
}

/* ---- control flow --------------------------------------------------------------------------------- */

/* break, continue and return alone under an if: a conditional jump. */
static bool jump_only(struct cg *g, const struct lang_stmt *s, uint32_t *label)
{
    while (s->kind == S_BLOCK && s->nbody == 1)
        s = s->body[0];
    if (s->kind == S_BREAK) {
        g->loop->exit_used = true;
        *label = g->loop->exit;
    } else if (s->kind == S_CONTINUE) {
        g->loop->next_used = true;
        *label = g->loop->next;
    } else if (s->kind == S_RETURN && !g->ret) {
        g->exit_used = true;
        *label = g->exit;
    } else {
        return false;
    }
    return true;
}

static void if_stmt(struct cg *g, const struct lang_stmt *s)
{
    const struct lang_stmt *yes = s->body[0], *no = s->nbody > 1 ? s->body[1] : NULL;
    uint32_t target;
    if (s->cond->kind == E_BOOL) { /* settled by -D: the other side is not even generated */
        if (s->cond->ival)
            cg_stmt(g, yes);
        else if (no)
            cg_stmt(g, no);
        return;
    }
    if (!no && jump_only(g, yes, &target)) {
        cg_branch(g, s->cond, true, target);
        return;
    }
    uint32_t end = cg_label(g, "endif"), other = no ? cg_label(g, "else") : end;
    size_t mark = cg_scope_open(g);
    cg_branch(g, s->cond, false, other);
    cg_stmt(g, yes);
    if (no) {
        cg_jump(g, end);
        cg_scope_close(g, mark);
        cg_place(g, other);
        cg_stmt(g, no);
    }
    cg_scope_close(g, mark);
    cg_place(g, end);
}

static void loop_stmt(struct cg *g, const struct lang_stmt *s)
{
    struct cg_loop loop = {.up = g->loop};
    size_t bound = g->bindings.n;
    if (s->init)
        cg_stmt(g, s->init);
    uint32_t head = cg_label(g, "loop");
    loop.exit = cg_label(g, "break");
    loop.next = cg_label(g, "next");
    g->loop = &loop;
    size_t mark = cg_scope_open(g);
    struct cg_nest nest;
    cg_nest_open(g, &nest, s);
    cg_place(g, head);
    cg_loop_head(g);
    if (s->kind != S_DO && s->cond)
        cg_branch(g, s->cond, false, loop.exit);
    size_t inner = cg_scope_open(g);
    cg_stmt(g, s->body[0]);
    cg_scope_close(g, inner);
    if (loop.next_used)
        cg_place(g, loop.next);
    if (s->step && !g->dead)
        cg_stmt(g, s->step);
    if (s->kind == S_DO) {
        if (!g->dead)
            cg_branch(g, s->cond, true, head);
    } else {
        cg_jump(g, head);
    }
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, loop.exit);
    g->loop = loop.up;
    g->bindings.n = bound;
}

static void return_stmt(struct cg *g, const struct lang_stmt *s)
{
    struct cg_return *r = g->ret;
    if (!r) {
        g->exit_used = true;
        cg_jump(g, g->exit);
        return;
    }
    struct cg_val v = {0};
    struct cg_since since = cg_now(g);
    if (s->rhs)
        v = cg_convert(g, cg_expr(g, s->rhs), r->func->result);
    if (s == r->last && !r->label_used) { /* the only way out: the value itself */
        r->value = v;
        r->has_value = s->rhs != NULL;
        return;
    }
    if (s->rhs && !r->has_value) {
        r->value = cg_value(r->func->result, cg_new_mutable(g, r->func->result));
        r->has_value = true;
    }
    if (s->rhs)
        cg_move_new(g, r->value.op.reg, v, since);
    r->label_used = true;
    if (s != r->last)
        cg_jump(g, r->label);
}

static void block(struct cg *g, const struct lang_stmt *s)
{
    size_t bound = g->bindings.n;
    for (uint32_t i = 0; i < s->nbody && !g->dead; i++)
        cg_stmt(g, s->body[i]);
    g->bindings.n = bound;
}

void cg_stmt(struct cg *g, const struct lang_stmt *s)
{
    if (g->failed || g->dead)
        return;
    if (s->kind != S_BLOCK)
        cg_at(g, s->span);
    switch (s->kind) {
    case S_BLOCK: block(g, s); break;
    case S_DECL: declare(g, s); break;
    case S_ASSIGN: assign(g, s); break;
    case S_EXPR: cg_expr(g, s->rhs); break;
    case S_IF: if_stmt(g, s); break;
    case S_FOR:
    case S_WHILE:
    case S_DO: loop_stmt(g, s); break;
    case S_BREAK:
        g->loop->exit_used = true;
        cg_jump(g, g->loop->exit);
        break;
    case S_CONTINUE:
        g->loop->next_used = true;
        cg_jump(g, g->loop->next);
        break;
    case S_RETURN: return_stmt(g, s); break;
    case S_SWITCH:
    case S_CASE: break;
    }
}

/* ---- functions ------------------------------------------------------------------------------------ */

static const struct lang_stmt *last_stmt(const struct lang_stmt *s)
{
    while (s && s->kind == S_BLOCK)
        s = s->nbody ? s->body[s->nbody - 1] : NULL;
    return s;
}

struct cg_val cg_inline(struct cg *g, const struct lang_func *f, size_t n, const struct cg_val *arg)
{
    struct cg_return ret = {.func = f, .label = cg_label(g, f->name), .last = last_stmt(f->body)};
    struct cg_return *up = g->ret;
    struct cg_loop *loop = g->loop;
    size_t bound = g->bindings.n, mark = cg_scope_open(g);
    inspect_function(g, f);
    for (size_t i = 0; i < n; i++) {
        const struct lang_symbol *p = f->param[i];
        struct cg_val v = cg_convert(g, arg[i], p->type);
        if (inspect_needs_register(g, p))
            bind_local(g, p, v, cg_now(g));
        else
            cg_bind(g, p, v, false);
    }
    g->ret = &ret;
    g->loop = NULL;
    g->depth++;
    cg_stmt(g, f->body);
    g->depth--;
    g->ret = up;
    g->loop = loop;
    g->bindings.n = bound;
    if (ret.label_used) {
        cg_scope_close(g, mark); /* not every path computed what is numbered */
        cg_place(g, ret.label);
    }
    return ret.has_value ? ret.value : zero(g, f->result < DT_COUNT ? f->result : DT_U32);
}
