#include <config.h>

#include "lower/advice.h"

#include "lower/schedule.h"

#include <float.h>

/* ---- how much is left to naive --------------------------------------------------------------- */

enum { MANY_TERMS = 1 << 16, MOST_STEPS = 10000 };

struct terms {
    struct cg *g;
    const struct lang_expr *reduce; /* the first that was met */
    unsigned steps;
};

/* Multiplies; 0 times anything is 0, infinity too. */
static double product(double x, double y)
{
    return x == 0 || y == 0 ? 0 : x * y;
}

/* DBL_MAX: it is not known. */
static double extent(const struct lang_symbol *index)
{
    int64_t low = 0, high;
    if ((index->low && !lang_const_int(index->low, &low)) || !lang_const_int(index->dims[0], &high))
        return DBL_MAX;
    return high > low ? (double)high - (double)low : 0;
}

/* The terms of all reductions that one element of e takes. */
static double terms_of(struct terms *t, const struct lang_expr *e)
{
    double n = 0, all = 1;
    if (++t->steps > MOST_STEPS)
        return DBL_MAX;
    e = cg_view(t->g, e);
    if (e->kind == E_REDUCE && !t->reduce)
        t->reduce = e;
    for (uint32_t i = 0; i < e->nargs; i++)
        n += terms_of(t, e->args[i]);
    if (e->pad)
        n += terms_of(t, e->pad);
    if ((e->kind == E_INDEX || e->kind == E_NAME) && cg_is_defined(t->g, e->sym))
        n += terms_of(t, e->sym->def->rhs);
    for (uint32_t i = 0; i < e->nindex; i++)
        all = product(all, extent(e->index[i]));
    return e->kind == E_REDUCE ? product(all, 1 + n) : n;
}

/* ---- which strategy comes closest, and what it would take ------------------------------------ */

/* A sum of products of two things that both go along the sum, for results by two indices or
 * more. */
static bool is_contraction(const struct lang_expr *r, const struct lang_equation *eq)
{
    const struct lang_expr *body = inspect_strip(r->args[0]);
    return r->reduce == RED_SUM && body->kind == E_BINARY && body->op == OP_MUL && eq->nindex > 1 &&
           inspect_mentions(body->args[0], r->nindex, r->index) &&
           inspect_mentions(body->args[1], r->nindex, r->index);
}

static bool is_last_subscript(const struct lang_expr *e, uint32_t n,
                              struct lang_symbol *const *index)
{
    if (e->kind == E_INDEX && e->nargs && inspect_mentions(e->args[e->nargs - 1], n, index))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (is_last_subscript(e->args[i], n, index))
            return true;
    return false;
}

static const struct strategy *closest(const struct lang_expr *r, const struct lang_equation *eq)
{
    const bool rows = is_last_subscript(r->args[0], r->nindex, r->index);
    return is_contraction(r, eq) ? &matmul_strategy : rows ? &row_strategy : &reduce_strategy;
}

/* The first subscript in a term of r that is made of the equation's indices, but is none; NULL:
 * there is none. */
static const struct lang_expr *other_place(const struct lang_expr *e, const struct lang_expr *r,
                                           const struct lang_equation *eq)
{
    const struct lang_expr *found = NULL;
    for (uint32_t i = 0; e->kind == E_INDEX && i < e->nargs; i++)
        if (inspect_strip(e->args[i])->kind != E_NAME &&
            inspect_mentions(e->args[i], eq->nindex, eq->index) &&
            !inspect_mentions(e->args[i], r->nindex, r->index))
            return e->args[i];
    for (uint32_t i = 0; i < e->nargs && !found; i++)
        found = other_place(e->args[i], r, eq);
    return found;
}

/* The first index of the reduction that does not run from 0 to a number known at launch; NULL:
 * there is none. */
static const struct lang_symbol *ranged(const struct lang_expr *r)
{
    int64_t low;
    for (uint32_t i = 0; i < r->nindex; i++) {
        const struct lang_symbol *k = r->index[i];
        if ((k->low && !(lang_const_int(k->low, &low) && low == 0)) ||
            !inspect_at_launch(k->dims[0]))
            return k;
    }
    return NULL;
}

/* Do the range's ends differ by a constant, as those of i - 1..i + 2 do? */
static bool is_window(const struct lang_symbol *k, int64_t *n)
{
    const struct lang_expr *end[2] = {k->low, k->dims[0]};
    int64_t add[2] = {0, 0};
    for (uint32_t i = 0; i < 2 && k->low; i++) {
        const struct lang_expr *e = inspect_strip(end[i]);
        if (e->kind == E_BINARY && (e->op == OP_ADD || e->op == OP_SUB) &&
            lang_const_int(e->args[1], &add[i])) {
            end[i] = e->args[0];
            add[i] = e->op == OP_SUB ? -add[i] : add[i];
        }
    }
    *n = add[1] - add[0];
    return k->low && *n > 0 && inspect_same_expr(end[0], end[1]);
}

static void advise_range(struct cg *g, const struct lang_expr *r, const struct lang_symbol *k)
{
    static const char *const nothing[] = {
        [RED_SUM] = "0",     [RED_PROD] = "1",   [RED_MAX] = "-inf",   [RED_MIN] = "inf",
        [RED_ANY] = "false", [RED_ALL] = "true", [RED_ARGMAX] = "nan", [RED_ARGMIN] = "nan"};
    int64_t n;
    const char *how = lang_reduce_name(r->reduce), *high = lang_expr_text(g->a, k->dims[0]);
    if (is_window(k, &n)) {
        diag_note(g->d, k->span, "write %s[%s < %lld](...), and %s + %s where %s is", how, k->name,
                  (long long)n, lang_expr_text(g->a, k->low), k->name, k->name);
        return;
    }
    const bool zero = !k->low || (lang_const_int(k->low, &n) && n == 0);
    const char *low =
        zero ? "" : arena_printf(g->a, "%s >= %s && ", k->name, lang_expr_text(g->a, k->low));
    diag_note(g->d, k->span,
              "let %s run over a whole dimension, and write its range as a condition: %s%s < %s "
              "? ... : %s",
              k->name, low, k->name, high, nothing[r->reduce]);
}

/* What to write instead, as far as the reason shows in the equation. */
static void advise(struct cg *g, const struct lang_equation *eq, const struct lang_expr *r)
{
    const struct lang_expr *place = other_place(r->args[0], r, eq);
    const struct lang_symbol *range = ranged(r);
    if (g->guarded)
        diag_note(g->d, g->guarded->span,
                  "give this %s an equation of its own, with pad() where it may read out of range",
                  lang_reduce_name(g->guarded->reduce));
    else if (range)
        advise_range(g, r, range);
    else if (place)
        diag_note(g->d, place->span,
                  "give '%s' an index of its own, in an equation that this one reads",
                  lang_expr_text(g->a, place));
    else
        diag_note(g->d, r->span,
                  "kaio-emit(1), STRATEGIES, has what each takes; --explain says why none did");
}

void advise_naive(struct cg *g, const struct lower_stage *s)
{
    struct terms t = {.g = g};
    const struct lang_symbol *out = s->eq[0]->sym;
    struct buf why = buf_in(g->a);
    double n = 0;
    uint32_t first = s->n;
    if (!g->opt->advises)
        return;
    for (uint32_t i = 0; i < s->n; i++) {
        n += terms_of(&t, s->eq[i]->rhs);
        first = t.reduce && first == s->n ? i : first;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t dim;
        n = product(n, lang_const_int(out->dims[i], &dim) ? (double)dim : DBL_MAX);
    }
    if (first == s->n || n <= MANY_TERMS)
        return;
    const struct strategy *st = closest(t.reduce, s->eq[first]);
    if (schedule_analyse(g, st, s, &why))
        return;
    diag_warning(g->d, t.reduce->span,
                 "each thread computes whole elements of '%s' by itself, which is slow: strategy "
                 "%s does not fit (%s)",
                 s->eq[first]->sym->name, st->name, buf_text(&why));
    advise(g, s->eq[first], t.reduce);
    diag_note(g->d, SPAN_NONE, "'schedule: {strategy: naive}' says that this is meant");
}
