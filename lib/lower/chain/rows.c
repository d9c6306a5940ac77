/* Which rows a warp has, and over which j their streams run (chain.h). */
#include <config.h>

#include "lower/chain/chain.h"

#include "lower/cg/sync.h"
#include "lower/extent.h"

enum { LANES = 32 };

static bool is_packed(const struct chain_tile *x, uint32_t axis)
{
    return x->packs && axis == x->t->pack.axis;
}

void chain_bind(struct chain_tile *x, const struct chain_row *r)
{
    const struct chain_tensor *t = x->t;
    for (uint32_t a = 0; a < t->f->nrow; a++)
        cg_bind(x->g, t->f->row[a], a == t->i ? r->i : is_packed(x, a) ? r->h : x->row[a], false);
}

void chain_bind_row(struct chain_tile *x, uint32_t n)
{
    chain_bind(x, &x->at[n]);
}

/* n (u32), or the last one of the index for those behind it. */
static struct cg_val clamped(struct chain_tile *x, const struct lang_symbol *index, struct cg_val n,
                             struct cg_val *exists)
{
    struct cg *g = x->g;
    const struct cg_val end = cg_convert(g, extent_of(g, index).v, DT_U32);
    *exists = cg_binary(g, OP_LT, n, end);
    return cg_minmax(g, false, n, cg_binary(g, OP_SUB, end, cg_u32(1)));
}

/* Takes row r of a group apart. */
static void unpack(struct chain_tile *x, struct cg_val r, struct chain_row *to)
{
    struct cg *g = x->g;
    const struct chain_pack *p = &x->t->pack;
    struct cg_val member, exists;
    const struct extent members = extent_of(g, p->member);
    extent_split(g, cg_index(g, r), members, &to->i, &member);
    member = extent_u32(g, member);
    struct cg_val h = cg_add(g, extent_u32(g, x->row[p->axis]), member);
    if (p->ragged) {
        h = clamped(x, x->t->f->row[p->axis], h, &exists);
        to->exists = cg_binary(g, OP_LAND, to->exists, exists);
    }
    to->h = cg_freeze(g, cg_index(g, h));
}

struct chain_row chain_row_of(struct chain_tile *x, struct cg_val r)
{
    struct cg *g = x->g;
    const struct lang_symbol *index = chain_rows_index(x->t, x->packs);
    struct chain_row row = {.i = cg_int(DT_I64, 0)};
    if (!index) {
        row.exists = cg_binary(g, OP_EQ, r, cg_u32(0));
        return row;
    }
    r = clamped(x, index, r, &row.exists);
    if (x->packs)
        unpack(x, r, &row);
    else
        row.i = cg_index(g, r);
    return row;
}

/* Are there as many rows as all blocks have? Then none stands for another. */
static bool has_all_rows(const struct chain_tile *x)
{
    const struct lang_symbol *index = x->packs ? NULL : chain_rows_index(x->t, false);
    int64_t n;
    return index && x->block_rows && lang_const_int(index->dims[0], &n) && n % x->block_rows == 0;
}

static void find_rows(struct chain_tile *x)
{
    struct cg *g = x->g;
    const struct cg_val group = cg_binary(g, OP_SHR, x->lane, cg_u32(2));
    const struct cg_val first = cg_add(g, x->first, group);
    for (uint32_t n = 0; n < chain_tile_rows(x); n++) {
        const struct cg_val r = cg_add(g, first, cg_u32(n * 8));
        x->at[n] = has_all_rows(x)
                       ? (struct chain_row){.i = cg_index(g, r), .exists = cg_bool(g, true)}
                       : chain_row_of(x, r);
    }
}

void chain_tile_find_again(struct chain_tile *x)
{
    struct cg *g = x->g;
    const int32_t lane = cg_new(g, DT_U32);
    PTX(&g->b, "mov.u32", ptx_r(lane), ptx_special(PTX_SR_LANEID));
    x->lane = cg_value(DT_U32, lane);
    find_rows(x);
}

struct cg_val chain_bound(struct chain_tile *x, const struct lang_expr *e)
{
    struct cg *g = x->g;
    int64_t c;
    if (!e || (lang_const_int(e, &c) && c <= 0))
        return cg_int(DT_I32, 0);
    struct cg_val v, end = cg_convert(g, x->end, DT_I64);
    if (inspect_same_expr(e, x->t->f->j->dims[0]))
        return cg_convert(g, x->end, DT_I32);
    if (chain_narrow_bound(g, e, &v)) {
        v = cg_minmax(g, true, v, cg_int(DT_I32, 0));
        return cg_minmax(g, false, v, cg_convert(g, x->end, DT_I32));
    }
    v = cg_index(g, cg_expr(g, e));
    v = cg_minmax(g, true, cg_convert(g, v, DT_I64), cg_int(DT_I64, 0));
    return cg_convert(g, cg_minmax(g, false, v, end), DT_I32);
}

static bool depends_on_row(const struct chain_tile *x, const struct lang_expr *e)
{
    const struct chain_form *f = x->t->f;
    for (uint32_t a = 0; e && a < f->nrow; a++)
        if ((a == x->t->i || is_packed(x, a)) && chain_mentions(e, f->row[a]))
            return true;
    return false;
}

/* The least and the largest of a bound over the block's rows. */
static void over_rows(struct chain_tile *x, const struct lang_expr *e, struct cg_val *least,
                      struct cg_val *most)
{
    struct cg *g = x->g;
    const struct lanes all = warp_lanes(g);
    const uint32_t parts = depends_on_row(x, e) ? (x->block_rows + LANES - 1) / LANES : 1;
    for (uint32_t p = 0; p < parts; p++) {
        const size_t bound = g->bindings.n;
        chain_bind_row(x, 0);
        if (parts > 1 || depends_on_row(x, e)) {
            const struct cg_val in_block = cg_add(g, x->lane, cg_u32(p * LANES));
            const struct cg_val last = cg_minmax(g, false, in_block, cg_u32(x->block_rows - 1));
            const struct chain_row row = chain_row_of(x, cg_add(g, x->block_first, last));
            chain_bind(x, &row);
        }
        const struct cg_val v = chain_bound(x, e);
        *least = p ? cg_minmax(g, false, *least, v) : v;
        *most = p ? cg_minmax(g, true, *most, v) : v;
        g->bindings.n = bound;
    }
    if (!depends_on_row(x, e))
        return;
    *least = warp_fold(g, FOLD_MIN, *least, &all);
    *most = warp_fold(g, FOLD_MAX, *most, &all);
}

void chain_tile_find_ranges(struct chain_tile *x)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->t->f->nstream; i++)
        for (uint32_t n = 0; n < chain_tile_rows(x); n++) {
            const size_t bound = g->bindings.n;
            chain_bind_row(x, n);
            x->low[i][n] = chain_bound(x, x->t->f->stream[i].low);
            x->high_of[i][n] = chain_bound(x, x->t->f->stream[i].high);
            g->bindings.n = bound;
        }
}

void chain_tile_reach(struct chain_tile *x, struct cg_val *from, struct cg_val *to)
{
    struct cg *g = x->g;
    for (uint32_t i = 0; i < x->t->f->nstream; i++) {
        const struct chain_stream *s = &x->t->f->stream[i];
        struct cg_val low, high, other;
        over_rows(x, s->low, &low, &other);
        over_rows(x, s->high, &other, &high);
        *from = i ? cg_minmax(g, false, *from, low) : low;
        *to = i ? cg_minmax(g, true, *to, high) : high;
    }
}

/* Of the block's rows. */
static void find_ranges(struct chain_tile *x)
{
    struct cg *g = x->g;
    struct cg_val from = cg_int(DT_I32, 0), to = from, whole_from = from, whole_to = from;
    x->end = cg_convert(g, extent_of(g, x->t->f->j).v, DT_U32);
    for (uint32_t i = 0; i < x->t->f->nstream; i++) {
        const struct chain_stream *s = &x->t->f->stream[i];
        struct cg_val low, low_most, high, high_most;
        over_rows(x, s->low, &low, &low_most);
        over_rows(x, s->high, &high, &high_most);
        from = i ? cg_minmax(g, false, from, low) : low;
        to = i ? cg_minmax(g, true, to, high_most) : high_most;
        whole_from = i ? cg_minmax(g, true, whole_from, low_most) : low_most;
        whole_to = i ? cg_minmax(g, false, whole_to, high) : high;
    }
    x->all_from = x->from = cg_freeze(g, cg_convert(g, from, DT_U32));
    x->all_to = x->to = cg_freeze(g, cg_convert(g, to, DT_U32));
    x->whole_from = cg_freeze(g, cg_convert(g, whole_from, DT_U32));
    x->whole_to = cg_freeze(g, cg_convert(g, whole_to, DT_U32));
}

void chain_tile_find(struct chain_tile *x)
{
    find_rows(x);
    find_ranges(x);
}

/* Are all j of every tile terms of all rows, as far as is known when code is made? */
static bool is_always_whole(const struct chain_tile *x)
{
    int64_t from, end, to;
    return cg_is_const(x->whole_from, &from) && from == 0 && cg_is_const(x->end, &end) &&
           cg_is_const(x->whole_to, &to) && to == end && end % x->wide == 0;
}

struct cg_val chain_tile_is_whole(struct chain_tile *x, struct cg_val first)
{
    struct cg *g = x->g;
    if (x->keep && x->sure.type == DT_VOID)
        return cg_bool(g, false);
    if (!x->keep && is_always_whole(x))
        return cg_bool(g, true);
    const struct cg_val last = cg_add(g, first, cg_u32(x->wide));
    struct cg_val p = cg_binary(g, OP_GE, first, x->whole_from);
    p = cg_binary(g, OP_LAND, p, cg_binary(g, OP_LE, last, x->whole_to));
    return x->keep ? cg_binary(g, OP_LAND, p, x->sure) : p;
}
