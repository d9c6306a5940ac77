#include <config.h>

#include "lower/prefix.h"

#include <math.h>

enum { MOST_STEPS = 100000 };

struct widen {
    struct cg *g;
    VEC(const struct lang_equation *) seen;
    unsigned steps;
};

/* ---- one reduction --------------------------------------------------------------------------- */

/* The dimension that the index by itself subscripts in e, where no condition decides whether it is
 * read (guarded), so that no range goes over its end. *good: it is the same one everywhere. */
static void find_dimension(const struct lang_expr *e, const struct lang_symbol *index, bool guarded,
                           struct lang_expr **dim, bool *good)
{
    const bool guards = lang_guards(e);
    *good = *good && e->kind != E_REDUCE;
    for (uint32_t i = 0; i < e->nargs && *good; i++) {
        const struct lang_expr *s = inspect_strip(e->args[i]);
        if (e->kind == E_INDEX && !e->pad && !guarded && s->kind == E_NAME && s->sym == index) {
            struct lang_expr *d = e->sym->dims[i];
            *good = !*dim || inspect_same_expr(*dim, d);
            *dim = d;
        } else {
            find_dimension(e->args[i], index, guarded || (guards && i), dim, good);
        }
    }
    if (e->pad && *good)
        find_dimension(e->pad, index, true, dim, good);
}

static struct lang_expr *node(struct cg *g, struct lang_expr from, uint32_t nargs)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = from;
    e->nargs = nargs;
    e->height = 1;
    e->args = ARENA_ARRAY(g->a, nargs, struct lang_expr *);
    return e;
}

static void add(struct lang_expr *e, uint32_t i, struct lang_expr *arg)
{
    e->args[i] = arg;
    if (arg->height >= e->height)
        e->height = arg->height + 1;
}

/* e with another index for this one. */
static struct lang_expr *copy(struct cg *g, const struct lang_expr *e,
                              const struct lang_symbol *from, struct lang_symbol *to)
{
    struct lang_expr *c = node(g, *e, e->nargs);
    if (e->kind == E_NAME && e->sym == from)
        c->sym = to;
    for (uint32_t i = 0; i < e->nargs; i++)
        add(c, i, copy(g, e->args[i], from, to));
    if (e->pad)
        c->pad = copy(g, e->pad, from, to);
    return c;
}

/* What changes nothing that it is reduced with. */
static double identity(enum lang_reduce how)
{
    return how == RED_MAX ? -INFINITY : how == RED_MIN ? INFINITY : how == RED_PROD ? 1 : 0;
}

static bool is_wanted(const struct lang_expr *e)
{
    const struct lang_symbol *k = e->index[0];
    int64_t low;
    return e->nindex == 1 && (e->type == DT_F32 || e->type == DT_F64) &&
           e->args[0]->type == e->type &&
           (e->reduce == RED_SUM || e->reduce == RED_PROD || e->reduce == RED_MAX ||
            e->reduce == RED_MIN) &&
           (!k->low || (lang_const_int(k->low, &low) && low == 0)) && k->dims[0]->type == DT_I64 &&
           !inspect_at_launch(k->dims[0]);
}

static void widen(struct widen *w, const struct lang_expr *e)
{
    struct cg *g = w->g;
    struct lang_symbol *from = e->index[0];
    struct lang_expr *dim = NULL;
    bool good = is_wanted(e);
    if (good)
        find_dimension(e->args[0], from, false, &dim, &good);
    if (!good || !dim || !inspect_at_launch(dim) || e->args[0]->height + 3 > LANG_MAX_HEIGHT)
        return;
    struct lang_symbol *to = ARENA_NEW(g->a, struct lang_symbol);
    *to = *from;
    to->low = NULL;
    to->dims = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    to->dims[0] = dim;
    const struct span at = e->span;
    struct lang_expr *name = node(
        g,
        (struct lang_expr){.kind = E_NAME, .type = DT_I64, .span = at, .name = to->name, .sym = to},
        0);
    struct lang_expr *inside =
        node(g, (struct lang_expr){.kind = E_BINARY, .op = OP_LT, .type = DT_BOOL, .span = at}, 2);
    add(inside, 0, name);
    add(inside, 1, from->dims[0]);
    struct lang_expr *none =
        node(g,
             (struct lang_expr){
                 .kind = E_FLOAT, .type = e->type, .span = at, .fval = identity(e->reduce)},
             0);
    struct lang_expr *term =
        node(g, (struct lang_expr){.kind = E_COND, .type = e->type, .span = at}, 3);
    add(term, 0, inside);
    add(term, 1, copy(g, e->args[0], from, to));
    add(term, 2, none);
    struct lang_expr *all = node(g, *e, 1);
    all->index = ARENA_ARRAY(g->a, 1, struct lang_symbol *);
    all->index[0] = to;
    add(all, 0, term);
    *VEC_PUSH(g->a, &g->outlined) = (struct cg_outlined){.reduce = e, .read = all};
}

/* ---- all ------------------------------------------------------------------------------------- */

static void walk(struct widen *w, const struct lang_expr *e)
{
    if (++w->steps > MOST_STEPS)
        return;
    e = cg_view(w->g, e);
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR ||
                                                                     e->sym->kind == SYM_BUFFER));
    if (tensor && cg_is_defined(w->g, e->sym)) {
        bool known = false;
        for (size_t i = 0; i < w->seen.n; i++)
            known |= w->seen.v[i] == e->sym->def;
        if (!known) {
            *VEC_PUSH(w->g->a, &w->seen) = e->sym->def;
            walk(w, e->sym->def->rhs);
        }
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        walk(w, e->args[i]);
    if (e->pad)
        walk(w, e->pad);
    if (e->kind == E_REDUCE)
        widen(w, e);
}

bool prefix_widen(struct cg *g, const struct lower_stage *s)
{
    struct widen w = {.g = g};
    const size_t mark = g->outlined.n;
    for (uint32_t i = 0; i < s->n; i++)
        walk(&w, s->eq[i]->rhs);
    g->reducing->v.n = 0;
    return g->outlined.n > mark;
}

void prefix_undo(struct cg *g, size_t mark)
{
    g->outlined.n = mark;
    g->reducing->v.n = 0;
}
