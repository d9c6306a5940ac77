/* What a chain's sums lose, which the oracle is told (ref/ref.h). */
#include <config.h>

#include "lower/chain/chain.h"

/* Roundings of a maximum's growth: a difference, exp, a product; and of blocks that share rows. */
enum { RESCALING = 8 };

/* What the parts of an f32 lack of it, in units of 2^-24: 22 bits at least; and what a product of
 * two such lacks (ref/ref.h). */
enum { OF_PARTS = 4, OF_SPLITS = 24 };

/* The least subnormal part of f16 is 2^-LOST of what is scaled. */
enum { LOST = 36 };
_Static_assert(CHAIN_SCALE == 1 << (LOST - 24), "f16 has 2^-24");

struct lang_expr *chain_depth(struct cg *g, const struct chain_form *f, int64_t by, int64_t step)
{
    struct lang_expr *n = f->j->dims[0];
    int64_t known;
    if (!f->ends || (lang_const_int(n, &known) && known < 0))
        return NULL;
    struct lang_expr *adds = lx_ceil_div_int(g->a, n, by);
    struct lang_expr *scales = lx_mul_int(g->a, lx_ceil_div_int(g->a, n, step), RESCALING);
    struct lang_expr *all = lx_add_int(g->a, lx_add(g->a, adds, scales), 8);
    for (uint32_t i = 0; i < f->nscore; i++)
        all = lx_max(g->a, all, f->score[i].e->index[0]->dims[0]);
    return all;
}

static struct lang_expr *most_of(struct cg *g, struct lang_expr *x, struct lang_expr *y)
{
    return x ? lx_max(g->a, x, y) : y;
}

/* Of 8-bit floats, of so many terms; or what f32 in parts loses, which is added up as f32 is. */
static struct lang_expr *loss_of(struct cg *g, const struct chain_product *p,
                                 struct lang_expr *terms)
{
    enum { SPLITS = 16 / 4 * 36, BYTES = 34816 };
    return p->splits ? lx_int(g->a, SPLITS)
                     : lx_mul_int(g->a, lx_ceil_div_int(g->a, terms, 16), BYTES);
}

/* The most that a product loses (lower_truncation()), where tiles have `step` terms of a stream's:
 * those of 8-bit floats are added to others as f32 is. */
static struct lang_expr *truncation_of(struct cg *g, const struct chain_tensor *t, int64_t step)
{
    struct lang_expr *others = NULL, *terms = NULL;
    for (uint32_t i = 0; i < t->f->nscore + t->ncolumn; i++) {
        const bool is_column = i < t->ncolumn;
        const struct chain_product *p = is_column ? &t->column[i] : &t->score[i - t->ncolumn];
        struct lang_expr *n = p->form.k->dims[0];
        if (!p->splits && chain_size(p, MATMUL_A) > 1)
            terms = most_of(g, terms, n);
        else
            others = most_of(g, others,
                             loss_of(g, p, is_column ? lx_min(g->a, n, lx_int(g->a, step)) : n));
    }
    if (terms)
        terms = lx_mul_int(g->a, lx_ceil_div_int(g->a, terms, 4), 6);
    return terms && others ? lx_max(g->a, terms, others) : terms ? terms : others;
}

void chain_tell_losses(struct cg *g, const struct chain_tensor *t, const struct chain_plan *p)
{
    lower_depth(g, chain_depth(g, t->f, 4, p->wide));
    lower_truncation(g, truncation_of(g, t, p->wide));
    bool parts = false;
    for (uint32_t i = 0; i < t->ncolumn; i++) {
        parts |= t->column[i].parts > 1;
        if (t->column[i].parts > 1 && t->column[i].kind.left == DT_F16)
            lower_weights(g, lx_int(g->a, LOST));
    }
    if (chain_has_splits(t))
        lower_products(g, lx_int(g->a, OF_SPLITS));
    else if (parts)
        lower_products(g, lx_int(g->a, OF_PARTS));
}
