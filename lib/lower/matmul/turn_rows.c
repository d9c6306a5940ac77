/* Rows of windows with few channels, as a whole side by side (matmul/turn.c). */
#include <config.h>

#include "lower/matmul/turn.h"

enum { MOST_TAPS = 64 };

/* The one index of e that is one of the sum's, or that is none, and how many others there are. */
struct meeting {
    struct lang_symbol *of_sum, *other;
    uint32_t more;
};

static void meet(const struct turning *t, const struct lang_expr *e, struct meeting *m)
{
    if (e->kind == E_NAME && e->sym->kind == SYM_INDEX) {
        struct lang_symbol **to = turn_which(t, e) < t->sum->nindex ? &m->of_sum : &m->other;
        m->more += *to && *to != e->sym;
        *to = e->sym;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        meet(t, e->args[i], m);
}

/* Is subscript i made of an index j of the result and of a range v of the sum that no other one is
 * made of? */
static bool is_row(struct turning *t, const struct lang_expr *read, uint32_t i)
{
    struct meeting m = {0};
    int64_t n;
    meet(t, read->args[i], &m);
    if (m.more || !m.of_sum || !m.other || m.other->low || !inspect_at_launch(m.other->dims[0]) ||
        !lang_const_int(m.of_sum->dims[0], &n) || n < 2 || n > MOST_TAPS)
        return false;
    for (uint32_t k = 0; k < read->nargs; k++)
        if (k != i && inspect_mentions(read->args[k], 1, &m.of_sum))
            return false;
    t->v = m.of_sum;
    t->j = m.other;
    t->row = i;
    t->taps = 0;
    while (t->sum->index[t->taps] != t->v)
        t->taps++;
    t->terms = t->channels * n;
    return true;
}

bool turn_has_rows(struct turning *t, const struct turn_factor *f)
{
    t->v = t->j = NULL;
    if (t->how != MATMUL_TURN_ROWS || !lang_const_int(t->d->dims[0], &t->channels) ||
        t->channels * dtype_bits(f->e->type) >= TURN_PIECE * 8)
        return false;
    for (uint32_t i = f->read->nargs; i-- > 0 && !t->v;)
        if (i != t->at && is_row(t, f->read, i))
            t->any_rows = true;
    return t->v != NULL;
}

struct lang_expr *turn_of_wide(const struct turning *t, struct lang_expr *e,
                               struct lang_symbol *wide, struct lang_symbol *j)
{
    struct cg *g = t->g;
    const struct lang_symbol *index = e->kind == E_NAME ? e->sym : NULL;
    if (index && t->v && index == t->j)
        return inspect_index_name(g, j, e->span);
    if (index && (index == t->d || (t->v && index == t->v))) {
        struct lang_expr *w = inspect_index_name(g, wide, e->span);
        return t->v
                   ? matmul_binary(g, index == t->d ? OP_MOD : OP_DIV, w, lx_int(g->a, t->channels))
                   : w;
    }
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++) {
        c->args[i] = turn_of_wide(t, e->args[i], wide, j);
        c->height = c->args[i]->height >= c->height ? c->args[i]->height + 1 : c->height;
    }
    return c;
}

struct lang_expr *turn_element(struct turning *t, const struct turn_factor *f,
                               struct lang_expr *from, struct lang_symbol *wide)
{
    struct cg *g = t->g;
    struct lang_expr *e = turn_with_read(g, f, from);
    int64_t n;
    if (!t->v || (lang_const_int(wide->dims[0], &n) && n == t->terms))
        return e;
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = (struct lang_expr){.kind = E_COND,
                            .type = e->type,
                            .span = e->span,
                            .nargs = 3,
                            .args = ARENA_ARRAY(g->a, 3, struct lang_expr *),
                            .height = e->height + 2};
    c->args[0] =
        matmul_binary(g, OP_LT, inspect_index_name(g, wide, e->span), lx_int(g->a, t->terms));
    c->args[0]->type = DT_BOOL;
    c->args[1] = e;
    c->args[2] = turn_zero(g, e->type, e->span);
    return c;
}

/* Is v added to what is left of e? */
static bool adds(const struct lang_expr *e, const struct lang_symbol *v)
{
    e = inspect_strip(e);
    struct lang_symbol *one = (struct lang_symbol *)v;
    if (e->kind != E_BINARY || (e->op != OP_ADD && e->op != OP_SUB))
        return inspect_is_index(e, v);
    const bool left = inspect_mentions(e->args[0], 1, &one);
    const bool right = inspect_mentions(e->args[1], 1, &one);
    return left != right && (left ? adds(e->args[0], v) : e->op == OP_ADD && adds(e->args[1], v));
}

/* e with 0 for v. */
static struct lang_expr *without(struct cg *g, struct lang_expr *e, const struct lang_symbol *v)
{
    if (e->kind == E_NAME && e->sym == v)
        return turn_zero(g, DT_I64, e->span);
    struct lang_expr *c = ARENA_NEW(g->a, struct lang_expr);
    *c = *e;
    c->args = ARENA_ARRAY(g->a, e->nargs, struct lang_expr *);
    for (uint32_t i = 0; i < e->nargs; i++)
        c->args[i] = without(g, e->args[i], v);
    return c;
}

bool turn_flatten(struct turning *t, struct lang_expr *from, struct lang_symbol *wide,
                  struct lang_symbol *j)
{
    struct cg *g = t->g;
    struct lang_symbol *old = from->sym;
    const uint32_t last = old->rank - 1;
    if (t->at != last || t->row != last - 1 || !adds(t->x->read->args[t->row], t->v))
        return false;
    struct lang_symbol *flat = ARENA_NEW(g->a, struct lang_symbol);
    *flat = *old;
    flat->rank = last;
    flat->dims = ARENA_ARRAY(g->a, last, struct lang_expr *);
    memcpy(flat->dims, old->dims, last * sizeof *flat->dims);
    flat->dims[last - 1] = lx_mul_int(g->a, lx_operand(g->a, old->dims[last - 1]), t->channels);
    const struct cg_home *home = cg_home_of(g, old);
    *VEC_PUSH(g->a, &g->homes) =
        (struct cg_home){.sym = flat, .temp = home ? home->temp : old, .is_stored = true};
    /* (j's part + v) * channels + d, of which v * channels + d are `wide` */
    struct lang_expr *first = turn_of_wide(t, without(g, t->x->read->args[t->row], t->v), wide, j);
    from->sym = flat;
    from->nargs = last;
    from->args[last - 1] = matmul_binary(g, OP_ADD,
                                         matmul_binary(g, OP_MUL, first, lx_int(g->a, t->channels)),
                                         inspect_index_name(g, wide, from->span));
    from->height = from->args[last - 1]->height + 1;
    return true;
}
