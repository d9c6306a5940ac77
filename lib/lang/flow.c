/* A forward walk over a checked body: variables read before they have a value, statements that are never reached,
 * functions that end without a result, outputs read before they are written.
 *
 * A state holds, for each variable, whether it surely has a value and whether it may have one, and whether the place
 * is reached at all. Where ways meet, "surely" is what all of them say and "may" what any of them says. What a
 * loop assigns may have a value at its head.
 */
#include <config.h>

#include "lang/lang_int.h"

struct state {
    bool live;
    uint64_t *sure, *maybe;
    struct state *next; /* in the pool */
};

struct loop {
    struct state *leave, *again; /* what break and continue bring; dead if there is none */
};

struct flow {
    struct arena *a;
    struct diags *d;
    const struct lang_func *func;
    size_t words;
    struct state *pool;
    uint64_t *warned;
    VEC(const struct lang_symbol *) written; /* outputs that something before may have written */
    bool wrote_unknown;                      /* a function that writes was called */
    bool good;
};

static struct state *take(struct flow *f)
{
    struct state *s = f->pool;
    if (s) {
        f->pool = s->next;
    } else {
        s = ARENA_NEW(f->a, struct state);
        s->sure = ARENA_ARRAY(f->a, f->words, uint64_t);
        s->maybe = ARENA_ARRAY(f->a, f->words, uint64_t);
    }
    s->live = false;
    return s;
}

static void give(struct flow *f, struct state *s)
{
    s->next = f->pool;
    f->pool = s;
}

static void copy(const struct flow *f, struct state *to, const struct state *from)
{
    to->live = from->live;
    memcpy(to->sure, from->sure, f->words * sizeof *to->sure);
    memcpy(to->maybe, from->maybe, f->words * sizeof *to->maybe);
}

static void merge(const struct flow *f, struct state *to, const struct state *from)
{
    if (!from->live)
        return;
    if (!to->live) {
        copy(f, to, from);
        return;
    }
    for (size_t i = 0; i < f->words; i++) {
        to->sure[i] &= from->sure[i];
        to->maybe[i] |= from->maybe[i];
    }
}

static void set_bit(uint64_t *set, uint32_t id, bool on)
{
    uint64_t bit = (uint64_t)1 << (id % 64);
    set[id / 64] = on ? set[id / 64] | bit : set[id / 64] & ~bit;
}

static bool get_bit(const uint64_t *set, uint32_t id)
{
    return set[id / 64] >> (id % 64) & 1;
}

static void assign(struct state *s, const struct lang_symbol *sym)
{
    set_bit(s->sure, sym->id, true);
    set_bit(s->maybe, sym->id, true);
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void use_local(struct flow *f, const struct state *s, const struct lang_expr *e)
{
    const struct lang_symbol *sym = e->sym;
    if (get_bit(s->sure, sym->id) || get_bit(f->warned, sym->id))
        return;
    set_bit(f->warned, sym->id, true);
    if (get_bit(s->maybe, sym->id)) {
        diag_warning(f->d, e->span, "'%s' may have no value yet", sym->name);
    } else {
        diag_error(f->d, e->span, "'%s' has no value yet", sym->name);
        f->good = false;
    }
    diag_note(f->d, sym->span, "give it one where it is declared");
}

static bool is_written(const struct flow *f, const struct lang_symbol *sym)
{
    for (size_t i = 0; i < f->written.n; i++)
        if (f->written.v[i] == sym)
            return true;
    return f->wrote_unknown;
}

static void add_written(struct flow *f, const struct lang_symbol *sym)
{
    if (!is_written(f, sym))
        *VEC_PUSH(f->a, &f->written) = sym;
}

static void use(struct flow *f, const struct state *s, const struct lang_expr *e)
{
    if (e->kind == E_NAME && e->sym->kind == SYM_LOCAL)
        use_local(f, s, e);
    if (e->kind == E_INDEX && e->sym->mode == MODE_OUT && !f->func && !is_written(f, e->sym)) {
        add_written(f, e->sym); /* once */
        diag_warning(f->d, e->span,
                     "'%s' is an output and is read before anything is written to it",
                     e->sym->name);
        diag_note(f->d, e->sym->span, "declare it inout if it has values before the launch");
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        use(f, s, e->args[i]);
    if (e->pad)
        use(f, s, e->pad);
    if (e->kind == E_CALL && e->func && e->func->impure.src)
        f->wrote_unknown = true;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void visit(struct flow *f, struct state *s, const struct lang_stmt *t, struct loop *loop);

/* What t assigns, anywhere in it, may have a value at the head of a loop around it. */
static void assigned_in(struct flow *f, const struct lang_stmt *t, struct state *s)
{
    if (t->kind == S_DECL && t->rhs)
        set_bit(s->maybe, t->sym->id, true);
    if (t->kind == S_ASSIGN && t->lhs->kind == E_NAME)
        set_bit(s->maybe, t->lhs->sym->id, true);
    if (t->kind == S_ASSIGN && t->lhs->kind == E_INDEX)
        add_written(f, t->lhs->sym);
    if (t->init)
        assigned_in(f, t->init, s);
    if (t->step)
        assigned_in(f, t->step, s);
    for (uint32_t i = 0; i < t->nbody; i++)
        assigned_in(f, t->body[i], s);
}

static void visit_block(struct flow *f, struct state *s, const struct lang_stmt *t,
                        struct loop *loop)
{
    bool told = false;
    for (uint32_t i = 0; i < t->nbody; i++) {
        if (!s->live && !told && t->body[i]->kind != S_BLOCK) {
            diag_warning(f->d, t->body[i]->span, "this is never reached");
            told = true;
        }
        if (s->live)
            visit(f, s, t->body[i], loop);
    }
}

static void visit_assign(struct flow *f, struct state *s, const struct lang_stmt *t)
{
    use(f, s, t->rhs);
    if (t->lhs->kind == E_NAME) {
        if (t->has_op)
            use(f, s, t->lhs);
        assign(s, t->lhs->sym);
        return;
    }
    for (uint32_t i = 0; i < t->lhs->nargs; i++)
        use(f, s, t->lhs->args[i]);
    if (t->has_op)
        use(f, s, t->lhs);
    add_written(f, t->lhs->sym);
}

static void visit_if(struct flow *f, struct state *s, const struct lang_stmt *t, struct loop *loop)
{
    struct state *no = take(f);
    use(f, s, t->cond);
    copy(f, no, s);
    visit(f, s, t->body[0], loop);
    if (t->nbody > 1)
        visit(f, no, t->body[1], loop);
    merge(f, s, no);
    give(f, no);
}

static bool is_true(const struct lang_expr *e)
{
    return !e || (e->kind == E_BOOL && e->ival);
}

static void visit_loop(struct flow *f, struct state *s, const struct lang_stmt *t)
{
    struct loop loop = {take(f), take(f)};
    struct state *over = take(f);
    if (t->init)
        visit(f, s, t->init, NULL);
    assigned_in(f, t->body[0], s);
    if (t->step)
        assigned_in(f, t->step, s);
    if (t->kind != S_DO) {
        if (t->cond)
            use(f, s, t->cond);
        if (!is_true(t->cond))
            copy(f, over, s);
    }
    visit(f, s, t->body[0], &loop);
    merge(f, s, loop.again);
    if (t->step && s->live)
        visit(f, s, t->step, NULL);
    if (t->kind == S_DO && s->live) {
        use(f, s, t->cond);
        if (!is_true(t->cond))
            copy(f, over, s);
    }
    s->live = false;
    merge(f, s, over);
    merge(f, s, loop.leave);
    give(f, over);
    give(f, loop.leave);
    give(f, loop.again);
}

static void visit(struct flow *f, struct state *s, const struct lang_stmt *t, struct loop *loop)
{
    switch (t->kind) {
    case S_BLOCK: visit_block(f, s, t, loop); break;
    case S_DECL:
        if (t->rhs) {
            use(f, s, t->rhs);
            assign(s, t->sym);
        } else {
            set_bit(s->sure, t->sym->id, false);
            set_bit(s->maybe, t->sym->id, false);
        }
        break;
    case S_ASSIGN: visit_assign(f, s, t); break;
    case S_EXPR: use(f, s, t->rhs); break;
    case S_IF: visit_if(f, s, t, loop); break;
    case S_FOR:
    case S_WHILE:
    case S_DO: visit_loop(f, s, t); break;
    case S_BREAK:
    case S_CONTINUE:
        merge(f, t->kind == S_BREAK ? loop->leave : loop->again, s);
        s->live = false;
        break;
    case S_RETURN:
        if (t->rhs)
            use(f, s, t->rhs);
        s->live = false;
        break;
    case S_SWITCH:
    case S_CASE: break;
    }
}

bool flow_check(struct arena *a, const struct lang_stmt *body, uint32_t nlocal,
                const struct lang_func *func, struct diags *d)
{
    struct flow f = {.a = a, .d = d, .func = func, .words = nlocal / 64 + 1, .good = true};
    struct state *s = take(&f);
    f.warned = ARENA_ARRAY(a, f.words, uint64_t);
    s->live = true;
    for (uint32_t i = 0; func && i < func->nparam; i++)
        assign(s, func->param[i]);
    visit(&f, s, body, NULL);
    if (func && func->result != DT_VOID && s->live)
        f.good = diag_error(d, func->span, "'%s' can end without returning its %s", func->name,
                            dtype_name(func->result));
    return f.good;
}
