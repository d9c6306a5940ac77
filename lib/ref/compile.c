#include <config.h>

#include "ref/compile.h"

#include <float.h>

static struct node *compile(struct compiler *c, const struct lang_expr *e)
{
    return ref_compile_expr(c, e);
}

struct node *ref_node_new(struct compiler *c, const struct lang_expr *e, node_eval *eval,
                          uint32_t nargs)
{
    struct node *n = ARENA_NEW(c->p->arena, struct node);
    n->eval = eval;
    n->src = e;
    n->type = e->type;
    n->slot = c->p->nslot++;
    n->nargs = nargs;
    n->args = ARENA_ARRAY(c->p->arena, nargs ? nargs : 1, struct node *);
    n->round = ref_rounding(e->type);
    n->op = e->op;
    return n;
}

static bool compile_args(struct compiler *c, struct node *n, struct lang_expr *const *args)
{
    for (uint32_t k = 0; k < n->nargs; k++)
        if (!(n->args[k] = compile(c, args[k])))
            return false;
    return true;
}

static struct node *constant(struct compiler *c, const struct lang_expr *e, double v, int64_t i)
{
    struct node *n = ref_node_new(c, e, NULL, 0);
    *VEC_PUSH(c->p->arena, &c->p->constants) = n;
    *VEC_PUSH(c->p->arena, &c->p->constant_v) = v;
    *VEC_PUSH(c->p->arena, &c->p->constant_i) = i;
    return n;
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t index_slot(struct compiler *c, const struct lang_symbol *sym)
{
    for (size_t k = 0; k < c->index.n; k++)
        if (c->index.v[k] == sym)
            return c->eq->first_index + (uint32_t)k;
    return UINT32_MAX;
}

static struct node *load(struct compiler *c, const struct lang_expr *e)
{
    /* An inout buffer on the right is its contents before the launch; an output is what its
     * equation says. */
    bool input = e->sym->kind == SYM_BUFFER && e->sym->mode != MODE_OUT;
    struct tensor *t = NULL;
    for (size_t k = 0; k < c->p->tensors.n; k++)
        if (c->p->tensors.v[k]->sym == e->sym && c->p->tensors.v[k]->is_before == input)
            t = c->p->tensors.v[k];
    if (!t) {
        diag_error(c->d, e->span, "'%s' has no value here", e->sym->name);
        return NULL;
    }
    if (t->rank > MAX_RANK) {
        diag_error(c->d, e->span, "'%s' has more than %d dimensions", e->sym->name, MAX_RANK);
        return NULL;
    }
    struct node *n = ref_node_new(c, e, eval_load, e->kind == E_INDEX ? e->nargs : 0);
    n->tensor = t;
    if (n->nargs != t->rank) {
        diag_error(c->d, e->span, "'%s' has %u dimensions, not %u", e->sym->name, t->rank,
                   n->nargs);
        return NULL;
    }
    if (!compile_args(c, n, e->args))
        return NULL;
    if (e->kind == E_INDEX && e->pad && !(n->pad = compile(c, e->pad)))
        return NULL;
    return n;
}

static bool lookup(void *ctx, const struct lang_symbol *sym, double *f, int64_t *i)
{
    const struct program *p = ctx;
    if (sym->kind == SYM_DIM) {
        *i = (int64_t)p->in->dims[sym->id];
        *f = (double)*i;
        return true;
    }
    if (sym->kind == SYM_SCALAR) {
        *i = p->in->scalars[sym->id].i;
        *f = p->in->scalars[sym->id].f;
        return true;
    }
    return false;
}

static struct node *name(struct compiler *c, const struct lang_expr *e)
{
    const struct lang_symbol *s = e->sym;
    const struct ref_input *in = c->p->in;
    switch (s->kind) {
    case SYM_DIM: {
        int64_t v;
        return lang_eval_int(e, lookup, c->p, &v, c->d) ? constant(c, e, (double)v, v) : NULL;
    }
    case SYM_SCALAR: return constant(c, e, in->scalars[s->id].f, in->scalars[s->id].i);
    case SYM_INDEX: {
        uint32_t slot = index_slot(c, s);
        if (slot == UINT32_MAX)
            break;
        struct node *n = ref_node_new(c, e, NULL, 0);
        c->p->nslot--;
        n->slot = slot;
        return n;
    }
    case SYM_BUFFER:
    case SYM_TENSOR: return load(c, e);
    case SYM_LOCAL: return ref_inline_local(c, e);
    default: break;
    }
    diag_error(c->d, e->span, "'%s' has no value in the reference", s->name);
    return NULL;
}

/* ---- operators ------------------------------------------------------------------------------- */

static struct node *unary(struct compiler *c, const struct lang_expr *e)
{
    if (e->op == OP_PLUS)
        return compile(c, e->args[0]);
    node_eval *eval = e->op == OP_NOT           ? eval_not
                      : dtype_is_float(e->type) ? eval_fneg
                                                : eval_iunary;
    struct node *n = ref_node_new(c, e, eval, 1);
    return compile_args(c, n, e->args) ? n : NULL;
}

static node_eval *binary_eval(const struct lang_expr *e)
{
    bool is_float = dtype_is_float(e->args[0]->type);
    switch (e->op) {
    case OP_LT:
    case OP_GT:
    case OP_LE:
    case OP_GE:
    case OP_EQ:
    case OP_NE: return is_float ? eval_fcompare : eval_icompare;
    case OP_LAND:
    case OP_LOR: return eval_logic;
    case OP_ADD: return is_float ? eval_fadd : eval_ibinary;
    case OP_SUB: return is_float ? eval_fsub : eval_ibinary;
    case OP_MUL: return is_float ? eval_fmul : eval_ibinary;
    case OP_DIV: return is_float ? eval_fdiv : eval_ibinary;
    default: return is_float ? NULL : eval_ibinary;
    }
}

/* +, -, *, /, sqrt and fma round correctly in every kernel; under math: strict each is a rounding
 * point as it stands. */
static bool is_basic(const struct node *n)
{
    return n->eval == eval_fadd || n->eval == eval_fsub || n->eval == eval_fmul ||
           n->eval == eval_fdiv || n->eval == eval_fsqrt || n->eval == eval_ffma;
}

/* Does an equation or a reduction compute it? */
static bool is_computed(const struct lang_expr *e)
{
    bool named = e->kind == E_NAME || e->kind == E_INDEX;
    bool input = named && e->sym->kind == SYM_BUFFER && e->sym->mode != MODE_OUT;
    if (e->kind == E_REDUCE || (named && !input && e->sym->def))
        return true;
    for (uint32_t k = 0; k < e->nargs && e->kind != E_INDEX; k++)
        if (is_computed(e->args[k]))
            return true;
    return false;
}

/* Does it vary with an index, reductions over that aside? */
static bool varies(const struct lang_expr *e, const struct lang_symbol *index)
{
    bool any = e->kind == E_NAME && e->sym == index;
    for (uint32_t k = 0; k < e->nargs && e->kind != E_REDUCE; k++)
        any |= varies(e->args[k], index);
    return any || (e->kind == E_INDEX && e->pad && varies(e->pad, index));
}

static bool reduces(const struct lang_expr *e)
{
    bool any = e->kind == E_REDUCE;
    for (uint32_t k = 0; k < e->nargs; k++)
        any |= reduces(e->args[k]);
    return any;
}

/* A quotient that a kernel may compute as x * (1 / y): y is computed by equations or a reduction,
 * or it is the same all along a row of a kernel that reduces. */
static bool by_reciprocal(const struct compiler *c, const struct lang_expr *e)
{
    const struct lang_equations *q = spec_oracle(c->p->in->spec);
    const struct lang_equation *eq = c->eq->src;
    const struct lang_symbol *last = eq->nindex ? eq->index[eq->nindex - 1] : NULL;
    if (is_computed(e->args[1]))
        return true;
    if (!last || varies(e->args[1], last) || !varies(e->args[0], last))
        return false;
    for (size_t k = 0; k < q->n; k++)
        if (reduces(q->v[k]->rhs))
            return true;
    return false;
}

static struct node *binary(struct compiler *c, const struct lang_expr *e)
{
    node_eval *eval = binary_eval(e);
    if (!eval) {
        diag_error(c->d, e->span, "this operator has no meaning for floats in the reference");
        return NULL;
    }
    struct node *n = ref_node_new(c, e, eval, 2);
    n->from = e->args[0]->type;
    n->rounded = is_basic(n) && c->p->in->spec->math == MATH_STRICT;
    if (eval == eval_fdiv && e->type == DT_F32 && c->p->in->spec->math == MATH_FAST)
        n->round.unit *= 4; /* div.full: 2 ulp */
    n->reciprocal = eval == eval_fdiv && by_reciprocal(c, e);
    if (!compile_args(c, n, e->args))
        return NULL;
    for (uint32_t k = 0; k < 2; k++)
        n->args[k]->contracts = eval == eval_fadd || eval == eval_fsub;
    return n;
}

static struct node *conditional(struct compiler *c, const struct lang_expr *e)
{
    struct node *n = ref_node_new(c, e, dtype_is_float(e->type) ? eval_fcond : eval_icond, 3);
    return compile_args(c, n, e->args) ? n : NULL;
}

static struct node *cast(struct compiler *c, const struct lang_expr *e)
{
    struct node *a = compile(c, e->args[0]);
    if (!a)
        return NULL;
    enum dtype from = e->args[0]->type, to = e->type;
    bool ff = dtype_is_float(from), tf = dtype_is_float(to);
    if (from == to) {
        if (tf && !e->is_implicit && is_basic(a) && !a->src->fast)
            a->rounded = true;
        return a;
    }
    node_eval *eval = ff && tf        ? eval_float_to_float
                      : to == DT_BOOL ? (ff ? eval_float_to_bool : eval_int_to_bool)
                      : tf            ? eval_int_to_float
                      : ff            ? eval_float_to_int
                                      : eval_int_to_int;
    struct node *n = ref_node_new(c, e, eval, 1);
    n->from = from;
    n->args[0] = a;
    return n;
}

/* ---- functions ------------------------------------------------------------------------------- */

static node_eval *float_call(enum lang_builtin fn)
{
    switch ((int)fn) {
    case FN_SQRT: return eval_fsqrt;
    case FN_FMA: return eval_ffma;
    case FN_MIN: return eval_fmin;
    case FN_MAX: return eval_fmax;
    case FN_ABS: return eval_fabs;
    case FN_CLAMP: return eval_fclamp;
    case FN_RELU: return eval_frelu;
    case FN_FLOOR:
    case FN_CEIL:
    case FN_TRUNC:
    case FN_ROUND:
    case FN_RINT: return eval_ffloor;
    case FN_TF32: return eval_tf32;
    case FN_TF32_RN: return eval_tf32_even;
    case FN_TF32_RZ: return eval_tf32_cut;
    case FN_POW:
    case FN_ATAN2:
    case FN_HYPOT:
    case FN_COPYSIGN:
    case FN_LEAKY_RELU:
    case FN_ELU:
    case FN_FMOD: return eval_func2;
    default: return ref_func_find(fn) ? eval_func1 : NULL;
    }
}

static node_eval *int_call(enum lang_builtin fn)
{
    switch ((int)fn) {
    case FN_ABS:
    case FN_RELU:
    case FN_MIN:
    case FN_MAX:
    case FN_CLAMP:
    case FN_CEIL_DIV:
    case FN_POPC:
    case FN_CLZ:
    case FN_BREV:
    case FN_BFE:
    case FN_BFI:
    case FN_MULHI:
    case FN_DP4A: return eval_ifunc;
    default: return NULL;
    }
}

/* May the kernel have computed this call by the variant for 16-bit results? reference: does not say
 * in which of its calls the kernel did. */
static bool may_be_half(const struct compiler *c, const struct lang_expr *e)
{
    const struct spec *s = c->p->in->spec;
    return e->type == DT_F32 && (e->rounded || (s->has_reference && s->rounded_calls[e->fn]));
}

/* May the kernel have computed this call of f32 between products of tensor cores, without bits that
 * the products lose anyway? An output is what stands behind them. */
static bool may_be_between(const struct compiler *c, const struct lang_expr *e)
{
    const struct lang_equation *eq = c->eq->src;
    return e->type == DT_F32 && !e->fast && c->p->sums.truncation &&
           c->p->in->spec->math != MATH_STRICT &&
           (eq->sym->kind != SYM_BUFFER || c->around > eq->nindex);
}

static struct node *call(struct compiler *c, const struct lang_expr *e)
{
    node_eval *eval = NULL;
    if (e->func)
        return ref_inline_call(c, e);
    if (e->fn >= FN_AS_U32 && e->fn <= FN_AS_BF16)
        eval = eval_bitcast;
    else if (e->fn == FN_UNIFORM || e->fn == FN_NORMAL)
        eval = eval_random;
    else if (e->fn == FN_ISNAN || e->fn == FN_ISINF)
        eval = e->fn == FN_ISNAN ? eval_isnan : eval_isinf;
    else
        eval = dtype_is_float(e->type) ? float_call(e->fn) : int_call(e->fn);
    if (!eval) {
        diag_error(c->d, e->span, "this function has no meaning in the reference");
        return NULL;
    }
    struct node *n = ref_node_new(c, e, eval, e->nargs);
    n->func = ref_func_find(e->fn);
    n->ulp = ref_func_ulp(e->fn, e->type);
    if (may_be_half(c, e) && ref_half_ulp(e->fn) > 0) {
        n->half = true;
        n->ulp = fmax(n->ulp, ref_half_ulp(e->fn));
    }
    if (may_be_between(c, e))
        n->ulp = fmax(n->ulp, ref_between_ulp(e->fn));
    n->from = e->nargs ? e->args[0]->type : e->type;
    n->rounded = is_basic(n) && !e->fast && c->p->in->spec->math == MATH_STRICT;
    if (eval == eval_fsqrt && e->fast)
        n->round.unit = ref_fast_error(FN_SQRT)->rel;
    return compile_args(c, n, e->args) ? n : NULL;
}

/* philox(...).x: a vector is not kept, each lane is a node of its own. */
static struct node *lane(struct compiler *c, const struct lang_expr *e)
{
    const struct lang_expr *v = e->args[0];
    if (v->kind != E_CALL || v->func || v->fn != FN_PHILOX) {
        diag_error(c->d, e->span, "of vectors, the reference knows philox(...).x alone");
        return NULL;
    }
    struct node *n = ref_node_new(c, v, eval_random, v->nargs);
    n->lane = (unsigned)e->ival & 3;
    return compile_args(c, n, v->args) ? n : NULL;
}

/* May it be a product as a tensor core adds them up? */
static bool is_product(const struct lang_expr *e)
{
    switch (e->kind) {
    case E_BINARY: return e->op == OP_MUL;
    case E_UNARY:
    case E_CAST: return is_product(e->args[0]);
    case E_COND: return is_product(e->args[1]) || is_product(e->args[2]);
    case E_CALL: return e->func || e->fn == FN_FMA;
    case E_NAME:
    case E_INDEX: /* an inout is read as it was before */
        return e->sym->def && !e->sym->def->is_recurrence &&
               (e->sym->kind != SYM_BUFFER || e->sym->mode == MODE_OUT) &&
               is_product(e->sym->def->rhs);
    default: return false;
    }
}

/* A term of a sum may become part of an fma, and what it is multiplied with or divided by may be
 * taken out of the sum or into a factor: its products' overflow may not happen. */
static void mark_term(struct node *n)
{
    n->contracts = true;
    bool passes = n->eval == eval_fmul || n->eval == eval_fdiv || n->eval == eval_fneg ||
                  n->eval == eval_float_to_float || n->eval == eval_fcond;
    for (uint32_t k = n->eval == eval_fcond; k < n->nargs && passes; k++)
        mark_term(n->args[k]);
}

/* Has n so few bits that a product of two such has no more than f32? */
static bool is_short(const struct node *n)
{
    if (n->eval == eval_fneg)
        return is_short(n->args[0]);
    if (n->eval == eval_float_to_float || n->eval == eval_int_to_float)
        return dtype_bits(n->type) < 32 ||
               dtype_bits(n->from) < (n->eval == eval_int_to_float ? 16 : 32);
    return dtype_bits(n->type) < 32 || n->eval == eval_tf32 || n->eval == eval_tf32_even ||
           n->eval == eval_tf32_cut;
}

/* The product that is a sum's term, of whatever sign. */
static struct node *product_of(struct node *n, const struct lang_expr *e)
{
    while (e->kind == E_UNARY && n->eval == eval_fneg) {
        e = e->args[0];
        n = n->args[0];
    }
    return e->kind == E_BINARY && n->eval == eval_fmul ? n : NULL;
}

/* The product of two such is exact, and what adds it up does not round it on its own, whatever
 * math: says: not to infinity either where f32 has no room for it. */
static void mark_exact(struct node *n)
{
    if (n->eval == eval_fmul && is_short(n->args[0]) && is_short(n->args[1]))
        n->rounded = false;
    for (uint32_t k = n->eval == eval_fcond; k < n->nargs; k++)
        if (n->eval == eval_fneg || n->eval == eval_float_to_float || n->eval == eval_fcond)
            mark_exact(n->args[k]);
}

/* Is a factor of the term the same for all terms? */
static bool has_scale(const struct reduce *r, const struct node *n)
{
    if (n->eval == eval_fneg)
        return has_scale(r, n->args[0]);
    if (n->eval != eval_fmul && n->eval != eval_fdiv)
        return false;
    return !ref_loop_varies(r, n->args[0]) || !ref_loop_varies(r, n->args[1]) ||
           has_scale(r, n->args[0]) || has_scale(r, n->args[1]);
}

static struct node *reduce(struct compiler *c, const struct lang_expr *e)
{
    struct arena *a = c->p->arena;
    struct node *n = ref_node_new(c, e, eval_reduce, 0);
    struct reduce *r = n->reduce = ARENA_NEW(a, struct reduce);
    r->kind = e->reduce;
    r->sums = c->p->sums;
    r->nloop = e->nindex;
    r->loop = ARENA_ARRAY(a, e->nindex, struct loop);
    r->acc = c->p->nacc++;
    r->first_index = c->eq->first_index;
    r->nindex = c->eq->nindex;
    const uint32_t around = c->around;
    for (uint32_t k = 0; k < e->nindex; k++, c->around++) {
        const struct lang_symbol *s = e->index[k];
        r->loop[k].slot = index_slot(c, s);
        if (!(r->loop[k].hi = compile(c, s->dims[0])))
            return NULL;
        if (s->low && !(r->loop[k].lo = compile(c, s->low)))
            return NULL;
    }
    if (!(r->body = compile(c, e->args[0])))
        return NULL;
    c->around = around;
    ref_reduce_keys(a, c->p, c->eq, n, around);
    r->is_int = !dtype_is_float(r->body->type);
    r->round = ref_rounding(r->body->type);
    if (!r->round.f32 || !is_product(e->args[0]))
        r->sums.truncation = r->sums.products = r->sums.weights = 0;
    if (r->kind == RED_SUM) {
        mark_term(r->body);
        if (c->p->in->spec->math == MATH_STRICT) {
            struct node *product = product_of(r->body, e->args[0]);
            mark_exact(r->body);
            if (product) /* one fma adds it */
                product->rounded = false;
        }
        r->rough = c->p->sums.truncation > 0;
        r->rescaled = ref_rescale(c, r);
        r->scaled = r->rescaled || has_scale(r, r->body);
    }
    *VEC_PUSH(a, &c->p->reductions) = (struct reduction){c->eq, r};
    return n;
}

struct node *ref_compile_expr(struct compiler *c, const struct lang_expr *e)
{
    switch (e->kind) {
    case E_INT:
    case E_BOOL: return constant(c, e, (double)e->ival, (int64_t)e->ival);
    case E_FLOAT: return constant(c, e, dtype_round(e->type, e->fval), 0);
    case E_NAME: return name(c, e);
    case E_INDEX: return load(c, e);
    case E_UNARY: return unary(c, e);
    case E_BINARY: return binary(c, e);
    case E_COND: return conditional(c, e);
    case E_CAST: return cast(c, e);
    case E_CALL: return call(c, e);
    case E_REDUCE: return reduce(c, e);
    case E_MEMBER: return lane(c, e);
    case E_SPECIAL:
    case E_VECTOR:
    case E_ADDRESS:
    case E_STRING: break;
    }
    diag_error(c->d, e->span, "this has no meaning in the reference");
    return NULL;
}

/* ---- equations ------------------------------------------------------------------------------- */

/* All index variables below e, each once. */
static void collect_indices(struct compiler *c, const struct lang_expr *e)
{
    if (e->kind == E_REDUCE)
        for (uint32_t k = 0; k < e->nindex; k++)
            *VEC_PUSH(c->p->arena, &c->index) = e->index[k];
    for (uint32_t k = 0; k < e->nargs; k++)
        collect_indices(c, e->args[k]);
    if (e->kind == E_INDEX && e->pad)
        collect_indices(c, e->pad);
}

/* Has every reference below e to a tensor of the component the equation's own leading indices? */
static bool reads_own_place(const struct lang_equation *eq, const struct lang_expr *e,
                            uint32_t component)
{
    if (e->kind == E_INDEX && e->sym->def && e->sym->def->is_recurrence &&
        e->sym->def->component == component) {
        if (e->nargs != eq->nindex)
            return false;
        for (uint32_t k = 0; k + 1 < e->nargs; k++)
            if (e->args[k]->kind != E_NAME || e->args[k]->sym != eq->index[k])
                return false;
    }
    for (uint32_t k = 0; k < e->nargs; k++)
        if (!reads_own_place(eq, e->args[k], component))
            return false;
    return !(e->kind == E_INDEX && e->pad) || reads_own_place(eq, e->pad, component);
}

/* The value before the store: the last implicit float conversion is the comparison's business. */
static const struct lang_expr *unstored(const struct lang_expr *e)
{
    while (e->kind == E_CAST && e->is_implicit && dtype_is_float(e->type) &&
           dtype_is_float(e->args[0]->type))
        e = e->args[0];
    return e;
}

static bool compile_equation(struct program *p, struct equation *eq, struct diags *d)
{
    const struct lang_equation *s = eq->src;
    struct compiler c = {.p = p, .d = d, .eq = eq, .around = s->nindex};
    for (uint32_t k = 0; k < s->nindex; k++)
        *VEC_PUSH(p->arena, &c.index) = s->index[k];
    collect_indices(&c, s->rhs);
    eq->first_index = p->nslot;
    eq->nindex = (uint32_t)c.index.n;
    p->nslot += eq->nindex;
    eq->index_slot = ARENA_ARRAY(p->arena, s->nindex ? s->nindex : 1, uint32_t);
    for (uint32_t k = 0; k < s->nindex; k++)
        eq->index_slot[k] = eq->first_index + k;
    eq->recurrence = s->is_recurrence;
    eq->component = s->component;
    eq->pointwise = s->is_recurrence && reads_own_place(s, s->rhs, s->component);
    bool is_buffer = s->sym->kind == SYM_BUFFER;
    eq->rhs = compile(&c, is_buffer ? unstored(s->rhs) : s->rhs);
    if (eq->rhs && is_buffer && dtype_is_float(s->sym->type) && dtype_bits(s->sym->type) <= 16)
        ref_rescale_stored(&c, eq->rhs);
    return eq->rhs != NULL;
}

static struct tensor *tensor_new(struct program *p, const struct lang_symbol *sym, struct diags *d)
{
    struct tensor *t = ARENA_NEW(p->arena, struct tensor);
    t->sym = sym;
    t->type = sym->type;
    t->rank = sym->rank;
    t->shape = ARENA_ARRAY(p->arena, sym->rank ? sym->rank : 1, uint64_t);
    t->count = 1;
    for (uint32_t k = 0; k < sym->rank; k++) {
        int64_t x;
        if (!lang_eval_int(sym->dims[k], lookup, p, &x, d))
            return NULL;
        if (x < 0 || (x && t->count > (UINT64_MAX >> 8) / (uint64_t)x)) {
            diag_error(d, sym->dims[k]->span, "dimension %u of '%s' is %lld", k + 1, sym->name,
                       (long long)x);
            return NULL;
        }
        t->shape[k] = (uint64_t)x;
        t->count *= (uint64_t)x;
    }
    t->lo = ARENA_ARRAY(p->arena, sym->rank + 1, uint64_t);
    t->len = ARENA_ARRAY(p->arena, sym->rank + 1, uint64_t);
    t->stride = ARENA_ARRAY(p->arena, sym->rank + 1, uint64_t);
    ref_tensor_all(t);
    t->id = (uint32_t)p->tensors.n;
    *VEC_PUSH(p->arena, &p->tensors) = t;
    return t;
}

/* Equations that define each other step by step have the same shape. */
static bool check_recurrences(const struct program *p, struct diags *d)
{
    for (size_t k = 1; k < p->equations.n; k++) {
        const struct equation *a = p->equations.v[k - 1], *b = p->equations.v[k];
        if (!a->recurrence || !b->recurrence || a->component != b->component)
            continue;
        bool same = a->tensor->rank == b->tensor->rank && a->tensor->rank > 0;
        for (uint32_t i = 0; same && i < a->tensor->rank; i++)
            same = a->tensor->shape[i] == b->tensor->shape[i];
        if (!same)
            return diag_error(d, b->src->span,
                              "'%s' and '%s' define each other, so their shapes must be the same",
                              a->tensor->sym->name, b->tensor->sym->name);
    }
    return true;
}

/* Is anything below e kept from recomputing? It is a reduction, or an equation that is direct
 * itself. */
static bool is_costly(const struct program *p, const struct lang_expr *e)
{
    if (e->kind == E_REDUCE || (e->kind == E_CALL && e->func))
        return true;
    bool read = e->kind == E_INDEX || e->kind == E_NAME;
    for (size_t k = 0; read && k < p->equations.n; k++)
        if (p->equations.v[k]->direct && p->equations.v[k]->src->sym == e->sym)
            return true;
    for (uint32_t k = 0; k < e->nargs; k++)
        if (is_costly(p, e->args[k]))
            return true;
    return e->kind == E_INDEX && e->pad && is_costly(p, e->pad);
}

/* Equation k: to be evaluated, or with the elements that were found. */
static bool add_equation(struct program *p, size_t k, struct diags *d)
{
    const struct lang_equation *src = spec_oracle(p->in->spec)->v[k];
    struct tensor *t = tensor_new(p, src->sym, d);
    if (!t)
        return false;
    if (p->in->found && p->in->found[k]) {
        t->data = p->in->found[k];
        return true;
    }
    struct equation *eq = ARENA_NEW(p->arena, struct equation);
    eq->src = src;
    eq->tensor = t;
    eq->wanted = p->in->wanted ? p->in->wanted[k] : src->sym->kind == SYM_BUFFER;
    t->eq = eq;
    t->store_rounds = t->sym->kind == SYM_BUFFER;
    *VEC_PUSH(p->arena, &p->equations) = eq;
    return true;
}

bool ref_compile(struct program *p, struct diags *d)
{
    const struct spec *s = p->in->spec;
    const struct lang_equations *q = spec_oracle(s);
    for (size_t k = 0; k < s->params.n; k++) {
        const struct lang_symbol *sym = s->params.v[k].sym;
        if (sym->kind != SYM_BUFFER || sym->mode == MODE_OUT)
            continue;
        struct tensor *t = tensor_new(p, sym, d);
        if (!t)
            return false;
        t->is_before = true;
        t->data = p->in->buffers[sym->id];
        if (!t->data && t->count)
            return diag_error(d, s->params.v[k].span, "'%s' has no contents", sym->name);
        if (!t->data)
            t->data = "";
    }
    const bool *needed = ref_needed(p);
    for (size_t k = 0; k < q->n; k++)
        if (needed[k] && !add_equation(p, k, d))
            return false;
    for (size_t k = 0; k < p->equations.n; k++)
        if (!compile_equation(p, p->equations.v[k], d))
            return false;
    if (!check_recurrences(p, d))
        return false;
    for (size_t k = 0; k < p->equations.n; k++) { /* each comes after what it reads */
        struct equation *eq = p->equations.v[k];
        eq->direct = !eq->recurrence && !is_costly(p, eq->src->rhs);
    }
    /* one equation that reads elsewhere makes its whole component so */
    for (size_t k = 0; k < p->equations.n; k++)
        for (size_t j = 0; j < p->equations.n; j++) {
            struct equation *a = p->equations.v[k], *b = p->equations.v[j];
            if (a->recurrence && b->recurrence && a->component == b->component && !a->pointwise)
                b->pointwise = false;
        }
    for (size_t k = 0; k < p->reductions.n; k++)
        if (p->reductions.v[k].r->scaled)
            ref_note_loops(p->reductions.v[k].r, p->reductions.v[k].r->body);
    return true;
}
