/* Tiles along the memory: scan/scan.h.
 *
 * A warp's vectors of 16 bytes lie side by side, so that its accesses are contiguous:
 *
 *     | vector of lane 0 | lane 1 | ... | lane 31 | second vector of lane 0 | ...
 *
 * Each vector is scanned by its thread, its total by shuffles with those of the other lanes, and
 * the totals of the warp's vectors and of the block's warps one after the other.
 */
#include <config.h>

#include "lower/scan/scan.h"

struct rows {
    struct scan *s;
    uint32_t width;          /* lanes of a segment, all of which share the row */
    uint32_t warps;          /* that share it */
    struct cg_val row, lane; /* lane: in its segment */
    struct cg_val warp, first_lane;
    struct cg_val has_row; /* a predicate, or known */
    bool has_before;       /* the tile has one */
    struct scan_state before, total;
};

/* ---- where the vectors are ------------------------------------------------------------------- */

/* The vectors of tile `tile`, and whether they exist. */
static void place_vectors(struct rows *r, struct cg_val tile)
{
    struct scan *s = r->s;
    struct cg *g = s->g;
    const struct scan_plan *p = s->p;
    const uint32_t all = p->threads * p->held;
    const struct cg_val start = cg_mul(g, tile, all), length = scan_number(g, p->length);
    const struct cg_val rest = cg_binary(g, OP_SUB, length, start);
    struct cg_val own = cg_weighted(g, r->warp, 32 * p->held, r->lane, 1);
    if (r->warps == 1)
        own = r->lane;
    struct cg_val vector = cg_add(g, start, own);
    if (s->f->reversed)
        vector = cg_binary(g, OP_SUB, cg_binary(g, OP_SUB, length, cg_u32(1)), vector);
    const struct cg_val first = cg_index(g, cg_mul(g, vector, p->lanes));
    for (uint32_t j = 0; j < p->held; j++) {
        const struct cg_val at = cg_add(g, own, cg_u32(j * r->width));
        const int64_t by = (int64_t)j * r->width * p->lanes;
        s->position[j] = cg_add(g, first, cg_int(DT_I64, s->f->reversed ? -by : by));
        struct cg_val exists = cg_binary(g, OP_LAND, r->has_row, cg_binary(g, OP_LT, at, rest));
        if (p->length.is_known && p->length.n % all == 0)
            exists = r->has_row;
        int64_t always;
        s->exists[j] = cg_is_const(exists, &always) ? -1 : cg_reg(g, exists);
    }
}

/* ---- scanning -------------------------------------------------------------------------------- */

static void scan_vectors(struct rows *r)
{
    struct scan *s = r->s;
    for (uint32_t j = 0; j < s->p->held; j++)
        scan_load(s, j);
    for (uint32_t j = 0; j < s->p->held; j++) {
        scan_terms(s, j);
        for (uint32_t k = 1; k < s->p->lanes; k++)
            s->inside[j].at[k] = scan_meet(s, s->inside[j].at[k - 1], s->inside[j].at[k]);
    }
}

/* The vectors' totals: .before becomes what is before each in its segment's vectors of the same
 * number; all[j]: those vectors' total. */
static void scan_lanes(struct rows *r, struct scan_state *all)
{
    struct scan *s = r->s;
    const struct scan_state nothing = scan_identity(s);
    int32_t has;
    for (uint32_t j = 0; j < s->p->held; j++) {
        struct scan_state x = s->inside[j].at[s->p->lanes - 1];
        for (uint32_t by = 1; by < r->width; by *= 2) {
            const struct scan_state other = scan_shuffle_up(s, x, by, r->width, &has);
            x = scan_select(s, has, scan_meet(s, other, x), x);
        }
        all[j] = x;
        s->before[j].at[0] = nothing;
        if (r->width == 1)
            continue;
        all[j] = scan_last_lane(s, x, r->width);
        x = scan_shuffle_up(s, x, 1, r->width, &has);
        s->before[j].at[0] = scan_select(s, has, x, nothing);
    }
}

/* Those of one number come before those of the next. */
static void scan_held(struct rows *r)
{
    struct scan *s = r->s;
    struct scan_state *all = ARENA_ARRAY(s->g->a, s->p->held, struct scan_state);
    scan_lanes(r, all);
    r->total = all[0];
    for (uint32_t j = 1; j < s->p->held; j++) {
        s->before[j].at[0] = scan_meet(s, r->total, s->before[j].at[0]);
        r->total = scan_meet(s, r->total, all[j]);
    }
}

static void put_before(struct rows *r, struct scan_state before)
{
    struct scan *s = r->s;
    r->before = r->has_before ? scan_meet(s, r->before, before) : before;
    r->has_before = true;
}

/* The totals one after the other, and what comes before the thread's warp. */
static struct scan_state add_few(struct rows *r, struct cg_val area, struct scan_state *before)
{
    struct scan *s = r->s;
    struct scan_state total;
    *before = scan_identity(s);
    for (uint32_t w = 0; w < r->warps; w++) {
        struct scan_state x;
        scan_fetch(s, cg_add(s->g, area, cg_u32(w)), 1, &x);
        if (w) {
            const int32_t here = cg_reg(s->g, cg_binary(s->g, OP_EQ, r->warp, cg_u32(w)));
            *before = scan_select(s, here, total, *before);
        }
        total = w ? scan_meet(s, total, x) : x;
    }
    return total;
}

/* A power of two of them by lanes: 32 one after the other are a thousand cycles of a
 * multiprocessor, in which it moves nothing. */
static struct scan_state add_many(struct rows *r, struct cg_val area, struct scan_state *before)
{
    struct scan *s = r->s;
    struct cg *g = s->g;
    struct scan_state x;
    int32_t has;
    const struct cg_val lane = cg_binary(g, OP_AND, r->lane, cg_u32(r->warps - 1));
    scan_fetch(s, cg_add(g, area, lane), 1, &x);
    for (uint32_t by = 1; by < r->warps; by *= 2) {
        const struct scan_state other = scan_shuffle_up(s, x, by, r->warps, &has);
        x = scan_select(s, has, scan_meet(s, other, x), x);
    }
    const int32_t is_first = cg_reg(g, cg_binary(g, OP_EQ, r->warp, cg_u32(0)));
    const int32_t last = cg_reg(g, cg_binary(g, OP_SUB, r->warp, cg_u32(1)));
    *before = scan_select(s, is_first, scan_identity(s), scan_from_lane(s, x, last));
    return scan_last_lane(s, x, r->warps);
}

/* The warps' totals, which every warp adds up for itself, to what is before its own and to the
 * block's. There are two areas of shared memory, for tiles by turns, so that none is overwritten
 * before all have read it. */
static struct scan_state scan_warps(struct rows *r, struct cg_val tile)
{
    struct scan *s = r->s;
    struct cg *g = s->g;
    struct scan_state before;
    const uint32_t left = cg_label(g, "left");
    const struct cg_val area = cg_mul(g, cg_binary(g, OP_AND, tile, cg_u32(1)), r->warps);
    const size_t mark = cg_scope_open(g);
    cg_jump_if(g, cg_reg(g, cg_binary(g, OP_NE, r->lane, cg_u32(0))), true, left);
    scan_leave(s, cg_add(g, area, r->warp), 1, &r->total);
    cg_scope_close(g, mark);
    cg_place(g, left);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    const struct scan_state total = scan_adds_by_lanes(r->warps) ? add_many(r, area, &before)
                                                                 : add_few(r, area, &before);
    put_before(r, before);
    return total;
}

static void store_vectors(struct rows *r)
{
    struct scan *s = r->s;
    for (uint32_t j = 0; j < s->p->held; j++) {
        if (r->has_before)
            s->before[j].at[0] = scan_meet(s, r->before, s->before[j].at[0]);
        scan_store(s, j);
    }
}

/* ---- a row by one team ----------------------------------------------------------------------- */

static void one_tile(struct rows *r, struct cg_val tile)
{
    place_vectors(r, tile);
    scan_vectors(r);
    scan_held(r);
    if (r->warps > 1)
        r->total = scan_warps(r, tile);
    store_vectors(r);
}

/* Tile by tile, what is before each being carried. */
static void all_tiles(struct rows *r)
{
    struct scan *s = r->s;
    struct cg *g = s->g;
    int32_t carry[SCAN_PARTS];
    struct cg_for loop;
    const struct scan_state nothing = scan_identity(s);
    const struct cg_val tiles = scan_number(g, s->p->tiles);
    scan_keep(s, carry);
    scan_move(s, carry, &nothing);
    cg_for_open(g, &loop, "tile", "tiles", cg_u32(0), &tiles);
    for (uint32_t p = 0; p < s->npart; p++)
        cg_nest_varies(g, &loop.nest, carry[p]);
    struct scan_state before = scan_kept(s, carry);
    for (uint32_t p = 0; p < s->npart; p++)
        before.v[p] = cg_freeze(g, before.v[p]);
    r->before = before;
    r->has_before = true;
    one_tile(r, cg_value(DT_U32, loop.at));
    const struct scan_state next = scan_meet(s, before, r->total);
    scan_move(s, carry, &next);
    cg_for_close(g, &loop, cg_u32(1), &tiles);
}

/* ---- a tile of a row by a block -------------------------------------------------------------- */

static void tile_of_many(struct rows *r, struct scan_look *l)
{
    struct scan *s = r->s;
    place_vectors(r, l->tile);
    scan_vectors(r);
    scan_held(r);
    const struct scan_state total = scan_warps(r, cg_u32(0));
    const struct scan_state before = scan_look_back(s, l, total);
    r->before = scan_meet(s, before, r->before);
    store_vectors(r);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void take_row(struct rows *r)
{
    struct scan *s = r->s;
    struct cg *g = s->g;
    const struct scan_plan *p = s->p;
    const struct cg_val block = cg_special(g, SP_CTAID_X), tid = cg_special(g, SP_TID_X);
    const uint32_t rows = p->block / p->threads;
    r->has_row = cg_bool(g, true);
    r->row = block;
    r->warp = cg_binary(g, OP_SHR, tid, cg_u32(5));
    r->lane = cg_binary(g, OP_AND, tid, cg_u32(r->width - 1));
    if (rows == 1)
        return;
    const struct cg_val own =
        cg_binary(g, OP_SHR, tid, cg_u32((uint32_t)__builtin_ctz(p->threads)));
    r->row = cg_weighted(g, block, rows, own, 1);
    if (!p->rows.is_known || p->rows.n % rows)
        r->has_row = cg_binary(g, OP_LT, r->row, scan_number(g, p->rows));
}

void scan_rows(struct scan *s)
{
    const struct scan_plan *p = s->p;
    struct rows r = {.s = s,
                     .width = p->threads < 32 ? p->threads : 32,
                     .warps = p->threads < 32 ? 1 : p->threads / 32};
    struct scan_look look;
    take_row(&r);
    if (r.warps > 1)
        scan_share(s, 2 * r.warps);
    if (p->way == SCAN_BY_BLOCKS) {
        scan_take_tile(s, &look);
        r.row = look.row;
    }
    scan_place(s, r.row, cg_u32(0));
    if (p->way == SCAN_BY_BLOCKS)
        tile_of_many(&r, &look);
    else if (p->tiles.is_known && p->tiles.n == 1)
        one_tile(&r, cg_u32(0));
    else
        all_tiles(&r);
}
