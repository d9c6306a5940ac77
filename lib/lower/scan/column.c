/* Tiles across the memory: scan/scan.h.
 *
 * Threads side by side have columns side by side; each goes down `held` elements of its columns,
 * with all of them on their way at once. Where there are too few columns for the machine, threads
 * below each other have parts of the same columns, and their totals meet in shared memory.
 */
#include <config.h>

#include "lower/scan/scan.h"

struct columns {
    struct scan *s;
    struct cg_val across, down; /* the thread's place */
    struct cg_val has_column;
};

static void place_elements(struct columns *c, struct cg_val tile)
{
    struct scan *s = c->s;
    struct cg *g = s->g;
    const struct scan_plan *p = s->p;
    const uint32_t all = p->threads * p->held;
    const struct cg_val start = cg_mul(g, tile, all), length = scan_number(g, p->length);
    const struct cg_val rest = cg_binary(g, OP_SUB, length, start);
    for (uint32_t j = 0; j < p->held; j++) {
        const struct cg_val at = cg_weighted(g, c->down, p->held, cg_u32(j), 1);
        struct cg_val element = cg_add(g, start, at);
        if (s->f->reversed)
            element = cg_binary(g, OP_SUB, cg_binary(g, OP_SUB, length, cg_u32(1)), element);
        s->position[j] = cg_index(g, element);
        struct cg_val exists = cg_binary(g, OP_LAND, c->has_column, cg_binary(g, OP_LT, at, rest));
        if (p->length.is_known && p->length.n % all == 0)
            exists = c->has_column;
        int64_t always;
        s->exists[j] = cg_is_const(exists, &always) ? -1 : cg_reg(g, exists);
    }
}

static void scan_own(struct columns *c)
{
    struct scan *s = c->s;
    for (uint32_t j = 0; j < s->p->held; j++)
        scan_load(s, j);
    for (uint32_t j = 0; j < s->p->held; j++) {
        scan_terms(s, j);
        for (uint32_t k = 0; k < s->p->lanes && j; k++)
            s->inside[j].at[k] = scan_meet(s, s->inside[j - 1].at[k], s->inside[j].at[k]);
    }
}

/* The totals of the threads below each other: what is before the thread's own, and all. */
static void scan_down(struct columns *c, struct cg_val tile, struct scan_lanes *before,
                      struct scan_lanes *total)
{
    struct scan *s = c->s;
    struct cg *g = s->g;
    const struct scan_plan *p = s->p;
    const struct cg_val area = cg_mul(g, cg_binary(g, OP_AND, tile, cg_u32(1)), p->block);
    const struct cg_val first = cg_add(g, area, c->across);
    scan_leave(s, cg_weighted(g, c->down, p->across, first, 1), p->lanes,
               s->inside[p->held - 1].at);
    PTX(&g->b, "bar.sync", ptx_imm(0));
    for (uint32_t w = 0; w < p->threads; w++) {
        struct scan_lanes x;
        scan_fetch(s, cg_add(g, first, cg_u32(w * p->across)), p->lanes, x.at);
        const int32_t here = cg_reg(g, cg_binary(g, OP_EQ, c->down, cg_u32(w)));
        for (uint32_t k = 0; k < p->lanes; k++) {
            if (w)
                before->at[k] = scan_select(s, here, total->at[k], before->at[k]);
            total->at[k] = w ? scan_meet(s, total->at[k], x.at[k]) : x.at[k];
        }
    }
}

static void one_tile(struct columns *c, struct cg_val tile, struct scan_lanes *carry)
{
    struct scan *s = c->s;
    const struct scan_plan *p = s->p;
    struct scan_lanes before, total = {0};
    place_elements(c, tile);
    scan_own(c);
    for (uint32_t k = 0; k < p->lanes; k++)
        before.at[k] = scan_identity(s);
    if (p->threads > 1)
        scan_down(c, tile, &before, &total);
    for (uint32_t k = 0; k < p->lanes; k++) {
        s->before[0].at[k] = p->threads > 1 ? scan_meet(s, carry->at[k], before.at[k])
                                            : carry->at[k];
        carry->at[k] =
            scan_meet(s, carry->at[k], p->threads > 1 ? total.at[k] : s->inside[p->held - 1].at[k]);
    }
    for (uint32_t j = 0; j < p->held; j++)
        scan_store(s, j);
}

static void all_tiles(struct columns *c)
{
    struct scan *s = c->s;
    struct cg *g = s->g;
    const uint32_t lanes = s->p->lanes;
    int32_t kept[SCAN_LANES][SCAN_PARTS];
    struct scan_lanes carry;
    struct cg_for loop;
    const struct scan_state nothing = scan_identity(s);
    const struct cg_val tiles = scan_number(g, s->p->tiles);
    for (uint32_t k = 0; k < lanes; k++) {
        scan_keep(s, kept[k]);
        scan_move(s, kept[k], &nothing);
    }
    cg_for_open(g, &loop, "tile", "tiles", cg_u32(0), &tiles);
    for (uint32_t k = 0; k < lanes; k++)
        for (uint32_t p = 0; p < s->npart; p++) {
            cg_nest_varies(g, &loop.nest, kept[k][p]);
            carry.at[k].v[p] = cg_freeze(g, cg_value(s->part[p], kept[k][p]));
        }
    one_tile(c, cg_value(DT_U32, loop.at), &carry);
    for (uint32_t k = 0; k < lanes; k++)
        scan_move(s, kept[k], &carry.at[k]);
    cg_for_close(g, &loop, cg_u32(1), &tiles);
}

void scan_columns(struct scan *s)
{
    struct cg *g = s->g;
    const struct scan_plan *p = s->p;
    struct columns c = {.s = s, .has_column = cg_bool(g, true)};
    const struct cg_val tid = cg_special(g, SP_TID_X), block = cg_special(g, SP_CTAID_X);
    const struct cg_val groups = scan_number(g, p->groups), rows = scan_number(g, p->rows);
    struct cg_val row, group;
    c.across = c.down = cg_u32(0);
    if (p->across > 1)
        c.across = cg_binary(g, OP_AND, tid, cg_u32(p->across - 1));
    if (p->threads > 1)
        c.down = cg_binary(g, OP_SHR, tid, cg_u32((uint32_t)__builtin_ctz(p->across)));
    const struct cg_val number = cg_weighted(g, block, p->across, c.across, 1);
    c.has_column = cg_binary(g, OP_LT, number, cg_binary(g, OP_MUL, rows, groups));
    const struct cg_val one = cg_minmax(g, true, groups, cg_u32(1));
    const struct cg_val by = cg_index(g, one);
    cg_divmod(g, cg_index(g, number), by, &row, &group);
    if (p->threads > 1)
        scan_share(s, 2 * p->block * p->lanes);
    group = cg_convert(g, group, DT_U32);
    scan_place(s, cg_convert(g, row, DT_U32), group);
    all_tiles(&c);
}
