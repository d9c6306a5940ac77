/* What a stage reads and reduces, seen from a row: does it fit, and which elements are worth
 * holding. */
#include <config.h>

#include "lower/row/walk.h"

/* MOST_ALONE: columns of a row that is the only one */
enum { MOST_STEPS = 100000, MOST_ALONE = 1 << 16 };

static const struct row_bound *lookup(const struct row_env *env, const struct lang_symbol *sym)
{
    for (uint32_t i = env->n; i-- > 0;)
        if (env->v[i].sym == sym)
            return &env->v[i];
    return NULL;
}

const struct row_bound *row_bound_of(const struct row_env *env, const struct lang_expr *e)
{
    e = inspect_strip(e);
    return e->kind == E_NAME && e->sym->kind == SYM_INDEX ? lookup(env, e->sym) : NULL;
}

const struct row_env *row_enter(const struct row_walk *w, const struct lang_expr *e,
                                const struct row_env *env)
{
    const struct lang_equation *eq = e->sym->def;
    struct row_env *in = ARENA_NEW(w->g->a, struct row_env);
    in->n = eq->nindex;
    in->v = ARENA_ARRAY(w->g->a, in->n + 1, struct row_bound);
    for (uint32_t i = 0; i < eq->nindex; i++) {
        const struct row_bound *b = row_bound_of(env, e->args[i]);
        in->v[i] = b ? *b
                     : (struct row_bound){
                           .kind = ROW_OTHER, .scope = w->scope, .arg = e->args[i], .in = env};
        in->v[i].sym = eq->index[i];
    }
    return in;
}

bool row_is_tensor(const struct lang_expr *e)
{
    return e->kind == E_INDEX ||
           (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR || e->sym->kind == SYM_BUFFER));
}

static bool walk_index(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    const struct row_bound *b = lookup(env, e->sym);
    if (!b)
        return lower_lacks(w->why, e->span, "the range of '%s' is one of its own", e->sym->name);
    if (b->kind == ROW_LEAD)
        return true;
    if (b->scope != w->scope)
        return lower_lacks(w->why, e->span,
                           "the reduction differs between the elements of a row that read it");
    if (b->kind == ROW_OTHER)
        return row_walk_expr(w, b->arg, b->in);
    w->column = w->row->uses_column = true;
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

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

static bool walk_call(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    const bool before = w->column, divided = w->divided;
    w->column = w->divided = false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!row_walk_expr(w, e->args[i], env))
            return false;
    bool here = w->column && takes_many_instructions(e);
    w->column |= before;
    w->divided = divided;
    if (!e->func && e->fn == FN_EXP)
        row_note_falling(w, e, env);
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

/* ---- expressions ----------------------------------------------------------------------------- */

/* Will argument i of e be divided by a sum over the row? */
static bool is_divided(const struct row_walk *w, const struct lang_expr *e, uint32_t i,
                       const struct row_env *env)
{
    if (e->kind == E_CAST || (e->kind == E_UNARY && e->op == OP_NEG))
        return w->divided;
    if (e->kind != E_BINARY || (e->op != OP_MUL && e->op != OP_DIV))
        return false;
    if (w->divided || e->op == OP_MUL || i > 0)
        return w->divided;
    const struct row_reduce *by = row_reduction_of(w, e->args[1], env);
    return by && by->e->reduce == RED_SUM;
}

/* A condition, && or ||: of its arguments the first decides whether the others are evaluated. */
static bool walk_guarded(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    const struct row_walk outer = *w;
    w->divided = w->column = false;
    w->deep = 0;
    bool good = row_walk_expr(w, e->args[0], env);
    const bool early = !w->deep && !w->column && (!outer.guard || outer.guard->early);
    for (uint32_t i = 1; i < e->nargs && good; i++) {
        struct row_guard *in = ARENA_NEW(w->g->a, struct row_guard);
        *in = (struct row_guard){
            .when = e->args[0], .env = env, .early = early, .outer = outer.guard};
        in->holds = e->kind == E_COND ? i == 1 : e->op == OP_LAND;
        w->guard = in;
        good = row_walk_expr(w, e->args[i], env);
    }
    w->guard = outer.guard;
    w->divided = outer.divided;
    w->column |= outer.column;
    w->deep = outer.deep > w->deep ? outer.deep : w->deep;
    return good;
}

bool row_walk_expr(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    if (++w->steps > MOST_STEPS)
        return lower_lacks(w->why, e->span, "the equations expand to too much");
    e = cg_view(w->g, e);
    if (row_is_tensor(e))
        return cg_is_defined(w->g, e->sym) ? row_walk_defined(w, e, env)
                                           : row_walk_memory(w, e, env);
    if (e->kind == E_NAME)
        return e->sym->kind != SYM_INDEX || walk_index(w, e, env);
    if (e->kind == E_REDUCE)
        return row_walk_reduce(w, e, env);
    if (e->kind == E_CALL)
        return walk_call(w, e, env);
    if (lang_guards(e))
        return walk_guarded(w, e, env);
    const bool divided = w->divided;
    for (uint32_t i = e->nargs; i-- > 0;) { /* divisors first: they must be known */
        w->divided = divided;
        w->divided = is_divided(w, e, i, env);
        bool good = row_walk_expr(w, e->args[i], env);
        w->divided = divided;
        if (!good)
            return false;
    }
    return true;
}

/* ---- the stage ------------------------------------------------------------------------------- */

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
    return row_is_tensor(e) && cg_is_defined(g, e->sym) ? find_reduce(g, e->sym->def->rhs, steps)
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

static bool walk_output(struct row_walk *w, const struct lang_equation *eq)
{
    struct row *row = w->row;
    const struct lang_symbol *t = eq->sym;
    bool along = t->rank == row->nlead + row->ncol;
    if ((!along && t->rank != row->nlead) || !same_lead(row, t))
        return lower_lacks(w->why, eq->span, "'%s' has another shape than the rows", t->name);
    for (uint32_t i = 0; along && i < row->ncol; i++)
        if (!inspect_same_expr(t->dims[row->nlead + i], row->col[i]))
            return lower_lacks(w->why, eq->span,
                               "the last dimensions of '%s' are not those reduced over", t->name);
    if (row->nout == ROW_OUTS)
        return lower_lacks(w->why, eq->span, "'%s' is one output too many", t->name);
    if (along) {
        row_note_bits(row, t);
        row->bits_out += dtype_bits(t->type);
    } else if (dtype_bits(t->type) < 8) {
        return lower_lacks(w->why, eq->span, "'%s' has two elements in a byte, for two rows",
                           t->name);
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
    return row_walk_expr(w, eq->rhs, env);
}

/* Does the value of e depend on t? */
static bool depends_on(struct cg *g, const struct lang_expr *e, const struct lang_symbol *t,
                       uint32_t *steps)
{
    e = cg_view(g, e);
    if (++*steps > MOST_STEPS)
        return false;
    if (row_is_tensor(e) && e->sym == t)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (depends_on(g, e->args[i], t, steps))
            return true;
    return row_is_tensor(e) && cg_is_defined(g, e->sym) &&
           depends_on(g, e->sym->def->rhs, t, steps);
}

/* Outputs that need no reduction and that others read are stored first, and held instead of what
 * they are made of. */
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
    struct row_walk w = {.g = g, .row = row, .why = why};
    *row = (struct row){.g = g, .stage = s, .nlead = nlead, .ncol = reduce->nindex};
    row->lead = s->eq[0]->sym->dims;
    for (uint32_t i = 0; i < row->ncol; i++) {
        const struct lang_symbol *k = reduce->index[i];
        row->col[i] = k->dims[0];
        if (k->low || !is_launch_expr(k->dims[0]))
            return lower_lacks(w.why, reduce->span, "the range of '%s' is not a dimension",
                               k->name);
    }
    if (keeps)
        choose_kept(row);
    for (uint32_t i = 0; i < s->n; i++)
        if (!walk_output(&w, s->eq[i]))
            return false;
    /* an element for each row and column is what makes rows worth it: a product of matrices has
     * none */
    bool own = nlead == 1 && !row->other_reads && row->bits_in;
    for (uint32_t i = 0; i < row->nout; i++)
        own |= row->out[i].along;
    for (uint32_t i = 0; i < row->nread; i++)
        own |= row->read[i].own;
    if (!own)
        return lower_lacks(w.why, reduce->span, "%s reads no element for each row and column",
                           lang_reduce_name(reduce->reduce));
    int64_t columns = 1, n;
    for (uint32_t i = 0; i < row->ncol; i++)
        columns = lang_const_int(row->col[i], &n) && n <= MOST_ALONE ? columns * n : INT32_MAX;
    if (nlead == 0 && (row->bits_out == 0 || columns > MOST_ALONE))
        return lower_lacks(w.why, reduce->span,
                           "%s has one row, that may be too long for few threads",
                           lang_reduce_name(reduce->reduce));
    return true;
}

bool row_analyse(struct cg *g, const struct lower_stage *s, bool keeps, struct row *row,
                 struct buf *why)
{
    const struct lang_expr *reduce = NULL;
    uint32_t steps = 0, rank = s->eq[0]->sym->rank;
    struct row_walk w = {.g = g, .why = why};
    for (uint32_t i = 0; i < s->n && !reduce; i++)
        reduce = find_reduce(g, s->eq[i]->rhs, &steps);
    if (!reduce)
        return lower_lacks(w.why, s->eq[0]->span, "nothing is reduced");
    if (rank > ROW_RANK || reduce->nindex > ROW_RANK)
        return lower_lacks(w.why, s->eq[0]->span, "too many dimensions");
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
