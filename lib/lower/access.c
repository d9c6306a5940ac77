#include <config.h>

#include "lower/access.h"

enum { MOST_STEPS = 200000, MOST_DEPTH = 200 };

struct bound {
    const struct lang_symbol *index;
    struct access_form form;
};

struct walk {
    struct cg *g;
    access_visit *visit;
    void *ctx;
    struct access_axes axes;
    VEC(struct bound) bound;
    bool guarded;
    uint32_t loops;
    unsigned steps, depth;
};

uint32_t access_mask(const struct access_form *f)
{
    uint32_t m = f->other;
    for (uint32_t i = 0; i < ACCESS_AXES; i++)
        if (f->coef[i])
            m |= 1u << i;
    return m;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static struct access_form form_of(struct walk *w, const struct lang_expr *e);

/* Whatever it is, it depends on what its parts depend on. */
static void add_parts(struct walk *w, const struct lang_expr *e, struct access_form *f)
{
    for (uint32_t i = 0; i < e->nargs; i++) {
        struct access_form part = form_of(w, e->args[i]);
        f->other |= access_mask(&part);
    }
    if (e->pad) {
        struct access_form part = form_of(w, e->pad);
        f->other |= access_mask(&part);
    }
    f->symbolic = true;
}

static bool is_constant(const struct access_form *f)
{
    return !f->symbolic && access_mask(f) == 0;
}

/* x * k + y * m, as far as the numbers fit. */
static struct access_form linear(const struct access_form *x, int64_t k,
                                 const struct access_form *y, int64_t m)
{
    struct access_form r = {.other = x->other | y->other, .symbolic = x->symbolic || y->symbolic};
    int64_t p, q;
    bool over = __builtin_mul_overflow(x->constant, k, &p) ||
                __builtin_mul_overflow(y->constant, m, &q) ||
                __builtin_add_overflow(p, q, &r.constant);
    for (uint32_t i = 0; i < ACCESS_AXES; i++) {
        bool bad = __builtin_mul_overflow(x->coef[i], k, &p) ||
                   __builtin_mul_overflow(y->coef[i], m, &q) ||
                   __builtin_add_overflow(p, q, &r.coef[i]);
        if (bad) {
            r.coef[i] = 0;
            r.other |= 1u << i;
        }
    }
    r.symbolic |= over;
    return r;
}

static struct access_form binary_form(struct walk *w, const struct lang_expr *e)
{
    struct access_form x = form_of(w, e->args[0]), y = form_of(w, e->args[1]);
    static const struct access_form none;
    struct access_form r = {.other = access_mask(&x) | access_mask(&y), .symbolic = true};
    switch (e->op) {
    case OP_ADD: return linear(&x, 1, &y, 1);
    case OP_SUB: return linear(&x, 1, &y, -1);
    case OP_MUL:
        if (is_constant(&x))
            return linear(&y, x.constant, &none, 0);
        if (is_constant(&y))
            return linear(&x, y.constant, &none, 0);
        return r;
    case OP_SHL:
        if (is_constant(&y) && y.constant >= 0 && y.constant < 62)
            return linear(&x, INT64_C(1) << y.constant, &none, 0);
        return r;
    default: return r;
    }
}

static struct access_form form_of(struct walk *w, const struct lang_expr *e)
{
    struct access_form f = {0};
    int64_t v;
    e = inspect_strip(e);
    if (lang_const_int(e, &v)) {
        f.constant = v;
        return f;
    }
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        for (size_t i = w->bound.n; i-- > 0;)
            if (w->bound.v[i].index == e->sym)
                return w->bound.v[i].form;
        f.symbolic = true; /* its loop is around the equation: cannot be */
        return f;
    }
    if (e->kind == E_BINARY)
        return binary_form(w, e);
    if (e->kind == E_UNARY && e->op == OP_NEG) {
        struct access_form x = form_of(w, e->args[0]);
        return linear(&f, 0, &x, -1);
    }
    add_parts(w, e, &f);
    return f;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool walk_expr(struct walk *w, const struct lang_expr *e);

static void bind(struct walk *w, const struct lang_symbol *index, const struct access_form *f)
{
    struct bound *b = VEC_PUSH(w->g->a, &w->bound);
    b->index = index;
    b->form = *f;
}

static bool bind_axis(struct walk *w, const struct lang_symbol *index, uint32_t *axis)
{
    struct access_form f = {0};
    for (*axis = 0; *axis < w->axes.n; ++*axis)
        if (w->axes.sym[*axis] == index)
            break;
    if (*axis == ACCESS_AXES)
        return false;
    if (*axis == w->axes.n)
        w->axes.sym[w->axes.n++] = index;
    f.coef[*axis] = 1;
    bind(w, index, &f);
    return true;
}

static bool walk_definition(struct walk *w, const struct lang_expr *e)
{
    const struct lang_equation *eq = e->sym->def;
    size_t mark = w->bound.n;
    struct access_form sub[ACCESS_RANK];
    if (eq->nindex > ACCESS_RANK || w->depth == MOST_DEPTH)
        return false;
    for (uint32_t i = 0; i < eq->nindex; i++)
        sub[i] = form_of(w, e->args[i]);
    for (uint32_t i = 0; i < eq->nindex; i++)
        bind(w, eq->index[i], &sub[i]);
    w->depth++;
    bool good = walk_expr(w, eq->rhs);
    w->depth--;
    w->bound.n = mark;
    return good;
}

static bool walk_read(struct walk *w, const struct lang_expr *e)
{
    struct access a = {
        .e = e, .sym = e->sym, .n = e->nargs, .guarded = w->guarded, .loops = w->loops};
    if (e->nargs > ACCESS_RANK)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        a.sub[i] = form_of(w, e->args[i]);
    return w->visit(w->ctx, &a, &w->axes);
}

static bool walk_reduce(struct walk *w, const struct lang_expr *e)
{
    size_t mark = w->bound.n;
    uint32_t loops = w->loops, axis;
    bool good = true;
    for (uint32_t i = 0; i < e->nindex && good; i++) {
        const struct lang_symbol *k = e->index[i];
        good = (!k->low || walk_expr(w, k->low)) && walk_expr(w, k->dims[0]) &&
               bind_axis(w, k, &axis);
        if (good)
            w->loops |= 1u << axis;
    }
    good = good && walk_expr(w, e->args[0]);
    w->bound.n = mark;
    w->loops = loops;
    return good;
}

static bool walk_args(struct walk *w, const struct lang_expr *e)
{
    const bool guards = lang_guards(e), was = w->guarded;
    for (uint32_t i = 0; i < e->nargs; i++) {
        w->guarded = was || (guards && i > 0);
        if (!walk_expr(w, e->args[i]))
            return false;
    }
    w->guarded = was;
    return true;
}

static bool walk_expr(struct walk *w, const struct lang_expr *e)
{
    if (++w->steps > MOST_STEPS)
        return false;
    e = cg_view(w->g, e);
    if (e->kind == E_REDUCE)
        return walk_reduce(w, e);
    bool tensor = e->kind == E_INDEX ||
                  (e->kind == E_NAME && (e->sym->kind == SYM_BUFFER || e->sym->kind == SYM_TENSOR));
    if (!walk_args(w, e) || (e->pad && !walk_expr(w, e->pad)))
        return false;
    if (!tensor)
        return true;
    if (!cg_is_defined(w->g, e->sym))
        return walk_read(w, e);
    const bool was = w->guarded;
    w->guarded |= e->pad != NULL;
    const bool good = walk_definition(w, e);
    w->guarded = was;
    return good;
}

bool access_walk(struct cg *g, const struct lang_equation *eq, access_visit *visit, void *ctx)
{
    struct walk w = {.g = g, .visit = visit, .ctx = ctx};
    uint32_t axis;
    for (uint32_t i = 0; i < eq->nindex; i++)
        if (!bind_axis(&w, eq->index[i], &axis))
            return false;
    w.axes.nout = eq->nindex;
    return walk_expr(&w, eq->rhs);
}

/* ---- questions ------------------------------------------------------------------------------- */

bool access_is_axis(const struct access *a, uint32_t i, uint32_t axis)
{
    const struct access_form *f = &a->sub[i];
    return !f->symbolic && f->constant == 0 && f->coef[axis] == 1 && access_mask(f) == 1u << axis;
}
