/* Attention in a spec's equations (attention.h). */
#include <config.h>

#include "bench/formula.h"

#include <inttypes.h>

/* ---- forward ---- */

/* total == 0 ? 0 : e */
static const struct lang_expr *without_guard(struct finder *f, const struct lang_expr *e)
{
    double v;
    e = formula_bare(e);
    return e->kind == E_COND && formula_scalar(f, e->args[1], &v) && v == 0
               ? formula_bare(e->args[2])
               : e;
}

struct softmax {
    const struct lang_expr *sum, *total, *top; /* the reductions */
    const struct lang_expr *weight, *value;
    const struct lang_expr *x; /* in the exponential, without its maximum */
};

/* sum[j](exp(x - top) * v) / sum[j](exp(x - top)) */
static bool is_softmax(struct finder *f, const struct lang_expr *e, struct softmax *s)
{
    e = without_guard(f, e);
    if (!formula_is_binary(e, OP_DIV))
        return false;
    const struct lang_expr *y = formula_bare(e->args[0]), *total = formula_bare(e->args[1]);
    if (!formula_is_reduce(y, RED_SUM) || !formula_is_reduce(total, RED_SUM) ||
        !formula_is_binary(formula_bare(y->args[0]), OP_MUL))
        return false;
    const struct lang_expr *product = formula_bare(y->args[0]);
    const struct renamed both = {y->index[0], total->index[0], NULL};
    for (int k = 0; k < 2; k++) {
        s->weight = formula_bare(product->args[k]);
        s->value = formula_bare(product->args[1 - k]);
        if (s->value->kind == E_INDEX && formula_same(s->weight, total->args[0], &both))
            break;
        s->weight = NULL;
    }
    s->sum = y;
    s->total = total;
    return s->weight && formula_same_range(y->index[0], total->index[0]);
}

static bool is_exponential(struct finder *f, struct softmax *s, const struct lang_symbol *key,
                           struct attention_mask *m)
{
    const struct lang_expr *e = formula_take_conditions(f, s->weight, m);
    if (!formula_is_call(e, FN_EXP) || !formula_is_binary(formula_bare(e->args[0]), OP_SUB))
        return false;
    e = formula_bare(e->args[0]);
    s->x = e->args[0];
    s->top = formula_bare(e->args[1]);
    if (!formula_is_reduce(s->top, RED_MAX) || !formula_same_range(s->top->index[0], key))
        return false;
    const struct renamed both = {s->top->index[0], key, NULL};
    return formula_same(s->top->args[0], s->x, &both);
}

/* top + log(total) */
static bool is_lse(const struct lang_expr *e, const struct softmax *s)
{
    e = formula_bare(e);
    return formula_is_binary(e, OP_ADD) && formula_same(e->args[0], s->top, NULL) &&
           formula_is_call(formula_bare(e->args[1]), FN_LOG) &&
           formula_same(formula_bare(e->args[1])->args[0], s->total, NULL);
}

/* The rows of lse have indices of their own. */
static bool take_lse(struct finder *f, const struct lang_equation *o, const struct lang_equation *q,
                     const struct softmax *s, struct indices *x)
{
    const struct bound *b = NULL;
    unsigned at = 0;
    for (uint32_t k = 0; k < o->nindex; k++) {
        if (o->index[k] == x->column)
            continue;
        /* in the order of o's, or by name where orders differ */
        const struct lang_symbol *own = at < q->nindex ? q->index[at++] : NULL;
        for (uint32_t i = 0; i < q->nindex; i++)
            if (strcmp(q->index[i]->name, o->index[k]->name) == 0)
                own = q->index[i];
        if (!own)
            return false;
        struct lang_expr *name = ARENA_NEW(f->a, struct lang_expr);
        struct bound *next = ARENA_NEW(f->a, struct bound);
        *name = (struct lang_expr){
            .kind = E_NAME, .type = DT_I64, .sym = (struct lang_symbol *)(uintptr_t)o->index[k]};
        *next = (struct bound){own, name, b};
        b = next;
    }
    if (!is_lse(formula_expand(f, q->rhs, b), s))
        return false;
    struct lang_equation turned = *q;
    turned.index = ARENA_ARRAY(f->a, q->nindex, struct lang_symbol *);
    for (uint32_t k = 0; k < q->nindex; k++)
        for (const struct bound *i = b; i; i = i->next)
            if (i->from == q->index[k])
                turned.index[k] = i->to->sym;
    return formula_view_output(f, x, &turned, SDPA_LSE);
}

static bool take_other_outputs(struct finder *f, const struct lang_equations *all,
                               const struct lang_equation *o, const struct softmax *s,
                               struct indices *x)
{
    for (size_t k = 0; k < all->n; k++) {
        const struct lang_equation *q = formula_output_equation(all, k);
        if (q && q != o && !take_lse(f, o, q, s, x))
            return formula_fail(f, arena_printf(f->a, "cuDNN does not compute '%s'", q->sym->name));
    }
    return true;
}

static bool find_row(const struct lang_equation *o, struct indices *x, const struct lang_expr *q,
                     const struct lang_expr *k, const struct lang_expr *v)
{
    for (uint32_t i = 0; i < o->nindex; i++) {
        const struct lang_symbol *sym = o->index[i];
        const bool in_q = formula_mentions(q, sym), in_k = formula_mentions(k, sym),
                   in_v = formula_mentions(v, sym);
        if (in_v && !in_q && !in_k)
            x->column = sym;
        else if (in_q && !in_k && !in_v)
            x->roles.row = sym;
    }
    return x->column != NULL;
}

static bool forward(struct finder *f, const struct lang_equations *all,
                    const struct lang_equation *o)
{
    struct softmax s;
    struct score score = {0};
    struct indices x = {0};
    struct attention_mask mask = {0};
    const struct lang_expr *q, *k;
    if (!is_softmax(f, formula_expand(f, o->rhs, NULL), &s))
        return false;
    mask.summed = x.roles.key = s.sum->index[0];
    if (!is_exponential(f, &s, x.roles.key, &mask) || !formula_read_score(f, s.x, &mask, &score) ||
        !formula_operands(score.dot, x.roles.key, &q, &k) || !find_row(o, &x, q, k, s.value) ||
        !formula_find_axes(f, o, &x, k))
        return false;
    mask.roles = x.roles;
    return formula_view_output(f, &x, o, SDPA_O) && formula_view(f, &x, s.value, SDPA_V) &&
           take_other_outputs(f, all, o, &s, &x) && formula_take_score(f, &x, &score) &&
           formula_settle(f, &x, &mask);
}

/* ---- the whole ---- */

struct attention attention_find(const struct attention_at *at)
{
    struct attention out = {0};
    struct finder f = {.at = at, .a = at->a, .x = &out};
    const struct lang_equations *all = spec_oracle(at->s);
    bool good = false;
    for (size_t k = 0; all && k < all->n && !good && !out.why; k++) {
        const struct lang_equation *q = formula_output_equation(all, k);
        f.nodes = 0;
        good = q && forward(&f, all, q);
    }
    if (!good && !out.is_found && all) {
        const char *why = out.why;
        out = (struct attention){0};
        f.nodes = 0;
        if (!formula_backward(&f, all) && !out.why)
            out.why = why;
    }
    if (!good && !out.why && !out.is_found)
        out.why =
            "the spec is no attention: sum[j](exp(x - max[j](x)) * v) / sum[j](exp(x)), or its "
            "gradients";
    return out;
}

void attention_text(const struct attention *x, struct buf *out)
{
    static const char *const names[SDPA_BUFFERS] = {[SDPA_LSE] = "lse",
                                                    [SDPA_BIAS] = "bias",
                                                    [SDPA_SLOPE] = "slopes",
                                                    [SDPA_LENGTHS] = "lengths",
                                                    [SDPA_PAGES] = "pages"};
    const struct sdpa_problem *p = &x->problem;
    buf_printf(out, "  %s of %s, batch %" PRIu64 ", heads %" PRIu64,
               p->backward ? "gradients" : "attention", dtype_name(p->tensor[SDPA_Q].type),
               p->batch, p->heads);
    if (p->kv_heads != p->heads)
        buf_printf(out, " on %" PRIu64, p->kv_heads);
    buf_printf(out, ", m %" PRIu64 ", n %" PRIu64 ", d %" PRIu64, p->m, p->n, p->d);
    if (p->e != p->d)
        buf_printf(out, " and %" PRIu64, p->e);
    buf_printf(out, ", scale %.9g", p->scale);
    if (p->cap > 0)
        buf_printf(out, ", cap %.9g", p->cap);
    if (p->causal)
        buf_printf(out, ", causal%s",
                   p->shift || p->tensor[SDPA_LENGTHS].is_there ? " to the last key" : "");
    if (p->window)
        buf_printf(out, ", window %" PRIu64, p->window);
    for (int k = 0; k < SDPA_BUFFERS; k++)
        if (p->tensor[k].is_there && names[k])
            buf_printf(out, ", %s", names[k]);
    buf_putc(out, '\n');
}
