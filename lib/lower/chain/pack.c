/* Finds an axis of the row that right operands depend on by groups, as heads of grouped queries
 * (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

enum { MOST_MEMBERS = 1 << 16 };

/* How an axis is met. */
struct meeting {
    const struct lang_symbol *axis;
    const struct lang_expr *by; /* it is divided by this wherever it stands; NULL: it stands nowhere
                                   so far */
};

/* Is e the axis divided by a number of the launch's? */
static bool is_quotient(const struct meeting *m, const struct lang_expr *e)
{
    int64_t n;
    return e->kind == E_BINARY && e->op == OP_DIV && dtype_is_int(e->type) &&
           inspect_is_index(e->args[0], m->axis) && inspect_at_launch(e->args[1]) &&
           (!lang_const_int(e->args[1], &n) || (n > 0 && n <= MOST_MEMBERS));
}

/* Does e depend on the axis by the same groups alone? */
static bool meets_groups(struct meeting *m, const struct lang_expr *e)
{
    if (is_quotient(m, e)) {
        m->by = m->by ? m->by : e->args[1];
        return lx_same(m->by, e->args[1]);
    }
    if (e->kind == E_NAME)
        return e->sym != m->axis;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!meets_groups(m, e->args[i]))
            return false;
    return !e->pad || meets_groups(m, e->pad);
}

static const struct matmul_operand *of_side(const struct chain_product *p, enum matmul_side side)
{
    const struct matmul_form *f = &p->form;
    return &f->operand[f->operand[0].side == side ? 0 : 1];
}

/* Does the product's right operand depend on batch axis b by groups alone? */
static bool shares_right(const struct chain_product *p, uint32_t b, struct meeting *m)
{
    m->axis = p->form.batch[b];
    return meets_groups(m, of_side(p, MATMUL_B)->eq->rhs);
}

static bool all_share(const struct chain_tensor *t, uint32_t b, struct meeting *m)
{
    for (uint32_t i = 0; i < t->f->nscore; i++)
        if (!shares_right(&t->score[i], b, m))
            return false;
    for (uint32_t i = 0; i < t->ncolumn; i++)
        if (!shares_right(&t->column[i], b, m))
            return false;
    return true;
}

/* Rows of left operands are pieces of their own. */
static bool are_apart(const struct chain_tensor *t)
{
    for (uint32_t i = 0; i < t->f->nscore; i++)
        if (!of_side(&t->score[i], MATMUL_A)->along_k)
            return false;
    return true;
}

/* Is n known to be a factor of the extent? */
static bool divides(const struct lang_expr *n, const struct lang_expr *extent)
{
    const struct lang_expr *x = lx_strip(n), *y = lx_strip(extent);
    int64_t a, b;
    if (lang_const_int(n, &a) && lang_const_int(extent, &b))
        return b % a == 0;
    return y->kind == E_BINARY && y->op == OP_MUL &&
           (lx_same(y->args[0], x) || lx_same(y->args[1], x));
}

/* Is it the extent divided by something? */
static bool is_part_of(const struct lang_expr *n, const struct lang_expr *extent)
{
    n = lx_strip(n);
    return n->kind == E_BINARY && n->op == OP_DIV && lx_same(n->args[0], extent);
}

/* How many are in a group: at least one, and no more than there are. Launches compute it before
 * they find out that what the spec requires does not hold: nothing is divided by 0. */
static struct lang_expr *members_of(struct arena *a, const struct lang_expr *by,
                                    struct lang_expr *extent)
{
    struct lang_expr *n = by ? lx_operand(a, lx_strip(by)) : extent, *const one = lx_int(a, 1);
    int64_t known;
    if (lang_const_int(n, &known))
        n = lx_int(a, known);
    else if (is_part_of(n, extent))
        n = lx_div(a, extent, lx_max(a, n->args[1], one));
    else if (!divides(n, extent))
        n = lx_min(a, n, extent);
    return lx_max(a, n, one);
}

static struct lang_symbol *index_over(struct cg *g, const char *name, struct lang_expr *n)
{
    struct lang_symbol *sym = ARENA_NEW(g->a, struct lang_symbol);
    *sym = (struct lang_symbol){.kind = SYM_INDEX,
                                .name = name,
                                .span = n->span,
                                .type = DT_I64,
                                .dims = ARENA_ARRAY(g->a, 1, struct lang_expr *)};
    sym->dims[0] = n;
    return sym;
}

/* False where groups have one member, as far as is known. */
static bool set_pack(struct cg *g, struct chain_tensor *t, uint32_t axis, uint32_t batch,
                     const struct lang_expr *by)
{
    const struct chain_form *f = t->f;
    struct lang_expr *extent = f->row[axis]->dims[0], *n = members_of(g->a, by, extent);
    int64_t one;
    if (lang_const_int(n, &one) && one == 1)
        return false;
    struct lang_expr *rows = t->i < f->nrow ? lx_mul(g->a, f->row[t->i]->dims[0], n) : n;
    struct lang_expr *groups = by ? lx_ceil_div(g->a, extent, n) : lx_int(g->a, 1);
    t->pack = (struct chain_pack){.axis = axis,
                                  .batch = batch,
                                  .ragged = by && !divides(by, extent),
                                  .member = index_over(g, "member", n),
                                  .group = index_over(g, "group", groups),
                                  .rows = index_over(g, "rows", rows)};
    return true;
}

/* The last axis that is divided, or the last one that does not matter at all. */
void chain_find_pack(struct cg *g, struct chain_tensor *t)
{
    uint32_t batch = t->f->nrow - (t->i < t->f->nrow);
    if (!are_apart(t))
        return;
    for (uint32_t a = t->f->nrow; a-- > 0;) {
        struct meeting m = {NULL, NULL};
        if (a == t->i || !all_share(t, --batch, &m) || (!m.by && chain_can_pack(t)))
            continue;
        if (set_pack(g, t, a, batch, m.by) && m.by)
            return;
    }
}

bool chain_can_pack(const struct chain_tensor *t)
{
    return t->pack.axis < t->f->nrow;
}

const struct lang_symbol *chain_rows_index(const struct chain_tensor *t, bool packs)
{
    return packs ? t->pack.rows : t->i < t->f->nrow ? t->f->row[t->i] : NULL;
}

const struct lang_symbol *chain_batch_index(const struct chain_tensor *t, bool packs, uint32_t a)
{
    return packs && a == t->pack.axis ? t->pack.group : t->f->row[a];
}
