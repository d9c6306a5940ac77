/* Stages whose outputs have rows of two kinds (chain.h): gradients of keys and values are sums over
 * queries, that of queries is one over keys, and all of them are of the same scores.
 *
 *     s[i, j] = sum[c](q * k)                     scores of both
 *     dk[j, e] = sum[i](p(s, ...) * q)            streams over i, of rows j
 *     dq[i, e] = sum[j](p(s, ...) * k)            the sum across: over rows j, of each i
 *
 * Each of them is analysed as a stage of its own. The sum across fits if, with its i and j swapped,
 * its part is that of one of the others' streams, over the same pairs (i, j), and if its right
 * operand is what a block has of its rows: the left operand of a score.
 */
#include <config.h>

#include "lower/chain/chain.h"

/* ---- the same, by other names ---------------------------------------------------------------- */

struct names {
    struct cg *g;
    const struct chain_tensor *t, *across;
};

static struct lang_expr *renamed(const struct names *x, struct lang_expr *e,
                                 const struct lang_symbol *from, struct lang_symbol *to)
{
    return chain_replaced(x->g, e, NULL, from, chain_name(x->g, to, e->span));
}

/* What e of the sum across is by the others' indices. */
static struct lang_expr *by_axes(const struct names *x, struct lang_expr *e)
{
    const struct chain_form *f = x->t->f, *of = x->across->f;
    uint32_t at = 0;
    for (uint32_t a = 0; a < of->nrow; a++) {
        if (a == x->across->i)
            continue;
        at += at == x->t->i;
        e = renamed(x, e, of->row[a], f->row[at++]);
    }
    e = renamed(x, e, of->row[x->across->i], f->j);
    return renamed(x, e, of->j, f->row[x->t->i]);
}

/* Have both the same axes, rows of one being j of the other? */
static bool same_axes(const struct names *x)
{
    const struct chain_form *f = x->t->f, *of = x->across->f;
    uint32_t at = 0;
    if (f->nrow != of->nrow || x->t->i >= f->nrow || x->across->i >= of->nrow || !f->column ||
        !of->column || !inspect_same_expr(f->column->dims[0], of->column->dims[0]) ||
        !inspect_same_expr(f->j->dims[0], of->row[x->across->i]->dims[0]) ||
        !inspect_same_expr(of->j->dims[0], f->row[x->t->i]->dims[0]))
        return false;
    for (uint32_t a = 0; a < of->nrow; a++) {
        if (a == x->across->i)
            continue;
        at += at == x->t->i;
        if (!inspect_same_expr(of->row[a]->dims[0], f->row[at++]->dims[0]))
            return false;
    }
    return true;
}

/* The others' score that score n of the sum across is; their number: there is none. */
static uint32_t score_of(const struct names *x, uint32_t n)
{
    const struct chain_form *f = x->t->f;
    const struct lang_expr *e = x->across->f->score[n].e;
    for (uint32_t i = 0; i < f->nscore; i++) {
        const struct lang_expr *s = f->score[i].e;
        struct lang_expr *term = by_axes(x, e->args[0]);
        term = renamed(x, term, e->index[0], s->index[0]);
        if (e->type == s->type && inspect_same_expr(e->index[0]->dims[0], s->index[0]->dims[0]) &&
            matmul_same(term, s->args[0]))
            return i;
    }
    return f->nscore;
}

/* The others' column of which the left operand is that of the sum across; their number: none. */
static uint32_t column_of(const struct names *x)
{
    const struct chain_form *f = x->t->f, *of = x->across->f;
    const struct chain_product *p = &x->across->column[0];
    struct lang_expr *part = by_axes(x, of->stream[p->stream].part[0].e);
    for (uint32_t n = 0; n < of->nscore; n++) {
        const uint32_t same = score_of(x, n);
        if (same == f->nscore)
            return x->t->ncolumn;
        part = renamed(x, part, of->score[n].sym, (struct lang_symbol *)f->score[same].sym);
    }
    for (uint32_t c = 0; c < x->t->ncolumn; c++) {
        const struct chain_product *q = &x->t->column[c];
        if (matmul_same(part, f->stream[q->stream].part[0].e) && p->kind.left == q->kind.left &&
            p->parts == 1 && q->parts == 1)
            return c;
    }
    return x->t->ncolumn;
}

static const struct lang_expr *operand(const struct chain_product *p, enum matmul_side side)
{
    const struct matmul_form *f = &p->form;
    return f->operand[f->operand[0].side == side ? 0 : 1].plain;
}

/* Is y, of score s, what x is, the right operand of the sum across? Batch axes are each form's
 * own. */
static bool is_left_of(const struct matmul_form *v, const struct lang_expr *x,
                       const struct matmul_form *s, const struct lang_expr *y)
{
    x = inspect_strip(x);
    y = inspect_strip(y);
    if (inspect_is_index(x, v->k) || inspect_is_index(x, v->j))
        return inspect_is_index(y, inspect_is_index(x, v->k) ? s->i : s->k);
    for (uint32_t i = 0; i < v->nbatch && i < s->nbatch; i++)
        if (inspect_is_index(x, v->batch[i]))
            return inspect_is_index(y, s->batch[i]);
    bool same = lang_same_node(x, y) && x->sym == y->sym && !x->pad && !y->pad;
    for (uint32_t i = 0; same && i < x->nargs; i++)
        same = is_left_of(v, x->args[i], s, y->args[i]);
    return same;
}

/* The score of which the left operand is the right one of the sum across; their number: none. */
static uint32_t rows_of(const struct names *x)
{
    const struct chain_product *p = &x->across->column[0];
    const struct lang_expr *right = operand(p, MATMUL_B);
    uint32_t n = 0;
    for (; n < x->t->f->nscore; n++) {
        const struct lang_expr *left = operand(&x->t->score[n], MATMUL_A);
        if (left && right && is_left_of(&p->form, right, &x->t->score[n].form, left) &&
            x->t->score[n].kind.left == p->kind.right)
            break;
    }
    return n;
}

/* ---- the same pairs -------------------------------------------------------------------------- */

/* What must not be negative: a sum of symbols. */
enum { MOST_SYMBOLS = 8, MOST_BOUNDS = 4 };
struct affine {
    uint32_t n;
    const struct lang_symbol *sym[MOST_SYMBOLS];
    int64_t by[MOST_SYMBOLS], constant;
};
struct bounds {
    uint32_t n;
    struct affine v[MOST_BOUNDS];
};

static bool add_symbol(struct affine *a, const struct lang_symbol *sym, int64_t by)
{
    uint32_t i = 0;
    while (i < a->n && a->sym[i] != sym)
        i++;
    if (i == MOST_SYMBOLS)
        return false;
    if (i == a->n) {
        a->sym[a->n] = sym;
        a->by[a->n++] = 0;
    }
    a->by[i] += by;
    return true;
}

/* Adds e times `by`, 1 or -1. False: it is no sum of symbols. */
static bool add(struct affine *a, const struct lang_expr *e, int64_t by)
{
    int64_t v;
    e = inspect_strip(e);
    if (lang_const_int(e, &v)) {
        a->constant += by * v;
        return v > -INT32_MAX && v < INT32_MAX;
    }
    if (e->kind == E_NAME)
        return add_symbol(a, e->sym, by);
    if (e->kind == E_BINARY && (e->op == OP_ADD || e->op == OP_SUB))
        return add(a, e->args[0], by) && add(a, e->args[1], e->op == OP_ADD ? by : -by);
    return false;
}

static int64_t times(const struct affine *a, const struct lang_symbol *sym)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->sym[i] == sym)
            return a->by[i];
    return 0;
}

static bool is_same_bound(const struct affine *x, const struct affine *y)
{
    bool same = x->constant == y->constant;
    for (uint32_t i = 0; i < x->n; i++)
        same &= x->by[i] == times(y, x->sym[i]);
    for (uint32_t i = 0; i < y->n; i++)
        same &= y->by[i] == times(x, y->sym[i]);
    return same;
}

/* Adds index >= e, or index < e, but for what holds of all: index >= 0, and index < extent. */
static bool add_bound(struct bounds *b, const struct lang_symbol *index, const struct lang_expr *e,
                      bool is_high)
{
    int64_t v;
    const bool splits = e && e->kind == E_CALL && e->fn == (is_high ? FN_MIN : FN_MAX);
    if (!e || (is_high ? inspect_same_expr(e, index->dims[0]) : lang_const_int(e, &v) && v <= 0))
        return true;
    if (splits)
        return add_bound(b, index, e->args[0], is_high) && add_bound(b, index, e->args[1], is_high);
    struct affine a = {.constant = is_high ? -1 : 0};
    if (b->n == MOST_BOUNDS || !add_symbol(&a, index, is_high ? -1 : 1) ||
        !add(&a, e, is_high ? 1 : -1))
        return false;
    b->v[b->n++] = a;
    return true;
}

static bool has_all(const struct bounds *x, const struct bounds *y)
{
    bool all = true;
    for (uint32_t i = 0; i < y->n; i++) {
        bool has = false;
        for (uint32_t k = 0; k < x->n; k++)
            has |= is_same_bound(&x->v[k], &y->v[i]);
        all &= has;
    }
    return all;
}

/* Are the sum's pairs (i, j) those of all streams? Finds where its range begins, by the others' j.
 * There is one such bound at most, and one of where it ends, and both come later for later j: tiles
 * of rows that have terms for a tile of j lie side by side, and the first of them is where the
 * range of the tile's first j begins. */
static bool same_pairs(const struct names *x, struct lang_expr **begin)
{
    const struct chain_form *f = x->t->f, *of = x->across->f;
    const struct chain_stream *s = &of->stream[0];
    struct lang_symbol *row = f->row[x->t->i];
    struct bounds low = {0}, high = {0}, all;
    struct lang_expr *from = s->low ? by_axes(x, s->low) : NULL, *to = by_axes(x, s->high);
    if (!add_bound(&low, row, from, false) || !add_bound(&high, row, to, true) || low.n > 1 ||
        high.n > 1 || (high.n && times(&high.v[0], f->j) != 1) ||
        (low.n && times(&low.v[0], f->j) != -1))
        return false;
    all = low;
    if (high.n)
        all.v[all.n++] = high.v[0];
    for (uint32_t n = 0; n < f->nstream; n++) {
        struct bounds b = {0};
        if (!add_bound(&b, f->j, f->stream[n].low, false) ||
            !add_bound(&b, f->j, f->stream[n].high, true) || !has_all(&b, &all) ||
            !has_all(&all, &b))
            return false;
    }
    *begin = low.n ? from : NULL;
    return true;
}

/* ---- both ------------------------------------------------------------------------------------ */

bool chain_find_across(struct cg *g, const struct chain_tensor *t, const struct chain_tensor *of,
                       struct chain_across *a)
{
    const struct names x = {g, t, of};
    const struct chain_form *f = of->f;
    if (t->f->nscore < 2 || of->ncolumn != 1 || f->nstream != 1 || f->nout != 1 ||
        !f->out[0].has_column || !same_axes(&x))
        return false;
    *a = (struct chain_across){.t = of, .column = column_of(&x), .score = rows_of(&x)};
    return a->column < t->ncolumn && a->score < t->f->nscore && same_pairs(&x, &a->from);
}
