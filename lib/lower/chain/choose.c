/* What the model (chain/cost.c) chooses where all sizes are known, and rules where they are not. */
#include <config.h>

#include "lower/chain/wgmma.h"

/* What is less than two microseconds faster, or by less than the model is off, is not worth leaving
 * what was measured. */
static const double WORTH = 0.93, LEAST = 2000;
static const double WORTH_SYNC = 0.85;

/* Takes fewer warpgroups, or more, where the model says that they are so much faster: rows that are
 * few fill no large tiles. */
static void choose_warps(const struct ptx_target *target, const struct chain_tensor *t,
                         const struct chain_plan *want, struct chain_plan *p)
{
    const uint32_t usual = p->warps;
    double best = WORTH * chain_cost_wgmma(target, t, p) - LEAST;
    for (uint32_t n = 1; n <= CHAIN_GROUPS && best > 0; n++) {
        struct chain_plan other = *want;
        other.warps = n * CHAIN_WARPS;
        if (other.warps == usual || !chain_wgmma_usual_plan(target, t, &other))
            continue;
        const double cost = chain_cost_wgmma(target, t, &other);
        if (cost < best) {
            best = cost;
            *p = other;
        }
    }
}

bool chain_wgmma_plan(const struct ptx_target *target, const struct chain_tensor *t,
                      struct chain_plan *p)
{
    const struct chain_plan want = *p;
    if (!chain_wgmma_usual_plan(target, t, p))
        return false;
    struct chain_plan crowd = want;
    if (want.warps || want.wide || want.each)
        return true;
    if (!want.own && chain_wgmma_crowds(target, t, &crowd))
        *p = crowd;
    else
        choose_warps(target, t, &want, p);
    return true;
}

/* The sizes for which wgmma is faster: rows for half of the multiprocessors, since blocks don't
 * share rows by it, or few terms. NULL: all. */
static struct lang_expr *usually_worth(struct cg *g, const struct chain_tensor *t,
                                       const struct chain_plan *p)
{
    enum { FEW_TERMS = 1024 };
    struct arena *a = g->a;
    const struct chain_form *f = t->f;
    struct lang_expr *items = lx_ceil_div_int(a, f->row[t->i]->dims[0], (int64_t)p->warps * 16);
    for (uint32_t i = 0; i < f->nrow; i++)
        if (i != t->i)
            items = lx_mul(a, items, f->row[i]->dims[0]);
    struct lang_expr *many = lx_at_least(a, items, lower_multiprocessors(g->target) / 2);
    int64_t always;
    if (f->ends)
        many = lx_select(a, lx_at_most(a, f->j->dims[0], FEW_TERMS), lx_bool(a, true), many);
    return lang_const_int(many, &always) && always ? NULL : many;
}

struct lang_expr *chain_worth_wgmma(struct cg *g, const struct chain_tensor *t,
                                    const struct chain_plan *p, const struct chain_plan *other)
{
    const double mine = chain_cost_wgmma(g->target, t, p);
    const double others = chain_cost_mma(g->target, t, other);
    if (mine <= 0 || others <= 0)
        return usually_worth(g, t, p);
    return WORTH_SYNC * mine - LEAST <= others ? NULL : lx_bool(g->a, false);
}
