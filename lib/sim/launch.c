/* A grid of blocks over worker threads.
 *
 * Workers take blocks (or clusters of them) in order, so when one fails all earlier ones have been
 * taken: they are run to their end, and the failure of the first is the launch's, whatever the
 * number of workers. A block that has had a long turn steps back behind the others that have begun.
 * New ones are begun when there is nothing else to do, or when all that have begun may be waiting
 * for another block: as many as an H100 would run at a time.
 */
#include <config.h>

#include <stdlib.h>

#include "sim/block.h"
#include "sim/check.h"

enum {
    ROUNDS = 64, /* slices that each warp of a block gets in a turn */
};

static uint64_t stop_after(struct sim_launch *l)
{
    return atomic_load_explicit(&l->stop_after, memory_order_relaxed);
}

/* Lists where every group of the lanes of the block's cluster stands. */
static void list_stands(struct arena *a, const struct sim_block *first, struct sim_fault *f)
{
    for (uint32_t k = 0; k < first->npeer; k++) {
        const struct sim_block *b = first->peer[k];
        for (uint32_t i = 0; i < b->nwarp; i++)
            for (uint32_t g = 0; b->warp[i].started && g < b->warp[i].ngroup; g++) {
                struct sim_stand *s = VEC_PUSH(a, &f->stands);
                *s = sim_stand_of(&b->warp[i], &b->warp[i].group[g]);
            }
    }
}

static void record_fault(struct sim_launch *l, const struct sim_block *b,
                         const struct sim_fault *fault)
{
    if (fault->kind == SIM_F_ABANDONED)
        return;
    pthread_mutex_lock(&l->lock);
    if (l->fault.kind == SIM_NO_FAULT || fault->turn < l->fault.turn) {
        l->fault = *fault;
        if (b && (fault->kind == SIM_F_DEADLOCK || fault->kind == SIM_F_LIVELOCK ||
                  fault->kind == SIM_F_LIMIT || fault->kind == SIM_F_INTERRUPTED))
            list_stands(l->arena, b, &l->fault);
        atomic_store(&l->stop_after, fault->turn);
    }
    pthread_mutex_unlock(&l->lock);
}

/* The next one to begin, NULL when there is none. */
static struct sim_block *next_unit(struct sim_worker *k)
{
    struct sim_launch *l = k->launch;
    if (stop_after(l) != UINT64_MAX || atomic_load(&l->count) > l->limit)
        return NULL;
    const uint64_t turn = atomic_fetch_add(&l->next_turn, 1);
    if (turn >= l->nblock / l->ncluster)
        return NULL;
    if (l->interrupted && *l->interrupted) {
        const struct sim_fault f = {.kind = SIM_F_INTERRUPTED, .turn = turn};
        record_fault(l, NULL, &f);
        return NULL;
    }
    struct sim_block *b = sim_unit_new(k, turn);
    if (!b) {
        const struct sim_fault f = {.kind = SIM_F_MEMORY, .turn = turn};
        record_fault(l, NULL, &f);
        return NULL;
    }
    atomic_fetch_add(&l->begun, l->ncluster);
    return b;
}

/* Those that a worker has begun and not finished, in turn. */
struct queue {
    struct sim_block *first, **last;
    uint32_t n, spinning; /* of those, that may be waiting for another block */
};

static struct sim_block *dequeue(struct queue *q)
{
    struct sim_block *b = q->first;
    if (!b)
        return NULL;
    q->first = b->next;
    if (!q->first)
        q->last = &q->first;
    q->n--;
    q->spinning -= b->spins;
    return b;
}

static void enqueue(struct queue *q, struct sim_block *b)
{
    b->next = NULL;
    *q->last = b;
    q->last = &b->next;
    q->n++;
    q->spinning += b->spins;
}

static bool room(const struct sim_launch *l)
{
    return atomic_load(&l->begun) - atomic_load(&l->ended) < l->resident;
}

/* The clock is looked at behind this, so not in every turn. */
static void tell(const struct sim_launch *l, unsigned turn)
{
    enum { TURNS = 16 };
    if (l->progress && turn % TURNS == 0)
        l->progress(l->progress_ctx, atomic_load_explicit(&l->ended, memory_order_relaxed),
                    l->nblock);
}

/* The block will not run again. */
static void finish(struct sim_launch *l, struct sim_block *b, enum sim_stop stop)
{
    if (stop == SIM_FAULT && b->fault.kind)
        record_fault(l, b, &b->fault);
    atomic_fetch_add(&l->count, sim_unit_count(b));
    atomic_fetch_add(&l->ended, l->ncluster);
    if (stop == SIM_DONE)
        sim_unit_retire(b);
    else
        sim_unit_free(b);
}

/* They all wait for what will not happen; the one that was begun first is told of. */
static void give_up(struct sim_launch *l, struct queue *q)
{
    struct sim_block *first = q->first, *b;
    for (b = first; b; b = b->next)
        if (b->turn < first->turn)
            first = b;
    first->fault =
        (struct sim_fault){.kind = sim_unit_waits(first) ? SIM_F_DEADLOCK : SIM_F_LIVELOCK,
                           .block = first->index,
                           .turn = first->turn,
                           .others = l->code->ordered ? q->n - 1 : 0};
    while ((b = dequeue(q)))
        finish(l, b, b == first ? SIM_FAULT : SIM_YIELD);
}

static void work(struct sim_worker *k, bool caller)
{
    struct sim_launch *l = k->launch;
    struct queue q = {.last = &q.first};
    struct sim_watch watch = {0};
    for (unsigned turn = 1;; turn++) {
        if (caller)
            tell(l, turn);
        struct sim_block *b = NULL;
        if (!q.n || (q.spinning == q.n && room(l)))
            b = next_unit(k);
        if (!b)
            b = dequeue(&q);
        if (!b)
            return;
        const enum sim_stop stop = b->turn > stop_after(l) ? SIM_FAULT : sim_unit_run(b, ROUNDS);
        if (stop != SIM_YIELD) {
            finish(l, b, stop);
            watch.turns = 0;
            continue;
        }
        enqueue(&q, b);
        if (q.spinning < q.n)
            watch.turns = 0;
        else if (sim_stuck(&watch, l, q.first, q.n))
            give_up(l, &q);
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
    if (l->code->ordered || (l->check && sim_check_alone(l->check)) || threads < 1)
        threads = 1;
    if (threads > l->nblock / l->ncluster)
        threads = (unsigned)(l->nblock / l->ncluster);
    l->many = threads > 1;
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
