/* Sums whose terms are exponentials of differences from a maximum, as a kernel adds them up that
 * does not know the maximum yet. ref.h says what that may change. */
#include <config.h>

#include "ref/compile.h"

/* ---- which they are -------------------------------------------------------------------------- */

/* What e names is computed by this; NULL: it is not computed, or from values that were found. */
static const struct lang_expr *computed_by(const struct program *p, const struct lang_expr *e)
{
    const bool named = e->kind == E_INDEX || e->kind == E_NAME;
    if (!named || !e->sym->def || e->sym->def->is_recurrence || e->sym->mode == MODE_INOUT)
        return NULL;
    for (size_t k = 0; k < p->equations.n; k++)
        if (p->equations.v[k]->src->sym == e->sym)
            return e->sym->def->rhs;
    return NULL;
}

/* Is e made of what a maximum over a range came to? */
static bool is_maximum(const struct program *p, const struct lang_expr *e)
{
    const struct lang_expr *def = computed_by(p, e);
    if (def)
        return is_maximum(p, def);
    if (e->kind == E_REDUCE)
        return e->reduce == RED_MAX;
    bool any = false;
    for (uint32_t k = e->kind == E_COND; k < e->nargs && e->kind != E_INDEX; k++)
        any |= is_maximum(p, e->args[k]);
    return any;
}

/* Is a maximum subtracted in e? */
static bool subtracts_maximum(const struct program *p, const struct lang_expr *e)
{
    const struct lang_expr *def = computed_by(p, e);
    if (def)
        return subtracts_maximum(p, def);
    if (e->kind == E_BINARY && e->op == OP_SUB && is_maximum(p, e->args[1]))
        return true;
    bool any = false;
    for (uint32_t k = e->kind == E_COND; k < e->nargs && e->kind != E_INDEX && e->kind != E_REDUCE;
         k++)
        any |= subtracts_maximum(p, e->args[k]);
    return any;
}

static bool is_exponential(const struct lang_expr *e)
{
    return e->kind == E_CALL && !e->func &&
           (e->fn == FN_EXP || e->fn == FN_EXP2 || e->fn == FN_EXP10);
}

/* Is e such an exponential, or has it one as a factor? */
static bool is_rescaled(const struct program *p, const struct lang_expr *e)
{
    const struct lang_expr *def = computed_by(p, e);
    if (def)
        return is_rescaled(p, def);
    switch (e->kind) {
    case E_CALL: return is_exponential(e) && subtracts_maximum(p, e->args[0]);
    case E_BINARY:
        return (e->op == OP_MUL && is_rescaled(p, e->args[1])) ||
               ((e->op == OP_MUL || e->op == OP_DIV) && is_rescaled(p, e->args[0]));
    case E_UNARY:
    case E_CAST: return is_rescaled(p, e->args[0]);
    case E_COND: return is_rescaled(p, e->args[1]) || is_rescaled(p, e->args[2]);
    default: return false;
    }
}

/* ---- what it multiplies ---------------------------------------------------------------------- */

/* e, of an equation, where its indices are those of a read. */
static struct lang_expr *read_there(struct compiler *c, struct lang_expr *e,
                                    const struct lang_expr *read)
{
    const struct lang_equation *def = read->sym->def;
    for (uint32_t k = 0; k < def->nindex && e->kind == E_NAME; k++)
        if (e->sym == def->index[k])
            return read->args[k];
    struct lang_expr *to = ARENA_NEW(c->p->arena, struct lang_expr);
    *to = *e;
    to->args = ARENA_ARRAY(c->p->arena, e->nargs + 1, struct lang_expr *);
    for (uint32_t k = 0; k < e->nargs; k++)
        to->args[k] = read_there(c, e->args[k], read);
    if (e->pad)
        to->pad = read_there(c, e->pad, read);
    return to;
}

static struct lang_expr *wide(struct compiler *c, const struct lang_expr *e, struct lang_expr *x,
                              struct lang_expr *y)
{
    struct lang_expr *to = ARENA_NEW(c->p->arena, struct lang_expr);
    *to = *e;
    to->type = DT_F64;
    to->args = ARENA_ARRAY(c->p->arena, 3, struct lang_expr *);
    to->args[e->kind == E_COND ? 1 : 0] = x;
    to->args[e->kind == E_COND ? 2 : 1] = y;
    if (e->kind == E_COND)
        to->args[0] = e->args[0];
    return to;
}

static struct lang_expr *one(struct compiler *c, const struct lang_expr *e)
{
    struct lang_expr *to = ARENA_NEW(c->p->arena, struct lang_expr);
    *to = (struct lang_expr){.kind = E_FLOAT, .type = DT_F64, .span = e->span, .fval = 1};
    return to;
}

static struct lang_expr *bare(struct compiler *c, struct lang_expr *e);

static struct lang_expr *bare_or_it(struct compiler *c, struct lang_expr *e)
{
    return is_rescaled(c->p, e) ? bare(c, e) : e;
}

/* e, which is so, without its exponentials, as a magnitude; NULL: that is 1. */
static struct lang_expr *bare(struct compiler *c, struct lang_expr *e)
{
    if (computed_by(c->p, e))
        return bare(c, e->kind == E_INDEX ? read_there(c, e->sym->def->rhs, e) : e->sym->def->rhs);
    if (e->kind == E_CALL)
        return NULL;
    if (e->kind == E_CAST || e->kind == E_UNARY)
        return bare(c, e->args[0]);
    const uint32_t first = e->kind == E_COND;
    struct lang_expr *x = bare_or_it(c, e->args[first]), *y = bare_or_it(c, e->args[first + 1]);
    if (e->kind == E_BINARY && e->op == OP_MUL && (!x || !y))
        return x ? x : y;
    if (!x && !y)
        return NULL;
    return wide(c, e, x ? x : one(c, e), y ? y : one(c, e));
}

/* Can it be computed here, once more? */
static bool is_simple(const struct lang_expr *e)
{
    bool simple = e->kind != E_REDUCE && !(e->kind == E_CALL && e->func);
    for (uint32_t k = 0; k < e->nargs; k++)
        simple &= is_simple(e->args[k]);
    return simple;
}

/* ---- a factor -------------------------------------------------------------------------------- */

static bool is_narrow(enum dtype t)
{
    return dtype_bits(t) < 32;
}

/* Is it 0 for certain, as the exponential of -inf is? That is exact however it is scaled. */
static bool is_certain(const struct vec *x, int l)
{
    return x->e[l] == 0 && x->v[l] == 0;
}

/* May the narrow factor be infinite before the maximum is known, while 1 is in the place of its
 * exponentials? */
static bool overflows(const struct frame *f, const struct node *n, int l)
{
    const struct vec *size = &f->slot[n->args[1]->slot];
    return !(fabs(size->v[l]) + size->e[l] <= dtype_max(n->type));
}

/* The factor of a term as it may be when it was computed from another maximum, and what was made of
 * it was scaled later. */
void eval_rescaled(struct frame *f, const struct node *n, const uint8_t *mask)
{
    const struct vec *a = node_arg(f, n, 0, mask);
    struct vec *o = node_out(f, n);
    const struct node *from = n->args[0]->eval == eval_float_to_float ? n->args[0]->args[0]
                                                                      : n->args[0];
    const struct vec *before = &f->slot[from->slot];
    if (n->nargs > 1)
        node_arg(f, n, 1, mask);
    /* what an intermediate of 16 bits or fewer was rounded from is not known any more */
    const bool rounded = from->eval == eval_load && is_narrow(from->type);
    const double unit = is_narrow(n->type) ? dtype_roundoff(n->type) : 0, tiny = n->round.tiny;
    for (int l = 0; l < LANES; l++) {
        const double v = fabs(a->v[l]), e = a->e[l];
        o->v[l] = a->v[l];
        o->e[l] = e;
        if (!mask[l] || !isfinite(v) || !isfinite(e) || (!rounded && is_certain(before, l)))
            continue;
        const double scaled = n->ulp > 0 ? 2 * n->ulp + fabs(log(v)) / 2 : fabs(log(v));
        const double steps = v > 0 ? n->round.unit * v * scaled : 0;
        /* what T(p) is off p itself */
        const double own = rounded ? unit * (v + e) + tiny : fabs(a->v[l] - before->v[l]);
        o->e[l] = e + steps + own + unit * (v + e) + tiny;
        if (n->nargs > 1 && overflows(f, n, l))
            o->e[l] = INFINITY;
    }
}

/* Is it f16, or made of that? */
static bool is_half(const struct node *n)
{
    bool half = n->type == DT_F16 || (n->eval == eval_float_to_float && n->from == DT_F16);
    for (uint32_t k = 0; k < n->nargs && n->type != DT_F16; k++)
        half |= is_half(n->args[k]);
    return half;
}

/* What the rounding of a factor of this type may lose of small ones, absolutely. half: it is
 * multiplied with f16. */
static double least(const struct reduce *r, enum dtype t, bool half)
{
    const double flushed = r->rough ? 0x1p-126 : 0; /* by the hardware's exp2 */
    if (is_narrow(t))
        return fmax(dtype_smallest(t) / 2, flushed);
    return half && r->sums.weights ? ldexp(0.5, -(int)r->sums.weights) : 0;
}

/* Wraps the factors of a term that are so; false: there is none. half: others are f16. */
static bool wrap(struct compiler *c, const struct reduce *r, struct node **n, bool half)
{
    struct node *x = *n;
    const bool narrows = x->eval == eval_float_to_float && is_narrow(x->type);
    const bool leaf = narrows || x->eval == eval_load || x->eval == eval_func1;
    if (leaf && (x->eval != eval_load || !x->tensor->data) && is_rescaled(c->p, x->src)) {
        struct lang_expr *by = is_narrow(x->type) ? bare(c, (struct lang_expr *)x->src) : NULL;
        struct node *size = by && is_simple(by) ? ref_compile_expr(c, by) : NULL;
        *n = ref_node_new(c, x->src, eval_rescaled, size ? 2 : 1);
        (*n)->type = x->type;
        (*n)->args[0] = x;
        if (size)
            (*n)->args[1] = size;
        (*n)->round.tiny = least(r, x->type, half);
        return true;
    }
    if (leaf || (x->eval != eval_fmul && x->eval != eval_fdiv && x->eval != eval_fneg &&
                 x->eval != eval_fcond && x->eval != eval_float_to_float))
        return false;
    bool any = false;
    for (uint32_t k = x->eval == eval_fcond; k < x->nargs; k++)
        any |= wrap(c, r, &x->args[k], half || (x->eval == eval_fmul && is_half(x->args[1 - k])));
    return any;
}

/* The exponentials of x that a sum divides, where the quotient is rounded to 16 bits at once: they
 * may be 2 + |x|/4 ulp off. */
void ref_rescale_stored(struct compiler *c, struct node *n)
{
    static const struct reduce none;
    static const double ulp = 2;
    if (n->eval == eval_fdiv && wrap(c, &none, &n->args[0], false))
        n->args[0]->ulp = n->args[0]->eval == eval_rescaled ? ulp : n->args[0]->ulp;
    else if (n->eval == eval_fmul || n->eval == eval_fneg || n->eval == eval_fcond)
        for (uint32_t k = n->eval == eval_fcond; k < n->nargs; k++)
            ref_rescale_stored(c, n->args[k]);
}

bool ref_rescale(struct compiler *c, struct reduce *r)
{
    return dtype_is_float(r->body->type) && wrap(c, r, &r->body, false);
}
