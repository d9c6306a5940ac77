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
    int axis;                      /* -1: something else than one axis */
    const struct lang_expr *scope; /* the reduction in whose terms it was bound; NULL: none */
};

struct walk {
    struct cg *g;
    struct reduce_form *f;
    struct buf *why;
    VEC(struct bound) bound;
    VEC(const struct lang_equation *) done; /* with reductions */
    bool in_body;
    const struct lang_expr *scope; /* the reduction whose terms are walked */
    bool strays; /* a reduction differs between the terms or elements that need it */
    unsigned steps, depth;
};

static bool walk_expr(struct walk *w, const struct lang_expr *e);

/* ---- indices --------------------------------------------------------------------------------- */

static const struct bound *bound_of(const struct walk *w, const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        for (size_t i = w->bound.n; i-- > 0;)
            if (w->bound.v[i].sym == e->sym)
                return &w->bound.v[i];
    return NULL;
}

static int axis_of(struct walk *w, const struct lang_expr *e)
{
    const struct bound *b = bound_of(w, e);
    if (!b)
        return -1;
    w->strays |= b->scope != w->scope && b->axis >= (int)w->f->nkept;
    return b->axis;
}

static void bind(struct walk *w, const struct lang_symbol *sym, int axis)
{
    struct bound *b = VEC_PUSH(w->g->a, &w->bound);
    *b = (struct bound){sym, axis, w->scope};
}

/* As the expression that it stands for is. */
static void bind_argument(struct walk *w, const struct lang_symbol *sym, const struct lang_expr *e)
{
    const struct bound *b = bound_of(w, e);
    const int axis = axis_of(w, e);
    bind(w, sym, axis);
    if (b && axis >= 0)
        w->bound.v[w->bound.n - 1].scope = b->scope;
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
static bool is_plain(struct walk *w, const struct lang_expr *e, uint32_t *axis)
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
    const bool in_body = w->in_body || f->is_tile; /* they are held together */
    for (uint32_t i = 0; i < e->nargs; i++)
        f->axis[axis[i]].in_body |= in_body;
    for (uint32_t i = 0; i < f->nread; i++)
        if (f->read[i].sym == e->sym && f->read[i].in_body == in_body &&
            memcmp(f->read[i].axis, axis, e->nargs * sizeof *axis) == 0)
            return true;
    if (f->nread == REDUCE_READS)
        return lower_lacks(w->why, e->span, "'%s' is one read too many", e->sym->name);
    struct reduce_read *r = &f->read[f->nread++];
    r->sym = e->sym;
    r->in_body = in_body;
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
        bool own = plain && !w->in_body && !w->f->is_tile;
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
    w->f->reads_else |= w->in_body || w->f->is_tile;
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
    bool reduces = (!w->in_body || w->f->is_tile) && inspect_reduces(w->g, eq->rhs);
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
    if (reduces && !w->f->is_tile && was_walked(w, eq))
        return true;
    size_t mark = w->bound.n;
    for (uint32_t i = 0; i < eq->nindex; i++)
        bind_argument(w, eq->index[i], e->args[i]);
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
    bool first = f->naxis == f->nkept;
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
static bool same_term(struct walk *w, const struct lang_expr *x, const struct lang_expr *y)
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
    const struct lang_expr *x = cg_written_out(w->g, b->args[0]);
    const struct lang_expr *y = cg_written_out(w->g, b->args[1]);
    if (x->kind != E_BINARY || x->op != OP_SUB || !same_term(w, x, y) ||
        !is_mean_of(w, x->args[1], x->args[0]))
        return;
    q->term = x->args[0];
    q->mean = x->args[1];
}

static bool walk_reduce(struct walk *w, const struct lang_expr *e)
{
    struct reduce_form *f = w->f;
    const struct walk outer = *w;
    size_t mark = w->bound.n;
    if (w->in_body && !f->is_tile)
        return lower_lacks(w->why, e->span, "this %s is inside another reduction",
                           lang_reduce_name(e->reduce));
    for (uint32_t i = 0; i < f->nresult; i++)
        if (f->result[i].e == e)
            return true;
    if (f->nresult == REDUCE_RESULTS)
        return lower_lacks(w->why, e->span, "this %s is one too many", lang_reduce_name(e->reduce));
    w->scope = f->is_tile ? e : NULL;
    if (!add_axes(w, e))
        return false;
    struct reduce_result *q = &f->result[f->nresult++];
    q->e = e;
    if (!f->is_tile)
        find_differences(w, q);
    if (reduce_is_arg(e))
        f->axis[f->nkept].is_value = true;
    w->in_body = true;
    f->weight++;
    bool good = walk_expr(w, q->term ? q->term : e->args[0]);
    w->in_body = outer.in_body;
    w->scope = outer.scope;
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

/* ---- all ------------------------------------------------------------------------------------- */

/* The equation of the most indices. */
static const struct lang_equation *widest_of(const struct lower_stage *s)
{
    const struct lang_equation *eq = s->eq[0];
    for (uint32_t i = 1; i < s->n; i++)
        eq = s->eq[i]->nindex > eq->nindex ? s->eq[i] : eq;
    return eq;
}

/* Which of an output's indices the reductions in e depend on: bits. inside: of one. */
static uint32_t needed(struct walk *w, const struct lang_expr *e, bool inside)
{
    uint32_t all = 0;
    e = cg_view(w->g, e);
    if (++w->steps > MOST_STEPS)
        return 0;
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        const struct bound *b = bound_of(w, e);
        return inside && b && b->axis >= 0 ? UINT32_C(1) << b->axis : 0;
    }
    const size_t mark = w->bound.n;
    inside |= e->kind == E_REDUCE;
    for (uint32_t i = 0; i < e->nindex; i++)
        bind(w, e->index[i], -1);
    for (uint32_t i = 0; i < e->nargs; i++)
        all |= needed(w, e->args[i], inside);
    if (e->pad)
        all |= needed(w, e->pad, inside);
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && e->sym->kind == SYM_TENSOR);
    if (tensor && cg_is_defined(w->g, e->sym) && w->depth < MOST_DEPTH) {
        const struct lang_equation *eq = e->sym->def;
        for (uint32_t i = 0; i < eq->nindex; i++) {
            const struct bound *b = bound_of(w, e->args[i]);
            bind(w, eq->index[i], b ? b->axis : -1);
        }
        w->depth++;
        all |= needed(w, eq->rhs, inside);
        w->depth--;
    }
    w->bound.n = mark;
    return all;
}

/* The axes of the stage: the indices of the outputs that reductions need are kept, the others are
 * reduced over; the latter are in tiles only. axis: which each index of the largest output is. */
static bool find_axes(struct walk *w, const struct lang_equation *of, uint32_t *axis)
{
    struct reduce_form *f = w->f;
    if (of->nindex > REDUCE_RANK)
        return lower_lacks(w->why, of->span, "'%s' has too many dimensions", of->sym->name);
    uint32_t kept = (UINT32_C(1) << of->nindex) - 1;
    if (f->is_tile) {
        for (uint32_t i = 0; i < of->nindex; i++)
            bind(w, of->index[i], (int)i);
        kept = needed(w, of->rhs, false);
        w->bound.n = 0;
    }
    f->nkept = (uint32_t)__builtin_popcount(kept);
    uint32_t n = 0, reduced = f->nkept;
    for (uint32_t i = 0; i < of->nindex; i++) {
        axis[i] = kept >> i & 1 ? n++ : reduced++;
        f->axis[axis[i]] =
            (struct reduce_axis){.high = of->index[i]->dims[0], .is_reduced = axis[i] >= f->nkept};
    }
    f->naxis = reduced;
    return true;
}

/* all: the axes of the largest output's indices. */
static bool walk_output(struct walk *w, const struct lang_equation *eq, const uint32_t *all,
                        struct reduce_out *out)
{
    struct reduce_form *f = w->f;
    if (eq->nindex > REDUCE_RANK)
        return lower_lacks(w->why, eq->span, "'%s' has too many dimensions", eq->sym->name);
    if (dtype_bits(eq->sym->type) < 8)
        return lower_lacks(w->why, eq->span, "'%s' is of a packed type", eq->sym->name);
    *out = (struct reduce_out){.eq = eq, .along = eq->nindex > f->nkept};
    if (eq->nindex != f->nkept && eq->nindex != f->nall)
        return lower_lacks(w->why, eq->span, "'%s' has another shape than the first result",
                           eq->sym->name);
    w->bound.n = 0;
    for (uint32_t i = 0; i < eq->nindex; i++) {
        const uint32_t a = out->along ? all[i] : i;
        out->axis[i] = a;
        if (!inspect_same_expr(f->axis[a].high, eq->index[i]->dims[0]))
            return lower_lacks(w->why, eq->span, "'%s' has another shape than the first result",
                               eq->sym->name);
        if (!inspect_at_launch(f->axis[a].high) || (a < f->nkept && !settle(w, eq->index[i], a)))
            return lower_lacks(w->why, eq->span,
                               "the shape of '%s' depends on more than dimensions and integers",
                               eq->sym->name);
        bind(w, eq->index[i], (int)a);
    }
    return walk_expr(w, eq->rhs) && !w->strays;
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
        else if (!reduce_position(heavy, l->axis[0]))
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
    if (heavy && !f->is_tile && are_few(f, heavy))
        return true;
    for (uint32_t i = 0; i < f->nkeptloop; i++) {
        const struct reduce_loop *l = &f->loop[i];
        if (l->n.is_known && l->n.n <= 1)
            continue;
        if (!heavy)
            return lower_lacks(w->why, f->stage->eq[0]->span,
                               "'%s' has no elements of its own to reduce",
                               f->stage->eq[0]->sym->name);
        if (!reduce_position(heavy, l->axis[0]))
            return lower_lacks(w->why, f->stage->eq[0]->span,
                               "several results need the same elements of '%s'", heavy->sym->name);
    }
    return true;
}

/* How many reductions are one above the other in e; those that a result needs are one less than
 * its own number. */
static uint32_t levels_of(struct walk *w, const struct lang_expr *e)
{
    uint32_t most = 0;
    struct reduce_result *own = NULL;
    e = cg_view(w->g, e);
    if (++w->steps > MOST_STEPS)
        return 0;
    for (uint32_t i = 0; i < w->f->nresult; i++)
        own = w->f->result[i].e == e ? &w->f->result[i] : own;
    if (own && own->level)
        return own->level;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const uint32_t n = levels_of(w, e->args[i]);
        most = n > most ? n : most;
    }
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && e->sym->kind == SYM_TENSOR);
    if (tensor && cg_is_defined(w->g, e->sym)) {
        const uint32_t n = levels_of(w, e->sym->def->rhs);
        most = n > most ? n : most;
    }
    if (own)
        own->level = ++most;
    return most;
}

/* Levels from 0 on. */
static void find_levels(struct walk *w)
{
    struct reduce_form *f = w->f;
    for (uint32_t i = 0; i < f->nresult; i++) {
        const uint32_t n = levels_of(w, f->result[i].e);
        f->nlevel = n > f->nlevel ? n : f->nlevel;
    }
    for (uint32_t i = 0; i < f->nresult; i++)
        f->result[i].level--;
}

bool reduce_analyse(struct cg *g, const struct lower_stage *s, bool is_tile, struct reduce_form *f,
                    struct buf *why)
{
    struct walk w = {.g = g, .f = f, .why = why};
    uint32_t axis[REDUCE_RANK];
    const struct lang_equation *of = is_tile ? widest_of(s) : s->eq[0];
    *f = (struct reduce_form){.stage = s, .is_tile = is_tile, .nall = of->nindex};
    f->out = ARENA_ARRAY(g->a, s->n, struct reduce_out);
    if (!find_axes(&w, of, axis))
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (!walk_output(&w, s->eq[i], axis, &f->out[i]))
            return false;
    if (f->nresult == 0) {
        if (why)
            buf_puts(why, "there is no reduction");
        return false;
    }
    if (is_tile)
        find_levels(&w);
    const struct reduce_read *heavy = reduce_heaviest(f);
    reduce_find_loops(g, f, heavy);
    reduce_find_lanes(f, heavy);
    return reads_once(&w, heavy);
}
