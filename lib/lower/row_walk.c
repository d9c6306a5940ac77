/* What a stage reads and reduces, seen from a row: does it fit, and which elements are worth holding. */
#include <config.h>

#include "lower/row.h"

/* MOST_ALONE: columns of a row that is the only one */
enum { MOST_STEPS = 100000, MOST_ALONE = 1 << 16 };

struct walk {
    struct cg *g;
    struct row *row;
    struct buf *why;
    const struct row_reduce *scope;
    uint32_t deep;                 /* 1 + the level of the deepest reduction met */
    const struct row_guard *guard; /* the innermost of the conditions and pads around; NULL: none */
    bool guarded; /* the reduction is wanted under a condition only, but computed in any case */
    bool column;  /* a column's index was met */
    bool divided; /* by a sum over the row, with nothing but products and quotients between */
    bool early;   /* in an output that is kept */
    uint32_t steps;
};

static bool no(const struct walk *w, struct span s, const char *fmt, const char *name)
{
    if (w->why) {
        buf_printf(w->why, "line %zu: ", span_line_col(s).line);
        buf_printf(w->why, fmt, name);
    }
    return false;
}

static const struct row_bound *lookup(const struct row_env *env, const struct lang_symbol *sym)
{
    for (uint32_t i = env->n; i-- > 0;)
        if (env->v[i].sym == sym)
            return &env->v[i];
    return NULL;
}

static const struct row_bound *bound_of(const struct row_env *env, const struct lang_expr *e)
{
    e = inspect_strip(e);
    return e->kind == E_NAME && e->sym->kind == SYM_INDEX ? lookup(env, e->sym) : NULL;
}

static bool walk_expr(struct walk *w, const struct lang_expr *e, const struct row_env *env);

/* The equation that e reads, with its indices standing for the subscripts. */
static const struct row_env *enter(const struct walk *w, const struct lang_expr *e,
                                   const struct row_env *env)
{
    const struct lang_equation *eq = e->sym->def;
    struct row_env *in = ARENA_NEW(w->g->a, struct row_env);
    in->n = eq->nindex;
    in->v = ARENA_ARRAY(w->g->a, in->n + 1, struct row_bound);
    for (uint32_t i = 0; i < eq->nindex; i++) {
        const struct row_bound *b = bound_of(env, e->args[i]);
        in->v[i] = b ? *b
                     : (struct row_bound){
                           .kind = ROW_OTHER, .scope = w->scope, .arg = e->args[i], .in = env};
        in->v[i].sym = eq->index[i];
    }
    return in;
}

static bool is_tensor(const struct lang_expr *e)
{
    return e->kind == E_INDEX ||
           (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR || e->sym->kind == SYM_BUFFER));
}

/* ---- reads ---------------------------------------------------------------------------------------- */

bool row_is_along(const struct row *row, const struct lang_expr *e, const struct row_env *env,
                  const struct row_reduce *scope)
{
    const struct lang_symbol *t = e->sym;
    if (e->pad || e->nargs != t->rank || t->rank < row->ncol)
        return false;
    uint32_t lead = t->rank - row->ncol;
    for (uint32_t i = 0; i < row->ncol; i++) {
        const struct row_bound *b = bound_of(env, e->args[lead + i]);
        if (!b || b->kind != ROW_COLUMN || b->n != i || b->scope != scope ||
            !inspect_same_expr(t->dims[lead + i], row->col[i]))
            return false;
    }
    return true;
}

static bool is_own_element(const struct row *row, const struct lang_expr *e,
                           const struct row_env *env)
{
    for (uint32_t i = 0; i < row->nlead; i++) {
        const struct row_bound *b = i < e->nargs ? bound_of(env, e->args[i]) : NULL;
        if (!b || b->kind != ROW_LEAD || b->n != i)
            return false;
    }
    return true;
}

static bool is_written(const struct row *row, const struct lang_symbol *t)
{
    for (uint32_t i = 0; i < row->stage->n; i++)
        if (row->stage->eq[i]->sym == t)
            return true;
    return false;
}

bool row_is_kept(const struct row *row, const struct lang_symbol *t)
{
    for (uint32_t i = 0; i < row->nkept; i++)
        if (row->kept[i] == t)
            return true;
    return false;
}

bool row_is_shared(const struct row *row, const struct lang_symbol *t)
{
    return t->rank == row->ncol && !is_written(row, t);
}

static void note_bits(struct row *row, const struct lang_symbol *t)
{
    unsigned bits = dtype_bits(t->type);
    row->most = bits > row->most ? bits : row->most;
    row->least = !row->least || bits < row->least ? bits : row->least;
}

static bool note_along(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    bool shared = row_is_shared(row, e->sym);
    if (!shared) {
        note_bits(row, e->sym);
        bool again = false;
        for (uint32_t i = 0; i < row->nread; i++)
            again |= row->read[i].e->sym == e->sym && row->read[i].early == w->early;
        if (!again)
            *(w->early ? &row->bits_early : &row->bits_in) += dtype_bits(e->sym->type);
        row->nbuffer += !again && !w->early;
    }
    bool own = !shared && e->nargs == row->nlead + row->ncol && is_own_element(row, e, env);
    for (uint32_t i = 0; i < row->nread; i++) {
        const struct row_read *r = &row->read[i];
        bool same = r->e->sym == e->sym && r->scope == w->scope && r->early == w->early;
        if (same && ((r->e == e && r->env == env) || (shared && r->shared) || (own && r->own)))
            return true;
    }
    if (row->nread == ROW_READS)
        return no(w, e->span, "the read of '%s' is one too many", e->sym->name);
    row->read[row->nread++] = (struct row_read){
        .e = e, .env = env, .scope = w->scope, .shared = shared, .own = own, .early = w->early};
    return true;
}

static bool walk_args(struct walk *w, const struct lang_expr *e, uint32_t n,
                      const struct row_env *env)
{
    const bool divided = w->divided;
    bool good = true;
    w->divided = false;
    for (uint32_t i = 0; i < n && good; i++)
        good = walk_expr(w, e->args[i], env);
    w->divided = divided;
    return good;
}

/* May e be read whatever the conditions around it say? */
static bool is_certain(const struct row *row, const struct lang_expr *e, const struct row_env *env)
{
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct row_bound *b = bound_of(env, e->args[i]);
        if (!b || b->kind == ROW_OTHER ||
            !inspect_same_expr(e->sym->dims[i],
                               b->kind == ROW_LEAD ? row->lead[b->n] : row->col[b->n]))
            return false;
    }
    return true;
}

/* A pad's: what is outside is not known early. */
static const struct row_guard unknown = {0};

static bool reads_address(struct cg *g, const struct lang_expr *e)
{
    bool any = false;
    for (uint32_t i = 0; i < e->nargs; i++)
        any |= cg_reads(g, e->args[i]);
    return any;
}

/* A read of memory that stays in place along the row, or moves in a way of its own. */
static bool walk_other(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    const struct row_guard *guard = w->guard;
    bool before = w->column;
    uint32_t deep = w->deep;
    if (w->guarded && !e->pad && !is_certain(row, e, env))
        return no(w, e->span, "'%s' may be read where a condition around the reduction forbids it",
                  e->sym->name);
    w->column = false;
    w->deep = 0;
    w->guard = e->pad ? &unknown : guard;
    bool good = walk_args(w, e, e->nargs, env) && (!e->pad || walk_expr(w, e->pad, env));
    w->guard = guard;
    bool plain = !w->column && !w->deep && !e->pad && row->nscalar < ROW_READS;
    bool early = plain && !guard;
    if (plain && (!guard || guard->early))
        row->scalar[row->nscalar++] =
            (struct row_scalar){e, env, guard, guard || reads_address(w->g, e)};
    row->other_reads |= !early;
    row->guarded |= guard || e->pad;
    w->column |= before;
    w->deep = deep > w->deep ? deep : w->deep;
    if (!good || !is_written(row, e->sym))
        return good;
    if (early && e->sym->rank == row->nlead && is_own_element(row, e, env)) {
        row->in_place = true;
        return true;
    }
    return no(w, e->span, "'%s' is written and read at other elements", e->sym->name);
}

static bool walk_memory(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    if (e->kind != E_INDEX || !row_is_along(row, e, env, w->scope))
        return walk_other(w, e, env);
    uint32_t lead = e->nargs - row->ncol, deep = w->deep;
    if (w->guarded && !is_certain(row, e, env))
        return walk_other(w, e, env);
    w->column = false;
    w->deep = 0;
    if (!walk_args(w, e, lead, env))
        return false;
    /* else the row that is read depends on the column, or on a reduction, or there may be none */
    bool held = !w->column && !w->deep && (!w->guard || is_certain(row, e, env));
    w->column = true;
    w->deep = deep > w->deep ? deep : w->deep;
    if (!held) {
        row->uses_column = row->other_reads = true;
        row->guarded |= w->guard != NULL;
        return !is_written(row, e->sym) ||
               no(w, e->span, "'%s' is written and read at other elements", e->sym->name);
    }
    if (is_written(row, e->sym)) {
        if (lead != row->nlead || !is_own_element(row, e, env))
            return no(w, e->span, "'%s' is written and read in other rows", e->sym->name);
        row->in_place = true;
    }
    return note_along(w, e, env);
}

/* An intermediate, or an output that is defined here. */
static bool walk_defined(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    if (!w->early && e->kind == E_INDEX && row_is_kept(w->row, e->sym) &&
        row_is_along(w->row, e, env, w->scope) && is_own_element(w->row, e, env)) {
        w->column = true;
        return note_along(w, e, env);
    }
    const struct row_env *in = enter(w, e, env);
    for (uint32_t i = 0; i < in->n; i++)
        if (in->v[i].kind == ROW_OTHER && in->v[i].arg == e->args[i] &&
            !walk_expr(w, e->args[i], env))
            return false;
    const struct row_guard *guard = w->guard;
    w->guard = e->pad ? &unknown : guard;
    bool good = (!e->pad || walk_expr(w, e->pad, env)) && walk_expr(w, e->sym->def->rhs, in);
    w->guard = guard;
    w->row->other_reads |= e->pad != NULL;
    return good;
}

static bool walk_index(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    const struct row_bound *b = lookup(env, e->sym);
    if (!b)
        return no(w, e->span, "the range of '%s' is one of its own", e->sym->name);
    if (b->kind == ROW_LEAD)
        return true;
    if (b->scope != w->scope)
        return no(w, e->span, "the reduction differs between the elements of a row that read it%s",
                  "");
    if (b->kind == ROW_OTHER)
        return walk_expr(w, b->arg, b->in);
    w->column = w->row->uses_column = true;
    return true;
}

/* ---- reductions ----------------------------------------------------------------------------------- */

static bool same_row(const struct row_env *x, const struct row_env *y);

static bool same_bound(const struct row_bound *x, const struct row_bound *y)
{
    if (x->kind != y->kind)
        return false;
    if (x->kind == ROW_LEAD)
        return x->n == y->n;
    /* on the outer columns no reduction depends */
    return x->kind == ROW_COLUMN || (inspect_same_expr(x->arg, y->arg) && same_row(x->in, y->in));
}

/* The same reduction met again must stand for the same row. */
static bool same_row(const struct row_env *x, const struct row_env *y)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = 0; k < y->n; k++)
            if (x->v[i].sym == y->v[k].sym && !same_bound(&x->v[i], &y->v[k]))
                return false;
    return true;
}

static bool same_columns(const struct row *row, const struct lang_expr *e)
{
    if (e->nindex != row->ncol)
        return false;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (e->index[i]->low || !inspect_same_expr(e->index[i]->dims[0], row->col[i]))
            return false;
    return true;
}

static bool walk_reduce(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    if (!same_columns(row, e))
        return no(w, e->span, "%s runs over another range than the columns",
                  lang_reduce_name(e->reduce));
    for (uint32_t i = 0; i < row->nreduce; i++)
        if (row->reduce[i].e == e) {
            uint32_t deep = row->reduce[i].level + 1;
            if (!same_row(row->reduce[i].env, env))
                return no(w, e->span, "%s is read for other rows", lang_reduce_name(e->reduce));
            w->deep = deep > w->deep ? deep : w->deep;
            return true;
        }
    if (row->nreduce == ROW_REDUCES)
        return no(w, e->span, "%s is one reduction too many", lang_reduce_name(e->reduce));
    uint32_t at = row->nreduce++;
    struct row_env *in = ARENA_NEW(w->g->a, struct row_env);
    in->v = ARENA_ARRAY(w->g->a, env->n + e->nindex, struct row_bound);
    for (uint32_t i = 0; i < env->n; i++)
        in->v[in->n++] = env->v[i];
    for (uint32_t i = 0; i < e->nindex; i++)
        in->v[in->n++] = (struct row_bound){
            .sym = e->index[i], .kind = ROW_COLUMN, .n = i, .scope = &row->reduce[at]};
    row->reduce[at] = (struct row_reduce){.e = e, .env = in};
    const struct walk outer = *w;
    w->scope = &row->reduce[at];
    w->guarded |= w->guard != NULL;
    w->deep = 0;
    w->guard = NULL;
    w->column = w->divided = false;
    bool good = walk_expr(w, e->args[0], in);
    row->reduce[at].level = w->deep;
    uint32_t deep = w->deep + 1;
    row->nlevel = deep > row->nlevel ? deep : row->nlevel;
    w->scope = outer.scope;
    w->guard = outer.guard;
    w->guarded = outer.guarded;
    w->column = outer.column;
    w->divided = outer.divided;
    w->deep = deep > outer.deep ? deep : outer.deep;
    return good;
}

/* ---- x - max(x) ----------------------------------------------------------------------------------- */

/* Do both stand for the same value, the columns taken as the same? */
static bool same_value(const struct walk *w, const struct lang_expr *x, const struct row_env *in_x,
                       const struct lang_expr *y, const struct row_env *in_y, unsigned depth)
{
    x = inspect_strip(x);
    y = inspect_strip(y);
    if (depth > 32 || x->kind != y->kind || x->type != y->type || x->nargs != y->nargs || x->pad ||
        y->pad)
        return false;
    if (x->kind == E_NAME && x->sym->kind == SYM_INDEX) {
        const struct row_bound *a = bound_of(in_x, x), *b = bound_of(in_y, y);
        return a && b && a->kind == b->kind && a->kind != ROW_OTHER && a->n == b->n;
    }
    switch (x->kind) {
    case E_INT:
    case E_BOOL: return x->ival == y->ival;
    case E_FLOAT: return x->fval == y->fval;
    case E_NAME:
    case E_INDEX:
        if (x->sym != y->sym)
            return false;
        break;
    case E_UNARY:
    case E_BINARY:
        if (x->op != y->op)
            return false;
        break;
    case E_CALL:
        if (x->fn != y->fn || x->func || y->func || lang_builtin_acts(x->fn))
            return false;
        break;
    case E_CAST:
    case E_COND: break;
    default: return false;
    }
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!same_value(w, x->args[i], in_x, y->args[i], in_y, depth + 1))
            return false;
    return true;
}

/* What e reads by way of equations, and their environment. */
static const struct lang_expr *resolve(const struct walk *w, const struct lang_expr *e,
                                       const struct row_env **env)
{
    for (unsigned depth = 0; depth < 32; depth++) {
        e = inspect_strip(cg_view(w->g, e));
        if (!is_tensor(e) || e->pad || !cg_is_defined(w->g, e->sym) ||
            e->sym->type != e->sym->def->rhs->type)
            break;
        *env = enter(w, e, *env);
        e = e->sym->def->rhs;
    }
    return e;
}

/* The reduction that e is, or reads. */
static struct row_reduce *reduction_of(const struct walk *w, const struct lang_expr *e,
                                       const struct row_env *env)
{
    e = resolve(w, e, &env);
    for (uint32_t i = 0; i < w->row->nreduce && e->kind == E_REDUCE; i++)
        if (w->row->reduce[i].e == e)
            return &w->row->reduce[i];
    return NULL;
}

static bool is_zero(const struct lang_expr *e)
{
    e = inspect_strip(e);
    return (e->kind == E_INT && e->ival == 0) || (e->kind == E_FLOAT && e->fval == 0);
}

/* isinf(m) ? 0 : m, which logsumexp takes off instead of the maximum m: the reduction m. */
static struct row_reduce *finite_reduction(const struct walk *w, const struct lang_expr *e,
                                           const struct row_env *env)
{
    e = resolve(w, e, &env);
    if (e->kind != E_COND || !is_zero(e->args[1]))
        return NULL;
    const struct lang_expr *c = inspect_strip(e->args[0]);
    if (c->kind != E_CALL || c->func || c->fn != FN_ISINF)
        return NULL;
    struct row_reduce *m = reduction_of(w, e->args[2], env);
    return m && reduction_of(w, c->args[0], env) == m ? m : NULL;
}

/* The maximum that the argument is a difference to, of the same. A product would be rounded once with the difference, and
 * not before as in the maximum. */
static struct row_reduce *top_of(const struct walk *w, const struct lang_expr *arg,
                                 const struct row_env *env, bool *finite)
{
    arg = inspect_strip(arg);
    if (arg->kind != E_BINARY || arg->op != OP_SUB)
        return NULL;
    const struct lang_expr *x = arg->args[0];
    struct row_reduce *top = reduction_of(w, arg->args[1], env);
    *finite = !top;
    if (!top)
        top = finite_reduction(w, arg->args[1], env);
    bool falls = top && top->e->reduce == RED_MAX && !(x->kind == E_BINARY && x->op == OP_MUL) &&
                 same_value(w, x, env, top->e->args[0], top->env, 0);
    return falls ? top : NULL;
}

static void note_falling(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    struct row_falling f = {.e = e};
    f.top = top_of(w, e->args[0], env, &f.finite);
    f.always = f.top != NULL;
    f.term = w->scope && w->scope->e->reduce == RED_SUM && w->scope->e->args[0]->type == DT_F32;
    f.damped = f.term || w->divided;
    for (uint32_t i = 0; i < row->nfalling; i++) {
        struct row_falling *o = &row->falling[i];
        if (o->e != e)
            continue;
        o->always &= f.always && f.top == o->top && f.finite == o->finite;
        o->damped &= f.damped;
        o->term &= f.term;
        return;
    }
    if (row->nfalling < ROW_REDUCES)
        row->falling[row->nfalling++] = f;
}

/* ---- calls ---------------------------------------------------------------------------------------- */

static bool takes_many_instructions(const struct lang_expr *e)
{
    switch (e->fn) {
    case FN_ABS:
    case FN_MIN:
    case FN_MAX:
    case FN_CLAMP:
    case FN_RELU:
    case FN_FMA:
    case FN_FLOOR:
    case FN_CEIL:
    case FN_TRUNC:
    case FN_RINT:
    case FN_TF32:
    case FN_TF32_RN:
    case FN_TF32_RZ: return e->func != NULL;
    default: return !e->fast;
    }
}

static bool walk_call(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    const bool before = w->column, divided = w->divided;
    w->column = w->divided = false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!walk_expr(w, e->args[i], env))
            return false;
    bool here = w->column && takes_many_instructions(e);
    w->column |= before;
    w->divided = divided;
    if (!e->func && e->fn == FN_EXP)
        note_falling(w, e, env);
    for (uint32_t i = 0; i < row->nheavy && here; i++)
        if (row->heavy[i].e == e) {
            row->is_heavy |= row->heavy[i].scope != w->scope;
            return true;
        }
    if (here && row->nheavy < ROW_REDUCES) {
        row->heavy[row->nheavy].e = e;
        row->heavy[row->nheavy++].scope = w->scope;
    }
    return true;
}

/* ---- expressions ---------------------------------------------------------------------------------- */

/* Whether what argument i of e is will be divided by a sum over the row. */
static bool is_divided(const struct walk *w, const struct lang_expr *e, uint32_t i,
                       const struct row_env *env)
{
    if (e->kind == E_CAST || (e->kind == E_UNARY && e->op == OP_NEG))
        return w->divided;
    if (e->kind != E_BINARY || (e->op != OP_MUL && e->op != OP_DIV))
        return false;
    if (w->divided || e->op == OP_MUL || i > 0)
        return w->divided;
    const struct row_reduce *by = reduction_of(w, e->args[1], env);
    return by && by->e->reduce == RED_SUM;
}

/* A condition, && or ||: of its arguments the first decides whether the others are evaluated. */
static bool walk_guarded(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    const struct walk outer = *w;
    w->divided = w->column = false;
    w->deep = 0;
    bool good = walk_expr(w, e->args[0], env);
    const bool early = !w->deep && !w->column && (!outer.guard || outer.guard->early);
    for (uint32_t i = 1; i < e->nargs && good; i++) {
        struct row_guard *in = ARENA_NEW(w->g->a, struct row_guard);
        *in = (struct row_guard){
            .when = e->args[0], .env = env, .early = early, .outer = outer.guard};
        in->holds = e->kind == E_COND ? i == 1 : e->op == OP_LAND;
        w->guard = in;
        good = walk_expr(w, e->args[i], env);
    }
    w->guard = outer.guard;
    w->divided = outer.divided;
    w->column |= outer.column;
    w->deep = outer.deep > w->deep ? outer.deep : w->deep;
    return good;
}

static bool walk_expr(struct walk *w, const struct lang_expr *e, const struct row_env *env)
{
    if (++w->steps > MOST_STEPS)
        return no(w, e->span, "the equations expand to too much%s", "");
    e = cg_view(w->g, e);
    if (is_tensor(e))
        return cg_is_defined(w->g, e->sym) ? walk_defined(w, e, env) : walk_memory(w, e, env);
    if (e->kind == E_NAME)
        return e->sym->kind != SYM_INDEX || walk_index(w, e, env);
    if (e->kind == E_REDUCE)
        return walk_reduce(w, e, env);
    if (e->kind == E_CALL)
        return walk_call(w, e, env);
    if (lang_guards(e))
        return walk_guarded(w, e, env);
    const bool divided = w->divided;
    for (uint32_t i = e->nargs; i-- > 0;) { /* divisors first: they must be known */
        w->divided = divided;
        w->divided = is_divided(w, e, i, env);
        bool good = walk_expr(w, e->args[i], env);
        w->divided = divided;
        if (!good)
            return false;
    }
    return true;
}

/* ---- the stage ------------------------------------------------------------------------------------ */

/* The first reduction that an expression needs. */
static const struct lang_expr *find_reduce(struct cg *g, const struct lang_expr *e, uint32_t *steps)
{
    e = cg_view(g, e);
    if (++*steps > MOST_STEPS)
        return NULL;
    if (e->kind == E_REDUCE)
        return e;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *r = find_reduce(g, e->args[i], steps);
        if (r)
            return r;
    }
    return is_tensor(e) && cg_is_defined(g, e->sym) ? find_reduce(g, e->sym->def->rhs, steps)
                                                    : NULL;
}

/* Known at launch: dimensions and constants only. */
static bool is_launch_expr(const struct lang_expr *e)
{
    if (e->kind == E_NAME)
        return e->sym->kind == SYM_DIM;
    if (e->kind != E_INT && e->kind != E_BINARY && e->kind != E_UNARY && e->kind != E_CAST)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_launch_expr(e->args[i]))
            return false;
    return true;
}

static bool same_lead(const struct row *row, const struct lang_symbol *t)
{
    for (uint32_t i = 0; i < row->nlead; i++)
        if (!inspect_same_expr(t->dims[i], row->lead[i]))
            return false;
    return true;
}

static bool walk_output(struct walk *w, const struct lang_equation *eq)
{
    struct row *row = w->row;
    const struct lang_symbol *t = eq->sym;
    bool along = t->rank == row->nlead + row->ncol;
    if ((!along && t->rank != row->nlead) || !same_lead(row, t))
        return no(w, eq->span, "'%s' has another shape than the rows", t->name);
    for (uint32_t i = 0; along && i < row->ncol; i++)
        if (!inspect_same_expr(t->dims[row->nlead + i], row->col[i]))
            return no(w, eq->span, "the last dimensions of '%s' are not those reduced over",
                      t->name);
    if (row->nout == ROW_OUTS)
        return no(w, eq->span, "'%s' is one output too many", t->name);
    if (along) {
        note_bits(row, t);
        row->bits_out += dtype_bits(t->type);
    } else if (dtype_bits(t->type) < 8) {
        return no(w, eq->span, "'%s' has two elements in a byte, for two rows", t->name);
    }
    struct row_env *env = ARENA_NEW(w->g->a, struct row_env);
    env->n = eq->nindex;
    env->v = ARENA_ARRAY(w->g->a, env->n + 1, struct row_bound);
    for (uint32_t i = 0; i < eq->nindex; i++) {
        bool lead = i < row->nlead;
        env->v[i] = (struct row_bound){.sym = eq->index[i],
                                       .kind = lead ? ROW_LEAD : ROW_COLUMN,
                                       .n = lead ? i : i - row->nlead};
    }
    w->early = row_is_kept(row, t);
    row->out[row->nout++] = (struct row_out){eq, env, along, w->early};
    w->deep = 0;
    return walk_expr(w, eq->rhs, env);
}

/* Does the value of e depend on t? */
static bool depends_on(struct cg *g, const struct lang_expr *e, const struct lang_symbol *t,
                       uint32_t *steps)
{
    e = cg_view(g, e);
    if (++*steps > MOST_STEPS)
        return false;
    if (is_tensor(e) && e->sym == t)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (depends_on(g, e->args[i], t, steps))
            return true;
    return is_tensor(e) && cg_is_defined(g, e->sym) && depends_on(g, e->sym->def->rhs, t, steps);
}

/* Outputs that need no reduction and that others read are stored first, and held instead of what they are made of. */
static void choose_kept(struct row *row)
{
    struct cg *g = row->g;
    const struct lower_stage *s = row->stage;
    for (uint32_t i = 0; i < s->n && row->nkept < ROW_OUTS; i++) {
        const struct lang_symbol *t = s->eq[i]->sym;
        bool wanted = false;
        uint32_t steps = 0;
        if (t->mode != MODE_OUT || t->rank != row->nlead + row->ncol || dtype_bits(t->type) < 16 ||
            find_reduce(g, s->eq[i]->rhs, &steps))
            continue;
        for (uint32_t k = 0; k < s->n && !wanted; k++)
            wanted = k != i && depends_on(g, s->eq[k]->rhs, t, &steps);
        if (wanted && steps <= MOST_STEPS)
            row->kept[row->nkept++] = t;
    }
}

/* Tries rows with this many leading subscripts. */
static bool try_lead(struct cg *g, const struct lower_stage *s, bool keeps, struct row *row,
                     const struct lang_expr *reduce, uint32_t nlead, struct buf *why)
{
    struct walk w = {.g = g, .row = row, .why = why};
    *row = (struct row){.g = g, .stage = s, .nlead = nlead, .ncol = reduce->nindex};
    row->lead = s->eq[0]->sym->dims;
    for (uint32_t i = 0; i < row->ncol; i++) {
        const struct lang_symbol *k = reduce->index[i];
        row->col[i] = k->dims[0];
        if (k->low || !is_launch_expr(k->dims[0]))
            return no(&w, reduce->span, "the range of '%s' is not a dimension", k->name);
    }
    if (keeps)
        choose_kept(row);
    for (uint32_t i = 0; i < s->n; i++)
        if (!walk_output(&w, s->eq[i]))
            return false;
    /* an element for each row and column is what makes rows worth it: a product of matrices has none */
    bool own = nlead == 1 && !row->other_reads && row->bits_in;
    for (uint32_t i = 0; i < row->nout; i++)
        own |= row->out[i].along;
    for (uint32_t i = 0; i < row->nread; i++)
        own |= row->read[i].own;
    if (!own)
        return no(&w, reduce->span, "%s reads no element for each row and column",
                  lang_reduce_name(reduce->reduce));
    int64_t columns = 1, n;
    for (uint32_t i = 0; i < row->ncol; i++)
        columns = lang_const_int(row->col[i], &n) && n <= MOST_ALONE ? columns * n : INT32_MAX;
    if (nlead == 0 && (row->bits_out == 0 || columns > MOST_ALONE))
        return no(&w, reduce->span, "%s has one row, that may be too long for few threads",
                  lang_reduce_name(reduce->reduce));
    return true;
}

bool row_analyse(struct cg *g, const struct lower_stage *s, bool keeps, struct row *row,
                 struct buf *why)
{
    const struct lang_expr *reduce = NULL;
    uint32_t steps = 0, rank = s->eq[0]->sym->rank;
    struct walk w = {.g = g, .why = why};
    for (uint32_t i = 0; i < s->n && !reduce; i++)
        reduce = find_reduce(g, s->eq[i]->rhs, &steps);
    if (!reduce)
        return no(&w, s->eq[0]->span, "nothing is reduced%s", "");
    if (rank > ROW_RANK || reduce->nindex > ROW_RANK)
        return no(&w, s->eq[0]->span, "too many dimensions%s", "");
    struct buf first = buf_in(g->a);
    if (rank >= reduce->nindex &&
        try_lead(g, s, keeps, row, reduce, rank - reduce->nindex, why ? &first : NULL))
        return true;
    /* an output along the rows says more of what is amiss than one element for each */
    struct buf second = buf_in(g->a);
    if (try_lead(g, s, keeps, row, reduce, rank, why ? &second : NULL))
        return true;
    if (why) {
        bool along = rank >= reduce->nindex && buf_text(&first)[0];
        for (uint32_t i = 0; along && i < reduce->nindex; i++)
            along = inspect_same_expr(s->eq[0]->sym->dims[rank - reduce->nindex + i],
                                      reduce->index[i]->dims[0]);
        buf_puts(why, buf_text(along ? &first : &second));
    }
    return false;
}
