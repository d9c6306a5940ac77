/* Blocks and their warps: register files, special registers, and the order in which warps run. */
#include <config.h>

#include <stdlib.h>

#include "sim/block.h"
#include "sim/check.h"
#include "sim/flight.h"
#include "sim/mbarrier.h"
#include "sim/wgmma.h"

/* ---- register files -------------------------------------------------------------------------- */

static void fill32(unsigned char *slot, uint32_t v)
{
    for (unsigned i = 0; i < SIM_LANES; i++)
        memcpy(slot + 4 * i, &v, 4);
}

static void fill64(unsigned char *slot, uint64_t v)
{
    for (unsigned i = 0; i < SIM_LANES; i++)
        memcpy(slot + 8 * i, &v, 8);
}

/* A file with constants in place; NULL when there is no memory. */
static unsigned char *file_get(struct sim_worker *k)
{
    if (k->nspare)
        return k->spare_file[--k->nspare];
    const struct sim_code *code = k->launch->code;
    void *p;
    if (posix_memalign(&p, SIM_SLOT, code->file_bytes) != 0)
        return NULL;
    unsigned char *file = p;
    memset(file, 0, code->file_bytes);
    for (size_t i = 0; i < code->consts.n; i++) {
        const struct sim_const *c = &code->consts.v[i];
        if (c->wide)
            fill64(file + c->off, c->bits);
        else
            fill32(file + c->off, (uint32_t)c->bits);
    }
    for (size_t i = 0; i < code->specials.n; i++)
        sim_special(k->launch, NULL, code->specials.v[i].reg, file + code->specials.v[i].off);
    return file;
}

static void file_put(struct sim_worker *k, unsigned char *file)
{
    if (k->nspare == k->cap_spare) {
        const uint32_t cap = k->cap_spare ? 2 * k->cap_spare : 32;
        unsigned char **grown = realloc(k->spare_file, cap * sizeof *grown);
        if (!grown) {
            free(file);
            return;
        }
        k->spare_file = grown;
        k->cap_spare = cap;
    }
    k->spare_file[k->nspare++] = file;
}

/* ---- special registers ----------------------------------------------------------------------- */

static void thread_ids(const struct sim_launch *l, const struct sim_warp *w, unsigned axis,
                       unsigned char *slot)
{
    const struct device_dim *n = &l->what->block;
    for (uint32_t i = 0; i < SIM_LANES; i++) {
        const uint32_t t = w->index * SIM_LANES + i;
        const uint32_t v = axis == 0 ? t % n->x : axis == 1 ? t / n->x % n->y : t / n->x / n->y;
        memcpy(slot + 4 * i, &v, 4);
    }
}

static void lane_masks(enum ptx_sreg reg, unsigned char *slot)
{
    for (uint32_t i = 0; i < SIM_LANES; i++) {
        const uint32_t eq = 1u << i, lt = eq - 1;
        uint32_t v = i;
        switch (reg) {
        case PTX_SR_LANEMASK_EQ: v = eq; break;
        case PTX_SR_LANEMASK_LT: v = lt; break;
        case PTX_SR_LANEMASK_LE: v = lt | eq; break;
        case PTX_SR_LANEMASK_GT: v = ~(lt | eq); break;
        case PTX_SR_LANEMASK_GE: v = ~lt; break;
        default: break;
        }
        memcpy(slot + 4 * i, &v, 4);
    }
}

/* Those that every lane of every warp of the launch sees alike, and the lane's own. */
static bool special_fixed(const struct sim_launch *l, enum ptx_sreg reg, unsigned char *slot)
{
    const struct device_dim *n = &l->what->block, *g = &l->what->grid, *c = &l->cluster;
    switch (reg) {
    case PTX_SR_NTID_X: fill32(slot, n->x); return true;
    case PTX_SR_NTID_Y: fill32(slot, n->y); return true;
    case PTX_SR_NTID_Z: fill32(slot, n->z); return true;
    case PTX_SR_NCTAID_X: fill32(slot, g->x); return true;
    case PTX_SR_NCTAID_Y: fill32(slot, g->y); return true;
    case PTX_SR_NCTAID_Z: fill32(slot, g->z); return true;
    case PTX_SR_CLUSTER_NCTAID_X: fill32(slot, c->x); return true;
    case PTX_SR_CLUSTER_NCTAID_Y: fill32(slot, c->y); return true;
    case PTX_SR_CLUSTER_NCTAID_Z: fill32(slot, c->z); return true;
    case PTX_SR_CLUSTER_NCTARANK: fill32(slot, l->ncluster); return true;
    case PTX_SR_NCLUSTERID_X: fill32(slot, g->x / c->x); return true;
    case PTX_SR_NCLUSTERID_Y: fill32(slot, g->y / c->y); return true;
    case PTX_SR_NCLUSTERID_Z: fill32(slot, g->z / c->z); return true;
    case PTX_SR_LANEID:
    case PTX_SR_LANEMASK_EQ:
    case PTX_SR_LANEMASK_LT:
    case PTX_SR_LANEMASK_LE:
    case PTX_SR_LANEMASK_GT:
    case PTX_SR_LANEMASK_GE: lane_masks(reg, slot); return true;
    case PTX_SR_NWARPID: fill32(slot, SIM_MAX_WARPS * 2); return true;
    case PTX_SR_SMID: fill32(slot, 0); return true;
    case PTX_SR_NSMID: fill32(slot, 1); return true;
    case PTX_SR_GRIDID: fill64(slot, 1); return true;
    case PTX_SR_DYNAMIC_SMEM_SIZE: fill32(slot, l->what->shared_bytes); return true;
    case PTX_SR_TOTAL_SMEM_SIZE:
    case PTX_SR_AGGR_SMEM_SIZE: fill32(slot, (uint32_t)l->shared_bytes); return true;
    case PTX_SR_RESERVED_SMEM_BEGIN:
    case PTX_SR_RESERVED_SMEM_0:
        fill32(slot, (uint32_t)l->shared_bytes - SIM_RESERVED);
        return true;
    case PTX_SR_RESERVED_SMEM_1: /* cooperative groups have 288 bytes there */
        fill32(slot, (uint32_t)l->shared_bytes - SIM_RESERVED / 2);
        return true;
    case PTX_SR_RESERVED_SMEM_END: fill32(slot, (uint32_t)l->shared_bytes); return true;
    case PTX_SR_RESERVED_SMEM_CAP: fill32(slot, SIM_RESERVED); return true;
    case PTX_SR_IS_EXPLICIT_CLUSTER:
        fill32(slot, l->what->cluster.x || l->ncluster > 1 ? UINT32_MAX : 0);
        return true;
    default: return false;
    }
}

bool sim_special(const struct sim_launch *l, const struct sim_warp *w, enum ptx_sreg reg,
                 unsigned char *slot)
{
    if (!w)
        return special_fixed(l, reg, slot);
    const struct sim_block *b = w->block;
    const struct device_dim *c = &l->cluster;
    switch (reg) {
    case PTX_SR_TID_X: thread_ids(l, w, 0, slot); return true;
    case PTX_SR_TID_Y: thread_ids(l, w, 1, slot); return true;
    case PTX_SR_TID_Z: thread_ids(l, w, 2, slot); return true;
    case PTX_SR_CTAID_X: fill32(slot, b->at.x); return true;
    case PTX_SR_CTAID_Y: fill32(slot, b->at.y); return true;
    case PTX_SR_CTAID_Z: fill32(slot, b->at.z); return true;
    case PTX_SR_CLUSTERID_X: fill32(slot, b->at.x / c->x); return true;
    case PTX_SR_CLUSTERID_Y: fill32(slot, b->at.y / c->y); return true;
    case PTX_SR_CLUSTERID_Z: fill32(slot, b->at.z / c->z); return true;
    case PTX_SR_CLUSTER_CTAID_X: fill32(slot, b->at.x % c->x); return true;
    case PTX_SR_CLUSTER_CTAID_Y: fill32(slot, b->at.y % c->y); return true;
    case PTX_SR_CLUSTER_CTAID_Z: fill32(slot, b->at.z % c->z); return true;
    case PTX_SR_CLUSTER_CTARANK: fill32(slot, b->rank); return true;
    case PTX_SR_WARPID: fill32(slot, w->index); return true;
    default: return false;
    }
}

bool sim_special_known(enum ptx_sreg reg)
{
    switch (reg) {
    case PTX_SR_NWARPID:
    case PTX_SR_SMID:
    case PTX_SR_NSMID:
    case PTX_SR_GRIDID:
    case PTX_SR_RESERVED_SMEM_BEGIN:
    case PTX_SR_RESERVED_SMEM_END:
    case PTX_SR_RESERVED_SMEM_CAP:
    case PTX_SR_RESERVED_SMEM_0:
    case PTX_SR_RESERVED_SMEM_1:
    case PTX_SR_DYNAMIC_SMEM_SIZE:
    case PTX_SR_TOTAL_SMEM_SIZE:
    case PTX_SR_AGGR_SMEM_SIZE:
    case PTX_SR_IS_EXPLICIT_CLUSTER: return true;
    default:
        return (reg >= PTX_SR_TID_X && reg <= PTX_SR_WARPID) ||
               (reg >= PTX_SR_CLUSTERID_X && reg <= PTX_SR_LANEMASK_GT);
    }
}
_Static_assert(PTX_SR_WARPID - PTX_SR_TID_X == 13 && PTX_SR_LANEMASK_GT - PTX_SR_CLUSTERID_X == 18,
               "the special registers in between are all known");

/* ---- blocks ---------------------------------------------------------------------------------- */

void sim_block_free(struct sim_block *b)
{
    if (!b)
        return;
    for (uint32_t i = 0; i < b->nwarp; i++) {
        if (b->warp[i].r)
            file_put(b->worker, b->warp[i].r);
        sim_copies_free(b->warp[i].copies);
        sim_wgmmas_free(b->warp[i].wgmmas);
    }
    sim_check_block_free(b);
    sim_flights_free(b);
    sim_mbars_free(b);
    free(b->shared);
    free(b->local);
    free(b);
}

static struct sim_block *block_alloc(struct sim_worker *k)
{
    const struct sim_launch *l = k->launch;
    const uint32_t nwarp = (l->threads + SIM_LANES - 1) / SIM_LANES;
    void *p;
    if (posix_memalign(&p, SIM_SLOT, sizeof(struct sim_block) + nwarp * sizeof(struct sim_warp)) !=
        0)
        return NULL;
    struct sim_block *b = p;
    memset(b, 0, sizeof *b + nwarp * sizeof(struct sim_warp));
    b->worker = k;
    b->launch = k->launch;
    b->nwarp = nwarp;
    b->shared_bytes = l->shared_bytes;
    const size_t local = (size_t)nwarp * SIM_LANES * (size_t)l->code->local_bytes;
    if (posix_memalign(&p, 256, l->shared_bytes ? (size_t)l->shared_bytes : 1) == 0)
        b->shared = p;
    if (local && posix_memalign(&p, 256, local) == 0)
        b->local = p;
    if (!b->shared || (local && !b->local)) {
        sim_block_free(b);
        return NULL;
    }
    return b;
}

static void put_back(struct sim_worker *k, struct sim_block *b)
{
    if (b->check)
        sim_check_block_end(b);
    b->next = k->spare_block;
    k->spare_block = b;
}

/* A block that has not begun, at this place of the grid. */
static struct sim_block *block_new(struct sim_worker *k, struct device_dim at)
{
    const struct sim_launch *l = k->launch;
    struct sim_block *b = k->spare_block;
    if (b)
        k->spare_block = b->next;
    else if (!(b = block_alloc(k)))
        return NULL;
    const struct device_dim *g = &l->what->grid;
    b->index = at.x + (uint64_t)g->x * (at.y + (uint64_t)g->y * at.z);
    b->at = at;
    b->alone = b;
    b->peer = &b->alone;
    b->npeer = 1;
    b->rank = b->cluster_came = b->spare_registers = 0;
    b->nlive = l->threads;
    b->nwarp_live = b->nwarp;
    b->count = 0;
    b->spins = false;
    b->watch = (struct sim_watch){0};
    sim_mbars_reset(b);
    b->fault = (struct sim_fault){0};
    b->next = NULL;
    memset(b->barrier, 0, sizeof b->barrier);
    for (uint32_t i = 0; i < b->nwarp; i++)
        b->warp[i].started = false;
    if (l->shared_bytes)
        memset(b->shared, 0, (size_t)l->shared_bytes);
    if (b->local)
        memset(b->local, 0, (size_t)b->nwarp * SIM_LANES * (size_t)l->code->local_bytes);
    if (l->check && sim_check_alone(l->check) && !sim_check_block_start(b)) {
        sim_block_free(b);
        return NULL;
    }
    return b;
}

void sim_unit_free(struct sim_block *b)
{
    struct sim_block **peer = b->npeer > 1 ? b->peer : NULL;
    for (uint32_t i = b->npeer; i-- > 1;)
        sim_block_free(peer[i]);
    free(peer);
    sim_block_free(b);
}

void sim_unit_retire(struct sim_block *b)
{
    struct sim_worker *k = b->worker;
    struct sim_block **peer = b->npeer > 1 ? b->peer : NULL;
    if (b->check)
        sim_check_unit_end(b);
    for (uint32_t i = b->npeer; i-- > 1;)
        put_back(k, peer[i]);
    free(peer);
    put_back(k, b);
}

struct sim_block *sim_unit_new(struct sim_worker *k, uint64_t turn)
{
    const struct sim_launch *l = k->launch;
    const struct device_dim *g = &l->what->grid, *c = &l->cluster;
    const uint32_t nx = g->x / c->x, ny = g->y / c->y;
    const struct device_dim corner = {(uint32_t)(turn % nx) * c->x,
                                      (uint32_t)(turn / nx % ny) * c->y,
                                      (uint32_t)(turn / nx / ny) * c->z};
    struct sim_block *first = block_new(k, corner);
    if (!first)
        return NULL;
    first->turn = turn;
    sim_flights_begin(first);
    if (l->ncluster == 1)
        return first;
    struct sim_block **peer = calloc(l->ncluster, sizeof *peer);
    if (!peer) {
        sim_block_free(first);
        return NULL;
    }
    peer[0] = first;
    first->peer = peer;
    for (uint32_t i = 1; i < l->ncluster; i++) {
        const struct device_dim at = {corner.x + i % c->x, corner.y + i / c->x % c->y,
                                      corner.z + i / c->x / c->y};
        if (!(peer[i] = block_new(k, at))) {
            sim_unit_free(first);
            return NULL;
        }
        first->npeer = i + 1;
        peer[i]->turn = turn;
        peer[i]->rank = i;
        peer[i]->peer = peer;
        peer[i]->npeer = l->ncluster;
    }
    return first;
}

bool sim_warp_start(struct sim_block *b, uint32_t index)
{
    const struct sim_launch *l = b->launch;
    const struct sim_code *code = l->code;
    struct sim_warp *w = &b->warp[index];
    const uint32_t left = l->threads - index * SIM_LANES;
    const uint32_t mask = left >= SIM_LANES ? UINT32_MAX : (1u << left) - 1;
    unsigned char *file = file_get(b->worker);
    if (!file)
        return false;
    memset(file, 0, code->zero_bytes);
    sim_copies_reset(w->copies);
    sim_wgmmas_reset(w->wgmmas);
    *w = (struct sim_warp){.r = file,
                           .block = b,
                           .index = index,
                           .live = mask,
                           .started = true,
                           .registers = code->registers,
                           .copies = w->copies,
                           .wgmmas = w->wgmmas};
    w->code = code->op;
    w->rank = code->rank;
    w->cache = b->worker->cache;
    w->local_bytes = code->local_bytes;
    if (b->local)
        w->local = b->local + (size_t)index * SIM_LANES * (size_t)code->local_bytes;
    w->group[0] = (struct sim_group){.mask = mask};
    w->ngroup = 1;
    for (size_t i = 0; i < code->specials.n; i++)
        sim_special(l, w, code->specials.v[i].reg, file + code->specials.v[i].off);
    return true;
}

static enum sim_stop fail(struct sim_block *b, enum sim_fault_kind kind)
{
    b->fault = (struct sim_fault){.kind = kind, .block = b->index, .turn = b->turn};
    return SIM_FAULT;
}

/* Runs the warp and takes leave of it when it is done. */
static void run_warp(struct sim_block *b, struct sim_warp *w)
{
    sim_warp_run(w);
    if (b->launch->seed && w->stop != SIM_FAULT)
        sim_wgmma_stopped(w);
    b->count += w->count - w->counted;
    w->counted = w->count;
    if (w->stop == SIM_DONE) {
        file_put(b->worker, w->r);
        w->r = NULL;
    }
}

/* Each warp of the block that can run has a slice, the first one first: SIM_YIELD, or SIM_BLOCKED
 * when none could. */
static enum sim_stop run_round(struct sim_block *b, uint32_t first)
{
    struct sim_block *const unit = b->peer[0];
    enum sim_stop stop = SIM_BLOCKED;
    b->spins = true;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        const uint32_t i = first + k < b->nwarp ? first + k : first + k - b->nwarp;
        struct sim_warp *w = &b->warp[i];
        if (!w->started && !sim_warp_start(b, i))
            return fail(b, SIM_F_MEMORY);
        if (!w->live || !sim_warp_ready(w))
            continue;
        if (unit->flights.random && unit->flights.first && sim_flight_drift(unit) == SIM_FAULT) {
            b->fault = unit->fault;
            return SIM_FAULT;
        }
        stop = SIM_YIELD;
        run_warp(b, w);
        if (w->stop == SIM_FAULT)
            return SIM_FAULT;
        b->spins &= w->stop == SIM_YIELD && w->spun;
    }
    return stop;
}

/* Every thread of the unit waits or spins: what is in flight goes on, or the time of waits is over.
 * SIM_BLOCKED: only another unit can help. */
static enum sim_stop move_on(struct sim_block *b, bool blocked)
{
    const enum sim_stop stop = sim_flight_step(b);
    if (stop != SIM_BLOCKED || !blocked)
        return stop;
    if (!sim_mbar_waiting(b) || (!b->launch->code->ordered && sim_unit_stuck(b)))
        return fail(b, SIM_F_DEADLOCK);
    if (b->launch->code->ordered)
        return SIM_BLOCKED;
    sim_mbar_expire(b);
    return SIM_YIELD;
}

/* A round of all blocks: as run_round(). With a seed it is drawn who comes first, unless threads
 * only spin: these are found to be stuck when they do the same for ever. */
static enum sim_stop run_peers(struct sim_block *b, bool draws, bool *spins, uint32_t *live)
{
    enum sim_stop all = SIM_BLOCKED;
    const uint32_t first = draws ? sim_draw(b, b->npeer) : 0;
    *spins = true;
    *live = 0;
    for (uint32_t i = 0; i < b->npeer; i++) {
        struct sim_block *p = b->peer[(first + i) % b->npeer];
        const enum sim_stop stop = run_round(p, draws ? sim_draw(b, p->nwarp) : 0);
        if (stop == SIM_FAULT) {
            b->fault = p->fault;
            return SIM_FAULT;
        }
        *spins &= p->spins;
        all = stop == SIM_YIELD ? SIM_YIELD : all;
    }
    for (uint32_t i = 0; i < b->npeer; i++)
        *live += b->peer[i]->nlive;
    return all;
}

enum sim_stop sim_unit_run(struct sim_block *b, unsigned rounds)
{
    b->next = NULL;
    if (b->spins)
        sim_mbar_expire(b);
    while (rounds--) {
        bool spins;
        uint32_t live;
        const bool draws = b->flights.random && !b->spins && !b->watch.turns;
        const enum sim_stop all = run_peers(b, draws, &spins, &live);
        if (all == SIM_FAULT)
            return SIM_FAULT;
        if (!live)
            return sim_flight_end(b);
        b->spins = false;
        if (!spins)
            continue;
        const enum sim_stop stop = move_on(b, all == SIM_BLOCKED);
        if (stop == SIM_FAULT)
            return SIM_FAULT;
        b->spins = stop == SIM_BLOCKED;
        if (b->spins)
            break;
    }
    return SIM_YIELD;
}

bool sim_unit_waits(const struct sim_block *b)
{
    for (uint32_t i = 0; i < b->npeer; i++)
        for (uint32_t k = 0; k < b->nwarp; k++)
            if (b->peer[i]->warp[k].live && sim_warp_ready(&b->peer[i]->warp[k]))
                return false;
    return true;
}

uint64_t sim_unit_count(const struct sim_block *b)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < b->npeer; i++)
        count += b->peer[i]->count;
    return count;
}
