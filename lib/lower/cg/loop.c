/* Loops, rolled and unrolled, and switch. */
#include <config.h>

#include "lower/cg/cg.h"

#include <stdlib.h>

/* Without being told: what indexes local arrays by its variable is unrolled up to MOST_OWN_...,
 * other loops only if they are short, to spare their counting and make constants of what is
 * computed from it. */
enum {
    MOST_ROUNDS = 1024,
    MOST_ROUNDS_IN_ALL = 100000,
    MOST_OWN_ROUNDS = 32,
    MOST_OWN_NODES = 1024,
    MOST_SHORT_ROUNDS = 16,
    MOST_SHORT_NODES = 512,
    CALL_NODES = 32, /* that a call of a function of numbers is worth */
};

/* ---- constants of the copy that is generated ------------------------------------------------- */

static bool constant_name(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    const struct cg_binding *b;
    int64_t i;
    if (e->sym->has_value) {
        *v = cg_int(e->type, (int64_t)e->sym->value);
        return true;
    }
    if (e->sym->kind != SYM_INDEX && e->sym->kind != SYM_LOCAL)
        return false;
    b = cg_find(g, e->sym);
    if (!b || b->is_mutable || b->cell || b->array || !cg_is_const(b->val, &i))
        return false;
    *v = b->val;
    return true;
}

static bool constant_binary(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct cg_val x, y;
    int64_t i, j;
    if (!cg_constant(g, e->args[0], &x) || !cg_is_const(x, &i))
        return false;
    if ((e->op == OP_LAND || e->op == OP_LOR) && (i != 0) == (e->op == OP_LOR)) {
        *v = x;
        return true;
    }
    if (!cg_constant(g, e->args[1], &y) || !cg_is_const(y, &j))
        return false;
    bool divides = e->op == OP_DIV || e->op == OP_MOD, shifts = e->op == OP_SHL || e->op == OP_SHR;
    if ((divides && (j == 0 || j == -1)) ||
        (shifts && (j < 0 || j >= (int64_t)dtype_bits(e->type))))
        return false; /* the instruction says what happens */
    *v = cg_binary(g, e->op, x, y);
    return true;
}

static bool constant_call(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct cg_val x[2];
    int64_t i;
    if (e->func || (e->fn != FN_MIN && e->fn != FN_MAX))
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (!cg_constant(g, e->args[k], &x[k]) || !cg_is_const(x[k], &i))
            return false;
    *v = cg_minmax(g, e->fn == FN_MAX, x[0], x[1]);
    return true;
}

bool cg_constant(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct cg_val x;
    int64_t i;
    if (e->lanes)
        return false;
    switch (e->kind) {
    case E_INT: *v = cg_int(e->type, (int64_t)e->ival); return dtype_is_int(e->type);
    case E_BOOL: *v = cg_bool(g, e->ival != 0); return true;
    case E_NAME: return constant_name(g, e, v);
    case E_SPECIAL:
        if (e->special < SP_NTID_X || e->special > SP_NTID_Z || !g->block[e->special - SP_NTID_X])
            return false;
        *v = cg_special(g, e->special);
        return true;
    case E_UNARY:
        if (!cg_constant(g, e->args[0], &x) || !cg_is_const(x, &i))
            return false;
        *v = cg_unary(g, e->op, x);
        return true;
    case E_BINARY: return constant_binary(g, e, v);
    case E_CAST:
        if (dtype_is_float(e->type) || !cg_constant(g, e->args[0], &x) || !cg_is_const(x, &i))
            return false;
        *v = cg_convert(g, x, e->type);
        return cg_is_const(*v, &i);
    case E_COND:
        return cg_constant(g, e->args[0], &x) && cg_is_const(x, &i) &&
               cg_constant(g, e->args[i ? 1 : 2], v);
    case E_CALL: return constant_call(g, e, v);
    default: return false;
    }
}

/* ---- questions about loops ------------------------------------------------------------------- */

static bool is_loop(const struct lang_stmt *s)
{
    return s->kind == S_FOR || s->kind == S_WHILE || s->kind == S_DO;
}

static bool jumps(const struct lang_stmt *s, bool in_switch)
{
    if (s->kind == S_CONTINUE || (s->kind == S_BREAK && !in_switch))
        return true;
    for (uint32_t i = 0; i < s->nbody && !is_loop(s); i++)
        if (jumps(s->body[i], in_switch || s->kind == S_SWITCH))
            return true;
    return false;
}

bool cg_jumps(const struct lang_stmt *s)
{
    return jumps(s->body[0], false);
}

static bool mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    return e && inspect_mentions(e, 1, (struct lang_symbol *const[]){(struct lang_symbol *)sym});
}

/* A local array's element, or a vector's lane, whose subscript has the variable. */
static bool indexes_local(const struct lang_expr *e, const struct lang_symbol *var)
{
    if (!e)
        return false;
    if (e->kind == E_INDEX && e->sym->kind == SYM_LOCAL)
        for (uint32_t i = 0; i < e->nargs; i++)
            if (mentions(e->args[i], var))
                return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (indexes_local(e->args[i], var))
            return true;
    return false;
}

static bool body_indexes(const struct lang_stmt *s, const struct lang_symbol *var)
{
    if (!s)
        return false;
    if (indexes_local(s->lhs, var) || indexes_local(s->rhs, var) || indexes_local(s->cond, var))
        return true;
    for (uint32_t i = 0; i < s->nbody; i++)
        if (body_indexes(s->body[i], var))
            return true;
    return body_indexes(s->init, var) || body_indexes(s->step, var);
}

static uint32_t stmt_nodes(const struct lang_stmt *s);

static uint32_t expr_nodes(const struct lang_expr *e)
{
    uint32_t n = e ? 1 : 0;
    for (uint32_t i = 0; e && i < e->nargs; i++)
        n += expr_nodes(e->args[i]);
    if (e && e->kind == E_CALL)
        n += e->func ? stmt_nodes(e->func->body) : lang_builtin_acts(e->fn) ? 1 : CALL_NODES;
    return n < MOST_OWN_NODES ? n : MOST_OWN_NODES; /* functions that call functions multiply */
}

static uint32_t stmt_nodes(const struct lang_stmt *s)
{
    if (!s)
        return 0;
    uint32_t n = 1 + expr_nodes(s->lhs) + expr_nodes(s->rhs) + expr_nodes(s->cond);
    for (uint32_t i = 0; i < s->nbody; i++)
        n += stmt_nodes(s->body[i]);
    n += stmt_nodes(s->init) + stmt_nodes(s->step);
    return n < MOST_OWN_NODES ? n : MOST_OWN_NODES;
}

bool cg_wants_unrolling(const struct lang_stmt *s)
{
    if (s->unroll || s->kind != S_FOR)
        return s->unroll == LANG_UNROLL_FULL;
    return s->init && s->init->kind == S_DECL && body_indexes(s->body[0], s->init->sym);
}

/* ---- how many rounds ------------------------------------------------------------------------- */

/* The one statement that changes the loop's variable. */
struct counter {
    const struct lang_symbol *sym;
    const struct lang_stmt *change;
    bool is_own; /* declared by the loop */
};

static unsigned assignments(const struct lang_stmt *s, const struct lang_symbol *sym)
{
    if (!s)
        return 0;
    unsigned n = s->kind == S_ASSIGN && inspect_root(s->lhs) == sym;
    for (uint32_t i = 0; i < s->nbody; i++)
        n += assignments(s->body[i], sym);
    return n + assignments(s->init, sym) + assignments(s->step, sym);
}

static bool is_counter(const struct lang_stmt *s, const struct lang_stmt *change)
{
    return change && change->kind == S_ASSIGN && change->lhs->kind == E_NAME &&
           change->lhs->sym->kind == SYM_LOCAL && !change->lhs->lanes &&
           mentions(s->cond, change->lhs->sym);
}

static bool find_counter(const struct lang_stmt *s, struct counter *c)
{
    const struct lang_stmt *body = s->body[0];
    *c = (struct counter){0};
    if (!s->cond)
        return false;
    if (is_counter(s, s->step))
        c->change = s->step;
    for (uint32_t i = 0; i < body->nbody && !c->change && !cg_jumps(s); i++)
        if (is_counter(s, body->body[i]))
            c->change = body->body[i];
    if (!c->change)
        return false;
    c->sym = c->change->lhs->sym;
    c->is_own = s->init && s->init->kind == S_DECL;
    return assignments(body, c->sym) + assignments(s->step, c->sym) == 1;
}

/* The variable's value after its change; false where that is no constant. */
static bool changed(struct cg *g, const struct lang_stmt *change, struct cg_val old,
                    struct cg_val *v)
{
    struct cg_val rhs;
    int64_t i;
    if (!cg_constant(g, change->rhs, &rhs) || !cg_is_const(rhs, &i))
        return false;
    if (!change->has_op) {
        *v = cg_convert(g, rhs, old.type);
        return cg_is_const(*v, &i);
    }
    if (((change->op == OP_DIV || change->op == OP_MOD) && (i == 0 || i == -1)) ||
        ((change->op == OP_SHL || change->op == OP_SHR) && (i < 0 || i > 31)))
        return false;
    *v = cg_compound(g, change, old);
    return cg_is_const(*v, &i);
}

static bool first_value(struct cg *g, const struct lang_stmt *s, const struct counter *c,
                        struct cg_val *v)
{
    const struct cg_binding *b;
    const struct lang_stmt *init = s->init;
    int64_t i;
    bool sets = init && ((init->kind == S_DECL && init->sym == c->sym) ||
                         (init->kind == S_ASSIGN && init->lhs->sym == c->sym && !init->has_op));
    if (sets && init->rhs && cg_constant(g, init->rhs, v) && cg_is_const(*v, &i)) {
        *v = cg_convert(g, *v, c->sym->type);
        return cg_is_const(*v, &i);
    }
    b = sets ? NULL : cg_find(g, c->sym);
    if (!b || b->is_mutable || !cg_is_const(b->val, &i))
        return false;
    *v = b->val;
    return true;
}

/* Runs the loop's head without its body. False when it can't be told, or takes more than `most`
 * rounds. */
static bool count_rounds(struct cg *g, const struct lang_stmt *s, uint32_t most, uint32_t *rounds)
{
    struct counter c;
    struct cg_val v, cond;
    int64_t i;
    bool good = find_counter(s, &c) && first_value(g, s, &c, &v);
    size_t bound = g->bindings.n;
    *rounds = 0;
    for (bool first = true; good; first = false) {
        g->bindings.n = bound;
        cg_bind(g, c.sym, v, false);
        if (!(first && s->kind == S_DO)) {
            good = cg_constant(g, s->cond, &cond) && cg_is_const(cond, &i);
            if (good && !i)
                break;
        }
        good = good && ++*rounds <= most && changed(g, c.change, v, &v);
    }
    g->bindings.n = bound;
    return good;
}

/* ---- generating ------------------------------------------------------------------------------ */

/* One copy of the body, to where continue goes. */
static void round_of(struct cg *g, const struct lang_stmt *s, struct cg_loop *loop)
{
    loop->next = cg_label(g, "next");
    loop->next_used = false;
    size_t inner = cg_scope_open(g);
    cg_stmt(g, s->body[0]);
    if (loop->next_used) {
        cg_scope_close(g, inner);
        cg_place(g, loop->next);
    }
}

static void unrolled(struct cg *g, const struct lang_stmt *s, uint32_t rounds)
{
    struct cg_loop loop = {.up = g->loop, .exit = cg_label(g, "break")};
    size_t bound = g->bindings.n, mark = cg_scope_open(g);
    struct counter c;
    struct cg_val v = {0};
    find_counter(s, &c);
    first_value(g, s, &c, &v);
    if (s->init)
        cg_stmt(g, s->init);
    if (cg_jumps(s))
        cg_promote(g, s->body[0]);
    if (cg_find(g, c.sym)->is_mutable) { /* it has a register, but is a constant here */
        cg_move(g, cg_find(g, c.sym)->val.op.reg, v);
        cg_bind(g, c.sym, v, false);
    }
    g->loop = &loop;
    for (uint32_t k = 0; k < rounds && !g->dead && !g->failed; k++) {
        if (g->rounds++ == MOST_ROUNDS_IN_ALL)
            cg_error(g, s->span, "loops are unrolled into more than %d rounds in all",
                     MOST_ROUNDS_IN_ALL);
        round_of(g, s, &loop);
        if (s->step && !g->dead)
            cg_stmt(g, s->step);
    }
    g->loop = loop.up;
    struct cg_val last = cg_find(g, c.sym)->val;
    g->bindings.n = bound;
    struct cg_binding *outer = cg_find(g, c.sym);
    if (outer && outer->is_mutable && !g->dead)
        cg_move(g, outer->val.op.reg, last);
    if (loop.exit_used) {
        cg_scope_close(g, mark);
        cg_place(g, loop.exit);
    }
}

/* The loop's condition, on its own line again after the body's. */
static void ask(struct cg *g, const struct lang_stmt *s, bool sense, uint32_t label)
{
    cg_at(g, s->cond->span);
    cg_branch(g, s->cond, sense, label);
}

/* for (...; v < end; v += step) with an end that stays what it is. */
struct stride {
    const struct lang_expr *v, *end;
    bool inclusive;
    uint64_t step;
};

static bool is_fixed(const struct lang_expr *e, const struct lang_stmt *s)
{
    bool leaf =
        e->kind == E_INT || e->kind == E_SPECIAL ||
        (e->kind == E_NAME && (e->sym->kind == SYM_DIM || e->sym->kind == SYM_SCALAR ||
                               (e->sym->kind == SYM_LOCAL && !assignments(s->body[0], e->sym) &&
                                !assignments(s->step, e->sym))));
    if (!leaf && e->kind != E_UNARY && e->kind != E_BINARY && e->kind != E_CAST)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_fixed(e->args[i], s))
            return false;
    return !e->lanes;
}

static bool find_stride(const struct lang_stmt *s, struct stride *t)
{
    struct counter c;
    int64_t step;
    const struct lang_expr *e = s->cond;
    if (s->kind != S_FOR || !find_counter(s, &c) || c.change != s->step || e->kind != E_BINARY ||
        e->op < OP_LT || e->op > OP_GE)
        return false;
    bool mirrored = e->op == OP_GT || e->op == OP_GE;
    t->v = e->args[mirrored];
    t->end = e->args[!mirrored];
    t->inclusive = e->op == OP_LE || e->op == OP_GE;
    if (t->v->kind != E_NAME || t->v->sym != c.sym || dtype_bits(t->v->type) < 32 ||
        !dtype_is_int(t->v->type) || !is_fixed(t->end, s) || !s->step->has_op ||
        s->step->op != OP_ADD || !lang_const_int(s->step->rhs, &step) || step < 1 || step > 1 << 16)
        return false;
    t->step = (uint64_t)step;
    return true;
}

/* Runs `copies` rounds at a time while that many are left, without a test between them. */
static void rounds_at_once(struct cg *g, const struct lang_stmt *s, const struct stride *t,
                           uint32_t copies, struct cg_loop *loop)
{
    uint32_t head = cg_label(g, "loop"), rest = cg_label(g, "rest");
    enum dtype distance = dtype_bits(t->v->type) == 64 ? DT_U64 : DT_U32;
    struct cg_val end = cg_freeze(g, cg_expr(g, t->end));
    size_t mark = cg_scope_open(g);
    struct cg_nest nest;
    cg_nest_open(g, &nest, s);
    cg_place(g, head);
    cg_loop_head(g);
    struct cg_val v = cg_expr(g, t->v);
    struct cg_val some = cg_binary(g, t->inclusive ? OP_LE : OP_LT, v, end);
    struct cg_val left = cg_convert(g, cg_binary(g, OP_SUB, end, v), distance);
    struct cg_val most = cg_int(distance, (int64_t)(t->step * (copies - 1)));
    struct cg_val all = cg_binary(g, t->inclusive ? OP_GE : OP_GT, left, most);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LAND, some, all)), false, rest);
    for (uint32_t k = 0; k < copies && !g->dead; k++) {
        size_t inner = cg_scope_open(g);
        round_of(g, s, loop);
        cg_scope_close(g, inner);
        if (!g->dead)
            cg_stmt(g, s->step);
    }
    cg_jump(g, head);
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, rest);
}

/* copies: of the body in one round of the loop; between them the condition is asked unless it is
 * known to hold. */
static void rolled(struct cg *g, const struct lang_stmt *s, uint32_t copies, bool known)
{
    struct cg_loop loop = {.up = g->loop};
    size_t bound = g->bindings.n;
    if (s->init)
        cg_stmt(g, s->init);
    cg_promote(g, s->body[0]);
    cg_promote(g, s->step);
    cg_promote_expr(g, s->cond);
    uint32_t head = cg_label(g, "loop");
    loop.exit = cg_label(g, "break");
    g->loop = &loop;
    struct stride stride;
    if (copies > 1 && !known && find_stride(s, &stride)) {
        rounds_at_once(g, s, &stride, copies, &loop);
        copies = 1;
    }
    size_t mark = cg_scope_open(g);
    struct cg_nest nest;
    cg_nest_open(g, &nest, s);
    cg_place(g, head);
    cg_loop_head(g);
    for (uint32_t k = 0; k < copies && !g->dead; k++) {
        if (s->kind != S_DO && s->cond && (k == 0 || !known))
            ask(g, s, false, loop.exit);
        size_t inner = cg_scope_open(g);
        round_of(g, s, &loop);
        cg_scope_close(g, inner);
        if (s->step && !g->dead)
            cg_stmt(g, s->step);
        if (s->kind == S_DO && k + 1 < copies && !known && !g->dead)
            ask(g, s, false, loop.exit);
    }
    if (s->kind == S_DO) {
        if (!g->dead)
            ask(g, s, true, head);
    } else {
        cg_jump(g, head);
    }
    cg_nest_close(g, &nest);
    cg_scope_close(g, mark);
    cg_place(g, loop.exit);
    g->loop = loop.up;
    g->bindings.n = bound;
}

/* #pragma unroll that can't be followed is said once, not for each copy of a loop around it. */
static void left_rolled(struct cg *g, const struct lang_stmt *s)
{
    for (size_t i = 0; i < g->d->list.n; i++)
        if (g->d->list.v[i].span.off == s->span.off && g->d->list.v[i].span.src == s->span.src &&
            g->d->list.v[i].level == DIAG_WARNING)
            return;
    if (g->again)
        return;
    struct counter c;
    uint32_t rounds;
    const char *why = !find_counter(s, &c) ? "nothing in its condition changes in one place only"
                      : count_rounds(g, s, 1 << 20, &rounds)
                          ? "it has more than 1024 rounds"
                          : "the number of its rounds is not a constant";
    diag_warning(g->d, s->span, "this loop is not unrolled: %s", why);
}

void cg_loop_stmt(struct cg *g, const struct lang_stmt *s)
{
    uint32_t rounds = 0;
    bool full = s->unroll == LANG_UNROLL_FULL, counted = false;
    if (s->unroll != 1)
        counted = count_rounds(g, s, MOST_ROUNDS, &rounds);
    uint32_t nodes = counted ? rounds * stmt_nodes(s->body[0]) : 0;
    bool own = !s->unroll && cg_wants_unrolling(s) && rounds <= MOST_OWN_ROUNDS &&
               nodes <= MOST_OWN_NODES;
    own |= !s->unroll && rounds <= MOST_SHORT_ROUNDS && nodes <= MOST_SHORT_NODES;
    struct counter c;
    bool leaves = cg_jumps(s) && !(find_counter(s, &c) && c.is_own);
    if (counted && !leaves && (full || own || (s->unroll > 1 && rounds <= s->unroll))) {
        unrolled(g, s, rounds);
        return;
    }
    if (full)
        left_rolled(g, s);
    uint32_t copies = s->unroll && !full ? s->unroll : 1;
    rolled(g, s, copies, counted && rounds % copies == 0);
}
