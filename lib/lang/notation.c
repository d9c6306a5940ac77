/* softmax[j](e) and its like: what takes several lines of maxima, sums and exp(), in one.
 *
 *     p[i, j] = softmax[j](s[i, j] * scale)
 *
 * is read as these equations, whose left sides no other text can name:
 *
 *     arg[i, j] = s[i, j] * scale                  an element by itself needs none
 *     max[i]    = max[j](arg[i, j])
 *     exp[i, j] = exp(arg[i, j] - max[i])
 *     sum[i]    = sum[j](exp[i, j])
 *     p[i, j]   = exp[i, j] / sum[i]
 *
 * and a variance as
 *
 *     mean[i] = sum[j](arg[i, j]) / n
 *     var[i]  = sum[j]((arg[i, j] - mean[i]) * (arg[i, j] - mean[i])) / n
 *
 * so that who compiles or evaluates equations meets nothing new, and nothing is computed twice. Two
 * notations of the same expression share what is the same in both. A part that can't be an equation
 * stands where it is used: in a recurrence, over a range that the launch does not know, and under a
 * condition, which may be all that keeps its reads in range or a divisor from 0.
 */
#include <config.h>

#include "lang/lang_int.h"

/* What stands for a notation: its argument, the terms of the sum, the maximum and the sum. */
struct parts {
    struct checker *c;
    const struct lang_expr *of; /* the notation */
    uint32_t n;
    struct lang_symbol *index[LANG_MAX_RANK]; /* those of its brackets, as around it */
    struct lang_symbol *range[LANG_MAX_RANK]; /* where each runs */
    struct lang_expr *arg, *term, *top, *total;
};

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Checked, of x's type. Where an operand is NULL, it could not be made, nor can this. */
static struct lang_expr *node(const struct parts *b, enum lang_expr_kind kind, struct lang_expr *x,
                              struct lang_expr *y)
{
    if (!x || (kind == E_BINARY && !y))
        return NULL;
    struct lang_expr *e = expr_new(b->c->a, kind, b->of->span);
    e->type = x->type;
    e->nargs = y ? 2 : 1;
    e->args = ARENA_ARRAY(b->c->a, 2, struct lang_expr *);
    e->args[0] = x;
    e->args[1] = y;
    e->height = 1 + (y && y->height > x->height ? y->height : x->height);
    return e->height <= LANG_MAX_HEIGHT ? e : NULL;
}

static struct lang_expr *binary(const struct parts *b, enum lang_op op, struct lang_expr *x,
                                struct lang_expr *y)
{
    struct lang_expr *e = node(b, E_BINARY, x, y);
    if (e)
        e->op = op;
    return e;
}

static struct lang_expr *call(const struct parts *b, enum lang_builtin fn, struct lang_expr *x)
{
    struct lang_expr *e = node(b, E_CALL, x, NULL);
    if (!e)
        return NULL;
    e->fn = fn;
    e->name = lang_builtin_name(fn);
    e->fast = e->type == DT_F32 && b->c->opt.fast_math;
    return e;
}

/* What was used once already. */
static struct lang_expr *again(const struct parts *b, const struct lang_expr *e)
{
    return e ? expr_renamed(b->c->a, e, 0, NULL, NULL) : NULL;
}

/* The reduction of e over the notation's indices, of which it has its own. */
static struct lang_expr *reduction(const struct parts *b, enum lang_reduce how,
                                   const struct lang_expr *e)
{
    struct arena *a = b->c->a;
    struct lang_symbol **own = ARENA_ARRAY(a, b->n, struct lang_symbol *);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct lang_symbol *r = b->range[i];
        struct lang_symbol *s = own[i] = ARENA_NEW(a, struct lang_symbol);
        *s = *r;
        s->dims = ARENA_NEW(a, struct lang_expr *);
        s->dims[0] = expr_renamed(a, r->dims[0], i, b->index, own);
        s->low = r->low ? expr_renamed(a, r->low, i, b->index, own) : NULL;
        if (!s->dims[0] || (r->low && !s->low))
            return NULL;
    }
    struct lang_expr *of = e ? expr_renamed(a, e, b->n, b->index, own) : NULL;
    struct lang_expr *reduce = node(b, E_REDUCE, of, NULL);
    if (!reduce)
        return NULL;
    reduce->reduce = how;
    reduce->nindex = b->n;
    reduce->index = own;
    return reduce;
}

/* ---- equations of their own ------------------------------------------------------------------ */

static bool mentions(const struct lang_expr *e, const struct lang_symbol *sym)
{
    if (e->kind == E_NAME && e->sym == sym)
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (mentions(e->args[i], sym))
            return true;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (mentions(e->index[i]->dims[0], sym) ||
            (e->index[i]->low && mentions(e->index[i]->low, sym)))
            return true;
    return e->pad && mentions(e->pad, sym);
}

struct index_list {
    struct lang_symbol *v[LANG_MAX_RANK];
    uint32_t n;
};

/* The indices around the notation that e depends on, outer ones first; false: there are too many.
 */
static bool find_indices(const struct lang_scope *s, const struct lang_expr *e,
                         struct index_list *out)
{
    if (!s)
        return true;
    if (!find_indices(s->up, e, out))
        return false;
    for (size_t i = 0; i < s->syms.n; i++) {
        if (s->syms.v[i]->kind != SYM_INDEX || !mentions(e, s->syms.v[i]))
            continue;
        if (out->n == LANG_MAX_RANK)
            return false;
        out->v[out->n++] = s->syms.v[i];
    }
    return true;
}

/* Does it run from 0 to an end that the launch knows, in the notation too? */
static bool has_extent(const struct parts *b, const struct lang_symbol *index)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (b->index[i] == index && b->range[i] != index)
            return false;
    return !index->low && !lang_unknown_at_launch(index->dims[0]);
}

/* The extent of what e reads by the index itself. */
static struct lang_expr *extent_read(const struct lang_expr *e, const struct lang_symbol *index)
{
    struct lang_expr *found = NULL;
    for (uint32_t i = 0; i < e->nargs && !found; i++) {
        const struct lang_expr *arg = e->args[i];
        if (e->kind == E_INDEX && !e->pad && arg->kind == E_NAME && arg->sym == index)
            return e->sym->dims ? e->sym->dims[i] : NULL;
        found = extent_read(arg, index);
    }
    return found;
}

/* Is the element there for every value of the indices around? */
static bool is_inside(const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++) {
        const struct lang_symbol *sub = e->args[i]->kind == E_NAME ? e->args[i]->sym : NULL;
        if (!sub || sub->kind != SYM_INDEX || sub->low || !e->sym->dims ||
            !range_is_within(sub->dims[0], e->sym->dims[i]))
            return false;
    }
    return true;
}

/* A quotient or a remainder of integers by what may be 0; calls that stay may hold one. */
static bool may_divide_by_zero(const struct lang_expr *e)
{
    int64_t by;
    const bool divides = e->kind == E_BINARY && (e->op == OP_DIV || e->op == OP_MOD);
    if (e->kind == E_CALL && e->func)
        return true;
    if (!(divides || (e->kind == E_CALL && e->fn == FN_CEIL_DIV)) || !dtype_is_int(e->type))
        return false;
    return !lang_const_int(e->args[1], &by) || by == 0;
}

/* Has e a value whatever the indices around are? */
static bool has_value(const struct lang_expr *e)
{
    if (may_divide_by_zero(e) || (e->kind == E_INDEX && !e->pad && !is_inside(e)))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!has_value(e->args[i]))
            return false;
    for (uint32_t i = 0; i < e->nindex; i++)
        if (!has_value(e->index[i]->dims[0]) || (e->index[i]->low && !has_value(e->index[i]->low)))
            return false;
    return !e->pad || has_value(e->pad);
}

/* e with indices of its own, which are those of the left side of an equation; NULL: none is right
 * for all values of its indices. */
static struct lang_expr *right_side(const struct parts *b, const struct lang_expr *e,
                                    const struct index_list *around, struct lang_symbol **left)
{
    bool as_around = b->c->guarded == 0;
    for (uint32_t i = 0; i < around->n; i++) {
        struct lang_symbol *s = left[i] = ARENA_NEW(b->c->a, struct lang_symbol);
        *s = *around->v[i];
        s->id = i;
        if (has_extent(b, around->v[i]))
            continue;
        struct lang_expr *extent = extent_read(e, around->v[i]);
        if (!extent)
            return NULL;
        as_around = s->written = false;
        s->low = NULL;
        s->dims = ARENA_NEW(b->c->a, struct lang_expr *);
        s->dims[0] = extent;
    }
    struct lang_expr *own = expr_renamed(b->c->a, e, around->n, around->v, left);
    if (!own || !(as_around || has_value(own)))
        return NULL;
    expr_settle(own); /* as it is in what it is compared with */
    return own;
}

struct pair {
    const struct lang_symbol *x, *y;
    const struct pair *up;
};

static bool same_symbol(const struct lang_symbol *x, const struct lang_symbol *y,
                        const struct pair *p)
{
    while (p && p->x != x && p->y != y)
        p = p->up;
    return p ? p->x == x && p->y == y : x == y;
}

/* Do both have the same value wherever the paired indices have? */
static bool same(const struct lang_expr *x, const struct lang_expr *y, const struct pair *p)
{
    struct pair own[LANG_MAX_RANK];
    if (x->kind != y->kind || x->type != y->type || x->lanes != y->lanes || x->op != y->op ||
        x->fn != y->fn || x->func != y->func || x->reduce != y->reduce || x->fast != y->fast ||
        x->rounded != y->rounded || x->to_f16 != y->to_f16 || x->ival != y->ival ||
        x->nargs != y->nargs || x->nindex != y->nindex || x->nindex > LANG_MAX_RANK ||
        !x->pad != !y->pad || memcmp(&x->fval, &y->fval, sizeof x->fval) != 0 ||
        !same_symbol(x->sym, y->sym, p))
        return false;
    for (uint32_t i = 0; i < x->nindex; i++) {
        const struct lang_symbol *u = x->index[i], *v = y->index[i];
        if (!u->low != !v->low || (u->low && !same(u->low, v->low, p)) ||
            !same(u->dims[0], v->dims[0], p))
            return false;
        own[i] = (struct pair){u, v, p};
        p = &own[i];
    }
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!same(x->args[i], y->args[i], p))
            return false;
    return !x->pad || same(x->pad, y->pad, p);
}

/* The equation of another notation that says the same; NULL: there is none. */
static const struct lang_equation *find_same(const struct checker *c, const struct lang_expr *e,
                                             uint32_t n, struct lang_symbol *const *left)
{
    for (size_t k = 0; k < c->made->n; k++) {
        const struct lang_equation *q = c->made->v[k];
        struct pair pairs[LANG_MAX_RANK];
        bool is_same = q->sym->made && q->nindex == n;
        for (uint32_t i = 0; is_same && i < n; i++) {
            pairs[i] = (struct pair){q->index[i], left[i], i ? &pairs[i - 1] : NULL};
            is_same = expr_same(q->index[i]->dims[0], left[i]->dims[0]);
        }
        if (is_same && same(q->rhs, e, n ? &pairs[n - 1] : NULL))
            return q;
    }
    return NULL;
}

static bool is_taken(const struct checker *c, const char *name)
{
    for (size_t k = 0; k < c->made->n; k++)
        if (strcmp(c->made->v[k]->sym->name, name) == 0)
            return true;
    return lang_find(c->scope, name) != NULL;
}

static const struct lang_equation *make_equation(const struct parts *b, struct lang_expr *e,
                                                 const char *part, uint32_t n,
                                                 struct lang_symbol **left)
{
    struct checker *c = b->c;
    const char *name = arena_printf(c->a, "%s_%s", b->of->name, part), *own = name;
    for (unsigned k = 2; is_taken(c, own); k++)
        own = arena_printf(c->a, "%s%u", name, k);
    struct lang_equation *q = ARENA_NEW(c->a, struct lang_equation);
    struct lang_symbol *sym = ARENA_NEW(c->a, struct lang_symbol);
    *sym = (struct lang_symbol){.kind = SYM_TENSOR,
                                .name = own,
                                .span = b->of->span,
                                .type = e->type,
                                .rank = n,
                                .dims = ARENA_ARRAY(c->a, n, struct lang_expr *),
                                .def = q,
                                .used = true,
                                .made = true};
    *q = (struct lang_equation){
        .span = b->of->span, .sym = sym, .nindex = n, .index = left, .rhs = e};
    for (uint32_t i = 0; i < n; i++)
        sym->dims[i] = left[i]->dims[0];
    return *VEC_PUSH(c->a, c->made) = q;
}

static struct lang_expr *read_of(const struct parts *b, const struct lang_symbol *sym,
                                 const struct index_list *at)
{
    struct arena *a = b->c->a;
    struct lang_expr *e = expr_new(a, E_INDEX, b->of->span);
    e->name = sym->name;
    e->sym = sym->def->sym;
    e->type = sym->type;
    e->height = 2;
    e->nargs = at->n;
    e->args = ARENA_ARRAY(a, at->n, struct lang_expr *);
    for (uint32_t i = 0; i < at->n; i++) {
        e->args[i] = expr_new(a, E_NAME, b->of->span);
        e->args[i]->name = at->v[i]->name;
        e->args[i]->sym = at->v[i];
        e->args[i]->type = DT_I64;
    }
    return e;
}

/* e as the right side of an equation, and what reads that; or e itself where it can't be one. */
static struct lang_expr *outlined(const struct parts *b, struct lang_expr *e, const char *part)
{
    struct checker *c = b->c;
    struct index_list around = {0};
    if (!e || !c->made || c->made->n >= 2 * LANG_MAX_EQUATIONS ||
        !find_indices(c->scope, e, &around))
        return e;
    struct lang_symbol **left = ARENA_ARRAY(c->a, around.n, struct lang_symbol *);
    struct lang_expr *own = right_side(b, e, &around, left);
    if (!own)
        return e;
    const struct lang_equation *q = find_same(c, own, around.n, left);
    if (!q)
        q = make_equation(b, own, part, around.n, left);
    return read_of(b, q->sym, &around);
}

/* ---- the notations --------------------------------------------------------------------------- */

/* The maximum, the terms and the sum of a softmax. */
static void soften(struct parts *b)
{
    b->top = outlined(b, reduction(b, RED_MAX, b->arg), "max");
    struct lang_expr *x = binary(b, OP_SUB, again(b, b->arg), again(b, b->top));
    b->term = outlined(b, call(b, FN_EXP, x), "exp");
    b->total = outlined(b, reduction(b, RED_SUM, b->term), "sum");
}

static struct lang_expr *softmax(struct parts *b)
{
    soften(b);
    return binary(b, OP_DIV, again(b, b->term), again(b, b->total));
}

static struct lang_expr *log_softmax(struct parts *b)
{
    soften(b);
    struct lang_expr *x = binary(b, OP_SUB, again(b, b->arg), again(b, b->top));
    return binary(b, OP_SUB, x, call(b, FN_LOG, again(b, b->total)));
}

static struct lang_expr *logsumexp(struct parts *b)
{
    soften(b);
    return binary(b, OP_ADD, again(b, b->top), call(b, FN_LOG, again(b, b->total)));
}

/* Is e a dimension, or is it made of such and of constants without a '-'? */
static bool is_natural(const struct lang_expr *e)
{
    int64_t n;
    if (lang_const_int(e, &n))
        return n >= 0;
    if (e->kind == E_NAME)
        return e->sym->kind == SYM_DIM ||
               (e->sym->kind == SYM_INDEX && (!e->sym->low || is_natural(e->sym->low)));
    const bool keeps = e->kind == E_CAST ||
                       (e->kind == E_CALL && (e->fn == FN_MIN || e->fn == FN_MAX)) ||
                       (e->kind == E_BINARY &&
                        (e->op == OP_ADD || e->op == OP_MUL || e->op == OP_DIV || e->op == OP_MOD));
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_natural(e->args[i]))
            return false;
    return keeps;
}

/* e is low, or low and something more. */
static bool is_from(const struct lang_expr *e, const struct lang_expr *low)
{
    if (expr_same(e, low))
        return true;
    return e->kind == E_BINARY && e->op == OP_ADD &&
           ((is_from(e->args[0], low) && is_natural(e->args[1])) ||
            (is_from(e->args[1], low) && is_natural(e->args[0])));
}

/* low is an index, or that + 1, and `high` is where it ends. */
static bool is_below(const struct lang_expr *low, const struct lang_expr *high)
{
    int64_t add = 0;
    if (low->kind == E_BINARY && low->op == OP_ADD && lang_const_int(low->args[1], &add))
        low = low->args[0];
    return low->kind == E_NAME && low->sym->kind == SYM_INDEX && add <= 1 && low->sym->dims &&
           expr_same(low->sym->dims[0], high);
}

/* One end of a range, an i64 as indices are: a number by itself may be an i32. */
static struct lang_expr *end_of(const struct parts *b, const struct lang_expr *e)
{
    struct lang_expr *own = again(b, e);
    if (own)
        check_convert(b->c, own, DT_I64);
    return own;
}

/* How many values the index has; of a range that may end below its beginning not fewer than 0. */
static struct lang_expr *count_of(const struct parts *b, const struct lang_symbol *r)
{
    struct lang_expr *n = end_of(b, r->dims[0]);
    if (r->low)
        n = binary(b, OP_SUB, n, end_of(b, r->low));
    if (!n || (r->low ? is_from(r->dims[0], r->low) || is_below(r->low, r->dims[0])
                      : is_natural(r->dims[0])))
        return n;
    struct lang_expr *nothing = expr_new(b->c->a, E_INT, b->of->span);
    nothing->type = n->type;
    struct lang_expr *e = node(b, E_CALL, n, nothing);
    if (!e)
        return NULL;
    e->fn = FN_MAX;
    e->name = lang_builtin_name(FN_MAX);
    return e;
}

/* x divided by how many values the indices have, which do not depend on each other. */
static struct lang_expr *averaged(const struct parts *b, struct lang_expr *x)
{
    struct lang_expr *n = NULL;
    for (uint32_t i = 0; i < b->n; i++) {
        struct lang_expr *count = count_of(b, b->range[i]);
        n = n ? binary(b, OP_MUL, n, count) : count;
    }
    if (!n || !x)
        return NULL;
    check_convert(b->c, n, x->type);
    return binary(b, OP_DIV, x, n);
}

static struct lang_expr *mean(struct parts *b)
{
    return outlined(b, averaged(b, reduction(b, RED_SUM, b->arg)), "mean");
}

/* From differences to the mean, which are written out: the strategy reduce knows them so, and makes
 * both in one sweep. */
static struct lang_expr *variance(struct parts *b)
{
    const struct lang_expr *m = mean(b);
    struct lang_expr *x = binary(b, OP_SUB, again(b, b->arg), again(b, m));
    struct lang_expr *square = binary(b, OP_MUL, x, again(b, x));
    return outlined(b, averaged(b, reduction(b, RED_SUM, square)), "var");
}

static struct lang_expr *deviation(struct parts *b)
{
    return call(b, FN_SQRT, variance(b));
}

static struct lang_expr *norm1(struct parts *b)
{
    return reduction(b, RED_SUM, call(b, FN_ABS, again(b, b->arg)));
}

static struct lang_expr *norm2(struct parts *b)
{
    struct lang_expr *square = binary(b, OP_MUL, again(b, b->arg), again(b, b->arg));
    return call(b, FN_SQRT, outlined(b, reduction(b, RED_SUM, square), "square"));
}

static const struct notation {
    const char *name;
    bool binds;   /* Its indices are its own, as a reduction's are. Else they are indices around. */
    bool is_word; /* of the language: nothing else is called so. */
    bool averages; /* Its ranges are counted by themselves. */
    struct lang_expr *(*value)(struct parts *b);
} notations[] = {
    {"softmax", false, true, false, softmax},    {"log_softmax", false, true, false, log_softmax},
    {"logsumexp", true, true, false, logsumexp}, {"mean", true, false, true, mean},
    {"var", true, false, true, variance},        {"std", true, false, true, deviation},
    {"norm1", true, false, false, norm1},        {"norm2", true, false, false, norm2},
};
enum { NNOTATION = sizeof notations / sizeof *notations };

static const struct notation *find_notation(const char *name)
{
    for (size_t i = 0; i < NNOTATION; i++)
        if (strcmp(notations[i].name, name) == 0)
            return &notations[i];
    return NULL;
}

bool lang_is_notation(const char *name)
{
    return find_notation(name) != NULL;
}

bool lang_binds(const struct lang_expr *e)
{
    const struct notation *how = e->name ? find_notation(e->name) : NULL;
    return !how || how->binds;
}

bool lang_is_notation_word(const char *name)
{
    const struct notation *how = find_notation(name);
    return how && how->is_word;
}

const char *lang_notation_name(size_t i)
{
    return i < NNOTATION ? notations[i].name : NULL;
}

/* ---- checking -------------------------------------------------------------------------------- */

/* "'i', 'j'": the indices around, outer ones first. */
static void list_indices(const struct lang_scope *s, struct buf *out)
{
    if (!s)
        return;
    list_indices(s->up, out);
    for (size_t i = 0; i < s->syms.n; i++)
        if (s->syms.v[i]->kind == SYM_INDEX)
            buf_printf(out, "%s'%s'", out->len ? ", " : "", s->syms.v[i]->name);
}

static bool no_index(const struct parts *b, const struct lang_symbol *given)
{
    struct checker *c = b->c;
    struct buf around = buf_in(c->a);
    list_indices(c->scope, &around);
    if (lang_find(c->scope, given->name))
        diag_error(c->d, given->span, "'%s' is not an index, and %s is a function of one",
                   given->name, b->of->name);
    else
        diag_error(c->d, given->span, "%s is a function of an index around it, and '%s' is none",
                   b->of->name, given->name);
    if (around.len)
        diag_note(c->d, b->of->span, "the indices here are %s", buf_text(&around));
    return false;
}

/* The indices in the brackets are the ones around that have their names. */
static void take_around(struct parts *b, const struct lang_scope *s)
{
    if (!s)
        return;
    take_around(b, s->up);
    for (size_t i = 0; i < s->syms.n; i++)
        for (uint32_t k = 0; k < b->of->nindex; k++) {
            struct lang_symbol *given = b->of->index[k], *sym = s->syms.v[i];
            if (sym != lang_find(b->c->scope, given->name))
                continue;
            b->index[b->n] = sym;
            b->range[b->n++] = given->written ? given : sym;
        }
}

/* What the range of index i depends on among those from number `from` on; NULL: none of them. */
static const struct lang_symbol *depends_on(const struct parts *b, uint32_t i, uint32_t from)
{
    const struct lang_symbol *r = b->range[i];
    for (uint32_t k = from; k < b->n; k++)
        if (mentions(r->dims[0], b->index[k]) || (r->low && mentions(r->low, b->index[k])))
            return b->index[k];
    return NULL;
}

/* Puts each index behind those on which its range depends. */
static bool sort_ranges(struct parts *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t pick = i;
        while (pick < b->n && depends_on(b, pick, i))
            pick++;
        if (pick == b->n)
            return diag_error(b->c->d, b->range[i]->span,
                              "the range of '%s' can't depend on '%s', which %s runs through",
                              b->index[i]->name, depends_on(b, i, i)->name, b->of->name);
        struct lang_symbol *index = b->index[pick], *range = b->range[pick];
        for (; pick > i; pick--) {
            b->index[pick] = b->index[pick - 1];
            b->range[pick] = b->range[pick - 1];
        }
        b->index[i] = index;
        b->range[i] = range;
    }
    return true;
}

static bool find_around(struct parts *b)
{
    struct checker *c = b->c;
    for (uint32_t i = 0; i < b->of->nindex; i++) {
        struct lang_symbol *given = b->of->index[i];
        const struct lang_symbol *s = lang_find(c->scope, given->name);
        if (!s || s->kind != SYM_INDEX)
            return no_index(b, given);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(b->of->index[k]->name, given->name) == 0)
                return diag_error(c->d, given->span, "the index '%s' is there twice", given->name);
        if (given->written && !check_index_range(c, given, NULL))
            return false;
    }
    take_around(b, c->scope);
    return sort_ranges(b);
}

static bool bind_indices(struct parts *b, const struct notation *how, struct lang_scope *inner)
{
    if (!check_own_indices(b->c, b->of, inner))
        return false;
    for (; b->n < b->of->nindex; b->n++)
        b->index[b->n] = b->range[b->n] = b->of->index[b->n];
    for (uint32_t i = 0; i < b->n && how->averages; i++)
        if (depends_on(b, i, 0))
            return diag_error(b->c->d, b->range[i]->span,
                              "the range of '%s' can't depend on '%s', which %s runs through",
                              b->index[i]->name, depends_on(b, i, 0)->name, b->of->name);
    return true;
}

/* The argument, a float of at least 32 bits. */
static bool check_argument(struct checker *c, const struct lang_expr *e)
{
    struct lang_expr *x = e->args[0];
    if (!check_expr(c, x) || !check_scalar(c, x, arena_printf(c->a, "%s's argument", e->name)))
        return false;
    if (x->type == DT_VOID)
        return diag_error(c->d, x->span, "this function returns no value");
    if (!dtype_is_float(x->type) && !c->guessing)
        return diag_error(c->d, x->span, "%s takes floats, and this is %s; write f32(...)", e->name,
                          dtype_name(x->type));
    check_convert(c, x, dtype_is_float(x->type) ? type_promote(x->type) : DT_F32);
    return true;
}

/* An element, or a number, that costs nothing to name again. */
static bool is_plain(const struct lang_expr *e)
{
    while (e->kind == E_CAST && e->is_implicit)
        e = e->args[0];
    return e->nargs == 0 || (e->kind == E_INDEX && !e->pad);
}

static struct lang_expr *build(struct parts *b, const struct notation *how)
{
    struct lang_expr *x = b->of->args[0];
    b->arg = is_plain(x) ? x : outlined(b, x, "arg");
    return how->value(b);
}

bool check_notation(struct checker *c, struct lang_expr *e)
{
    const struct notation *how = find_notation(e->name);
    struct lang_scope inner = {.up = c->scope}, *outer = c->scope;
    struct parts b = {.c = c, .of = e};
    struct lang_expr *value = NULL;
    if (c->place != IN_COMPUTE)
        return diag_error(c->d, e->span, "%s[...] is for compute: and reference:%s", e->name,
                          c->place == IN_BODY ? "; write a loop here" : "");
    if (e->nindex > LANG_MAX_RANK)
        return diag_error(c->d, e->span, "%s has at most %d indices", e->name, LANG_MAX_RANK);
    c->scope = &inner;
    const bool good = (how->binds ? bind_indices(&b, how, &inner) : find_around(&b)) &&
                      check_argument(c, e);
    if (good)
        value = build(&b, how);
    c->scope = outer;
    if (good && !value)
        return diag_error(c->d, e->span, "this %s is too long; give its argument a name", e->name);
    if (value)
        *e = *value;
    return value != NULL;
}
