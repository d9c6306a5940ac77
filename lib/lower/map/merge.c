/* Neighbouring axes that nothing tells apart become one: of y[n, c, h, w] = x[n, h, w, c], h and w,
 * since every buffer that has them has them side by side. Fewer axes are fewer divisions, longer
 * rows, and whole tiles.
 *
 * The buffers get symbols with fewer dimensions that stand for the same memory (a cg_home), the
 * equations are copied.
 */
#include <config.h>

#include "lower/map/map.h"

struct merge {
    struct cg *g;
    struct lang_symbol *const *pair; /* of the equation that is looked at: they become one */
    const struct lang_expr *extent;  /* of the second */
    struct lang_symbol *index;       /* of the copy, for both */
    bool folds; /* where something tells them apart it reads a quotient and a rest of both */
    VEC(struct cg_home)
    alias; /* sym: the symbol with fewer dimensions; temp: the one that it was made of */
};

/* Are subscripts i and i + 1 of the read the two axes? */
static bool is_pair(const struct merge *m, const struct lang_expr *e, uint32_t i)
{
    return i + 1 < e->nargs && inspect_is_index(e->args[i], m->pair[0]) &&
           inspect_is_index(e->args[i + 1], m->pair[1]) &&
           inspect_same_expr(e->sym->dims[i + 1], m->extent);
}

static bool may_merge(const struct merge *m, const struct lang_expr *e)
{
    e = cg_view(m->g, e);
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR ||
                                                                     e->sym->kind == SYM_BUFFER));
    if (tensor && cg_is_defined(m->g, e->sym))
        return false;
    if (e->kind == E_NAME)
        return e->sym != m->pair[0] && e->sym != m->pair[1];
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->kind == E_INDEX && !e->pad && is_pair(m, e, i))
            i++;
        else if (!may_merge(m, e->args[i]))
            return false;
    for (uint32_t i = 0; i < e->nindex; i++)
        if ((e->index[i]->low && inspect_mentions(e->index[i]->low, 2, m->pair)) ||
            inspect_mentions(e->index[i]->dims[0], 2, m->pair))
            return false;
    return !e->pad || may_merge(m, e->pad);
}

/* Widens x to a subscript's type: a literal dimension is an i32 by itself. */
static struct lang_expr *widened(struct cg *g, struct lang_expr *x)
{
    if (x->type == DT_I64)
        return x;
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_CAST, .type = DT_I64, .span = x->span, .is_implicit = true};
    e->nargs = 1;
    e->args = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    e->args[0] = x;
    e->height = 1 + x->height;
    return e;
}

static struct lang_expr *product(struct cg *g, struct lang_expr *x, struct lang_expr *y)
{
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    int64_t i, j, v;
    *e = (struct lang_expr){.kind = E_BINARY, .op = OP_MUL, .type = DT_I64, .span = x->span};
    if (lang_const_int(x, &i) && lang_const_int(y, &j) && !__builtin_mul_overflow(i, j, &v)) {
        e->kind = E_INT;
        e->ival = (uint64_t)v;
        e->height = 1;
        return e;
    }
    e->nargs = 2;
    e->args = ARENA_ARRAY(g->a, 2, struct lang_expr *);
    e->args[0] = widened(g, x);
    e->args[1] = widened(g, y);
    e->height = 2 + (x->height > y->height ? x->height : y->height);
    return e;
}

/* The symbol of the same memory with dimensions i and i + 1 as one. */
static struct lang_symbol *merged(struct merge *m, struct lang_symbol *t, uint32_t i)
{
    struct cg *g = m->g;
    for (size_t k = 0; k < m->alias.n; k++)
        if (m->alias.v[k].temp == t && m->alias.v[k].sym->rank + 1 == t->rank &&
            (i == 0 || m->alias.v[k].sym->dims[i - 1] == t->dims[i - 1]) &&
            m->alias.v[k].sym->dims[i] != t->dims[i])
            return (struct lang_symbol *)m->alias.v[k].sym;
    struct lang_symbol *s = ARENA_NEW(g->a, struct lang_symbol);
    *s = *t;
    s->rank--;
    s->dims = ARENA_ARRAY(g->a, s->rank, struct lang_expr *);
    for (uint32_t k = 0; k < s->rank; k++)
        s->dims[k] = k < i ? t->dims[k] : t->dims[k + 1];
    s->dims[i] = product(g, t->dims[i], t->dims[i + 1]);
    *VEC_PUSH(g->a, &m->alias) = (struct cg_home){.sym = s, .temp = t};
    const struct cg_home *home = cg_home_of(g, t);
    const struct cg_home alias = {.sym = s, .temp = home ? home->temp : t, .is_stored = true};
    *VEC_PUSH(g->a, &g->homes) = alias;
    return s;
}

/* The index that stands for both; its extent is set where that is known. Where quotients of it are
 * read, its name is one without a comma. */
static struct lang_symbol *both(struct merge *m)
{
    struct cg *g = m->g;
    struct lang_symbol *s = ARENA_NEW(g->a, struct lang_symbol);
    *s = *m->pair[0];
    s->name =
        arena_printf(g->a, "%s%c%s", m->pair[0]->name, m->folds ? '.' : ',', m->pair[1]->name);
    s->dims = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    return s;
}

/* Makes a sum over both indices one over the merged index. */
static void replace_indices(struct merge *m, struct lang_expr *e, const struct lang_expr *from)
{
    e->index = ARENA_ARRAY(m->g->a, e->nindex, struct lang_symbol *);
    e->nindex = 0;
    for (uint32_t i = 0; i < from->nindex; i++) {
        const bool first = from->index[i] == m->pair[0];
        e->index[e->nindex++] = first ? m->index : from->index[i];
        i += first;
    }
}

/* One of the pair, made of the index that stands for both. */
static struct lang_expr *part(struct merge *m, bool second, struct span at)
{
    struct cg *g = m->g;
    struct lang_expr *e = inspect_index_name(g, m->index, at), *whole = e;
    int64_t n;
    if (lang_const_int(m->extent, &n) && n == 1) {
        if (second)
            *e = (struct lang_expr){.kind = E_INT, .type = DT_I64, .span = at, .height = 1};
        return e;
    }
    e = ARENA_NEW(g->a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_BINARY,
                            .op = second ? OP_MOD : OP_DIV,
                            .type = DT_I64,
                            .span = at,
                            .nargs = 2,
                            .args = ARENA_ARRAY(g->a, 2, struct lang_expr *)};
    e->args[0] = whole;
    e->args[1] = widened(g, (struct lang_expr *)m->extent);
    e->height = 1 + e->args[1]->height;
    return e;
}

/* Is e, where axes are folded, one of the pair by itself? */
static bool is_folded(const struct merge *m, const struct lang_expr *e)
{
    return m->folds && e->kind == E_NAME && (e->sym == m->pair[0] || e->sym == m->pair[1]);
}

static struct lang_expr *copy(struct merge *m, const struct lang_expr *from)
{
    struct cg *g = m->g;
    from = cg_view(g, from);
    if (is_folded(m, from))
        return part(m, from->sym == m->pair[1], from->span);
    struct lang_expr *e = ARENA_NEW(g->a, struct lang_expr);
    *e = *from;
    e->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    e->nargs = 0;
    if (e->kind == E_REDUCE)
        replace_indices(m, e, from);
    for (uint32_t i = 0; i < from->nargs; i++) {
        struct lang_expr *arg = copy(m, from->args[i]);
        if (from->kind == E_INDEX && !from->pad && is_pair(m, from, i)) {
            e->sym = merged(m, e->sym, e->nargs);
            arg = inspect_index_name(g, m->index, from->args[i]->span);
            i++;
        }
        e->height = arg->height >= e->height ? arg->height + 1 : e->height;
        e->args[e->nargs++] = arg;
    }
    if (e->pad)
        e->pad = copy(m, e->pad);
    return e;
}

static const struct lang_equation *merged_equation(struct merge *m, const struct lang_equation *eq,
                                                   uint32_t axis)
{
    struct cg *g = m->g;
    struct lang_equation *q = ARENA_NEW(g->a, struct lang_equation);
    m->pair = eq->index + axis;
    m->index = both(m);
    *q = *eq;
    q->sym = merged(m, eq->sym, axis);
    m->index->dims[0] = q->sym->dims[axis];
    q->nindex--;
    q->index = ARENA_ARRAY(g->a, q->nindex, struct lang_symbol *);
    for (uint32_t i = 0; i < q->nindex; i++)
        q->index[i] = eq->index[i + (i > axis)];
    q->index[axis] = m->index;
    q->rhs = copy(m, eq->rhs);
    return q;
}

/* Does the range of no sum depend on one of the pair? */
static bool may_fold(const struct merge *m, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nindex; i++)
        if ((e->index[i]->low && inspect_mentions(e->index[i]->low, 2, m->pair)) ||
            inspect_mentions(e->index[i]->dims[0], 2, m->pair))
            return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!may_fold(m, e->args[i]))
            return false;
    return (!e->pad || may_fold(m, e->pad)) && e->height < LANG_MAX_HEIGHT / 2;
}

static bool fits(struct merge *m, const struct lower_stage *s, uint32_t axis)
{
    for (uint32_t i = 0; i < s->n; i++) {
        m->pair = s->eq[i]->index + axis;
        if (s->eq[i]->sym->mode == MODE_INOUT ||
            !(m->folds ? may_fold(m, s->eq[i]->rhs) : may_merge(m, s->eq[i]->rhs)))
            return false;
    }
    return true;
}

/* The stage with axes `axis` and the next as one. */
static void merge_axes(struct merge *m, struct lower_stage *s, uint32_t axis)
{
    const struct lang_equation **eq = ARENA_ARRAY(m->g->a, s->n, const struct lang_equation *);
    for (uint32_t i = 0; i < s->n; i++)
        eq[i] = merged_equation(m, s->eq[i], axis);
    s->eq = eq;
}

struct lower_stage map_merge(struct cg *g, const struct lower_stage *stage, bool tell)
{
    struct lower_stage s = *stage;
    for (uint32_t axis = s.eq[0]->sym->rank; axis-- > 0;) {
        const struct lang_symbol *shape = s.eq[0]->sym;
        struct merge m = {.g = g};
        if (axis + 1 >= shape->rank)
            continue;
        m.extent = shape->dims[axis + 1];
        if (!fits(&m, &s, axis))
            continue;
        if (tell)
            lower_explain(g, "  %s and %s are one axis\n", s.eq[0]->index[axis]->name,
                          s.eq[0]->index[axis + 1]->name);
        merge_axes(&m, &s, axis);
    }
    return s;
}

bool map_fold(struct cg *g, struct lower_stage *s, uint32_t axis)
{
    const struct lang_symbol *shape = s->eq[0]->sym;
    struct merge m = {.g = g, .folds = true};
    if (axis + 1 >= shape->rank)
        return false;
    m.extent = shape->dims[axis + 1];
    if (!fits(&m, s, axis))
        return false;
    merge_axes(&m, s, axis);
    return true;
}

/* The index of the stage's sums that stands for both, without a look at whether it may. */
static struct lang_symbol *merge_sums(struct merge *m, struct lower_stage *s)
{
    struct cg *g = m->g;
    m->index = both(m);
    m->index->dims[0] = product(g, m->pair[0]->dims[0], m->pair[1]->dims[0]);
    const struct lang_equation **eq = ARENA_ARRAY(g->a, s->n, const struct lang_equation *);
    for (uint32_t i = 0; i < s->n; i++) {
        struct lang_equation *q = ARENA_NEW(g->a, struct lang_equation);
        *q = *s->eq[i];
        q->rhs = copy(m, s->eq[i]->rhs);
        eq[i] = q;
    }
    s->eq = eq;
    return m->index;
}

struct lang_symbol *map_fold_sums(struct cg *g, struct lower_stage *s,
                                  struct lang_symbol *const *pair)
{
    struct merge m = {.g = g, .pair = pair, .extent = pair[1]->dims[0], .folds = true};
    if (pair[0]->low || pair[1]->low)
        return NULL;
    for (uint32_t i = 0; i < s->n; i++)
        if (!may_fold(&m, s->eq[i]->rhs))
            return NULL;
    return merge_sums(&m, s);
}

struct lang_symbol *map_merge_sums(struct cg *g, struct lower_stage *s,
                                   struct lang_symbol *const *pair)
{
    struct merge m = {.g = g, .pair = pair, .extent = pair[1]->dims[0]};
    if (pair[0]->low || pair[1]->low)
        return NULL;
    for (uint32_t i = 0; i < s->n; i++)
        if (!may_merge(&m, s->eq[i]->rhs))
            return NULL;
    return merge_sums(&m, s);
}
