/* A grid of blocks over worker threads.
 *
 * Workers take blocks in order of their index, so when one fails all lower ones have been taken: they are run to
 * their end, and the failure of the lowest is the launch's, whatever the number of workers. A block that has had a
 * long turn steps back behind the next ones, so that blocks which wait for each other make progress.
 */
#include <config.h>

#include <stdlib.h>

#include "sim/block.h"

enum {
    RESIDENT = 64, /* blocks begun and not finished, per worker */
    ROUNDS = 64,   /* slices that each warp of a block gets in a turn */
};

static uint64_t stop_after(struct sim_launch *l)
{
    return atomic_load_explicit(&l->stop_after, memory_order_relaxed);
}

/* Where every group of the block's lanes stands. */
static void list_stands(struct arena *a, const struct sim_block *b, struct sim_fault *f)
{
    for (uint32_t i = 0; i < b->nwarp; i++)
        for (uint32_t g = 0; g < b->warp[i].ngroup; g++) {
            struct sim_stand *s = VEC_PUSH(a, &f->stands);
            *s = sim_stand_of(&b->warp[i], &b->warp[i].group[g]);
        }
}

static void record_fault(struct sim_launch *l, const struct sim_block *b,
                         const struct sim_fault *fault)
{
    if (fault->kind == SIM_F_ABANDONED)
        return;
    pthread_mutex_lock(&l->lock);
    if (l->fault.kind == SIM_NO_FAULT || fault->block < l->fault.block) {
        l->fault = *fault;
        if (b && (fault->kind == SIM_F_DEADLOCK || fault->kind == SIM_F_LIMIT ||
                  fault->kind == SIM_F_INTERRUPTED))
            list_stands(l->arena, b, &l->fault);
        atomic_store(&l->stop_after, fault->block);
    }
    pthread_mutex_unlock(&l->lock);
}

/* The next block to begin, NULL when there is none. */
static struct sim_block *next_block(struct sim_worker *k)
{
    struct sim_launch *l = k->launch;
    if (stop_after(l) != UINT64_MAX || atomic_load(&l->count) > l->limit)
        return NULL;
    const uint64_t index = atomic_fetch_add(&l->next_block, 1);
    if (index >= l->nblock)
        return NULL;
    if (l->interrupted && *l->interrupted) {
        const struct sim_fault f = {.kind = SIM_F_INTERRUPTED, .block = index};
        record_fault(l, NULL, &f);
        return NULL;
    }
    struct sim_block *b = sim_block_new(k, index);
    if (!b) {
        const struct sim_fault f = {.kind = SIM_F_MEMORY, .block = index};
        record_fault(l, NULL, &f);
    }
    return b;
}

static void retire(struct sim_worker *k, struct sim_block *b)
{
    atomic_fetch_add(&k->launch->count, b->count);
    atomic_fetch_add_explicit(&k->launch->done, 1, memory_order_relaxed);
    b->next = k->spare_block;
    k->spare_block = b;
}

/* The clock is looked at behind this, so not in every turn. */
static void tell(const struct sim_launch *l, unsigned turn)
{
    enum { TURNS = 16 };
    if (l->progress && turn % TURNS == 0)
        l->progress(l->progress_ctx, atomic_load_explicit(&l->done, memory_order_relaxed),
                    l->nblock);
}

static void work(struct sim_worker *k, bool caller)
{
    struct sim_launch *l = k->launch;
    struct sim_block *first = NULL, **last = &first; /* those begun, in turn */
    unsigned resident = 0;
    for (unsigned turn = 1;; turn++) {
        if (caller)
            tell(l, turn);
        struct sim_block *b = resident < RESIDENT ? next_block(k) : NULL;
        if (b) {
            resident++;
        } else if (first) {
            b = first;
            first = b->next;
            if (!first)
                last = &first;
        } else {
            return;
        }
        const enum sim_stop stop = b->index > stop_after(l) ? SIM_FAULT : sim_block_run(b, ROUNDS);
        if (stop == SIM_YIELD) {
            b->next = NULL;
            *last = b;
            last = &b->next;
        } else if (stop == SIM_DONE) {
            retire(k, b);
            resident--;
        } else {
            if (b->fault.kind)
                record_fault(l, b, &b->fault);
            atomic_fetch_add(&l->count, b->count);
            sim_block_free(b);
            resident--;
        }
    }
}

static void *thread_main(void *arg)
{
    work(arg, false);
    return NULL;
}

static void worker_free(struct sim_worker *k)
{
    while (k->spare_block) {
        struct sim_block *b = k->spare_block;
        k->spare_block = b->next;
        sim_block_free(b);
    }
    for (uint32_t i = 0; i < k->nspare; i++)
        free(k->spare_file[i]);
    free(k->spare_file);
    free(k->cache);
}

static bool worker_init(struct sim_worker *k, struct sim_launch *l)
{
    *k = (struct sim_worker){.launch = l};
    k->cache = calloc(l->code->ncache ? l->code->ncache : 1, sizeof *k->cache);
    return k->cache;
}

bool sim_run_grid(struct sim_launch *l, unsigned threads)
{
    if (l->code->ordered || threads < 1)
        threads = 1;
    if (threads > l->nblock)
        threads = (unsigned)l->nblock;
    struct sim_worker *k = calloc(threads, sizeof *k);
    const struct sim_fault no_memory = {.kind = SIM_F_MEMORY};
    if (!k) {
        record_fault(l, NULL, &no_memory);
        return false;
    }
    /* the caller is the first worker; fewer threads than asked for do the same work */
    if (!worker_init(&k[0], l))
        record_fault(l, NULL, &no_memory);
    for (unsigned i = 1; i < threads; i++)
        k[i].started = worker_init(&k[i], l) &&
                       pthread_create(&k[i].thread, NULL, thread_main, &k[i]) == 0;
    if (k[0].cache)
        work(&k[0], true);
    for (unsigned i = 1; i < threads; i++)
        if (k[i].started)
            pthread_join(k[i].thread, NULL);
    for (unsigned i = 0; i < threads; i++)
        worker_free(&k[i]);
    free(k);
    if (l->fault.kind == SIM_NO_FAULT && atomic_load(&l->count) > l->limit)
        l->fault.kind = SIM_F_TOTAL;
    return l->fault.kind == SIM_NO_FAULT;
}
