/* What a stage reduces, over what, and how its reads move: reduce/reduce.h. */
#include <config.h>

#include "lower/reduce/reduce.h"

enum {
    MOST_STEPS = 100000,
    MOST_DEPTH = 100,
    CALL = 16,
    /* Results that read the same again at most; threads of their own for all of which the machine
     * has; and terms. */
    FEW_RESULTS = 4096,
    MANY_RESULTS = 65536,
    MANY_TERMS = 4096,
};

struct bound {
    const struct lang_symbol *sym;
    int axis; /* -1: something else than one axis */
};

struct walk {
    struct cg *g;
    struct reduce_form *f;
    struct buf *why;
    VEC(struct bound) bound;
    VEC(const struct lang_equation *) done; /* with reductions */
    bool in_body;
    unsigned steps, depth;
};

static bool walk_expr(struct walk *w, const struct lang_expr *e);

/* ---- indices --------------------------------------------------------------------------------- */

static int axis_of(const struct walk *w, const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        for (size_t i = w->bound.n; i-- > 0;)
            if (w->bound.v[i].sym == e->sym)
                return w->bound.v[i].axis;
    return -1;
}

static void bind(struct walk *w, const struct lang_symbol *sym, int axis)
{
    struct bound *b = VEC_PUSH(w->g->a, &w->bound);
    *b = (struct bound){sym, axis};
}

/* The index stands for this axis in all of the stage; false: it already stands for another. */
static bool settle(struct walk *w, const struct lang_symbol *sym, uint32_t axis)
{
    for (size_t i = 0; i < w->f->index.n; i++)
        if (w->f->index.v[i].sym == sym)
            return w->f->index.v[i].axis == axis;
    struct reduce_index *x = VEC_PUSH(w->g->a, &w->f->index);
    *x = (struct reduce_index){sym, axis};
    return true;
}

static bool same_bound(const struct lang_expr *x, const struct lang_expr *y)
{
    return x && y ? inspect_same_expr(x, y) : x == y;
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Each subscript an axis of its own that runs over just that dimension. */
static bool is_plain(const struct walk *w, const struct lang_expr *e, uint32_t *axis)
{
    if (e->pad || e->nargs != e->sym->rank || e->nargs > REDUCE_RANK)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        int a = axis_of(w, e->args[i]);
        if (a < 0 || w->f->axis[a].low || !inspect_same_expr(w->f->axis[a].high, e->sym->dims[i]))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (axis[k] == (uint32_t)a)
                return false;
        axis[i] = (uint32_t)a;
    }
    return true;
}

static bool add_read(struct walk *w, const struct lang_expr *e, const uint32_t *axis)
{
    struct reduce_form *f = w->f;
    for (uint32_t i = 0; i < e->nargs; i++)
        f->axis[axis[i]].in_body |= w->in_body;
    for (uint32_t i = 0; i < f->nread; i++)
        if (f->read[i].sym == e->sym && f->read[i].in_body == w->in_body &&
            memcmp(f->read[i].axis, axis, e->nargs * sizeof *axis) == 0)
            return true;
    if (f->nread == REDUCE_READS)
        return lower_lacks(w->why, e->span, "'%s' is one read too many", e->sym->name);
    struct reduce_read *r = &f->read[f->nread++];
    r->sym = e->sym;
    r->in_body = w->in_body;
    memcpy(r->axis, axis, e->nargs * sizeof *axis);
    return true;
}

static bool written_here(const struct walk *w, const struct lang_symbol *sym)
{
    for (uint32_t i = 0; i < w->f->stage->n; i++)
        if (w->f->stage->eq[i]->sym == sym)
            return true;
    return false;
}

static bool walk_args(struct walk *w, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!walk_expr(w, e->args[i]))
            return false;
    return !e->pad || walk_expr(w, e->pad);
}

static bool walk_read(struct walk *w, const struct lang_expr *e)
{
    uint32_t axis[REDUCE_RANK] = {0};
    bool plain = is_plain(w, e, axis);
    if (written_here(w, e->sym)) { /* an inout: other threads may have changed other elements */
        bool own = plain && !w->in_body;
        for (uint32_t i = 0; i < e->nargs; i++)
            own = own && axis[i] == i;
        if (!own)
            return lower_lacks(w->why, e->span,
                               "'%s' is updated in place and read at other elements", e->sym->name);
    }
    if (w->in_body)
        w->f->weight++;
    if (e->sym->rank == 0) {
        if (w->in_body)
            *VEC_PUSH(w->g->a, &w->f->scalar) = e;
        return true;
    }
    if (plain)
        return add_read(w, e, axis);
    w->f->reads_else |= w->in_body;
    return walk_args(w, e);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static bool was_walked(struct walk *w, const struct lang_equation *eq)
{
    for (size_t i = 0; i < w->done.n; i++)
        if (w->done.v[i] == eq)
            return true;
    *VEC_PUSH(w->g->a, &w->done) = eq;
    return false;
}

static bool walk_definition(struct walk *w, const struct lang_expr *e)
{
    const struct lang_equation *eq = e->sym->def;
    bool reduces = !w->in_body && inspect_reduces(w->g, eq->rhs);
    int axis[REDUCE_RANK];
    if (eq->nindex > REDUCE_RANK || w->depth == MOST_DEPTH)
        return lower_lacks(w->why, e->span, "'%s' is too deep", e->sym->name);
    for (uint32_t i = 0; i < eq->nindex; i++) {
        axis[i] = axis_of(w, e->args[i]);
        if (axis[i] < 0 && !walk_expr(w, e->args[i]))
            return false;
        if (reduces && (axis[i] < 0 || !settle(w, eq->index[i], (uint32_t)axis[i])))
            return lower_lacks(w->why, e->span,
                               "'%s' is needed at other elements than the one that is computed",
                               e->sym->name);
    }
    if (e->pad && (reduces || !walk_expr(w, e->pad)))
        return reduces && lower_lacks(w->why, e->span, "'%s' is read through pad()", e->sym->name);
    if (reduces && was_walked(w, eq))
        return true;
    size_t mark = w->bound.n;
    for (uint32_t i = 0; i < eq->nindex; i++)
        bind(w, eq->index[i], axis[i]);
    w->depth++;
    bool good = walk_expr(w, eq->rhs);
    w->depth--;
    w->bound.n = mark;
    return good;
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* The axes of a reduction's indices: new ones for the first, the same for the others. */
static bool add_axes(struct walk *w, const struct lang_expr *e)
{
    struct reduce_form *f = w->f;
    bool first = f->nresult == 0;
    if (!first && e->nindex != f->naxis - f->nkept)
        return lower_lacks(w->why, e->span,
                           "this %s runs over other indices than the first reduction",
                           lang_reduce_name(e->reduce));
    for (uint32_t i = 0; i < e->nindex; i++) {
        const struct lang_symbol *k = e->index[i];
        struct reduce_axis *a = &f->axis[f->nkept + i];
        if (first) {
            if (f->naxis == REDUCE_AXES)
                return lower_lacks(w->why, e->span, "there are too many indices");
            if ((k->low && !inspect_at_launch(k->low)) || !inspect_at_launch(k->dims[0]))
                return lower_lacks(w->why, e->span,
                                   "the range of '%s' depends on more than dimensions and integers",
                                   k->name);
            *a = (struct reduce_axis){.low = k->low, .high = k->dims[0], .is_reduced = true};
            f->naxis++;
        } else if (!same_bound(a->low, k->low) || !same_bound(a->high, k->dims[0])) {
            return lower_lacks(w->why, k->span, "'%s' has another range than the first reduction's",
                               k->name);
        }
        if (!settle(w, k, f->nkept + i))
            return lower_lacks(w->why, k->span, "'%s' is used in two ways", k->name);
        bind(w, k, (int)(f->nkept + i));
    }
    return true;
}

/* Have both the same value, where the indices of both are bound? */
static bool same_term(const struct walk *w, const struct lang_expr *x, const struct lang_expr *y)
{
    x = inspect_strip(x);
    y = inspect_strip(y);
    if (x == y)
        return true;
    if (x->kind == E_NAME && x->sym->kind == SYM_INDEX)
        return axis_of(w, x) >= 0 && axis_of(w, x) == axis_of(w, y);
    if (x->pad || !inspect_same_node(x, y))
        return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!same_term(w, x->args[i], y->args[i]))
            return false;
    return true;
}

/* Takes the factors of e away from the extents of the reduced axes; false when one is none of
 * them. */
static bool take_factors(const struct walk *w, const struct lang_expr *e, uint32_t *left)
{
    const struct reduce_form *f = w->f;
    e = inspect_strip(e);
    if (e->kind == E_BINARY && e->op == OP_MUL)
        return take_factors(w, e->args[0], left) && take_factors(w, e->args[1], left);
    for (uint32_t a = f->nkept; a < f->naxis; a++)
        if ((*left & 1u << a) && !f->axis[a].low && inspect_same_expr(f->axis[a].high, e)) {
            *left &= ~(1u << a);
            return true;
        }
    return false;
}

/* Is it the sum of these terms over as many as there are? Of an intermediate or an output at the
 * results' own place. */
static bool is_mean_of(struct walk *w, const struct lang_expr *mean, const struct lang_expr *term)
{
    const struct reduce_form *f = w->f;
    const struct lang_expr *e = cg_view(w->g, inspect_strip(mean));
    uint32_t left = 0;
    if ((e->kind != E_INDEX && e->kind != E_NAME) || e->pad || e->type != DT_F32 ||
        (e->sym->kind != SYM_TENSOR && e->sym->kind != SYM_BUFFER) || !cg_is_defined(w->g, e->sym))
        return false;
    const struct lang_equation *eq = e->sym->def;
    const struct lang_expr *q = inspect_strip(eq->rhs);
    if (q->kind != E_BINARY || q->op != OP_DIV || q->type != DT_F32)
        return false;
    const struct lang_expr *sum = cg_view(w->g, inspect_strip(q->args[0]));
    if (sum->kind != E_REDUCE || sum->reduce != RED_SUM || sum->type != DT_F32 ||
        sum->nindex != f->naxis - f->nkept)
        return false;
    size_t mark = w->bound.n;
    bool same = true;
    for (uint32_t i = 0; i < eq->nindex && same; i++) {
        int a = axis_of(w, e->args[i]);
        same = a >= 0 && (uint32_t)a < f->nkept;
        bind(w, eq->index[i], a);
    }
    for (uint32_t i = 0; i < sum->nindex && same; i++) {
        const struct reduce_axis *a = &f->axis[f->nkept + i];
        same = !a->low && !sum->index[i]->low && same_bound(a->high, sum->index[i]->dims[0]);
        left |= 1u << (f->nkept + i);
        bind(w, sum->index[i], (int)(f->nkept + i));
    }
    same = same && same_term(w, sum->args[0], term);
    w->bound.n = mark;
    return same && take_factors(w, q->args[1], &left) && !left;
}

/* Recognises a sum of squared differences to the mean: struct reduce_result. Not under math:
 * strict, which rounds as it is written. */
static void find_differences(struct walk *w, struct reduce_result *q)
{
    const struct lang_expr *b = inspect_strip(q->e->args[0]);
    if (q->e->reduce != RED_SUM || q->e->type != DT_F32 || w->g->spec->math == MATH_STRICT ||
        b->kind != E_BINARY || b->op != OP_MUL || b->type != DT_F32)
        return;
    const struct lang_expr *x = inspect_strip(b->args[0]), *y = inspect_strip(b->args[1]);
    if (x->kind != E_BINARY || x->op != OP_SUB || !same_term(w, x, y) ||
        !is_mean_of(w, x->args[1], x->args[0]))
        return;
    q->term = x->args[0];
    q->mean = x->args[1];
}

static bool walk_reduce(struct walk *w, const struct lang_expr *e)
{
    struct reduce_form *f = w->f;
    size_t mark = w->bound.n;
    if (w->in_body)
        return lower_lacks(w->why, e->span, "this %s is inside another reduction",
                           lang_reduce_name(e->reduce));
    for (uint32_t i = 0; i < f->nresult; i++)
        if (f->result[i].e == e)
            return true;
    if (f->nresult == REDUCE_RESULTS)
        return lower_lacks(w->why, e->span, "this %s is one too many", lang_reduce_name(e->reduce));
    if (!add_axes(w, e))
        return false;
    struct reduce_result *q = &f->result[f->nresult++];
    q->e = e;
    find_differences(w, q);
    if (reduce_is_arg(e))
        f->axis[f->nkept].is_value = true;
    w->in_body = true;
    f->weight++;
    bool good = walk_expr(w, q->term ? q->term : e->args[0]);
    w->in_body = false;
    w->bound.n = mark;
    return good && (!q->term || walk_expr(w, q->mean));
}

static bool walk_expr(struct walk *w, const struct lang_expr *e)
{
    e = cg_view(w->g, e);
    if (++w->steps > MOST_STEPS)
        return lower_lacks(w->why, e->span, "the equations expand to too much");
    if (e->kind == E_REDUCE)
        return walk_reduce(w, e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        int a = axis_of(w, e);
        if (a >= 0) {
            w->f->axis[a].is_value = true;
            w->f->axis[a].in_body |= w->in_body;
        }
        return true;
    }
    bool tensor = e->kind == E_INDEX ||
                  (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR || e->sym->kind == SYM_BUFFER));
    if (tensor)
        return cg_is_defined(w->g, e->sym) ? walk_definition(w, e) : walk_read(w, e);
    if (w->in_body)
        w->f->weight += e->kind == E_CALL ? CALL : e->kind == E_BINARY || e->kind == E_CAST;
    return walk_args(w, e);
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool follows_in(const uint32_t *axis, uint32_t n, uint32_t p, uint32_t q)
{
    for (uint32_t i = 0; i < n; i++) {
        if (axis[i] == p && (i + 1 == n || axis[i + 1] != q))
            return false;
        if (axis[i] == q && (i == 0 || axis[i - 1] != p))
            return false;
    }
    return true;
}

static bool is_read(const struct reduce_form *f, uint32_t axis)
{
    for (uint32_t i = 0; i < f->nread; i++)
        for (uint32_t k = 0; k < f->read[i].sym->rank; k++)
            if (f->read[i].axis[k] == axis)
                return true;
    return false;
}

/* Does q come right behind p wherever one of them is read? Outputs have the kept axes in order, and
 * so do those that nothing is read along. */
static bool follows(const struct reduce_form *f, uint32_t p, uint32_t q)
{
    const struct reduce_axis *x = &f->axis[p], *y = &f->axis[q];
    if (p == q || x->is_reduced != y->is_reduced || x->low || y->low || x->is_value || y->is_value)
        return false;
    if (!x->is_reduced && q != p + 1)
        return false;
    if (q < p && !is_read(f, p))
        return false;
    for (uint32_t i = 0; i < f->nread; i++)
        if (!follows_in(f->read[i].axis, f->read[i].sym->rank, p, q))
            return false;
    return true;
}

static int find_follower(const struct reduce_form *f, uint32_t p)
{
    for (uint32_t q = 0; q < f->naxis; q++)
        if (follows(f, p, q))
            return (int)q;
    return -1;
}

static bool mentions_reduced(const struct reduce_form *f, const struct reduce_read *r)
{
    for (uint32_t i = 0; i < r->sym->rank; i++)
        if (f->axis[r->axis[i]].is_reduced)
            return true;
    return false;
}

/* The read that moves the most bytes, as far as one can say without the sizes; NULL: none moves. */
static const struct reduce_read *heaviest(const struct reduce_form *f)
{
    const struct reduce_read *best = NULL;
    unsigned most = 0;
    for (uint32_t i = 0; i < f->nread; i++) {
        const struct reduce_read *r = &f->read[i];
        unsigned weight = dtype_bits(r->sym->type) << (2 * r->sym->rank);
        if (r->in_body && mentions_reduced(f, r) && weight > most) {
            most = weight;
            best = r;
        }
    }
    return best;
}

static unsigned position(const struct reduce_read *r, uint32_t axis)
{
    for (uint32_t i = 0; r && i < r->sym->rank; i++)
        if (r->axis[i] == axis)
            return i + 1;
    return 0;
}

static void add_loop(struct cg *g, struct reduce_form *f, uint32_t first)
{
    struct reduce_loop *l = &f->loop[f->nloop];
    struct lang_expr *n = lx_int(g->a, 1), *zero = lx_int(g->a, 0);
    *l = (struct reduce_loop){.is_reduced = f->axis[first].is_reduced};
    for (int a = (int)first; a >= 0; a = find_follower(f, (uint32_t)a)) {
        struct reduce_axis *x = &f->axis[a];
        struct lang_expr *high = x->high;
        const struct lang_expr *name = inspect_strip(x->high);
        bool atom = name->kind == E_NAME && name->sym->kind == SYM_DIM;
        int64_t c;
        x->loop = f->nloop;
        l->axis[l->naxis++] = (uint32_t)a;
        if (x->low)
            high = lx_max(g->a, zero, lx_sub(g->a, high, x->low));
        else if (!atom && !(lang_const_int(x->high, &c) && c >= 0))
            high = lx_max(g->a, zero, high);
        n = lx_mul(g->a, n, high);
        l->is_narrow = !x->low && atom;
    }
    l->n = reduce_amount(g, n);
    l->is_narrow = l->n.is_known ? l->n.n <= UINT32_MAX : l->is_narrow && l->naxis == 1;
    f->nloop++;
    f->nkeptloop += !l->is_reduced;
}

static void find_loops(struct cg *g, struct reduce_form *f, const struct reduce_read *heavy)
{
    bool follower[REDUCE_AXES] = {0};
    for (uint32_t p = 0; p < f->naxis; p++) {
        int q = find_follower(f, p);
        if (q >= 0)
            follower[q] = true;
    }
    for (uint32_t p = 0; p < f->nkept; p++)
        if (!follower[p])
            add_loop(g, f, p);
    /* in the order in which the heaviest read lies in memory */
    for (unsigned at = 0; at <= REDUCE_RANK; at++)
        for (uint32_t p = f->nkept; p < f->naxis; p++)
            if (!follower[p] && position(heavy, p) == at)
                add_loop(g, f, p);
}

bool reduce_ends_in_lanes(const struct reduce_form *f, uint32_t n, const uint32_t *axis)
{
    return n > 0 && f->axis[axis[n - 1]].loop == f->lane;
}

static void find_lanes(struct reduce_form *f, const struct reduce_read *heavy)
{
    f->lane = f->nloop - 1;
    f->has_contiguous = heavy != NULL;
    if (heavy)
        f->lane = f->axis[heavy->axis[heavy->sym->rank - 1]].loop;
    for (uint32_t i = 0; i < f->nread; i++) {
        const struct reduce_read *r = &f->read[i];
        unsigned bits = dtype_bits(r->sym->type);
        if (!r->in_body)
            continue;
        if (reduce_ends_in_lanes(f, r->sym->rank, r->axis) && bits > f->widest)
            f->widest = bits;
        if (mentions_reduced(f, r))
            f->bits += bits;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool walk_output(struct walk *w, const struct lang_equation *eq)
{
    struct reduce_form *f = w->f;
    const struct lang_equation *first = f->stage->eq[0];
    if (eq->nindex > REDUCE_RANK)
        return lower_lacks(w->why, eq->span, "'%s' has too many dimensions", eq->sym->name);
    if (dtype_bits(eq->sym->type) < 8)
        return lower_lacks(w->why, eq->span, "'%s' is of a packed type", eq->sym->name);
    if (eq->nindex != first->nindex)
        return lower_lacks(w->why, eq->span, "'%s' has another shape than the first result",
                           eq->sym->name);
    w->bound.n = 0;
    for (uint32_t i = 0; i < eq->nindex; i++) {
        if (eq == first)
            f->axis[i] = (struct reduce_axis){.high = eq->index[i]->dims[0]};
        if (!inspect_same_expr(f->axis[i].high, eq->index[i]->dims[0]))
            return lower_lacks(w->why, eq->span, "'%s' has another shape than the first result",
                               eq->sym->name);
        if (!inspect_at_launch(f->axis[i].high) || !settle(w, eq->index[i], i))
            return lower_lacks(w->why, eq->span,
                               "the shape of '%s' depends on more than dimensions and integers",
                               eq->sym->name);
        bind(w, eq->index[i], (int)i);
    }
    return walk_expr(w, eq->rhs);
}

/* Are the reductions the same all along the loop? */
static bool is_idle(const struct reduce_form *f, const struct reduce_loop *l)
{
    for (uint32_t i = 0; i < l->naxis; i++)
        if (f->axis[l->axis[i]].in_body)
            return false;
    return !l->n.is_known || l->n.n > 1;
}

/* Few results that need the same elements, of so many terms that a thread for each would leave the
 * machine idle: that they are read again, from the cache, costs less. But what is one sum for
 * several of them is computed once. */
static bool are_few(const struct reduce_form *f, const struct reduce_read *heavy)
{
    int64_t results = 1, terms = 1, all = 1;
    for (uint32_t i = 0; i < f->nloop; i++) {
        const struct reduce_loop *l = &f->loop[i];
        if (!l->is_reduced && l->n.is_known)
            all = l->n.n > MANY_RESULTS ? MANY_RESULTS : all * l->n.n;
        if (l->is_reduced)
            terms = !l->n.is_known || l->n.n > MANY_TERMS ? MANY_TERMS : terms * l->n.n;
        else if (!position(heavy, l->axis[0]))
            results = !l->n.is_known || l->n.n > FEW_RESULTS ? FEW_RESULTS + 1 : results * l->n.n;
        if (results > FEW_RESULTS || all >= MANY_RESULTS || (!l->is_reduced && is_idle(f, l)))
            return false;
    }
    return terms >= MANY_TERMS;
}

/* Whole blocks for each result are worth it where a result has elements of its own. Those that
 * several results need would be read again by each. */
static bool reads_once(const struct walk *w, const struct reduce_read *heavy)
{
    const struct reduce_form *f = w->f;
    if (heavy && are_few(f, heavy))
        return true;
    for (uint32_t i = 0; i < f->nkeptloop; i++) {
        const struct reduce_loop *l = &f->loop[i];
        if (l->n.is_known && l->n.n <= 1)
            continue;
        if (!heavy)
            return lower_lacks(w->why, f->stage->eq[0]->span,
                               "'%s' has no elements of its own to reduce",
                               f->stage->eq[0]->sym->name);
        if (!position(heavy, l->axis[0]))
            return lower_lacks(w->why, f->stage->eq[0]->span,
                               "several results need the same elements of '%s'", heavy->sym->name);
    }
    return true;
}

bool reduce_analyse(struct cg *g, const struct lower_stage *s, struct reduce_form *f,
                    struct buf *why)
{
    struct walk w = {.g = g, .f = f, .why = why};
    *f = (struct reduce_form){.stage = s};
    f->naxis = f->nkept = s->eq[0]->nindex;
    if (f->nkept > REDUCE_RANK)
        return lower_lacks(w.why, s->eq[0]->span, "'%s' has too many dimensions",
                           s->eq[0]->sym->name);
    for (uint32_t i = 0; i < s->n; i++)
        if (!walk_output(&w, s->eq[i]))
            return false;
    if (f->nresult == 0) {
        if (why)
            buf_puts(why, "there is no reduction");
        return false;
    }
    const struct reduce_read *heavy = heaviest(f);
    find_loops(g, f, heavy);
    find_lanes(f, heavy);
    return reads_once(&w, heavy);
}
