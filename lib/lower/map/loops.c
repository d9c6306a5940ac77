/* Reductions over windows that are not written out: one loop computes those of all lanes, so that
 * what neighbouring windows have in common is read once for several of them.
 *
 * The index of the innermost loop is a counter and a constant for each of a few rounds at a time.
 * Subscripts are then constants from one base (form.c) over lanes and rounds alike: row 1 in round
 * 0 reads what row 0 does in round 1.
 */
#include <config.h>

#include "lower/map/loops.h"

enum {
    ROUNDS = 3,       /* of the innermost loop at a time: windows often have 3 elements */
    MOST_ROUNDS = 16, /* that are no loop at all */
    MOST_TERMS = 256, /* of all lanes in these */
};

/* A reduction that has been computed, for these subscripts. */
struct done {
    const struct lang_expr *e;
    size_t nbound;
    struct map_bound *bound;
    struct cg_val *v; /* a lane's each */
};

struct map_loops {
    const struct map_windows *w;
    bool inside; /* of a loop that is generated */
    const struct lang_symbol *const *inner;
    uint32_t ninner; /* indices that are best innermost */
    VEC(struct done) done;
};

/* The loops of a reduction, the outermost first. */
struct nest {
    struct map_reader *m;
    struct map_loops *l;
    const struct lang_expr *e;
    const struct lang_symbol *order[MAP_INDICES];
    struct cg_accumulator *acc; /* a lane's each */
};

/* ---- what has been computed ------------------------------------------------------------------ */

static bool same_form(const struct map_reader *m, const struct map_form *x,
                      const struct map_form *y)
{
    if (!cg_same(x->base, y->base))
        return false;
    for (uint32_t i = 0; i < m->lanes; i++)
        if (x->k[i] != y->k[i])
            return false;
    return true;
}

static bool is_same(const struct map_reader *m, const struct done *d, const struct lang_expr *e)
{
    bool same = d->e == e && d->nbound == m->bound.n;
    for (size_t i = 0; i < m->bound.n && same; i++)
        same = d->bound[i].index == m->bound.v[i].index &&
               same_form(m, &d->bound[i].form, &m->bound.v[i].form);
    return same;
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Makes the indices around the reduction those of a lane. */
static void turn_to(struct cg *g, struct map_reader *m, uint32_t lane)
{
    m->lane = lane;
    for (size_t i = 0; i < m->bound.n; i++)
        cg_bind(g, m->bound.v[i].index, map_value(g, &m->bound.v[i].form, lane), false);
}

static void add_terms(struct cg *g, struct nest *n)
{
    const uint32_t lane = n->m->lane;
    const size_t bound = g->bindings.n;
    for (uint32_t i = 0; i < n->m->lanes; i++) {
        turn_to(g, n->m, i);
        cg_reduce_term(g, n->e, &n->acc[i]);
        g->bindings.n = bound;
    }
    n->m->lane = lane;
}

static void loop(struct cg *g, struct nest *n, uint32_t axis);

/* What is inside of the loop, the index being at + k. */
static void round_of(struct cg *g, struct nest *n, uint32_t axis, struct cg_val at, int64_t k)
{
    struct map_bound *b = VEC_PUSH(g->a, &n->m->bound);
    const size_t bound = g->bindings.n;
    int64_t c;
    *b = (struct map_bound){n->order[axis], {.known = true, .align = 1, .most = UINT64_MAX}};
    b->form.base = at;
    b->form.is_positive = at.narrow == CG_U32;
    if (cg_is_const(at, &c)) {
        b->form.is_zero = true;
        b->form.align = MAP_MOST_ALIGN;
        b->form.base = cg_int(DT_I64, 0);
        b->form.is_positive = k >= 0;
        b->form.most = k < 0 ? UINT64_MAX : (uint64_t)k;
    }
    for (uint32_t i = 0; i < MAP_LANES; i++)
        b->form.k[i] = k;
    cg_bind(g, n->order[axis], map_value(g, &b->form, 0), false);
    if (axis + 1 == n->e->nindex)
        add_terms(g, n);
    else
        loop(g, n, axis + 1);
    g->bindings.n = bound;
    n->m->bound.n--;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* From `from` to `end`, `step` rounds at a time. */
static void count(struct cg *g, struct nest *n, uint32_t axis, struct cg_val from,
                  struct cg_val end, uint32_t step)
{
    struct cg_for f;
    cg_for_open(g, &f, n->order[axis]->name, "done", from, &end);
    for (uint32_t k = 0; k < step; k++)
        round_of(g, n, axis, cg_index(g, cg_value(from.type, f.at)), k);
    cg_for_close(g, &f, cg_int(from.type, step), &end);
}

static struct cg_val limit(struct cg *g, const struct lang_expr *e)
{
    return e ? cg_index(g, cg_expr(g, e)) : cg_int(DT_I64, 0);
}

static bool is_u32(struct cg_val v)
{
    int64_t c;
    return cg_is_const(v, &c) ? c >= 0 && c <= UINT32_MAX : v.narrow == CG_U32;
}

static void loop(struct cg *g, struct nest *n, uint32_t axis)
{
    const struct lang_symbol *k = n->order[axis];
    struct cg_val low = limit(g, k->low), high = limit(g, k->dims[0]);
    const bool inner = axis + 1 == n->e->nindex;
    const uint32_t step = inner ? ROUNDS : 1;
    int64_t from, to;
    if (inner && cg_is_const(low, &from) && cg_is_const(high, &to) && to - from <= MOST_ROUNDS &&
        (to - from) * n->m->lanes <= MOST_TERMS) {
        for (int64_t i = from; i < to; i++)
            round_of(g, n, axis, cg_int(DT_I64, 0), i);
        return;
    }
    const enum dtype t = is_u32(low) && is_u32(high) ? DT_U32 : DT_I64;
    low = cg_freeze(g, cg_convert(g, low, t));
    high = cg_freeze(g, cg_convert(g, high, t));
    struct cg_val middle = low;
    if (step > 1) {
        struct cg_val some = cg_binary(g, OP_SUB, cg_minmax(g, true, low, high), low);
        some = cg_binary(g, OP_MUL, cg_binary(g, OP_DIV, some, cg_int(t, step)), cg_int(t, step));
        middle = cg_freeze(g, cg_binary(g, OP_ADD, low, some));
        count(g, n, axis, low, middle, step);
    }
    count(g, n, axis, middle, high, 1);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* The reduction's indices, those that are best innermost last. A reduction that says where its best
 * term is has one index. */
static void find_order(struct nest *n)
{
    uint32_t at = 0;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n->e->nindex; i++) {
            bool inner = false;
            for (uint32_t j = 0; j < n->l->ninner; j++)
                inner |= n->l->inner[j] == n->e->index[i];
            if (inner == (pass == 1))
                n->order[at++] = n->e->index[i];
        }
}

static void compute(struct cg *g, struct map_reader *m, const struct lang_expr *e, struct cg_val *v)
{
    struct nest n = {.m = m, .l = m->loops, .e = e};
    const struct cg_guard guard = {g->guard, g->guard_varies};
    n.acc = ARENA_ARRAY(g->a, m->lanes, struct cg_accumulator);
    find_order(&n);
    g->guard = -1;
    g->guard_varies = false;
    for (uint32_t i = 0; i < m->lanes; i++)
        n.acc[i] = cg_reduce_open(g, e);
    m->loops->inside = true;
    loop(g, &n, 0);
    m->loops->inside = false;
    for (uint32_t i = 0; i < m->lanes; i++)
        v[i] = cg_reduce_close(g, e, n.acc[i]);
    cg_unguard(g, guard);
}

static bool reduced(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct map_reader *m = g->read_ctx;
    uint64_t terms;
    if (e->nindex > MAP_INDICES)
        return false;
    if (map_count_terms(e, &terms) &&
        (terms <= m->loops->w->written || g->guard >= 0 || m->loops->inside))
        return false;
    for (size_t i = 0; i < m->bound.n; i++)
        if (!m->bound.v[i].form.known)
            return false; /* a lane's own subscripts: its loop, too */
    for (size_t i = 0; i < m->loops->done.n; i++)
        if (is_same(m, &m->loops->done.v[i], e)) {
            *v = m->loops->done.v[i].v[m->lane];
            return true;
        }
    struct done d = {.e = e, .nbound = m->bound.n};
    d.bound = ARENA_ARRAY(g->a, m->bound.n + 1, struct map_bound);
    memcpy(d.bound, m->bound.v, m->bound.n * sizeof *d.bound);
    d.v = ARENA_ARRAY(g->a, m->lanes, struct cg_val);
    compute(g, m, e, d.v);
    *VEC_PUSH(g->a, &m->loops->done) = d;
    *v = d.v[m->lane];
    return true;
}

void map_begin_loops(struct cg *g, struct map_reader *m, const struct map_windows *w,
                     const struct lang_symbol *const *inner, uint32_t ninner)
{
    m->loops = ARENA_NEW(g->a, struct map_loops);
    *m->loops = (struct map_loops){.w = w, .inner = inner, .ninner = ninner};
    g->reduced = reduced;
}
