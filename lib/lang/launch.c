#include <config.h>

#include "lang/launch.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

struct lang_expr *lx_int(struct arena *a, int64_t n)
{
    struct lang_expr *e = ARENA_NEW(a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_INT, .type = DT_I64, .ival = (uint64_t)n, .height = 1};
    return e;
}

struct lang_expr *lx_bool(struct arena *a, bool b)
{
    struct lang_expr *e = ARENA_NEW(a, struct lang_expr);
    *e = (struct lang_expr){.kind = E_BOOL, .type = DT_BOOL, .ival = b, .height = 1};
    return e;
}

struct lang_expr *lx_multiprocessors(struct arena *a)
{
    struct lang_expr *e = ARENA_NEW(a, struct lang_expr);
    *e = (struct lang_expr){
        .kind = E_SPECIAL, .type = DT_U32, .special = SP_MULTIPROCESSORS, .height = 1};
    return e;
}

struct lang_expr *lx_operand(struct arena *a, const struct lang_expr *e)
{
    struct lang_expr *copy = ARENA_NEW(a, struct lang_expr);
    *copy = *e;
    return copy;
}

static struct lang_expr *node(struct arena *a, struct lang_expr head, uint32_t n,
                              struct lang_expr *const *arg)
{
    struct lang_expr *e = ARENA_NEW(a, struct lang_expr);
    *e = head;
    e->nargs = n;
    e->args = ARENA_ARRAY(a, n, struct lang_expr *);
    e->height = 1;
    for (uint32_t i = 0; i < n; i++) {
        e->args[i] = arg[i];
        if (arg[i]->height >= e->height)
            e->height = arg[i]->height + 1;
    }
    return e;
}

/* As a constant where it is one. */
static struct lang_expr *folded(struct arena *a, struct lang_expr *e)
{
    int64_t n;
    if (!lang_const_int(e, &n))
        return e;
    return e->type == DT_BOOL ? lx_bool(a, n != 0) : lx_int(a, n);
}

static struct lang_expr *binary(struct arena *a, enum lang_op op, enum dtype type,
                                struct lang_expr *x, struct lang_expr *y)
{
    const struct lang_expr head = {.kind = E_BINARY, .op = op, .type = type};
    return folded(a, node(a, head, 2, (struct lang_expr *[]){x, y}));
}

static struct lang_expr *call(struct arena *a, enum lang_builtin fn, uint32_t n,
                              struct lang_expr *const *arg)
{
    const struct lang_expr head = {
        .kind = E_CALL, .fn = fn, .name = lang_builtin_name(fn), .type = DT_I64};
    return folded(a, node(a, head, n, arg));
}

static bool is(const struct lang_expr *e, int64_t n)
{
    int64_t v;
    return lang_const_int(e, &v) && v == n;
}

const struct lang_expr *lx_strip(const struct lang_expr *e)
{
    while (e->kind == E_CAST && e->is_implicit)
        e = e->args[0];
    return e;
}

/* The operator's node, of two operands; NULL: e is another one. */
static const struct lang_expr *is_made_by(const struct lang_expr *e, enum lang_op op)
{
    e = lx_strip(e);
    return e->kind == E_BINARY && e->op == op ? e : NULL;
}

/* x op y, where x op (u op v) is (x op u) op v. */
static struct lang_expr *associative(struct arena *a, enum lang_op op, enum dtype type,
                                     struct lang_expr *x, struct lang_expr *y)
{
    const struct lang_expr *right = is_made_by(y, op);
    if (right)
        return associative(a, op, type, associative(a, op, type, x, right->args[0]),
                           right->args[1]);
    return binary(a, op, type, x, y);
}

/* ---- integers -------------------------------------------------------------------------------- */

struct lang_expr *lx_add(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    return is(x, 0) ? y : is(y, 0) ? x : associative(a, OP_ADD, DT_I64, x, y);
}

struct lang_expr *lx_sub(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    return is(y, 0) ? x : binary(a, OP_SUB, DT_I64, x, y);
}

struct lang_expr *lx_mul(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    if (is(x, 1) || is(y, 0))
        return y;
    return is(y, 1) || is(x, 0) ? x : associative(a, OP_MUL, DT_I64, x, y);
}

struct lang_expr *lx_div(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    return is(y, 1) ? x : binary(a, OP_DIV, DT_I64, x, y);
}

struct lang_expr *lx_ceil_div(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    return is(y, 1) ? x : call(a, FN_CEIL_DIV, 2, (struct lang_expr *[]){x, y});
}

struct lang_expr *lx_min(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    return lx_same(x, y) ? x : call(a, FN_MIN, 2, (struct lang_expr *[]){x, y});
}

struct lang_expr *lx_max(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    return lx_same(x, y) ? x : call(a, FN_MAX, 2, (struct lang_expr *[]){x, y});
}

struct lang_expr *lx_clamp(struct arena *a, struct lang_expr *x, struct lang_expr *low,
                           struct lang_expr *high)
{
    return lx_same(low, high) ? low : call(a, FN_CLAMP, 3, (struct lang_expr *[]){x, low, high});
}

/* ---- conditions ------------------------------------------------------------------------------ */

struct lang_expr *lx_compare(struct arena *a, enum lang_op op, struct lang_expr *x,
                             struct lang_expr *y)
{
    return binary(a, op, DT_BOOL, x, y);
}

struct lang_expr *lx_is_multiple(struct arena *a, struct lang_expr *x, int64_t n)
{
    if (n == 1)
        return lx_bool(a, true);
    return lx_compare(a, OP_EQ, binary(a, OP_MOD, DT_I64, x, lx_int(a, n)), lx_int(a, 0));
}

struct lang_expr *lx_and(struct arena *a, struct lang_expr *x, struct lang_expr *y)
{
    if (!x || !y)
        return x ? x : y;
    if (is(x, 1) || is(y, 0))
        return y;
    return is(y, 1) || is(x, 0) ? x : associative(a, OP_LAND, DT_BOOL, x, y);
}

struct lang_expr *lx_select(struct arena *a, struct lang_expr *condition, struct lang_expr *x,
                            struct lang_expr *y)
{
    int64_t known;
    if (lang_const_int(condition, &known))
        return known ? x : y;
    if (lx_same(x, y))
        return x;
    const struct lang_expr head = {.kind = E_COND, .type = x->type};
    return node(a, head, 3, (struct lang_expr *[]){condition, x, y});
}

/* ---- with a number --------------------------------------------------------------------------- */

struct lang_expr *lx_add_int(struct arena *a, struct lang_expr *x, int64_t n)
{
    return lx_add(a, x, lx_int(a, n));
}

struct lang_expr *lx_mul_int(struct arena *a, struct lang_expr *x, int64_t n)
{
    return lx_mul(a, x, lx_int(a, n));
}

struct lang_expr *lx_div_int(struct arena *a, struct lang_expr *x, int64_t n)
{
    return lx_div(a, x, lx_int(a, n));
}

struct lang_expr *lx_ceil_div_int(struct arena *a, struct lang_expr *x, int64_t n)
{
    return lx_ceil_div(a, x, lx_int(a, n));
}

struct lang_expr *lx_at_most(struct arena *a, struct lang_expr *x, int64_t n)
{
    return lx_compare(a, OP_LE, x, lx_int(a, n));
}

struct lang_expr *lx_at_least(struct arena *a, struct lang_expr *x, int64_t n)
{
    return lx_compare(a, OP_GE, x, lx_int(a, n));
}

/* ---- equality -------------------------------------------------------------------------------- */

bool lx_same(const struct lang_expr *x, const struct lang_expr *y)
{
    x = lx_strip(x);
    y = lx_strip(y);
    if (x == y)
        return true;
    if (!lang_same_node(x, y))
        return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!lx_same(x->args[i], y->args[i]))
            return false;
    return true;
}
