/* Proxies. Loads and stores go through the generic proxy, bulk copies, tensor copies and wgmma
 * through the async proxy: what a thread has written is seen there once the thread has executed
 * fence.proxy.async, and whoever issues the operation knows of that; or once who issues it has
 * executed one, knowing of the write (PTX ISA, "proxies" and membar/fence: proxy fences compose
 * with other synchronisation).
 *
 * A warp keeps the clocks of its last fences. What is older than the oldest of them, if some have
 * been forgotten, counts as fenced.
 */
#include <config.h>

#include "sim/check.h"

#include <stdlib.h>

/* Which spaces a fence is for: bits by enum sim_space. */
static uint32_t spaces_of(const struct ptx_inst *in)
{
    if (in->op != PTX_OP_FENCE_PROXY_SPACE)
        return 1u << SIM_IN_SHARED | 1u << SIM_IN_GLOBAL;
    return in->mod[PTX_MC_SPACE] == PTX_GLOBAL ? 1u << SIM_IN_GLOBAL : 1u << SIM_IN_SHARED;
}

/* fence.mbarrier_init: for objects that these lanes have made, not for data. */
static void fence_objects(struct sim_warp *w, uint32_t lanes)
{
    for (uint32_t i = 0; i < w->block->check->nmbar; i++) {
        struct check_mbar *m = &w->block->check->mbar[i];
        const uint32_t thread = check_thread_of(&m->init);
        if (m->live && thread / SIM_LANES == w->index && lanes >> thread % SIM_LANES & 1)
            m->fenced = true;
    }
}

/* What a lane knows now of its block. */
static void view(const struct sim_warp *w, uint32_t lanes, uint32_t clock, struct check_view *v)
{
    const struct check_block *cb = w->block->check;
    const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
    v->clock = clock;
    v->lanes = lanes;
    v->base = cb->base;
    v->warp = cb->warp[w->index].base;
    for (uint32_t i = 0; i < w->block->nwarp; i++)
        v->warps[i] = cb->warps ? cb->warps[w->index * SIM_MAX_WARPS + i] : 0;
    struct check_known *const known[2] = {
        cb->thread ? cb->thread[w->index * SIM_LANES + lane].lists.acquired : NULL,
        cb->lists.acquired};
    for (int i = 0; i < 2; i++) {
        check_known_drop(v->known[i]);
        v->known[i] = check_known_ref(known[i]);
    }
}

void check_fences_free(struct check_fences *f)
{
    for (int i = 0; f && i < 4; i++)
        check_known_drop(f->last[i / 2].known[i % 2]);
    free(f);
}

void check_proxy_fence(struct sim_warp *w, const struct sim_op *op, uint32_t lanes)
{
    struct check *c = w->block->launch->check;
    struct check_warp *cw = &w->block->check->warp[w->index];
    const struct ptx_inst *in = &w->block->launch->code->func->items.v[op->item].inst;
    if (in->op == PTX_OP_FENCE_MBARRIER_INIT) {
        fence_objects(w, lanes);
        return;
    }
    if (!cw->fences && !(cw->fences = calloc(1, sizeof *cw->fences))) {
        c->starved = true;
        return;
    }
    const uint32_t k = cw->fences->n++ % CHECK_GROUPS;
    cw->fences->at[k].clock = check_tick(c);
    cw->fences->at[k].lanes = lanes;
    cw->fences->at[k].spaces = spaces_of(in);
    for (int i = 0; i < 2; i++)
        if (cw->fences->at[k].spaces >> i & 1)
            view(w, lanes, cw->fences->at[k].clock, &cw->fences->last[i]);
}

/* The block of the cluster with that index. */
static const struct sim_block *block_of(const struct sim_block *near, uint32_t index)
{
    for (uint32_t i = 0; i < near->npeer; i++)
        if ((uint32_t)near->peer[i]->index == index)
            return near->peer[i];
    return NULL;
}

/* Has a lane fenced since it knew of the write? */
static bool fenced_here(const struct sim_warp *w, uint32_t lane, const struct check_slot *s,
                        unsigned space)
{
    const struct check_fences *f = w->block->check->warp[w->index].fences;
    const struct check_view *v = f ? &f->last[space] : NULL;
    const uint32_t thread = check_thread_of(s);
    if (!v || !(v->lanes >> lane & 1))
        return false;
    if (s->block == (uint32_t)w->block->index &&
        (s->clock <= v->base || s->clock <= v->warps[thread / SIM_LANES] ||
         (thread / SIM_LANES == w->index && s->clock <= v->warp)))
        return true;
    return check_known_has(v->known[0], s) || check_known_has(v->known[1], s);
}

bool check_proxy_reached(const struct sim_warp *w, uint32_t lane, const struct check_slot *s,
                         unsigned space)
{
    const struct sim_block *b = block_of(w->block, s->block);
    const uint32_t thread = check_thread_of(s);
    if (!b || !b->check || fenced_here(w, lane, s, space))
        return true; /* what other clusters fence is not followed */
    const struct check_fences *f = b->check->warp[thread / SIM_LANES].fences;
    const uint32_t n = f ? f->n : 0, kept = n < CHECK_GROUPS ? n : CHECK_GROUPS;
    if (n > kept && s->clock < f->at[n % CHECK_GROUPS].clock)
        return true;
    for (uint32_t i = n - kept; i < n; i++) {
        const uint32_t clock = f->at[i % CHECK_GROUPS].clock;
        if (clock < s->clock || !(f->at[i % CHECK_GROUPS].lanes >> thread % SIM_LANES & 1) ||
            !(f->at[i % CHECK_GROUPS].spaces >> space & 1))
            continue;
        const struct check_slot fence = check_slot_of(s->block, clock, thread, 0);
        return check_ordered(w, lane, &fence);
    }
    return false;
}
