#include <config.h>

#include "lower/cg/cg.h"

#include <stdlib.h>

/* ---- declarations and assignments ------------------------------------------------------------ */

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

/* Arrays, vectors and shared variables. */
static void declare_cells(struct cg *g, const struct lang_stmt *s)
{
    struct cg_val v = {0};
    if (s->rhs)
        v = cg_convert(g, cg_expr(g, s->rhs), s->sym->type);
    cg_declare_array(g, s);
    if (!s->rhs)
        return;
    struct cg_target to = {.type = s->sym->type,
                           .lanes = s->sym->lanes,
                           .cell = g->bindings.v[g->bindings.n - 1].cell};
    cg_set(g, &to, v, cg_now(g));
}

static void declare(struct cg *g, const struct lang_stmt *s)
{
    const struct lang_expr *init = s->rhs;
    if (s->sym->rank || s->sym->lanes || s->sym->kind == SYM_SHARED) {
        declare_cells(g, s);
        return;
    }
    struct cg_since since = cg_now(g);
    bind_local(g, s->sym,
               init ? cg_convert(g, cg_expr(g, init), s->sym->type) : zero(g, s->sym->type), since);
}

static struct cg_val lane_binary(struct cg *g, const void *how, const struct cg_val *x)
{
    return cg_binary(g, *(const enum lang_op *)how, x[0], x[1]);
}

static struct cg_val lane_fma(struct cg *g, const void *how, const struct cg_val *x)
{
    bool sub = *(const enum lang_op *)how == OP_SUB;
    return cg_fma(g, sub ? cg_unary(g, OP_NEG, x[0]) : x[0], x[1], x[2]);
}

struct cg_val cg_compound(struct cg *g, const struct lang_stmt *s, struct cg_val old)
{
    enum dtype lt = s->lhs->type;
    struct lang_expr *rhs = s->rhs;
    bool shift = s->op == OP_SHL || s->op == OP_SHR;
    enum dtype t = rhs->type;
    struct cg_val x[3];
    if (shift) /* the count's type does not matter: the left one's promotion does */
        t = dtype_bits(lt) < 32 ? DT_I32 : lt;
    old = cg_convert(g, old, t);
    if (g->contract_fma && (s->op == OP_ADD || s->op == OP_SUB) && (t == DT_F32 || t == DT_F64) &&
        rhs->kind == E_BINARY && rhs->op == OP_MUL) {
        x[0] = cg_expr(g, rhs->args[0]);
        x[1] = cg_expr(g, rhs->args[1]);
        x[2] = old;
        return cg_convert(g, cg_lanewise(g, lane_fma, &s->op, 3, x), lt);
    }
    x[0] = old;
    x[1] = cg_expr(g, rhs);
    return cg_convert(g, cg_lanewise(g, lane_binary, &s->op, 2, x), lt);
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
    struct cg_target to = cg_target(g, e);
    struct cg_since since = cg_now(g);
    struct cg_val v = s->has_op ? cg_compound(g, s, cg_get(g, &to)) : cg_expr(g, s->rhs);
    cg_set(g, &to, cg_convert(g, v, e->type), since);
}

static void assign(struct cg *g, const struct lang_stmt *s)
{
    if (s->lhs->kind != E_NAME || s->lhs->sym->kind != SYM_LOCAL || s->lhs->lanes) {
        assign_element(g, s);
        return;
    }
    struct cg_since since = cg_now(g);
    struct cg_val old = cg_find(g, s->lhs->sym)->val;
    struct cg_val v = s->has_op ? cg_compound(g, s, old) : cg_expr(g, s->rhs);
    v = cg_convert(g, v, s->lhs->type);
    struct cg_binding *b = cg_find(g, s->lhs->sym);
    if (b->is_mutable)
        cg_move_new(g, old.op.reg, v, since);
    else
        b->val = cg_freeze(g, v);
}

/* ---- control flow ---------------------------------------------------------------------------- */

/* The label that continue goes to: that of the innermost loop, past a switch. */
static uint32_t next_label(struct cg *g)
{
    struct cg_loop *l = g->loop;
    while (l->is_switch)
        l = l->up;
    l->next_used = true;
    return l->next;
}

/* break, continue and return alone under an if: a conditional jump. */
static bool jump_only(struct cg *g, const struct lang_stmt *s, uint32_t *label)
{
    while (s->kind == S_BLOCK && s->nbody == 1)
        s = s->body[0];
    if (s->kind == S_BREAK) {
        g->loop->exit_used = true;
        *label = g->loop->exit;
    } else if (s->kind == S_CONTINUE) {
        *label = next_label(g);
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
    struct cg_val known;
    int64_t c;
    /* settled by -D or in this copy of a loop: the other side is not even generated */
    if (cg_constant(g, s->cond, &known) && cg_is_const(known, &c)) {
        if (c)
            cg_stmt(g, yes);
        else if (no)
            cg_stmt(g, no);
        return;
    }
    if (!no && jump_only(g, yes, &target)) {
        cg_branch(g, s->cond, true, target);
        return;
    }
    cg_promote(g, yes);
    cg_promote(g, no);
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

/* The label that each case has, and a jump to the one that the value chooses; where that is known
 * now, the others keep UINT32_MAX. */
static void choose_case(struct cg *g, const struct lang_stmt *s, struct cg_loop *out,
                        uint32_t *label)
{
    const struct lang_stmt *body = s->body[0];
    struct cg_val v = cg_freeze(g, cg_expr(g, s->cond));
    int64_t known, i;
    bool is_known = cg_is_const(v, &known);
    const struct lang_stmt *chosen = NULL, *other = NULL;
    for (uint32_t k = 0; k < body->nbody; k++) {
        const struct lang_stmt *c = body->body[k];
        label[k] = UINT32_MAX;
        if (c->kind != S_CASE)
            continue;
        if (!c->rhs)
            other = c;
        else if (is_known && cg_is_const(cg_expr(g, c->rhs), &i) && i == known)
            chosen = c;
    }
    if (!chosen)
        chosen = other;
    for (uint32_t k = 0; k < body->nbody; k++) {
        const struct lang_stmt *c = body->body[k];
        if (c->kind != S_CASE || (is_known && c != chosen))
            continue;
        label[k] = cg_label(g, c->rhs ? "case" : "default");
        if (is_known || !c->rhs)
            continue;
        struct cg_val is = cg_binary(g, OP_EQ, v, cg_convert(g, cg_expr(g, c->rhs), v.type));
        cg_jump_if(g, cg_reg(g, is), true, label[k]);
    }
    for (uint32_t k = 0; k < body->nbody; k++)
        if (body->body[k] == chosen)
            cg_jump(g, label[k]);
    if (!chosen) {
        out->exit_used = true;
        cg_jump(g, out->exit);
    }
}

/* The comparisons, and then the statements, which fall through. */
static void switch_stmt(struct cg *g, const struct lang_stmt *s)
{
    const struct lang_stmt *body = s->body[0];
    struct cg_loop out = {.up = g->loop, .exit = cg_label(g, "endswitch"), .is_switch = true};
    uint32_t *label = ARENA_ARRAY(g->a, body->nbody, uint32_t);
    cg_promote(g, body);
    size_t mark = cg_scope_open(g);
    choose_case(g, s, &out, label);
    cg_scope_close(g, mark);
    g->loop = &out;
    for (uint32_t i = 0; i < body->nbody; i++) {
        if (body->body[i]->kind != S_CASE) {
            cg_stmt(g, body->body[i]);
        } else if (label[i] != UINT32_MAX) {
            cg_scope_close(g, mark);
            cg_place(g, label[i]);
        }
    }
    g->loop = out.up;
    cg_scope_close(g, mark);
    if (out.exit_used || !g->dead)
        cg_place(g, out.exit);
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
        r->into = cg_temporary(g, r->func->result, r->func->result_lanes);
        r->value = cg_get(g, &r->into);
        r->has_value = true;
    }
    if (s->rhs)
        cg_set(g, &r->into, v, since);
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
    case S_EXPR:
        g->unused = s->rhs;
        cg_expr(g, s->rhs);
        break;
    case S_IF: if_stmt(g, s); break;
    case S_FOR:
    case S_WHILE:
    case S_DO: cg_loop_stmt(g, s); break;
    case S_BREAK:
        g->loop->exit_used = true;
        cg_jump(g, g->loop->exit);
        break;
    case S_CONTINUE: cg_jump(g, next_label(g)); break;
    case S_RETURN: return_stmt(g, s); break;
    case S_SWITCH: switch_stmt(g, s); break;
    case S_CASE: break; /* switch_stmt has placed its label */
    }
}

/* ---- functions ------------------------------------------------------------------------------- */

static const struct lang_stmt *last_stmt(const struct lang_stmt *s)
{
    while (s && s->kind == S_BLOCK)
        s = s->nbody ? s->body[s->nbody - 1] : NULL;
    return s;
}

/* A return before the end: what the function assigns may or may not have been when it is left. */
static bool returns_early(const struct lang_stmt *s, const struct lang_stmt *last)
{
    if (s->kind == S_RETURN)
        return s != last;
    for (uint32_t i = 0; i < s->nbody; i++)
        if (returns_early(s->body[i], last))
            return true;
    return false;
}

static void bind_parameter(struct cg *g, const struct lang_symbol *p, struct cg_val v)
{
    v = cg_convert(g, v, p->type);
    if (v.lanes) {
        cg_bind(g, p, cg_int(DT_U32, 0), false);
        struct cg_binding *b = &g->bindings.v[g->bindings.n - 1];
        b->ncell = v.lanes;
        b->cell = cg_cells(g, v.lanes);
        for (unsigned k = 0; k < v.lanes; k++)
            b->cell[k] = (struct cg_cell){.val = v.lane[k], .is_set = true};
    } else if (inspect_needs_register(g, p)) {
        bind_local(g, p, v, cg_now(g));
    } else {
        cg_bind(g, p, v, false);
    }
}

struct cg_val cg_inline(struct cg *g, const struct lang_func *f, size_t n, const struct cg_val *arg,
                        const struct lang_expr *call)
{
    struct cg_return ret = {.func = f, .label = cg_label(g, f->name), .last = last_stmt(f->body)};
    struct cg_return *up = g->ret;
    struct cg_loop *loop = g->loop;
    size_t bound = g->bindings.n, mark = cg_scope_open(g);
    bool arrays = false; /* assigning to one must not change a value that was an element of it */
    for (size_t i = 0; i < n; i++)
        arrays |= lang_given_itself(f->param[i]);
    inspect_function(g, f);
    for (size_t i = 0; i < n; i++) {
        if (!lang_given_itself(f->param[i])) {
            bind_parameter(g, f->param[i], arrays ? cg_freeze(g, arg[i]) : arg[i]);
            continue;
        }
        const struct lang_symbol *given = call->args[i]->sym;
        struct cg_binding b = {.array = cg_shared_symbol(g, given)};
        if (given->kind == SYM_LOCAL)
            b = *cg_array(g, given);
        b.sym = f->param[i];
        *VEC_PUSH(g->a, &g->bindings) = b;
    }
    if (call && returns_early(f->body, ret.last))
        cg_promote(g, f->body);
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
    if (ret.has_value)
        return ret.value;
    struct cg_target none = {.type = f->result < DT_COUNT ? f->result : DT_U32,
                             .lanes = f->result_lanes,
                             .cell = cg_cells(g, 16)};
    return cg_get(g, &none);
}
