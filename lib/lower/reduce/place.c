/* Where a block and a thread stand among the results: reduce/reduce.h. */
#include <config.h>

#include "lower/reduce/reduce.h"

bool reduce_is_one(struct amount a)
{
    return a.is_known && a.n == 1;
}

struct cg_val reduce_count(struct cg *g, struct amount a)
{
    if (a.is_known)
        return cg_int(DT_I64, a.n);
    return cg_index(g, cg_param_computed(g, a.e));
}

struct cg_val reduce_small_count(struct cg *g, struct amount a)
{
    return cg_index(g, cg_convert(g, reduce_count(g, a), DT_U32));
}

void reduce_take_place(struct reduce *r)
{
    struct cg *g = r->g;
    const struct reduce_plan *p = r->p;
    struct cg_val rest = cg_index(g, cg_special(g, SP_CTAID_X)), none = cg_int(DT_I64, 0);
    struct cg_val tid = cg_special(g, SP_TID_X);
    r->exists = -1;
    r->split = reduce_small_count(g, p->split);
    r->tile = r->part = none;
    if (!reduce_is_one(p->tiles))
        cg_divmod(g, rest, reduce_small_count(g, p->tiles), &rest, &r->tile);
    r->outer = rest;
    if (reduce_is_one(p->outer)) {
        r->part = rest;
        r->outer = none;
    } else if (!reduce_is_one(p->split)) {
        cg_divmod(g, rest, r->split, &r->outer, &r->part);
    }
    r->tx = r->ty = tid;
    if (p->tx == 1)
        r->tx = cg_int(DT_U32, 0);
    else if (p->ty == 1)
        r->ty = cg_int(DT_U32, 0);
    else {
        r->tx = cg_binary(g, OP_AND, tid, cg_int(DT_U32, p->tx - 1));
        r->ty = cg_binary(g, OP_SHR, tid, cg_int(DT_U32, __builtin_ctz(p->tx)));
    }
}

static struct cg_val rounds(struct cg *g, const struct reduce_form *f, const struct reduce_loop *l)
{
    const struct reduce_axis *a = &f->axis[l->axis[0]];
    if (l->n.is_known)
        return cg_int(DT_I64, l->n.n);
    if (l->is_narrow && l->naxis == 1)
        return cg_index(g, cg_expr(g, a->high));
    struct cg_val n = cg_param_computed(g, l->n.e);
    n.type = DT_I64;
    return n;
}

/* The thread's vector among those of the lane loop, or, where threads are spread over all results,
 * of all kept loops. */
static void take_group(struct reduce *r)
{
    struct cg *g = r->g;
    const struct reduce_plan *p = r->p;
    const struct cg_val across = p->is_open ? cg_index(g, reduce_open_across(r))
                                            : cg_int(DT_I64, p->tx);
    r->number = cg_binary(g, OP_MUL, r->tile, across);
    r->number = r->group = cg_binary(g, OP_ADD, r->number, cg_index(g, r->tx));
    if (!p->is_spread || (p->total.is_known && p->groups.is_known && p->total.n == p->groups.n))
        return;
    struct cg_val n = reduce_count(g, p->groups);
    if (r->f->loop[r->f->lane].is_narrow) {
        n = cg_minmax(g, true, cg_convert(g, n, DT_U32), cg_int(DT_U32, 1));
        cg_divmod(g, r->number, cg_index(g, n), &r->outer, &r->group);
        return;
    }
    struct cg_val x = cg_value(DT_U64, cg_reg(g, r->number));
    n = cg_value(DT_U64, cg_reg(g, n));
    r->outer = cg_index(g, cg_binary(g, OP_DIV, x, n));
    r->group = cg_index(g, cg_binary(g, OP_MOD, x, n));
}

/* The indices of the kept loops; of the lane loop, where it is kept, the thread's first. */
void reduce_take_indices(struct reduce *r)
{
    struct cg *g = r->g;
    const struct reduce_form *f = r->f;
    int first = -1;
    if (r->p->is_column)
        take_group(r);
    struct cg_val rest = r->outer;
    for (uint32_t i = 0; i < f->nloop; i++)
        r->n[i] = rounds(g, f, &f->loop[i]);
    for (uint32_t i = 0; i < f->nkeptloop; i++)
        if (i != f->lane && first < 0)
            first = (int)i;
    for (uint32_t i = f->nkeptloop; i-- > 0;) {
        if (i == f->lane)
            continue;
        r->at[i] = rest;
        if ((int)i != first && !reduce_is_one(f->loop[i].n)) {
            struct cg_val n = r->n[i];
            if (n.narrow == CG_FULL) /* a divisor of 32 bits; a block's number has no more */
                n = cg_minmax(g, false, n, cg_int(DT_I64, UINT32_MAX));
            if (n.narrow == CG_FULL && n.op.kind == PTX_O_REG)
                n = cg_index(g, cg_convert(g, n, DT_U32));
            cg_divmod(g, rest, n, &rest, &r->at[i]);
        } else if (reduce_is_one(f->loop[i].n)) {
            r->at[i] = cg_int(DT_I64, 0);
        }
        if (f->loop[i].is_narrow && r->at[i].narrow == CG_FULL)
            r->at[i] = cg_index(g, cg_convert(g, r->at[i], DT_U32));
    }
    if (!r->p->is_column)
        return;
    struct cg_val at = cg_binary(g, OP_MUL, r->group, cg_int(DT_I64, r->p->lanes));
    if (f->loop[f->lane].is_narrow)
        at = cg_index(g, cg_convert(g, at, DT_U32));
    r->at[f->lane] = at;
}

void reduce_skip_outside(struct reduce *r, uint32_t label)
{
    struct cg *g = r->g;
    struct amount n = r->p->is_spread ? r->p->total : r->p->groups;
    if (r->exists >= 0)
        cg_jump_if(g, r->exists, false, label);
    const struct amount across = r->p->is_open ? r->p->across : reduce_known(g, r->p->tx);
    if (!r->p->is_column || (n.is_known && across.is_known && n.n % across.n == 0))
        return;
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_GE, r->number, reduce_count(g, n))), true, label);
}
