/* Turns conditions around a reduction's terms into its range (chain.h).
 *
 *     sum[j](j <= i && ok[i] ? x : 0)   is   sum[j in 0..i + 1](ok[i] ? x : 0)
 *
 * Where the condition does not hold the term is what the reduction begins with, so that nothing
 * changes but the work.
 */
#include <config.h>

#include "lower/chain/chain.h"

#include <math.h>

enum { MOST_TERMS = 16 };

/* A condition that must hold, or (negated) must not. */
struct clause {
    struct lang_expr *e;
    bool negated;
};
struct clauses {
    struct clause v[MOST_TERMS];
    uint32_t n;
    bool too_many;
};

struct narrow {
    struct cg *g;
    const struct lang_symbol *j;
    const struct chain_runs *runs; /* that have begun; NULL: there are none */
    struct lang_expr **low, **high;
};

/* ---- numbers --------------------------------------------------------------------------------- */

/* NAN: it is no constant. */
static double constant(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_INT: return (double)(int64_t)e->ival;
    case E_FLOAT: return e->fval;
    case E_CAST: return constant(e->args[0]);
    case E_UNARY: return e->op == OP_NEG ? -constant(e->args[0]) : NAN;
    default: return NAN;
    }
}

/* Is it what the reduction begins with? */
static bool is_identity(enum lang_reduce how, const struct lang_expr *e)
{
    const double v = constant(e);
    switch ((int)how) {
    case RED_SUM: return v == 0;
    case RED_PROD: return v == 1;
    case RED_MAX: return v == -INFINITY;
    case RED_MIN: return v == INFINITY;
    default: return false;
    }
}

static struct lang_expr *extreme(struct cg *g, bool is_max, struct lang_expr *x,
                                 struct lang_expr *y)
{
    if (!x)
        return y;
    struct lang_expr *e = matmul_binary(g, OP_ADD, x, y);
    e->kind = E_CALL;
    e->fn = is_max ? FN_MAX : FN_MIN;
    return e;
}

static struct lang_expr *number(struct cg *g, int64_t v)
{
    return lx_int(g->a, v);
}

/* ---- clauses --------------------------------------------------------------------------------- */

/* Takes e apart where all parts must hold. */
static void collect(struct clauses *c, struct lang_expr *e, bool negated)
{
    if (e->kind == E_UNARY && e->op == OP_NOT) {
        collect(c, e->args[0], !negated);
    } else if (e->kind == E_BINARY && e->op == (negated ? OP_LOR : OP_LAND)) {
        collect(c, e->args[0], negated);
        collect(c, e->args[1], negated);
    } else if (c->n == MOST_TERMS) {
        c->too_many = true;
    } else {
        c->v[c->n++] = (struct clause){e, negated};
    }
}

static struct lang_expr *negation(struct cg *g, struct lang_expr *e)
{
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = (struct lang_expr){.kind = E_UNARY,
                            .op = OP_NOT,
                            .type = DT_BOOL,
                            .span = e->span,
                            .nargs = 1,
                            .args = ARENA_ARRAY(g->a, 1, struct lang_expr *),
                            .height = e->height + 1};
    c->args[0] = e;
    return c;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

/* e = times * j + rest, of i64; rest NULL: 0. */
struct linear {
    int times;
    struct lang_expr *rest;
};

static struct lang_expr *sum_of(struct cg *g, struct lang_expr *x, struct lang_expr *y, bool minus)
{
    if (!y)
        return x;
    if (!x && !minus)
        return y;
    return matmul_binary(g, minus ? OP_SUB : OP_ADD, x ? x : number(g, 0), y);
}

/* False: it is not linear, or not of i64. */
static bool linear(const struct narrow *n, struct lang_expr *e, struct linear *l)
{
    struct linear x, y;
    *l = (struct linear){.rest = e};
    if (e->type != DT_I64)
        return false;
    if (!chain_mentions(e, n->j))
        return true;
    if (inspect_is_index(e, n->j)) {
        *l = (struct linear){.times = 1};
        return true;
    }
    const bool minus = e->op == OP_SUB;
    if (e->kind != E_BINARY || (e->op != OP_ADD && !minus) || !linear(n, e->args[0], &x) ||
        !linear(n, e->args[1], &y))
        return false;
    *l = (struct linear){x.times + (minus ? -y.times : y.times),
                         sum_of(n->g, x.rest, y.rest, minus)};
    return true;
}

static enum lang_op inverse(enum lang_op op)
{
    switch ((int)op) {
    case OP_LT: return OP_GE;
    case OP_LE: return OP_GT;
    case OP_GT: return OP_LE;
    case OP_GE: return OP_LT;
    default: return op;
    }
}

static enum lang_op mirrored(enum lang_op op)
{
    switch ((int)op) {
    case OP_LT: return OP_GT;
    case OP_LE: return OP_GE;
    case OP_GT: return OP_LT;
    case OP_GE: return OP_LE;
    default: return op;
    }
}

/* The terms are those of j >= x. */
static void from(const struct narrow *n, struct lang_expr *x)
{
    struct lang_expr *low = *n->low ? *n->low : number(n->g, 0);
    *n->low = extreme(n->g, true, low, x);
}

/* The terms are those of j < x. */
static void up_to(const struct narrow *n, struct lang_expr *x)
{
    *n->high = extreme(n->g, false, *n->high, x);
}

/* Narrows the range to where the clause holds. False: that is no range. */
static bool apply(const struct narrow *n, const struct clause *c)
{
    struct cg *g = n->g;
    struct linear x, y;
    const enum lang_op op = c->negated ? inverse(c->e->op) : c->e->op;
    const bool ordered = op == OP_LT || op == OP_LE || op == OP_GT || op == OP_GE;
    /* a range is evaluated whatever the other clauses say */
    if (c->e->kind != E_BINARY || inspect_may_stray(c->e) ||
        (!ordered && (op != OP_EQ || c->negated)) || !linear(n, c->e->args[0], &x) ||
        !linear(n, c->e->args[1], &y))
        return false;
    const int times = x.times - y.times;
    if (times != 1 && times != -1)
        return false;
    /* j op at */
    struct lang_expr *at = times == 1 ? sum_of(g, y.rest, x.rest, true)
                                      : sum_of(g, x.rest, y.rest, true);
    at = at ? at : number(g, 0);
    const enum lang_op as = times == 1 ? op : mirrored(op);
    if (as == OP_LT || as == OP_LE || as == OP_EQ)
        up_to(n, as == OP_LT ? at : sum_of(g, at, number(g, 1), false));
    if (as == OP_GT || as == OP_GE || as == OP_EQ)
        from(n, as == OP_GT ? sum_of(g, at, number(g, 1), false) : at);
    return true;
}

/* Narrows it to where the clause may hold: what is left of that. */
static struct lang_expr *apply_runs(const struct narrow *n, const struct clause *c)
{
    if (c->negated)
        return negation(n->g, c->e);
    if (!n->runs || !matmul_same(c->e, n->runs->clause))
        return c->e;
    from(n, n->runs->low);
    up_to(n, n->runs->high);
    return matmul_binary(n->g, OP_LOR, n->runs->known, c->e);
}

void chain_narrow(struct cg *g, const struct lang_symbol *j, enum lang_reduce reduce,
                  const struct chain_runs *runs, struct lang_expr **term, struct lang_expr **low,
                  struct lang_expr **high)
{
    struct lang_expr *e = *term, *left = NULL;
    const struct narrow n = {g, j, runs && runs->first ? runs : NULL, low, high};
    struct clauses all = {.n = 0};
    const bool otherwise = e->kind == E_COND && is_identity(reduce, e->args[2]);
    if (!otherwise && !(e->kind == E_COND && is_identity(reduce, e->args[1])))
        return;
    collect(&all, e->args[0], !otherwise);
    if (all.too_many)
        return;
    for (uint32_t i = 0; i < all.n; i++) {
        if (apply(&n, &all.v[i]))
            continue;
        struct lang_expr *c = apply_runs(&n, &all.v[i]);
        left = left ? matmul_binary(g, OP_LAND, left, c) : c;
    }
    struct lang_expr *value = e->args[otherwise ? 1 : 2];
    if (left) {
        struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
        *c = *e;
        c->args = ARENA_ARRAY(g->a, 3, struct lang_expr *);
        c->args[0] = left;
        c->args[1] = value;
        c->args[2] = e->args[otherwise ? 2 : 1];
        value = c;
    }
    *term = value;
}
