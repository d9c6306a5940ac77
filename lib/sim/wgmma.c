/* wgmma: who has issued what, and when it takes effect. */
#include <config.h>

#include <stdlib.h>

#include "sim/check.h"
#include "sim/flight.h"
#include "sim/wgmma.h"

enum { CHUNK = 16 };

/* ---- descriptors ----------------------------------------------------------------------------- */

bool sim_tile_of(uint64_t descriptor, bool mn, struct sim_tile *t)
{
    static const uint8_t span[] = {16, 128, 64, 32};
    const uint64_t known = 0xc00e3fff3fff3fff;
    const uint32_t field = 0x3fff;
    t->start = (uint32_t)(descriptor & field) * CHUNK;
    t->leading = (uint32_t)(descriptor >> 16 & field) * CHUNK;
    t->stride = (uint32_t)(descriptor >> 32 & field) * CHUNK;
    t->base = (uint8_t)(descriptor >> 49 & 7);
    t->span = span[descriptor >> 62];
    t->mn = mn;
    return !(descriptor & ~known);
}

/* The operands of a warp's part that are in shared memory: their chunks from *first to *end.
 * Returns how many, B first. */
struct part {
    struct sim_tile tile;
    uint32_t first, end;
};
static unsigned parts(const struct sim_warp *w, const struct sim_wgmma_flight *f, struct part p[2])
{
    const struct sim_wgmma *g = sim_wgmma_of(w->code + f->op);
    const uint32_t row = w->index % SIM_WARPGROUP * 32;
    sim_tile_of(f->b, g->b_mn, &p[0].tile);
    p[0].first = 0;
    p[0].end = 2u * g->n;
    if (g->m.na)
        return 1;
    sim_tile_of(f->a, g->a_mn, &p[1].tile);
    p[1].first = row;
    p[1].end = row + 32;
    return 2;
}

uint32_t sim_wgmma_reads(const struct sim_warp *w, const struct sim_wgmma_flight *f,
                         struct sim_wgmma_reads *to)
{
    struct part p[2];
    uint32_t n = 0;
    for (unsigned i = 0, np = parts(w, f, p); i < np; i++)
        for (uint32_t k = p[i].first; k < p[i].end; k++) {
            const uint32_t at = sim_tile_chunk(&p[i].tile, k);
            if (k > p[i].first && at == to[n - 1].offset + to[n - 1].bytes)
                to[n - 1].bytes += CHUNK;
            else
                to[n++] = (struct sim_wgmma_reads){at, CHUNK, p[i].tile.span};
        }
    return n;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool fail(struct sim_warp *w, const struct sim_op *op, struct sim_fault about)
{
    return sim_fault_about(w, op, about.lane, about.kind, about);
}

static struct sim_wgmma_flight *logged(struct sim_wgmmas *g, uint32_t i)
{
    return &g->log[i % SIM_WGMMA_LOG];
}

static struct sim_wgmmas *of(struct sim_warp *w)
{
    if (!w->wgmmas)
        w->wgmmas = calloc(1, sizeof *w->wgmmas);
    return w->wgmmas;
}

/* Does it agree with what another warp of the group, at this place of its own sequence, has
 * executed? */
static bool agrees(struct sim_warp *w, const struct sim_op *op, struct sim_warp *other,
                   const struct sim_wgmma_flight *f)
{
    const uint32_t i = w->wgmmas->issued, n = other->wgmmas ? other->wgmmas->issued : 0;
    if (!other->started)
        return true;
    if (!other->live && n <= i)
        return fail(
            w, op,
            (struct sim_fault){.kind = SIM_F_WGMMA, .why = SIM_WG_LEFT, .others = other->index});
    if (n <= i || n - i > SIM_WGMMA_LOG)
        return true;
    const struct sim_wgmma_flight *e = logged(other->wgmmas, i);
    return (e->op == f->op && e->a == f->a && e->b == f->b && e->adds == f->adds) ||
           fail(w, op,
                (struct sim_fault){.kind = SIM_F_WGMMA,
                                   .why = SIM_WG_APART,
                                   .others = other->index,
                                   .bytes = e->op});
}

bool sim_wgmma_agree(struct sim_warp *w, const struct sim_op *op, uint64_t a, uint64_t b, bool adds)
{
    struct sim_block *block = w->block;
    const uint32_t first = w->index - w->index % SIM_WARPGROUP;
    const struct sim_wgmma_flight f = {.op = sim_pc(w, op), .a = a, .b = b, .adds = adds};
    struct sim_wgmmas *g = of(w);
    if (!g)
        return sim_fault_at(w, op, 0, SIM_F_MEMORY);
    if ((first + SIM_WARPGROUP) * SIM_LANES > block->launch->threads)
        return fail(w, op, (struct sim_fault){.kind = SIM_F_WGMMA, .why = SIM_WG_BLOCK});
    for (uint32_t i = first; i < first + SIM_WARPGROUP; i++)
        if (i != w->index && !agrees(w, op, &block->warp[i], &f))
            return false;
    *logged(g, g->issued++) = f;
    return true;
}

/* ---- issue ----------------------------------------------------------------------------------- */

/* The value that all lanes have. */
static bool same_in_all(struct sim_warp *w, const struct sim_op *op, uint32_t slot, uint64_t *v)
{
    memcpy(v, w->r + slot, 8);
    for (uint32_t lane = 1; lane < SIM_LANES; lane++) {
        uint64_t u;
        memcpy(&u, w->r + slot + 8 * lane, 8);
        if (u != *v)
            return fail(w, op,
                        (struct sim_fault){.kind = SIM_F_WGMMA, .why = SIM_WG_LANES, .lane = lane});
    }
    return true;
}

/* Are the descriptors good, and is what they name in shared memory? */
static bool inside(struct sim_warp *w, const struct sim_op *op, const struct sim_wgmma_flight *f)
{
    const struct sim_wgmma *g = sim_wgmma_of(op);
    const uint64_t bytes = w->block->shared_bytes;
    struct part p[2];
    struct sim_tile t;
    const uint64_t descriptor[] = {f->b, g->m.na ? 0 : f->a};
    for (unsigned i = 0; i < 2; i++)
        if (!sim_tile_of(descriptor[i], false, &t))
            return fail(w, op,
                        (struct sim_fault){
                            .kind = SIM_F_WGMMA, .why = SIM_WG_BITS, .address = descriptor[i]});
    for (unsigned i = 0, n = parts(w, f, p); i < n; i++)
        for (uint32_t k = p[i].first; k < p[i].end; k++) {
            const uint32_t at = sim_tile_chunk(&p[i].tile, k);
            if (at + CHUNK > bytes)
                return fail(w, op,
                            (struct sim_fault){.kind = SIM_F_BOUNDS,
                                               .address = at,
                                               .bytes = CHUNK,
                                               .space = SIM_IN_SHARED});
        }
    return true;
}

static bool push(struct sim_wgmmas *g, const struct sim_wgmma_flight *f)
{
    if (g->head == g->n)
        g->head = g->n = 0;
    if (g->n == g->cap) {
        const uint32_t cap = g->cap ? 2 * g->cap : 16;
        struct sim_wgmma_flight *v = realloc(g->v, cap * sizeof *v);
        if (!v)
            return false;
        g->v = v;
        g->cap = cap;
    }
    g->v[g->n++] = *f;
    return true;
}

/* The first n of those in flight take effect. */
static void land(struct sim_warp *w, uint32_t n)
{
    const struct sim_build *build = w->block->launch->build;
    struct sim_wgmmas *g = w->wgmmas;
    while (n--) {
        const struct sim_wgmma_flight *f = &g->v[g->head++];
        const struct sim_wgmma_product p = {sim_wgmma_of(w->code + f->op), f};
        const struct sim_op op = {.imm = (uint64_t)(uintptr_t)&p};
        build->h[SIM_H_WGMMA_PRODUCT].full(w, &op);
    }
}

/* Lets all that is in flight take effect now, once in so many times, if there is a seed. */
static void drift(struct sim_warp *w, uint32_t times)
{
    struct sim_wgmmas *g = w->wgmmas;
    if (w->block->launch->seed && g->head < g->n && !sim_draw(w->block, times))
        land(w, g->n - g->head);
}

void sim_wgmma_stopped(struct sim_warp *w)
{
    if (w->wgmmas && w->live)
        drift(w, 2);
}

const struct sim_op *sim_wgmma_issue(struct sim_warp *w, const struct sim_op *op)
{
    const struct sim_wgmma *g = sim_wgmma_of(op);
    struct sim_wgmma_flight f = {.op = sim_pc(w, op)};
    uint32_t adds;
    memcpy(&adds, w->r + op->c, 4);
    if ((!g->m.na && !same_in_all(w, op, op->a, &f.a)) || !same_in_all(w, op, op->b, &f.b))
        return NULL;
    if (adds && adds != UINT32_MAX) {
        const uint32_t odd = adds & 1 ? ~adds : adds;
        fail(w, op,
             (struct sim_fault){
                 .kind = SIM_F_WGMMA, .why = SIM_WG_LANES, .lane = (uint32_t)__builtin_ctz(odd)});
        return NULL;
    }
    f.adds = adds;
    if (!sim_wgmma_agree(w, op, f.a, f.b, f.adds) || !inside(w, op, &f))
        return NULL;
    if (w->block->check) {
        struct sim_wgmma_reads reads[SIM_WGMMA_READS];
        sim_check_wgmma(w, op, reads, sim_wgmma_reads(w, &f, reads));
    }
    f.group = w->wgmmas->committed;
    if (!push(w->wgmmas, &f))
        return sim_fault_at(w, op, 0, SIM_F_MEMORY);
    drift(w, 8);
    return op + 1;
}

const struct sim_op *sim_wgmma_fence(struct sim_warp *w, const struct sim_op *op)
{
    if (!sim_wgmma_agree(w, op, 0, 0, false))
        return NULL;
    if (w->block->check)
        sim_check_wgmma_fence(w);
    return op + 1;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Those of its group that wait look again. */
static void wake(struct sim_warp *w)
{
    const uint32_t first = w->index - w->index % SIM_WARPGROUP;
    struct sim_warp *group = w->block->warp + first;
    for (uint32_t i = 0; i < SIM_WARPGROUP && first + i < w->block->nwarp; i++)
        for (uint32_t k = 0; group[i].started && k < group[i].ngroup; k++)
            if (group[i].group[k].waits == SIM_WAIT_WARPGROUP)
                group[i].group[k].waits = 0;
}

const struct sim_op *sim_wgmma_commit(struct sim_warp *w, const struct sim_op *op)
{
    if (!sim_wgmma_agree(w, op, 0, 0, false))
        return NULL;
    w->wgmmas->committed++;
    if (w->block->check)
        sim_check_wgmma_commit(w);
    wake(w);
    drift(w, 4);
    return op + 1;
}

/* How many groups must be done when the warp goes on behind op. */
static uint32_t wanted(const struct sim_warp *w, const struct sim_op *op)
{
    const uint32_t n = w->wgmmas ? w->wgmmas->committed : 0;
    return n > op->imm ? n - (uint32_t)op->imm : 0;
}

uint32_t sim_wgmma_missing(const struct sim_warp *w, const struct sim_op *op)
{
    const struct sim_warp *group = w - w->index % SIM_WARPGROUP;
    const uint32_t limit = wanted(w, op);
    uint32_t missing = 0;
    for (uint32_t i = 0; limit && i < SIM_WARPGROUP; i++) {
        const struct sim_wgmmas *g = group[i].started ? group[i].wgmmas : NULL;
        if (!g || g->committed < limit)
            missing |= 1u << (w->index - w->index % SIM_WARPGROUP + i);
    }
    return missing;
}

const struct sim_op *sim_wgmma_wait(struct sim_warp *w, const struct sim_op *op)
{
    struct sim_warp *group = w - w->index % SIM_WARPGROUP;
    const uint32_t limit = wanted(w, op), missing = sim_wgmma_missing(w, op);
    FOR_LANES(lane, missing) {
        const struct sim_warp *other = &w->block->warp[lane];
        if (other->started && !other->live) {
            fail(w, op,
                 (struct sim_fault){
                     .kind = SIM_F_WGMMA, .why = SIM_WG_LEFT, .others = other->index});
            return NULL;
        }
    }
    if (missing) {
        sim_count(w, op);
        sim_push(w, sim_pc(w, op), w->mask, SIM_WAIT_WARPGROUP);
        return sim_next_group(w);
    }
    if (!sim_wgmma_agree(w, op, 0, 0, false))
        return NULL;
    for (uint32_t i = 0; limit && i < SIM_WARPGROUP; i++) {
        struct sim_wgmmas *g = group[i].wgmmas;
        uint32_t n = 0;
        while (g->head + n < g->n && g->v[g->head + n].group < limit)
            n++;
        land(&group[i], n);
    }
    if (w->block->check)
        sim_check_wgmma_wait(w, (uint32_t)op->imm);
    return op + 1;
}

bool sim_wgmma_exit(struct sim_warp *w, const struct sim_op *op)
{
    const uint32_t first = w->index - w->index % SIM_WARPGROUP;
    const uint32_t issued = w->wgmmas ? w->wgmmas->issued : 0;
    for (uint32_t i = first; i < first + SIM_WARPGROUP && i < w->block->nwarp; i++) {
        const struct sim_warp *other = &w->block->warp[i];
        if (other->started && other->wgmmas && other->wgmmas->issued > issued)
            return fail(w, op,
                        (struct sim_fault){.kind = SIM_F_WGMMA,
                                           .why = SIM_WG_APART,
                                           .others = i,
                                           .bytes = logged(other->wgmmas, issued)->op});
    }
    if (w->wgmmas)
        w->wgmmas->head = w->wgmmas->n = 0;
    wake(w);
    return true;
}

/* ---- without a warp -------------------------------------------------------------------------- */

void sim_wgmmas_reset(struct sim_wgmmas *g)
{
    if (g)
        g->head = g->n = g->committed = g->issued = 0;
}

void sim_wgmmas_free(struct sim_wgmmas *g)
{
    if (!g)
        return;
    free(g->v);
    free(g);
}
