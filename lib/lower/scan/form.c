/* What a stage's prefixes are of, and how its reads move: scan/scan.h. */
#include <config.h>

#include "lower/scan/scan.h"

enum { MOST_STEPS = 100000, MOST_DEPTH = 100 };

struct bound {
    const struct lang_symbol *sym;
    int axis;     /* -1: something else than one axis */
    bool is_term; /* it numbers a prefix's terms */
};

struct walk {
    struct cg *g;
    struct scan_form *f;
    struct buf *why;
    VEC(struct bound) bound;
    VEC(const struct lang_equation *) done; /* with reductions */
    bool in_term, has_axis;
    bool reads_own, strays; /* a term reads what the stage writes; or what may not be there */
    unsigned steps, depth;
};

static bool walk_expr(struct walk *w, const struct lang_expr *e);

/* ---- indices --------------------------------------------------------------------------------- */

static const struct bound none = {.axis = -1};

static const struct bound *bound_of(const struct walk *w, const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        for (size_t i = w->bound.n; i-- > 0;)
            if (w->bound.v[i].sym == e->sym)
                return &w->bound.v[i];
    return &none;
}

static void bind(struct walk *w, const struct lang_symbol *sym, struct bound b)
{
    b.sym = sym;
    *VEC_PUSH(w->g->a, &w->bound) = b;
}

/* The index stands for this axis in all of the stage; false: it already stands for another. */
static bool settle(struct walk *w, const struct lang_symbol *sym, uint32_t axis)
{
    for (size_t i = 0; i < w->f->index.n; i++)
        if (w->f->index.v[i].sym == sym)
            return w->f->index.v[i].axis == axis;
    *VEC_PUSH(w->g->a, &w->f->index) = (struct scan_index){sym, axis};
    return true;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static bool is_one(const struct lang_expr *e)
{
    int64_t n;
    return lang_const_int(e, &n) && n == 1;
}

/* Is e dim - 1? */
static bool is_last_of(const struct lang_expr *e, const struct lang_expr *dim)
{
    int64_t n, last;
    if (lang_const_int(e, &last) && lang_const_int(dim, &n))
        return last == n - 1;
    return e->kind == E_BINARY && e->op == OP_SUB && is_one(e->args[1]) &&
           inspect_same_expr(inspect_strip(e->args[0]), dim);
}

const struct lang_expr *scan_index_of(const struct lang_expr *sub, const struct lang_expr *dim,
                                      bool *flipped)
{
    sub = inspect_strip(sub);
    *flipped = false;
    if (sub->kind != E_BINARY || sub->op != OP_SUB)
        return sub;
    const struct lang_expr *x = inspect_strip(sub->args[0]), *y = inspect_strip(sub->args[1]);
    *flipped = true;
    if (is_last_of(x, dim)) /* n - 1 - i */
        return y;
    if (is_one(y) && x->kind == E_BINARY && x->op == OP_SUB && /* n - i - 1 */
        inspect_same_expr(inspect_strip(x->args[0]), dim))
        return inspect_strip(x->args[1]);
    *flipped = false;
    return sub;
}

/* Each subscript an axis of its own that runs over just that dimension. */
static bool is_plain(const struct walk *w, const struct lang_expr *e, struct scan_read *r)
{
    uint32_t *axis = r->axis;

    if (e->pad || e->nargs != e->sym->rank || e->nargs == 0 || e->nargs > SCAN_RANK ||
        dtype_bits(e->sym->type) < 8)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_expr *at = scan_index_of(e->args[i], e->sym->dims[i], &r->flipped[i]);
        const int a = bound_of(w, at)->axis;
        if (a < 0 || !inspect_same_expr(w->f->extent[a], e->sym->dims[i]))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (axis[k] == (uint32_t)a)
                return false;
        axis[i] = (uint32_t)a;
    }
    return true;
}

static void note_width(struct scan_form *f, const struct lang_symbol *t)
{
    const unsigned bits = dtype_bits(t->type);
    f->widest = bits > f->widest ? bits : f->widest;
    f->registers += bits > 32 ? 2 : 1;
}

static bool add_read(struct walk *w, const struct lang_expr *e, struct scan_read read)
{
    struct scan_form *f = w->f;
    for (uint32_t i = 0; i < f->nread; i++)
        if (f->read[i].sym == e->sym && memcmp(f->read[i].axis, read.axis, sizeof read.axis) == 0 &&
            memcmp(f->read[i].flipped, read.flipped, sizeof read.flipped) == 0)
            return true;
    if (f->nread == SCAN_READS)
        return lower_lacks(w->why, e->span, "'%s' is one read too many", e->sym->name);
    struct scan_read *r = &f->read[f->nread++];
    *r = read;
    r->sym = e->sym;
    r->in_lanes = read.axis[e->nargs - 1] + 1 == f->naxis;
    if (r->in_lanes)
        note_width(f, e->sym);
    return true;
}

static bool is_written(const struct walk *w, const struct lang_symbol *sym)
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
    struct scan_read read = {0};
    const bool plain = is_plain(w, e, &read);
    if (is_written(w, e->sym)) { /* an inout: other threads may have changed other elements */
        bool own = plain && e->nargs == w->f->naxis;
        for (uint32_t i = 0; i < e->nargs; i++)
            own = own && read.axis[i] == i && !read.flipped[i];
        if (!own)
            return lower_lacks(w->why, e->span,
                               "'%s' is updated in place and read at other elements", e->sym->name);
        w->reads_own |= w->in_term;
    }
    if (!walk_args(w, e))
        return false;
    if (plain)
        return add_read(w, e, read);
    w->f->reads_else |= w->in_term && e->nargs > 0;
    w->strays |= w->in_term && inspect_may_stray(e);
    return true;
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
    const bool reduces = !w->in_term && inspect_reduces(w->g, eq->rhs);
    struct bound arg[SCAN_RANK];
    if (eq->nindex > SCAN_RANK || w->depth == MOST_DEPTH)
        return lower_lacks(w->why, e->span, "'%s' is too deep", e->sym->name);
    for (uint32_t i = 0; i < eq->nindex; i++) {
        arg[i] = *bound_of(w, e->args[i]);
        if (!walk_expr(w, e->args[i]))
            return false;
        if (reduces && (arg[i].axis < 0 || !settle(w, eq->index[i], (uint32_t)arg[i].axis)))
            return lower_lacks(w->why, e->span,
                               "'%s' is needed at other elements than the one that is computed",
                               e->sym->name);
    }
    if (e->pad && (reduces || !walk_expr(w, e->pad)))
        return reduces && lower_lacks(w->why, e->span, "'%s' is read through pad()", e->sym->name);
    if (reduces && was_walked(w, eq))
        return true;
    const size_t mark = w->bound.n;
    for (uint32_t i = 0; i < eq->nindex; i++)
        bind(w, eq->index[i], arg[i]);
    w->depth++;
    const bool good = walk_expr(w, eq->rhs);
    w->depth--;
    w->bound.n = mark;
    return good;
}

/* ---- prefixes -------------------------------------------------------------------------------- */

/* e is an index of the stage, or that + 1; -1: neither. */
static int axis_and(const struct walk *w, const struct lang_expr *e, int64_t *add)
{
    e = inspect_strip(e);
    *add = 0;
    if (e->kind == E_BINARY && e->op == OP_ADD) {
        const bool first = lang_const_int(e->args[0], add);
        if (!first && !lang_const_int(e->args[1], add))
            return -1;
        e = e->args[first];
    }
    return *add == 0 || *add == 1 ? bound_of(w, e)->axis : -1;
}

struct range {
    int axis; /* -1: it is no prefix's */
    bool reversed, exclusive;
    const struct lang_expr *bound; /* of a segment */
};

/* Is it something that is read, or rounded? Else it is as far from every element, which is a
 * window's. */
static bool bounds_segments(const struct lang_expr *e)
{
    const bool rounds = e->kind == E_BINARY &&
                        (e->op == OP_DIV || e->op == OP_MOD || e->op == OP_SHR || e->op == OP_AND);
    if (e->kind == E_INDEX || rounds)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (bounds_segments(e->args[i]))
            return true;
    return false;
}

/* A range from a segment's beginning, or to its end. */
static struct range segment_of(const struct walk *w, const struct lang_symbol *k)
{
    int64_t add;
    const bool reversed = bound_of(w, k->low)->axis >= 0 || axis_and(w, k->low, &add) >= 0;
    struct range r = {.reversed = reversed, .bound = reversed ? k->dims[0] : k->low};
    r.axis = axis_and(w, reversed ? k->low : k->dims[0], &add);
    r.exclusive = add == (reversed ? 1 : 0);
    if (!bounds_segments(r.bound))
        r.axis = -1;
    return r;
}

static struct range range_of(const struct walk *w, const struct lang_expr *e)
{
    const struct lang_symbol *k = e->index[0];
    struct range r = {.axis = -1};
    int64_t low = 0, add;
    if (e->nindex != 1)
        return r;
    if (!k->low || (lang_const_int(k->low, &low) && low == 0)) {
        r.axis = axis_and(w, k->dims[0], &add);
        r.exclusive = add == 0;
        return r;
    }
    r.axis = axis_and(w, k->low, &add);
    r.reversed = true;
    r.exclusive = add == 1;
    return r.axis >= 0 && inspect_same_expr(w->f->extent[r.axis], k->dims[0]) ? r
                                                                              : segment_of(w, k);
}

/* All prefixes go the same way. */
static bool take_axis(struct walk *w, const struct lang_expr *e, struct range r)
{
    struct scan_form *f = w->f;
    if (!w->has_axis) {
        f->axis = (uint32_t)r.axis;
        f->reversed = r.reversed;
        w->has_axis = true;
    }
    if (f->axis == (uint32_t)r.axis && f->reversed == r.reversed)
        return true;
    return lower_lacks(w->why, e->span, "this %s goes another way than the first prefix",
                       lang_reduce_name(e->reduce));
}

static bool walk_prefix(struct walk *w, const struct lang_expr *e)
{
    struct scan_form *f = w->f;
    if (w->in_term)
        return lower_lacks(w->why, e->span, "this %s is inside another reduction",
                           lang_reduce_name(e->reduce));
    for (uint32_t i = 0; i < f->nresult; i++)
        if (f->result[i].e == e)
            return true;
    if (f->nresult == SCAN_RESULTS)
        return lower_lacks(w->why, e->span, "this %s is one too many", lang_reduce_name(e->reduce));
    const struct range r = range_of(w, e);
    if (r.axis < 0)
        return lower_lacks(w->why, e->span, "this %s is no prefix", lang_reduce_name(e->reduce));
    if (!take_axis(w, e, r) || !settle(w, e->index[0], (uint32_t)r.axis))
        return false;
    if (r.bound && (e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN))
        return lower_lacks(w->why, e->span, "this %s is of segments", lang_reduce_name(e->reduce));
    if (r.bound && !walk_expr(w, r.bound))
        return false;
    const size_t mark = w->bound.n;
    bind(w, e->index[0], (struct bound){.axis = r.axis, .is_term = true});
    w->in_term = true;
    w->strays = w->reads_own = false;
    const bool good = walk_expr(w, e->args[0]);
    w->in_term = false;
    w->bound.n = mark;
    if (!good)
        return false;
    /* terms that no segment has are computed, too, and those of some one by one, later */
    if (r.bound && (w->strays || w->reads_own))
        return lower_lacks(w->why, e->span, "terms of segments read %s",
                           w->reads_own ? "what is updated in place" : "what may not be there");
    f->result[f->nresult++] = (struct scan_result){e, r.exclusive, r.bound};
    f->has_segments |= r.bound != NULL;
    const bool is_arg = e->reduce == RED_ARGMAX || e->reduce == RED_ARGMIN;
    f->registers += (dtype_bits(e->args[0]->type) > 32 ? 2U : 1U) + (r.bound ? 3U : 0U);
    f->registers += is_arg ? 2U : 0U;
    return true;
}

static bool walk_index(struct walk *w, const struct lang_expr *e)
{
    const struct bound *b = bound_of(w, e);
    if (!w->in_term || b->axis != (int)w->f->axis || b->is_term)
        return true;
    return lower_lacks(w->why, e->span, "every element has terms of its own, by '%s'",
                       e->sym->name);
}

static bool walk_expr(struct walk *w, const struct lang_expr *e)
{
    e = cg_view(w->g, e);
    if (++w->steps > MOST_STEPS)
        return lower_lacks(w->why, e->span, "the equations expand to too much");
    if (e->kind == E_REDUCE)
        return walk_prefix(w, e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        return walk_index(w, e);
    const bool tensor = e->kind == E_INDEX || (e->kind == E_NAME && (e->sym->kind == SYM_TENSOR ||
                                                                     e->sym->kind == SYM_BUFFER));
    if (tensor)
        return cg_is_defined(w->g, e->sym) ? walk_definition(w, e) : walk_read(w, e);
    return walk_args(w, e);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool walk_output(struct walk *w, const struct lang_equation *eq)
{
    struct scan_form *f = w->f;
    const struct lang_equation *first = f->stage->eq[0];
    if (dtype_bits(eq->sym->type) < 8)
        return lower_lacks(w->why, eq->span, "'%s' is of a packed type", eq->sym->name);
    if (eq->nindex != first->nindex)
        return lower_lacks(w->why, eq->span, "'%s' has another shape than the first result",
                           eq->sym->name);
    w->bound.n = 0;
    for (uint32_t i = 0; i < eq->nindex; i++) {
        if (eq == first)
            f->extent[i] = eq->index[i]->dims[0];
        if (!inspect_same_expr(f->extent[i], eq->index[i]->dims[0]))
            return lower_lacks(w->why, eq->span, "'%s' has another shape than the first result",
                               eq->sym->name);
        if (!inspect_at_launch(f->extent[i]) || !settle(w, eq->index[i], i))
            return lower_lacks(w->why, eq->span,
                               "the shape of '%s' depends on more than dimensions and integers",
                               eq->sym->name);
        bind(w, eq->index[i], (struct bound){.axis = (int)i});
    }
    note_width(f, eq->sym);
    return walk_expr(w, eq->rhs);
}

/* Is there a prefix at least? Nothing is said of stages that have nothing to do with one. */
static bool analyse(struct walk *w)
{
    const struct lower_stage *s = w->f->stage;
    w->f->naxis = s->eq[0]->nindex;
    if (w->f->naxis == 0 || w->f->naxis > SCAN_RANK || s->n > SCAN_OUTS)
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (!walk_output(w, s->eq[i]))
            return false;
    return w->f->nresult > 0;
}

void *scan_fit(struct cg *g, const struct lower_stage *s, struct buf *why)
{
    struct buf text = buf_in(g->a);
    struct scan_form *f = ARENA_NEW(g->a, struct scan_form);
    *f = (struct scan_form){.stage = s};
    struct walk w = {.g = g, .f = f, .why = &text};
    if (analyse(&w))
        return f;
    if (f->nresult && why)
        buf_puts(why, buf_text(&text));
    return NULL;
}
