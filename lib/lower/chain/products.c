/* Finds the products of matrices in a chain (chain.h): each score and each stream with a column as
 * an equation of its own, which is analysed as contractions are. */
#include <config.h>

#include "lower/chain/chain.h"

struct finder {
    struct cg *g;
    const struct chain_form *f;
    struct chain_tensor *t;
    struct buf *why;
    uint32_t naxis;
    struct lang_symbol *axis[CHAIN_AXES]; /* of the row, i last */
};

/* A tensor over the row's axes and another one. */
static struct lang_symbol *tensor(const struct finder *x, const char *name, enum dtype t,
                                  struct lang_symbol *last)
{
    struct lang_symbol *sym = ARENA_NEW(x->g->a, struct lang_symbol);
    *sym = (struct lang_symbol){.kind = SYM_BUFFER,
                                .mode = MODE_IN,
                                .name = name,
                                .span = last->span,
                                .type = t,
                                .rank = x->naxis + 1};
    sym->dims = ARENA_ARRAY(x->g->a, sym->rank, struct lang_expr *);
    for (uint32_t i = 0; i < sym->rank; i++)
        sym->dims[i] = i < x->naxis ? x->axis[i]->dims[0] : last->dims[0];
    return sym;
}

/* The tensor[row.., last] = rhs, as a stage. */
static struct lower_stage *stage_of(const struct finder *x, struct lang_symbol *last,
                                    struct lang_expr *rhs)
{
    struct lower_stage *s = ARENA_NEW(x->g->a, struct lower_stage);
    struct lang_equation *eq = ARENA_NEW(x->g->a, struct lang_equation);
    const struct lang_equation **list = ARENA_ARRAY(x->g->a, 1, const struct lang_equation *);
    *eq = (struct lang_equation){
        .span = rhs->span, .sym = tensor(x, "product", rhs->type, last), .rhs = rhs};
    eq->nindex = eq->sym->rank;
    eq->index = ARENA_ARRAY(x->g->a, eq->nindex, struct lang_symbol *);
    memcpy(eq->index, x->axis, x->naxis * sizeof *x->axis);
    eq->index[x->naxis] = last;
    list[0] = eq;
    *s = (struct lower_stage){.eq = list, .n = 1, .entry = x->f->stage->entry};
    return s;
}

struct lang_expr *chain_replaced(struct cg *g, struct lang_expr *e, const struct lang_expr *from,
                                 const struct lang_symbol *sym, struct lang_expr *to)
{
    if (e == from || (sym && e->kind == E_NAME && e->sym == sym))
        return to;
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++)
        c->args[i] = chain_replaced(g, e->args[i], from, sym, to);
    if (e->pad)
        c->pad = chain_replaced(g, e->pad, from, sym, to);
    const bool is_same = c->kind == E_CAST && c->type == c->args[0]->type;
    return is_same ? c->args[0] : c;
}

/* ---- one product ----------------------------------------------------------------------------- */

static uint32_t of_side(const struct matmul_form *f, enum matmul_side side)
{
    return f->operand[0].side == side ? 0 : 1;
}

/* The operands are multiplied as what is of 16 bits, which has their values. */
static void widen(struct finder *x, struct matmul_form *f, enum dtype to)
{
    f->type = to == DT_F16 ? MATMUL_F16 : MATMUL_BF16;
    for (uint32_t i = 0; i < f->noperand; i++) {
        struct matmul_operand *o = &f->operand[i];
        struct lang_symbol *sym = ARENA_NEW(x->g->a, struct lang_symbol);
        struct lang_equation *eq = ARENA_NEW(x->g->a, struct lang_equation);
        const bool is_part = o->plain && strcmp(o->plain->sym->name, CHAIN_PART) == 0;
        *sym = *o->eq->sym;
        *eq = *o->eq;
        sym->type = o->type = to;
        sym->def = eq;
        eq->sym = sym;
        eq->rhs = matmul_as(x->g, eq->rhs, to);
        o->eq = eq;
        o->plain = is_part ? o->plain : NULL;
    }
}

/* What the instructions take the operands as. False: nothing that tensor cores have. */
static bool find_kind(struct finder *x, struct chain_product *p)
{
    enum { HAS_BYTES = 89 };
    struct matmul_form *f = &p->form;
    p->splits = false;
    switch (f->type) {
    case MATMUL_F16:
    case MATMUL_BF16:
    case MATMUL_TF32: break;
    case MATMUL_FP8:
        if (x->g->target->sm < HAS_BYTES)
            widen(x, f, DT_F16);
        break;
    case MATMUL_F32: p->splits = true; break;
    case MATMUL_F64:
    case MATMUL_INT8:
    case MATMUL_I32: return false;
    }
    p->kind.left = f->operand[of_side(f, MATMUL_A)].type;
    p->kind.right = f->operand[of_side(f, MATMUL_B)].type;
    return true;
}

/* Analyses the product; its rows are those of the last of the row's axes. */
static bool analyse(struct finder *x, struct lang_symbol *last, struct lang_expr *rhs,
                    struct chain_product *p)
{
    struct matmul_form *f = &p->form;
    const struct span s = rhs->span;
    if (!matmul_analyse(x->g, stage_of(x, last, rhs), false, f, x->why))
        return false;
    if (f->pairs || f->nproduct != 1 || f->noperand != 2)
        return lower_lacks(x->why, s, "this is no sum of products");
    if (f->type == MATMUL_F32 && !x->g->contract_fma)
        return lower_lacks(x->why, s, "math: strict leaves f32 as it is, not in parts");
    if (!find_kind(x, p))
        return lower_lacks(x->why, s, "its factors are neither f16, bf16, f32 nor 8-bit floats");
    if (!f->i != (x->t->i == x->f->nrow))
        return lower_lacks(x->why, s, "its rows run along another axis");
    if (f->i && f->axis_i + 1 != x->naxis)
        return lower_lacks(x->why, s, "its rows run along another axis");
    struct lang_symbol *raw = ARENA_NEW(x->g->a, struct lang_symbol);
    *raw = (struct lang_symbol){.kind = SYM_LOCAL, .name = "product", .span = s, .type = f->sum};
    p->raw = raw;
    p->value =
        chain_replaced(x->g, f->stage->eq[0]->rhs, f->product[0].e, NULL, chain_name(x->g, raw, s));
    return true;
}

/* The indices of the equation that was analysed become the chain's again. */
static void restore_indices(const struct finder *x, struct chain_product *p,
                            struct lang_symbol *last)
{
    const struct lang_equation *eq = p->form.stage->eq[0];
    for (uint32_t i = 0; i < eq->nindex; i++) {
        struct lang_symbol *to = i < x->naxis ? x->axis[i] : last;
        p->value =
            chain_replaced(x->g, p->value, NULL, eq->index[i], chain_name(x->g, to, eq->span));
    }
}

static bool find_score(struct finder *x, uint32_t n)
{
    struct chain_product *p = &x->t->score[n];
    if (!analyse(x, x->f->j, x->f->score[n].e, p))
        return false;
    restore_indices(x, p, x->f->j);
    return true;
}

/* p[row.., j] of type t, which stands for the stream's part, as what that is of or as it is. */
static struct lang_expr *read_of(const struct finder *x, const struct chain_part *part,
                                 enum dtype t, bool casts)
{
    struct lang_expr *e = ARENA_NEW(x->g->a, struct lang_expr);
    struct lang_symbol *sym = tensor(x, CHAIN_PART, t, x->f->j);
    *e = (struct lang_expr){.kind = E_INDEX,
                            .type = sym->type,
                            .span = part->e->span,
                            .name = sym->name,
                            .sym = sym,
                            .nargs = sym->rank,
                            .args = ARENA_ARRAY(x->g->a, sym->rank, struct lang_expr *),
                            .height = 2};
    for (uint32_t i = 0; i < sym->rank; i++)
        e->args[i] = chain_name(x->g, i < x->naxis ? x->axis[i] : x->f->j, e->span);
    return casts ? matmul_cast(x->g, e, part->e->type) : e;
}

/* The sum's terms with a part of type t, in the place of the stream's or cast to what that is. */
static struct lang_expr *terms_with(const struct finder *x, const struct chain_stream *s,
                                    enum dtype t, bool casts)
{
    struct lang_expr *sum = ARENA_NEW(x->g->a, struct lang_expr);
    *sum = (struct lang_expr){.kind = E_REDUCE,
                              .type = s->type,
                              .span = s->span,
                              .reduce = RED_SUM,
                              .nindex = 1,
                              .index = ARENA_ARRAY(x->g->a, 1, struct lang_symbol *),
                              .nargs = 1,
                              .args = ARENA_ARRAY(x->g->a, 1, struct lang_expr *)};
    sum->index[0] = x->f->j;
    sum->args[0] =
        chain_replaced(x->g, s->term, NULL, s->part[0].sym, read_of(x, &s->part[0], t, casts));
    sum->height = s->term->height + 4;
    return sum;
}

/* The stream is of its sums of the part's scaled numbers. */
static void unscale(const struct finder *x, struct chain_product *p)
{
    struct lang_expr *c = ARENA_NEW(x->g->a, struct lang_expr);
    struct lang_expr *raw = chain_name(x->g, (struct lang_symbol *)p->raw, p->value->span);
    *c = (struct lang_expr){.kind = E_FLOAT,
                            .type = DT_F32,
                            .span = p->value->span,
                            .fval = 1.0 / CHAIN_SCALE,
                            .height = 1};
    p->value = chain_replaced(x->g, p->value, NULL, p->raw, matmul_binary(x->g, OP_MUL, raw, c));
}

/* Of f16 there are two parts, or three of bf16 where the right operand has the choice, as bytes
 * have, since parts of f16 lack what is below 2^-36. False: that may be all that a row has. */
static bool choose_parts(struct finder *x, struct chain_product *p)
{
    const struct matmul_operand *v = &p->form.operand[of_side(&p->form, MATMUL_B)];
    if (p->kind.left == DT_F16 && matmul_exact(v->eq->rhs) & MATMUL_BIT(DT_BF16)) {
        widen(x, &p->form, DT_BF16);
        p->kind = (struct mma_kind){DT_BF16, DT_BF16};
    }
    if (p->kind.left == DT_F16 && chain_is_deep(x->f))
        return false;
    p->parts = p->kind.left == DT_F16 ? 2 : CHAIN_PARTS_MOST;
    if (p->kind.left == DT_F16)
        unscale(x, p);
    return true;
}

/* Of an f32 that is at most 1, what the right operand is of decides into which parts it goes. */
static bool analyse_parts(struct finder *x, uint32_t n, struct chain_product *p)
{
    static const enum dtype types[] = {DT_BF16, DT_F16};
    const struct chain_stream *s = &x->f->stream[n];
    for (uint32_t i = 0; i < COUNT(types); i++) {
        struct buf *const why = x->why;
        struct buf nobody = buf_in(x->g->a);
        x->why = &nobody;
        const bool fits = analyse(x, x->f->column, terms_with(x, s, types[i], true), p) &&
                          p->kind.left == types[i];
        x->why = why;
        if (fits)
            return choose_parts(x, p);
    }
    return false;
}

/* Of a type that the product does not take, the part is what f32 has of it. */
static bool analyse_part(struct finder *x, uint32_t n, struct chain_product *p)
{
    const struct chain_stream *s = &x->f->stream[n];
    const enum dtype t = s->part[0].e->type;
    if (t == DT_F32 && s->running >= 0 && analyse_parts(x, n, p))
        return true;
    if (!analyse(x, x->f->column, terms_with(x, s, t, true), p))
        return false;
    return t == DT_F32 || p->kind.left != DT_F32 ||
           analyse(x, x->f->column, terms_with(x, s, DT_F32, false), p);
}

static bool find_column(struct finder *x, uint32_t n)
{
    const struct chain_stream *s = &x->f->stream[n];
    struct chain_product *p = &x->t->column[x->t->ncolumn];
    if (s->reduce != RED_SUM || s->npart != 1)
        return lower_lacks(x->why, s->span, "the terms are no product with a part of the row");
    if (x->t->ncolumn == CHAIN_COLUMNS)
        return lower_lacks(x->why, s->span, "this sum is one too many");
    x->t->ncolumn++;
    p->stream = n;
    p->parts = 1;
    if (!analyse_part(x, n, p))
        return false;
    const struct lang_expr *left = p->form.operand[0].plain;
    if (!left || strcmp(left->sym->name, CHAIN_PART) != 0)
        return lower_lacks(x->why, s->span, "what is multiplied is more than a part of the row");
    restore_indices(x, p, x->f->column);
    return true;
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* Has the score a factor that depends on the axis, and another that does not? */
static bool divides_score(const struct chain_form *f, const struct lang_symbol *axis)
{
    const struct lang_expr *e = f->score[0].e->args[0];
    while (e->kind == E_CAST)
        e = e->args[0];
    return e->kind == E_BINARY && e->op == OP_MUL &&
           chain_mentions(e->args[0], axis) != chain_mentions(e->args[1], axis);
}

/* Do ranges or terms have it beside j? */
static bool meets_j(const struct chain_form *f, const struct lang_symbol *axis)
{
    for (uint32_t i = 0; i < f->nstream; i++) {
        const struct chain_stream *s = &f->stream[i];
        if (chain_mentions(s->high, axis) || (s->low && chain_mentions(s->low, axis)))
            return true;
    }
    return false;
}

/* The axis of which a tile takes neighbours: of those that k and v don't depend on the longest, one
 * that meets j in a range, or the last. */
static uint32_t choose_rows(const struct chain_form *f)
{
    uint32_t best = f->nrow;
    int64_t longest = -1;
    bool meets = false;
    for (uint32_t i = 0; i < f->nrow; i++) {
        int64_t n;
        if (!divides_score(f, f->row[i]))
            continue;
        const bool known = lang_const_int(f->row[i]->dims[0], &n);
        const bool met = meets_j(f, f->row[i]);
        if (best < f->nrow && ((meets && !met) || (known && n < longest && meets == met)))
            continue;
        best = i;
        longest = known ? n : -1;
        meets = met;
    }
    return best;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool chain_has_bytes(const struct chain_tensor *t)
{
    bool has = false;
    for (uint32_t i = 0; i < t->ncolumn; i++)
        has |= chain_size(&t->column[i], MATMUL_A) == 1;
    return has;
}

bool chain_has_splits(const struct chain_tensor *t)
{
    bool has = false;
    for (uint32_t i = 0; i < t->f->nscore; i++)
        has |= t->score[i].splits;
    for (uint32_t i = 0; i < t->ncolumn; i++)
        has |= t->column[i].splits;
    return has;
}

static const char *type_text(const struct chain_product *p)
{
    return p->splits ? "tf32x3" : p->kind.left == DT_F32 ? "tf32" : dtype_name(p->kind.left);
}

const char *chain_types(struct arena *a, const struct chain_tensor *t)
{
    const char *all = "", *seen[CHAIN_SCORES + CHAIN_COLUMNS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->f->nscore + t->ncolumn; i++) {
        const bool is_score = i < t->f->nscore;
        const char *one = type_text(is_score ? &t->score[i] : &t->column[i - t->f->nscore]);
        bool known = false;
        for (uint32_t k = 0; k < n; k++)
            known |= strcmp(seen[k], one) == 0;
        if (known)
            continue;
        seen[n++] = one;
        all = n == 1 ? one : arena_printf(a, "%s and %s", all, one);
    }
    return all;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Columns lie as 8-bit floats' products have them, or all as others' have them. */
static void agree_on_columns(struct finder *x)
{
    bool others = false;
    for (uint32_t i = 0; i < x->t->ncolumn; i++)
        others |= chain_size(&x->t->column[i], MATMUL_A) != 1;
    for (uint32_t i = 0; i < x->t->ncolumn && others; i++) {
        struct chain_product *p = &x->t->column[i];
        if (chain_size(p, MATMUL_A) != 1)
            continue;
        widen(x, &p->form, DT_F16);
        p->kind = (struct mma_kind){DT_F16, DT_F16};
    }
}

bool chain_find_products(struct cg *g, const struct chain_form *f, struct chain_tensor *t,
                         struct buf *why)
{
    struct finder x = {.g = g, .f = f, .t = t, .why = why};
    *t = (struct chain_tensor){.f = f, .i = choose_rows(f), .pack = {.axis = f->nrow}};
    if (!f->ends)
        return lower_lacks(why, f->stage->eq[0]->span, "where '%s' ends in memory is not known",
                           f->j->name);
    if (f->nrow + 1 > CHAIN_AXES)
        return lower_lacks(why, f->stage->eq[0]->span, "there are too many indices");
    for (uint32_t i = 0; i < f->nrow; i++)
        if (i != t->i)
            x.axis[x.naxis++] = f->row[i];
    if (t->i < f->nrow)
        x.axis[x.naxis++] = f->row[t->i];
    for (uint32_t i = 0; i < f->nscore; i++)
        if (!find_score(&x, i))
            return false;
    for (uint32_t i = 0; i < f->nstream; i++)
        if (f->stream[i].has_column && !find_column(&x, i))
            return false;
    agree_on_columns(&x);
    chain_find_pack(g, t);
    chain_find_along(g, t);
    return true;
}
