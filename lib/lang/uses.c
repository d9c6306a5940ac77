/* How far an intermediate's index runs, by how the intermediate is read: each subscript there that
 * is an index by itself says it, and all that do must agree. Where none is, sums of multiples of
 * indices do: t[2 * i + p], where i runs to n and p to 2, needs the first 2 * n elements. */
#include <config.h>

#include "lang/equations_int.h"
#include "lang/launch.h"

/* Intermediates of which one is told by the reads of the next, and nodes that are looked at. */
enum { DEPTH_MOST = 8, NODES_MOST = 1 << 18 };

struct uses {
    struct checker *c;
    const struct equation_text *text;
    const char *name; /* the intermediate's */
    uint32_t rank, k; /* which of its subscripts */
    bool sums;        /* is it looked for in sums of indices? */
    unsigned depth;
    size_t *nodes;
    struct lang_expr *extent; /* what the first one says, and where */
    struct span at;
    struct lang_expr *other; /* what another one says that disagrees; NULL: all agree */
    struct span other_at;
};

/* The reductions around a read. */
struct around {
    const struct lang_expr *e;
    const struct around *next;
};

static bool by_uses(struct uses *u);

/* Is it made of numbers, dimensions and scalars? */
static bool is_known_at_launch(const struct lang_expr *e)
{
    if (e->kind == E_INDEX || e->kind == E_REDUCE ||
        (e->kind == E_NAME && e->sym->kind != SYM_DIM && e->sym->kind != SYM_SCALAR))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_known_at_launch(e->args[i]))
            return false;
    return true;
}

/* A written range, if it is from 0 to something that no index or tensor is part of. */
static struct lang_expr *written_extent(struct uses *u, const struct lang_symbol *index)
{
    struct checker c = *u->c;
    int64_t low;
    struct lang_expr *high = expr_clone(c.a, index->dims[0]);
    c.d = diags_new(c.a);
    if (index->low) {
        struct lang_expr *from = expr_clone(c.a, index->low);
        if (!check_expr(&c, from) || !lang_const_int(from, &low) || low != 0)
            return NULL;
    }
    return check_bound(&c, high) && is_known_at_launch(high) ? high : NULL;
}

static struct lang_expr *extent_on_left(struct uses *u, const struct lang_equation *eq, uint32_t p)
{
    const struct lang_symbol *index = eq->index[p];
    if (eq->sym->kind == SYM_BUFFER)
        return eq->sym->dims[p];
    if (index->written)
        return written_extent(u, index);
    struct lang_expr *found = index_extent(u->c, index->name, eq->rhs);
    if (found || u->depth == DEPTH_MOST)
        return found;
    struct uses next = {.c = u->c,
                        .text = u->text,
                        .name = eq->sym->name,
                        .rank = eq->nindex,
                        .k = p,
                        .depth = u->depth + 1,
                        .nodes = u->nodes};
    return by_uses(&next) && !next.other ? next.extent : NULL;
}

/* Where the index of that name runs in an equation, inside of those reductions; NULL: not known. */
static struct lang_expr *extent_of(struct uses *u, const struct lang_equation *eq,
                                   const struct around *around, const char *name)
{
    for (; around; around = around->next)
        for (uint32_t i = 0; i < around->e->nindex; i++) {
            const struct lang_symbol *index = around->e->index[i];
            if (strcmp(index->name, name) != 0)
                continue;
            struct lang_expr *extent = index->written
                                           ? written_extent(u, index)
                                           : index_extent(u->c, name, around->e->args[0]);
            if (extent || index->written || lang_binds(around->e))
                return extent;
        }
    for (uint32_t p = 0; p < eq->nindex; p++)
        if (strcmp(eq->index[p]->name, name) == 0)
            return extent_on_left(u, eq, p);
    return NULL;
}

static void hear(struct uses *u, struct lang_expr *extent, struct span at)
{
    if (!u->extent) {
        u->extent = extent;
        u->at = at;
    } else if (!u->other && !expr_same(u->extent, extent)) {
        u->other = extent;
        u->other_at = at;
    }
}

/* The largest value of a sum of indices, their multiples and numbers: many + c. */
struct largest {
    struct lang_expr *many; /* NULL: 0 */
    int64_t c;
    bool any; /* an index is part of it */
};

static bool largest_index(struct uses *u, const struct lang_equation *eq,
                          const struct around *around, const char *name, struct largest *v)
{
    struct lang_expr *extent = extent_of(u, eq, around, name);
    int64_t n;
    if (!extent)
        return false;
    *v = lang_const_int(extent, &n) && n <= INT32_MAX ? (struct largest){NULL, n - 1, true}
                                                      : (struct largest){extent, -1, true};
    return true;
}

/* False: e is something else. */
static bool largest_of(struct uses *u, const struct lang_equation *eq, const struct around *around,
                       const struct lang_expr *e, struct largest *v)
{
    struct arena *a = u->c->a;
    struct largest x, y;
    int64_t n;
    if (lang_const_int(e, &n)) {
        *v = (struct largest){NULL, n, false};
        return n >= 0 && n <= INT16_MAX;
    }
    if (e->kind == E_NAME)
        return largest_index(u, eq, around, e->name, v);
    if (e->kind != E_BINARY || (e->op != OP_ADD && e->op != OP_MUL) ||
        !largest_of(u, eq, around, e->args[0], &x) || !largest_of(u, eq, around, e->args[1], &y))
        return false;
    if (e->op == OP_ADD) {
        *v = (struct largest){x.many && y.many ? lx_add(a, x.many, y.many)
                              : x.many         ? x.many
                                               : y.many,
                              x.c + y.c, x.any || y.any};
        return true;
    }
    const struct largest *of = x.any ? &x : &y, *times = x.any ? &y : &x;
    if (times->any || times->c == 0)
        return false;
    *v = (struct largest){of->many ? lx_mul(a, lx_int(a, times->c), of->many) : NULL,
                          of->c * times->c, of->any};
    return v->c >= -INT32_MAX && v->c <= INT32_MAX;
}

/* How far the subscript says that it runs; NULL: nothing is said. */
static struct lang_expr *extent_of_sum(struct uses *u, const struct lang_equation *eq,
                                       const struct around *around, const struct lang_expr *e)
{
    struct largest v;
    if (!largest_of(u, eq, around, e, &v) || !v.any)
        return NULL;
    return v.many ? lx_add_int(u->c->a, v.many, v.c + 1) : lx_int(u->c->a, v.c + 1);
}

static void walk(struct uses *u, const struct lang_equation *eq, const struct around *around,
                 const struct lang_expr *e)
{
    const struct around inner = {e, around};
    if (++*u->nodes > NODES_MOST)
        return;
    if (e->kind == E_INDEX && e->nargs == u->rank && strcmp(e->name, u->name) == 0 &&
        (u->sums ? !e->pad : e->args[u->k]->kind == E_NAME)) {
        struct lang_expr *extent = u->sums ? extent_of_sum(u, eq, around, e->args[u->k])
                                           : extent_of(u, eq, around, e->args[u->k]->name);
        if (extent)
            hear(u, extent, e->args[u->k]->span);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        walk(u, eq, e->nindex ? &inner : around, e->args[i]);
    if (e->pad)
        walk(u, eq, around, e->pad);
}

static void look(struct uses *u)
{
    for (size_t i = 0; i < u->text->v.n; i++) {
        const struct lang_equation *eq = u->text->v.v[i].eq;
        if (eq->sym && strcmp(eq->sym->name, u->name) != 0)
            walk(u, eq, NULL, eq->rhs);
    }
}

/* False: no read says it. */
static bool by_uses(struct uses *u)
{
    look(u);
    u->sums = !u->extent;
    if (u->sums)
        look(u);
    return u->extent != NULL;
}

bool range_by_uses(struct checker *c, const struct equation_text *text,
                   const struct lang_equation *eq, uint32_t k)
{
    struct lang_symbol *index = eq->index[k];
    size_t nodes = 0;
    struct uses u = {
        .c = c, .text = text, .name = eq->sym->name, .rank = eq->nindex, .k = k, .nodes = &nodes};
    if (!by_uses(&u))
        return diag_error(c->d, index->span,
                          "nothing says how far '%s' runs; write its range, as in '%s < n'",
                          index->name, index->name);
    if (u.other) {
        diag_error(c->d, index->span,
                   "reads of '%s' disagree on how far '%s' runs; write its range, as in '%s < n'",
                   u.name, index->name, index->name);
        diag_note(c->d, u.at, "here it is %s", lang_expr_text(c->a, u.extent));
        diag_note(c->d, u.other_at, "here it is %s", lang_expr_text(c->a, u.other));
        return false;
    }
    index->dims = ARENA_NEW(c->a, struct lang_expr *);
    index->dims[0] = u.extent;
    return true;
}
