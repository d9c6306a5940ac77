/* Sums of terms that are no products, and maxima and minima: of whatever is made of elements of the
 * left operand and of the right one (matmul.h). What depends on one side alone is that side's, as
 * large as it can be; what is left is computed for each pair of elements:
 *
 *     sum[k]((x[i, k] - y[j, k]) * (x[i, k] - y[j, k]))      x[i, k], y[j, k]; (a - b) * (a - b)
 *     min[k](d[i, k] + 2 * e[k, j])                          d[i, k], 2 * e[k, j]; a + b
 */
#include <config.h>

#include "lower/matmul/matmul.h"

#include <math.h>

struct finder {
    struct cg *g;
    const struct matmul_normal *n;
    enum dtype type; /* of the reduction */
    uint32_t right;  /* the last axis */
    uint32_t left;   /* those that only reads without it have */
    struct matmul_parts *parts;
};

/* The axes of what is read with the last index, and without. */
static void find_reads(const struct finder *t, const struct lang_expr *e, uint32_t *with,
                       uint32_t *without)
{
    if (e->kind == E_INDEX) {
        const uint32_t mask = matmul_mask(t->n, e);
        *(mask & t->right ? with : without) |= mask;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        find_reads(t, e->args[i], with, without);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* A variable for e, which is of the reduction's type; equal ones share it. NULL: one too many. */
static struct lang_expr *variable(struct finder *t, struct lang_expr *e, uint32_t mask)
{
    struct matmul_parts *p = t->parts;
    uint32_t i = 0;
    while (i < p->n && !matmul_same(p->e[i], e))
        i++;
    if (i == MATMUL_PARTS)
        return NULL;
    if (i == p->n) {
        struct lang_symbol *sym = ARENA_NEW(t->g->a, struct lang_symbol);
        *sym = (struct lang_symbol){
            .kind = SYM_LOCAL, .name = "element", .span = e->span, .type = e->type};
        p->e[p->n] = e;
        p->mask[p->n] = mask;
        p->side[p->n] = mask & t->right ? MATMUL_B : MATMUL_A;
        p->var[p->n++] = sym;
    }
    struct lang_expr *name = ARENA_NEW(t->g->a, struct lang_expr);
    *name = (struct lang_expr){.kind = E_NAME,
                               .type = e->type,
                               .span = e->span,
                               .name = p->var[i]->name,
                               .sym = p->var[i],
                               .height = 1};
    return name;
}

static bool is_integer_pair(enum dtype x, enum dtype y)
{
    return (x == DT_I32 || x == DT_U32) && (y == DT_I32 || y == DT_U32);
}

/* Has the reduction's type every value of this one? */
static bool is_narrower(const struct finder *t, enum dtype type)
{
    if (type == DT_BOOL)
        return true;
    if (dtype_is_float(t->type))
        return dtype_bits(type) < (dtype_is_float(type) ? dtype_bits(t->type) : 24);
    return dtype_is_int(type) && dtype_bits(type) < 32;
}

/* Does it read what may not be there? Rests of an index that stands for several stay inside. */
static bool may_stray(const struct lang_expr *e)
{
    for (uint32_t i = 0; i < e->nargs; i++)
        if (may_stray(e->args[i]) || (e->kind == E_INDEX && !e->pad && !inspect_in_range(e, i) &&
                                      !cg_stays_inside(e->args[i], e->sym->dims[i])))
            return true;
    return e->pad && may_stray(e->pad);
}

/* e for each pair of elements, what is of one side alone in variables. NULL: it can't be. */
static struct lang_expr *pairwise(struct finder *t, struct lang_expr *e)
{
    const uint32_t mask = matmul_mask(t->n, e);
    if (!mask)
        return inspect_reads(e) ? NULL : e;
    if (!(mask & t->right) || !(mask & t->left)) {
        if (e->type == t->type || is_integer_pair(e->type, t->type))
            return variable(t, e, mask);
        const bool condition = e->type == DT_BOOL && (mask & MATMUL_K);
        if ((e->kind == E_INDEX || condition) && is_narrower(t, e->type)) {
            struct lang_expr *v = variable(t, matmul_cast(t->g, e, t->type), mask);
            return v ? matmul_cast(t->g, v, e->type) : NULL;
        }
    }
    const bool pure = e->kind == E_UNARY || e->kind == E_BINARY || e->kind == E_COND ||
                      e->kind == E_CAST ||
                      (e->kind == E_CALL && !e->func && !inspect_reads_itself(e));
    if (!pure || (lang_guards(e) && may_stray(e)))
        return NULL;
    struct lang_expr *c = ARENA_NEW(t->g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(t->g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!(c->args[i] = pairwise(t, e->args[i])))
            return NULL;
    return c;
}

/* ---- zeros ----------------------------------------------------------------------------------- */

static double number_of(const struct lang_expr *e)
{
    return e->kind == E_FLOAT ? e->fval : (double)(int64_t)e->ival;
}

/* The value where all variables are zero; NAN: not known. */
static double at_zero(const struct lang_expr *e)
{
    double v[3] = {NAN, NAN, NAN};
    if (e->kind == E_NAME)
        return e->sym->kind == SYM_LOCAL ? 0 : NAN;
    if (e->kind == E_INT || e->kind == E_FLOAT || e->kind == E_BOOL)
        return number_of(e);
    for (uint32_t i = 0; i < e->nargs && i < 3; i++)
        v[i] = at_zero(e->args[i]);
    if (e->kind == E_CAST || (e->kind == E_UNARY && (e->op == OP_NEG || e->op == OP_PLUS)))
        return v[0] == 0 ? 0 : NAN;
    if (e->kind == E_COND)
        return isnan(v[0]) ? NAN : v[0] != 0 ? v[1] : v[2];
    if (e->kind == E_CALL && (e->fn == FN_ABS || e->fn == FN_RELU || e->fn == FN_SQRT ||
                              e->fn == FN_POPC || e->fn == FN_MIN || e->fn == FN_MAX))
        return v[0] == 0 && (e->nargs < 2 || v[1] == 0) ? 0 : NAN;
    if (e->kind != E_BINARY || isnan(v[0]) || isnan(v[1]))
        return NAN;
    switch (e->op) {
    case OP_ADD: return v[0] + v[1];
    case OP_SUB: return v[0] - v[1];
    case OP_MUL: return v[0] * v[1];
    case OP_AND:
    case OP_OR:
    case OP_XOR: return v[0] == 0 && v[1] == 0 ? 0 : NAN;
    case OP_LT: return v[0] < v[1];
    case OP_GT: return v[0] > v[1];
    case OP_LE: return v[0] <= v[1];
    case OP_GE: return v[0] >= v[1];
    case OP_EQ: return v[0] == v[1];
    case OP_NE: return v[0] != v[1];
    case OP_LAND: return v[0] != 0 && v[1] != 0;
    case OP_LOR: return v[0] != 0 || v[1] != 0;
    default: return NAN;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

bool matmul_find_parts(struct cg *g, const struct matmul_normal *n, const struct lang_expr *e,
                       struct matmul_parts *p)
{
    struct finder t = {.g = g, .n = n, .type = e->type, .right = 1u << (n->naxis - 1), .parts = p};
    uint32_t with = 0, without = 0, all = 0;
    *p = (struct matmul_parts){.n = 0};
    find_reads(&t, e->args[0], &with, &without);
    t.left = without & ~with & ~MATMUL_K;
    if (!t.left || e->args[0]->type != e->type)
        return false;
    p->term = pairwise(&t, e->args[0]);
    for (uint32_t i = 0; i < p->n; i++)
        all |= p->mask[i];
    p->vanishes = p->term && e->reduce == RED_SUM && at_zero(p->term) == 0;
    return p->term && (all & MATMUL_K) && (all & t.left) && (all & t.right);
}
