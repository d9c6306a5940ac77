/* What stands between the products, by shorter code where that is the same (chain.h): integers
 * whose bounds are known to fit 32 bits, reads that are the same for all j, and reads of what lies
 * side by side for a tile's j. */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/cg/inspect.h"

struct bounds {
    int64_t least, most;
};

static bool fits(struct bounds b)
{
    return b.least >= INT32_MIN && b.most <= INT32_MAX;
}

/* Of an index, as far as its tile may reach. */
static bool bounds_of_index(const struct lang_symbol *sym, struct bounds *b)
{
    int64_t n;
    if (sym->kind != SYM_INDEX || sym->low || !lang_const_int(sym->dims[0], &n) || n < 0)
        return false;
    *b = (struct bounds){0, n + CHAIN_WIDE};
    return fits(*b);
}

static struct bounds product_of(struct bounds x, struct bounds y)
{
    const int64_t p[] = {x.least * y.least, x.least * y.most, x.most * y.least, x.most * y.most};
    struct bounds b = {p[0], p[0]};
    for (size_t i = 1; i < COUNT(p); i++) {
        b.least = p[i] < b.least ? p[i] : b.least;
        b.most = p[i] > b.most ? p[i] : b.most;
    }
    return b;
}

/* Finds bounds of e, it and all that it is made of fitting 32 bits. */
static bool bounds_of(const struct lang_expr *e, struct bounds *b)
{
    struct bounds x, y;
    int64_t n;
    if (lang_const_int(e, &n)) {
        *b = (struct bounds){n, n};
        return fits(*b);
    }
    if (e->kind == E_NAME)
        return bounds_of_index(e->sym, b);
    if (e->kind != E_BINARY || (e->op != OP_ADD && e->op != OP_SUB && e->op != OP_MUL) ||
        !bounds_of(e->args[0], &x) || !bounds_of(e->args[1], &y))
        return false;
    *b = e->op == OP_ADD   ? (struct bounds){x.least + y.least, x.most + y.most}
         : e->op == OP_SUB ? (struct bounds){x.least - y.most, x.most - y.least}
                           : product_of(x, y);
    return fits(*b);
}

bool chain_narrow_binary(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct bounds b;
    if (e->type != DT_I64 || !bounds_of(e, &b))
        return false;
    const struct cg_val x = cg_convert(g, cg_expr(g, e->args[0]), DT_I32);
    const struct cg_val y = cg_convert(g, cg_expr(g, e->args[1]), DT_I32);
    *v = cg_index(g, cg_binary(g, e->op, x, y));
    return true;
}

/* Is it an element of the row's, which is there whatever j is? */
static bool is_of_row(const struct chain_tile *x, const struct lang_expr *e)
{
    if (chain_mentions(e, x->t->f->j) || e->nargs != e->sym->rank)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!cg_in_range(e->args[i], e->sym->dims[i]))
            return false;
    return true;
}

/* Is it the element for j of what has one for each, side by side, in 32 bits? */
static bool is_along(const struct cg *g, const struct chain_tile *x, const struct lang_expr *e)
{
    const struct lang_symbol *t = e->sym, *j = x->t->f->j;
    if (e->pad || e->nargs == 0 || e->nargs > CHAIN_AXES || e->nargs != t->rank ||
        dtype_bits(t->type) != 32 || !cg_is_constant(g, t) ||
        !inspect_is_index(e->args[e->nargs - 1], j))
        return false;
    for (uint32_t i = 0; i + 1 < e->nargs; i++)
        if (chain_mentions(e->args[i], j))
            return false;
    return true;
}

/* Do pairs of neighbours lie at multiples of their size? */
static bool has_pairs(const struct lang_symbol *t)
{
    int64_t n;
    return t->rank == 1 || (lang_const_int(t->dims[t->rank - 1], &n) && n % 2 == 0);
}

/* One element of the pair that begins there. */
static struct cg_val read_pair(struct cg *g, enum dtype t, struct cg_place_of at, uint32_t which)
{
    static const char *const what[] = {"pair's first", "pair's second"};
    const struct ptx_operand key = cg_mem(at);
    const int32_t known = cg_recall_read(g, what[which], 1, &key);
    struct cg_val v[2];
    if (known >= 0)
        return cg_value(t, known);
    cg_load_words(g, t, true, at, 2, v);
    for (uint32_t i = 0; i < 2; i++)
        cg_remember_read(g, what[i], 1, &key, cg_reg(g, v[i]));
    return v[which];
}

/* From the address of the lane's first j, by distances that are constants. */
static struct cg_val read_along(struct cg *g, const struct lang_expr *e)
{
    struct chain_tile *x = g->read_ctx;
    struct cg_val sub[CHAIN_AXES];
    const size_t bound = g->bindings.n;
    cg_bind(g, x->t->f->j, x->first_j, false);
    for (uint32_t i = 0; i < e->nargs; i++)
        sub[i] = cg_expr(g, e->args[i]);
    g->bindings.n = bound;
    struct cg_place_of at = cg_element(g, e->sym, e->nargs, sub);
    const bool pairs = has_pairs(e->sym);
    at.offset += (int64_t)4 * (pairs ? x->distance / 2 * 2 : x->distance);
    return pairs ? read_pair(g, e->sym->type, at, x->distance % 2) : cg_load(g, e->sym, at);
}

bool chain_narrow_read(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct chain_tile *x = g->read_ctx;
    if (g->guard < 0 && is_along(g, x, e)) {
        *v = read_along(g, e);
        return true;
    }
    if (g->guard < 0 || g->guard != x->guard || !is_of_row(x, e))
        return false;
    const struct cg_guard now = {g->guard, g->guard_varies};
    cg_unguard(g, x->outside);
    g->read = NULL;
    *v = cg_expr(g, e);
    g->read = chain_narrow_read;
    cg_unguard(g, now);
    return true;
}
