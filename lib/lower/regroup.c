#include <config.h>

#include "lower/regroup.h"

#include "lang/launch.h"
#include "spec/spec.h"

enum { MOST_RANK = 8, MOST_TIMES = 8 };

/* An axis of a buffer or an intermediate. */
struct place {
    const struct lang_symbol *sym;
    uint32_t axis;
};

/* An index that runs over such an axis, and the two that it becomes. */
struct member {
    const struct lang_symbol *index;
    struct lang_symbol *group, *within;
};

struct renamed {
    const struct lang_symbol *from;
    struct lang_symbol *to;
};

/* Axes that indices have in common, of which all are split or none. */
struct regroup {
    struct cg *g;
    struct lang_expr *whole, *run, *groups; /* extents: whole = groups * run */
    VEC(struct place) places;
    VEC(struct member) members;
    bool grew;    /* while these are collected */
    bool refused; /* something can't be said of two axes */
    bool reduced; /* a group is */
    VEC(struct renamed) renamed;
};

/* Calls f of all nodes, and of reductions before what they reduce. */
static void each(struct regroup *r, const struct lang_expr *e,
                 void (*f)(struct regroup *r, const struct lang_expr *e))
{
    f(r, e);
    for (uint32_t i = 0; i < e->nargs; i++)
        each(r, e->args[i], f);
    if (e->pad)
        each(r, e->pad, f);
}

static void each_equation(struct regroup *r,
                          void (*f)(struct regroup *r, const struct lang_expr *e))
{
    for (size_t i = 0; i < r->g->spec->compute.n; i++)
        each(r, r->g->spec->compute.v[i]->rhs, f);
}

/* ---- which axes ------------------------------------------------------------------------------ */

static bool is_place(const struct regroup *r, const struct lang_symbol *sym, uint32_t axis)
{
    for (size_t i = 0; i < r->places.n; i++)
        if (r->places.v[i].sym == sym && r->places.v[i].axis == axis)
            return true;
    return false;
}

static const struct member *member_of(const struct regroup *r, const struct lang_symbol *index)
{
    for (size_t i = 0; i < r->members.n; i++)
        if (r->members.v[i].index == index)
            return &r->members.v[i];
    return NULL;
}

/* The member that e is by itself; NULL: it is something else. */
static const struct member *as_member(const struct regroup *r, const struct lang_expr *e)
{
    e = inspect_strip(e);
    return e->kind == E_NAME ? member_of(r, e->sym) : NULL;
}

/* The axis and the index that is the subscript there are of the same kind. */
static void connect(struct regroup *r, const struct lang_symbol *sym, uint32_t axis,
                    const struct lang_symbol *index)
{
    const bool place = is_place(r, sym, axis), member = member_of(r, index) != NULL;
    if (place == member)
        return;
    r->grew = true;
    if (member)
        *VEC_PUSH(r->g->a, &r->places) = (struct place){sym, axis};
    else
        *VEC_PUSH(r->g->a, &r->members) = (struct member){.index = index};
}

static void connect_read(struct regroup *r, const struct lang_expr *e)
{
    for (uint32_t i = 0; e->kind == E_INDEX && i < e->nargs; i++) {
        const struct lang_expr *sub = inspect_strip(e->args[i]);
        if (sub->kind == E_NAME && sub->sym->kind == SYM_INDEX)
            connect(r, e->sym, i, sub->sym);
    }
}

static void collect(struct regroup *r)
{
    do {
        r->grew = false;
        for (size_t i = 0; i < r->g->spec->compute.n; i++) {
            const struct lang_equation *eq = r->g->spec->compute.v[i];
            for (uint32_t k = 0; k < eq->nindex; k++)
                connect(r, eq->sym, k, eq->index[k]);
            each(r, eq->rhs, connect_read);
        }
    } while (r->grew);
}

/* ---- into which ------------------------------------------------------------------------------ */

/* Does e say that x is a multiple of y? */
static bool says_multiple(const struct lang_expr *e, const struct lang_expr *x,
                          const struct lang_expr *y)
{
    int64_t n;
    if (e->kind != E_BINARY)
        return false;
    if (e->op == OP_LAND)
        return says_multiple(e->args[0], x, y) || says_multiple(e->args[1], x, y);
    const struct lang_expr *rest = inspect_strip(e->args[0]);
    return e->op == OP_EQ && lang_const_int(e->args[1], &n) && n == 0 && rest->kind == E_BINARY &&
           rest->op == OP_MOD && inspect_same_expr(rest->args[0], x) &&
           inspect_same_expr(rest->args[1], y);
}

static bool is_multiple(const struct regroup *r, const struct lang_expr *x,
                        const struct lang_expr *y)
{
    int64_t i, j;
    if (lang_const_int(x, &i) && lang_const_int(y, &j))
        return j > 0 && i % j == 0;
    for (size_t k = 0; k < r->g->spec->require.n; k++)
        if (says_multiple(r->g->spec->require.v[k], x, y))
            return true;
    return false;
}

/* e without the factor; NULL: it is none. */
static struct lang_expr *without(struct arena *a, struct lang_expr *e,
                                 const struct lang_expr *factor)
{
    if (inspect_same_expr(e, factor))
        return lx_int(a, 1);
    e = (struct lang_expr *)inspect_strip(e);
    for (uint32_t i = 0; e->kind == E_BINARY && e->op == OP_MUL && i < 2; i++) {
        struct lang_expr *rest = without(a, e->args[i], factor);
        if (rest)
            return lx_mul(a, rest, e->args[1 - i]);
    }
    return NULL;
}

/* How many runs the whole has; NULL: it is not known to be made of such. */
static struct lang_expr *groups_of(const struct regroup *r, struct lang_expr *whole,
                                   struct lang_expr *run)
{
    struct arena *a = r->g->a;
    int64_t i, j;
    if (lang_const_int(whole, &i) && lang_const_int(run, &j))
        return j > 0 && i % j == 0 ? lx_int(a, i / j) : NULL;
    struct lang_expr *rest = without(a, whole, run);
    if (rest)
        return rest;
    const struct lang_expr *quotient = inspect_strip(run);
    if (quotient->kind == E_BINARY && quotient->op == OP_DIV &&
        inspect_same_expr(quotient->args[0], whole) && is_multiple(r, whole, quotient->args[1]))
        return quotient->args[1];
    return is_multiple(r, whole, run) ? lx_div(a, whole, run) : NULL;
}

/* Is it an index from 0 to the length of a run? */
static bool runs_within(const struct regroup *r, const struct lang_expr *e)
{
    e = inspect_strip(e);
    return e->kind == E_NAME && e->sym->kind == SYM_INDEX && !e->sym->low &&
           inspect_same_expr(e->sym->dims[0], r->run);
}

/* a * run + c, where c is an index within a run: a and c. */
struct place_in_run {
    struct lang_expr *group, *within;
};

static bool find_in_run(const struct regroup *r, const struct lang_expr *e, struct place_in_run *p)
{
    e = inspect_strip(e);
    for (uint32_t i = 0; e->kind == E_BINARY && e->op == OP_ADD && i < 2; i++) {
        const struct lang_expr *times = inspect_strip(e->args[1 - i]);
        p->within = e->args[i];
        if (!runs_within(r, p->within) || times->kind != E_BINARY || times->op != OP_MUL)
            continue;
        for (uint32_t k = 0; k < 2; k++) {
            struct lang_symbol *const within = inspect_strip(p->within)->sym;
            p->group = times->args[1 - k];
            if (inspect_same_expr(times->args[k], r->run) &&
                !inspect_mentions(p->group, 1, &within))
                return true;
        }
    }
    return false;
}

/* ---- whether they may be --------------------------------------------------------------------- */

/* What is padded may be, too: a * run + c is out of the axis where a is out of its groups. */
static void check_node(struct regroup *r, const struct lang_expr *e)
{
    struct place_in_run p;
    for (uint32_t i = 0; e->kind == E_INDEX && i < e->nargs; i++)
        if (is_place(r, e->sym, i) && !as_member(r, e->args[i]))
            r->refused |= !find_in_run(r, e->args[i], &p);
    for (uint32_t i = 0; e->kind == E_REDUCE && i < e->nindex; i++) {
        const struct lang_symbol *k = e->index[i];
        r->refused |= member_of(r, k) && (e->nindex >= MOST_RANK || e->reduce == RED_ARGMAX ||
                                          e->reduce == RED_ARGMIN);
        for (size_t m = 0; m < r->members.n; m++) {
            struct lang_symbol *const index = (struct lang_symbol *)r->members.v[m].index;
            r->refused |= inspect_mentions(k->dims[0], 1, &index) ||
                          (k->low && inspect_mentions(k->low, 1, &index));
        }
    }
    r->refused |= e->height > LANG_MAX_HEIGHT / 2;
}

/* May all axes and indices that were collected be split? */
static bool may_split(struct regroup *r)
{
    for (size_t i = 0; i < r->places.n; i++) {
        const struct lang_symbol *sym = r->places.v[i].sym;
        if (sym->rank >= MOST_RANK || sym->mode == MODE_INOUT ||
            !inspect_same_expr(sym->dims[r->places.v[i].axis], r->whole))
            return false;
    }
    for (size_t i = 0; i < r->members.n; i++) {
        const struct lang_symbol *k = r->members.v[i].index;
        if (k->low || !inspect_same_expr(k->dims[0], r->whole))
            return false;
    }
    r->groups = groups_of(r, r->whole, r->run);
    if (r->groups)
        each_equation(r, check_node);
    return r->groups && !r->refused;
}

/* ---- whether that helps ---------------------------------------------------------------------- */

/* Does e hold the quotient of a member by the length of a run? */
static bool has_group(const struct regroup *r, const struct lang_expr *e)
{
    if (e->kind == E_BINARY && e->op == OP_DIV && as_member(r, e->args[0]) &&
        inspect_same_expr(e->args[1], r->run))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (has_group(r, e->args[i]))
            return true;
    return false;
}

static bool is_bound_by(const struct lang_expr *reduce, const struct lang_expr *index)
{
    for (uint32_t i = 0; i < reduce->nindex; i++)
        if (inspect_is_index(index, reduce->index[i]))
            return true;
    return false;
}

/* Does e, inside of the reduction, read what lies within one group of an axis, whose number is a
 * member's quotient or anything, or of another axis, whose number is a member's quotient? */
static bool reads_group(const struct regroup *r, const struct lang_expr *reduce,
                        const struct lang_expr *e)
{
    for (uint32_t i = 0; e->kind == E_INDEX && i < e->nargs; i++) {
        const struct lang_expr *sub = inspect_strip(e->args[i]);
        struct place_in_run p;
        if (is_place(r, e->sym, i) && find_in_run(r, sub, &p) && is_bound_by(reduce, p.within))
            return true;
        if (sub->kind == E_BINARY && sub->op == OP_ADD && has_group(r, sub) &&
            (is_bound_by(reduce, sub->args[0]) || is_bound_by(reduce, sub->args[1])))
            return true;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (reads_group(r, reduce, e->args[i]))
            return true;
    return e->pad && reads_group(r, reduce, e->pad);
}

static void look_for_reduced(struct regroup *r, const struct lang_expr *e)
{
    if (e->kind == E_REDUCE && !r->reduced)
        r->reduced = reads_group(r, e, e->args[0]);
}

/* ---- the copies ------------------------------------------------------------------------------ */

static struct lang_symbol *index_to(struct regroup *r, const struct lang_symbol *from,
                                    const char *name, struct lang_expr *to)
{
    struct lang_symbol *s = ARENA_NEW(r->g->a, struct lang_symbol);
    *s = *from;
    s->name = name;
    s->dims = ARENA_ARRAY(r->g->a, 1, struct lang_expr *);
    s->dims[0] = to;
    return s;
}

static void make_members(struct regroup *r)
{
    for (size_t i = 0; i < r->members.n; i++) {
        struct member *m = &r->members.v[i];
        m->group =
            index_to(r, m->index, arena_printf(r->g->a, "%s_group", m->index->name), r->groups);
        m->within = index_to(r, m->index, m->index->name, r->run);
    }
}

/* The symbol that stands for this one from now on: with more dimensions, or of an equation that is
 * copied. */
static struct lang_symbol *renamed(struct regroup *r, struct lang_symbol *t)
{
    struct cg *g = r->g;
    uint32_t n = 0;
    for (size_t i = 0; i < r->renamed.n; i++)
        if (r->renamed.v[i].from == t)
            return r->renamed.v[i].to;
    for (uint32_t i = 0; i < t->rank; i++)
        n += is_place(r, t, i);
    if ((n == 0 && !t->def) || t->mode == MODE_INOUT)
        return t;
    struct lang_symbol *s = ARENA_NEW(g->a, struct lang_symbol);
    *s = *t;
    s->rank = 0;
    s->dims = ARENA_ARRAY(g->a, t->rank + n, struct lang_expr *);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (is_place(r, t, i))
            s->dims[s->rank++] = r->groups;
        s->dims[s->rank++] = is_place(r, t, i) ? r->run : t->dims[i];
    }
    *VEC_PUSH(g->a, &r->renamed) = (struct renamed){t, s};
    const struct cg_home *home = cg_home_of(g, t);
    if (t->kind == SYM_BUFFER)
        *VEC_PUSH(g->a, &g->homes) = (struct cg_home){
            .sym = s, .temp = home ? home->temp : t, .is_stored = t->mode == MODE_IN};
    return s;
}

static struct lang_expr *copy(struct regroup *r, const struct lang_expr *e);

static struct lang_expr *named(struct regroup *r, struct lang_symbol *index,
                               const struct lang_expr *at)
{
    return inspect_index_name(r->g, index, at->span);
}

/* A member where it is no subscript: the number of the element. */
static struct lang_expr *number_of(struct regroup *r, const struct member *m,
                                   const struct lang_expr *at)
{
    struct arena *a = r->g->a;
    struct lang_expr *e =
        lx_add(a, lx_mul(a, named(r, m->group, at), r->run), named(r, m->within, at));
    e->span = at->span;
    return e;
}

static void copy_subscripts(struct regroup *r, const struct lang_expr *from, struct lang_expr *e)
{
    struct place_in_run p;
    e->args = ARENA_ARRAY(r->g->a, 2 * from->nargs, struct lang_expr *);
    e->nargs = 0;
    for (uint32_t i = 0; i < from->nargs; i++) {
        const struct member *m = as_member(r, from->args[i]);
        if (!is_place(r, from->sym, i)) {
            e->args[e->nargs++] = copy(r, from->args[i]);
        } else if (m) {
            e->args[e->nargs++] = named(r, m->group, from->args[i]);
            e->args[e->nargs++] = named(r, m->within, from->args[i]);
        } else {
            find_in_run(r, from->args[i], &p);
            e->args[e->nargs++] = copy(r, p.group);
            e->args[e->nargs++] = copy(r, p.within);
        }
    }
    e->sym = renamed(r, from->sym);
}

static struct lang_symbol **copy_indices(struct regroup *r, struct lang_symbol *const *from,
                                         uint32_t *n)
{
    struct lang_symbol **to = ARENA_ARRAY(r->g->a, 2 * *n, struct lang_symbol *);
    uint32_t k = 0;
    for (uint32_t i = 0; i < *n; i++) {
        const struct member *m = member_of(r, from[i]);
        if (m)
            to[k++] = m->group;
        to[k++] = m ? m->within : from[i];
    }
    *n = k;
    return to;
}

static struct lang_expr *copy(struct regroup *r, const struct lang_expr *from)
{
    struct cg *g = r->g;
    const struct member *m = from->kind == E_NAME ? member_of(r, from->sym) : NULL;
    if (m)
        return number_of(r, m, from);
    if (from->kind == E_BINARY && (from->op == OP_DIV || from->op == OP_MOD) &&
        as_member(r, from->args[0]) && inspect_same_expr(from->args[1], r->run)) {
        m = as_member(r, from->args[0]);
        return named(r, from->op == OP_DIV ? m->group : m->within, from);
    }
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = *from;
    if (e->kind == E_INDEX) {
        copy_subscripts(r, from, e);
    } else {
        e->args = ARENA_ARRAY(g->a, from->nargs, struct lang_expr *);
        for (uint32_t i = 0; i < from->nargs; i++)
            e->args[i] = copy(r, from->args[i]);
    }
    if (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR || e->sym->kind == SYM_BUFFER))
        e->sym = renamed(r, from->sym);
    if (e->kind == E_REDUCE)
        e->index = copy_indices(r, from->index, &e->nindex);
    if (e->pad)
        e->pad = copy(r, from->pad);
    e->height = 1;
    for (uint32_t i = 0; i < e->nargs; i++)
        e->height = e->args[i]->height >= e->height ? e->args[i]->height + 1 : e->height;
    return e;
}

/* All equations, of a spec that is as before but for them. */
static void rewrite(struct regroup *r)
{
    struct cg *g = r->g;
    struct spec *s = ARENA_NEW(g->a, struct spec);
    *s = *g->spec;
    s->compute.v = ARENA_ARRAY(g->a, s->compute.n, struct lang_equation *);
    make_members(r);
    for (size_t i = 0; i < s->compute.n; i++) {
        const struct lang_equation *from = g->spec->compute.v[i];
        struct lang_equation *eq = ARENA_NEW(g->a, struct lang_equation);
        *eq = *from;
        eq->sym = renamed(r, from->sym);
        if (eq->sym != from->sym)
            eq->sym->def = eq;
        eq->index = copy_indices(r, from->index, &eq->nindex);
        s->compute.v[i] = eq;
    }
    for (size_t i = 0; i < s->compute.n; i++)
        s->compute.v[i]->rhs = copy(r, g->spec->compute.v[i]->rhs);
    g->spec = s;
}

/* ---- where it begins ------------------------------------------------------------------------- */

/* A quotient of an index by the length of a run, or a * run + c, a subscript of a reduction. */
struct seed {
    struct lang_symbol *index; /* that is divided; NULL: */
    struct place place;
    struct lang_expr *run;
};

typedef VEC(struct seed) seed_list;

static void add_seed(struct cg *g, seed_list *seeds, struct seed s)
{
    for (size_t i = 0; i < seeds->n; i++)
        if (seeds->v[i].index == s.index && seeds->v[i].place.sym == s.place.sym &&
            seeds->v[i].place.axis == s.place.axis && inspect_same_expr(seeds->v[i].run, s.run))
            return;
    *VEC_PUSH(g->a, seeds) = s;
}

static void find_quotients(struct cg *g, const struct lang_expr *e, seed_list *seeds)
{
    const struct lang_expr *index = e->nargs ? inspect_strip(e->args[0]) : e;
    if (e->kind == E_BINARY && e->op == OP_DIV && index->kind == E_NAME &&
        index->sym->kind == SYM_INDEX && inspect_at_launch(e->args[1]))
        add_seed(g, seeds, (struct seed){.index = index->sym, .run = e->args[1]});
    for (uint32_t i = 0; i < e->nargs; i++)
        find_quotients(g, e->args[i], seeds);
    if (e->pad)
        find_quotients(g, e->pad, seeds);
}

/* Subscripts a * n + k, where k runs from 0 to n. */
static void find_runs(struct cg *g, const struct lang_expr *e, seed_list *seeds)
{
    for (uint32_t i = 0; e->kind == E_INDEX && i < e->nargs; i++) {
        const struct lang_expr *sub = inspect_strip(e->args[i]);
        for (uint32_t k = 0; sub->kind == E_BINARY && sub->op == OP_ADD && k < 2; k++) {
            const struct lang_expr *within = inspect_strip(sub->args[k]);
            if (within->kind == E_NAME && within->sym->kind == SYM_INDEX && !within->sym->low &&
                inspect_at_launch(within->sym->dims[0]))
                add_seed(g, seeds,
                         (struct seed){.place = {e->sym, i}, .run = within->sym->dims[0]});
        }
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        find_runs(g, e->args[i], seeds);
    if (e->pad)
        find_runs(g, e->pad, seeds);
}

/* An extent as a subscript's type: a literal is an i32 by itself. */
static struct lang_expr *widened(struct arena *a, struct lang_expr *e)
{
    int64_t n;
    return lang_const_int(e, &n) ? lx_int(a, n) : e;
}

/* always: without a quotient of an index. */
static bool split_from(struct cg *g, const struct seed *s, bool always)
{
    struct regroup r = {.g = g, .run = widened(g->a, s->run), .reduced = always};
    if (s->index) {
        r.whole = s->index->dims[0];
        *VEC_PUSH(g->a, &r.members) = (struct member){.index = s->index};
    } else {
        r.whole = s->place.sym->dims[s->place.axis];
        *VEC_PUSH(g->a, &r.places) = s->place;
    }
    collect(&r);
    if (r.places.n == 0 || !may_split(&r))
        return false;
    each_equation(&r, look_for_reduced);
    if (r.reduced)
        rewrite(&r);
    return r.reduced;
}

/* Splits the axes of the first seed that can be; false: there is none. */
static bool split_first(struct cg *g,
                        void (*find)(struct cg *g, const struct lang_expr *e, seed_list *seeds),
                        bool always)
{
    seed_list seeds = {0};
    for (size_t i = 0; i < g->spec->compute.n; i++)
        find(g, g->spec->compute.v[i]->rhs, &seeds);
    for (size_t i = 0; i < seeds.n; i++)
        if (split_from(g, &seeds.v[i], always))
            return true;
    return false;
}

void regroup_axes(struct cg *g)
{
    unsigned times = 0;
    while (times < MOST_TIMES && split_first(g, find_quotients, false))
        times++;
    for (unsigned i = 0; times && i < MOST_TIMES && split_first(g, find_runs, true); i++)
        ;
}
