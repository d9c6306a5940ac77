/* Has a launch stopped making headway, though its threads run?
 *
 * When all threads that can run go round in loops that may wait for others, the state of everything
 * is looked at now and then: memory, and where each lane stands with which registers. The simulator
 * is deterministic, so when a state comes back the launch would go on like that for ever. (Where
 * several workers run blocks, none of these can learn from the others by any loop that counts as
 * one that may wait; so its own blocks are all that a worker looks at.) States are compared by a
 * 64-bit number made of them, with a state saved in every round whose number is a power of two
 * (Brent, An improved Monte Carlo factorization algorithm, 1980, has that way to find a cycle).
 */
#include <config.h>

#include "sim/block.h"
#include "sim/wgmma.h"
#include "sim/flight.h"

enum {
    FIRST = 64,    /* rounds before anything is looked at */
    ROUNDS = 64,   /* that a state is compared with those after it: more than lanes or warps take
                      turns in */
    MOST = 1 << 30 /* bytes to look at for one saved state */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t mix_bytes(uint64_t h, const unsigned char *p, uint64_t bytes)
{
    enum { WAYS = 4 };
    uint64_t way[WAYS] = {h, 1, 2, 3}, i = 0;
    for (; i + 8 * WAYS <= bytes; i += 8 * WAYS)
        for (unsigned k = 0; k < WAYS; k++) {
            uint64_t v;
            memcpy(&v, p + i + 8 * k, 8);
            way[k] = mix(way[k], v);
        }
    for (; i < bytes; i++)
        way[0] = mix(way[0], p[i]);
    return mix(mix(mix(way[0], way[1]), way[2]), way[3]);
}

static uint64_t mix_warp(uint64_t h, const struct sim_warp *w, uint64_t file_bytes)
{
    h = mix(h, (uint64_t)w->live << 1 | w->started);
    if (!w->started || !w->live)
        return h;
    for (uint32_t g = 0; g < w->ngroup; g++) {
        h = mix(h, (uint64_t)w->group[g].pc << 32 | w->group[g].mask);
        h = mix(h, w->group[g].waits);
    }
    h = mix(h, w->cluster_came);
    h = mix_bytes(h, (const unsigned char *)w->came, sizeof w->came);
    if (w->wgmmas)
        h = mix(h, (uint64_t)w->wgmmas->issued << 32 | (w->wgmmas->n - w->wgmmas->head));
    return mix_bytes(h, w->r, file_bytes);
}

static uint64_t mix_block(uint64_t h, const struct sim_block *b)
{
    const struct sim_code *code = b->launch->code;
    for (const struct sim_flight *f = b->flights.first; f; f = f->next)
        h = mix(h, (uint64_t)f->op << 32 | f->begun);
    for (unsigned i = 0; i < SIM_BARRIERS; i++)
        h = mix(h, (uint64_t)b->barrier[i].arrived << 32 | b->barrier[i].expected);
    for (uint32_t i = 0; i < b->nwarp; i++)
        h = mix_warp(h, &b->warp[i], code->file_bytes);
    h = mix_bytes(h, b->shared, b->shared_bytes);
    return b->local ? mix_bytes(h, b->local, (uint64_t)b->nwarp * SIM_LANES * code->local_bytes)
                    : h;
}

static uint64_t bytes_of(const struct sim_launch *l, uint64_t blocks)
{
    const uint64_t warps = (l->threads + SIM_LANES - 1) / SIM_LANES;
    return (l->code->ordered ? l->memory->bytes : 0) +
           blocks * (l->shared_bytes + warps * l->code->file_bytes +
                     warps * SIM_LANES * l->code->local_bytes);
}

static uint64_t state(const struct sim_launch *l, const struct sim_block *queue)
{
    uint64_t h = 0;
    for (unsigned i = SIM_WINDOW_FIRST; l->code->ordered && i < SIM_WINDOWS; i++) {
        const struct sim_buffer *m = &l->memory->window[i];
        if (m->host && !m->read_only)
            h = mix_bytes(h, m->host, m->bytes);
    }
    for (; queue; queue = queue->next)
        for (uint32_t i = 0; i < queue->npeer; i++)
            h = mix_block(h, queue->peer[i]);
    return h;
}

bool sim_stuck(struct sim_watch *w, const struct sim_launch *l, const struct sim_block *queue,
               uint32_t n)
{
    if (++w->turns % n != 0)
        return false;
    const uint64_t round = w->turns / n;
    if (round < FIRST)
        return false;
    if ((round & (round - 1)) == 0) {
        const uint64_t rounds = MOST / bytes_of(l, (uint64_t)n * l->ncluster);
        w->saved = state(l, queue);
        w->until = round + (rounds > ROUNDS ? ROUNDS : rounds ? rounds : 1);
        return false;
    }
    return round <= w->until && state(l, queue) == w->saved;
}

bool sim_unit_stuck(struct sim_block *b)
{
    return sim_stuck(&b->watch, b->launch, b, 1);
}
