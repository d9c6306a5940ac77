/* Which scores of attention count, by asking the equations about pairs of a row and a key. */
#include <config.h>

#include "bench/attention.h"

#include <math.h>

/* ---- values ---- */

static const struct spec_param *param_of(const struct attention_at *at,
                                         const struct lang_symbol *sym)
{
    return sym->kind == SYM_SCALAR ? &at->s->params.v[sym->id] : NULL;
}

static bool named(const struct attention_at *at, const struct lang_symbol *sym, double *out)
{
    const struct bench_value *v =
        sym->kind == SYM_DIM || sym->kind == SYM_SCALAR ? bench_find(at->p, sym->name) : NULL;
    const struct spec_param *p = param_of(at, sym);
    if (sym->kind == SYM_DIM && sym->has_value)
        *out = (double)sym->value;
    else if (v)
        *out = v->f;
    else
        return p && p->value && attention_scalar(at, p->value, out);
    return true;
}

bool attention_scalar(const struct attention_at *at, const struct lang_expr *e, double *out)
{
    double x, y;
    switch ((int)e->kind) {
    case E_INT:
    case E_BOOL: *out = (double)(int64_t)e->ival; return true;
    case E_FLOAT: *out = e->fval; return true;
    case E_NAME: return named(at, e->sym, out);
    case E_CAST: return attention_scalar(at, e->args[0], out);
    case E_UNARY:
        *out = attention_scalar(at, e->args[0], &x) ? -x : 0;
        return e->op == OP_NEG && attention_scalar(at, e->args[0], &x);
    case E_BINARY:
        if (!attention_scalar(at, e->args[0], &x) || !attention_scalar(at, e->args[1], &y))
            return false;
        *out = e->op == OP_MUL ? x * y : e->op == OP_DIV ? x / y : e->op == OP_ADD ? x + y : x - y;
        return e->op == OP_MUL || e->op == OP_DIV || e->op == OP_ADD || e->op == OP_SUB;
    default: return false;
    }
}

static bool binary(enum lang_op op, int64_t x, int64_t y, int64_t *out)
{
    switch ((int)op) {
    case OP_ADD: *out = x + y; return true;
    case OP_SUB: *out = x - y; return true;
    case OP_MUL: *out = x * y; return true;
    case OP_DIV: *out = y ? x / y : 0; return y != 0;
    case OP_MOD: *out = y ? x % y : 0; return y != 0;
    case OP_LT: *out = x < y; return true;
    case OP_GT: *out = x > y; return true;
    case OP_LE: *out = x <= y; return true;
    case OP_GE: *out = x >= y; return true;
    case OP_EQ: *out = x == y; return true;
    case OP_NE: *out = x != y; return true;
    case OP_LAND: *out = x && y; return true;
    case OP_LOR: *out = x || y; return true;
    default: return false;
    }
}

/* An element of an input, from its contents, or of lengths by sequence as what is assumed. */
static bool element(const struct attention_at *at, const struct lang_expr *e,
                    struct attention_env *env, int64_t *out)
{
    const struct lang_symbol *sym = e->sym;
    uint64_t flat = 0;
    if (sym->kind != SYM_BUFFER || sym->mode != MODE_IN || dtype_is_float(sym->type) || e->pad)
        return false;
    if (env->assume) {
        const struct lang_expr *by = e->args[0];
        while (by->kind == E_CAST)
            by = by->args[0];
        bool good = e->nargs == 1 && by->kind == E_NAME && env->index[0] &&
                    by->sym == env->index[0] && (!env->lengths || env->lengths == sym);
        env->lengths = good ? sym : env->lengths;
        *out = env->length;
        return good;
    }
    if (!at->buffers || !at->buffers[sym->id])
        return false;
    for (uint32_t k = 0; k < e->nargs; k++) {
        struct attention_env none = {0};
        int64_t i, n;
        if (!attention_whole(at, e->args[k], env, &i) ||
            !attention_whole(at, sym->dims[k], &none, &n) || i < 0 || i >= n)
            return false;
        flat = flat * (uint64_t)n + (uint64_t)i;
    }
    *out = dtype_get_int(sym->type, at->buffers[sym->id], (size_t)flat);
    return true;
}

static bool name(const struct attention_at *at, const struct lang_symbol *sym,
                 const struct attention_env *env, int64_t *out)
{
    double v;
    for (int k = 0; k < 4; k++)
        if (sym->kind == SYM_INDEX && env->index[k] == sym) {
            *out = env->value[k];
            return true;
        }
    if (!named(at, sym, &v) || v != floor(v) || fabs(v) > 0x1p53)
        return false;
    *out = (int64_t)v;
    return true;
}

bool attention_whole(const struct attention_at *at, const struct lang_expr *e,
                     struct attention_env *env, int64_t *out)
{
    int64_t x, y;
    switch ((int)e->kind) {
    case E_INT:
    case E_BOOL: *out = (int64_t)e->ival; return true;
    case E_NAME: return name(at, e->sym, env, out);
    case E_INDEX: return element(at, e, env, out);
    case E_CAST: return !dtype_is_float(e->type) && attention_whole(at, e->args[0], env, out);
    case E_COND:
        return attention_whole(at, e->args[0], env, &x) &&
               attention_whole(at, e->args[x ? 1 : 2], env, out);
    case E_UNARY:
        if (!attention_whole(at, e->args[0], env, &x))
            return false;
        *out = e->op == OP_NEG ? -x : !x;
        return e->op == OP_NEG || e->op == OP_NOT;
    case E_CALL:
        if (e->func || (e->fn != FN_MIN && e->fn != FN_MAX) ||
            !attention_whole(at, e->args[0], env, &x) || !attention_whole(at, e->args[1], env, &y))
            return false;
        *out = (e->fn == FN_MIN) == (x < y) ? x : y;
        return true;
    case E_BINARY:
        return attention_whole(at, e->args[0], env, &x) &&
               attention_whole(at, e->args[1], env, &y) && binary(e->op, x, y, out);
    default: return false;
    }
}

/* ---- pairs ---- */

struct question {
    const struct attention_at *at;
    const struct attention_mask *mask;
    struct attention_env env;
    bool failed; /* something has no value */
};

static struct question ask(const struct attention_at *at, const struct attention_mask *mask)
{
    const struct attention_roles *r = &mask->roles;
    return (struct question){at, mask, {.index = {r->batch, r->head, r->row, r->key}}, false};
}

/* Does the pair of row i and key j count? */
static bool lets(struct question *q, int64_t i, int64_t j)
{
    const struct lang_symbol *s = q->mask->summed;
    const int64_t at = s == q->mask->roles.key ? j : i;
    int64_t low = 0, high = 0, holds = 1;
    q->env.value[2] = i;
    q->env.value[3] = j;
    q->failed |= (s->low && !attention_whole(q->at, s->low, &q->env, &low)) ||
                 !attention_whole(q->at, s->dims[0], &q->env, &high);
    bool good = !q->failed && at >= low && at < high;
    for (size_t k = 0; k < q->mask->conditions.n && good; k++) {
        q->failed |= !attention_whole(q->at, q->mask->conditions.v[k], &q->env, &holds);
        good = !q->failed && holds;
    }
    return good;
}

/* Where the row's keys begin and end; false: they are not one stretch. */
static bool stretch_of(struct question *q, int64_t i, int64_t n, int64_t *first, int64_t *end)
{
    int64_t count = 0;
    *first = *end = 0;
    for (int64_t j = 0; j < n && !q->failed; j++)
        if (lets(q, i, j)) {
            *first = count++ ? *first : j;
            *end = j + 1;
        }
    return !q->failed && *end - *first == count;
}

/* ---- what a library has ---- */

static bool expected(const struct sdpa_problem *p, int64_t length, int64_t i, int64_t j)
{
    const bool by_length = p->tensor[SDPA_LENGTHS].is_there;
    const int64_t shift = by_length ? length - (int64_t)p->m : p->shift;
    return j < length && (!p->causal || j <= i + shift) &&
           (!p->window || j + (int64_t)p->window > i + shift);
}

/* Samples of rows and keys, those about every edge among them. */
static bool agrees(struct question *q, const struct sdpa_problem *p, int64_t length)
{
    enum { ROWS = 24, KEYS = 40 };
    const int64_t m = (int64_t)p->m, n = (int64_t)p->n;
    for (int64_t r = 0; r < ROWS; r++) {
        const int64_t i = r < 3 ? r : m - 1 - (r - 3) * m / ROWS;
        const int64_t shift = p->tensor[SDPA_LENGTHS].is_there ? length - m : p->shift;
        for (int64_t c = 0; c < KEYS && i >= 0 && i < m; c++) {
            const int64_t near[] = {i + shift, i + shift - (int64_t)p->window, length, n, 0};
            const int64_t j = c < 20 ? near[c / 4] + c % 4 - 2 : (c - 20) * n / (KEYS - 20);
            if (j >= 0 && j < n && lets(q, i, j) != expected(p, length, i, j))
                return false;
        }
    }
    return !q->failed;
}

/* The causal edge and the window, from the keys of a row. */
static void take_edges(struct attention *x, int64_t i, int64_t length, int64_t first, int64_t end)
{
    struct sdpa_problem *p = &x->problem;
    if (end < length && end > 0) {
        p->causal = true;
        p->shift = end - 1 - i;
    }
    if (first > 0)
        p->window = (uint64_t)(i + p->shift - first + 1);
}

bool attention_classify(const struct attention_at *at, const struct attention_mask *mask,
                        struct attention *x)
{
    struct sdpa_problem *p = &x->problem;
    struct question q = ask(at, mask);
    const int64_t m = (int64_t)p->m, n = (int64_t)p->n;
    int64_t first, end;
    q.env.assume = true;
    q.env.length = n;
    for (int step = 0; step < 2; step++) { /* of the last row's and a middle one's keys */
        const int64_t i = step ? m / 2 : m - 1;
        if (!stretch_of(&q, i, n, &first, &end)) {
            x->why = q.failed
                         ? "cuDNN has no mask that depends on data but for lengths of sequences"
                         : "cuDNN has no mask with gaps";
            return false;
        }
        take_edges(x, i, n, first, end);
    }
    x->sym[SDPA_LENGTHS] = q.env.lengths;
    p->tensor[SDPA_LENGTHS].is_there = q.env.lengths != NULL;
    bool good = agrees(&q, p, n);
    if (good && q.env.lengths) {
        q.env.length = n / 2 + 1;
        p->causal |= p->m > 1 && !agrees(&q, p, q.env.length);
        good = agrees(&q, p, q.env.length);
    }
    if (good && p->causal && p->shift != 0 && p->shift != n - m)
        good = false;
    if (!good)
        x->why = "cuDNN has no such mask";
    else if (p->window && !p->causal)
        x->why = "cuDNN has no window without a causal mask";
    return !x->why;
}

bool attention_same_mask(const struct attention_at *at, const struct attention_mask *mask,
                         const struct attention *x)
{
    struct question q = ask(at, mask);
    q.env.assume = true;
    q.env.length = (int64_t)x->problem.n;
    return agrees(&q, &x->problem, q.env.length);
}

/* Counted where the range tells it, else asked for each key, of some rows. */
static int64_t keys_of_row(struct question *q, int64_t i, int64_t n)
{
    const struct lang_symbol *s = q->mask->summed;
    int64_t low = 0, high = 0, count = 0;
    if (s == q->mask->roles.key && q->mask->conditions.n == 0) {
        q->env.value[2] = i;
        q->failed |= (s->low && !attention_whole(q->at, s->low, &q->env, &low)) ||
                     !attention_whole(q->at, s->dims[0], &q->env, &high);
        low = low < 0 ? 0 : low;
        high = high > n ? n : high;
        return high > low ? high - low : 0;
    }
    for (int64_t j = 0; j < n && !q->failed; j++)
        count += lets(q, i, j);
    return count;
}

double attention_pairs(const struct attention_at *at, const struct attention_mask *mask,
                       const struct sdpa_problem *p)
{
    enum { MOST = 1 << 21 }; /* questions */
    struct question q = ask(at, mask);
    const bool by_range = mask->summed == mask->roles.key && mask->conditions.n == 0;
    const double cost = by_range ? 1 : (double)p->n;
    const uint64_t all = p->batch * p->m;
    const double most = fmax(MOST / cost, 16);
    const uint64_t rows = (double)all < most ? all : (uint64_t)most;
    double sum = 0;
    for (uint64_t r = 0; r < rows && !q.failed; r++) { /* in the middles of as many parts */
        const uint64_t row = (uint64_t)(((double)r + 0.5) * (double)all / (double)rows);
        q.env.value[0] = (int64_t)(row / p->m);
        sum += (double)keys_of_row(&q, (int64_t)(row % p->m), (int64_t)p->n);
    }
    return q.failed || !rows ? 0 : sum * (double)all / (double)rows * (double)p->heads;
}
