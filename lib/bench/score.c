/* The parts of attention: its scores, and how its operands lie. */
#include <config.h>

#include "bench/formula.h"

#include <math.h>

enum { BATCH, HEAD, ROW, COLUMN };

/* ---- the score ---- */

static bool take_added(struct finder *f, struct score *s, const struct lang_expr *e, bool falls)
{
    e = formula_bare(e);
    if (formula_is_read(e) && !falls && !s->bias) {
        s->bias = e;
        return true;
    }
    for (int k = 0; k < 2 && formula_is_binary(e, OP_MUL) && !s->slope; k++)
        if (formula_is_read(formula_bare(e->args[k])) && formula_bare(e->args[k])->nargs == 1) {
            s->slope = formula_bare(e->args[k]);
            s->distance = formula_bare(e->args[1 - k]);
            s->slope_falls = falls;
            return true;
        }
    return formula_fail(f, "cuDNN adds nothing to scores but a bias, or slopes times distances");
}

bool formula_read_score(struct finder *f, const struct lang_expr *e, struct attention_mask *m,
                        struct score *s)
{
    double factor = 1;
    for (;;) {
        e = formula_take_factor(f, formula_take_conditions(f, e, m), &factor);
        if (formula_is_reduce(e, RED_SUM)) {
            s->dot = e;
            s->scale = factor * (s->cap > 0 ? s->cap : 1);
            return true;
        }
        if (formula_is_call(e, FN_TANH) && s->cap == 0) {
            s->cap = factor;
            factor = 1;
            e = e->args[0];
            continue;
        }
        if (!formula_is_binary(e, OP_ADD) && !formula_is_binary(e, OP_SUB))
            return formula_fail(f, "cuDNN has no such scores");
        const int main = formula_has_sum(e->args[0]) ? 0 : 1;
        if (factor != 1 || s->cap > 0 || (main == 1 && e->op == OP_SUB))
            return formula_fail(f, "cuDNN has no such scores");
        if (!take_added(f, s, e->args[1 - main], e->op == OP_SUB))
            return false;
        e = e->args[main];
    }
}

/* ---- operands ---- */

static bool extent(struct finder *f, const struct lang_expr *e, uint64_t *out)
{
    double v;
    bool good = formula_scalar(f, e, &v) && v >= 0;
    *out = good ? (uint64_t)v : 0;
    return good;
}

/* Which of batch, head, row or key, and column an index is; -1: none of them. */
static int role_of(const struct indices *x, const struct lang_symbol *sym)
{
    return sym == x->roles.batch                        ? BATCH
           : sym == x->roles.head                       ? HEAD
           : sym == x->roles.row || sym == x->roles.key ? ROW
           : sym == x->column || sym == x->term         ? COLUMN
                                                        : -1;
}

/* h / group, j % 16: the index and the number. */
static bool by_number(struct finder *f, const struct lang_expr *e, enum lang_op op,
                      const struct lang_symbol **sym, uint64_t *n)
{
    if (!formula_is_binary(e, op) || !extent(f, e->args[1], n) || *n == 0)
        return false;
    e = formula_bare(e->args[0]);
    *sym = e->kind == E_NAME ? e->sym : NULL;
    return *sym != NULL;
}

static int subscript(struct finder *f, struct indices *x, const struct lang_expr *e, uint64_t *at)
{
    const struct lang_symbol *sym = NULL;
    uint64_t n = 0;
    e = formula_bare(e);
    *at = 0;
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX)
        return role_of(x, e->sym);
    if (by_number(f, e, OP_DIV, &sym, &n) && sym == x->roles.head &&
        (x->group == 0 || x->group == (int64_t)n)) {
        x->group = (int64_t)n;
        return HEAD;
    }
    if (by_number(f, e, OP_MOD, &sym, &n) && sym == x->roles.key) {
        x->page_size = n;
        return ROW;
    }
    if (formula_is_read(e) && e->nargs == 2 &&
        by_number(f, formula_bare(e->args[1]), OP_DIV, &sym, &n) && sym == x->roles.key) {
        x->page = e;
        return BATCH;
    }
    return extent(f, e, at) ? COLUMN + 1 : -1;
}

/* How a buffer lies. Roles that it has not have extent 1. */
bool formula_view(struct finder *f, struct indices *x, const struct lang_expr *e,
                  enum sdpa_buffer which)
{
    struct sdpa_tensor *t = &f->x->problem.tensor[which];
    uint64_t stride = 1, n, at;
    if (e->kind != E_INDEX || e->sym->kind != SYM_BUFFER || e->pad)
        return formula_fail(f, "an operand of it is no parameter");
    *t = (struct sdpa_tensor){.is_there = true, .type = e->sym->type, .dim = {1, 1, 1, 1}};
    f->x->sym[which] = e->sym;
    f->x->offset[which] = 0;
    for (uint32_t k = e->nargs; k > 0; k--) {
        const int role = subscript(f, x, e->args[k - 1], &at);
        if (role < 0 || !extent(f, e->sym->dims[k - 1], &n))
            return formula_fail(f, "cuDNN reads its operands by batch, head, row and column only");
        if (role <= COLUMN && t->stride[role])
            return formula_fail(f, "a dimension is read by two subscripts");
        if (role <= COLUMN) {
            t->dim[role] = n;
            t->stride[role] = stride;
        } else {
            f->x->offset[which] += at * stride;
        }
        stride *= n;
    }
    for (int k = 0; k < 4; k++)
        t->stride[k] = t->stride[k] ? t->stride[k] : stride;
    return true;
}

/* An output, or what is read like it, by the equation's own indices. */
bool formula_view_output(struct finder *f, struct indices *x, const struct lang_equation *q,
                         enum sdpa_buffer which)
{
    struct lang_expr e = {.kind = E_INDEX, .sym = q->sym, .nargs = q->nindex};
    e.args = ARENA_ARRAY(f->a, q->nindex, struct lang_expr *);
    for (uint32_t k = 0; k < q->nindex; k++) {
        e.args[k] = ARENA_NEW(f->a, struct lang_expr);
        *e.args[k] = (struct lang_expr){.kind = E_NAME, .sym = q->index[k]};
    }
    return formula_view(f, x, &e, which);
}

/* ---- who is who ---- */

/* Among an output's indices those of the batch and the heads: a head is divided, or the later. */
bool formula_find_axes(struct finder *f, const struct lang_equation *q, struct indices *x,
                       const struct lang_expr *k)
{
    const struct lang_symbol *rest[2] = {NULL, NULL}, *divided = NULL;
    uint64_t n;
    unsigned count = 0;
    for (uint32_t i = 0; i < k->nargs; i++) {
        const struct lang_symbol *sym;
        if (by_number(f, formula_bare(k->args[i]), OP_DIV, &sym, &n) && sym != x->roles.key)
            divided = sym;
    }
    for (uint32_t i = 0; i < q->nindex; i++) {
        const struct lang_symbol *sym = q->index[i];
        if (sym == x->column || sym == x->roles.row || sym == x->roles.key)
            continue;
        if (count == 2)
            return formula_fail(f, "cuDNN has one dimension for the batch and one for heads");
        rest[count++] = sym;
    }
    x->roles.head = divided ? divided : rest[1] ? rest[1] : rest[0];
    x->roles.batch = x->roles.head == rest[0] ? rest[1] : rest[0];
    return true;
}

/* The operands of sum[c](a * b), the one with the key's index second. */
bool formula_operands(const struct lang_expr *dot, const struct lang_symbol *key,
                      const struct lang_expr **q, const struct lang_expr **k)
{
    const struct lang_expr *e = formula_bare(dot->args[0]);
    if (!formula_is_binary(e, OP_MUL))
        return false;
    *q = formula_bare(e->args[0]);
    *k = formula_bare(e->args[1]);
    if (formula_mentions(*q, key)) {
        const struct lang_expr *other = *q;
        *q = *k;
        *k = other;
    }
    return (*q)->kind == E_INDEX && (*k)->kind == E_INDEX && formula_mentions(*k, key) &&
           !formula_mentions(*q, key);
}

/* The slope's distance must be i - j, or with a shift where no lse tells the difference. */
static bool check_distance(struct finder *f, const struct score *s, const struct indices *x)
{
    static const int64_t pairs[][2] = {{0, 0}, {1, 0}, {0, 1}};
    int64_t v[3];
    for (int k = 0; k < 3; k++) {
        struct attention_env env = {.index = {x->roles.row, x->roles.key},
                                    .value = {pairs[k][0], pairs[k][1]}};
        if (!attention_whole(f->at, s->distance, &env, &v[k]))
            return false;
    }
    const int64_t sign = s->slope_falls ? 1 : -1;
    return v[1] - v[0] == sign && v[2] - v[0] == -sign &&
           (v[0] == 0 || !f->x->problem.tensor[SDPA_LSE].is_there);
}

/* A bias has rows and keys. */
static bool view_bias(struct finder *f, struct indices x, const struct lang_expr *e)
{
    x.term = x.roles.key;
    x.roles.key = NULL;
    return formula_view(f, &x, e, SDPA_BIAS);
}

/* The sum may end in front of the operands' last columns. */
static bool take_terms(struct finder *f, const struct lang_symbol *term)
{
    uint64_t low = 0, end;
    if ((term->low && !extent(f, term->low, &low)) || low != 0 || !extent(f, term->dims[0], &end))
        return formula_fail(f, "its scores are no products of whole rows");
    for (int k = SDPA_Q; k <= SDPA_K; k++) {
        uint64_t *n = &f->x->problem.tensor[k].dim[COLUMN];
        *n = *n < end ? *n : end;
    }
    return true;
}

bool formula_take_score(struct finder *f, struct indices *x, const struct score *s)
{
    struct sdpa_problem *p = &f->x->problem;
    const struct lang_expr *q, *k;
    x->term = s->dot->index[0];
    p->scale = s->scale;
    p->cap = s->cap;
    if (!formula_operands(s->dot, x->roles.key, &q, &k))
        return formula_fail(f, "its scores are no products of two parameters");
    if (!formula_view(f, x, q, SDPA_Q) || !formula_view(f, x, k, SDPA_K) || !take_terms(f, x->term))
        return false;
    if (s->bias && !view_bias(f, *x, s->bias))
        return false;
    if (!s->slope)
        return true;
    return formula_view(f, x, s->slope, SDPA_SLOPE) &&
           (check_distance(f, s, x) || formula_fail(f, "cuDNN has no such slopes"));
}

static void take_sizes(struct finder *f, const struct indices *x)
{
    struct sdpa_problem *p = &f->x->problem;
    struct sdpa_tensor *t = p->tensor;
    if (t[SDPA_V].dim[COLUMN] > t[SDPA_O].dim[COLUMN])
        t[SDPA_V].dim[COLUMN] = t[SDPA_O].dim[COLUMN]; /* more than that is not read */
    p->batch = t[SDPA_Q].dim[BATCH];
    p->heads = t[SDPA_Q].dim[HEAD];
    p->m = t[SDPA_Q].dim[ROW];
    p->d = t[SDPA_Q].dim[COLUMN];
    p->kv_heads = t[SDPA_K].dim[HEAD];
    p->n = t[SDPA_K].dim[ROW];
    p->e = t[SDPA_V].dim[COLUMN];
    if (!x->page)
        return;
    struct sdpa_tensor *pages = &p->tensor[SDPA_PAGES];
    uint64_t most = 0;
    extent(f, x->page->sym->dims[1], &most);
    p->n = most * x->page_size;
    f->x->sym[SDPA_PAGES] = x->page->sym;
    *pages = (struct sdpa_tensor){true, DT_I32, {p->batch, 1, most, 1}, {most, most, 1, 1}};
}

static bool check_types(struct finder *f)
{
    const struct sdpa_problem *p = &f->x->problem;
    if (dtype_is_fp8(p->tensor[SDPA_Q].type) && !dtype_is_fp8(p->tensor[SDPA_O].type))
        return formula_fail(f, "on Hopper cuDNN's attention of 8-bit floats gives 8-bit floats");
    for (int k = 0; k < SDPA_BUFFERS; k++) {
        const bool number = k == SDPA_LSE || k == SDPA_SLOPE;
        const bool whole = k == SDPA_PAGES || k == SDPA_LENGTHS || k == SDPA_ROWS;
        const enum dtype t = p->tensor[k].type;
        if (p->tensor[k].is_there && f->x->sym[k] &&
            (whole    ? f->x->sym[k]->type != DT_I32
             : number ? t != DT_F32
                      : t != p->tensor[SDPA_Q].type || (t != DT_F16 && t != DT_BF16)))
            return formula_fail(
                f, "cuDNN has attention of f16 and of bf16, all operands alike, and lse and "
                   "slopes of f32");
    }
    return true;
}

/* Sizes that must fit, types, the mask: what is left when all parts are found. */
bool formula_settle(struct finder *f, const struct indices *x, const struct attention_mask *mask)
{
    struct sdpa_problem *p = &f->x->problem;
    take_sizes(f, x);
    f->x->is_found = true;
    f->x->pairs = attention_pairs(f->at, mask, p);
    f->x->operations = 2 * f->x->pairs * (double)(p->backward ? 3 * p->d + 2 * p->e : p->d + p->e);
    const bool shared = p->kv_heads == 1 && !p->backward; /* all heads read the same */
    const uint64_t group = x->group ? (uint64_t)x->group : shared ? p->heads : 1;
    if (p->kv_heads * group != p->heads || p->tensor[SDPA_V].dim[HEAD] != p->kv_heads)
        return formula_fail(f, "heads do not go by groups");
    if (p->m == 0 || p->n == 0 || p->batch == 0 || p->d == 0)
        return formula_fail(f, "a dimension is 0");
    if (!check_types(f) || !attention_classify(f->at, mask, f->x))
        return false;
    const bool counted = f->x->sym[SDPA_LENGTHS] || p->tensor[SDPA_PAGES].is_there;
    p->tensor[SDPA_LENGTHS] = p->tensor[SDPA_ROWS] =
        (struct sdpa_tensor){counted, DT_I32, {p->batch, 1, 1, 1}, {1, 1, 1, 1}};
    return true;
}
