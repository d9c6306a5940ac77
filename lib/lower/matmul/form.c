/* Finds out what a contraction is made of (matmul.h). */
#include <config.h>

#include "lower/matmul/matmul.h"

enum { CALL = 16, TENSOR_CALL = 10, POPC = 4 };

#define INT8 (MATMUL_BIT(DT_I8) | MATMUL_BIT(DT_U8))

struct analysis {
    struct cg *g;
    struct matmul_form *f;
    struct matmul_normal n;
    struct buf *why;
    enum dtype sum; /* DT_VOID: no sum yet */
    struct lang_expr *e[MATMUL_OPERANDS];
    uint32_t mask[MATMUL_OPERANDS];
    struct span span[MATMUL_PRODUCTS];             /* of the sum as written */
    const struct lang_expr *pair[MATMUL_PRODUCTS]; /* the reduction whose terms are no products */
};

/* ---- expressions ----------------------------------------------------------------------------- */

bool matmul_same(const struct lang_expr *x, const struct lang_expr *y)
{
    if (x == y)
        return true;
    if (!inspect_same_node(x, y))
        return false;
    for (uint32_t i = 0; i < x->nargs; i++)
        if (!matmul_same(x->args[i], y->args[i]))
            return false;
    return !x->pad || matmul_same(x->pad, y->pad);
}

/* The operand's number; MATMUL_OPERANDS: one too many. */
static uint32_t add_operand(struct analysis *a, enum matmul_side side, struct lang_expr *e,
                            uint32_t mask)
{
    struct matmul_form *f = a->f;
    for (uint32_t i = 0; i < f->noperand; i++)
        if (f->operand[i].side == side && matmul_same(a->e[i], e))
            return i;
    if (f->noperand == MATMUL_OPERANDS)
        return MATMUL_OPERANDS;
    f->operand[f->noperand].side = side;
    a->e[f->noperand] = e;
    a->mask[f->noperand] = mask;
    return f->noperand++;
}

/* The sum of the product of both operands: of equal ones the one that was there first. */
static struct lang_expr *add_product(struct analysis *a, const struct lang_expr *e,
                                     const struct matmul_terms *s)
{
    struct matmul_form *f = a->f;
    const uint32_t x = add_operand(a, MATMUL_A, s->e[MATMUL_A], s->mask[MATMUL_A]);
    const uint32_t y = add_operand(a, MATMUL_B, s->e[MATMUL_B], s->mask[MATMUL_B]);
    for (uint32_t i = 0; i < f->nproduct; i++)
        if (!f->product[i].pair && f->product[i].a == x && f->product[i].b == y)
            return (struct lang_expr *)f->product[i].e;
    if (x == MATMUL_OPERANDS || y == MATMUL_OPERANDS || f->nproduct == MATMUL_PRODUCTS) {
        lower_lacks(a->why, e->span, "this sum is one product too many");
        return NULL;
    }
    struct lang_expr *c = ARENA_NEW(a->g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(a->g->a, 1, struct lang_expr *);
    c->args[0] = matmul_binary(a->g, OP_MUL, s->e[MATMUL_A], s->e[MATMUL_B]);
    a->span[f->nproduct] = e->span;
    f->product[f->nproduct++] = (struct matmul_product){.e = c, .a = x, .b = y};
    return c;
}

/* The reduction of terms that are no products: of equal ones the one that was there first. NULL:
 * one too many. */
static struct lang_expr *add_pair(struct analysis *a, struct lang_expr *e,
                                  const struct matmul_parts *parts)
{
    struct matmul_form *f = a->f;
    struct matmul_product p = {.e = e, .a = MATMUL_OPERANDS, .b = MATMUL_OPERANDS};
    struct matmul_parts *pair = ARENA_NEW(a->g->a, struct matmul_parts);
    *pair = *parts;
    p.pair = pair;
    for (uint32_t i = 0; i < f->nproduct; i++)
        if (a->pair[i] && a->pair[i]->reduce == e->reduce &&
            matmul_same(a->pair[i]->args[0], e->args[0]))
            return (struct lang_expr *)f->product[i].e;
    for (uint32_t i = 0; i < parts->n; i++) {
        p.part[i] = add_operand(a, parts->side[i], parts->e[i], parts->mask[i]);
        uint32_t *first = parts->side[i] == MATMUL_A ? &p.a : &p.b;
        *first = *first == MATMUL_OPERANDS ? p.part[i] : *first;
        if (p.part[i] == MATMUL_OPERANDS)
            return NULL;
    }
    if (f->nproduct == MATMUL_PRODUCTS)
        return NULL;
    a->pair[f->nproduct] = e;
    a->span[f->nproduct] = e->span;
    f->product[f->nproduct++] = p;
    f->pairs = true;
    f->whole |= !parts->vanishes;
    f->compares |= e->reduce != RED_SUM;
    return e;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static bool check_type(struct analysis *a, const struct lang_expr *e)
{
    if (e->type != DT_F32 && e->type != DT_F64 && e->type != DT_I32)
        return lower_lacks(a->why, e->span, "the sum is of %s, not f32, f64 or i32",
                           dtype_name(e->type));
    if (a->sum != DT_VOID && a->sum != e->type)
        return lower_lacks(a->why, e->span, "this sum is of another type than the first");
    a->sum = e->type;
    return true;
}

/* Integers are multiplied in 8 bits each, or as terms that are no products. */
static bool are_short(const struct analysis *a, const struct matmul_terms *t, struct buf *why)
{
    for (uint32_t i = 0; a->sum == DT_I32 && i < 2; i++)
        if (!(matmul_exact(t->e[i]) & INT8))
            return lower_lacks(why, t->e[i]->span, "this factor is an integer of more than 8 bits");
    return true;
}

static struct lang_expr *pair_of(struct analysis *a, struct lang_expr *e)
{
    struct matmul_parts parts;
    return matmul_find_parts(a->g, &a->n, e, &parts) ? add_pair(a, e, &parts) : NULL;
}

/* The sum, written as its product with what was taken out of it. NULL after saying why not. */
static struct lang_expr *product_of(struct analysis *a, struct lang_expr *e)
{
    struct matmul_terms t;
    struct buf why = buf_in(a->g->a);
    if (!check_type(a, e))
        return NULL;
    if (e->reduce != RED_SUM)
        buf_printf(&why, "line %zu: %s is no sum of products", span_line_col(e->span).line,
                   lang_reduce_name(e->reduce));
    if (e->reduce != RED_SUM || !matmul_split_terms(a->g, &a->n, e, &t, &why) ||
        !are_short(a, &t, &why)) {
        struct lang_expr *pair = pair_of(a, e);
        if (!pair && a->why)
            buf_puts(a->why, buf_text(&why));
        if (pair && !a->f->no_product)
            a->f->no_product = buf_text(&why);
        return pair;
    }
    struct lang_expr *sum = add_product(a, e, &t);
    if (sum && t.negative) {
        struct lang_expr *neg = ARENA_NEW(a->g->a, struct lang_expr);
        *neg = (struct lang_expr){.kind = E_UNARY,
                                  .op = OP_NEG,
                                  .type = sum->type,
                                  .span = e->span,
                                  .nargs = 1,
                                  .args = ARENA_ARRAY(a->g->a, 1, struct lang_expr *),
                                  .height = sum->height + 1};
        neg->args[0] = sum;
        sum = neg;
    }
    for (uint32_t i = 0; sum && i < t.nafter; i++)
        sum = matmul_binary(a->g, t.divides[i] ? OP_DIV : OP_MUL, sum, t.after[i]);
    return sum;
}

static bool find_sums(struct analysis *a, struct lang_expr **e)
{
    if ((*e)->kind == E_REDUCE)
        return (*e = product_of(a, *e)) != NULL;
    for (uint32_t i = 0; i < (*e)->nargs; i++)
        if (!find_sums(a, &(*e)->args[i]))
            return false;
    return !(*e)->pad || find_sums(a, &(*e)->pad);
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* Does it read one tensor by subscripts that are more than indices, as a convolution with a stride
 * does? */
static bool is_strided(const struct analysis *a, const struct lang_expr *e)
{
    e = inspect_strip(e);
    if (e->kind != E_INDEX || cg_is_defined(a->g, e->sym))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (matmul_mask(&a->n, e->args[i]) && inspect_strip(e->args[i])->kind != E_NAME)
            return true;
    return false;
}

/* Makes pixels of all images the columns, where the right operands are windows of them. */
static void join_images(struct analysis *a, uint32_t left, uint32_t right)
{
    bool any = a->n.folded;
    for (uint32_t i = 0; i < a->f->noperand; i++)
        any |= is_strided(a, a->e[i]);
    if (!any || a->f->pairs || !matmul_join_images(a->g, &a->n, left, right, &a->f->images))
        return;
    const uint32_t image = 1u << a->f->images.axis;
    for (uint32_t i = 0; i < a->f->noperand; i++)
        if (a->mask[i] & image) {
            a->e[i] = matmul_of_images(a->g, &a->f->images, a->e[i]);
            a->mask[i] &= ~image;
        }
}

static bool choose_axes(struct analysis *a)
{
    struct matmul_form *f = a->f;
    const uint32_t last = a->n.naxis - 1;
    uint32_t left = 0, right = 0;
    for (uint32_t i = 0; i < f->noperand; i++)
        *(f->operand[i].side == MATMUL_A ? &left : &right) |= a->mask[i];
    join_images(a, left, right);
    f->k = a->n.sum[0];
    f->j = a->n.axis[last];
    f->axis_i = last;
    for (uint32_t i = last; i-- > 0 && !f->i;)
        if ((left & ~right) & 1u << i) {
            f->i = a->n.axis[i];
            f->axis_i = i;
        }
    for (uint32_t i = 0; i < last; i++) {
        if (!((left | right) & 1u << i))
            return lower_lacks(a->why, a->span[0], "the sum does not depend on '%s'",
                               a->n.axis[i]->name);
        if (a->n.axis[i] == f->i || a->n.axis[i] == f->images.image)
            continue;
        if (f->nbatch == MATMUL_BATCH)
            return lower_lacks(a->why, a->span[0], "'%s' is one index too many",
                               a->n.axis[i]->name);
        f->batch[f->nbatch++] = a->n.axis[i];
    }
    return true;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Chooses the type of terms that fma computes. No products for tensor cores may be among them. */
static bool choose_type_of_pairs(struct analysis *a)
{
    struct matmul_form *f = a->f;
    const uint32_t tensor = a->sum == DT_I32   ? INT8
                            : a->sum == DT_F32 ? MATMUL_BIT(DT_F16) | MATMUL_BIT(DT_BF16) |
                                                     MATMUL_BIT(MATMUL_EXACT_TF32)
                                               : 0;
    for (uint32_t i = 0; i < f->nproduct; i++) {
        const struct matmul_product *q = &f->product[i];
        if (!q->pair && (matmul_exact(a->e[q->a]) & matmul_exact(a->e[q->b]) & tensor))
            return lower_lacks(a->why, a->span[i], "others are no sums of products as this is");
    }
    f->sum = a->sum;
    f->type = a->sum == DT_I32 ? MATMUL_I32 : a->sum == DT_F64 ? MATMUL_F64 : MATMUL_F32;
    return true;
}

static bool choose_type(struct analysis *a)
{
    struct matmul_form *f = a->f;
    if (f->pairs)
        return choose_type_of_pairs(a);
    const uint32_t fp8 = MATMUL_BIT(DT_E4M3) | MATMUL_BIT(DT_E5M2);
    uint32_t all = UINT32_MAX;
    bool is_fp8 = true;
    for (uint32_t i = 0; i < f->noperand; i++) {
        const uint32_t exact = matmul_exact(a->e[i]);
        all &= exact;
        is_fp8 &= (exact & fp8) != 0;
    }
    f->sum = a->sum;
    if (a->sum == DT_I32)
        f->type = MATMUL_INT8;
    else if (a->sum == DT_F64)
        f->type = MATMUL_F64;
    else
        f->type = is_fp8                                ? MATMUL_FP8
                  : all & MATMUL_BIT(DT_F16)            ? MATMUL_F16
                  : all & MATMUL_BIT(DT_BF16)           ? MATMUL_BF16
                  : all & MATMUL_BIT(MATMUL_EXACT_TF32) ? MATMUL_TF32
                                                        : MATMUL_F32;
    return true;
}

static enum dtype operand_type(const struct matmul_form *f, const struct lang_expr *e)
{
    const uint32_t exact = matmul_exact(e);
    switch (f->type) {
    case MATMUL_F16: return DT_F16;
    case MATMUL_BF16: return DT_BF16;
    case MATMUL_TF32:
    case MATMUL_F32: return DT_F32;
    case MATMUL_F64: return DT_F64;
    case MATMUL_I32: return DT_I32;
    case MATMUL_INT8: return exact & MATMUL_BIT(DT_I8) ? DT_I8 : DT_U8;
    case MATMUL_FP8: return exact & MATMUL_BIT(DT_E4M3) ? DT_E4M3 : DT_E5M2;
    }
    return DT_F32;
}

/* ---- what operands read ---------------------------------------------------------------------- */

struct reads {
    const struct analysis *a;
    const struct lang_expr *main;
    unsigned axes, weight, light;
    unsigned sums; /* that e is in */
    bool results;  /* where an element is that sums read does not count: operands have that */
    bool slides;   /* a subscript goes along a result's axis and along the sum's */
};

/* Ranks a read by how many elements it has, as far as one can tell without the sizes: an index by
 * itself runs over more than a quotient. */
static unsigned axes_of(const struct analysis *a, const struct lang_expr *read)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < read->nargs; i++)
        n += matmul_mask(&a->n, read->args[i]) == 0         ? 0
             : inspect_strip(read->args[i])->kind == E_NAME ? 3
                                                            : 2;
    return n;
}

/* The read of the most elements; of those the one of the widest. */
static void look(struct reads *r, const struct lang_expr *e)
{
    const bool memory = e->kind == E_INDEX && !cg_is_defined(r->a->g, e->sym);
    for (uint32_t i = 0; memory && i < e->nargs; i++) {
        const uint32_t mask = matmul_mask(&r->a->n, e->args[i]);
        r->slides |= (mask & MATMUL_K) && mask != MATMUL_K;
    }
    if (memory) {
        const unsigned axes = axes_of(r->a, e);
        if (!r->main || axes > r->axes ||
            (axes == r->axes && dtype_bits(e->sym->type) > dtype_bits(r->main->sym->type))) {
            r->main = e;
            r->axes = axes;
        }
    }
    const unsigned one = e->kind == E_BINARY || e->kind == E_CAST || e->kind == E_COND;
    const bool call = e->kind == E_CALL, light = call && cg_has_tensor_call(r->a->g->target, e);
    r->weight += call ? CALL : one;
    r->light += light ? TENSOR_CALL : call ? CALL : one;
    if (memory && r->results && r->sums)
        return;
    r->sums += e->kind == E_REDUCE;
    for (uint32_t i = 0; i < e->nargs; i++)
        look(r, e->args[i]);
    if (e->pad)
        look(r, e->pad);
    r->sums -= e->kind == E_REDUCE;
}

/* Along which of its last two axes do its main buffer's elements lie side by side? */
static bool lies_along_k(const struct analysis *a, enum matmul_side side,
                         const struct lang_expr *main)
{
    const uint32_t j = 1u << (a->n.naxis - 1), i = a->f->i ? 1u << a->f->axis_i : 0,
                   across = side == MATMUL_A ? i : j;
    for (uint32_t s = main ? main->nargs : 0; s-- > 0;) {
        const uint32_t mask = matmul_mask(&a->n, main->args[s]);
        if ((mask & MATMUL_K) && (mask & across)) /* j + v of a window's few v */
            return !a->n.folded;
        if (mask & (MATMUL_K | across))
            return !(mask & across);
    }
    return side == MATMUL_A;
}

/* Each subscript another axis of the operand's, that runs over just its dimension, or without i, j
 * and k; the last is none of those, so that neighbours lie side by side. */
static bool is_plain(const struct analysis *a, const struct lang_expr *e)
{
    const uint32_t tile = MATMUL_K | 1u << (a->n.naxis - 1) | (a->f->i ? 1u << a->f->axis_i : 0);
    uint32_t seen = 0;
    if (e->kind != E_INDEX || e->pad || cg_is_defined(a->g, e->sym) || dtype_bits(e->sym->type) < 8)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const uint32_t mask = matmul_mask(&a->n, e->args[i]) & tile;
        const bool known = !mask || cg_in_range(e->args[i], e->sym->dims[i]);
        if (!known || (mask & seen) || (!mask && i + 1 == e->nargs))
            return false;
        seen |= mask;
    }
    return (seen & MATMUL_K) != 0;
}

static void find_plain(const struct analysis *a, struct matmul_operand *o,
                       const struct lang_expr *e)
{
    e = inspect_strip(e);
    const bool called = a->f->type == MATMUL_TF32 && e->kind == E_CALL && !e->func;
    const enum matmul_cut cut = !called               ? MATMUL_WHOLE
                                : e->fn == FN_TF32    ? MATMUL_AWAY
                                : e->fn == FN_TF32_RN ? MATMUL_EVEN
                                : e->fn == FN_TF32_RZ ? MATMUL_CUT
                                                      : MATMUL_WHOLE;
    if (cut)
        e = inspect_strip(e->args[0]);
    if (e->type != o->type)
        return;
    if (is_plain(a, e)) {
        o->plain = e;
        o->cut = cut;
    } else if (a->f->i) {
        struct matmul_gather *p = (struct matmul_gather *)matmul_find_gather(
            a->g, &a->n, e, o->along_k ? a->f->k : (o->side == MATMUL_A ? a->f->i : a->f->j),
            o->along_k);
        const struct lang_symbol *across = o->side == MATMUL_A ? a->f->i : a->f->j;
        if (p)
            p->cut = cut;
        if (p && p->run)
            matmul_find_boxes(a->g, p, o->along_k ? across : a->f->k, o->along_k ? a->f->k : across,
                              o->along_k);
        o->gather = p;
    }
}

/* ---- operands as equations ------------------------------------------------------------------- */

static void make_equation(struct analysis *a, uint32_t n)
{
    struct matmul_form *f = a->f;
    struct matmul_operand *o = &f->operand[n];
    struct lang_symbol *sym = ARENA_NEW(a->g->a, struct lang_symbol);
    struct lang_equation *eq = ARENA_NEW(a->g->a, struct lang_equation);
    struct lang_symbol *across = o->side == MATMUL_A ? f->i : f->j;
    struct lang_expr *rhs = matmul_as(a->g, a->e[n], o->type);
    *sym = (struct lang_symbol){.kind = SYM_TENSOR,
                                .name = arena_printf(a->g->a, "operand %u", n),
                                .span = rhs->span,
                                .type = o->type,
                                .dims = ARENA_ARRAY(a->g->a, f->nbatch + 2, struct lang_expr *),
                                .def = eq};
    *eq =
        (struct lang_equation){.span = rhs->span,
                               .sym = sym,
                               .rhs = rhs,
                               .index = ARENA_ARRAY(a->g->a, f->nbatch + 2, struct lang_symbol *)};
    for (uint32_t i = 0; i < f->nbatch; i++)
        eq->index[eq->nindex++] = f->batch[i];
    if (across && o->along_k)
        eq->index[eq->nindex++] = across;
    eq->index[eq->nindex++] = f->k;
    if (across && !o->along_k)
        eq->index[eq->nindex++] = across;
    sym->rank = eq->nindex;
    for (uint32_t i = 0; i < sym->rank; i++)
        sym->dims[i] = eq->index[i]->dims[0];
    o->eq = eq;
}

static void make_operand(struct analysis *a, uint32_t n)
{
    struct matmul_operand *o = &a->f->operand[n];
    struct reads r = {.a = a};
    o->type = operand_type(a->f, a->e[n]);
    look(&r, a->e[n]);
    o->along_k = lies_along_k(a, o->side, r.main);
    o->main = r.main ? r.main->sym : NULL;
    o->bits = r.main ? dtype_bits(o->main->type) : dtype_bits(o->type);
    find_plain(a, o, matmul_as(a->g, a->e[n], o->type));
    o->weight = o->plain ? 0 : 1 + r.weight;
    a->f->computes |= !o->plain;
    a->f->slides |= r.slides && a->n.folded;
    make_equation(a, n);
}

/* ---- all ------------------------------------------------------------------------------------- */

static unsigned instructions(const struct lang_expr *e)
{
    const bool light = e->fn == FN_ABS || e->fn == FN_MIN || e->fn == FN_MAX || e->fn == FN_RELU;
    unsigned n = e->kind == E_CALL ? (light              ? 1
                                      : e->fn == FN_POPC ? POPC
                                                         : CALL)
                                   : e->kind == E_BINARY || e->kind == E_COND;
    for (uint32_t i = 0; i < e->nargs; i++)
        n += instructions(e->args[i]);
    return n;
}

/* About the instructions that compute a term and add it. A product is a part of the addition, and
 * of equal factors one is computed. */
static unsigned pair_weight(const struct lang_expr *term)
{
    if (term->kind != E_BINARY || term->op != OP_MUL)
        return instructions(term) + 1;
    const bool same = matmul_same(term->args[0], term->args[1]);
    return instructions(term->args[0]) + (same ? 0 : instructions(term->args[1])) + 1;
}

static void weigh_outputs(struct analysis *a)
{
    struct matmul_form *f = a->f;
    for (uint32_t i = 0; i < f->nproduct; i++)
        f->pair_weight += f->product[i].pair ? pair_weight(f->product[i].pair->term) : 1;
    f->pair_weight = (f->pair_weight + f->nproduct - 1) / f->nproduct;
    for (uint32_t i = 0; i < f->stage->n; i++) {
        struct reads r = {.a = a, .results = true};
        const unsigned bits = dtype_bits(f->stage->eq[i]->sym->type);
        look(&r, f->stage->eq[i]->rhs);
        f->weight += r.weight;
        f->light += f->sum == DT_F32 ? r.light : r.weight;
        f->out_bits = bits > f->out_bits ? bits : f->out_bits;
    }
}

static bool find_products(struct analysis *a)
{
    struct lower_stage *s = &a->n.stage;
    struct lang_equation *eq = ARENA_ARRAY(a->g->a, s->n, struct lang_equation);
    const struct lang_equation **list = ARENA_ARRAY(a->g->a, s->n, const struct lang_equation *);
    for (uint32_t i = 0; i < s->n; i++) {
        eq[i] = *s->eq[i];
        list[i] = &eq[i];
        if (!find_sums(a, &eq[i].rhs))
            return false;
    }
    s->eq = list;
    return true;
}

/* ---- rows and columns of several axes -------------------------------------------------------- */

/* Of a convolution, pixels of all rows and images are the rows, or the columns, of one product. */
static bool fold_axes(struct analysis *a)
{
    uint32_t mask[2] = {0, 0};
    bool any = a->n.folded;
    for (uint32_t i = 0; i < a->f->noperand; i++) {
        mask[a->f->operand[i].side] |= a->mask[i];
        any |= is_strided(a, a->e[i]);
    }
    return any && matmul_fold_axes(a->g, &a->n, mask[MATMUL_A], mask[MATMUL_B]);
}

/* What was found is found again, of fewer axes. */
static bool find_folded(struct analysis *a)
{
    if (!find_products(a))
        return false;
    if (!fold_axes(a))
        return true;
    *a->f = (struct matmul_form){0};
    a->sum = DT_VOID;
    return find_products(a);
}

/* ---- what results read ----------------------------------------------------------------------- */

struct read_list {
    VEC(struct matmul_read) v;
};

static void find_reads(struct analysis *a, struct read_list *to, const struct lang_expr *e)
{
    for (uint32_t q = 0; q < a->f->nproduct; q++)
        if (e == a->f->product[q].e)
            return;
    if (e->kind == E_INDEX)
        *VEC_PUSH(a->g->a, &to->v) =
            (struct matmul_read){.e = e, .is_memory = !cg_is_defined(a->g, e->sym)};
    for (uint32_t i = 0; i < e->nargs; i++)
        find_reads(a, to, e->args[i]);
    if (e->pad)
        find_reads(a, to, e->pad);
}

static void list_reads(struct analysis *a)
{
    struct read_list all = {0};
    for (uint32_t o = 0; o < a->f->stage->n; o++)
        find_reads(a, &all, a->f->stage->eq[o]->rhs);
    a->f->read = all.v.v;
    a->f->nread = (uint32_t)all.v.n;
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool matmul_analyse(struct cg *g, const struct lower_stage *s, bool merges, struct matmul_form *f,
                    struct buf *why)
{
    struct analysis *a = ARENA_NEW(g->a, struct analysis);
    *f = (struct matmul_form){0};
    *a = (struct analysis){.g = g, .f = f, .why = why, .sum = DT_VOID};
    if (s->n > MATMUL_OUTS)
        return lower_lacks(why, s->eq[MATMUL_OUTS]->span, "'%s' is one result too many",
                           s->eq[MATMUL_OUTS]->sym->name);
    if (!matmul_normalise(g, s, merges, &a->n, why))
        return false;
    if (a->n.nsum != 1)
        return lower_lacks(why, s->eq[0]->span, "the sum is over '%s' and other ranges",
                           a->n.sum[0]->name);
    if (!find_folded(a) || !choose_axes(a) || !choose_type(a))
        return false;
    f->stage = &a->n.stage;
    for (uint32_t i = 0; i < f->noperand; i++)
        make_operand(a, i);
    weigh_outputs(a);
    list_reads(a);
    return true;
}
