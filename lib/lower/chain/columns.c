/* The column of a chain's streams, what its outputs have in common, and the parts of terms that do
 * not depend on the column (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

struct finder {
    struct cg *g;
    struct chain_form *f;
    struct buf *why;
    uint32_t naxis; /* of the first output: rows and the column */
    struct lang_symbol *const *axis;
};

/* ---- the column ------------------------------------------------------------------------------ */

/* Is it an axis that no score, no range and no stream depends on that others are rescaled by? */
static bool is_column(const struct finder *x, const struct lang_symbol *axis)
{
    const struct chain_form *f = x->f;
    bool any = false;
    for (uint32_t i = 0; i < f->nscore; i++)
        if (chain_mentions(f->score[i].e, axis))
            return false;
    for (uint32_t i = 0; i < f->nstream; i++) {
        const struct chain_stream *s = &f->stream[i];
        if (chain_mentions(s->high, axis) || (s->low && chain_mentions(s->low, axis)))
            return false;
        any |= chain_mentions(s->term, axis);
    }
    return any;
}

static bool choose_column(const struct finder *x)
{
    struct chain_form *f = x->f;
    for (uint32_t i = 0; i < x->naxis; i++) {
        if (!is_column(x, x->axis[i])) {
            f->row[f->nrow++] = x->axis[i];
            continue;
        }
        if (f->column)
            return lower_lacks(x->why, f->stage->eq[0]->span,
                               "both '%s' and '%s' are columns of what is reduced", f->column->name,
                               x->axis[i]->name);
        f->column = x->axis[i];
    }
    for (uint32_t i = 0; i < f->nstream; i++) {
        struct chain_stream *s = &f->stream[i];
        s->has_column = f->column && chain_mentions(s->term, f->column);
    }
    for (uint32_t i = 0; i < f->nstream; i++)
        for (uint32_t k = 0; k < f->nstream; k++)
            if (f->stream[k].has_column && chain_mentions(f->stream[i].term, f->stream[k].sym))
                return lower_lacks(x->why, f->stream[i].span, "the terms depend on columns' %s",
                                   lang_reduce_name(f->stream[k].reduce));
    return true;
}

static bool reads_columns(const struct chain_form *f, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < f->nstream; i++)
        if (f->stream[i].has_column && chain_mentions(e, f->stream[i].sym))
            return true;
    return false;
}

/* Outputs have a value for each row, and the column where they have its index. */
static bool check_outputs(const struct finder *x)
{
    struct chain_form *f = x->f;
    for (uint32_t i = 0; i < f->nout; i++) {
        struct chain_out *o = &f->out[i];
        uint32_t rows = 0;
        for (uint32_t k = 0; k < o->eq->nindex; k++) {
            o->has_column |= o->eq->index[k] == f->column;
            rows += o->eq->index[k] != f->column;
        }
        if (rows != f->nrow)
            return lower_lacks(x->why, o->eq->span, "'%s' does not have all of the rows' indices",
                               o->eq->sym->name);
        if (!o->has_column && reads_columns(f, o->eq->rhs))
            return lower_lacks(x->why, o->eq->span, "'%s' lacks the column's index",
                               o->eq->sym->name);
    }
    return true;
}

/* ---- what outputs share ---------------------------------------------------------------------- */

/* The scores that e needs, a bit each, of streams' terms too. */
static uint32_t scores_of(const struct chain_form *f, const struct lang_expr *e)
{
    uint32_t scores = 0;
    for (uint32_t i = 0; i < f->nscore; i++)
        scores |= (uint32_t)chain_mentions(e, f->score[i].sym) << i;
    for (uint32_t i = 0; i < f->nstream; i++)
        if (chain_mentions(e, f->stream[i].sym))
            scores |= scores_of(f, f->stream[i].term);
    return scores;
}

/* Outputs with no score in common are no work for the same pass: the gradients of queries and of
 * keys, where there are as many of these as of those. */
static bool check_shared(const struct finder *x)
{
    struct chain_form *f = x->f;
    uint32_t of[CHAIN_OUTS], some = 0;
    for (uint32_t i = 0; i < f->nout; i++) {
        of[i] = scores_of(f, f->out[i].eq->rhs);
        some = some ? some : of[i];
    }
    for (uint32_t before = 0; before != some;) {
        before = some;
        for (uint32_t i = 0; i < f->nout; i++)
            some |= of[i] & some ? of[i] : 0;
    }
    for (uint32_t i = 0; i < f->nout; i++)
        if (of[i] & ~some)
            return lower_lacks(x->why, f->out[i].eq->span, "'%s' shares no score with '%s'",
                               f->out[i].eq->sym->name, f->out[0].eq->sym->name);
    return true;
}

/* ---- terms with a column --------------------------------------------------------------------- */

static struct lang_expr *part_of(const struct finder *x, struct chain_stream *s,
                                 struct lang_expr *e)
{
    for (uint32_t i = 0; i < s->npart; i++)
        if (matmul_same(s->part[i].e, e))
            return chain_name(x->g, (struct lang_symbol *)s->part[i].sym, e->span);
    if (s->npart == CHAIN_PARTS) {
        lower_lacks(x->why, e->span, "the terms have too many parts");
        return NULL;
    }
    struct lang_symbol *sym = chain_local(x->g, "part", e->type, e->span);
    s->part[s->npart++] = (struct chain_part){sym, e};
    return chain_name(x->g, sym, e->span);
}

static bool is_computed(const struct finder *x, const struct lang_expr *e)
{
    return chain_mentions_score(x->f, e) || chain_mentioned_stream(x->f, e) >= 0;
}

/* Is it made of scores or streams, or work for each j that is not to be repeated for columns? */
static bool is_worked(const struct finder *x, const struct lang_expr *e)
{
    return is_computed(x, e) ||
           (e->kind != E_NAME && e->kind != E_CAST && chain_mentions(e, x->f->j));
}

/* A part is of the type that it was rounded to. */
static bool is_widening(const struct lang_expr *e)
{
    return e->kind == E_CAST && dtype_is_float(e->type) && dtype_is_float(e->args[0]->type) &&
           dtype_bits(e->type) > dtype_bits(e->args[0]->type);
}

/* The term with locals for the largest parts of it that don't depend on the column and have work in
 * them. */
static struct lang_expr *take_parts(const struct finder *x, struct chain_stream *s,
                                    struct lang_expr *e)
{
    const bool whole = !chain_mentions(e, x->f->column);
    if (whole && !is_worked(x, e))
        return e;
    if (whole && !is_widening(e))
        return part_of(x, s, e);
    struct lang_expr *c = ARENA_NEW(x->g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(x->g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        /* a subscript that needs nothing computed is left as it is */
        const bool stays = e->kind == E_INDEX && !is_computed(x, e->args[i]);
        c->args[i] = stays ? e->args[i] : take_parts(x, s, e->args[i]);
        if (!c->args[i])
            return NULL;
    }
    if (e->pad && !(c->pad = take_parts(x, s, e->pad)))
        return NULL;
    return c;
}

static bool part_terms(const struct finder *x)
{
    struct chain_form *f = x->f;
    for (uint32_t i = 0; i < f->nstream; i++) {
        struct chain_stream *s = &f->stream[i];
        if (s->has_column && !(s->term = take_parts(x, s, s->term)))
            return false;
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool chain_find_column(struct cg *g, struct chain_form *f, uint32_t naxis,
                       struct lang_symbol *const *axis, struct buf *why)
{
    const struct finder x = {g, f, why, naxis, axis};
    return choose_column(&x) && check_outputs(&x) && check_shared(&x) && part_terms(&x);
}
