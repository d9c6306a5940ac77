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
    return c;
}

/* ---- one product ----------------------------------------------------------------------------- */

/* The types of both operands; DT_VOID: tensor cores don't have it. */
static enum dtype type_of(const struct matmul_form *f)
{
    return f->type == MATMUL_F16 ? DT_F16 : f->type == MATMUL_BF16 ? DT_BF16 : DT_VOID;
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
    if (type_of(f) == DT_VOID)
        return lower_lacks(x->why, s, "its factors are not both f16, or bf16");
    if (!f->i != (x->t->i == x->f->nrow))
        return lower_lacks(x->why, s, "its rows run along another axis");
    if (x->t->type != DT_VOID && x->t->type != type_of(f))
        return lower_lacks(x->why, s, "its factors are of another type than the first ones");
    if (f->i && f->axis_i + 1 != x->naxis)
        return lower_lacks(x->why, s, "its rows run along another axis");
    x->t->type = type_of(f);
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

/* p[row.., j] of type t, which stands for the stream's part. */
static struct lang_expr *read_of(const struct finder *x, const struct chain_part *part,
                                 enum dtype t)
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
    return matmul_cast(x->g, e, part->e->type);
}

/* The sum's terms with a part of type t. */
static struct lang_expr *terms_with(const struct finder *x, const struct chain_stream *s,
                                    enum dtype t)
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
    sum->args[0] = chain_replaced(x->g, s->term, NULL, s->part[0].sym, read_of(x, &s->part[0], t));
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

/* Of an f32 that is at most 1, what the right operand is of decides into which parts it goes. */
static bool analyse_parts(struct finder *x, uint32_t n, struct chain_product *p)
{
    static const enum dtype types[] = {DT_F16, DT_BF16};
    const struct chain_stream *s = &x->f->stream[n];
    for (uint32_t i = 0; i < COUNT(types); i++) {
        struct buf *const why = x->why;
        struct buf nobody = buf_in(x->g->a);
        if (x->t->type != DT_VOID && x->t->type != types[i])
            continue;
        x->why = &nobody;
        const bool fits = analyse(x, x->f->column, terms_with(x, s, types[i]), p) &&
                          x->t->type == types[i];
        x->why = why;
        if (!fits)
            continue;
        p->parts = types[i] == DT_F16 ? 2 : CHAIN_PARTS_MOST;
        if (types[i] == DT_F16)
            unscale(x, p);
        return true;
    }
    return lower_lacks(x->why, s->span, "its factors are not both f16, or bf16");
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
    const bool is_split = s->part[0].e->type == DT_F32 && s->running >= 0;
    if (is_split ? !analyse_parts(x, n, p)
                 : !analyse(x, x->f->column, terms_with(x, s, s->part[0].e->type), p))
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

bool chain_find_products(struct cg *g, const struct chain_form *f, struct chain_tensor *t,
                         struct buf *why)
{
    struct finder x = {.g = g, .f = f, .t = t, .why = why};
    *t = (struct chain_tensor){.f = f, .i = choose_rows(f), .type = DT_VOID};
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
    return true;
}
