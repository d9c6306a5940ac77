/* Rows whose elements stay in registers from the first reduction to the last output. */
#include <config.h>

#include "lower/row/row.h"

/* Vectors after the last are the last again, so that every read is of an element that there is;
 * they count for nothing and are not stored. */
static void place_vectors(struct row_gen *r)
{
    struct cg *g = r->g;
    const struct row_plan *p = &r->plan;
    int64_t stride, vectors;
    bool known = cg_is_const(r->stride, &stride) && cg_is_const(r->vectors, &vectors);
    for (uint32_t i = 0; i < p->held; i++) {
        if (known && (i + 1) * stride <= vectors) {
            r->start[i].from = cg_binary(g, OP_MUL, r->thread, cg_int(r->ct, p->vector));
            r->start[i].add = (uint32_t)((uint64_t)i * (uint64_t)stride * p->vector);
            r->has[i] = -1;
            continue;
        }
        struct cg_val before = cg_binary(g, OP_MUL, r->stride, cg_int(r->ct, i));
        struct cg_val at = cg_binary(g, OP_ADD, r->thread, before);
        struct cg_val last = cg_binary(g, OP_SUB, r->vectors, cg_int(r->ct, 1));
        r->has[i] = cg_reg(g, cg_binary(g, OP_LT, at, r->vectors));
        at = cg_minmax(g, false, at, last);
        r->start[i].from = cg_binary(g, OP_MUL, at, cg_int(r->ct, p->vector));
        r->start[i].add = 0;
    }
}

/* Is what rows share read with the rest? It is where there are registers for it: behind the first
 * reduction its latency would come on top of the row's, and waiting for the blocks of a cluster
 * empties the first cache. */
static bool reads_early(const struct row_gen *r)
{
    enum { REGISTERS = 16 };
    uint32_t bits = 0;
    for (uint32_t i = 0; i < r->row->nread; i++)
        bits += r->row->read[i].shared && !r->row->read[i].early
                    ? dtype_bits(r->row->read[i].e->sym->type)
                    : 0;
    return r->plan.held * r->plan.vector * bits / 32 <= REGISTERS;
}

/* What was computed of a lane is not kept for the next level when rows are packed. */
static void level(struct row_gen *r, uint32_t n)
{
    const struct row_plan *p = &r->plan;
    size_t mark = cg_scope_open(r->g);
    struct row_fold f = row_fold_begin(r, n, true);
    bool converts = false;
    for (uint32_t i = 0; i < f.n; i++)
        converts |= !f.pairs[i];
    for (uint32_t vec = 0; vec < p->held; vec++) {
        row_unpack(r, vec);
        row_load(r, n, true, vec, vec + 1);
        for (uint32_t lane = 0; lane < p->vector; lane++) {
            row_at(r, vec, lane);
            row_fold_lane(&f, r->has[vec]);
        }
    }
    row_fold_end(&f);
    r->conversions += converts;
    if (!reads_early(r))
        row_forget(r, true);
    if (p->packed)
        cg_scope_close(r->g, mark);
}

/* Kept outputs are computed and stored a few vectors at a time, and the next few are under way
 * meanwhile. */
static void store_kept(struct row_gen *r)
{
    enum { REGISTERS = 16 };
    const struct row_plan *p = &r->plan;
    uint32_t bits = r->row->bits_early * p->vector, step = bits ? 32 * REGISTERS / bits : p->held;
    step = step ? step : 1;
    for (uint32_t first = 0, end = 0; first < p->held; first = end) {
        end = first + step < p->held ? first + step : p->held;
        uint32_t ahead = end + step < p->held ? end + step : p->held;
        for (int shared = 0; shared < 2; shared++)
            row_load(r, ROW_EARLY, shared, first, ahead);
        for (uint32_t vec = first; vec < end; vec++) {
            row_unpack(r, vec);
            row_store(r, vec, true);
        }
    }
    row_forget_early(r);
}

void row_held(struct row_gen *r)
{
    const struct row_plan *p = &r->plan;
    const uint32_t last = r->row->nlevel;
    place_vectors(r);
    row_load(r, ROW_ALL, false, 0, p->held);
    row_load_scalars(r, false);
    if (reads_early(r))
        row_load(r, ROW_ALL, true, 0, p->held);
    if (p->cluster > 1) /* says that the block runs, while the loads are under way */
        PTX0(&r->g->b, "barrier.cluster.arrive.relaxed.aligned");
    if (r->row->nkept)
        store_kept(r);
    row_load_scalars(r, true);
    for (uint32_t n = 0; n < last; n++) {
        level(r, n);
        if (n == 0 && p->lets_go)
            row_read_enough(r);
    }
    if (r->row->in_place && p->threads && p->threads <= 32)
        PTX(&r->g->b, "bar.warp.sync", ptx_imm(UINT32_MAX));
    row_store_scalars(r);
    for (uint32_t vec = 0; vec < p->held; vec++) {
        row_unpack(r, vec);
        row_load(r, last, true, vec, vec + 1);
        row_store(r, vec, false);
    }
}
