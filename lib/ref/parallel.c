#include <config.h>

#include "ref/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct loop {
    uint64_t n, chunk;
    void (*work)(void *ctx, uint64_t k, uint64_t begin, uint64_t end);
    void *ctx;
    atomic_uint_fast64_t next;
};

static void *run(void *arg)
{
    struct loop *l = arg;
    for (;;) {
        uint64_t k = atomic_fetch_add(&l->next, 1), begin = k * l->chunk;
        if (begin >= l->n)
            return NULL;
        l->work(l->ctx, k, begin, l->n - begin < l->chunk ? l->n : begin + l->chunk);
    }
}

void ref_parallel(unsigned threads, uint64_t n, uint64_t chunk,
                  void (*work)(void *ctx, uint64_t k, uint64_t begin, uint64_t end), void *ctx)
{
    enum { MOST = 64 };
    pthread_t thread[MOST];
    unsigned started = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct loop l = {.n = n, .chunk = chunk, .work = work, .ctx = ctx};
    atomic_init(&l.next, 0);
    if (!threads)
        threads = cores > 0 ? (unsigned)cores : 1;
    /* the calling thread works too */
    while (started + 1 < threads && started < MOST && (started + 1) * chunk < n &&
           pthread_create(&thread[started], NULL, run, &l) == 0)
        started++;
    run(&l);
    for (unsigned k = 0; k < started; k++)
        pthread_join(thread[k], NULL);
}
