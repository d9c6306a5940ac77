#include <config.h>

#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_THREADS = 64, PIECES_PER_THREAD = 4 };

struct job {
    void (*work)(void *ctx, uint64_t begin, uint64_t end);
    void *ctx;
    uint64_t n, piece;
    _Atomic uint64_t next;
};

static void *take_pieces(void *arg)
{
    struct job *j = arg;
    for (;;) {
        uint64_t begin = atomic_fetch_add(&j->next, j->piece);
        if (begin >= j->n)
            return NULL;
        j->work(j->ctx, begin, j->n - begin < j->piece ? j->n : begin + j->piece);
    }
}

void parallel_for(uint64_t n, uint64_t grain, void (*work)(void *ctx, uint64_t begin, uint64_t end),
                  void *ctx)
{
    pthread_t thread[MOST_THREADS];
    unsigned made = 0;
    uint64_t grains = n / grain + (n % grain != 0);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (uint64_t)cores;
    threads = threads < grains ? threads : grains;
    if (threads <= 1) {
        if (n)
            work(ctx, 0, n);
        return;
    }
    uint64_t pieces = threads * PIECES_PER_THREAD;
    struct job j = {work, ctx, n, grain * (grains / pieces + (grains % pieces != 0)), 0};
    /* where no thread can be made, the caller does their share */
    while (made + 1 < threads && pthread_create(&thread[made], NULL, take_pieces, &j) == 0)
        made++;
    take_pieces(&j);
    while (made > 0)
        pthread_join(thread[--made], NULL);
}
