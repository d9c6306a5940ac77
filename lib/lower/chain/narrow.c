/* What stands between the products, by shorter code where that is the same (chain.h): integers
 * whose bounds are known to fit 32 bits, and reads that are the same for all j. */
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

/* Sums and products of indices in 32 bits. */
static struct cg_val narrow(struct cg *g, const struct lang_expr *e)
{
    if (e->kind != E_BINARY)
        return cg_convert(g, cg_expr(g, e), DT_I32);
    const struct cg_val x = narrow(g, e->args[0]);
    return cg_binary(g, e->op, x, narrow(g, e->args[1]));
}

bool chain_narrow_bound(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct bounds b;
    struct cg_val x, y;
    if (e->kind == E_CALL && !e->func && e->nargs == 2 && (e->fn == FN_MIN || e->fn == FN_MAX)) {
        if (!chain_narrow_bound(g, e->args[0], &x) || !chain_narrow_bound(g, e->args[1], &y))
            return false;
        *v = cg_minmax(g, e->fn == FN_MAX, x, y);
        return true;
    }
    if (e->kind == E_CAST && e->type == DT_I64 && e->args[0]->type == DT_I32) {
        *v = cg_expr(g, e->args[0]);
        return true;
    }
    if (e->type != DT_I64 || !bounds_of(e, &b))
        return false;
    *v = narrow(g, e);
    return true;
}

/* A sum of registers, which all columns of a row's tile have in common, and a constant. */
struct distance {
    struct cg_val base; /* i32; DT_VOID: there is none */
    int64_t add;
};

static void add_part(struct cg *g, struct distance *d, struct cg_val v, bool minus)
{
    const struct cg_val before = d->base.type == DT_VOID ? cg_int(DT_I32, 0) : d->base;
    int64_t add = 0;
    int32_t base;
    if (cg_is_const(v, &add)) {
        d->add += minus ? -add : add;
        return;
    }
    if (cg_is_sum(g, cg_reg(g, v), &base, &add))
        v = cg_value(DT_I32, base);
    d->add += minus ? -add : add;
    d->base = cg_binary(g, minus ? OP_SUB : OP_ADD, before, v);
}

static void take_apart(struct cg *g, struct distance *d, const struct lang_expr *e, bool minus)
{
    const bool sub = e->kind == E_BINARY && e->op == OP_SUB;
    if (!sub && (e->kind != E_BINARY || e->op != OP_ADD)) {
        add_part(g, d, cg_convert(g, cg_expr(g, e), DT_I32), minus);
        return;
    }
    take_apart(g, d, e->args[0], minus);
    take_apart(g, d, e->args[1], minus != sub);
}

/* What a column adds to its tile's distance is exact in f32, too: one conversion is for all. */
bool chain_narrow_cast(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    enum { EXACT = (1 << 24) - 4 * CHAIN_WIDE };
    const struct chain_tile *x = g->read_ctx;
    const struct lang_expr *of = e->args[0];
    struct distance d = {.base = {.type = DT_VOID}};
    struct bounds b;
    if (e->type != DT_F32 || of->type != DT_I64 || !chain_mentions(of, x->t->f->j) ||
        !bounds_of(of, &b) || b.least < -EXACT || b.most > EXACT)
        return false;
    take_apart(g, &d, of, false);
    if (d.base.type == DT_VOID)
        return false;
    *v = cg_convert(g, d.base, DT_F32);
    if (d.add != 0)
        *v = cg_binary(g, OP_ADD, *v, chain_f32(g, (double)d.add));
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

bool chain_narrow_read(struct cg *g, const struct lang_expr *e, struct cg_val *v)
{
    struct chain_tile *x = g->read_ctx;
    if (chain_read_along(x, e, v))
        return true;
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
