#include <config.h>

#include "kernels/eval_int.h"

/* Room for n cells, until the function that asked returns. */
union scalar *eval_cells(struct thread *t, size_t n)
{
    if (n > STACK_CELLS - t->top) {
        eval_fault(t, SPAN_NONE, "more than %d cells of local variables", STACK_CELLS);
        return t->stack;
    }
    union scalar *p = t->stack + t->top;
    t->top += n;
    return p;
}

/* ---- declarations ---------------------------------------------------------------------------- */

static struct storage *declare(struct thread *t, const struct lang_symbol *sym)
{
    struct storage *s = &t->frame->local[sym->id];
    unsigned lanes = sym->lanes ? sym->lanes : 1;
    if (s->sym) /* again, in a loop: the same place */
        return s;
    s->sym = sym;
    s->count = 1;
    for (uint32_t i = 0; i < sym->rank; i++) {
        int64_t n = 1;
        if (!lang_const_int(sym->dims[i], &n) || n < 1)
            eval_fault(t, sym->span, "'%s' has an extent that is not known", sym->name);
        s->dim[i] = (uint64_t)n;
        s->count *= (uint64_t)n;
    }
    s->cell = eval_cells(t, (size_t)s->count * lanes);
    return s;
}

static void declaration(struct thread *t, const struct lang_stmt *st)
{
    union scalar v[LANES_MOST];
    if (st->sym->kind != SYM_LOCAL)
        return;
    if (!st->rhs && !st->has_list) {
        declare(t, st->sym);
        return;
    }
    if (st->rhs) {
        eval_expr(t, st->rhs, v); /* before the name is known */
        eval_write(t, declare(t, st->sym), 0, v);
        return;
    }
    struct storage *s = declare(t, st->sym);
    for (uint64_t i = 0; i < s->count && !t->block->machine->fault; i++) {
        memset(v, 0, sizeof v);
        if (i < st->nlist && st->list[i])
            eval_expr(t, st->list[i], v);
        eval_write(t, s, i, v);
    }
}

/* ---- assignments ----------------------------------------------------------------------------- */

/* What one is assigned to: an element, and of a vector perhaps one lane of it. */
struct target {
    struct storage made, *s;
    uint64_t at;
    int lane; /* -1: all */
};

static bool find_target(struct thread *t, const struct lang_expr *e, struct target *g)
{
    g->s = &g->made;
    g->lane = -1;
    int lane = -1;
    if (e->kind == E_MEMBER) {
        lane = (int)e->ival;
        e = e->args[0];
    }
    g->lane = lane;
    if (e->kind == E_NAME && (e->sym->kind == SYM_LOCAL || e->sym->kind == SYM_SHARED)) {
        g->s = eval_storage(t, e->sym);
        g->at = 0;
        return true;
    }
    g->at = eval_place(t, e, &g->s, &g->lane);
    if (lane >= 0)
        g->lane = lane;
    return g->at != UINT64_MAX;
}

/* old op rhs, computed in rhs's type (a shift in the left side's) and brought back. */
static void compound(struct thread *t, const struct lang_stmt *s, const union scalar *old,
                     union scalar *out)
{
    const struct lang_expr *l = s->lhs, *r = s->rhs;
    bool is_shift = s->op == OP_SHL || s->op == OP_SHR;
    bool add = s->op == OP_ADD || s->op == OP_SUB;
    enum dtype type = !is_shift ? r->type : dtype_bits(l->type) < 32 ? DT_I32 : l->type;
    union scalar x[LANES_MOST], y[LANES_MOST];
    bool fused = t->block->machine->contract && add && dtype_is_float(type) &&
                 r->kind == E_BINARY && r->op == OP_MUL;
    if (fused) {
        eval_expr(t, r->args[0], x);
        eval_expr(t, r->args[1], y);
    } else {
        eval_expr(t, r, y);
    }
    for (unsigned k = 0; k < eval_lanes(l); k++) {
        union scalar was = scalar_convert(l->type, type, old[k]), v;
        if (fused) {
            union scalar a = x[r->args[0]->lanes ? k : 0], b = y[r->args[1]->lanes ? k : 0];
            if (s->op == OP_SUB)
                a.f = -a.f;
            v = scalar_fma(type, a, b, was);
        } else {
            v = scalar_binary(s->op, type, r->type, was, y[r->lanes ? k : 0]);
        }
        out[k] = scalar_convert(type, l->type, v);
    }
}

static void assignment(struct thread *t, const struct lang_stmt *s)
{
    union scalar v[LANES_MOST], old[LANES_MOST];
    struct target g;
    if (!find_target(t, s->lhs, &g))
        return;
    eval_read(t, g.s, g.at, old);
    if (s->has_op)
        compound(t, s, g.lane < 0 ? old : old + g.lane, v);
    else
        eval_expr(t, s->rhs, v);
    if (g.lane >= 0) {
        eval_read(t, g.s, g.at, old); /* the right side may have changed the others */
        old[g.lane] = v[0];
        memcpy(v, old, sizeof v);
    }
    eval_write(t, g.s, g.at, v);
}

/* ---- control --------------------------------------------------------------------------------- */

static enum flow loop(struct thread *t, const struct lang_stmt *s)
{
    enum flow f = FLOW_ON;
    if (s->init)
        eval_stmt(t, s->init);
    while (!t->block->machine->fault) {
        if (s->kind != S_DO && s->cond && !eval_condition(t, s->cond))
            break;
        f = eval_stmt(t, s->body[0]);
        if (f == FLOW_BREAK || f == FLOW_RETURN)
            break;
        if (s->step)
            eval_stmt(t, s->step);
        if (s->kind == S_DO && !eval_condition(t, s->cond))
            break;
    }
    return f == FLOW_RETURN ? f : FLOW_ON;
}

static enum flow switch_stmt(struct thread *t, const struct lang_stmt *s)
{
    const struct lang_stmt *b = s->body[0];
    union scalar v = eval_scalar(t, s->cond);
    uint32_t from = b->nbody;
    for (uint32_t i = 0; i < b->nbody; i++) {
        const struct lang_stmt *c = b->body[i];
        if (c->kind != S_CASE)
            continue;
        if (!c->rhs && from == b->nbody)
            from = i; /* default, unless a case below fits */
        if (c->rhs &&
            scalar_convert(c->rhs->type, s->cond->type, eval_scalar(t, c->rhs)).u == v.u) {
            from = i;
            break;
        }
    }
    for (uint32_t i = from; i < b->nbody; i++) {
        enum flow f = eval_stmt(t, b->body[i]);
        if (f != FLOW_ON)
            return f == FLOW_BREAK ? FLOW_ON : f;
    }
    return FLOW_ON;
}

static enum flow block(struct thread *t, const struct lang_stmt *s)
{
    for (uint32_t i = 0; i < s->nbody; i++) {
        enum flow f = eval_stmt(t, s->body[i]);
        if (f != FLOW_ON)
            return f;
    }
    return FLOW_ON;
}

enum flow eval_stmt(struct thread *t, const struct lang_stmt *s)
{
    union scalar v[LANES_MOST];
    if (t->block->machine->fault)
        return FLOW_RETURN;
    switch (s->kind) {
    case S_BLOCK: return block(t, s);
    case S_DECL: declaration(t, s); return FLOW_ON;
    case S_ASSIGN: assignment(t, s); return FLOW_ON;
    case S_EXPR: eval_expr(t, s->rhs, v); return FLOW_ON;
    case S_IF:
        if (eval_condition(t, s->cond))
            return eval_stmt(t, s->body[0]);
        return s->nbody > 1 && s->body[1] ? eval_stmt(t, s->body[1]) : FLOW_ON;
    case S_FOR:
    case S_WHILE:
    case S_DO: return loop(t, s);
    case S_BREAK: return FLOW_BREAK;
    case S_CONTINUE: return FLOW_CONTINUE;
    case S_RETURN:
        if (s->rhs) {
            eval_expr(t, s->rhs, v);
            memcpy(t->frame->result, v, sizeof v);
        }
        return FLOW_RETURN;
    case S_SWITCH: return switch_stmt(t, s);
    case S_CASE: return FLOW_ON;
    default: eval_fault(t, s->span, "a statement that the evaluator does not know"); return FLOW_ON;
    }
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Arguments by value; a local array is the caller's own. */
void eval_function(struct thread *t, const struct lang_expr *e, union scalar *out)
{
    const struct lang_func *f = e->func;
    struct frame frame = {.func = f, .nlocal = f->nlocal}, *up = t->frame;
    size_t top = t->top;
    union scalar v[LANES_MOST];
    size_t cells = (f->nlocal * sizeof *frame.local + sizeof v[0] - 1) / sizeof v[0];
    frame.local = (struct storage *)(void *)eval_cells(t, cells);
    if (t->block->machine->fault)
        return;
    memset(frame.local, 0, f->nlocal * sizeof *frame.local);
    for (uint32_t i = 0; i < e->nargs; i++) {
        struct lang_symbol *p = f->param[i];
        if (p->rank) {
            frame.local[p->id] = *eval_storage(t, e->args[i]->sym);
            frame.local[p->id].sym = p;
            continue;
        }
        eval_expr(t, e->args[i], v);
        t->frame = &frame;
        eval_write(t, declare(t, p), 0, v);
        t->frame = up;
    }
    t->frame = &frame;
    eval_stmt(t, f->body);
    t->frame = up;
    t->top = top;
    memcpy(out, frame.result, (f->result == DT_VOID ? 0 : eval_lanes(e)) * sizeof *out);
}
