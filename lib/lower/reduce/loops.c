/* Which axes are walked as one, in which order, and along which of these loops a thread has its
 * lanes: reduce/reduce.h. */
#include <config.h>

#include "lower/reduce/reduce.h"

static bool follows_in(const uint32_t *axis, uint32_t n, uint32_t p, uint32_t q)
{
    for (uint32_t i = 0; i < n; i++) {
        if (axis[i] == p && (i + 1 == n || axis[i + 1] != q))
            return false;
        if (axis[i] == q && (i == 0 || axis[i - 1] != p))
            return false;
    }
    return true;
}

static bool is_read(const struct reduce_form *f, uint32_t axis)
{
    for (uint32_t i = 0; i < f->nread; i++)
        for (uint32_t k = 0; k < f->read[i].sym->rank; k++)
            if (f->read[i].axis[k] == axis)
                return true;
    return false;
}

/* Does q come right behind p wherever one of them is read? Outputs have the kept axes in order, and
 * so do those that nothing is read along. */
static bool follows(const struct reduce_form *f, uint32_t p, uint32_t q)
{
    const struct reduce_axis *x = &f->axis[p], *y = &f->axis[q];
    if (p == q || x->is_reduced != y->is_reduced || x->low || y->low || x->is_value || y->is_value)
        return false;
    if (!x->is_reduced && q != p + 1)
        return false;
    if (q < p && !is_read(f, p))
        return false;
    for (uint32_t i = 0; i < f->nread; i++)
        if (!follows_in(f->read[i].axis, f->read[i].sym->rank, p, q))
            return false;
    for (uint32_t i = 0; i < f->stage->n; i++)
        if (f->out[i].along && !follows_in(f->out[i].axis, f->out[i].eq->nindex, p, q))
            return false;
    return true;
}

static int find_follower(const struct reduce_form *f, uint32_t p)
{
    for (uint32_t q = 0; q < f->naxis; q++)
        if (follows(f, p, q))
            return (int)q;
    return -1;
}

bool reduce_moves(const struct reduce_form *f, const struct reduce_read *r)
{
    for (uint32_t i = 0; i < r->sym->rank; i++)
        if (f->axis[r->axis[i]].is_reduced)
            return true;
    return false;
}

const struct reduce_read *reduce_heaviest(const struct reduce_form *f)
{
    const struct reduce_read *best = NULL;
    unsigned most = 0;
    for (uint32_t i = 0; i < f->nread; i++) {
        const struct reduce_read *r = &f->read[i];
        unsigned weight = dtype_bits(r->sym->type) << (2 * r->sym->rank);
        if (r->in_body && reduce_moves(f, r) && weight > most) {
            most = weight;
            best = r;
        }
    }
    return best;
}

unsigned reduce_position(const struct reduce_read *r, uint32_t axis)
{
    for (uint32_t i = 0; r && i < r->sym->rank; i++)
        if (r->axis[i] == axis)
            return i + 1;
    return 0;
}

static void add_loop(struct cg *g, struct reduce_form *f, uint32_t first)
{
    struct reduce_loop *l = &f->loop[f->nloop];
    struct lang_expr *n = lx_int(g->a, 1), *zero = lx_int(g->a, 0);
    *l = (struct reduce_loop){.is_reduced = f->axis[first].is_reduced};
    for (int a = (int)first; a >= 0; a = find_follower(f, (uint32_t)a)) {
        struct reduce_axis *x = &f->axis[a];
        struct lang_expr *high = x->high;
        const struct lang_expr *name = inspect_strip(x->high);
        bool atom = name->kind == E_NAME && name->sym->kind == SYM_DIM;
        int64_t c;
        x->loop = f->nloop;
        l->axis[l->naxis++] = (uint32_t)a;
        if (x->low)
            high = lx_max(g->a, zero, lx_sub(g->a, high, x->low));
        else if (!atom && !(lang_const_int(x->high, &c) && c >= 0))
            high = lx_max(g->a, zero, high);
        n = lx_mul(g->a, n, high);
        l->is_narrow = !x->low && atom;
    }
    l->n = reduce_amount(g, n);
    l->is_narrow = l->n.is_known ? l->n.n <= UINT32_MAX : l->is_narrow && l->naxis == 1;
    f->nloop++;
    f->nkeptloop += !l->is_reduced;
}

void reduce_find_loops(struct cg *g, struct reduce_form *f, const struct reduce_read *heavy)
{
    bool follower[REDUCE_AXES] = {0};
    for (uint32_t p = 0; p < f->naxis; p++) {
        int q = find_follower(f, p);
        if (q >= 0)
            follower[q] = true;
    }
    for (uint32_t p = 0; p < f->nkept; p++)
        if (!follower[p])
            add_loop(g, f, p);
    /* in the order in which the heaviest read lies in memory */
    for (unsigned at = 0; at <= REDUCE_RANK; at++)
        for (uint32_t p = f->nkept; p < f->naxis; p++)
            if (!follower[p] && reduce_position(heavy, p) == at)
                add_loop(g, f, p);
}

bool reduce_ends_in_lanes(const struct reduce_form *f, uint32_t n, const uint32_t *axis)
{
    return n > 0 && f->axis[axis[n - 1]].loop == f->lane;
}

void reduce_find_lanes(struct reduce_form *f, const struct reduce_read *heavy)
{
    f->lane = f->nloop - 1;
    f->has_contiguous = heavy != NULL;
    if (heavy)
        f->lane = f->axis[heavy->axis[heavy->sym->rank - 1]].loop;
    for (uint32_t i = 0; i < f->nread; i++) {
        const struct reduce_read *r = &f->read[i];
        unsigned bits = dtype_bits(r->sym->type);
        if (!r->in_body)
            continue;
        if (reduce_ends_in_lanes(f, r->sym->rank, r->axis) && bits > f->widest)
            f->widest = bits;
        if (reduce_moves(f, r))
            f->bits += bits;
    }
}
