/* Tiles that are held, of sizes that the launch knows: reduce/tile.c with the sides of a block
 * among the parameters.
 *
 *     across * down * several threads: threads across a tile, rows of them, tiles
 *
 * They are numbered in that order, so that what a warp reads lies side by side where a tile is as
 * wide as the results that lie side by side, be these ever so few. A thread has a position for each
 * `down` terms, as far as there are any. What threads have of a result is brought together by
 * halves, in shared memory.
 */
#include <config.h>

#include "lower/reduce/reduce.h"

static struct cg_val side(struct cg *g, struct amount a)
{
    return a.is_known ? cg_int(DT_U32, a.n) : cg_convert(g, reduce_count(g, a), DT_U32);
}

/* q = x / y and the rest, of 32 bits. */
static void divide(struct cg *g, struct cg_val x, struct amount by, struct cg_val *q,
                   struct cg_val *rest)
{
    const struct cg_val y = side(g, by);
    *q = cg_binary(g, OP_DIV, x, y);
    *rest = cg_binary(g, OP_SUB, x, cg_binary(g, OP_MUL, *q, y));
}

/* Are there fewer tiles than 2^32? */
static bool is_narrow(const struct reduce_form *f, const struct reduce_plan *p)
{
    uint32_t n = 0;
    bool narrow = true;
    for (uint32_t i = 0; i < f->nkeptloop; i++)
        if (i != f->lane && !reduce_is_one(f->loop[i].n)) {
            narrow &= f->loop[i].is_narrow;
            n++;
        }
    return p->outer.is_known ? p->outer.n <= UINT32_MAX : n <= 1 && narrow;
}

void reduce_take_open_place(struct reduce *r)
{
    struct cg *g = r->g;
    const struct reduce_plan *p = r->p;
    struct cg_val tile, outer = cg_special(g, SP_CTAID_X), z = cg_special(g, SP_TID_X);
    divide(g, z, p->across, &z, &r->tx);
    divide(g, z, p->down, &z, &r->ty);
    divide(g, outer, p->tiles, &outer, &tile);
    const struct cg_val several = cg_index(g, side(g, p->several));
    r->outer = cg_binary(g, OP_MUL, cg_index(g, outer), several);
    r->outer = cg_binary(g, OP_ADD, r->outer, cg_index(g, z));
    r->exists = -1;
    if (reduce_is_one(p->outer)) {
        r->outer = cg_int(DT_I64, 0);
    } else {
        const struct cg_val n = reduce_count(g, p->outer), one = cg_int(DT_I64, 1);
        r->exists = cg_reg(g, cg_binary(g, OP_LT, r->outer, n));
        r->outer = cg_minmax(g, false, r->outer, cg_binary(g, OP_SUB, n, one));
        if (is_narrow(r->f, p))
            r->outer = cg_index(g, cg_convert(g, r->outer, DT_U32));
    }
    r->tile = cg_index(g, tile);
    r->split = cg_int(DT_I64, 1);
    r->part = cg_int(DT_I64, 0);
}

struct cg_val reduce_open_rows(struct reduce *r)
{
    return side(r->g, r->p->down);
}

struct cg_val reduce_open_across(struct reduce *r)
{
    return side(r->g, r->p->across);
}
