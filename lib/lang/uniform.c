/* The abstract execution of uniform.h: statements, loops, functions, messages. */
#include <config.h>

#include "lang/uniform.h"

enum { MOST_STEPS = 20000000, PATIENCE = 30 };

struct loop_memory {
    struct place *head; /* what comes back to it */
    uint32_t nslot;
};

static void visit(struct uniform *u, struct place *s, struct cause around,
                  const struct lang_stmt *t);

/* ---- places ---------------------------------------------------------------------------------- */

static struct place *take(struct uniform *u)
{
    struct place *s = u->pool;
    while (s && s->room < u->nslot)
        s = s->next; /* from before make_room() */
    u->pool = s ? s->next : NULL;
    if (!s) {
        s = ARENA_NEW(u->a, struct place);
        s->room = u->room;
        s->v = ARENA_ARRAY(u->a, u->room, struct value);
    }
    *s = (struct place){.v = s->v, .room = s->room};
    return s;
}

static void give(struct uniform *u, struct place *s)
{
    s->next = u->pool;
    u->pool = s;
}

static struct place *copy_of(struct uniform *u, const struct place *s)
{
    struct place *copy = take(u);
    struct place with = *s;
    with.v = copy->v;
    with.room = copy->room;
    *copy = with;
    memcpy(copy->v, s->v, u->nslot * sizeof *copy->v);
    u->steps += u->nslot / 8;
    return copy;
}

struct cause worse(struct cause x, struct cause y)
{
    return y.level > x.level ? y : x;
}

struct cause cause_here(const struct place *s, struct cause around)
{
    return worse(around, worse(s->left, s->skipped));
}

/* Where two ways meet. Who has left by one of them is missing afterwards, so that counts even where
 * a way ends. */
static void meet(struct uniform *u, struct place *to, const struct place *from)
{
    to->gone = worse(to->gone, from->gone);
    to->left = worse(to->left, from->left);
    to->skipped = worse(to->skipped, from->skipped);
    if (!from->live)
        return;
    for (uint32_t i = 0; i < u->nslot; i++)
        to->v[i] = to->live ? value_join(to->v[i], from->v[i]) : from->v[i];
    to->live = true;
    u->steps += u->nslot / 8;
}

uint32_t slot_of(const struct uniform *u, const struct lang_symbol *sym)
{
    uint32_t alias = u->alias ? u->alias[sym->id] : 0;
    return alias ? alias - 1 : u->first + sym->id;
}

/* Threads that have left the loop get the value that they left with (leave_loop), those that have
 * returned need none: only conditions and continue make a difference between those who come by here
 * again. */
static void assign(struct uniform *u, struct place *s, struct cause around,
                   const struct lang_symbol *sym, struct value v, bool wholly)
{
    uint32_t slot = slot_of(u, sym);
    v = value_under(v, worse(around, s->skipped));
    if (slot < u->first) /* the caller's, to whom they return */
        v = value_under(v, worse(cause_here(s, around), s->gone));
    s->v[slot] = wholly ? v : value_join(s->v[slot], v);
    u->stamp[slot] = ++u->clock;
}

/* ---- messages -------------------------------------------------------------------------------- */

static const char *group(enum level need)
{
    return need == IN_WARP    ? "lanes of the warp"
           : need == IN_BLOCK ? "threads of the block"
                              : "threads of the cluster";
}

static const char *one(enum level need)
{
    return need == IN_WARP ? "lanes" : need == IN_BLOCK ? "threads" : "blocks";
}

/* One message for each cause, and a warning besides. */
static bool tell(struct uniform *u, const struct cause *c, bool warning)
{
    size_t what = c->at.off * 2 + warning;
    for (size_t i = 0; i < u->told.n; i++)
        if (u->told.v[i] == what)
            return false;
    *VEC_PUSH(u->a, &u->told) = what;
    return true;
}

static const char *reason(struct uniform *u, const struct cause *c, const char *call,
                          enum level need)
{
    switch (c->kind) {
    case AT_CONDITION:
        return arena_printf(u->a,
                            "only some %s reach %s: the condition on '%s' differs between them",
                            group(need), call, c->name);
    case AT_LOOP:
        return arena_printf(u->a,
                            "not all %s reach %s equally often: the loop's condition on '%s' "
                            "differs between them",
                            group(need), call, c->name);
    case AFTER_RETURN:
        return arena_printf(u->a, "%s comes after a return that only some %s take", call,
                            group(need));
    case AFTER_BREAK:
        return arena_printf(u->a, "%s is in a loop that some %s have left by a break", call,
                            group(need));
    case AFTER_CONTINUE: break;
    }
    return arena_printf(u->a, "%s is skipped by a continue that only some %s take", call,
                        group(need));
}

static void explain(struct uniform *u, const struct cause *c, const char *call, enum level need)
{
    if (c->kind == AFTER_RETURN)
        diag_note(u->d, c->at,
                  "this one; put what only some do under an 'if', so that all come to %s", call);
    else if (c->kind >= AFTER_BREAK)
        diag_note(u->d, c->at, "this one; let all %s go on, or leave together", one(need));
    if (!c->from || !c->from->at.src)
        return;
    if (strcmp(c->from->what, c->name) != 0)
        diag_note(u->d, c->from->at, "'%s' differs between %s because of %s here", c->name,
                  one(need), c->from->what);
    else if (c->kind >= AFTER_RETURN)
        diag_note(u->d, c->from->at, "%s differs between %s", c->name, one(need));
}

/* Threads that have returned are named by a mask of all lanes, but nothing waits for them. */
static void warn_returned(struct uniform *u, const struct cause *c, const struct lang_expr *e)
{
    const char *call = arena_printf(u->a, "%s()", e->name);
    diag_warning(u->d, e->span, "%s; its mask names them, and what it takes from them is undefined",
                 reason(u, c, call, IN_WARP));
    explain(u, c, call, IN_WARP);
}

void demand(struct uniform *u, const struct place *s, struct cause around,
            const struct lang_expr *e, enum level need, bool exited_may)
{
    struct cause c = cause_here(s, around), gone = worse(u->gone, s->gone);
    if (!u->report)
        return;
    if (c.level <= need && gone.level > need && exited_may) {
        if (tell(u, &gone, true))
            warn_returned(u, &gone, e);
        return;
    }
    if (c.level <= need)
        c = gone;
    if (c.level <= need)
        return;
    u->good = false;
    if (!tell(u, &c, false))
        return;
    const char *call = arena_printf(u->a, "%s()", e->name);
    diag_error(u->d, e->span, "%s", reason(u, &c, call, need));
    explain(u, &c, call, need);
}

void demand_mask(struct uniform *u, const struct place *s, struct cause around,
                 const struct lang_expr *e)
{
    struct cause c = {.at = e->args[0]->span};
    struct cause missing = worse(cause_here(s, around), worse(u->gone, s->gone));
    if (!u->report || missing.level > IN_WARP || !tell(u, &c, false))
        return;
    u->good = diag_error(u->d, c.at,
                         "all lanes of the warp come to this %s(), and a lane that comes must be "
                         "in its mask; write 0xffffffff, or let only the others come",
                         e->name);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static bool is_level(struct uniform *u, struct place *s, const struct lang_expr *e, uint8_t level)
{
    struct cause none = {0};
    bool report = u->report;
    u->report = false;
    u->naming = true;
    struct value v = value_of(u, s, none, e);
    u->naming = false;
    u->report = report;
    return v.level >= level;
}

/* The first part of a condition that is of its level: "i", "threadIdx.x", "load()". */
static const char *culprit(struct uniform *u, struct place *s, const struct lang_expr *e,
                           uint8_t level)
{
    if (e->kind == E_NAME && e->sym->kind == SYM_LOCAL && !e->sym->table)
        return s->v[slot_of(u, e->sym)].level >= level ? e->sym->name : NULL;
    if (e->kind == E_SPECIAL)
        return is_level(u, s, e, level) ? lang_special_name(e->special) : NULL;
    if (e->kind == E_CALL && !e->func && lang_builtin_acts(e->fn))
        return is_level(u, s, e, level) ? arena_printf(u->a, "%s()", e->name) : NULL;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const char *name = culprit(u, s, e->args[i], level);
        if (name)
            return name;
    }
    if (e->kind == E_CALL && e->func)
        return arena_printf(u->a, "%s()", e->func->name);
    return e->kind == E_INDEX ? e->sym->name : NULL;
}

struct cause cause_of(struct uniform *u, struct place *s, const struct lang_expr *cond,
                      struct value v, enum cause_kind kind)
{
    struct cause c = {.level = v.level, .kind = kind, .at = cond->span, .from = v.from};
    if (v.level > IN_GRID)
        c.name = culprit(u, s, cond, v.level);
    if (!c.name)
        c.name = "it";
    return c;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void visit_if(struct uniform *u, struct place *s, struct cause around,
                     const struct lang_stmt *t)
{
    struct value v = value_of(u, s, around, t->cond);
    struct cause c = cause_of(u, s, t->cond, v, AT_CONDITION);
    if (t->cond->kind == E_BOOL) { /* only one side is compiled */
        if (t->cond->ival || t->nbody > 1)
            visit(u, s, around, t->body[t->cond->ival ? 0 : 1]);
        return;
    }
    struct place *no = copy_of(u, s);
    visit(u, s, worse(around, c), t->body[0]);
    if (t->nbody > 1 && t->body[1])
        visit(u, no, worse(around, c), t->body[1]);
    meet(u, s, no);
    give(u, no);
}

/* What earlier passes brought back to this loop's head; made at the first one. */
static struct loop_memory *memory_of(struct uniform *u)
{
    if (u->nloop == u->memory.n) {
        struct loop_memory *m = ARENA_NEW(u->a, struct loop_memory);
        m->nslot = u->nslot;
        m->head = ARENA_NEW(u->a, struct place);
        m->head->v = ARENA_ARRAY(u->a, u->nslot, struct value);
        *VEC_PUSH(u->a, &u->memory) = m;
    }
    return u->memory.v[u->nloop++];
}

static bool same_value(struct value x, struct value y)
{
    return x.level == y.level && x.align == y.align && x.terms == y.terms && x.unit == y.unit;
}

/* Adds what comes back to the head now; a slot that still changes after many passes is taken for
 * the worst. */
static void remember(struct uniform *u, struct loop_memory *m, const struct place *s)
{
    struct place *h = m->head;
    u->changed |= s->gone.level > h->gone.level || s->left.level > h->left.level ||
                  (s->live && !h->live);
    h->gone = worse(h->gone, s->gone);
    h->left = worse(h->left, s->left);
    for (uint32_t i = 0; s->live && i < m->nslot; i++) {
        struct value v = h->live ? value_join(h->v[i], s->v[i]) : s->v[i];
        if (h->live && !same_value(v, h->v[i])) {
            u->changed = true;
            if (u->pass > PATIENCE)
                v = (struct value){.level = IN_THREAD, .from = v.from};
        }
        h->v[i] = v;
    }
    h->live |= s->live;
    u->steps += m->nslot / 8;
}

/* Threads that leave a loop or a switch at different places leave with different values of what it
 * assigns. */
static void leave_loop(struct uniform *u, struct place *s, struct cause when, uint32_t since)
{
    for (uint32_t i = 0; i < u->nslot; i++)
        if (u->stamp[i] > since)
            s->v[i] = value_under(s->v[i], when);
}

static bool is_true(const struct lang_expr *e)
{
    return !e || (e->kind == E_BOOL && e->ival);
}

static void loop_condition(struct uniform *u, struct place *s, struct cause around,
                           const struct lang_expr *cond, struct place *over)
{
    if (is_true(cond))
        return;
    struct cause c = cause_of(u, s, cond, value_of(u, s, around, cond), AT_LOOP);
    meet(u, over, s);
    s->left = worse(s->left, c);
}

static void visit_loop(struct uniform *u, struct place *s, struct cause around,
                       const struct lang_stmt *t)
{
    struct cause left = s->left, skipped = s->skipped;
    if (t->init)
        visit(u, s, around, t->init);
    around = cause_here(s, around);
    struct loop_memory *m = memory_of(u);
    struct exits e = {.leave = take(u), .again = take(u)}, *loop = u->loop,
                 *breakable = u->breakable;
    struct place *over = take(u);
    uint32_t since = u->clock;
    s->left = s->skipped = (struct cause){0};
    meet(u, s, m->head);
    u->loop = u->breakable = &e;
    if (t->kind != S_DO)
        loop_condition(u, s, around, t->cond, over);
    visit(u, s, around, t->body[0]);
    meet(u, s, e.again);
    s->skipped = (struct cause){0};
    if (t->step && s->live)
        visit(u, s, around, t->step);
    if (t->kind == S_DO && s->live)
        loop_condition(u, s, around, t->cond, over);
    u->loop = loop;
    u->breakable = breakable;
    remember(u, m, s);
    s->live = false;
    meet(u, s, over);
    meet(u, s, e.leave);
    leave_loop(u, s, s->left, since);
    s->left = left;
    s->skipped = skipped;
    give(u, over);
    give(u, e.leave);
    give(u, e.again);
}

static void visit_switch(struct uniform *u, struct place *s, struct cause around,
                         const struct lang_stmt *t)
{
    struct value v = value_of(u, s, around, t->cond);
    struct cause c = worse(around, cause_of(u, s, t->cond, v, AT_CONDITION)), left = s->left;
    struct exits e = {.leave = take(u)}, *breakable = u->breakable;
    struct place *entry = copy_of(u, s);
    const struct lang_stmt *block = t->body[0];
    uint32_t since = u->clock;
    bool has_default = false;
    s->live = false;
    u->breakable = &e;
    for (uint32_t i = 0; i < block->nbody; i++) {
        if (block->body[i]->kind == S_CASE) {
            has_default |= !block->body[i]->rhs;
            meet(u, s, entry);
        } else if (s->live) {
            visit(u, s, c, block->body[i]);
        }
    }
    u->breakable = breakable;
    meet(u, s, e.leave);
    if (!has_default)
        meet(u, s, entry);
    leave_loop(u, s, s->left, since);
    s->left = left;
    give(u, entry);
    give(u, e.leave);
}

/* break, continue, return: those who are here go, and are missing from what follows. */
static void visit_jump(struct uniform *u, struct place *s, struct cause around,
                       const struct lang_stmt *t)
{
    struct cause c = cause_here(s, around);
    c.at = t->span;
    if (t->kind == S_RETURN) {
        c.kind = AFTER_RETURN;
        if (t->rhs && u->function) {
            const struct cause gone = worse(c, s->gone);
            struct value v = value_under(value_of(u, s, around, t->rhs), gone);
            u->function->result = u->function->leave->live ? value_join(u->function->result, v) : v;
        }
        if (u->function)
            meet(u, u->function->leave, s);
        s->gone = worse(s->gone, c);
    } else if (t->kind == S_BREAK) {
        c.kind = AFTER_BREAK;
        meet(u, u->breakable->leave, s);
        s->left = worse(s->left, c);
    } else {
        c.kind = AFTER_CONTINUE;
        meet(u, u->loop->again, s);
        s->skipped = worse(s->skipped, c);
    }
    s->live = false;
}

static void visit_decl(struct uniform *u, struct place *s, struct cause around,
                       const struct lang_stmt *t)
{
    struct value v = {0};
    if (t->sym->kind != SYM_LOCAL)
        return;
    if (t->rhs)
        v = value_of(u, s, around, t->rhs);
    for (uint32_t i = 0; i < t->nlist; i++) /* NULL: zero */
        if (t->list[i])
            v = value_join(v, value_of(u, s, around, t->list[i]));
    assign(u, s, around, t->sym, v, true);
}

static void visit_assign(struct uniform *u, struct place *s, struct cause around,
                         const struct lang_stmt *t)
{
    struct value v = value_of(u, s, around, t->rhs);
    const struct lang_expr *to = t->lhs;
    struct value at = {0};
    bool wholly = true;
    while (to->kind == E_MEMBER || to->kind == E_INDEX) {
        for (uint32_t i = to->kind == E_MEMBER; i < to->nargs; i++)
            at = value_join(at, value_of(u, s, around, to->args[i]));
        wholly = false;
        if (to->kind == E_INDEX)
            break;
        to = to->args[0];
    }
    if (!to->sym || to->sym->kind != SYM_LOCAL)
        return;
    if (t->has_op) {
        struct value old = s->v[slot_of(u, to->sym)];
        struct lang_expr op = {.kind = E_BINARY, .op = t->op};
        struct lang_expr *pair[2] = {t->lhs, t->rhs};
        op.args = pair;
        op.nargs = 2;
        v = wholly ? value_of(u, s, around, &op) : value_join(old, v);
    }
    if (!wholly) {
        v = value_join(v, at);
        v.align = v.terms = v.unit = 0;
    }
    assign(u, s, around, to->sym, v, wholly);
}

static void visit(struct uniform *u, struct place *s, struct cause around,
                  const struct lang_stmt *t)
{
    u->steps++;
    if (u->steps > MOST_STEPS)
        return;
    switch (t->kind) {
    case S_BLOCK:
        for (uint32_t i = 0; i < t->nbody && s->live; i++)
            visit(u, s, around, t->body[i]);
        break;
    case S_DECL: visit_decl(u, s, around, t); break;
    case S_ASSIGN: visit_assign(u, s, around, t); break;
    case S_EXPR: value_of(u, s, around, t->rhs); break;
    case S_IF: visit_if(u, s, around, t); break;
    case S_FOR:
    case S_WHILE:
    case S_DO: visit_loop(u, s, around, t); break;
    case S_BREAK:
    case S_CONTINUE:
    case S_RETURN: visit_jump(u, s, around, t); break;
    case S_SWITCH: visit_switch(u, s, around, t); break;
    case S_CASE: break;
    }
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Slots for a function's locals too. */
static void make_room(struct uniform *u, struct place *s, uint32_t n)
{
    if (n <= s->room && n <= u->room)
        return;
    u->room = n > u->room ? n * 2 : u->room;
    struct value *v = ARENA_ARRAY(u->a, u->room, struct value);
    uint32_t *stamp = ARENA_ARRAY(u->a, u->room, uint32_t);
    memcpy(v, s->v, u->nslot * sizeof *v);
    memcpy(stamp, u->stamp, u->nslot * sizeof *stamp);
    s->v = v;
    s->room = u->room;
    u->stamp = stamp;
}

struct value value_of_function(struct uniform *u, struct place *s, struct cause around,
                               const struct lang_expr *e)
{
    const struct lang_func *f = e->func;
    struct uniform outer = *u;
    if (u->naming) /* its loops are met in the same order in every pass, so not now */
        return (struct value){.level = IN_THREAD};
    uint32_t first = u->nslot, n = f->nlocal;
    uint32_t *alias = ARENA_ARRAY(u->a, f->nparam + n, uint32_t);
    struct cause before[3] = {s->gone, s->left, s->skipped};
    struct value *given = ARENA_ARRAY(u->a, e->nargs, struct value);
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *arg = e->args[i];
        if (f->param[i]->rank > 0 && arg->sym && arg->sym->kind == SYM_LOCAL)
            alias[f->param[i]->id] = slot_of(u, arg->sym) + 1;
        else
            given[i] = value_of(u, s, around, arg);
    }
    /* only now: calls among the arguments have taken the same slots */
    make_room(u, s, first + n);
    memset(s->v + first, 0, n * sizeof *s->v);
    for (uint32_t i = 0; i < e->nargs; i++)
        s->v[first + f->param[i]->id] = given[i];
    around = cause_here(s, around);
    struct exits exits = {0};
    u->gone = worse(u->gone, s->gone);
    u->first = first;
    u->nslot = first + n;
    u->alias = alias;
    exits.leave = take(u);
    u->loop = u->breakable = NULL;
    u->function = &exits;
    s->gone = s->left = s->skipped = (struct cause){0};
    visit(u, s, around, f->body);
    meet(u, s, exits.leave);
    s->live = true;
    s->gone = before[0];
    s->left = before[1];
    s->skipped = before[2];
    u->first = outer.first;
    u->nslot = outer.nslot;
    u->alias = outer.alias;
    u->loop = outer.loop;
    u->breakable = outer.breakable;
    u->function = outer.function;
    u->gone = outer.gone;
    give(u, exits.leave);
    return exits.result;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void pass(struct uniform *u, const struct lang_stmt *body)
{
    struct place *s = take(u);
    struct cause none = {0};
    memset(s->v, 0, u->nslot * sizeof *s->v);
    s->live = true;
    u->nloop = 0;
    u->changed = false;
    u->pass++;
    visit(u, s, none, body);
    give(u, s);
}

bool uniform_check(struct arena *a, const struct lang_stmt *body, uint32_t nlocal,
                   const struct lang_options *opt, struct diags *d)
{
    struct uniform u = {.a = a, .d = d, .opt = opt, .nslot = nlocal, .room = nlocal + 64};
    u.stamp = ARENA_ARRAY(a, u.room, uint32_t);
    u.good = true;
    do
        pass(&u, body);
    while (u.changed && u.steps <= MOST_STEPS);
    if (u.steps > MOST_STEPS) {
        diag_warning(d, body->span,
                     "this is too large to see whether all threads reach its barriers");
        return true;
    }
    u.report = true;
    pass(&u, body);
    return u.good;
}
