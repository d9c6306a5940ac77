#include <config.h>

#include "lower/phases.h"

enum { MOST_AXES = 4, MOST_RANK = 8, MOST_STRIDE = 64, MOST_CONDITIONS = 24 };
/* Each phase has variants of its own where sizes are open, whose conditions a contract names. */
enum { MOST_PHASES = 32, MOST_OPEN_PHASES = 4 };

/* An axis of the results, i, and the index of the sum, u, that (i + p - t * u) % s == 0 ties to it.
 * What both s and t are multiples of, g, divides i + p, too, where there are terms: n = s / g. */
struct axis {
    struct lang_symbol *i, *u;
    int64_t p, s, t, g, n;
    struct lang_symbol *j, *v; /* of a phase, and its number: see phases.h */
    int64_t c;
};

struct phases {
    struct cg *g;
    const struct lang_equation *eq;
    const struct lang_expr *sum;
    struct axis axis[MOST_AXES];
    uint32_t n;
    /* Conditions without which a factor is 0; after drop_idle(): that is 0 then by itself. */
    struct {
        const struct lang_expr *e, *guarded;
    } condition[MOST_CONDITIONS];
    uint32_t nconditions;
};

/* ---- making expressions ---------------------------------------------------------------------- */

static struct lang_expr *node(struct cg *g, struct span at, struct lang_expr e, uint32_t nargs)
{
    struct lang_expr *n = ARENA_NEW(g->a, struct lang_expr);
    *n = e;
    n->span = at;
    n->type = e.type ? e.type : DT_I64;
    n->nargs = nargs;
    n->args = ARENA_ARRAY(g->a, nargs + 1, struct lang_expr *);
    n->height = 1;
    return n;
}

static struct lang_expr *number(struct cg *g, struct span at, int64_t v)
{
    return node(g, at, (struct lang_expr){.kind = E_INT, .type = DT_I64, .ival = (uint64_t)v}, 0);
}

static struct lang_expr *binary(struct cg *g, enum lang_op op, struct lang_expr *x,
                                struct lang_expr *y)
{
    int64_t i, j;
    const bool constant = lang_const_int(x, &i) && lang_const_int(y, &j);
    struct lang_expr *e =
        node(g, x->span, (struct lang_expr){.kind = E_BINARY, .type = DT_I64, .op = op}, 2);
    e->args[0] = x;
    e->args[1] = y;
    e->height = 1 + (x->height > y->height ? x->height : y->height);
    return constant && lang_const_int(e, &i) ? number(g, x->span, i) : e;
}

static struct lang_expr *with(struct cg *g, enum lang_op op, struct lang_expr *x, int64_t y)
{
    const bool nothing = y == (op == OP_MUL || op == OP_DIV ? 1 : 0) && op != OP_MOD;
    return nothing ? x : binary(g, op, x, number(g, x->span, y));
}

static struct lang_expr *widened(struct cg *g, struct lang_expr *x)
{
    if (x->type == DT_I64)
        return x;
    struct lang_expr *e = node(
        g, x->span, (struct lang_expr){.kind = E_CAST, .type = DT_I64, .is_implicit = true}, 1);
    e->args[0] = x;
    e->height = 1 + x->height;
    return e;
}

/* ---- which sums ------------------------------------------------------------------------------ */

/* c + i - t * u, for an index i of the equation and u of the sum. */
struct linear {
    struct lang_symbol *i, *u;
    int64_t c, of_i, of_u;
};

static bool is_of(struct lang_symbol *const *index, uint32_t n, const struct lang_symbol *s)
{
    for (uint32_t k = 0; k < n; k++)
        if (index[k] == s)
            return true;
    return false;
}

static bool add_index(const struct phases *p, struct lang_symbol *s, int64_t times,
                      struct linear *x)
{
    const bool out = is_of(p->eq->index, p->eq->nindex, s);
    struct lang_symbol **to = out ? &x->i : &x->u;
    if ((!out && !is_of(p->sum->index, p->sum->nindex, s)) || (*to && *to != s))
        return false;
    *to = s;
    *(out ? &x->of_i : &x->of_u) += times;
    return true;
}

/* Adds `times` e to x; false: it is nothing of the kind. */
static bool add_linear(const struct phases *p, const struct lang_expr *e, int64_t times,
                       struct linear *x)
{
    int64_t v;
    e = inspect_strip(e);
    if (lang_const_int(e, &v)) {
        const bool small = v > -(1 << 20) && v < 1 << 20;
        x->c += small ? times * v : 0;
        return small;
    }
    if (times > 1 << 20 || times < -(1 << 20))
        return false;
    if (e->kind == E_NAME)
        return e->sym->kind == SYM_INDEX && add_index(p, e->sym, times, x);
    if (e->kind == E_UNARY && e->op == OP_NEG)
        return add_linear(p, e->args[0], -times, x);
    if (e->kind != E_BINARY)
        return false;
    if (e->op == OP_MUL && lang_const_int(e->args[0], &v))
        return v > -MOST_STRIDE && v < MOST_STRIDE && add_linear(p, e->args[1], times * v, x);
    if (e->op == OP_MUL && lang_const_int(e->args[1], &v))
        return v > -MOST_STRIDE && v < MOST_STRIDE && add_linear(p, e->args[0], times * v, x);
    return (e->op == OP_ADD || e->op == OP_SUB) && add_linear(p, e->args[0], times, x) &&
           add_linear(p, e->args[1], e->op == OP_SUB ? -times : times, x);
}

static int64_t common(int64_t x, int64_t y)
{
    return y ? common(y, x % y) : x;
}

/* The axis whose (i + p - t * u) this is, NULL: none. */
static const struct axis *axis_of(const struct phases *p, const struct lang_expr *e)
{
    struct linear x = {0};
    if (e->type != DT_I64 || !add_linear(p, e, 1, &x) || !x.i || !x.u)
        return NULL;
    for (uint32_t k = 0; k < p->n; k++) {
        const struct axis *a = &p->axis[k];
        if (a->i == x.i && a->u == x.u && x.of_i == 1 && x.of_u == -a->t && x.c == a->p)
            return a;
    }
    return NULL;
}

/* Is it e % s == 0, of a number s? */
static bool is_multiple(const struct lang_expr *e, const struct lang_expr **of, int64_t *s)
{
    int64_t zero;
    const struct lang_expr *x = e->kind == E_BINARY && e->op == OP_EQ ? inspect_strip(e->args[0])
                                                                      : NULL;
    if (!x || x->kind != E_BINARY || x->op != OP_MOD || !lang_const_int(e->args[1], &zero) ||
        zero || !lang_const_int(x->args[1], s))
        return false;
    *of = x->args[0];
    return true;
}

/* Adds the axis of a condition that each term has to meet. */
static void note_condition(struct phases *p, const struct lang_expr *e)
{
    struct linear x = {0};
    const struct lang_expr *of;
    int64_t s;
    if (!is_multiple(e, &of, &s) || s < 2 || s > MOST_STRIDE || p->n == MOST_AXES ||
        !add_linear(p, of, 1, &x) || !x.i || !x.u)
        return;
    const struct axis a = {.i = x.i, .u = x.u, .p = x.c, .s = s, .t = -x.of_u};
    if (x.of_i != 1 || a.t < 1 || a.p < 0 || a.u->low || a.i->low ||
        !inspect_at_launch(a.u->dims[0]))
        return;
    for (uint32_t k = 0; k < p->n; k++)
        if (p->axis[k].i == a.i || p->axis[k].u == a.u)
            return;
    p->axis[p->n] = a;
    p->axis[p->n].g = common(a.t, a.s);
    p->axis[p->n].n = a.s / p->axis[p->n].g;
    p->n++;
}

static bool is_zero(const struct lang_expr *e)
{
    int64_t v;
    e = inspect_strip(e);
    return (e->kind == E_FLOAT && e->fval == 0) || (lang_const_int(e, &v) && v == 0);
}

static bool rounds(const struct lang_expr *e)
{
    return e->kind == E_CAST || inspect_rounds_to_tf32(e);
}

/* Conditions are of whole terms, or of one of their factors. Where a factor alone is 0 the term is
 * not that if another is infinite: only what whole terms have to meet makes phases. */
enum { OF_TERM, OF_FACTOR };

static void find_condition(struct phases *p, const struct lang_expr *e,
                           const struct lang_expr *guarded, int of)
{
    e = inspect_strip(e);
    if (e->kind == E_BINARY && e->op == OP_LAND) {
        find_condition(p, e->args[0], guarded, of);
        find_condition(p, e->args[1], guarded, of);
    } else if (of == OF_TERM) {
        note_condition(p, e);
    } else if (p->nconditions < MOST_CONDITIONS) {
        p->condition[p->nconditions].e = e;
        p->condition[p->nconditions++].guarded = guarded;
    }
}

/* Finds the conditions without which the term e, or this factor of it, is 0. */
static void find_conditions(struct phases *p, const struct lang_expr *e, int of)
{
    e = inspect_strip(e);
    if (e->kind == E_BINARY && e->op == OP_MUL) {
        find_conditions(p, e->args[0], OF_FACTOR);
        find_conditions(p, e->args[1], OF_FACTOR);
    } else if (e->kind == E_COND && is_zero(e->args[2])) {
        find_condition(p, e->args[0], e->args[1], of);
        find_conditions(p, e->args[1], of);
    } else if (rounds(e)) {
        find_conditions(p, e->args[0], of);
    }
}

/* ---- conditions that have a name ------------------------------------------------------------- */

struct inlining {
    const struct lang_equation *eq; /* NULL: none */
    struct lang_expr **args;        /* for its indices */
};

static bool is_named_condition(const struct cg *g, const struct lang_expr *e)
{
    return e->kind == E_INDEX && e->type == DT_BOOL && !e->pad && e->sym->kind == SYM_TENSOR &&
           e->sym->def && cg_is_defined(g, e->sym) && !inspect_reduces(g, e);
}

/* A copy of e in which named conditions are what they are. */
static struct lang_expr *inlined(struct cg *g, const struct lang_expr *e, const struct inlining *in)
{
    for (uint32_t i = 0; in->eq && e->kind == E_NAME && i < in->eq->nindex; i++)
        if (in->eq->index[i] == e->sym)
            return in->args[i];
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs + 1, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        c->args[i] = inlined(g, e->args[i], in);
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
    }
    if (e->pad)
        c->pad = inlined(g, e->pad, in);
    if (!is_named_condition(g, e) || c->height > LANG_MAX_HEIGHT / 4)
        return c;
    const struct inlining inner = {e->sym->def, c->args};
    return inlined(g, e->sym->def->rhs, &inner);
}

/* ---- a phase's sum --------------------------------------------------------------------------- */

/* n * v + c, for u. */
static struct lang_expr *element(struct cg *g, const struct axis *a, struct span at)
{
    return with(g, OP_ADD, with(g, OP_MUL, inspect_index_name(g, a->v, at), a->n), a->c);
}

/* (i + p - t * u) / s, which is j - t / g * v - t * c / s. */
static struct lang_expr *quotient(struct cg *g, const struct axis *a, struct span at)
{
    struct lang_expr *v = with(g, OP_MUL, inspect_index_name(g, a->v, at), a->t / a->g);
    return with(g, OP_SUB, binary(g, OP_SUB, inspect_index_name(g, a->j, at), v),
                a->t * a->c / a->s);
}

/* i, which is s * j + t * c % s - p. */
static struct lang_expr *position(struct cg *g, const struct axis *a, struct span at)
{
    struct lang_expr *j = with(g, OP_MUL, inspect_index_name(g, a->j, at), a->s);
    return with(g, OP_ADD, j, a->t * a->c % a->s - a->p);
}

static const struct axis *quotient_of(const struct phases *p, const struct lang_expr *e)
{
    int64_t s;
    if (e->kind != E_BINARY || e->op != OP_DIV || !lang_const_int(e->args[1], &s))
        return NULL;
    const struct axis *a = axis_of(p, e->args[0]);
    return a && a->s == s ? a : NULL;
}

static bool is_met(const struct phases *p, const struct lang_expr *e)
{
    const struct lang_expr *of;
    int64_t s;
    const struct axis *a = is_multiple(e, &of, &s) ? axis_of(p, of) : NULL;
    return a && a->s == s;
}

static bool is_true(const struct lang_expr *e)
{
    return e->kind == E_BOOL && e->ival;
}

static struct lang_expr *rewritten(const struct phases *p, const struct lang_expr *e);
static bool is_dropped(const struct phases *p, const struct lang_expr *e);

/* Copies e's parts. A read at the quotient is of 0 where there is no i. */
static struct lang_expr *with_parts(const struct phases *p, const struct lang_expr *e)
{
    struct cg *g = p->g;
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    bool pads = false;
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs + 1, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        c->args[i] = rewritten(p, e->args[i]);
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
        pads |= e->kind == E_INDEX && quotient_of(p, inspect_strip(e->args[i]));
    }
    if (e->pad)
        c->pad = rewritten(p, e->pad);
    else if (pads)
        c->pad = node(
            g, e->span,
            (struct lang_expr){.kind = dtype_is_float(e->type) ? E_FLOAT : E_INT, .type = e->type},
            0);
    return c;
}

static struct lang_expr *rewritten(const struct phases *p, const struct lang_expr *e)
{
    struct cg *g = p->g;
    const struct axis *a = quotient_of(p, e);
    if (a)
        return quotient(g, a, e->span);
    const struct axis *whole = axis_of(p, e);
    if (whole)
        return with(g, OP_MUL, quotient(g, whole, e->span), whole->s);
    if (is_met(p, e) || is_dropped(p, e))
        return node(g, e->span, (struct lang_expr){.kind = E_BOOL, .type = DT_BOOL, .ival = 1}, 0);
    for (uint32_t k = 0; k < p->n && e->kind == E_NAME; k++) {
        if (e->sym == p->axis[k].u)
            return element(g, &p->axis[k], e->span);
        if (e->sym == p->axis[k].i)
            return position(g, &p->axis[k], e->span);
    }
    struct lang_expr *c = with_parts(p, e);
    if (c->kind == E_BINARY && c->op == OP_LAND && is_true(c->args[0]))
        return c->args[1];
    if (c->kind == E_BINARY && c->op == OP_LAND && is_true(c->args[1]))
        return c->args[0];
    return c->kind == E_COND && is_true(c->args[0]) ? c->args[1] : c;
}

/* Is the factor 0 where the axis's quotient is outside of `dim` (NULL: of any dimension), as it
 * reads an element there? */
static bool reads_quotient(const struct phases *p, const struct lang_expr *e, const struct axis *a,
                           const struct lang_expr *dim)
{
    e = inspect_strip(e);
    if (e->kind == E_COND)
        return is_zero(e->args[2]) && reads_quotient(p, e->args[1], a, dim);
    if (rounds(e))
        return reads_quotient(p, e->args[0], a, dim);
    if (e->kind != E_INDEX || (e->pad && !is_zero(e->pad)) || cg_is_defined(p->g, e->sym))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (quotient_of(p, inspect_strip(e->args[i])) == a &&
            (!dim || inspect_same_expr(inspect_strip(e->sym->dims[i]), inspect_strip(dim))))
            return true;
    return false;
}

/* Is it a condition that what it guards, padded with 0, makes idle? */
static bool is_idle(const struct phases *p, const struct lang_expr *e,
                    const struct lang_expr *guarded)
{
    if (e->kind != E_BINARY || (e->op != OP_GE && e->op != OP_LT))
        return false;
    const struct lang_expr *x = inspect_strip(e->args[0]);
    const struct axis *a = quotient_of(p, x);
    if (e->op == OP_LT)
        return a && reads_quotient(p, guarded, a, e->args[1]);
    a = a ? a : axis_of(p, x);
    return a && is_zero(e->args[1]) && reads_quotient(p, guarded, a, NULL);
}

/* Leaves the idle ones. */
static void drop_idle(struct phases *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->nconditions; i++)
        if (is_idle(p, p->condition[i].e, p->condition[i].guarded))
            p->condition[n++] = p->condition[i];
    p->nconditions = n;
}

static bool is_dropped(const struct phases *p, const struct lang_expr *e)
{
    for (uint32_t i = 0; i < p->nconditions; i++)
        if (p->condition[i].e == e)
            return true;
    return false;
}

/* Does anything in it but (i + p - t * u) / s and % s mention i or u other than as a whole
 * subscript u? Then phases differ in more than what they read. */
static bool is_plain(const struct phases *p, const struct lang_expr *e)
{
    if (quotient_of(p, e) || is_met(p, e) || axis_of(p, e))
        return true;
    for (uint32_t k = 0; k < p->n && e->kind == E_NAME; k++)
        if (e->sym == p->axis[k].i || e->sym == p->axis[k].u)
            return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        bool whole = false;
        for (uint32_t k = 0; k < p->n && e->kind == E_INDEX; k++)
            whole |= inspect_is_index(e->args[i], p->axis[k].u);
        if (!whole && !is_plain(p, e->args[i]))
            return false;
    }
    return !e->pad || is_plain(p, e->pad);
}

/* ---- equations ------------------------------------------------------------------------------- */

static struct lang_symbol *index_symbol(struct cg *g, const struct lang_symbol *like,
                                        struct lang_expr *n)
{
    struct lang_symbol *s = ARENA_NEW(g->a, struct lang_symbol);
    *s = *like;
    s->low = NULL;
    s->dims = ARENA_ARRAY(g->a, 1, struct lang_expr *);
    s->dims[0] = n;
    return s;
}

static void name_indices(struct cg *g, struct axis *a)
{
    struct lang_expr *rows = widened(g, a->i->dims[0]), *terms = widened(g, a->u->dims[0]);
    rows = with(g, OP_DIV, with(g, OP_ADD, rows, a->p + a->s - 1), a->s);
    terms = with(g, OP_DIV, with(g, OP_ADD, terms, a->n - 1 - a->c), a->n);
    a->j = index_symbol(g, a->i, rows);
    a->v = index_symbol(g, a->u, terms);
}

/* The phase that i is of: c with t / g * c = (i + p) / g modulo n. */
static struct lang_expr *phase_of(struct cg *g, const struct axis *a, struct span at)
{
    int64_t inverse = 1;
    while (inverse * (a->t / a->g) % a->n != 1)
        inverse++;
    struct lang_expr *e = with(g, OP_ADD, inspect_index_name(g, a->i, at), a->p);
    return with(g, OP_MOD, with(g, OP_MUL, with(g, OP_DIV, e, a->g), inverse), a->n);
}

/* Adds an index of z, and what y reads there. */
static void add_axis(struct lang_equation *z, struct lang_expr *read, struct lang_symbol *index,
                     struct lang_expr *at)
{
    z->index[z->nindex] = index;
    z->sym->dims[z->nindex] = index->dims[0];
    read->args[z->nindex++] = at;
    read->nargs = z->sym->rank = z->nindex;
}

static void add_axes(const struct phases *p, struct lang_equation *z, struct lang_expr *read)
{
    struct cg *g = p->g;
    for (uint32_t i = 0; i < p->eq->nindex; i++) {
        const struct axis *own = NULL;
        struct lang_expr *name = inspect_index_name(g, p->eq->index[i], p->sum->span);
        for (uint32_t k = 0; k < p->n; k++)
            own = p->axis[k].i == p->eq->index[i] ? &p->axis[k] : own;
        if (own)
            add_axis(z, read, own->j, with(g, OP_DIV, with(g, OP_ADD, name, own->p), own->s));
        else
            add_axis(z, read, p->eq->index[i], name);
    }
}

/* The sum over v of what e was over u. */
static struct lang_expr *phase_sum(const struct phases *p, const struct lang_expr *body)
{
    struct lang_expr *r = ARENA_NEW(p->g->a, struct lang_expr);
    *r = *p->sum;
    r->index = ARENA_ARRAY(p->g->a, r->nindex, struct lang_symbol *);
    for (uint32_t i = 0; i < r->nindex; i++) {
        r->index[i] = p->sum->index[i];
        for (uint32_t k = 0; k < p->n; k++)
            r->index[i] = p->axis[k].u == r->index[i] ? p->axis[k].v : r->index[i];
    }
    r->args = ARENA_ARRAY(p->g->a, 1, struct lang_expr *);
    r->args[0] = rewritten(p, body);
    r->height = 1 + r->args[0]->height;
    return r;
}

static struct lang_expr *cast_to(struct cg *g, enum dtype t, struct lang_expr *x)
{
    if (x->type == t)
        return x;
    struct lang_expr *e =
        node(g, x->span, (struct lang_expr){.kind = E_CAST, .type = t, .is_implicit = true}, 1);
    e->args[0] = x;
    e->height = 1 + x->height;
    return e;
}

/* The name of a phase: phase_1_0. */
static const char *phase_name(const struct phases *p)
{
    struct buf b = buf_in(p->g->a);
    buf_printf(&b, "phase");
    for (uint32_t k = 0; k < p->n; k++)
        buf_printf(&b, "_%d", (int)p->axis[k].c);
    return buf_text(&b);
}

/* Makes z of a phase, in the type in which the sum's value is used at once; the read of it. */
static struct lang_expr *make(struct phases *p, const struct lang_expr *body,
                              struct phases_sum *out)
{
    struct cg *g = p->g;
    const struct lang_expr *root = p->eq->rhs;
    const bool is_all = root->kind == E_CAST && root->args[0] == p->sum;
    struct lang_equation *z = ARENA_NEW(g->a, struct lang_equation);
    struct lang_expr *read = node(g, p->sum->span, (struct lang_expr){.kind = E_INDEX}, MOST_RANK);
    for (uint32_t k = 0; k < p->n; k++)
        name_indices(g, &p->axis[k]);
    *z = (struct lang_equation){.span = p->sum->span, .sym = ARENA_NEW(g->a, struct lang_symbol)};
    *z->sym = (struct lang_symbol){.kind = SYM_TENSOR,
                                   .name = phase_name(p),
                                   .span = p->sum->span,
                                   .type = is_all ? root->type : p->sum->type,
                                   .dims = ARENA_ARRAY(g->a, MOST_RANK, struct lang_expr *),
                                   .def = z};
    z->index = ARENA_ARRAY(g->a, MOST_RANK, struct lang_symbol *);
    add_axes(p, z, read);
    z->rhs = cast_to(g, z->sym->type, phase_sum(p, body));
    read->type = z->sym->type;
    read->name = z->sym->name;
    read->sym = z->sym;
    read->height = 4;
    *VEC_PUSH(g->a, &out->z) = z;
    return cast_to(g, p->sum->type, read);
}

/* condition ? x : y */
static struct lang_expr *chosen(struct cg *g, struct lang_expr *condition, struct lang_expr *x,
                                struct lang_expr *y)
{
    struct lang_expr *e = node(g, x->span, (struct lang_expr){.kind = E_COND, .type = x->type}, 3);
    e->args[0] = condition;
    e->args[1] = x;
    e->args[2] = y;
    for (uint32_t i = 0; i < 3; i++)
        e->height = e->args[i]->height >= e->height ? e->args[i]->height + 1 : e->height;
    return e;
}

/* Has the phase no term at all? */
static bool is_empty(const struct axis *a)
{
    int64_t n;
    return lang_const_int(a->u->dims[0], &n) && n <= a->c;
}

static struct lang_expr *equals(struct cg *g, struct lang_expr *x, int64_t y)
{
    struct lang_expr *e = binary(g, OP_EQ, x, number(g, x->span, y));
    e->type = DT_BOOL;
    return e;
}

static struct lang_expr *nothing(const struct phases *p)
{
    return node(p->g, p->sum->span, (struct lang_expr){.kind = E_FLOAT, .type = p->sum->type}, 0);
}

/* The reads of all phases of the axes from k on, by which of them an element is in. */
static struct lang_expr *phases_from(struct phases *p, const struct lang_expr *body, uint32_t k,
                                     bool empty, struct phases_sum *out)
{
    struct cg *g = p->g;
    struct lang_expr *all = NULL;
    if (k == p->n && empty)
        return nothing(p);
    if (k == p->n)
        return make(p, body, out);
    struct axis *a = &p->axis[k];
    for (int64_t c = a->n; c-- > 0;) {
        a->c = c;
        struct lang_expr *one = phases_from(p, body, k + 1, empty || is_empty(a), out);
        all = all ? chosen(g, equals(g, phase_of(g, a, p->sum->span), c), one, all) : one;
    }
    if (a->g == 1)
        return all;
    struct lang_expr *at = with(g, OP_ADD, inspect_index_name(g, a->i, p->sum->span), a->p);
    return chosen(g, equals(g, with(g, OP_MOD, at, a->g), 0), all, nothing(p));
}

static bool has_known_sizes(const struct phases *p)
{
    int64_t n;
    for (uint32_t i = 0; i < p->eq->nindex; i++)
        if (!lang_const_int(p->eq->index[i]->dims[0], &n))
            return false;
    for (uint32_t i = 0; i < p->sum->nindex; i++)
        if (!lang_const_int(p->sum->index[i]->dims[0], &n))
            return false;
    return true;
}

static void split(struct cg *g, const struct lang_equation *eq, const struct lang_expr *sum,
                  phases_list *list)
{
    struct phases p = {.g = g, .eq = eq, .sum = sum};
    const struct inlining none = {0};
    int64_t all = 1;
    if (sum->reduce != RED_SUM || !dtype_is_float(sum->type) || eq->nindex > MOST_RANK)
        return;
    const struct lang_expr *body = inlined(g, sum->args[0], &none);
    find_conditions(&p, body, OF_TERM);
    drop_idle(&p);
    for (uint32_t k = 0; k < p.n && all <= MOST_PHASES; k++)
        all *= p.axis[k].n;
    const int64_t most = has_known_sizes(&p) ? MOST_PHASES : MOST_OPEN_PHASES;
    if (p.n == 0 || all > most || !is_plain(&p, body))
        return;
    struct phases_sum *out = VEC_PUSH(g->a, list);
    *out = (struct phases_sum){.sum = sum};
    struct lang_expr *read = phases_from(&p, body, 0, false, out);
    *VEC_PUSH(g->a, &g->outlined) = (struct cg_outlined){.reduce = sum, .read = read};
    g->reducing->v.n = 0;
}

static void walk(struct cg *g, const struct lang_equation *eq, const struct lang_expr *e,
                 phases_list *list)
{
    if (e->kind == E_REDUCE) {
        split(g, eq, e, list);
        return;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!lang_guards(e) || i == 0)
            walk(g, eq, e->args[i], list);
}

void phases_split(struct cg *g, phases_list *list)
{
    for (size_t i = 0; i < g->spec->compute.n; i++)
        walk(g, g->spec->compute.v[i], g->spec->compute.v[i]->rhs, list);
}

void phases_undo(struct cg *g, const struct phases_sum *s)
{
    for (size_t i = 0; i < g->outlined.n; i++)
        if (g->outlined.v[i].reduce == s->sum)
            g->outlined.v[i].read = s->sum;
    g->reducing->v.n = 0;
}
