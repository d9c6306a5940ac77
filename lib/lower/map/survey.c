/* What a map's elements take: the operations of each, and the widths of what moves. */
#include <config.h>

#include "lower/access.h"
#include "lower/map/map.h"

enum {
    MOST_STEPS = 200000,
    /* Operations of an element, reductions written out: */
    MOST_COST = 1700,   /* that are generated at all */
    MOST_VECTOR = 8000, /* times the lanes: in any variant */
    LOOP_COST = 16,     /* the terms that a loop counts as */
};

struct survey {
    struct cg *g;
    struct buf *why;
    const struct map_windows *windows; /* NULL: reductions are written out */
    const struct lang_equation *eq;
    unsigned steps;
    bool inside, guarded; /* a reduction that is a loop; what only some need */
    /* bits of the widest element, and of all inputs', that move along all axes */
    uint32_t most, in_bits;
    uint32_t depth; /* intermediates around what is looked at */
    uint32_t apart; /* leading axes along which a large read does not move */
};

bool map_count_terms(const struct lang_expr *e, uint64_t *n)
{
    *n = 1;
    for (uint32_t i = 0; i < e->nindex; i++) {
        int64_t low = 0, high;
        if ((e->index[i]->low && !lang_const_int(e->index[i]->low, &low)) ||
            !lang_const_int(e->index[i]->dims[0], &high))
            return false;
        const uint64_t count = high > low ? (uint64_t)high - (uint64_t)low : 0;
        if (count > MAP_TERMS || *n * count > MAP_TERMS)
            return false;
        *n *= count;
    }
    return true;
}

enum { FEW = 8 };

/* The same of a reduction of the results' own equation. */
static bool is_shared(const struct survey *s, const struct lang_expr *e, uint64_t terms)
{
    bool all = true;
    for (uint32_t i = 0; i < s->eq->nindex; i++)
        all = all && inspect_mentions(e, 1, &s->eq->index[i]);
    return s->depth == 0 && !all && terms > FEW;
}

/* Is it a reduction of more than a few terms that has fewer indices than the results? Many of these
 * would compute it again, a norm's sum over channels each of the channels. */
static bool is_shared_reduction(const struct survey *s, const struct lang_equation *eq)
{
    const struct lang_expr *r = inspect_reduction(s->g, eq->rhs);
    uint64_t terms;
    return r && eq->nindex < s->eq->nindex && (!map_count_terms(r, &terms) || terms > FEW);
}

/* Is it a reduction over windows alone, of any size, that every result does for itself? */
static bool is_loop(const struct survey *s, const struct lang_expr *e)
{
    if (!s->windows || s->inside || s->guarded)
        return false;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (!map_is_window(s->windows, e->index[i]) || !inspect_at_launch(e->index[i]->dims[0]) ||
            (e->index[i]->low && !inspect_at_launch(e->index[i]->low)))
            return false;
    return true;
}

/* Adds to *cost the operations that an element takes, intermediates and short reductions written
 * out. */
static bool survey_expr(struct survey *s, const struct lang_expr *e, double *cost)
{
    double inner = 1;
    uint64_t terms = 1;
    e = cg_view(s->g, e);
    if (++s->steps > MOST_STEPS)
        return lower_lacks(s->why, e->span, "'%s' takes too many operations", s->eq->sym->name);
    const bool counted = e->kind != E_REDUCE || map_count_terms(e, &terms);
    const bool many = s->windows && (!counted || terms > s->windows->written) && is_loop(s, e);
    if (!counted && !many)
        return lower_lacks(s->why, e->span, "%s is a reduction of many terms",
                           lang_reduce_name(e->reduce));
    terms = many ? LOOP_COST : terms;
    if (e->kind == E_REDUCE && is_shared(s, e, terms))
        return lower_lacks(s->why, e->span, "several results need this %s",
                           lang_reduce_name(e->reduce));
    const bool inside = s->inside, guarded = s->guarded;
    s->inside |= many;
    for (uint32_t i = 0; i < e->nargs; i++) {
        s->guarded = guarded || (lang_guards(e) && i > 0);
        if (!survey_expr(s, e->args[i], &inner))
            return false;
    }
    s->inside = inside;
    s->guarded = guarded;
    if (e->pad && !survey_expr(s, e->pad, &inner))
        return false;
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR ||
                                                                     e->sym->kind == SYM_BUFFER));
    if (tensor && cg_is_defined(s->g, e->sym) && is_shared_reduction(s, e->sym->def))
        return lower_lacks(s->why, e->span, "several results need the reduction '%s'",
                           e->sym->name);
    const bool is_made = tensor && cg_is_defined(s->g, e->sym);
    s->depth += is_made;
    s->guarded |= e->pad != NULL;
    if (is_made && !survey_expr(s, e->sym->def->rhs, &inner))
        return false;
    s->depth -= is_made;
    s->guarded = guarded;
    *cost += inner * (double)terms;
    return *cost <= MOST_COST ||
           lower_lacks(s->why, e->span, "'%s' takes too many operations", s->eq->sym->name);
}

/* Is it so large that the L2 cache keeps little of it for long? */
static bool is_large(const struct lang_symbol *t)
{
    enum { LARGE = 4 << 20 };
    int64_t n = 1, one;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!lang_const_int(t->dims[i], &one) || __builtin_mul_overflow(n, one, &n))
            return false;
    return n >= (int64_t)LARGE * 8 / dtype_bits(t->type);
}

static bool note_read(void *ctx, const struct access *a, const struct access_axes *axes)
{
    struct survey *s = ctx;
    uint32_t moves = 0;
    for (uint32_t i = 0; i < a->n; i++)
        moves |= access_mask(&a->sub[i]);
    const uint32_t bits = dtype_bits(a->sym->type);
    const uint32_t all = (1u << axes->nout) - 1;
    if ((moves & all) == all) { /* what is read again and again comes from a cache */
        s->most = bits > s->most ? bits : s->most;
        s->in_bits += bits;
    } else if (moves & all && !(moves & 1) && is_large(a->sym)) {
        const uint32_t leading = (uint32_t)__builtin_ctz(moves & all);
        s->apart = leading > s->apart ? leading : s->apart;
    }
    return true;
}

bool map_survey(struct cg *g, const struct lower_stage *s, const struct map_windows *windows,
                struct map_survey *w, struct buf *why)
{
    struct survey v = {.g = g, .why = why, .windows = windows, .most = 4};
    *w = (struct map_survey){.shape = s->eq[0]->sym, .least = 1};
    if (s->n > MAP_OUTPUTS)
        return false;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct lang_symbol *t = s->eq[i]->sym;
        double cost = 0;
        v.eq = s->eq[i];
        if (t->rank == 0)
            return lower_lacks(v.why, v.eq->span, "'%s' is one element", t->name);
        if (!inspect_same_shape(t, w->shape))
            return lower_lacks(v.why, v.eq->span, "'%s' has another shape than the first output",
                               t->name);
        if (!survey_expr(&v, v.eq->rhs, &cost))
            return false;
        if (!access_walk(g, v.eq, note_read, &v))
            return lower_lacks(v.why, v.eq->span, "'%s' takes too many operations", t->name);
        const uint32_t bits = dtype_bits(t->type);
        v.most = bits > v.most ? bits : v.most;
        w->least = bits < 8 ? 2 : w->least;
        w->cost += cost;
    }
    w->bits = v.most;
    w->apart = v.apart;
    w->vector = 128 / v.most;
    while (w->vector > w->least && w->vector * v.most > 32 && w->vector * w->cost > MOST_VECTOR)
        w->vector /= 2;
    const uint32_t in = v.in_bits * w->vector;
    w->unroll = in >= 128 || !in || w->cost > 200 ? 1 : in >= 64 ? 2 : 4;
    return true;
}
