/* Tiles that are held: results that lie side by side, with all that is reduced for them, in the
 * registers of a block, from the first reduction to the last output. What is normalised over an
 * axis that is not the last is read once so, and the reductions may be of others:
 *
 *     ms[b, p]   = sum[k](x[b, k, p] * x[b, k, p]) / c        level 0
 *     y[b, k, p] = x[b, k, p] * rsqrt(ms[b, p])               then the outputs
 *
 *                 tx threads, of `lanes` results each
 *               | thread 0 | thread 1 | ... |
 *     ty rows   |          |          |     |    position 0 of each thread
 *     of them   ...
 *               |          |          |     |    position 1: ty terms further on
 *
 * Positions after the last term are the last again, so that every read is of an element that there
 * is; they count for nothing and are not stored. So it is with threads that have no results.
 */
#include <config.h>

#include "lower/reduce/reduce.h"
#include "lower/schedule.h"

struct held {
    struct reduce *r;
    uint32_t positions;
    int64_t terms;
    struct reduce_loaded *loaded; /* by position and read */
    struct reduce_lanes *fixed;   /* by read: what is the same for all positions */
    struct cg_val at[REDUCE_POSITIONS][REDUCE_AXES]; /* by loop */
    int32_t has[REDUCE_POSITIONS];  /* predicate; -1: the term is there for certain, or what is for
                                       it  is jumped over */
    int32_t now;                    /* of open tiles: the position at hand, a u32 */
    bool is_full[REDUCE_POSITIONS]; /* of open tiles: the term is there in all threads */
};

/* ---- what is at a position ------------------------------------------------------------------- */

static void stand_at(struct held *h, uint32_t position)
{
    struct reduce *r = h->r;
    r->position = position;
    for (uint32_t i = r->f->nkeptloop; i < r->f->nloop; i++)
        r->at[i] = h->at[position][i];
}

/* Makes .element of what a position has. */
static void show(struct held *h, uint32_t position)
{
    struct reduce *r = h->r;
    stand_at(h, position);
    for (uint32_t i = 0; i < r->f->nread; i++)
        if (reduce_moves(r->f, &r->f->read[i]))
            reduce_unpack(r, i, r->p->lanes, &h->loaded[position * r->f->nread + i]);
        else
            r->element[i] = h->fixed[i];
}

/* Of an open tile: goes on to where the term is, and jumps to the label where there is none. A
 * position is found again wherever it is wanted: that takes fewer registers than to keep them all.
 */
static void find_position(struct held *h, uint32_t u, uint32_t label)
{
    struct reduce *r = h->r;
    struct cg *g = r->g;
    struct cg_val at = r->ty;
    if (u)
        at = cg_binary(g, OP_ADD, cg_value(DT_U32, h->now), reduce_open_rows(r));
    cg_move(g, h->now, at);
    at = cg_value(DT_U32, h->now);
    const struct cg_val n = cg_convert(g, reduce_count(g, r->p->rows), DT_U32);
    if (u && !h->is_full[u])
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_LT, at, n)), false, label);
    at = cg_index(g, at);
    for (uint32_t i = r->f->nloop; i-- > r->f->nkeptloop;) {
        h->at[u][i] = at;
        if (i > r->f->nkeptloop)
            cg_divmod(g, at, r->n[i], &at, &h->at[u][i]);
    }
}

static void open_positions(struct held *h)
{
    const struct reduce_plan *p = h->r->p;
    h->now = cg_new_mutable(h->r->g, DT_U32);
    for (uint32_t u = 0; u < h->positions; u++) {
        h->has[u] = -1;
        h->is_full[u] = p->rows.is_known && p->down.is_known && (u + 1) * p->down.n <= p->rows.n;
    }
}

static void find_positions(struct held *h)
{
    struct reduce *r = h->r;
    struct cg *g = r->g;
    const uint32_t ty = r->p->ty;
    for (uint32_t u = 0; u < h->positions; u++) {
        struct cg_val at = cg_binary(g, OP_ADD, r->ty, cg_int(DT_U32, u * ty));
        h->has[u] = -1;
        if ((int64_t)(u + 1) * ty > h->terms) {
            const struct cg_val n = cg_int(DT_U32, h->terms);
            h->has[u] = cg_reg(g, cg_binary(g, OP_LT, at, n));
            at = cg_minmax(g, false, at, cg_int(DT_U32, h->terms - 1));
        }
        at = cg_index(g, at);
        for (uint32_t i = r->f->nloop; i-- > r->f->nkeptloop;) {
            h->at[u][i] = at;
            if (i > r->f->nkeptloop)
                cg_divmod(g, at, r->n[i], &at, &h->at[u][i]);
        }
    }
}

static void load_all(struct held *h)
{
    struct reduce *r = h->r;
    const uint32_t nread = r->f->nread, end = r->p->is_open ? cg_label(r->g, "loaded") : 0;
    const size_t mark = cg_scope_open(r->g);
    for (uint32_t u = 0; u < h->positions; u++) {
        if (r->p->is_open)
            find_position(h, u, end);
        stand_at(h, u);
        for (uint32_t i = 0; i < nread; i++)
            if (reduce_moves(r->f, &r->f->read[i]))
                reduce_load(r, i, r->p->lanes, &h->loaded[u * nread + i]);
    }
    if (r->p->is_open) {
        cg_scope_close(r->g, mark);
        cg_place(r->g, end);
    }
    for (uint32_t i = 0; i < nread; i++) {
        struct reduce_loaded l;
        if (reduce_moves(r->f, &r->f->read[i]))
            continue;
        reduce_load(r, i, r->p->lanes, &l);
        reduce_unpack(r, i, r->p->lanes, &l);
        h->fixed[i] = r->element[i];
    }
    for (size_t i = 0; i < r->f->scalar.n; i++)
        cg_expr(r->g, r->f->scalar.v[i]);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The term of a result at the lane that is bound; where it is none, what counts for nothing. */
static struct reduce_value term_of(struct held *h, uint32_t position, uint32_t result)
{
    struct reduce *r = h->r;
    struct cg *g = r->g;
    const struct reduce_result *q = &r->f->result[result];
    const struct reduce_value none = reduce_identity(r, q);
    struct reduce_value x = {.v = cg_expr(g, q->e->args[0])};
    if (x.v.type == DT_BOOL)
        x.v = cg_convert(g, x.v, DT_U32);
    if (reduce_is_pair(q))
        x.where = cg_convert(g, r->axis[r->f->nkept], reduce_where_type(r, q));
    if (h->has[position] >= 0)
        x.v = cg_select(g, h->has[position], x.v, none.v);
    return x;
}

static void open_level(struct held *h)
{
    struct reduce *r = h->r;
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        const struct reduce_result *q = &r->f->result[i];
        for (uint32_t k = 0; k < r->p->width && q->level == r->level; k++) {
            r->slot[i][k] = cg_new_mutable(r->g, reduce_type(q));
            if (reduce_is_pair(q))
                r->slot_where[i][k] = cg_new_mutable(r->g, reduce_where_type(r, q));
        }
    }
}

/* The values are the same in all threads of a column, and for all positions. */
static void settle(struct held *h)
{
    struct reduce *r = h->r;
    for (uint32_t i = 0; i < r->f->nresult; i++) {
        const struct reduce_result *q = &r->f->result[i];
        for (uint32_t k = 0; k < r->p->width && q->level == r->level; k++) {
            cg_set_depth(r->g, r->slot[i][k], 0);
            if (reduce_is_pair(q))
                cg_set_depth(r->g, r->slot_where[i][k], 0);
        }
    }
}

static bool is_extremum(const struct reduce_result *q)
{
    return dtype_is_float(reduce_type(q)) &&
           (reduce_is_pair(q) || q->e->reduce == RED_MAX || q->e->reduce == RED_MIN);
}

/* Takes a position's terms into the slots. */
static void take_position(struct held *h, uint32_t u)
{
    struct reduce *r = h->r;
    show(h, u);
    for (uint32_t k = 0; k < r->p->lanes; k++) {
        const size_t bound = r->g->bindings.n;
        reduce_bind_lane(r, k);
        for (uint32_t i = 0; i < r->f->nresult; i++) {
            const struct reduce_result *q = &r->f->result[i];
            if (q->level == r->level)
                reduce_set(r, i, k, reduce_meet(r->g, q, reduce_get(r, i, k), term_of(h, u, i)));
        }
        r->g->bindings.n = bound;
    }
}

static void open_tile_level(struct held *h, uint32_t n)
{
    struct reduce *r = h->r;
    const uint32_t end = cg_label(r->g, "taken");
    r->level = n;
    open_level(h);
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < r->p->width && r->f->result[i].level == n; k++)
            reduce_set(r, i, k, reduce_identity(r, &r->f->result[i]));
    const size_t mark = cg_scope_open(r->g);
    for (uint32_t u = 0; u < h->positions; u++) {
        find_position(h, u, end);
        take_position(h, u);
    }
    cg_scope_close(r->g, mark);
    cg_place(r->g, end);
    reduce_block(r);
    settle(h);
}

static void level(struct held *h, uint32_t n)
{
    struct reduce *r = h->r;
    struct cg *g = r->g;
    struct reduce_lanes *v = ARENA_ARRAY(g->a, r->f->nresult, struct reduce_lanes);
    struct reduce_lanes *where = ARENA_ARRAY(g->a, r->f->nresult, struct reduce_lanes);
    r->level = n;
    open_level(h);
    for (uint32_t u = 0; u < h->positions; u++) {
        show(h, u);
        for (uint32_t k = 0; k < r->p->lanes; k++) {
            const size_t bound = g->bindings.n;
            reduce_bind_lane(r, k);
            for (uint32_t i = 0; i < r->f->nresult; i++) {
                const struct reduce_result *q = &r->f->result[i];
                if (q->level != n)
                    continue;
                struct reduce_value x = term_of(h, u, i);
                if (u == 0 && is_extremum(q)) /* of what is a number */
                    x = reduce_meet(g, q, reduce_identity(r, q), x);
                if (u)
                    x = reduce_meet(
                        g, q, (struct reduce_value){.v = v[i].v[k], .where = where[i].v[k]}, x);
                v[i].v[k] = x.v;
                where[i].v[k] = x.where;
            }
            g->bindings.n = bound;
        }
    }
    for (uint32_t i = 0; i < r->f->nresult; i++)
        for (uint32_t k = 0; k < r->p->width && r->f->result[i].level == n; k++)
            reduce_set(r, i, k, (struct reduce_value){.v = v[i].v[k], .where = where[i].v[k]});
    r->shared = NULL; /* others may still read what was left for the level before */
    reduce_block(r);
    settle(h);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static void store_one(struct held *h, const struct reduce_out *o, const struct cg_val *v)
{
    struct reduce *r = h->r;
    struct cg *g = r->g;
    const struct lang_symbol *t = o->eq->sym;
    cg_at(g, o->eq->span);
    if (r->p->lanes > 1 && reduce_ends_in_lanes(r->f, o->eq->nindex, o->axis)) {
        const struct cg_place_of at = reduce_place(r, t, o->eq->nindex, o->axis, 0);
        cg_store_vector(g, t, at.base, at.offset, r->p->lanes, v);
        return;
    }
    for (uint32_t k = 0; k < r->p->lanes; k++)
        cg_store(g, t, reduce_place(r, t, o->eq->nindex, o->axis, k), v[k]);
}

/* Computes and stores the outputs that have an element for each term, or those that do not. */
static void store_at(struct held *h, uint32_t position, bool along)
{
    struct reduce *r = h->r;
    struct cg *g = r->g;
    const struct lower_stage *s = r->f->stage;
    struct reduce_lanes *v = ARENA_ARRAY(g->a, s->n, struct reduce_lanes);
    show(h, position);
    for (uint32_t k = 0; k < r->p->lanes; k++) {
        const size_t bound = g->bindings.n;
        reduce_bind_lane(r, k);
        for (uint32_t i = 0; i < s->n; i++) {
            struct cg_val sub[REDUCE_RANK];
            const struct reduce_out *o = &r->f->out[i];
            if (o->along != along)
                continue;
            for (uint32_t d = 0; d < o->eq->nindex; d++)
                sub[d] = r->axis[o->axis[d]];
            cg_at(g, o->eq->span);
            v[i].v[k] = cg_define(g, o->eq, sub);
        }
        g->bindings.n = bound;
    }
    const size_t mark = cg_scope_open(g);
    const uint32_t end = cg_label(g, "stored");
    if (along && h->has[position] >= 0)
        cg_jump_if(g, h->has[position], false, end);
    for (uint32_t i = 0; i < s->n; i++)
        if (r->f->out[i].along == along)
            store_one(h, &r->f->out[i], v[i].v);
    cg_scope_close(g, mark);
    if (along && h->has[position] >= 0)
        cg_place(g, end);
}

static void store_all(struct held *h)
{
    struct reduce *r = h->r;
    struct cg *g = r->g;
    bool any[2] = {false, false};
    for (uint32_t i = 0; i < r->f->stage->n; i++)
        any[r->f->out[i].along] = true;
    g->exit_used = true;
    reduce_skip_outside(r, g->exit);
    const uint32_t stored = r->p->is_open ? cg_label(g, "all") : 0;
    const size_t mark = cg_scope_open(g);
    for (uint32_t u = 0; u < h->positions && any[true]; u++) {
        if (r->p->is_open)
            find_position(h, u, stored);
        store_at(h, u, true);
    }
    if (r->p->is_open) {
        cg_scope_close(g, mark);
        cg_place(g, stored);
    }
    if (!any[false])
        return;
    if (r->p->is_open)
        find_position(h, 0, g->exit);
    if (r->p->ty > 1 || r->p->is_open)
        cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, r->ty, cg_int(DT_U32, 0))), true, g->exit);
    store_at(h, 0, false);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool quotient(struct cg *g, struct cg_val x, struct cg_val y, struct cg_val *q)
{
    if (x.type != DT_F32 || y.op.kind != PTX_O_REG || !cg_depth(g, x.op) || cg_depth(g, y.op))
        return false;
    *q = cg_times_reciprocal(g, x, y);
    return true;
}

/* After the indices: a thread without results does as the last that has some. */
static void stay_inside(struct reduce *r)
{
    struct cg *g = r->g;
    const struct cg_val last =
        cg_binary(g, OP_SUB, reduce_count(g, r->p->groups), cg_int(DT_I64, 1));
    const struct amount across = r->p->is_open ? r->p->across : reduce_known(g, r->p->tx);
    if (r->p->groups.is_known && across.is_known && r->p->groups.n % across.n == 0)
        return;
    struct cg_val at = cg_minmax(g, false, r->number, last);
    at = cg_binary(g, OP_MUL, at, cg_int(DT_I64, r->p->lanes));
    if (r->f->loop[r->f->lane].is_narrow)
        at = cg_index(g, cg_convert(g, at, DT_U32));
    r->at[r->f->lane] = at;
}

void reduce_tile(struct reduce *r)
{
    struct cg *g = r->g;
    const struct reduce_form *f = r->f;
    struct held h = {.r = r, .terms = r->p->rows.n, .positions = r->p->unroll};
    struct cg_nest nest;
    h.loaded = ARENA_ARRAY(g->a, h.positions * f->nread + 1, struct reduce_loaded);
    h.fixed = ARENA_ARRAY(g->a, f->nread + 1, struct reduce_lanes);
    r->element = ARENA_ARRAY(g->a, f->nread + 1, struct reduce_lanes);
    if (r->p->is_open)
        reduce_take_open_place(r);
    else
        reduce_take_place(r);
    reduce_take_indices(r);
    stay_inside(r);
    cg_nest_open(g, &nest, NULL);
    if (r->p->is_open)
        open_positions(&h);
    else
        find_positions(&h);
    load_all(&h);
    for (uint32_t i = 0; i < f->nread; i++)
        r->is_loaded[i] = true;
    g->reduced = reduce_answer;
    g->quotient = quotient;
    for (uint32_t n = 0; n < f->nlevel; n++)
        r->p->is_open ? open_tile_level(&h, n) : level(&h, n);
    store_all(&h);
    cg_nest_close(g, &nest);
    g->quotient = NULL;
}
