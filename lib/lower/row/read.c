/* What a row reads, element by element along it, once for the whole row, or in a way of its own
 * (row/walk.h). */
#include <config.h>

#include "lower/row/walk.h"

bool row_is_along(const struct row *row, const struct lang_expr *e, const struct row_env *env,
                  const struct row_reduce *scope)
{
    const struct lang_symbol *t = e->sym;
    if (e->pad || e->nargs != t->rank || t->rank < row->ncol)
        return false;
    uint32_t lead = t->rank - row->ncol;
    for (uint32_t i = 0; i < row->ncol; i++) {
        const struct row_bound *b = row_bound_of(env, e->args[lead + i]);
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
        const struct row_bound *b = i < e->nargs ? row_bound_of(env, e->args[i]) : NULL;
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

void row_note_bits(struct row *row, const struct lang_symbol *t)
{
    unsigned bits = dtype_bits(t->type);
    row->most = bits > row->most ? bits : row->most;
    row->least = !row->least || bits < row->least ? bits : row->least;
}

static bool note_along(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    bool shared = row_is_shared(row, e->sym);
    if (!shared) {
        row_note_bits(row, e->sym);
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
        return lower_lacks(w->why, e->span, "the read of '%s' is one too many", e->sym->name);
    row->read[row->nread++] = (struct row_read){
        .e = e, .env = env, .scope = w->scope, .shared = shared, .own = own, .early = w->early};
    return true;
}

static bool walk_args(struct row_walk *w, const struct lang_expr *e, uint32_t n,
                      const struct row_env *env)
{
    const bool divided = w->divided;
    bool good = true;
    w->divided = false;
    for (uint32_t i = 0; i < n && good; i++)
        good = row_walk_expr(w, e->args[i], env);
    w->divided = divided;
    return good;
}

/* May e be read whatever the conditions around it say? */
static bool is_certain(const struct row *row, const struct lang_expr *e, const struct row_env *env)
{
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct row_bound *b = row_bound_of(env, e->args[i]);
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
static bool walk_other(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    struct row *row = w->row;
    const struct row_guard *guard = w->guard;
    bool before = w->column;
    uint32_t deep = w->deep;
    if (w->guarded && !e->pad && !is_certain(row, e, env))
        return lower_lacks(w->why, e->span,
                           "'%s' may be read where a condition around the reduction forbids it",
                           e->sym->name);
    w->column = false;
    w->deep = 0;
    w->guard = e->pad ? &unknown : guard;
    bool good = walk_args(w, e, e->nargs, env) && (!e->pad || row_walk_expr(w, e->pad, env));
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
    return lower_lacks(w->why, e->span, "'%s' is written and read at other elements", e->sym->name);
}

bool row_walk_memory(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
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
               lower_lacks(w->why, e->span, "'%s' is written and read at other elements",
                           e->sym->name);
    }
    if (is_written(row, e->sym)) {
        if (lead != row->nlead || !is_own_element(row, e, env))
            return lower_lacks(w->why, e->span, "'%s' is written and read in other rows",
                               e->sym->name);
        row->in_place = true;
    }
    return note_along(w, e, env);
}

bool row_walk_defined(struct row_walk *w, const struct lang_expr *e, const struct row_env *env)
{
    if (!w->early && e->kind == E_INDEX && row_is_kept(w->row, e->sym) &&
        row_is_along(w->row, e, env, w->scope) && is_own_element(w->row, e, env)) {
        w->column = true;
        return note_along(w, e, env);
    }
    const struct row_env *in = row_enter(w, e, env);
    for (uint32_t i = 0; i < in->n; i++)
        if (in->v[i].kind == ROW_OTHER && in->v[i].arg == e->args[i] &&
            !row_walk_expr(w, e->args[i], env))
            return false;
    const struct row_guard *guard = w->guard;
    const bool outside = w->outside;
    w->guard = e->pad ? &unknown : guard;
    for (uint32_t i = 0; i < e->nargs; i++)
        w->outside |= (w->guard || w->guarded) && !inspect_in_range(e, i);
    bool good = (!e->pad || row_walk_expr(w, e->pad, env)) &&
                row_walk_expr(w, e->sym->def->rhs, in);
    w->guard = guard;
    w->outside = outside;
    w->row->other_reads |= e->pad != NULL;
    return good;
}
