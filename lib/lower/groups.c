#include <config.h>

#include "lower/groups.h"

#include "lang/launch.h"
#include "lower/variant.h"

enum { MOST_DEPTH = 16, MOST_NODES = 1 << 16 };

/* An index of an intermediate that is copied to where it is read. */
struct bound {
    const struct lang_symbol *index;
    struct lang_expr *to;
    bool is_axis; /* to is the axis that is split */
    const struct bound *next;
};

struct splitter {
    struct cg *g;
    struct lang_symbol *axis;       /* of the equation at hand */
    uint32_t at;                    /* its number */
    struct lang_expr *by;           /* it is divided by this: f */
    struct lang_symbol *group, *in; /* e < g and q < f */
    VEC(struct cg_home) alias; /* sym: the symbol with more dimensions; temp: what it is made of */
    unsigned depth, nodes;
    bool fails;
};

/* ---- what fits ------------------------------------------------------------------------------- */

/* What is left of the dimension when it is divided; NULL: it leaves a rest, or may. */
static struct lang_expr *quotient(struct arena *a, const struct lang_expr *dim,
                                  const struct lang_expr *by)
{
    int64_t n, f;
    dim = inspect_strip(dim);
    if (lang_const_int(dim, &n) && lang_const_int(by, &f))
        return f > 0 && n > 0 && n % f == 0 ? lx_int(a, n / f) : NULL;
    if (inspect_same_expr(dim, by))
        return lx_int(a, 1);
    for (uint32_t i = 0; dim->kind == E_BINARY && dim->op == OP_MUL && i < 2; i++) {
        struct lang_expr *q = quotient(a, dim->args[i], by);
        if (q)
            return lx_mul(a, q, lx_operand(a, dim->args[1 - i]));
    }
    return NULL;
}

static const struct lang_equation *definition(const struct cg *g, const struct lang_expr *e)
{
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && e->sym->kind == SYM_TENSOR);
    return tensor && cg_is_defined(g, e->sym) ? e->sym->def : NULL;
}

static bool is_part(const struct lang_expr *e, const struct lang_symbol *axis)
{
    e = inspect_strip(e);
    return e->kind == E_BINARY && e->op == OP_DIV && inspect_is_index(e->args[0], axis) &&
           inspect_at_launch(e->args[1]);
}

/* A subscript g * c + d, where d has just c values. */
struct channel {
    struct lang_expr *group, *count, *index;
};

static bool find_channel(const struct lang_expr *e, struct channel *to)
{
    e = inspect_strip(e);
    for (uint32_t i = 0; e->kind == E_BINARY && e->op == OP_ADD && i < 2; i++) {
        const struct lang_expr *times = inspect_strip(e->args[i]);
        const struct lang_expr *d = inspect_strip(e->args[1 - i]);
        const bool is_index = d->kind == E_NAME && d->sym->kind == SYM_INDEX && !d->sym->low;
        if (!is_index || times->kind != E_BINARY || times->op != OP_MUL)
            continue;
        for (uint32_t k = 0; k < 2; k++)
            if (inspect_same_expr(inspect_strip(times->args[1 - k]),
                                  inspect_strip(d->sym->dims[0]))) {
                *to = (struct channel){times->args[k], d->sym->dims[0], e->args[1 - i]};
                return true;
            }
    }
    return false;
}

/* What the axis is divided by, where a sum's terms read a group's channels; NULL: nowhere. */
static struct lang_expr *divisor(struct splitter *s, const struct lang_expr *e,
                                 const struct lang_symbol *axis, bool sum)
{
    struct lang_expr *by = NULL;
    struct channel c;
    e = cg_view(s->g, e);
    const struct lang_equation *def = definition(s->g, e);
    for (uint32_t i = 0; i < e->nargs && !by; i++) {
        if (sum && e->kind == E_INDEX && find_channel(e->args[i], &c) && is_part(c.group, axis))
            return inspect_strip(c.group)->args[1];
        by = divisor(s, e->args[i], axis, sum || e->kind == E_REDUCE);
        if (!by && def && !e->pad && inspect_is_index(e->args[i], axis) && s->depth < MOST_DEPTH) {
            s->depth++;
            by = divisor(s, def->rhs, def->index[i], sum);
            s->depth--;
        }
    }
    return by;
}

static bool reads(const struct lang_expr *e, const struct lang_symbol *t)
{
    if ((e->kind == E_INDEX || e->kind == E_NAME) && e->sym == t)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (reads(e->args[i], t))
            return true;
    return e->pad && reads(e->pad, t);
}

static bool is_read(const struct cg *g, const struct lang_symbol *t)
{
    for (size_t i = 0; i < g->spec->compute.n; i++)
        if (reads(g->spec->compute.v[i]->rhs, t))
            return true;
    return false;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* The symbol of the same memory whose dimension i is two: `first` and `by`. */
static struct lang_symbol *split(struct splitter *s, struct lang_symbol *t, uint32_t i,
                                 struct lang_expr *first, struct lang_expr *by)
{
    struct cg *g = s->g;
    for (size_t k = 0; k < s->alias.n; k++) {
        const struct lang_symbol *old = s->alias.v[k].sym;
        if (s->alias.v[k].temp == t && inspect_same_expr(old->dims[i + 1], by) &&
            (i == 0 || old->dims[i - 1] == t->dims[i - 1]) && old->dims[i] != t->dims[i])
            return (struct lang_symbol *)old;
    }
    struct lang_symbol *v = ARENA_NEW(g->a, struct lang_symbol);
    *v = *t;
    v->rank++;
    v->dims = ARENA_ARRAY(g->a, v->rank, struct lang_expr *);
    for (uint32_t k = 0; k < v->rank; k++)
        v->dims[k] = k < i ? t->dims[k] : k == i ? first : k == i + 1 ? by : t->dims[k - 1];
    *VEC_PUSH(g->a, &s->alias) = (struct cg_home){.sym = v, .temp = t};
    const struct cg_home *home = cg_home_of(g, t);
    *VEC_PUSH(g->a, &g->homes) =
        (struct cg_home){.sym = v, .temp = home ? home->temp : t, .is_stored = true};
    return v;
}

static struct lang_expr *binary(struct cg *g, enum lang_op op, struct lang_expr *x,
                                struct lang_expr *y)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_BINARY,
                            .op = op,
                            .type = DT_I64,
                            .span = x->span,
                            .nargs = 2,
                            .args = ARENA_ARRAY(g->a, 2, struct lang_expr *)};
    e->args[0] = x;
    e->args[1] = y;
    e->height = 1 + (x->height > y->height ? x->height : y->height);
    return e;
}

static struct lang_expr *name_of(struct splitter *s, struct lang_symbol *index, struct span at)
{
    return inspect_index_name(s->g, index, at);
}

/* ---- equations ------------------------------------------------------------------------------- */

static struct lang_expr *copy(struct splitter *s, const struct lang_expr *from,
                              const struct bound *b);

static void add(struct lang_expr *e, struct lang_expr *arg)
{
    e->args[e->nargs++] = arg;
    e->height = arg->height >= e->height ? arg->height + 1 : e->height;
}

static bool is_axis_of(const struct splitter *s, const struct lang_expr *e, const struct bound *b)
{
    e = inspect_strip(e);
    if (e->kind != E_NAME)
        return false;
    for (; b; b = b->next)
        if (b->index == e->sym)
            return b->is_axis;
    return e->sym == s->axis;
}

/* Does the range of a sum depend on an index? */
static bool ranges_vary(const struct lang_expr *e)
{
    for (uint32_t i = 0; e->kind == E_REDUCE && i < e->nindex; i++)
        if (e->index[i]->low || !inspect_at_launch(e->index[i]->dims[0]))
            return true;
    return false;
}

/* Subscripts of memory: an axis that is one by itself, or a group's channel, is two. */
static void copy_subscripts(struct splitter *s, struct lang_expr *e, const struct lang_expr *from,
                            const struct bound *b)
{
    struct arena *a = s->g->a;
    e->args = ARENA_ARRAY(a, 2 * from->nargs + 1, struct lang_expr *);
    e->nargs = 0;
    for (uint32_t i = 0; i < from->nargs; i++) {
        struct lang_expr *arg = copy(s, from->args[i], b);
        struct channel c;
        const struct lang_expr *dim = e->sym->dims[e->nargs];
        const bool has_room = from->nargs - i + e->nargs < VARIANT_RANK;
        struct lang_expr *whole = quotient(a, dim, s->by);
        const bool is_axis = is_axis_of(s, from->args[i], b);
        if (is_axis && has_room && whole && inspect_same_expr(whole, s->group->dims[0])) {
            e->sym = split(s, e->sym, e->nargs, whole, s->by);
            add(e, name_of(s, s->group, from->span));
            add(e, name_of(s, s->in, from->span));
        } else if (has_room && find_channel(arg, &c) && inspect_is_index(c.group, s->group) &&
                   (whole = quotient(a, dim, inspect_strip(c.count)))) {
            e->sym = split(s, e->sym, e->nargs, whole, c.count);
            add(e, c.group);
            add(e, c.index);
        } else {
            add(e, arg);
        }
    }
}

/* The index, or what stands for it. */
static struct lang_expr *copy_name(struct splitter *s, const struct lang_expr *from,
                                   const struct bound *b)
{
    for (; b; b = b->next)
        if (b->index == from->sym)
            return b->to;
    if (from->sym != s->axis)
        return NULL;
    struct lang_expr *times = binary(s->g, OP_MUL, name_of(s, s->group, from->span), s->by);
    return binary(s->g, OP_ADD, times, name_of(s, s->in, from->span));
}

static struct lang_expr *copy_definition(struct splitter *s, const struct lang_expr *from,
                                         const struct lang_equation *def, const struct bound *b)
{
    struct bound index[VARIANT_RANK];
    const struct bound *all = NULL;
    for (uint32_t i = 0; i < def->nindex; i++) {
        index[i] = (struct bound){def->index[i], copy(s, from->args[i], b),
                                  is_axis_of(s, from->args[i], b), all};
        all = &index[i];
    }
    return copy(s, def->rhs, all);
}

static struct lang_expr *copy(struct splitter *s, const struct lang_expr *from,
                              const struct bound *b)
{
    struct cg *g = s->g;
    from = cg_view(g, from);
    struct lang_expr *name = from->kind == E_NAME ? copy_name(s, from, b) : NULL;
    if (name)
        return name;
    const bool divides = from->kind == E_BINARY && (from->op == OP_DIV || from->op == OP_MOD);
    if (divides && is_axis_of(s, from->args[0], b) && inspect_same_expr(from->args[1], s->by))
        return name_of(s, from->op == OP_DIV ? s->group : s->in, from->span);
    const struct lang_equation *def = definition(g, from);
    if (def && from->kind == E_INDEX && !from->pad && def->nindex <= VARIANT_RANK)
        return copy_definition(s, from, def, b);
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = *from;
    e->height = 1;
    s->fails |= ++s->nodes > MOST_NODES || (def && from->kind == E_INDEX) || ranges_vary(from);
    if (s->fails)
        return e;
    if (from->kind == E_INDEX && !def) {
        copy_subscripts(s, e, from, b);
    } else {
        e->args = ARENA_ARRAY(g->a, from->nargs, struct lang_expr *);
        e->nargs = 0;
        for (uint32_t i = 0; i < from->nargs; i++)
            add(e, copy(s, from->args[i], b));
    }
    if (e->pad) {
        e->pad = copy(s, e->pad, b);
        e->height = e->pad->height >= e->height ? e->pad->height + 1 : e->height;
    }
    return e;
}

static struct lang_symbol *index_like(struct splitter *s, const char *name, struct lang_expr *dim)
{
    struct lang_symbol *index = ARENA_NEW(s->g->a, struct lang_symbol);
    *index = *s->axis;
    index->name = name;
    index->dims = ARENA_ARRAY(s->g->a, 1, struct lang_expr *);
    index->dims[0] = dim;
    return index;
}

static const struct lang_equation *split_equation(struct splitter *s,
                                                  const struct lang_equation *eq)
{
    struct cg *g = s->g;
    struct lang_equation *q = ARENA_NEW(g->a, struct lang_equation);
    struct lang_expr *groups = quotient(g->a, eq->sym->dims[s->at], s->by);
    s->axis = eq->index[s->at];
    s->group = index_like(s, arena_printf(g->a, "%s_group", s->axis->name), groups);
    s->in = index_like(s, s->axis->name, s->by);
    *q = *eq;
    q->sym = split(s, eq->sym, s->at, groups, s->by);
    q->nindex = eq->nindex + 1;
    q->index = ARENA_ARRAY(g->a, q->nindex, struct lang_symbol *);
    for (uint32_t i = 0; i < q->nindex; i++)
        q->index[i] = i == s->at ? s->group : i == s->at + 1 ? s->in : eq->index[i - (i > s->at)];
    q->rhs = copy(s, eq->rhs, NULL);
    return q;
}

void groups_split(struct cg *g, const struct lang_equation **eq, uint32_t n)
{
    struct splitter s = {.g = g};
    const struct lang_symbol *t = eq[0]->sym;
    for (uint32_t i = 0; i < n; i++)
        if (eq[i]->sym->mode != MODE_OUT || is_read(g, eq[i]->sym))
            return;
    for (s.at = 0; s.at < t->rank && t->rank < VARIANT_RANK; s.at++) {
        for (uint32_t i = 0; i < n && !s.by; i++)
            s.by = divisor(&s, eq[i]->rhs, eq[i]->index[s.at], false);
        if (s.by && quotient(g->a, t->dims[s.at], s.by))
            break;
        s.by = NULL;
    }
    const size_t homes = g->homes.n;
    const struct lang_equation **to = ARENA_ARRAY(g->a, n, const struct lang_equation *);
    for (uint32_t i = 0; i < n && s.by; i++)
        to[i] = split_equation(&s, eq[i]);
    if (s.by && !s.fails)
        memcpy(eq, to, n * sizeof *eq);
    else
        g->homes.n = homes;
}
