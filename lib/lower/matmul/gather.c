/* Operands that lie in memory, but not as matrices (matmul.h): windows of a convolution.
 *
 *     pad(x[r / (h * w), r % (h * w) / w + t / (s * c) - 1, r % w + t % (s * c) / c - 1, t % c], 0)
 *
 * Each subscript is a part that follows from the element's row (or column) and batches, plus a part
 * that follows from its term. So is the address, and a subscript is inside of its dimension if the
 * sum of two numbers is. Whoever copies tiles finds both parts once for each row and for each term
 * that a thread meets, and adds them for each piece: no quotient is computed for an element.
 *
 * Elements lie side by side along the last subscript. It is the rest of the row, or of the term, by
 * the length of a run; all else that depends on that index has one value in a run.
 */
#include <config.h>

#include "lower/matmul/matmul.h"

enum {
    MOST_PARTS = 8,
    NOWHERE = -(1 << 30), /* added to a subscript that is less than 2^29, it is outside */
    MOST_SUBSCRIPT = (1 << 29) - 1,
};

struct finder {
    struct cg *g;
    const struct matmul_normal *n;
    struct matmul_gather *to;
    struct lang_expr *bound; /* no part of a subscript is as large */
};

/* ---- what fits ------------------------------------------------------------------------------- */

/* An index, or a chain of quotients and rests of one by numbers of the launch. */
static const struct lang_symbol *root_of(const struct lang_expr *e)
{
    e = inspect_strip(e);
    while (e->kind == E_BINARY && (e->op == OP_DIV || e->op == OP_MOD) &&
           inspect_at_launch(e->args[1]))
        e = inspect_strip(e->args[0]);
    return e->kind == E_NAME && e->sym->kind == SYM_INDEX && !e->sym->low ? e->sym : NULL;
}

/* A number that is never negative: a constant, a dimension or what is made of these. */
static bool is_natural(const struct lang_expr *e)
{
    int64_t v;
    e = inspect_strip(e);
    if (lang_const_int(e, &v))
        return v >= 0 && v <= MOST_SUBSCRIPT;
    if (e->kind == E_NAME)
        return e->sym->kind == SYM_DIM;
    return e->kind == E_BINARY &&
           (e->op == OP_ADD || e->op == OP_MUL || e->op == OP_DIV || e->op == OP_MOD) &&
           is_natural(e->args[0]) && is_natural(e->args[1]);
}

/* What the largest value of a term of a subscript is less than; NULL: it is no such term. */
static struct lang_expr *bound_of(struct arena *a, const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (is_natural(e))
        return lx_add_int(a, lx_operand(a, e), 1);
    const struct lang_symbol *root = root_of(e);
    int64_t by;
    if (root && e->kind == E_BINARY && e->op == OP_MOD)
        return lx_operand(a, e->args[1]);
    if (root && e->kind == E_BINARY && lang_const_int(e->args[1], &by) && by > 1)
        return lx_ceil_div_int(a, bound_of(a, e->args[0]), by);
    if (root)
        return root->dims[0];
    for (uint32_t i = 0; e->kind == E_BINARY && e->op == OP_MUL && i < 2; i++)
        if (is_natural(e->args[i]) && root_of(e->args[1 - i]))
            return lx_mul(a, bound_of(a, e->args[1 - i]), lx_operand(a, e->args[i]));
    return NULL;
}

static struct lang_expr *joined(struct cg *g, struct lang_expr *x, struct lang_expr *y, bool minus)
{
    if (x)
        return matmul_binary(g, minus ? OP_SUB : OP_ADD, x, y);
    if (!minus)
        return y;
    struct lang_expr *zero = ARENA_NEW(g->a, struct lang_expr);
    *zero = (struct lang_expr){.kind = E_INT, .type = DT_I64, .span = y->span, .height = 1};
    return matmul_binary(g, OP_SUB, zero, y);
}

/* Adds the terms of e, a subscript's, to its two parts. */
static bool add_terms(struct finder *f, struct lang_expr *e, bool minus, struct matmul_part *to)
{
    e = (struct lang_expr *)inspect_strip(e);
    if (e->kind == E_UNARY && e->op == OP_NEG)
        return add_terms(f, e->args[0], !minus, to);
    if (e->kind == E_BINARY && (e->op == OP_ADD || e->op == OP_SUB) && !is_natural(e))
        return add_terms(f, e->args[0], minus, to) &&
               add_terms(f, e->args[1], minus ^ (e->op == OP_SUB), to);
    struct lang_expr *most = bound_of(f->g->a, e);
    const uint32_t mask = matmul_mask(f->n, e);
    if (!most || e->type != DT_I64)
        return false;
    f->bound = lx_add(f->g->a, f->bound, most);
    struct lang_expr **part = mask & MATMUL_K ? &to->k : &to->at;
    *part = joined(f->g, *part, e, minus);
    return true;
}

/* Is `dim` known to be a multiple of `of`? */
static bool is_multiple(const struct lang_expr *dim, const struct lang_expr *of)
{
    int64_t n, by;
    dim = inspect_strip(dim);
    if (inspect_same_expr(dim, of))
        return true;
    if (lang_const_int(dim, &n) && lang_const_int(of, &by))
        return by > 0 && n % by == 0;
    return dim->kind == E_BINARY && dim->op == OP_MUL &&
           (is_multiple(dim->args[0], of) || is_multiple(dim->args[1], of));
}

/* Under a chain of quotients and rests, are rests by multiples of `of` alone? Then what is divided
 * counts from a multiple of it. */
static bool rests_by_multiples(const struct lang_expr *e, const struct lang_expr *of)
{
    for (e = inspect_strip(e); e->kind == E_BINARY; e = inspect_strip(e->args[0]))
        if (e->op == OP_MOD && !is_multiple(e->args[1], of))
            return false;
    return true;
}

/* Is it an index, or its rests by multiples of `of`? */
static bool is_rest_of_index(const struct lang_expr *e, const struct lang_expr *of)
{
    e = inspect_strip(e);
    while (e->kind == E_BINARY && e->op == OP_MOD && is_multiple(e->args[1], of))
        e = inspect_strip(e->args[0]);
    return e->kind == E_NAME;
}

/* Has e one value in each run: the whole index divided by it, or by a multiple? */
static bool is_of_runs(const struct lang_expr *e, const struct lang_symbol *index,
                       const struct lang_expr *run)
{
    e = inspect_strip(e);
    if (e->kind == E_NAME)
        return e->sym != index;
    if (e->kind == E_BINARY && e->op == OP_DIV && root_of(e) == index &&
        is_multiple(e->args[1], run) && rests_by_multiples(e->args[0], run))
        return true;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_of_runs(e->args[i], index, run))
            return false;
    return true;
}

/* Where elements lie side by side: along the index by itself, or along its rests. */
static bool find_run(struct finder *f, const struct lang_symbol *index, bool along_k)
{
    struct matmul_gather *to = f->to;
    const struct matmul_part *last = &to->sub[to->n - 1];
    const struct lang_expr *e = along_k ? last->k : last->at;
    to->run = NULL;
    if (!e || (along_k ? last->at : last->k) || root_of(e) != index)
        return false;
    e = inspect_strip(e);
    if (e->kind == E_NAME)
        to->run = index->dims[0];
    else if (e->op == OP_MOD && is_rest_of_index(e->args[0], e->args[1]))
        to->run = e->args[1];
    for (uint32_t i = 0; i + 1 < to->n && to->run; i++) {
        const struct lang_expr *part = along_k ? to->sub[i].k : to->sub[i].at;
        if (part && !is_of_runs(part, index, to->run))
            to->run = NULL;
    }
    return to->run != NULL;
}

static bool is_zero(const struct lang_expr *e)
{
    e = inspect_strip(e);
    return (e->kind == E_INT && e->ival == 0) ||
           (e->kind == E_FLOAT && e->fval == 0 && !__builtin_signbit(e->fval));
}

const struct matmul_gather *matmul_find_gather(struct cg *g, const struct matmul_normal *n,
                                               const struct lang_expr *e,
                                               const struct lang_symbol *along, bool along_k)
{
    if (e->kind != E_INDEX || cg_is_defined(g, e->sym) || dtype_bits(e->sym->type) < 8 ||
        e->nargs > VARIANT_RANK || (e->pad && !is_zero(e->pad)))
        return NULL;
    struct matmul_gather *to = ARENA_NEW(g->a, struct matmul_gather);
    struct finder f = {.g = g, .n = n, .to = to, .bound = lx_int(g->a, 0)};
    *to = (struct matmul_gather){.e = e, .n = e->nargs};
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (!add_terms(&f, e->args[i], false, &to->sub[i]))
            return NULL;
        to->sub[i].checked = e->pad && !cg_stays_inside(e->args[i], e->sym->dims[i]);
    }
    find_run(&f, along, along_k);
    to->no_boxes = "no neighbours lie side by side";
    to->when = lx_at_most(g->a, f.bound, MOST_SUBSCRIPT);
    return to;
}

void matmul_gather_require(struct cg *g, const struct matmul_gather *p, uint32_t align,
                           struct variant_condition *c)
{
    const struct lang_symbol *t = p->e->sym;
    if (align > 1 && p->run) {
        variant_require_multiple(g, c, t->dims[t->rank - 1], align);
        variant_require_multiple(g, c, p->run, align);
    }
    if (p->when->kind != E_BOOL)
        variant_require(c, p->when);
    else
        c->never |= !p->when->ival;
}

/* ---- code ------------------------------------------------------------------------------------ */

struct reading {
    struct matmul *m;
    const struct lang_symbol *index; /* the operand's row or column, or k */
    struct cg_val v;                 /* its value: an i64 that fits 31 bits */
};

static struct cg_val at_launch(struct matmul *m, const struct lang_expr *e)
{
    struct cg *g = m->g;
    bool (*const binary)(struct cg *, const struct lang_expr *, struct cg_val *) = g->binary;
    bool (*const read)(struct cg *, const struct lang_expr *, struct cg_val *) = g->read;
    g->binary = NULL; /* the reader's, which knows other indices */
    g->read = NULL;
    const struct cg_val v = cg_index(g, cg_expr(g, e));
    g->binary = binary;
    g->read = read;
    return v;
}

static struct cg_val index_of(const struct reading *r, const struct lang_symbol *index)
{
    for (uint32_t b = 0; b < r->m->f->nbatch; b++)
        if (r->m->f->batch[b] == index)
            return r->m->batch[b];
    return r->v;
}

static struct cg_val evaluate(struct reading *r, const struct lang_expr *e)
{
    struct cg *g = r->m->g;
    struct cg_val q, rest;
    int64_t c;
    e = inspect_strip(e);
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        return index_of(r, e->sym);
    if (inspect_at_launch(e))
        return at_launch(r->m, e);
    const struct cg_val x = evaluate(r, e->args[0]);
    if (e->op != OP_DIV && e->op != OP_MOD)
        return cg_binary(g, e->op, x, evaluate(r, e->args[1]));
    const struct cg_val by = at_launch(r->m, e->args[1]);
    if (cg_is_const(by, &c))
        cg_divmod(g, x, by, &q, &rest);
    else
        magic_divmod(g, x, lx_operand(g->a, e->args[1]), by, &q, &rest);
    return e->op == OP_DIV ? q : rest;
}

/* Bytes of an element from the tensor's first to the one of these subscripts, and those that are
 * looked at, of elements that exist. */
static struct matmul_found find(struct matmul *m, const struct matmul_gather *p, bool of_k,
                                struct cg_val v, struct cg_val exists)
{
    struct cg *g = m->g;
    struct reading r = {.m = m, .v = v};
    struct matmul_found f = {.n = 0};
    struct cg_val flat = cg_int(DT_I64, 0), none = cg_int(DT_I64, 0);
    const bool pads = p->e->pad != NULL;
    int64_t always;
    bool marks = !cg_is_const(exists, &always) || !always;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct lang_expr *e = of_k ? p->sub[i].k : p->sub[i].at;
        const struct cg_val s = e ? evaluate(&r, e) : none;
        flat = cg_binary(g, OP_MUL, flat, i ? cg_extent(g, p->e->sym, i) : cg_int(DT_I64, 1));
        flat = cg_binary(g, OP_ADD, flat, s);
        if (!pads || !p->sub[i].checked)
            continue;
        struct cg_val seen = cg_convert(g, s, DT_I32);
        if (marks)
            seen = cg_select(g, cg_reg(g, exists), seen, cg_int(DT_I32, NOWHERE));
        marks = false;
        f.sub[f.n++] = seen;
    }
    f.offset = cg_binary(g, OP_MUL, flat, cg_int(DT_I64, dtype_bits(p->e->sym->type) / 8));
    f.exists = marks ? exists : cg_bool(g, true);
    return f;
}

struct cg_val matmul_gather_part(struct matmul *m, const struct matmul_gather *p, uint32_t i,
                                 bool of_k, struct cg_val v)
{
    const struct lang_expr *e = of_k ? p->sub[i].k : p->sub[i].at;
    return e ? evaluate(&(struct reading){.m = m, .v = cg_index(m->g, v)}, e) : cg_int(DT_I64, 0);
}

struct matmul_found matmul_gather_at(struct matmul *m, const struct matmul_gather *p,
                                     struct cg_val at, struct cg_val exists)
{
    struct cg *g = m->g;
    struct matmul_found f = find(m, p, false, cg_index(g, at), exists);
    const struct cg_place_of first = cg_address(g, p->e->sym, cg_int(DT_I64, 0));
    const struct cg_val base =
        cg_binary(g, OP_ADD, cg_value(DT_I64, first.base), cg_int(DT_I64, first.offset));
    f.offset = cg_binary(g, OP_ADD, base, f.offset);
    return f;
}

struct matmul_found matmul_gather_k(struct matmul *m, const struct matmul_gather *p,
                                    struct cg_val k, struct cg_val exists)
{
    return find(m, p, true, cg_index(m->g, k), exists);
}

int32_t matmul_gather_from(struct matmul *m, const struct matmul_gather *p,
                           const struct matmul_found *at, const struct matmul_found *k,
                           struct cg_val *inside)
{
    struct cg *g = m->g;
    struct cg_val ok = cg_binary(g, OP_LAND, at->exists, k->exists);
    for (uint32_t i = 0, n = 0; i < p->n; i++) {
        if (!p->sub[i].checked)
            continue;
        const struct cg_val s = cg_binary(g, OP_ADD, at->sub[n], k->sub[n]);
        const struct cg_val end = cg_convert(g, cg_extent(g, p->e->sym, i), DT_U32);
        ok = cg_binary(g, OP_LAND, ok, cg_binary(g, OP_LT, cg_convert(g, s, DT_U32), end));
        n++;
    }
    *inside = ok;
    return cg_reg(g, cg_binary(g, OP_ADD, at->offset, k->offset));
}
