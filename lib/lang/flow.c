/* A forward walk over a checked body: variables read before they have a value, statements that are
 * never reached, functions that end without a result, outputs read before they are written.
 *
 * A state holds, for each variable, whether it surely has a value and whether it may have one, and
 * whether the place is reached at all. Where ways meet, "surely" is what all of them say and "may"
 * what any of them says. What a loop assigns may have a value at its head.
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

/* Of an array only what is surely wrong is said: one element's assignment may be all that is
 * read. */
static void use_array(struct flow *f, const struct state *s, const struct lang_expr *e)
{
    const struct lang_symbol *sym = e->sym;
    if (sym->table || get_bit(s->maybe, sym->id) || get_bit(f->warned, sym->id))
        return;
    set_bit(f->warned, sym->id, true);
    diag_error(f->d, e->span, "no element of '%s' has a value yet", sym->name);
    diag_note(f->d, sym->span, "write '= {}' behind it for zeros");
    f->good = false;
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
    if (sym->kind == SYM_BUFFER && !is_written(f, sym))
        *VEC_PUSH(f->a, &f->written) = sym;
}

static void use(struct flow *f, struct state *s, const struct lang_expr *e);

/* What a call does to the element whose address it is given: stores write it, loads read it,
 * atomics do both. */
static void use_address(struct flow *f, struct state *s, const struct lang_expr *call,
                        const struct lang_expr *of)
{
    bool stores = call->fn == FN_STORE || (call->fn >= FN_STORE2 && call->fn <= FN_STORE16);
    bool loads = call->fn == FN_LOAD || (call->fn >= FN_LOAD2 && call->fn <= FN_LOAD16);
    if (!stores)
        use(f, s, of);
    for (uint32_t i = 0; stores && i < of->nargs; i++)
        use(f, s, of->args[i]);
    if (!loads && of->sym->kind == SYM_LOCAL)
        assign(s, of->sym);
    else if (!loads)
        add_written(f, of->sym);
}

static void use(struct flow *f, struct state *s, const struct lang_expr *e)
{
    if (e->kind == E_NAME && e->sym->kind == SYM_LOCAL && !e->sym->rank)
        use_local(f, s, e);
    if (e->kind == E_INDEX && e->sym->kind == SYM_LOCAL)
        use_array(f, s, e);
    if (e->kind == E_INDEX && e->sym->kind == SYM_BUFFER && e->sym->mode == MODE_OUT && !f->func &&
        !is_written(f, e->sym)) {
        add_written(f, e->sym); /* once */
        diag_warning(f->d, e->span,
                     "'%s' is an output and is read before anything is written to it",
                     e->sym->name);
        diag_note(f->d, e->sym->span, "declare it inout if it has values before the launch");
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->args[i]->kind != E_ADDRESS)
            use(f, s, e->args[i]);
        else
            use_address(f, s, e, e->args[i]->args[0]);
    if (e->pad)
        use(f, s, e->pad);
    for (uint32_t i = 0; e->kind == E_CALL && e->func && i < e->nargs; i++)
        if (e->args[i]->kind == E_NAME && e->args[i]->sym->kind == SYM_LOCAL &&
            e->func->param[i]->rank && !e->func->param[i]->is_const)
            assign(s, e->args[i]->sym);
    if (e->kind == E_CALL && e->func && e->func->impure.src)
        f->wrote_unknown = true;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void visit(struct flow *f, struct state *s, const struct lang_stmt *t, struct loop *loop);

static const struct lang_symbol *root(const struct lang_expr *e)
{
    while (e->kind == E_MEMBER || e->kind == E_ADDRESS)
        e = e->args[0];
    return e->sym;
}

static void may_assign(struct flow *f, struct state *s, const struct lang_symbol *sym)
{
    if (sym->kind == SYM_LOCAL)
        set_bit(s->maybe, sym->id, true);
    else
        add_written(f, sym);
}

/* What functions are given by address or as an array. */
static void assigned_by(struct flow *f, struct state *s, const struct lang_expr *e)
{
    for (uint32_t i = 0; e && i < e->nargs; i++) {
        bool array = e->kind == E_CALL && e->func && lang_given_itself(e->func->param[i]);
        if (e->args[i]->kind == E_ADDRESS || array)
            may_assign(f, s, root(e->args[i]));
        assigned_by(f, s, e->args[i]);
    }
}

/* What t assigns, anywhere in it, may have a value at the head of a loop around it. */
static void assigned_in(struct flow *f, const struct lang_stmt *t, struct state *s)
{
    if (t->kind == S_DECL && t->sym->kind == SYM_LOCAL && (t->rhs || t->has_list))
        set_bit(s->maybe, t->sym->id, true);
    if (t->kind == S_ASSIGN)
        may_assign(f, s, root(t->lhs));
    assigned_by(f, s, t->rhs);
    assigned_by(f, s, t->cond);
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
    if (t->lhs->kind == E_NAME && t->lhs->sym->kind == SYM_LOCAL) {
        if (t->has_op)
            use(f, s, t->lhs);
        assign(s, t->lhs->sym);
        return;
    }
    const struct lang_expr *to = t->lhs;
    if (t->has_op)
        use(f, s, to);
    while (to->kind == E_MEMBER)
        to = to->args[0];
    for (uint32_t i = 0; i < to->nargs; i++)
        use(f, s, to->args[i]);
    if (to->sym->kind == SYM_LOCAL)
        assign(s, to->sym); /* one lane or element stands for all */
    else
        add_written(f, to->sym);
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

static void visit_switch(struct flow *f, struct state *s, const struct lang_stmt *t,
                         struct loop *around)
{
    struct state *head = take(f), *leave = take(f);
    struct loop loop = {leave, around ? around->again : NULL};
    const struct lang_stmt *body = t->body[0];
    bool other = false, told = false;
    use(f, s, t->cond);
    copy(f, head, s);
    s->live = false;
    for (uint32_t i = 0; i < body->nbody; i++) {
        const struct lang_stmt *one = body->body[i];
        if (one->kind == S_CASE) {
            merge(f, s, head);
            other |= !one->rhs;
            told = false;
        } else if (s->live) {
            visit(f, s, one, &loop);
        } else if (!told) {
            diag_warning(f->d, one->span, "this is never reached");
            told = true;
        }
    }
    if (!other)
        merge(f, s, head);
    merge(f, s, leave);
    give(f, leave);
    give(f, head);
}

static void visit(struct flow *f, struct state *s, const struct lang_stmt *t, struct loop *loop)
{
    switch (t->kind) {
    case S_BLOCK: visit_block(f, s, t, loop); break;
    case S_DECL:
        for (uint32_t i = 0; i < t->nlist; i++)
            if (t->list[i])
                use(f, s, t->list[i]);
        if (t->rhs || t->has_list) {
            if (t->rhs)
                use(f, s, t->rhs);
            assign(s, t->sym);
        } else if (t->sym->kind == SYM_LOCAL) {
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
    case S_SWITCH: visit_switch(f, s, t, loop); break;
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
